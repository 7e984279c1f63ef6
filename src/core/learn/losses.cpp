#include "learn/losses.hpp"

#include <cmath>
#include <cstring>

namespace ftprl {
namespace {

// Ternaries, not std::max: Python's max keeps the first of two equal numbers, and so do these.
double above(double v, double floor) { return floor > v ? floor : v; }
double below(double v, double ceiling) { return ceiling < v ? ceiling : v; }
double half_square(double d) { return 0.5 * (d * d); }

LossAtScore minus_log(double log_chance, double, double, double&) { return {-log_chance, -1.0}; }
LossAtScore logistic(double s, double y, double, double& tail) {
    const double v = -y * s;
    const double e = std::exp(-std::fabs(v));  // at most 1: nothing overflows
    tail = e;
    // No branches: half of the rows would be guessed wrong. `up` is 1 for v > 0 and 0 for v < 0; at 0, e is 1 as well.
    const double up = 0.5 + std::copysign(0.5, v);
    const double top = above(e, up);
    return {0.5 * v + 0.5 * std::fabs(v), -y * (top / (1.0 + e))};
}

LossAtScore hinge(double s, double y, double, double&) { return {above(1.0 - y * s, 0.0), y * s < 1.0 ? -y : 0.0}; }

LossAtScore squared_hinge(double s, double y, double, double&) {
    const double miss = above(1.0 - y * s, 0.0);
    return {half_square(miss), -y * miss};
}

LossAtScore squared(double s, double y, double, double&) { return {half_square(s - y), s - y}; }

LossAtScore absolute(double s, double y, double, double&) {
    const double d = s - y;
    return {std::fabs(d), d > 0 ? 1.0 : (d < 0 ? -1.0 : 0.0)};
}

LossAtScore quantile(double s, double y, double tau, double&) {
    const double value = tau * above(y - s, 0.0) + (1.0 - tau) * above(s - y, 0.0);
    return {value, s == y ? 0.0 : (s > y ? 1.0 - tau : -tau)};
}

LossAtScore huber(double s, double y, double, double&) {
    const double d = s - y;
    const double size = std::fabs(d);
    return {size <= 1.0 ? half_square(d) : size - 0.5, below(above(d, -1.0), 1.0)};
}

LossAtScore poisson(double s, double y, double, double&) {
    const double c = below(above(s, -LARGEST_LOG_SCORE), LARGEST_LOG_SCORE);
    const double e = std::exp(c);
    return {e - y * c, e - y};
}

LossAtScore gamma(double s, double y, double, double&) {
    const double c = below(above(s, -LARGEST_LOG_SCORE), LARGEST_LOG_SCORE);
    const double ratio = y * std::exp(-c);
    return {ratio + c, 1.0 - ratio};
}

// One call for all experts of a row, which the compiler can work out side by side.
template <LossFunction loss>
void values_of(const double* scores, int count, double y, double tau, double* values) {
    double tail = 0.0;
    for (int j = 0; j < count; ++j) values[j] = loss(scores[j], y, tau, tail).value;
}

// ---- implicit slopes: a + the step's own effect, so that no step goes beyond the label ----

double within(double v, double low, double high) { return below(above(v, low), high); }

double squared_implicit(double s, double y, double A, double, double) { return (s - y) / (1.0 + A); }
double squared_hinge_implicit(double s, double y, double A, double, double) {
    return -y * above(1.0 - y * s, 0.0) / (1.0 + A);
}
double absolute_implicit(double s, double y, double A, double, double) {
    return A > 0.0 ? within((s - y) / A, -1.0, 1.0) : (s > y) - (s < y);
}
double quantile_implicit(double s, double y, double A, double, double tau) {
    if (A > 0.0) return within((s - y) / A, -tau, 1.0 - tau);
    return s == y ? 0.0 : (s > y ? 1.0 - tau : -tau);
}
double huber_implicit(double s, double y, double A, double, double) { return within((s - y) / (1.0 + A), -1.0, 1.0); }
// Twice the step that ends at the margin, which learns too little of a text whose words are mostly new: the longest
// that costs no more regret than the row's loss (docs/labels.md).
double hinge_implicit(double s, double y, double A, double, double) {
    const double gap = above(1.0 - y * s, 0.0);
    return gap > 0.0 ? -y * (A > 0.0 ? below(2.0 * gap / A, 1.0) : 1.0) : 0.0;
}
double poisson_implicit(double s, double y, double A, double unit, double) {
    const double e = std::exp(s);
    return ((e - y) / unit) / (1.0 + A * above(e, y) / unit);
}
double gamma_implicit(double s, double y, double A, double, double) {
    const double ratio = y * std::exp(-s);
    return (1.0 - ratio) / (1.0 + A * above(1.0, ratio));
}

// ---- row terms ----

RowTerm of_size(double value) { return {value, value}; }

RowTerm squared_term(double s, double y, double slope, double, double) { return of_size(half_square((s - y) - slope)); }
RowTerm squared_hinge_term(double s, double y, double slope, double, double) {
    return of_size(half_square(above(1.0 - y * s, 0.0) + y * slope));
}
RowTerm absolute_term(double s, double y, double slope, double, double) {
    return of_size(std::fabs(s - y) * (1.0 - std::fabs(slope)));
}
RowTerm quantile_term(double s, double y, double slope, double, double tau) {
    const double d = s - y;
    return of_size(d > 0.0 ? d * ((1.0 - tau) - slope) : -d * (tau + slope));
}
RowTerm huber_term(double s, double y, double slope, double, double) {
    const double size = std::fabs(s - y), left = size - std::fabs(slope);
    return of_size(size <= 1.0 ? half_square(left)
                               : (size - 1.0) * (1.0 - std::fabs(slope)) + half_square(1.0 - std::fabs(slope)));
}
RowTerm hinge_term(double s, double y, double slope, double, double) {
    return of_size(above(1.0 - y * s, 0.0) * (1.0 + y * slope));
}
RowTerm poisson_term(double s, double y, double slope, double unit, double) {
    const double e = std::exp(s), mean = y + slope * unit;
    if (!(mean > 0.0)) return {e / unit, e / unit};  // p is at minus infinity
    const double p = std::log(mean), d = s - p;
    return {above(mean * (std::expm1(d) - d), 0.0) / unit,
            (mean + e) * (1.0 + std::fabs(d)) * (1.0 + std::fabs(s) + std::fabs(p)) / unit};
}
RowTerm gamma_term(double s, double y, double slope, double, double) {
    const double mean = 1.0 - slope, ratio = y * std::exp(-s);
    if (!(mean > 0.0)) return {ratio, ratio};  // p is at infinity
    const double p = std::log(y / mean), d = s - p;
    return {above(mean * (std::expm1(-d) + d), 0.0),
            (mean + ratio) * (1.0 + std::fabs(d)) * (1.0 + std::fabs(s) + std::fabs(p))};
}

// ---- Newton steps: slope and curvature ----

constexpr double FLAT = 0.125;          // a kinked loss is taken for this part of the density at its kink
constexpr double LEAST_LOSS = 0x1p-10;  // in units
constexpr double LEAST_CURVE = 0x1p-13;

StackSlope squared_stack(const StackPoint& p) { return {(p.f - p.y) / p.unit, 1.0}; }
StackSlope absolute_stack(const StackPoint& p) {
    const double slope = p.f > p.y ? 1.0 : (p.f < p.y ? -1.0 : 0.0);
    return {slope, FLAT * p.unit / above(p.mean_loss, LEAST_LOSS * p.unit)};
}
StackSlope quantile_stack(const StackPoint& p) {
    const double slope = p.f == p.y ? 0.0 : (p.f > p.y ? 1.0 - p.tau : -p.tau);
    const double shape = p.tau * (1.0 - p.tau);
    return {slope, FLAT * shape * p.unit / above(p.mean_loss, LEAST_LOSS * p.unit)};
}
StackSlope huber_stack(const StackPoint& p) {
    const double curve = p.mean_loss <= 1.0 ? 1.0 : FLAT / p.mean_loss;
    return {within(p.f - p.y, -1.0, 1.0) / p.psi, (p.unit / p.psi) * curve};
}
StackSlope poisson_stack(const StackPoint& p) {
    const double e = std::exp(p.f);
    return {(e - p.y) / p.unit, above(e, p.y) / p.unit};
}
StackSlope gamma_stack(const StackPoint& p) {
    const double ratio = p.y * std::exp(-p.f);
    return {1.0 - ratio, above(1.0, ratio)};
}
// The probability of the label at a score that speaks for it by v.
double chance(double v) {
    const double e = std::exp(-std::fabs(v));
    return (v < 0.0 ? e : 1.0) / (1.0 + e);
}
StackSlope hinge_stack(const StackPoint& p) {
    const double right = chance(p.y * p.f), wrong = chance(-p.y * p.f);
    return {-p.y * wrong, above(right * wrong, LEAST_CURVE)};
}
StackSlope squared_hinge_stack(const StackPoint& p) {
    const double gap = above(1.0 - p.y * p.f, 0.0);
    return {-p.y * gap, gap > 0.0 ? 1.0 : 0.0};
}

}  // namespace

// name, function for one score and for several, labels, baseline; then what labels in any unit need
const Loss LOSSES[] = {
    {"logistic", logistic, values_of<logistic>, Labels::signs, BaselineKind::base_rate, LabelRule::none, nullptr,
     nullptr, nullptr, 1.0},
    {"hinge", hinge, values_of<hinge>, Labels::signs, BaselineKind::majority, LabelRule::classes, hinge_implicit,
     hinge_term, hinge_stack, 4.0},
    {"squared_hinge", squared_hinge, values_of<squared_hinge>, Labels::signs, BaselineKind::majority,
     LabelRule::classes, squared_hinge_implicit, squared_hinge_term, squared_hinge_stack, 1.0},
    {"squared", squared, values_of<squared>, Labels::numbers, BaselineKind::mean, LabelRule::mean, squared_implicit,
     squared_term, squared_stack, 1.0},
    {"absolute", absolute, values_of<absolute>, Labels::numbers, BaselineKind::median, LabelRule::quantile,
     absolute_implicit, absolute_term, absolute_stack, 1.0},
    {"quantile", quantile, values_of<quantile>, Labels::numbers, BaselineKind::quantile, LabelRule::quantile,
     quantile_implicit, quantile_term, quantile_stack, 1.0},
    {"huber", huber, values_of<huber>, Labels::numbers, BaselineKind::mean, LabelRule::median_of_unit, huber_implicit,
     huber_term, huber_stack, 1.0},
    {"poisson", poisson, values_of<poisson>, Labels::nonnegative, BaselineKind::log_mean, LabelRule::log_mean,
     poisson_implicit, poisson_term, poisson_stack, 1.0},
    {"gamma", gamma, values_of<gamma>, Labels::positive, BaselineKind::log_mean, LabelRule::log_ratio, gamma_implicit,
     gamma_term, gamma_stack, 1.0},
};
const std::size_t LOSS_COUNT = sizeof LOSSES / sizeof *LOSSES;

const Loss CLASS_LOSSES[] = {
    {"softmax", minus_log, values_of<minus_log>, Labels::classes, BaselineKind::class_rates, LabelRule::none, nullptr,
     nullptr, nullptr, 1.0},
    {"ovr", minus_log, values_of<minus_log>, Labels::classes, BaselineKind::class_rates, LabelRule::none, nullptr,
     nullptr, nullptr, 1.0, true},
};
const std::size_t CLASS_LOSS_COUNT = sizeof CLASS_LOSSES / sizeof *CLASS_LOSSES;

double total_loss(double value, double tail) { return tail == 0.0 ? value : value + std::log1p(tail); }

const Loss* loss_named(const char* name) {
    for (const Loss& loss : LOSSES) {
        if (std::strcmp(loss.name, name) == 0) return &loss;
    }
    for (const Loss& loss : CLASS_LOSSES) {
        if (std::strcmp(loss.name, name) == 0) return &loss;
    }
    return nullptr;
}

const char* name_of(BaselineKind kind) {
    constexpr const char* NAMES[] = {"base_rate", "mean", "log_mean", "median", "quantile", "majority", "class_rates"};
    return NAMES[static_cast<int>(kind)];
}

}  // namespace ftprl
