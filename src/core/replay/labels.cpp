#include <algorithm>
#include <cmath>
#include <limits>

#include "replay/labels.hpp"

namespace ftprl::replay {
namespace {

constexpr double SURE_ROWS = 16.0, FAR_UNITS = 4.0, MOST_OUTLIERS = 9.0;  // of labels that are cut

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

// The label that is learned. The first of a kind that is far from all before it is cut, the next less and less.
double believed(LabelState& a, double y) {
    if (a.rows < SURE_ROWS || a.unit == 0.0) return y;
    const int power = (1 << static_cast<int>(std::min(a.outliers, MOST_OUTLIERS))) - 1;
    const double far = std::ldexp(std::max(a.most - a.least, FAR_UNITS * a.unit), power);
    const double learned = std::min(std::max(y, a.least - far), a.most + far);
    a.outliers = learned == y ? 0.0 : a.outliers + 1.0;
    return learned;
}

double size_of(const Settings& s, double value, double score, double y) {
    return std::fabs(value) + 2.0 * std::fabs(s.loss->linear_part(score, y));
}

}  // namespace

double LabelOdds::base_rate() const {
    const double half = 0.5 * largest;
    return std::log((positive + half) / (negative + half));
}

void LabelOdds::learn(double y, double weight) {
    (y > 0.0 ? positive : negative) += weight;
    largest = std::max(largest, weight);
}

LabelledRow learn_label(const Settings& s, LabelState& state, double y, double weight) {
    const LabelState before = state;
    const double learned = s.loss->predicts_labels() ? believed(state, y) : y;
    moments(state, learned, weight);
    s.loss->learn_numbers(state, learned, weight, s.quantile());
    const bool first = before.rows == 0.0 && s.loss->has_offset();
    const double low = std::min(first ? state.low : before.low, state.low);
    const double high = std::max(first ? state.high : before.high, state.high);
    const double least_kappa = s.wide ? LEAST_UNIT : static_cast<double>(std::numeric_limits<float>::min());
    return {learned, before.offset, before.unit, low, high, !first && state.unit != 0.0 && state.kappa >= least_kappa};
}

double known_label(const Settings& s, const LabelState& labels, double y) {
    if (!s.loss->has_offset()) return y;
    if (s.loss->divides_rows()) return std::min(y, std::exp(labels.high));
    const bool logs = s.loss->has_log_link();
    const double low = logs ? std::exp(labels.low) : labels.low, high = logs ? std::exp(labels.high) : labels.high;
    return std::min(std::max(y, low), high);
}

double start_of(const Settings& s, const LabelledRow& row, double score) {
    const double own = cut(score, row.low, row.high), beyond = std::fabs(score - own) - (row.high - row.low);
    if (!s.loss->predicts_labels() || !(beyond > 0.0)) return own;
    return score < own ? own - beyond : own + beyond;
}

void add_row_sums(const Settings& s, const LabelState& state, const LabelledRow& row, double y, double weight,
                  double score, double slope, double prediction, double prediction_loss, double* sums, int stride) {
    const bool counts = s.loss->divides_rows();
    if (counts && state.unit == 0.0) return;
    const double over = counts ? 1.0 / state.unit : 1.0, own = cut(score, row.low, row.high);
    const Term term = s.loss->row_term(state, own, y, slope, s.quantile());
    const double beyond = slope * (own - score), value = s.loss->value(own, y, s.quantile());
    const double label = s.loss->has_log_link() ? 0.0 : std::fabs(y);
    const double losses = size_of(s, value, own, y) + size_of(s, prediction_loss, prediction, y);
    const double spread = std::fabs(slope) * (std::fabs(own) + std::fabs(score) + std::fabs(row.offset) + label);
    sums[0] += weight * (term.value + (start_of(s, row, score) != own ? beyond : std::max(beyond, 0.0)));
    sums[stride] += weight * (value * over);
    sums[2 * stride] += weight * (prediction_loss * over);
    sums[3 * stride] += weight * over;
    sums[4 * stride] += weight * (term.size + spread + losses * over);
}

}  // namespace ftprl::replay
