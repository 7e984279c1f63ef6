#include "learn/labels.hpp"

#include <cfloat>
#include <cmath>
#include <limits>

#include "learn/kernel.hpp"

namespace ftprl {
namespace {

constexpr double LOG_RANGE = 8.0;   // scores of counts reach this far below the offset
constexpr double SURE_ROWS = 16.0;  // labels before one is cut
constexpr double FAR_UNITS = 4.0;   // a label this many units beyond the range is learned as it is
constexpr double MOST_OUTLIERS = 9.0;

double above(double v, double floor) { return floor > v ? floor : v; }
double below(double v, double ceiling) { return ceiling < v ? ceiling : v; }

void learn_moments(LabelState& s, double y, double c) {
    const bool first = s.rows == 0.0;
    s.rows += 1.0;
    s.weight += c;
    const double d = y - s.mean;
    s.mean += (c / s.weight) * d;
    s.squares += c * d * (y - s.mean);
    s.least = first ? y : below(s.least, y);
    s.most = first ? y : above(s.most, y);
    s.mean = below(above(s.mean, s.least), s.most);  // rounding may leave it outside, even at 0 for labels above 0
}

// A unit that can be divided by: nothing can be learned in smaller ones.
double usable_unit(double unit) { return unit >= DBL_MIN ? unit : 0.0; }

// The logarithm of a label within the scores that losses with a log link take.
double log_of_label(double y) { return below(above(log(y), -LARGEST_LOG_SCORE), LARGEST_LOG_SCORE); }

// The running quantile of the baseline, and the mean distance from it.
void learn_quantile(LabelState& s, double tau, double y, double c) {
    if (s.rows == 1.0) {
        s.quantile = y;
        return;
    }
    s.since += c;
    const double d = y - s.quantile, part = c / s.since;
    s.pinball += part * ((d > 0.0 ? tau : tau - 1.0) * d - s.pinball);
    s.deviation += part * (fabs(d) - s.deviation);
    const double side = d > 0.0 ? tau : (d < 0.0 ? tau - 1.0 : 0.0);
    const double step = (2.0 * s.pinball / (tau * (1.0 - tau))) * (c / s.weight) * side;
    s.quantile = below(above(s.quantile + step, s.least), s.most);
}

// The label that is learned: one far beyond the range of all before it is cut, since it may be the only one of its
// kind. The range grows at least to its double with each of several in a row, and faster with every one: labels in a
// larger unit are learned as they are after a few rows.
double believed_label(LabelState& s, double y) {
    if (s.rows < SURE_ROWS || s.unit == 0.0) return y;
    const double wide = above(s.most - s.least, FAR_UNITS * s.unit);
    const int before = static_cast<int>(below(s.outliers, MOST_OUTLIERS));
    const double far = before == 0 ? wide : ldexp(wide, (1 << before) - 1);
    const double learned = below(above(y, s.least - far), s.most + far);
    s.outliers = learned != y ? s.outliers + 1.0 : 0.0;
    return learned;
}

void follow_counts(LabelState& s) {
    s.offset = s.mean > 0.0 ? log_of_label(s.mean) : -log(s.rows + 1.0);
    s.unit = usable_unit(s.mean);
    s.lowest = above(s.offset - LOG_RANGE, -LARGEST_LOG_SCORE);
    s.highest = s.most > 0.0 ? above(s.offset, log_of_label(s.most)) : s.offset;
}

// Learn a label of weight c. The unit stays 0 while all labels are equal: nothing but the labels can be learned then.
void learn_label(LabelState& s, const Loss& loss, double tau, double y, double c) {
    learn_moments(s, y, c);
    switch (loss.rule) {
        case LabelRule::none:
        case LabelRule::classes:
            return;
        case LabelRule::mean:
            s.offset = s.mean;
            s.unit = s.psi = sqrt(above(s.squares / s.weight, 0.0));
            break;
        case LabelRule::quantile:
            learn_quantile(s, tau, y, c);
            s.offset = s.quantile;
            s.unit = s.kappa = usable_unit(s.deviation);
            break;
        case LabelRule::median_of_unit:
            learn_quantile(s, 0.5, y, c);
            s.offset = s.quantile;
            s.unit = usable_unit(s.deviation);
            s.psi = below(1.0, s.unit);
            s.kappa = above(1.0, s.unit);
            break;
        case LabelRule::log_mean:
            return follow_counts(s);
        case LabelRule::log_ratio:
            s.offset = log_of_label(s.mean);
            s.unit = 1.0;
            s.lowest = log_of_label(s.least);
            s.highest = log_of_label(s.most);
            return;
    }
    s.lowest = s.least;
    s.highest = s.most;
}

// The log odds of the labels so far, as if there had been half a row of each class before them (Krichevsky and
// Trofimov 1981), of the largest weight that a row has had.
double label_odds(const Constants& c, const LabelRates& rates) {
    const double half = 0.5 * rates.largest;
    return c.intercept ? log((rates.positive + half) / (rates.negative + half)) : 0.0;
}

bool has_classes(const Loss& loss) { return loss.rule == LabelRule::classes; }

// What the labels so far predict alone: their offset, or the class that most of them have.
double prediction_of_labels(const Loss& loss, const LabelState& labels) {
    if (!has_classes(loss)) return labels.offset;
    return labels.mean > 0.0 ? 1.0 : (labels.mean < 0.0 ? -1.0 : 0.0);
}

// The unit of scores: that of the labels, but for scores that have none.
double score_unit(const Loss& loss, const LabelState& labels) {
    return has_classes(loss) || loss.has_log_link() ? 1.0 : labels.unit;
}

void learn_row_label(const Constants& c, LabelState& labels, RowFacts& f) {
    const Loss& loss = *c.loss;
    const double rows = labels.rows, lowest = labels.lowest, highest = labels.highest;
    f.learned = loss.predicts_labels() ? believed_label(labels, f.y) : f.y;
    learn_label(labels, loss, c.tau, f.learned, f.weight);
    const bool first = rows == 0.0 && !has_classes(loss);
    f.teaches = !first && labels.unit != 0.0 && labels.kappa >= c.least_kappa;
    f.hull_low = labels.lowest;
    f.hull_high = labels.highest;
    if (!first && lowest < f.hull_low) f.hull_low = lowest;
    if (!first && highest > f.hull_high) f.hull_high = highest;
    f.unit_after = score_unit(loss, labels);
    f.label_unit = labels.unit;
    f.psi = labels.psi;
    f.kappa = labels.kappa;
}

void learn_rates(LabelRates& rates, const RowFacts& f) {
    (f.y > 0.0 ? rates.positive : rates.negative) += f.weight;
    rates.largest = above(rates.largest, f.weight);
}

}  // namespace

LabelState no_labels(const Loss& loss) {
    LabelState state = {};
    state.psi = state.kappa = 1.0;
    if (loss.rule == LabelRule::classes) {
        state.unit = 1.0;
        state.lowest = -1.0;
        state.highest = 1.0;
    }
    return state;
}

RowFacts facts_of_labels(const Constants& c, const LabelState& labels, const LabelRates& rates) {
    RowFacts f = {};
    f.unit = f.unit_after = f.label_unit = f.psi = f.kappa = 1.0;
    f.high = std::numeric_limits<double>::infinity();
    f.low = -f.high;
    if (c.loss->rule == LabelRule::none) {
        f.alone = c.count > 1 && c.loss->labels == Labels::signs ? label_odds(c, rates) : 0.0;
        return f;
    }
    f.offset = labels.offset;
    f.unit = score_unit(*c.loss, labels);
    f.low = labels.lowest;
    f.high = labels.highest;
    f.alone = prediction_of_labels(*c.loss, labels);
    f.label_unit = labels.unit;
    return f;
}

void learn_labels(const Constants& c, const Rows& rows, std::int64_t from, std::int64_t to, bool learns,
                  LabelState& labels, LabelRates& rates, RowFacts* facts) {
    RowFacts plain = facts_of_labels(c, labels, rates);
    const bool labelled = c.loss->rule != LabelRule::none, counts = c.loss->labels == Labels::signs && !labelled;
    for (std::int64_t r = from; r < to; ++r) {
        RowFacts& f = facts[r - from] = plain;
        f.y = f.learned = rows.y[r];
        f.weight = rows.weight[r];
        f.learns = f.teaches = learns && f.y == f.y && f.weight > 0.0;
        if (!f.learns) continue;
        if (labelled) learn_row_label(c, labels, f);
        if (counts) learn_rates(rates, f);
        if (labelled) plain = facts_of_labels(c, labels, rates);
        if (counts && c.count > 1) plain.alone = label_odds(c, rates);
    }
}

}  // namespace ftprl
