// docs/labels.md has these formulas in the same order.
#include "replay/losses.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "replay/labels.hpp"

namespace ftprl::replay {
namespace {

using State = const LabelState&;

constexpr double LOG_RANGE = 8.0, LARGEST_LOG_SCORE = 60.0;
constexpr double FLAT = 0.125;          // a kinked loss is taken for this part of the density at its kink
constexpr double LEAST_LOSS = 0x1p-10;  // in units

double usable(double unit) { return unit >= LEAST_UNIT ? unit : 0.0; }
double log_score(double score) { return cut(score, -LARGEST_LOG_SCORE, LARGEST_LOG_SCORE); }
double log_of(double y) { return log_score(std::log(y)); }
double margin(double score, double y) { return std::max(1.0 - y * score, 0.0); }
double half_square(double d) { return 0.5 * (d * d); }
double pinball_slope(double d, double up, double down) { return d == 0.0 ? 0.0 : (d > 0.0 ? down : -up); }
Term all_of(double value) { return {value, value}; }

// ---- two classes ----

double logistic_value(double s, double y, double) {
    return std::max(-y * s, 0.0) + std::log1p(std::exp(-std::fabs(-y * s)));
}
NewtonSlope logistic_newton(State, double f, double y, double, double) {
    const double e = std::exp(-std::fabs(f)), p = (f >= 0.0 ? 1.0 : e) / (1.0 + e);
    return {log_slope(f, y), std::max(p * (1.0 - p), FLATTEST)};
}

void no_numbers(LabelState&, double, double, double) {}
double hinge_value(double s, double y, double) { return margin(s, y); }
double hinge_after_step(State, double s, double y, double A, double) {
    const double gap = margin(s, y);
    return gap > 0.0 ? -y * (A > 0.0 ? std::min(2.0 * gap / A, 1.0) : 1.0) : 0.0;
}
Term hinge_term(State, double s, double y, double a, double) { return all_of(margin(s, y) * (1.0 + y * a)); }
NewtonSlope hinge_newton(State, double f, double y, double, double) {
    const double right = chance_of(y * f), wrong = chance_of(-y * f);
    return {-y * wrong, std::max(right * wrong, FLATTEST)};
}

double squared_hinge_value(double s, double y, double) { return half_square(margin(s, y)); }
double squared_hinge_after_step(State, double s, double y, double A, double) { return -y * margin(s, y) / (1.0 + A); }
Term squared_hinge_term(State, double s, double y, double a, double) {
    return all_of(half_square(margin(s, y) + y * a));
}
NewtonSlope squared_hinge_newton(State, double f, double y, double, double) {
    return {-y * margin(f, y), margin(f, y) > 0.0 ? 1.0 : 0.0};
}

// ---- scores in the unit of the labels ----

void range_of_labels(LabelState& a) {
    a.low = a.least;
    a.high = a.most;
}

void squared_numbers(LabelState& a, double, double, double) {
    a.offset = a.mean;
    a.unit = a.psi = std::sqrt(std::max(a.squares / a.weight, 0.0));
    range_of_labels(a);
}
double squared_value(double s, double y, double) { return half_square(s - y); }
double squared_after_step(State, double s, double y, double A, double) { return (s - y) / (1.0 + A); }
Term squared_term(State, double s, double y, double a, double) { return all_of(half_square((s - y) - a)); }
NewtonSlope squared_newton(State a, double f, double y, double, double) { return {(f - y) / a.unit, 1.0}; }

void follow_quantile(LabelState& a, double y, double c, double tau) {
    if (a.rows == 1.0) {
        a.quantile = a.offset = y;
        return;
    }
    a.since += c;
    const double d = y - a.quantile, part = c / a.since;
    a.pinball += part * ((d > 0.0 ? tau : tau - 1.0) * d - a.pinball);
    a.deviation += part * (std::fabs(d) - a.deviation);
    const double step = 2.0 * a.pinball / (tau * (1.0 - tau)) * (c / a.weight) * pinball_slope(d, 1.0 - tau, tau);
    a.quantile = a.offset = std::min(std::max(a.quantile + step, a.least), a.most);
}
void quantile_numbers(LabelState& a, double y, double c, double tau) {
    follow_quantile(a, y, c, tau);
    a.unit = a.kappa = usable(a.deviation);
    range_of_labels(a);
}
double pinball_after_step(double d, double A, double up, double down) {
    return A > 0.0 ? cut(d / A, -up, down) : pinball_slope(d, up, down);
}
NewtonSlope pinball_newton(State a, double d, double mean, double up, double down) {
    return {pinball_slope(d, up, down), FLAT * (up * down) * a.unit / std::max(mean, LEAST_LOSS * a.unit)};
}

double absolute_value(double s, double y, double) { return std::fabs(s - y); }
double absolute_after_step(State, double s, double y, double A, double) {
    return pinball_after_step(s - y, A, 1.0, 1.0);
}
Term absolute_term(State, double s, double y, double a, double) {
    return all_of(std::fabs(s - y) * (1.0 - std::fabs(a)));
}
NewtonSlope absolute_newton(State a, double f, double y, double mean, double) {
    return pinball_newton(a, f - y, mean, 1.0, 1.0);
}

double quantile_value(double s, double y, double tau) {
    return tau * std::max(y - s, 0.0) + (1.0 - tau) * std::max(s - y, 0.0);
}
double quantile_after_step(State, double s, double y, double A, double tau) {
    return pinball_after_step(s - y, A, tau, 1.0 - tau);
}
Term quantile_term(State, double s, double y, double a, double tau) {
    return all_of(s - y > 0.0 ? (s - y) * ((1.0 - tau) - a) : -(s - y) * (tau + a));
}
NewtonSlope quantile_newton(State a, double f, double y, double mean, double tau) {
    return pinball_newton(a, f - y, mean, tau, 1.0 - tau);
}

void huber_numbers(LabelState& a, double y, double c, double tau) {
    follow_quantile(a, y, c, tau);
    a.unit = usable(a.deviation);
    a.psi = std::min(1.0, a.unit);
    a.kappa = std::max(1.0, a.unit);
    range_of_labels(a);
}
double huber_value(double s, double y, double) {
    return std::fabs(s - y) <= 1.0 ? half_square(s - y) : std::fabs(s - y) - 0.5;
}
double huber_after_step(State, double s, double y, double A, double) { return cut((s - y) / (1.0 + A), -1.0, 1.0); }
Term huber_term(State, double s, double y, double a, double) {
    const double size = std::fabs(s - y), rest = 1.0 - std::fabs(a);
    return all_of(size <= 1.0 ? half_square(size - std::fabs(a)) : (size - 1.0) * rest + half_square(rest));
}
NewtonSlope huber_newton(State a, double f, double y, double mean, double) {
    return {cut(f - y, -1.0, 1.0) / a.psi, a.unit / a.psi * (mean <= 1.0 ? 1.0 : FLAT / mean)};
}

// ---- scores that are logarithms ----

Term log_link_term(double mean, double e, double d, double score, double p, bool falling, double unit) {
    const double size = (mean + e) * (1.0 + std::fabs(d)) * (1.0 + std::fabs(score) + std::fabs(p)) / unit;
    const double value = falling ? mean * (std::expm1(-d) + d) : mean * (std::expm1(d) - d);
    return {std::max(value, 0.0) / unit, size};
}

void poisson_numbers(LabelState& a, double, double, double) {
    a.offset = a.mean > 0.0 ? log_of(a.mean) : -std::log(a.rows + 1.0);
    a.unit = usable(a.mean);
    a.low = std::max(a.offset - LOG_RANGE, -LARGEST_LOG_SCORE);
    a.high = a.most > 0.0 ? std::max(a.offset, log_of(a.most)) : a.offset;
}
double poisson_value(double s, double y, double) { return std::exp(log_score(s)) - y * log_score(s); }
double poisson_after_step(State a, double s, double y, double A, double) {
    const double e = std::exp(s);
    return ((e - y) / a.unit) / (1.0 + A * std::max(e, y) / a.unit);
}
Term poisson_term(State labels, double s, double y, double a, double) {
    const double e = std::exp(s), mean = y + a * labels.unit;
    if (!(mean > 0.0)) return all_of(e / labels.unit);
    const double p = std::log(mean);
    return log_link_term(mean, e, s - p, s, p, false, labels.unit);
}
NewtonSlope poisson_newton(State a, double f, double y, double, double) {
    const double e = std::exp(f);
    return {(e - y) / a.unit, std::max(e, y) / a.unit};
}

void gamma_numbers(LabelState& a, double, double, double) {
    a.offset = log_of(a.mean);
    a.unit = 1.0;
    a.low = log_of(a.least);
    a.high = log_of(a.most);
}
double gamma_value(double s, double y, double) { return y * std::exp(-log_score(s)) + log_score(s); }
double gamma_after_step(State, double s, double y, double A, double) {
    const double ratio = y * std::exp(-s);
    return (1.0 - ratio) / (1.0 + A * std::max(1.0, ratio));
}
Term gamma_term(State, double s, double y, double a, double) {
    const double mean = 1.0 - a, ratio = y * std::exp(-s);
    if (!(mean > 0.0)) return all_of(ratio);
    const double p = std::log(y / mean);
    return log_link_term(mean, ratio, s - p, s, p, true, 1.0);
}
NewtonSlope gamma_newton(State, double f, double y, double, double) {
    return {1.0 - y * std::exp(-f), std::max(1.0, y * std::exp(-f))};
}

constexpr Loss LOSSES[] = {
    {"logistic", Kind::log_odds, false, false, false, 1.0, logistic_value, nullptr, nullptr, nullptr, logistic_newton},
    {"softmax", Kind::classes, false, false, false, 1.0, nullptr, nullptr, nullptr, nullptr, nullptr},
    {"hinge", Kind::margins, false, false, false, 4.0, hinge_value, no_numbers, hinge_after_step, hinge_term,
     hinge_newton},
    {"squared_hinge", Kind::margins, false, false, false, 1.0, squared_hinge_value, no_numbers,
     squared_hinge_after_step, squared_hinge_term, squared_hinge_newton},
    {"squared", Kind::labels, false, false, false, 1.0, squared_value, squared_numbers, squared_after_step,
     squared_term, squared_newton},
    {"absolute", Kind::labels, true, true, false, 1.0, absolute_value, quantile_numbers, absolute_after_step,
     absolute_term, absolute_newton},
    {"quantile", Kind::labels, true, true, true, 1.0, quantile_value, quantile_numbers, quantile_after_step,
     quantile_term, quantile_newton},
    {"huber", Kind::labels, true, false, false, 1.0, huber_value, huber_numbers, huber_after_step, huber_term,
     huber_newton},
    {"poisson", Kind::log_counts, false, false, false, 1.0, poisson_value, poisson_numbers, poisson_after_step,
     poisson_term, poisson_newton},
    {"gamma", Kind::log_amounts, false, false, false, 1.0, gamma_value, gamma_numbers, gamma_after_step, gamma_term,
     gamma_newton},
};

}  // namespace

double chance_of(double v) {
    const double e = std::exp(-std::fabs(v));
    return (v < 0.0 ? e : 1.0) / (1.0 + e);
}

double log_slope(double score, double y) {
    const double v = -y * score, e = std::exp(-std::fabs(v));
    return -y * (v >= 0.0 ? 1.0 / (1.0 + e) : e / (1.0 + e));
}

double Loss::coin_slope(const LabelState& state, double score, double y, double tau) const {
    if (value == hinge_value) return y * score < 1.0 ? -y : 0.0;  // the Newton experts have a smooth loss
    return newton(state, score, y, 1.0, tau).slope;
}

double Loss::least(double y) const {
    if (kind == Kind::log_counts) return y > 0.0 ? y - y * std::log(y) : 0.0;
    return kind == Kind::log_amounts ? 1.0 + std::log(y) : 0.0;
}

double Loss::linear_part(double score, double y) const {
    return kind == Kind::log_counts ? y * score : (kind == Kind::log_amounts ? score : 0.0);
}

const Loss& loss_named(const std::string& name) {
    for (const Loss& loss : LOSSES) {
        if (name == loss.name) return loss;
    }
    throw std::invalid_argument("loss is not known: " + name);
}

}  // namespace ftprl::replay
