#include "learners/monitor.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ftprl {
namespace {

constexpr double NATS = 10.0;  // the bound of losses of two classes: the log loss of a probability of 1 in 22,000
constexpr double FIRST_ROWS = 32.0, PASSED_OVER = 16.0;  // that settle the unit of other losses
constexpr double UNITS = 16.0;                           // the bound in units

bool is_numbered(const Loss* loss) { return loss->labels == Labels::classes; }
bool has_classes(const Loss* loss) { return loss->labels == Labels::signs || is_numbered(loss); }

constexpr std::int64_t BLOCK = 256;  // rows at a time: what is derived from them stays near the processor

// What is derived from the rows of a block that have a label and a weight.
struct Derived {
    std::int64_t count = 0;
    double loss[BLOCK], improvement[BLOCK], score[BLOCK], y[BLOCK], weight[BLOCK], residual[BLOCK], miss[BLOCK];
    double prediction[BLOCK];
};

void add_all(MeanSequence& sequence, const double* x, const Derived& d, std::int64_t first) {
    for (std::int64_t r = first; r < d.count;) r += sequence.add(x + r, d.weight + r, d.count - r);
}

void gather(const MonitoredRows& rows, Derived& d) {
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const double y = rows.y[r], loss = rows.losses[r];
        if (y != y || loss != loss || !(rows.weight[r] > 0.0)) continue;
        const std::int64_t n = d.count++;
        d.loss[n] = loss;
        d.improvement[n] = rows.baselines[2 * r] - loss;
        d.score[n] = rows.scores == nullptr ? 0.0 : rows.scores[r];
        d.y[n] = y;
        d.weight[n] = rows.weight[r];
    }
}

// e^-x for x >= 0, to 13 digits: without a call, so that the compiler can take several rows at once.
inline double exp_of_minus(double x) {
    constexpr double LOG2E = 1.4426950408889634, LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33;
    constexpr double SHIFT = 0x1.8p52, FARTHEST = 700.0;
    const double t = x < FARTHEST ? -x : -FARTHEST, shifted = t * LOG2E + SHIFT, whole = shifted - SHIFT;
    const double r = (t - whole * LN2_HIGH) - whole * LN2_LOW;
    double p = 1.0 / 39916800.0;
    for (const double coefficient : {1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0,
                                     1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0}) {
        p = p * r + coefficient;
    }
    std::uint64_t bits = 0;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;  // the low bits of `shifted` are the exponent
    double power = 0.0;
    std::memcpy(&power, &bits, sizeof power);
    return p * power;
}

double miss_of(double margin) {
    return 0.5 * (1.0 + static_cast<double>(margin < 0.0) - static_cast<double>(margin > 0.0));
}

// With the log loss the probability of the label follows from the loss.
void derive_from_losses(Derived& d) {
    for (std::int64_t n = 0; n < d.count; ++n) {
        const double chance = exp_of_minus(d.loss[n]);
        d.residual[n] = d.y[n] * (chance - 1.0);
        d.miss[n] = miss_of(chance - 0.5);
    }
}

void derive_from_scores(Derived& d, bool has_log_link) {
    for (std::int64_t n = 0; n < d.count; ++n) {
        d.prediction[n] = has_log_link ? std::exp(d.score[n]) : d.score[n];
        d.residual[n] = d.prediction[n] - d.y[n];
        d.miss[n] = miss_of(d.score[n] * d.y[n]);
    }
}

// With several classes a score is the number of the class that was predicted; NaN before any is known.
void derive_from_classes(Derived& d) {
    for (std::int64_t n = 0; n < d.count; ++n) {
        d.residual[n] = 0.0;
        d.miss[n] = d.score[n] == d.y[n] ? 0.0 : 1.0;
    }
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

void Monitor::add(const MonitoredRows& rows) {
    for (std::int64_t start = 0; start < rows.count; start += BLOCK) {
        const std::int64_t count = std::min(BLOCK, rows.count - start);
        const double* scores = rows.scores == nullptr ? nullptr : rows.scores + start;
        add_block(
            {rows.losses + start, rows.baselines + 2 * start, scores, rows.y + start, rows.weight + start, count});
    }
}

void Monitor::add_block(const MonitoredRows& rows) {
    Derived d;
    gather(rows, d);
    if (is_numbered(kind_)) {
        derive_from_classes(d);
    } else if (needs_scores()) {
        derive_from_scores(d, kind_->has_log_link());
    } else {
        derive_from_losses(d);
    }
    if (has_residuals()) residuals_.add(d.score, d.prediction, d.y, d.weight, d.count);
    std::int64_t first = 0;
    while (!has_unit_ && first < d.count) {
        settle_unit(d.loss[first], d.residual[first]);
        ++first;
    }
    for (std::int64_t r = first; r < d.count;) {
        r += loss_.add(d.loss + r, d.weight + r, d.count - r);
        drift_.look(loss_);
    }
    add_all(improvement_, d.improvement, d, first);
    if (kind_->rule != LabelRule::classes && !is_numbered(kind_)) add_all(calibration_, d.residual, d, first);
    if (has_classes(kind_)) add_all(errors_, d.miss, d, first);
}

bool Monitor::is_unit_known() const { return first_rows_ >= FIRST_ROWS && first_loss_ > 0.0 && first_residual_ > 0.0; }

// One of the first rows, which no sequence has; the last of them sets the bounds.
void Monitor::settle_unit(double loss, double residual) {
    first_rows_ += 1.0;
    if (first_rows_ <= PASSED_OVER) return;
    first_loss_ += std::fabs(loss);
    first_residual_ += std::fabs(residual);
    if (!is_unit_known()) return;
    const double times = UNITS / (first_rows_ - PASSED_OVER);
    loss_.set_bound(times * first_loss_);
    improvement_.set_bound(times * first_loss_);
    calibration_.set_bound(times * first_residual_);
    has_unit_ = true;
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
    has_unit_ = has_classes(kind_) || is_unit_known();
}

}  // namespace ftprl
