#include "learners/monitor.hpp"

#include <cmath>
#include <cstddef>

namespace ftprl {
namespace {

constexpr double NATS = 10.0;  // the bound of losses of two classes: the log loss of a probability of 1 in 22,000
constexpr double FIRST_ROWS = 32.0, PASSED_OVER = 16.0;  // that settle the unit of other losses
constexpr double UNITS = 16.0;                           // the bound in units

bool has_classes(const Loss* loss) { return loss->labels == Labels::signs; }

void add_all(MeanSequence& sequence, const std::vector<double>& x, const std::vector<double>& weight, std::int64_t n) {
    for (std::int64_t r = 0; r < n;) r += sequence.add(x.data() + r, weight.data() + r, n - r);
}

}  // namespace

Monitor::Monitor(const Loss* loss, double error_probability, double false_alarm)
    : kind_(loss),
      has_unit_(has_classes(loss)),
      loss_(NATS, loss->has_log_link(), true, error_probability),
      improvement_(NATS, true, true, error_probability),
      calibration_(1.0, true, !has_classes(loss), error_probability),
      errors_(1.0, false, false, error_probability),
      drift_(false_alarm) {}

// The numbers of the rows that have a label and a weight; returns how many there are.
std::int64_t Monitor::derive(const MonitoredRows& rows) {
    const auto size = static_cast<std::size_t>(rows.count);
    for (auto* numbers : {&losses_rows_, &improvements_, &residuals_, &misses_, &weights_}) {
        if (numbers->size() < size) numbers->resize(size);
    }
    std::size_t n = 0;
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const double y = rows.y[r], loss = rows.losses[r];
        if (y != y || loss != loss || !(rows.weight[r] > 0.0)) continue;
        double residual = 0.0, margin = 0.0;
        if (needs_scores()) {
            const double score = rows.scores[r];
            residual = (kind_->has_log_link() ? std::exp(score) : score) - y;
            margin = score * y;
        } else {  // the probability of the label follows from the loss
            const double chance = std::exp(-loss);
            residual = y > 0.0 ? chance - 1.0 : 1.0 - chance;
            margin = chance - 0.5;
        }
        if (!has_unit_ && is_first(loss, residual)) continue;
        losses_rows_[n] = loss;
        improvements_[n] = rows.baselines[2 * r] - loss;
        residuals_[n] = residual;
        misses_[n] = 0.5 * static_cast<double>(1 + (margin < 0.0) - (margin > 0.0));
        weights_[n] = rows.weight[r];
        ++n;
    }
    return static_cast<std::int64_t>(n);
}

void Monitor::add(const MonitoredRows& rows) {
    const std::int64_t n = derive(rows);
    for (std::int64_t r = 0; r < n;) {
        r += loss_.add(losses_rows_.data() + r, weights_.data() + r, n - r);
        drift_.look(loss_);
    }
    add_all(improvement_, improvements_, weights_, n);
    if (kind_->rule != LabelRule::classes) add_all(calibration_, residuals_, weights_, n);
    if (has_classes(kind_)) add_all(errors_, misses_, weights_, n);
}

bool Monitor::settles_unit() const { return first_rows_ >= FIRST_ROWS && first_loss_ > 0.0 && first_residual_ > 0.0; }

// Whether a row is one of those that settle the unit of the labels; the last of them sets the bounds.
bool Monitor::is_first(double loss, double residual) {
    first_rows_ += 1.0;
    if (first_rows_ <= PASSED_OVER) return true;
    first_loss_ += std::fabs(loss);
    first_residual_ += std::fabs(residual);
    if (!settles_unit()) return true;
    const double times = UNITS / (first_rows_ - PASSED_OVER);
    loss_.set_bound(times * first_loss_);
    improvement_.set_bound(times * first_loss_);
    calibration_.set_bound(times * first_residual_);
    has_unit_ = true;
    return true;
}

MonitorState Monitor::state() const {
    return {first_rows_,          first_loss_,          first_residual_, loss_.state(),
            improvement_.state(), calibration_.state(), errors_.state(), drift_.state()};
}

void Monitor::set_state(const MonitorState& state) {
    first_rows_ = state.first_rows;
    first_loss_ = state.first_loss;
    first_residual_ = state.first_residual;
    loss_.state() = state.loss;
    improvement_.state() = state.improvement;
    calibration_.state() = state.calibration;
    errors_.state() = state.errors;
    drift_.state() = state.drift;
    has_unit_ = has_classes(kind_) || settles_unit();
}

}  // namespace ftprl
