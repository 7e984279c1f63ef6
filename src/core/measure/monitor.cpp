#include "measure/monitor.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ftprl {
namespace {

constexpr double NATS = 10.0;  // the bound of losses of two classes: the log loss of a probability of 1 in 22,000
constexpr double FIRST_ROWS = 32.0, PASSED_OVER = 16.0;  // that settle the unit of other losses
constexpr double UNITS = 16.0;                           // the bound in units

constexpr std::int64_t BLOCK_ROWS = 256;  // at a time: what is derived from them stays near the processor

// The log loss of a probability of 1/2, and how far from it a loss still counts as a tie: rounding, of which another
// way to compute the same loss has another share, must not decide whether a row is an error.
constexpr double EVEN = 0.6931471805599453, TIE = 1e-9;

bool is_numbered(const Loss* loss) { return loss->labels == Labels::classes; }
bool has_classes(const Loss* loss) { return loss->labels == Labels::signs || is_numbered(loss); }

// e^-x for x >= 0, to 13 digits: 2^-n (1 - r + r^2 q(r)), |r| <= ln(2) / 2. q is the Chebyshev series of
// (e^-r - 1 + r) / r^2 up to degree 7. The same bits on every machine, as those of std::exp are not.
double exp_of_minus(double x) {
    constexpr double FARTHEST = 700.0, LOG2E = 1.4426950408889634, LN2 = 0.6931471805599453, SHIFT = 0x1.8p52;
    constexpr double Q0 = 0x1.fffffffffe067p-2, Q1 = -0x1.5555555553b7cp-3, Q2 = 0x1.55555565c5e48p-5;
    constexpr double Q3 = -0x1.1111111c46182p-7, Q4 = 0x1.6c166be5d9ab5p-10, Q5 = -0x1.a019adaae68d5p-13;
    constexpr double Q6 = 0x1.a136b28252698p-16, Q7 = -0x1.72c721fc9c39fp-19;
    x = std::min(x, FARTHEST);
    const double shifted = x * LOG2E + SHIFT, r = x - (shifted - SHIFT) * LN2, r2 = r * r, r4 = r2 * r2;
    const double low = (Q0 + Q1 * r) + r2 * (Q2 + Q3 * r), high = (Q4 + Q5 * r) + r2 * (Q6 + Q7 * r);
    const double p = (1.0 - r) + r2 * (low + r4 * high);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (1023 - bits) << 52;  // the low bits of `shifted` are n
    double power = 0.0;
    std::memcpy(&power, &bits, sizeof power);
    return p * power;
}

// 1 where `margin` is below 0, 1/2 where it is 0.
double miss_of(double margin) { return margin < 0.0 ? 1.0 : margin <= 0.0 ? 0.5 : 0.0; }

}  // namespace

// Rows of a run that have a label and a weight, and what is watched of them; one number a row each.
struct Monitor::Block {
    std::int64_t count = 0;
    double loss[BLOCK_ROWS], improvement[BLOCK_ROWS], residual[BLOCK_ROWS], miss[BLOCK_ROWS];
    double score[BLOCK_ROWS], prediction[BLOCK_ROWS], y[BLOCK_ROWS], weight[BLOCK_ROWS];
};

Monitor::Monitor(const Loss* loss, double error_probability, double false_alarm)
    : kind_(loss),
      has_unit_(has_classes(loss)),
      loss_(NATS, loss->has_log_link(), true, error_probability),
      improvement_(NATS, true, true, error_probability),
      calibration_(1.0, true, !has_classes(loss), error_probability),
      errors_(1.0, false, false, error_probability),
      drift_(false_alarm) {}

void Monitor::add(const MonitoredRows& rows) {
    Block block;
    for (std::int64_t start = 0; start < rows.count; start += BLOCK_ROWS) {
        fill(rows, start, std::min(start + BLOCK_ROWS, rows.count), block);
        if (has_residuals()) residuals_.add(block.score, block.prediction, block.y, block.weight, block.count);
        add_block(block, has_unit_ ? 0 : settle_unit(block));
    }
}

void Monitor::fill(const MonitoredRows& rows, std::int64_t first, std::int64_t last, Block& to) const {
    std::int64_t n = 0;
    for (std::int64_t r = first; r < last; ++r) {
        if (!(rows.y[r] == rows.y[r] && rows.losses[r] == rows.losses[r] && rows.weight[r] > 0.0)) continue;
        const double loss = rows.losses[r], y = rows.y[r];
        to.loss[n] = loss;
        to.y[n] = y;
        to.weight[n] = rows.weight[r];
        to.improvement[n] = rows.baselines[2 * r] - loss;
        if (!needs_scores()) {  // the probability of the label follows from the loss
            to.residual[n] = y * (exp_of_minus(loss) - 1.0);
            to.miss[n] = loss > EVEN + TIE ? 1.0 : loss >= EVEN - TIE ? 0.5 : 0.0;
        } else if (is_numbered(kind_)) {  // a score is the number of a class, NaN before any is known
            to.residual[n] = 0.0;
            to.miss[n] = rows.scores[r] == y ? 0.0 : 1.0;
        } else {
            to.score[n] = rows.scores[r];
            to.prediction[n] = kind_->has_log_link() ? std::exp(rows.scores[r]) : rows.scores[r];
            to.residual[n] = to.prediction[n] - y;
            to.miss[n] = miss_of(rows.scores[r] * y);
        }
        ++n;
    }
    to.count = n;
}

void Monitor::add_block(const Block& rows, std::int64_t first) {
    for (std::int64_t r = first; r < rows.count;) {
        r += loss_.add(rows.loss + r, rows.weight + r, rows.count - r);
        drift_.look(loss_);
    }
    const auto add = [&rows, first](MeanSequence& to, const double* x) {
        for (std::int64_t r = first; r < rows.count;) r += to.add(x + r, rows.weight + r, rows.count - r);
    };
    add(improvement_, rows.improvement);
    if (has_calibration()) add(calibration_, rows.residual);
    if (has_classes(kind_)) add(errors_, rows.miss);
}

bool Monitor::is_unit_known() const { return first_rows_ >= FIRST_ROWS && first_loss_ > 0.0 && first_residual_ > 0.0; }

// The first rows, which no sequence has; the last of them sets the bounds. Returns how many they are.
std::int64_t Monitor::settle_unit(const Block& rows) {
    std::int64_t r = 0;
    for (; r < rows.count && !is_unit_known(); ++r) {
        first_rows_ += 1.0;
        if (first_rows_ <= PASSED_OVER) continue;
        first_loss_ += std::fabs(rows.loss[r]);
        first_residual_ += std::fabs(rows.residual[r]);
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
