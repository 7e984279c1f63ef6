#include "learners/monitor.hpp"

#include <algorithm>
#include <cmath>

namespace ftprl {
namespace {

constexpr double NATS = 10.0;  // the bound of losses of two classes: the log loss of a probability of 1 in 22,000
constexpr double FIRST_ROWS = 32.0, PASSED_OVER = 16.0;  // that settle the unit of other losses
constexpr double UNITS = 16.0;                           // the bound in units

constexpr std::int64_t FEW_ROWS = 32;  // that are added one by one where one of them is not usual

bool is_numbered(const Loss* loss) { return loss->labels == Labels::classes; }
bool has_classes(const Loss* loss) { return loss->labels == Labels::signs || is_numbered(loss); }

bool has_label(const WatchedBlock& rows, std::int64_t r) {
    return rows.y[r] == rows.y[r] && rows.losses[r] == rows.losses[r] && rows.weight[r] > 0.0;
}

WatchedBlock part_of(const WatchedBlock& rows, std::int64_t first, std::int64_t last) {
    const auto from = [first](const double* numbers) { return numbers == nullptr ? nullptr : numbers + first; };
    return {rows.losses + first, rows.baselines + 2 * first, from(rows.scores), from(rows.predictions),
            rows.y + first,      rows.weight + first,        last - first};
}

// The rows of a block that have a label and a weight.
struct LabelledRows {
    double losses[BLOCK_ROWS], baselines[2 * BLOCK_ROWS], scores[BLOCK_ROWS], predictions[BLOCK_ROWS];
    double y[BLOCK_ROWS], weight[BLOCK_ROWS];
};

WatchedBlock labelled_rows(const WatchedBlock& rows, LabelledRows& to) {
    std::int64_t n = 0;
    for (std::int64_t r = 0; r < rows.count; ++r) {
        to.losses[n] = rows.losses[r];
        to.baselines[2 * n] = rows.baselines[2 * r];
        if (rows.scores != nullptr) {
            to.scores[n] = rows.scores[r];
            to.predictions[n] = rows.predictions[r];
        }
        to.y[n] = rows.y[r];
        to.weight[n] = rows.weight[r];
        n += has_label(rows, r) ? 1 : 0;  // otherwise the next row takes its place
    }
    return {to.losses, to.baselines, to.scores, to.predictions, to.y, to.weight, n};
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
    double predictions[BLOCK_ROWS];
    for (std::int64_t start = 0; start < rows.count;) {
        const std::int64_t count = std::min({BLOCK_ROWS, rows.count - start, together().rows_to_stop()});
        const double* scores = rows.scores == nullptr ? nullptr : rows.scores + start;
        const bool has_log_link = scores != nullptr && kind_->has_log_link();
        for (std::int64_t r = 0; has_log_link && r < count; ++r) predictions[r] = std::exp(scores[r]);
        add_block({rows.losses + start, rows.baselines + 2 * start, scores, has_log_link ? predictions : scores,
                   rows.y + start, rows.weight + start, count});
        start += count;
    }
}

Together Monitor::together() {
    return Together(
        {&loss_, &improvement_, has_calibration() ? &calibration_ : nullptr, has_classes(kind_) ? &errors_ : nullptr});
}

const WatchKernel& Monitor::kernel() const {
    const MonitorKernels& kernels = monitor_kernels();
    if (is_numbered(kind_)) return kernels.from_classes;
    return needs_scores() ? kernels.from_scores : kernels.from_losses;
}

// Mostly all rows are usual: then they are added where they are.
void Monitor::add_block(const WatchedBlock& rows) {
    if (!leaves_out_ && add_usual(rows)) {
        add_residuals(rows);
        return;
    }
    LabelledRows to;
    WatchedBlock labelled = labelled_rows(rows, to);
    leaves_out_ = labelled.count < rows.count;
    add_residuals(labelled);
    if (!has_unit_) labelled = part_of(labelled, settle_unit(labelled), labelled.count);
    std::int64_t most = BLOCK_ROWS;
    for (std::int64_t r = 0; r < labelled.count;) {
        const std::int64_t count = std::min({most, labelled.count - r, together().rows_to_stop()});
        const WatchedBlock part = part_of(labelled, r, r + count);
        if (!add_usual(part)) {
            if (count > FEW_ROWS) {  // most of the others are usual
                most = FEW_ROWS;
                continue;
            }
            add_any(part);
        }
        r += count;
    }
}

bool Monitor::add_usual(const WatchedBlock& rows) {
    if (!has_unit_ || !together().add_usual(kernel(), rows)) return false;
    drift_.look(loss_);
    return true;
}

void Monitor::add_any(const WatchedBlock& rows) {
    DerivedRows derived;
    kernel().derive(rows, derived);
    for (std::int64_t r = 0; r < rows.count;) {
        r += loss_.add(rows.losses + r, rows.weight + r, rows.count - r);
        drift_.look(loss_);
    }
    const auto add = [&rows](MeanSequence& to, const double* x) {
        for (std::int64_t r = 0; r < rows.count;) r += to.add(x + r, rows.weight + r, rows.count - r);
    };
    add(improvement_, derived.improvement);
    if (has_calibration()) add(calibration_, derived.residual);
    if (has_classes(kind_)) add(errors_, derived.miss);
}

void Monitor::add_residuals(const WatchedBlock& rows) {
    if (has_residuals()) residuals_.add(rows.scores, rows.predictions, rows.y, rows.weight, rows.count);
}

bool Monitor::is_unit_known() const { return first_rows_ >= FIRST_ROWS && first_loss_ > 0.0 && first_residual_ > 0.0; }

// The first rows, which no sequence has; the last of them sets the bounds. Returns how many they are.
std::int64_t Monitor::settle_unit(const WatchedBlock& rows) {
    DerivedRows derived;
    kernel().derive(rows, derived);
    std::int64_t r = 0;
    for (; r < rows.count && !is_unit_known(); ++r) {
        first_rows_ += 1.0;
        if (first_rows_ <= PASSED_OVER) continue;
        first_loss_ += std::fabs(rows.losses[r]);
        first_residual_ += std::fabs(derived.residual[r]);
    }
    if (!is_unit_known()) return r;
    const double times = UNITS / (first_rows_ - PASSED_OVER);
    loss_.set_bound(times * first_loss_);
    improvement_.set_bound(times * first_loss_);
    calibration_.set_bound(times * first_residual_);
    has_unit_ = true;
    return r;
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
