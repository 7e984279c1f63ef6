// Labels in any unit: docs/labels.md, in the same order.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "replay/replay.hpp"

namespace ftprl::replay {
namespace {

constexpr double LOG_RANGE = 8.0, LARGEST_LOG_SCORE = 60.0;
constexpr double SURE_ROWS = 16.0, FAR_UNITS = 4.0, MOST_OUTLIERS = 9.0;  // of labels that are cut
constexpr double LEAST_UNIT = std::numeric_limits<double>::min();

double usable(double unit) { return unit >= LEAST_UNIT ? unit : 0.0; }
double log_of(double y) { return cut(std::log(y), -LARGEST_LOG_SCORE, LARGEST_LOG_SCORE); }
double margin(double score, double y) { return std::max(1.0 - y * score, 0.0); }

void moments(LabelState& a, double y, double c) {
    const bool first = a.rows == 0.0;
    a.rows += 1.0;
    a.weight += c;
    const double d = y - a.mean;
    a.mean += c / a.weight * d;
    a.squares += c * d * (y - a.mean);
    a.least = first ? y : std::min(a.least, y);
    a.most = first ? y : std::max(a.most, y);
    a.mean = std::min(std::max(a.mean, a.least), a.most);
}

void follow_quantile(const Settings& s, LabelState& a, double y, double c) {
    if (a.rows == 1.0) {
        a.quantile = a.offset = y;
        return;
    }
    const double tau = quantile_of(s);
    a.since += c;
    const double d = y - a.quantile, part = c / a.since;
    a.pinball += part * ((d > 0.0 ? tau : tau - 1.0) * d - a.pinball);
    a.deviation += part * (std::fabs(d) - a.deviation);
    const double side = d > 0.0 ? tau : (d < 0.0 ? tau - 1.0 : 0.0);
    const double step = 2.0 * a.pinball / (tau * (1.0 - tau)) * (c / a.weight) * side;
    a.quantile = a.offset = std::min(std::max(a.quantile + step, a.least), a.most);
}

void learn_numbers(const Settings& s, LabelState& a, double y, double c) {
    moments(a, y, c);
    switch (s.loss) {
        case Name::squared:
            a.offset = a.mean;
            a.unit = a.psi = std::sqrt(std::max(a.squares / a.weight, 0.0));
            break;
        case Name::absolute:
        case Name::quantile:
            follow_quantile(s, a, y, c);
            a.unit = a.kappa = usable(a.deviation);
            break;
        case Name::huber:
            follow_quantile(s, a, y, c);
            a.unit = usable(a.deviation);
            a.psi = std::min(1.0, a.unit);
            a.kappa = std::max(1.0, a.unit);
            break;
        case Name::poisson:
            a.offset = a.mean > 0.0 ? log_of(a.mean) : -std::log(a.rows + 1.0);
            a.unit = usable(a.mean);
            a.low = std::max(a.offset - LOG_RANGE, -LARGEST_LOG_SCORE);
            a.high = a.most > 0.0 ? std::max(a.offset, log_of(a.most)) : a.offset;
            return;
        case Name::gamma:
            a.offset = log_of(a.mean);
            a.unit = 1.0;
            a.low = log_of(a.least);
            a.high = log_of(a.most);
            return;
        default:
            return;
    }
    a.low = a.least;
    a.high = a.most;
}

// The label that is learned. The first of a kind that is far from all before it is cut, the next less and less.
double believed(LabelState& a, double y) {
    if (a.rows < SURE_ROWS || a.unit == 0.0) return y;
    const int power = (1 << static_cast<int>(std::min(a.outliers, MOST_OUTLIERS))) - 1;
    const double far = std::ldexp(std::max(a.most - a.least, FAR_UNITS * a.unit), power);
    const double learned = std::min(std::max(y, a.least - far), a.most + far);
    a.outliers = learned == y ? 0.0 : a.outliers + 1.0;
    return learned;
}

struct Term {
    double value, size;
};

Term log_link_term(double mean, double e, double d, double score, double p, bool falling, double unit) {
    const double size = (mean + e) * (1.0 + std::fabs(d)) * (1.0 + std::fabs(score) + std::fabs(p)) / unit;
    const double value = falling ? mean * (std::expm1(-d) + d) : mean * (std::expm1(d) - d);
    return {std::max(value, 0.0) / unit, size};
}

// loss(s) - loss(p) - a (s - p), where the loss has the slope a at p; and the size it is the difference of.
Term row_term(const Settings& s, const LabelState& state, double score, double y, double a) {
    const double d = score - y, gap = margin(score, y), size = std::fabs(d), rest = 1.0 - std::fabs(a);
    const double tau = quantile_of(s), left = size - std::fabs(a);
    double value = 0.0;
    switch (s.loss) {
        case Name::squared:
            value = 0.5 * ((d - a) * (d - a));
            break;
        case Name::squared_hinge:
            value = 0.5 * ((gap + y * a) * (gap + y * a));
            break;
        case Name::absolute:
            value = size * rest;
            break;
        case Name::quantile:
            value = d > 0.0 ? d * ((1.0 - tau) - a) : -d * (tau + a);
            break;
        case Name::huber:
            value = size <= 1.0 ? 0.5 * (left * left) : (size - 1.0) * rest + 0.5 * (rest * rest);
            break;
        case Name::hinge:
            value = gap * (1.0 + y * a);
            break;
        case Name::poisson: {
            const double e = std::exp(score), mean = y + a * state.unit;
            if (!(mean > 0.0)) return {e / state.unit, e / state.unit};
            const double p = std::log(mean);
            return log_link_term(mean, e, score - p, score, p, false, state.unit);
        }
        default: {
            const double mean = 1.0 - a, ratio = y * std::exp(-score);
            if (!(mean > 0.0)) return {ratio, ratio};
            const double p = std::log(y / mean);
            return log_link_term(mean, ratio, score - p, score, p, true, 1.0);
        }
    }
    return {value, value};
}

double size_of(const Settings& s, double value, double score, double y) {
    const double linear = s.loss == Name::poisson ? y * score : (s.loss == Name::gamma ? score : 0.0);
    return std::fabs(value) + 2.0 * std::fabs(linear);
}

}  // namespace

Name name_of(const std::string& loss) {
    static const char* const NAMES[] = {"logistic", "hinge", "squared_hinge", "squared", "absolute",
                                        "quantile", "huber", "poisson",       "gamma"};
    for (int i = 0; i < 9; ++i) {
        if (loss == NAMES[i]) return static_cast<Name>(i);
    }
    throw std::invalid_argument("loss is not known: " + loss);
}

double log_slope(double score, double y) {
    const double v = -y * score;
    if (v >= 0.0) return -y * (1.0 / (1.0 + std::exp(-v)));
    const double e = std::exp(v);
    return -y * (e / (1.0 + e));
}

double loss_value(const Settings& s, double score, double y) {
    const double d = score - y, c = cut(score, -LARGEST_LOG_SCORE, LARGEST_LOG_SCORE), gap = margin(score, y);
    switch (s.loss) {
        case Name::logistic:
            return std::max(-y * score, 0.0) + std::log1p(std::exp(-std::fabs(-y * score)));
        case Name::hinge:
            return gap;
        case Name::squared_hinge:
            return 0.5 * (gap * gap);
        case Name::squared:
            return 0.5 * (d * d);
        case Name::absolute:
            return std::fabs(d);
        case Name::quantile:
            return s.tau * std::max(y - score, 0.0) + (1.0 - s.tau) * std::max(score - y, 0.0);
        case Name::huber:
            return std::fabs(d) <= 1.0 ? 0.5 * (d * d) : std::fabs(d) - 0.5;
        case Name::poisson:
            return std::exp(c) - y * c;
        default:
            return y * std::exp(-c) + c;
    }
}

LabelledRow learn_label(const Settings& s, LabelState& state, double y, double weight) {
    const LabelState before = state;
    const double learned = predicts_labels(s.loss) ? believed(state, y) : y;
    learn_numbers(s, state, learned, weight);
    const bool first = before.rows == 0.0 && has_offset(s.loss);
    const double low = std::min(first ? state.low : before.low, state.low);
    const double high = std::max(first ? state.high : before.high, state.high);
    const double least_kappa = s.wide ? LEAST_UNIT : static_cast<double>(std::numeric_limits<float>::min());
    return {learned, before.offset, before.unit, low, high, !first && state.unit != 0.0 && state.kappa >= least_kappa};
}

void begin_anew(LabelState& a, double y, double c) {
    a.squares *= c / a.weight;
    a.weight = c;
    a.since = std::min(a.since, c);
    a.mean = a.least = a.most = a.quantile = a.offset = a.low = a.high = y;
}

double start_of(const Settings& s, const LabelledRow& row, double score) {
    const double own = cut(score, row.low, row.high), beyond = std::fabs(score - own) - (row.high - row.low);
    if (!predicts_labels(s.loss) || !(beyond > 0.0)) return own;
    return score < own ? own - beyond : own + beyond;
}

double implicit_slope(const Settings& s, const LabelState& state, double score, double y, double A) {
    const double d = score - y, gap = margin(score, y), tau = quantile_of(s);
    switch (s.loss) {
        case Name::squared:
            return d / (1.0 + A);
        case Name::squared_hinge:
            return -y * gap / (1.0 + A);
        case Name::absolute:
            return A > 0.0 ? cut(d / A, -1.0, 1.0) : static_cast<double>((score > y) - (score < y));
        case Name::quantile:
            if (A > 0.0) return cut(d / A, -tau, 1.0 - tau);
            return score == y ? 0.0 : (score > y ? 1.0 - tau : -tau);
        case Name::huber:
            return cut(d / (1.0 + A), -1.0, 1.0);
        case Name::hinge:
            return gap > 0.0 ? -y * (A > 0.0 ? std::min(2.0 * gap / A, 1.0) : 1.0) : 0.0;
        case Name::poisson: {
            const double e = std::exp(score);
            return ((e - y) / state.unit) / (1.0 + A * std::max(e, y) / state.unit);
        }
        default: {
            const double ratio = y * std::exp(-score);
            return (1.0 - ratio) / (1.0 + A * std::max(1.0, ratio));
        }
    }
}

void add_row_sums(const Settings& s, const LabelState& state, const LabelledRow& row, double y, double weight,
                  double score, double slope, double prediction, double prediction_loss, double* sums, int stride) {
    const bool counts = s.loss == Name::poisson;
    if (counts && state.unit == 0.0) return;
    const double over = counts ? 1.0 / state.unit : 1.0, own = cut(score, row.low, row.high);
    const Term term = row_term(s, state, own, y, slope);
    const double beyond = slope * (own - score), value = loss_value(s, own, y);
    const double label = has_log_link(s.loss) ? 0.0 : std::fabs(y);
    const double losses = size_of(s, value, own, y) + size_of(s, prediction_loss, prediction, y);
    const double spread = std::fabs(slope) * (std::fabs(own) + std::fabs(score) + std::fabs(row.offset) + label);
    sums[0] += weight * (term.value + (start_of(s, row, score) != own ? beyond : std::max(beyond, 0.0)));
    sums[stride] += weight * (value * over);
    sums[2 * stride] += weight * (prediction_loss * over);
    sums[3 * stride] += weight * over;
    sums[4 * stride] += weight * (term.size + spread + losses * over);
}

}  // namespace ftprl::replay
