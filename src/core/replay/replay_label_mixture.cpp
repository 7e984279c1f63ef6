// The mixture of several scales for every loss but the log loss: docs/labels.md, in the same order.
#include <algorithm>
#include <cmath>

#include "replay/replay.hpp"

namespace ftprl::replay {
namespace {

constexpr double LEAST_WEIGHT = 0x1p-1000;  // the majority may have all the weight but that of the mixture
constexpr double LEAST_GAP = 0x1p-30;       // part of the loss so far below which a gap is rounding
constexpr std::int64_t FIRST_REVIEW = 16, LAST_REVIEW = 256;  // rows, and their doublings between
constexpr double STRETCH_PART = 0x1p-4, LEAST_STRETCH = 4.0, TOO_LONG = 4.0;
constexpr double CAUTION = 24.0, SURE_GAP = 4.0, LARGEST_POWER = 32.0;  // of the lead over the majority
enum Hedge {
    GAP,
    LARGEST_GAP,
    RECENT_LOSS,
    STACK_LOSS,
    STACK_WEIGHT,
    STRETCH_LOSS,
    STRETCH_ROWS,
    LONGEST,
    LEAD,
    LEAD_GAP,
    HEDGES
};
static_assert(HEDGES == HEDGE_NUMBERS);

struct Opinions {
    double prediction, stack;  // of the mixture, of the stack
    double experts[MOST + 3], seen[MOST], bet;
    int count;
};

double unit_of(const Settings& s, double unit) { return s.loss->predicts_labels() ? unit : 1.0; }

Opinions opinions(const Settings& s, const MixtureState& m, const LabelState& labels, const double* scores,
                  const RowExperts& x) {
    Opinions o{};
    const int K = s.count();
    const bool offset = s.loss->has_offset();
    const double* u = x.columns.started() ? x.columns.u : m.u;
    double sum = 0.0;
    for (int k = 0; k < K; ++k) {
        o.experts[k] = cut(scores[k], labels.low, labels.high);
        o.seen[k] = offset ? o.experts[k] : cut(scores[k], -STACK_CUT, STACK_CUT);
        sum += u[k] * (o.seen[k] - labels.offset);
    }
    o.stack = labels.offset + sum;
    if (x.columns.started()) o.stack = o.stack + unit_of(s, labels.unit) * columns_score(x.columns, x.inputs);
    o.count = K;
    if (s.stacked) {
        o.experts[o.count++] = cut(s.loss->stack_gain * o.stack, labels.low, labels.high);
    }
    o.experts[o.count++] =
        offset ? labels.offset : static_cast<double>(labels.mean > 0.0) - static_cast<double>(labels.mean < 0.0);
    if (s.coin) {
        o.bet = labels.offset + unit_of(s, labels.unit) * x.bet;
        o.experts[o.count++] = cut(o.bet, labels.low, labels.high);
    }
    for (int j = 0; j < o.count; ++j) o.prediction += m.w[j] * o.experts[j];
    return o;
}

// A label within the range that was known before it.
double known_label(const Settings& s, const LabelState& labels, double y) {
    if (!s.loss->has_offset()) return y;
    if (s.loss->divides_rows()) return std::min(y, std::exp(labels.high));
    const bool logs = s.loss->has_log_link();
    const double low = logs ? std::exp(labels.low) : labels.low, high = logs ? std::exp(labels.high) : labels.high;
    return std::min(std::max(y, low), high);
}

int label_expert(const Settings& s) { return s.count() + (s.stacked ? 1 : 0); }

// AdaHedge: the weights after a row, and the rate, which falls as the mixture loses more than its best expert.
void charge(const Settings& s, const MixtureState& m, const LabelState& labels, const Opinions& o, double mean,
            double* own, double y, double weight, double t) {
    const int n = o.count;
    const double label = known_label(s, labels, y), ln = std::log(static_cast<double>(n));
    double losses[MOST + 3] = {}, powers[MOST + 3] = {}, w[MOST + 3] = {}, whole = 0.0;
    for (int j = 0; j < n; ++j) losses[j] = weight * loss_value(s, o.experts[j], label);
    const double mixture_loss = weight * loss_value(s, mean, label), low = *std::min_element(losses, losses + n);
    const double D = m.hedge[LARGEST_GAP];
    m.hedge[RECENT_LOSS] += weight * std::fabs(loss_value(s, mean, y));
    if (s.loss->predicts_labels()) m.hedge[STRETCH_LOSS] += losses[label_expert(s)];
    if (D == 0.0) {
        if (mixture_loss - low > LEAST_GAP * m.hedge[RECENT_LOSS])
            m.hedge[GAP] = m.hedge[LARGEST_GAP] = mixture_loss - low;
        return;
    }
    for (int j = 0; j < n; ++j) {
        powers[j] = (low - losses[j]) / D * ln;
        w[j] = own[j] * std::exp(powers[j]);
        whole += w[j];
    }
    const double gap = std::max(m.hedge[GAP] + (mixture_loss - (low - std::log(whole) * D / ln)), 0.0);
    m.hedge[GAP] = gap;
    if (gap > D) {  // from the weights before the row: at the rate that turned out too large, those after may be 0
        const double ratio = D / gap;
        whole = 0.0;
        for (int j = 0; j < n; ++j) {
            w[j] = std::pow(own[j], ratio) * std::exp(ratio * powers[j]);
            whole += w[j];
        }
        m.hedge[LARGEST_GAP] = gap;
    }
    const double a = share_after(t);
    for (int j = 0; j < n; ++j) own[j] = (1.0 - a) * (w[j] / whole) + a / n;
}

double lead_rate(const MixtureState& m) { return 1.0 / std::max(1.0, m.hedge[LEAD_GAP] / SURE_GAP); }
double trusted_part(const MixtureState& m) { return 1.0 / (1.0 + CAUTION * std::exp(-lead_rate(m) * m.hedge[LEAD])); }

// Two classes: the majority is predicted as well as the mixture, which counts by its lead.
void charge_classes(const Settings& s, const MixtureState& m, const LabelState& labels, const Opinions& o, double y,
                    double weight, double t) {
    const int n = o.count, at = label_expert(s);
    const double part = trusted_part(m);
    double own[MOST + 3], whole = 0.0, mean = 0.0;
    for (int j = 0; j < n; ++j) {
        own[j] = std::max(j == at ? m.w[j] - (1.0 - part) : m.w[j], LEAST_WEIGHT);
        whole += own[j];
    }
    for (int j = 0; j < n; ++j) {
        own[j] /= whole;
        mean += own[j] * o.experts[j];
    }
    charge(s, m, labels, o, mean, own, y, weight, t);
    const double advantage = weight * (loss_value(s, o.experts[at], y) - loss_value(s, mean, y));
    const double rate = lead_rate(m), power = cut(rate * advantage, -LARGEST_POWER, LARGEST_POWER);
    const double gap = (std::log((1.0 - part) + part * std::exp(power)) - part * power) / rate;
    m.hedge[LEAD_GAP] += std::max(gap, 0.0);
    m.hedge[LEAD] = std::max(m.hedge[LEAD] + advantage, 0.0);
    const double now = trusted_part(m);
    for (int j = 0; j < n; ++j) m.w[j] = now * own[j];
    m.w[at] += 1.0 - now;
}

void forget_past(const MixtureState& m, LabelState& labels, double y, double weight) {
    m.hedge[GAP] = m.hedge[LARGEST_GAP] = m.hedge[RECENT_LOSS] = 0.0;
    begin_anew(labels, y, weight);
}

// Multiples of 16, from row 2048 on of the 64th part of the last power of two.
bool is_review(std::int64_t number) {
    std::int64_t octave = 1;
    while (2 * octave <= number) octave *= 2;
    return number >= FIRST_REVIEW && number % std::max(FIRST_REVIEW, octave / 64) == 0;
}

// Whether D comes from labels long past: then rate and place are learned anew.
void review_past(const MixtureState& m, LabelState& labels, double y, double weight, std::int64_t number) {
    const double D = m.hedge[LARGEST_GAP], rows = m.hedge[STRETCH_ROWS] + 1.0, longest = m.hedge[LONGEST];
    const bool full = D > 0.0 && m.hedge[STRETCH_LOSS] >= STRETCH_PART * D;
    const bool stale = D > 0.0 && !full && rows >= TOO_LONG * std::max(longest, LEAST_STRETCH) && is_review(number);
    if (full || stale) m.hedge[LONGEST] = std::max(longest, rows);
    if (stale) forget_past(m, labels, y, weight);
    const bool ends = full || stale || D == 0.0;
    m.hedge[STRETCH_ROWS] = ends ? 0.0 : rows;
    if (ends) m.hedge[STRETCH_LOSS] = 0.0;
    if (number < FIRST_REVIEW || !is_power_of_two(number)) return;
    if (number <= LAST_REVIEW && m.hedge[LARGEST_GAP] > m.hedge[RECENT_LOSS]) forget_past(m, labels, y, weight);
    m.hedge[RECENT_LOSS] = 0.0;
}

void learn_stack(const Settings& s, const MixtureState& m, const LabelState& labels, const Opinions& o,
                 const RowExperts& x, const LabelledRow& row, double y, double row_weight) {
    const int K = s.count();
    const double weight = std::min(row_weight, HEAVIEST), unit = unit_of(s, labels.unit);
    const double ratio = unit_of(s, row.unit) / unit;
    double v[STACK_INPUTS], f = o.stack;
    for (int k = 0; k < K; ++k) v[k] = (o.seen[k] - row.offset) / unit;
    if (s.loss->has_log_link()) f = cut(f, row.low, row.high);
    if (s.loss->kinked) {
        m.hedge[STACK_WEIGHT] += weight;
        const double value = loss_value(s, cut(f, row.low, row.high), y);
        m.hedge[STACK_LOSS] += weight / m.hedge[STACK_WEIGHT] * (value - m.hedge[STACK_LOSS]);
    }
    const StackSlope own = s.loss->stack(labels, f, y, m.hedge[STACK_LOSS], s.quantile());
    stack_step(m, x, v, K, ratio, own.slope, weight * own.curvature, weight);
}

}  // namespace

double predict_label(const Settings& s, const MixtureState& m, const LabelState& labels, const double* scores,
                     const RowExperts& x) {
    return opinions(s, m, labels, scores, x).prediction;
}

LabelledRow learn_label_mixture(const Settings& s, const MixtureState& m, LabelState& labels, const double* scores,
                                RowExperts& x, double y, double weight, double t, double& prediction) {
    const Opinions o = opinions(s, m, labels, scores, x);
    double losses[MOST + 3];
    for (int j = 0; j < o.count; ++j) {
        losses[j] = loss_value(s, o.experts[j], y);
        m.totals[j] += weight * losses[j];
    }
    if (t > 1.0 && s.loss->has_offset()) charge(s, m, labels, o, o.prediction, m.w, y, weight, t);
    if (t > 1.0 && !s.loss->has_offset()) charge_classes(s, m, labels, o, y, weight, t);
    const auto number = static_cast<std::int64_t>(t);
    const double least = s.loss->least(y);
    for (int k = 0; k < s.count(); ++k) losses[k] -= least;
    add_block(m, losses, weight, s.count(), number);
    const LabelledRow row = learn_label(s, labels, y, weight);
    if (s.loss->predicts_labels() && t > 1.0) review_past(m, labels, row.learned, weight, number);
    if (row.teaches && s.stacked) learn_stack(s, m, labels, o, x, row, row.learned, weight);
    if (s.coin) {  // the slope at its score, in units of the labels
        const double bet = cut(o.bet, row.low, row.high);
        x.slope = row.teaches ? weight * s.loss->coin_slope(labels, bet, row.learned, s.quantile()) : 0.0;
    }
    prediction = o.prediction;
    return row;
}

}  // namespace ftprl::replay
