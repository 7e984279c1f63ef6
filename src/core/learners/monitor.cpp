#include "learners/monitor.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/dispatch.hpp"

namespace ftprl {
namespace {

constexpr double NATS = 10.0;  // the bound of losses of two classes: the log loss of a probability of 1 in 22,000
constexpr double FIRST_ROWS = 32.0, PASSED_OVER = 16.0;               // that settle the unit of other losses
constexpr double UNITS = 16.0;                                        // the bound in units
constexpr double ANYTHING = std::numeric_limits<double>::infinity();  // the bound where nothing is cut

bool is_numbered(const Loss* loss) { return loss->labels == Labels::classes; }
bool has_classes(const Loss* loss) { return loss->labels == Labels::signs || is_numbered(loss); }

constexpr std::int64_t BLOCK = 256;  // rows at a time: what is derived from them stays near the processor

enum Watched { LOSS, IMPROVEMENT, RESIDUAL, MISS };

// What is derived from the rows of a block that have a label and a weight.
struct Derived {
    std::int64_t count = 0;
    double x[TOGETHER][BLOCK];  // what is watched
    double score[BLOCK], y[BLOCK], weight[BLOCK], prediction[BLOCK];
};

FTPRL_INSIDE void take(const MonitoredRows& rows, std::int64_t r, Derived& d, std::int64_t n) {
    d.x[LOSS][n] = rows.losses[r];
    d.x[IMPROVEMENT][n] = rows.baselines[2 * r] - rows.losses[r];
    d.y[n] = rows.y[r];
    d.weight[n] = rows.weight[r];
}

bool has_label(const MonitoredRows& rows, std::int64_t r) {
    return rows.y[r] == rows.y[r] && rows.losses[r] == rows.losses[r] && rows.weight[r] > 0.0;
}

// Mostly all rows have a label: then they are taken several at once.
FTPRL_INSIDE void gather_by(const MonitoredRows& rows, Derived& d) {
    std::int64_t without = 0;
    for (std::int64_t r = 0; r < rows.count; ++r) {
        without += !(rows.y[r] == rows.y[r]) | !(rows.losses[r] == rows.losses[r]) | !(rows.weight[r] > 0.0);
    }
    if (without == 0) {
        d.count = rows.count;
        for (std::int64_t r = 0; r < rows.count; ++r) take(rows, r, d, r);
        if (rows.scores != nullptr) std::copy(rows.scores, rows.scores + rows.count, d.score);
        return;
    }
    for (std::int64_t r = 0; r < rows.count; ++r) {
        if (!has_label(rows, r)) continue;
        if (rows.scores != nullptr) d.score[d.count] = rows.scores[r];
        take(rows, r, d, d.count++);
    }
}

#if defined(FTPRL_X86)
FTPRL_AVX2 void gather_avx2(const MonitoredRows& rows, Derived& d) { gather_by(rows, d); }
#endif

void gather(const MonitoredRows& rows, Derived& d) {
#if defined(FTPRL_X86)
    if (instruction_set() == InstructionSet::avx2) return gather_avx2(rows, d);
#endif
    gather_by(rows, d);
}

// e^-x for x >= 0, to 13 digits: without a call, so that the compiler can take several rows at once.
FTPRL_INSIDE double exp_of_minus(double x) {
    constexpr double LOG2E = 1.4426950408889634, LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33;
    constexpr double SHIFT = 0x1.8p52, FARTHEST = 700.0;
    const double t = x < FARTHEST ? -x : -FARTHEST, shifted = t * LOG2E + SHIFT, whole = shifted - SHIFT;
    const double r = (t - whole * LN2_HIGH) - whole * LN2_LOW;
    double p = 1.0 / 39916800.0;  // term by term: a loop over them would keep the rows from being taken together
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    std::uint64_t bits = 0;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;  // the low bits of `shifted` are the exponent
    double power = 0.0;
    std::memcpy(&power, &bits, sizeof power);
    return p * power;
}

FTPRL_INSIDE double miss_of(double margin) {
    return 0.5 * (1.0 + static_cast<double>(margin < 0.0) - static_cast<double>(margin > 0.0));
}

// With the log loss the probability of the label follows from the loss.
FTPRL_INSIDE void derive_from_losses_by(Derived& d) {
    for (std::int64_t n = 0; n < d.count; ++n) {
        const double chance = exp_of_minus(d.x[LOSS][n]);
        d.x[RESIDUAL][n] = d.y[n] * (chance - 1.0);
        d.x[MISS][n] = miss_of(chance - 0.5);
    }
}

#if defined(FTPRL_X86)
FTPRL_AVX2 void derive_from_losses_avx2(Derived& d) { derive_from_losses_by(d); }
#endif

void derive_from_losses(Derived& d) {
#if defined(FTPRL_X86)
    if (instruction_set() == InstructionSet::avx2) return derive_from_losses_avx2(d);
#endif
    derive_from_losses_by(d);
}

void derive_from_scores(Derived& d, bool has_log_link) {
    for (std::int64_t n = 0; n < d.count; ++n) {
        d.prediction[n] = has_log_link ? std::exp(d.score[n]) : d.score[n];
        d.x[RESIDUAL][n] = d.prediction[n] - d.y[n];
        d.x[MISS][n] = miss_of(d.score[n] * d.y[n]);
    }
}

// With several classes a score is the number of the class that was predicted; NaN before any is known.
void derive_from_classes(Derived& d) {
    for (std::int64_t n = 0; n < d.count; ++n) {
        d.x[RESIDUAL][n] = 0.0;
        d.x[MISS][n] = d.score[n] == d.y[n] ? 0.0 : 1.0;
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
      unused_{{ANYTHING, true, false, error_probability}, {ANYTHING, true, false, error_probability}},
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
        settle_unit(d.x[LOSS][first], d.x[RESIDUAL][first]);
        ++first;
    }
    const bool has_calibration = kind_->rule != LabelRule::classes && !is_numbered(kind_);
    Together watched({&loss_, &improvement_, has_calibration ? &calibration_ : &unused_[0],
                      has_classes(kind_) ? &errors_ : &unused_[1]});
    for (std::int64_t r = first; r < d.count;) {
        r += watched.add({d.x[LOSS], d.x[IMPROVEMENT], d.x[RESIDUAL], d.x[MISS]}, d.weight, r, d.count - r);
        drift_.look(loss_);
    }
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
