// docs/labels.md has these formulas in the same order.
#include "replay/losses.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "replay/labels.hpp"

namespace ftprl::replay {
namespace {

constexpr double LOG_RANGE = 8.0, LARGEST_LOG_SCORE = 60.0;
constexpr double FLAT = 0.125;          // a kinked loss is taken for this part of the density at its kink
constexpr double LEAST_LOSS = 0x1p-10;  // in units

double usable(double unit) { return unit >= LEAST_UNIT ? unit : 0.0; }
double log_of(double y) { return cut(std::log(y), -LARGEST_LOG_SCORE, LARGEST_LOG_SCORE); }
double log_score(double score) { return cut(score, -LARGEST_LOG_SCORE, LARGEST_LOG_SCORE); }
double margin(double score, double y) { return std::max(1.0 - y * score, 0.0); }
double sign(double d) { return static_cast<double>(d > 0.0) - static_cast<double>(d < 0.0); }

double nothing(double) { return 0.0; }
double no_part(double, double) { return 0.0; }

// ---- offset, unit and range of the labels ----

void no_numbers(LabelState&, double, double, double) {}

void range_of_labels(LabelState& a) {
    a.low = a.least;
    a.high = a.most;
}

void follow_quantile(LabelState& a, double y, double c, double tau) {
    if (a.rows == 1.0) {
        a.quantile = a.offset = y;
        return;
    }
    a.since += c;
    const double d = y - a.quantile, part = c / a.since;
    a.pinball += part * ((d > 0.0 ? tau : tau - 1.0) * d - a.pinball);
    a.deviation += part * (std::fabs(d) - a.deviation);
    const double side = d > 0.0 ? tau : (d < 0.0 ? tau - 1.0 : 0.0);
    const double step = 2.0 * a.pinball / (tau * (1.0 - tau)) * (c / a.weight) * side;
    a.quantile = a.offset = std::min(std::max(a.quantile + step, a.least), a.most);
}

void quantile_numbers(LabelState& a, double y, double c, double tau) {
    follow_quantile(a, y, c, tau);
    a.unit = a.kappa = usable(a.deviation);
    range_of_labels(a);
}

// ---- two classes ----

double logistic_value(double score, double y, double) {
    return std::max(-y * score, 0.0) + std::log1p(std::exp(-std::fabs(-y * score)));
}

NewtonSlope logistic_newton(const LabelState&, double f, double y, double, double) {
    const double e = std::exp(-std::fabs(f)), p = (f >= 0.0 ? 1.0 : e) / (1.0 + e);
    return {log_slope(f, y), std::max(p * (1.0 - p), FLATTEST)};
}

double hinge_value(double score, double y, double) { return margin(score, y); }

double hinge_after_step(const LabelState&, double score, double y, double A, double) {
    const double gap = margin(score, y);
    return gap > 0.0 ? -y * (A > 0.0 ? std::min(2.0 * gap / A, 1.0) : 1.0) : 0.0;
}

Term hinge_term(const LabelState&, double score, double y, double a, double) {
    const double value = margin(score, y) * (1.0 + y * a);
    return {value, value};
}

NewtonSlope hinge_newton(const LabelState&, double f, double y, double, double) {
    const double right = chance_of(y * f), wrong = chance_of(-y * f);
    return {-y * wrong, std::max(right * wrong, FLATTEST)};
}

double hinge_coin(const LabelState&, double score, double y, double) { return y * score < 1.0 ? -y : 0.0; }

double squared_hinge_value(double score, double y, double) {
    const double gap = margin(score, y);
    return 0.5 * (gap * gap);
}

double squared_hinge_after_step(const LabelState&, double score, double y, double A, double) {
    return -y * margin(score, y) / (1.0 + A);
}

Term squared_hinge_term(const LabelState&, double score, double y, double a, double) {
    const double left = margin(score, y) + y * a, value = 0.5 * (left * left);
    return {value, value};
}

NewtonSlope squared_hinge_newton(const LabelState&, double f, double y, double, double) {
    const double gap = margin(f, y);
    return {-y * gap, gap > 0.0 ? 1.0 : 0.0};
}

// ---- scores in the unit of the labels ----

void squared_numbers(LabelState& a, double, double, double) {
    a.offset = a.mean;
    a.unit = a.psi = std::sqrt(std::max(a.squares / a.weight, 0.0));
    range_of_labels(a);
}

double squared_value(double score, double y, double) {
    const double d = score - y;
    return 0.5 * (d * d);
}

double squared_after_step(const LabelState&, double score, double y, double A, double) {
    return (score - y) / (1.0 + A);
}

Term squared_term(const LabelState&, double score, double y, double a, double) {
    const double left = (score - y) - a, value = 0.5 * (left * left);
    return {value, value};
}

NewtonSlope squared_newton(const LabelState& labels, double f, double y, double, double) {
    return {(f - y) / labels.unit, 1.0};
}

double absolute_value(double score, double y, double) { return std::fabs(score - y); }

double absolute_after_step(const LabelState&, double score, double y, double A, double) {
    return A > 0.0 ? cut((score - y) / A, -1.0, 1.0) : sign(score - y);
}

Term absolute_term(const LabelState&, double score, double y, double a, double) {
    const double value = std::fabs(score - y) * (1.0 - std::fabs(a));
    return {value, value};
}

NewtonSlope absolute_newton(const LabelState& labels, double f, double y, double mean, double) {
    const double U = labels.unit;
    return {sign(f - y), FLAT * U / std::max(mean, LEAST_LOSS * U)};
}

double quantile_value(double score, double y, double tau) {
    return tau * std::max(y - score, 0.0) + (1.0 - tau) * std::max(score - y, 0.0);
}

double quantile_slope(double score, double y, double tau) { return score == y ? 0.0 : (score > y ? 1.0 - tau : -tau); }

double quantile_after_step(const LabelState&, double score, double y, double A, double tau) {
    return A > 0.0 ? cut((score - y) / A, -tau, 1.0 - tau) : quantile_slope(score, y, tau);
}

Term quantile_term(const LabelState&, double score, double y, double a, double tau) {
    const double d = score - y, value = d > 0.0 ? d * ((1.0 - tau) - a) : -d * (tau + a);
    return {value, value};
}

NewtonSlope quantile_newton(const LabelState& labels, double f, double y, double mean, double tau) {
    const double U = labels.unit, curvature = FLAT * (tau * (1.0 - tau)) * U / std::max(mean, LEAST_LOSS * U);
    return {quantile_slope(f, y, tau), curvature};
}

void huber_numbers(LabelState& a, double y, double c, double tau) {
    follow_quantile(a, y, c, tau);
    a.unit = usable(a.deviation);
    a.psi = std::min(1.0, a.unit);
    a.kappa = std::max(1.0, a.unit);
    range_of_labels(a);
}

double huber_value(double score, double y, double) {
    const double d = score - y;
    return std::fabs(d) <= 1.0 ? 0.5 * (d * d) : std::fabs(d) - 0.5;
}

double huber_after_step(const LabelState&, double score, double y, double A, double) {
    return cut((score - y) / (1.0 + A), -1.0, 1.0);
}

Term huber_term(const LabelState&, double score, double y, double a, double) {
    const double size = std::fabs(score - y), left = size - std::fabs(a), rest = 1.0 - std::fabs(a);
    const double value = size <= 1.0 ? 0.5 * (left * left) : (size - 1.0) * rest + 0.5 * (rest * rest);
    return {value, value};
}

NewtonSlope huber_newton(const LabelState& labels, double f, double y, double mean, double) {
    const double curvature = labels.unit / labels.psi * (mean <= 1.0 ? 1.0 : FLAT / mean);
    return {cut(f - y, -1.0, 1.0) / labels.psi, curvature};
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

double poisson_value(double score, double y, double) {
    const double c = log_score(score);
    return std::exp(c) - y * c;
}

double poisson_after_step(const LabelState& labels, double score, double y, double A, double) {
    const double e = std::exp(score);
    return ((e - y) / labels.unit) / (1.0 + A * std::max(e, y) / labels.unit);
}

Term poisson_term(const LabelState& labels, double score, double y, double a, double) {
    const double e = std::exp(score), mean = y + a * labels.unit;
    if (!(mean > 0.0)) return {e / labels.unit, e / labels.unit};
    const double p = std::log(mean);
    return log_link_term(mean, e, score - p, score, p, false, labels.unit);
}

NewtonSlope poisson_newton(const LabelState& labels, double f, double y, double, double) {
    const double e = std::exp(f), U = labels.unit;
    return {(e - y) / U, std::max(e, y) / U};
}

double poisson_least(double y) { return y > 0.0 ? y - y * std::log(y) : 0.0; }

double poisson_linear(double score, double y) { return y * score; }

void gamma_numbers(LabelState& a, double, double, double) {
    a.offset = log_of(a.mean);
    a.unit = 1.0;
    a.low = log_of(a.least);
    a.high = log_of(a.most);
}

double gamma_value(double score, double y, double) {
    const double c = log_score(score);
    return y * std::exp(-c) + c;
}

double gamma_after_step(const LabelState&, double score, double y, double A, double) {
    const double ratio = y * std::exp(-score);
    return (1.0 - ratio) / (1.0 + A * std::max(1.0, ratio));
}

Term gamma_term(const LabelState&, double score, double y, double a, double) {
    const double mean = 1.0 - a, ratio = y * std::exp(-score);
    if (!(mean > 0.0)) return {ratio, ratio};
    const double p = std::log(y / mean);
    return log_link_term(mean, ratio, score - p, score, p, true, 1.0);
}

NewtonSlope gamma_newton(const LabelState&, double f, double y, double, double) {
    const double ratio = y * std::exp(-f);
    return {1.0 - ratio, std::max(1.0, ratio)};
}

double gamma_least(double y) { return 1.0 + std::log(y); }

double gamma_linear(double score, double) { return score; }

// The coin takes the slope of the Newton experts, but for hinge loss, which is smooth for these.
template <NewtonSlope (*newton)(const LabelState&, double, double, double, double)>
double newton_coin(const LabelState& labels, double score, double y, double tau) {
    return newton(labels, score, y, 1.0, tau).slope;
}

constexpr Loss LOSSES[] = {
    {"logistic", Kind::log_odds, false, false, false, 1.0, logistic_value, nullptr, nullptr, nullptr, logistic_newton,
     nullptr, nothing, no_part},
    {"softmax", Kind::classes, false, false, false, 1.0, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
     nullptr},
    {"hinge", Kind::margins, false, false, false, 4.0, hinge_value, no_numbers, hinge_after_step, hinge_term,
     hinge_newton, hinge_coin, nothing, no_part},
    {"squared_hinge", Kind::margins, false, false, false, 1.0, squared_hinge_value, no_numbers,
     squared_hinge_after_step, squared_hinge_term, squared_hinge_newton, newton_coin<squared_hinge_newton>, nothing,
     no_part},
    {"squared", Kind::labels, false, false, false, 1.0, squared_value, squared_numbers, squared_after_step,
     squared_term, squared_newton, newton_coin<squared_newton>, nothing, no_part},
    {"absolute", Kind::labels, true, true, false, 1.0, absolute_value, quantile_numbers, absolute_after_step,
     absolute_term, absolute_newton, newton_coin<absolute_newton>, nothing, no_part},
    {"quantile", Kind::labels, true, true, true, 1.0, quantile_value, quantile_numbers, quantile_after_step,
     quantile_term, quantile_newton, newton_coin<quantile_newton>, nothing, no_part},
    {"huber", Kind::labels, true, false, false, 1.0, huber_value, huber_numbers, huber_after_step, huber_term,
     huber_newton, newton_coin<huber_newton>, nothing, no_part},
    {"poisson", Kind::log_counts, false, false, false, 1.0, poisson_value, poisson_numbers, poisson_after_step,
     poisson_term, poisson_newton, newton_coin<poisson_newton>, poisson_least, poisson_linear},
    {"gamma", Kind::log_amounts, false, false, false, 1.0, gamma_value, gamma_numbers, gamma_after_step, gamma_term,
     gamma_newton, newton_coin<gamma_newton>, gamma_least, gamma_linear},
};

}  // namespace

double chance_of(double v) {
    const double e = std::exp(-std::fabs(v));
    return (v < 0.0 ? e : 1.0) / (1.0 + e);
}

double log_slope(double score, double y) {
    const double v = -y * score;
    if (v >= 0.0) return -y * (1.0 / (1.0 + std::exp(-v)));
    const double e = std::exp(v);
    return -y * (e / (1.0 + e));
}

const Loss& loss_named(const std::string& name) {
    for (const Loss& loss : LOSSES) {
        if (name == loss.name) return loss;
    }
    throw std::invalid_argument("loss is not known: " + name);
}

}  // namespace ftprl::replay
