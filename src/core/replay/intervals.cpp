#include "replay/intervals.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "replay/settings.hpp"

namespace ftprl::replay {
namespace {

constexpr int BETS = 24, USUAL_BETS = 8, MOST_DOUBLINGS = 8;
constexpr std::int64_t EVERY = 256;  // rows after which a guess is brought up to date, and the alarm is looked at
constexpr std::int64_t FIRST_SEGMENT = 1024, FIRST_ROWS = 32, PASSED_OVER = 16;
constexpr double SMALLEST_UNIT = 0x1p-440, UNITS = 16.0, LARGEST_NATS = 10.0, LARGEST_SCORE = 60.0, TIE = 1e-9;
constexpr double INFINITE = std::numeric_limits<double>::infinity();

struct Grid {
    std::array<double, BETS> bet, cost, log_prior;

    Grid() : bet{}, cost{}, log_prior{} {
        double whole = 0.0;
        for (int j = 0; j < BETS; ++j) {
            bet[j] = std::ldexp(0.8, -j);
            cost[j] = -std::log1p(-bet[j]) - bet[j];
            const double rank = 1.0 + std::max(j - USUAL_BETS, 0);
            log_prior[j] = 1.0 / (rank * rank);
            whole += log_prior[j];
        }
        for (double& prior : log_prior) prior = std::log(prior / whole);
    }
};

const Grid& grid() {
    static const Grid one;
    return one;
}

// The logarithm of the mixture over bets.
double wealth(double s, double v, int doublings) {
    if (!std::isfinite(v)) return -INFINITE;
    const Grid& g = grid();
    double terms[BETS], top = -INFINITE, sum = 0.0;
    for (int j = 0; j < BETS - doublings; ++j) {
        terms[j] = g.log_prior[j + doublings] + g.bet[j] * s - g.cost[j] * v;
        top = std::max(top, terms[j]);
    }
    for (int j = 0; j < BETS - doublings; ++j) sum += std::exp(terms[j] - top);
    return top + std::log(sum);
}

// The largest sum of deviations at which the mixture is not above e^threshold, by bisection.
double farthest(double v, double threshold, int doublings) {
    if (!std::isfinite(v)) return INFINITE;
    const Grid& g = grid();
    double low = 0.0, high = INFINITE;
    for (int j = 0; j < BETS - doublings; ++j)  // where one bet alone has won enough
        high = std::min(high, (threshold - g.log_prior[j + doublings] + g.cost[j] * v) / g.bet[j]);
    for (double middle = 0.5 * (low + high); low < middle && middle < high; middle = 0.5 * (low + high))
        (wealth(middle, v, doublings) <= threshold ? low : high) = middle;
    return high;
}

// A sum of squared deviations in units of c; where squares are lost, the most that so many rows can make.
double in_units(double squares, double c, std::int64_t rows) {
    return c >= SMALLEST_UNIT ? squares / (c * c) : static_cast<double>(rows);
}

}  // namespace

double MeanSequence::threshold(double error) const {
    return -std::log(error * (now_.number == 0 ? 0.75 : std::ldexp(0.25, -now_.number)));
}

double MeanSequence::reach(double threshold) const {
    const double c = unit();
    return c > 0.0 ? c * farthest(in_units(now_.squares, c, now_.rows), threshold, now_.doublings) : 0.0;
}

void MeanSequence::add(double x, double weight) {
    if (x != x) return;
    if (weight > now_.heaviest) allow(weight);
    const double kept = cut(x, low(), bound_), deviation = weight * (kept - guess_);
    if (kept != x) {
        ++cut_rows_;
        ++now_.cuts;
        cut_off_ += weight * (x - kept);
    }
    now_.sum += weight * kept;
    now_.squares += deviation * deviation;
    now_.weight += weight;
    ++now_.rows;
    ++rows_;
    if (now_.rows % EVERY == 0 || (now_.rows < EVERY && is_power_of_two(now_.rows))) {
        const double reach = (has_signs_ ? 0.25 : 1.0) * bound_;
        guess_ = std::min(std::max(now_.sum / now_.weight, has_signs_ ? -reach : 0.0), reach);
    }
    if (grows_ && static_cast<double>(now_.cuts) > 2.0 + 1e-3 * static_cast<double>(now_.rows))
        start(4.0 * bound_, now_.heaviest);
}

// Doubles the largest weight, up to eight times in an epoch.
void MeanSequence::allow(double weight) {
    double heaviest = now_.heaviest;
    int doublings = now_.doublings;
    for (; heaviest < weight && doublings < MOST_DOUBLINGS; ++doublings) heaviest *= 2.0;
    if (now_.rows == 0 || heaviest < weight) return start(bound_, weight);
    now_.heaviest = heaviest;
    now_.doublings = doublings;
}

void MeanSequence::start(double bound, double heaviest) {
    if (now_.rows > 0) {
        double lower = 0.0, upper = 0.0;
        ends(lower, upper);
        before_weight_ += now_.weight;
        before_sum_ += now_.sum;
        before_lower_ += lower;
        before_upper_ += upper;
        const int number = now_.number + 1;
        now_ = Epoch{};
        now_.number = number;
    }
    bound_ = bound;
    now_.heaviest = heaviest;
    now_.doublings = 0;
}

void MeanSequence::ends(double& lower, double& upper) const {
    lower = upper = now_.sum;
    if (!(unit() > 0.0)) return;
    const double far = reach(threshold(0.5 * (1.0 - CONFIDENCE)));
    lower = std::max(now_.sum - far, low() * now_.weight);
    upper = std::min(now_.sum + far, bound_ * now_.weight);
}

Interval MeanSequence::interval() const {
    const double weight = before_weight_ + now_.weight;
    double lower = 0.0, upper = 0.0;
    ends(lower, upper);
    return {(before_sum_ + now_.sum) / weight,
            (before_lower_ + lower) / weight,
            (before_upper_ + upper) / weight,
            bound_,
            cut_off_ / weight,
            rows_,
            cut_rows_};
}

// Tests for a risen loss, after one more row.
void DriftAlarm::look(const MeanSequence& losses) {
    const Epoch& now = losses.now();
    if (row_ >= 0 || now.rows % EVERY != 0) return;
    if (now.number != epoch_) started_ = false;
    epoch_ = now.number;
    if (started_ && has_risen(losses)) row_ = losses.rows();
    if (row_ >= 0 || now.rows < FIRST_SEGMENT || !is_power_of_two(now.rows)) return;
    reference_ = (now.sum + losses.reach(losses.threshold(0.5 * FALSE_ALARM))) / now.weight;
    weight_ = now.weight;
    sum_ = now.sum;
    squares_ = now.squares;
    started_ = true;
    ++segments_;
}

bool DriftAlarm::has_risen(const MeanSequence& losses) const {
    const Epoch& now = losses.now();
    const double c = losses.unit();
    if (!(c > 0.0)) return false;
    const double excess = (now.sum - sum_ - reference_ * (now.weight - weight_)) / c;
    const double needed = std::log(segments_) + std::log(segments_ + 1.0) - std::log(0.5 * FALSE_ALARM);
    return excess > 0.0 && wealth(excess, in_units(now.squares - squares_, c, now.rows), now.doublings) >= needed;
}

Intervals::Intervals(const Loss* loss)
    : loss_(loss),
      settled_(loss == nullptr || !loss->has_offset()),
      losses_(LARGEST_NATS, loss != nullptr && loss->has_log_link(), true),
      improvement_(LARGEST_NATS, true, true),
      calibration_(1.0, true, loss == nullptr || loss->has_offset()),
      errors_(1.0, false, false) {}

void Intervals::add(double loss, double baseline, double prediction, double y, double weight) {
    double residual = 0.0, margin = 0.0;
    if (loss_ == nullptr) {
        margin = prediction == y ? 1.0 : -1.0;
    } else if (loss_->kind == Kind::log_odds) {
        residual = y * (std::exp(-loss) - 1.0);
        margin = std::log(2.0) - loss;
        if (std::fabs(margin) <= TIE) margin = 0.0;  // whatever rounding says
    } else {
        const double mean =
            loss_->has_log_link() ? std::exp(cut(prediction, -LARGEST_SCORE, LARGEST_SCORE)) : prediction;
        residual = mean - y;
        margin = prediction * y;
    }
    if (!settled_) {
        settled_ = is_settled(std::fabs(loss), std::fabs(residual));
        return;
    }
    losses_.add(loss, weight);
    drift_.look(losses_);
    improvement_.add(baseline - loss, weight);
    if (loss_ != nullptr && loss_->kind != Kind::margins) calibration_.add(residual, weight);
    const bool has_errors = loss_ == nullptr || !loss_->has_offset();
    if (has_errors) errors_.add(0.5 * (1.0 - static_cast<double>((margin > 0.0) - (margin < 0.0))), weight);
}

// The first rows settle the unit of losses that have one; the very first of them are passed over.
bool Intervals::is_settled(double loss, double residual) {
    if (++first_rows_ > PASSED_OVER) {
        first_losses_ += loss;
        first_residuals_ += residual;
    }
    if (first_rows_ < FIRST_ROWS || !(first_losses_ > 0.0 && first_residuals_ > 0.0)) return false;
    const double share = UNITS / static_cast<double>(first_rows_ - PASSED_OVER);
    losses_.set_bound(share * first_losses_);
    improvement_.set_bound(share * first_losses_);
    calibration_.set_bound(share * first_residuals_);
    return true;
}

}  // namespace ftprl::replay
