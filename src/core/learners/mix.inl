// From the scores of the K scales of a row to one prediction, and from its label to their slopes and new weights:
// docs/scales.md, in the same order. Included inside a namespace; no standard library templates. Every sum starts at 0
// and runs upwards over its index.

constexpr double STACK_CUT = 8.0;           // the stack sees scores cut to this
constexpr double LEAST_CURVE = 0x1p-13;     // and takes no row for flatter
constexpr double STACK_WEIGHT = 0x1p10;     // nor for heavier, or P would lose its last digits
constexpr double LEAST_CHANCE = 0x1p-900;   // a mixture that gave the label less works with logarithms
constexpr double LEAST_WEIGHT = 0x1p-1000;  // without a share an expert whose weight is 0 could never come back
constexpr double LARGEST_SHARE = 0x1p-10;

inline double most(double a, double b) { return b > a ? b : a; }
inline double least(double a, double b) { return b < a ? b : a; }
inline double within(double v, double bound) { return least(most(v, -bound), bound); }

#include "learners/experts_dense.inl"

// log(1 + e) for e from 0 to 1, four at a time: 2 atanh(s) with s = e / (2 + e), by a polynomial in s^2 through the
// Chebyshev points. Within 3 units in the last place, and several times as fast as the library's one by one.
constexpr double ATANH[] = {0x1.5555555555555p-1, 0x1.9999999999944p-2, 0x1.2492492499d46p-2, 0x1.c71c71bedea97p-3,
                            0x1.745d19937b1fcp-3, 0x1.3b13515f6f9efp-3, 0x1.111abdc8abe16p-3, 0x1.e0a2d581ab68fp-4,
                            0x1.bc37f0140c19ep-4, 0x1.32e0d25c9c761p-4, 0x1.401d3e65cdc48p-3};

inline void tails(const double* e, double* to, int n) {
    for (int j = 0; j < n; j += 4) {
        const D v = load(e + j), s = v / (all(2.0) + v), w = s * s;
        D q = all(ATANH[10]);
        for (int i = 9; i >= 0; --i) q = q * w + all(ATANH[i]);
        store(to + j, s * (all(2.0) + w * q));
    }
}

// The scales, the stack, with other losses than the log loss what the labels alone predict, and the coin.
inline int experts(const ScaleConstants& c) {
    const int offset = c.base.loss->rule != LabelRule::none ? 1 : 0;
    return c.count + (c.stack ? 1 : 0) + offset + (c.coin ? 1 : 0);
}

// The score that the mixture predicts for a row before its label is known, and its loss.
struct MixedPrediction {
    double score;
    double loss;
};

inline double smallest(const double* v, int n) {
    double low = v[0];
    for (int j = 1; j < n; ++j) low = least(low, v[j]);
    return low;
}

inline void divide_by_sum(double* w, int n) {
    double total = 0.0;
    for (int j = 0; j < n; ++j) total += w[j];
    for (int j = 0; j < n; ++j) w[j] /= total;
}

// By how much a unit of weighted loss counts is 1 over this.
inline double heat_of(const Mixture& m) { return m.facts[LARGEST_WEIGHT]; }

// -ln sum_j w_j e^-l_j.
inline double mixed(const ScaleConstants& c, const Mixture& m, const double* l) {
    const int n = experts(c);
    double total = 0.0;
    const double low = smallest(l, n);
    for (int j = 0; j < n; ++j) total += m.w[j] * exp(low - l[j]);
    return low - log(total);
}

inline double stack_score(const double* u, const double* scores, int count) {
    double f = 0.0;
    for (int k = 0; k < count; ++k) f += u[k] * within(scores[k], STACK_CUT);
    return f;
}

// The scores of all experts with the log loss.
inline void expert_scores(const ScaleConstants& c, const Mixture& m, const double* scores, double* s) {
    for (int k = 0; k < c.count; ++k) s[k] = scores[k];
    if (has_columns(c, m.dense)) {
        s[c.count] = stack_score(m.dense->u, scores, c.count) + columns_score(*m.dense, scores + DENSE_AT);
    } else if (c.stack) {
        s[c.count] = stack_score(m.u, scores, c.count);
    }
    if (c.coin) s[c.count + (c.stack ? 1 : 0)] = scores[c.count];
}

// The mixture's score with the log loss, and its loss where there is a label.
MixedPrediction predict_mixture(const ScaleConstants& c, const Mixture& m, const double* scores, double y) {
    MixedPrediction prediction = {0.0, y};
    double s[MOST_EXPERTS] = {}, plus[MOST_EXPERTS] = {}, minus[MOST_EXPERTS] = {};
    const int n = experts(c);
    expert_scores(c, m, scores, s);
    for (int j = 0; j < n; ++j) plus[j] = exp(-fabs(s[j]));
    tails(plus, minus, n);
    for (int j = 0; j < n; ++j) {
        plus[j] = most(-s[j], 0.0) + minus[j];
        minus[j] += most(s[j], 0.0);
    }
    const double yes = mixed(c, m, plus), no = mixed(c, m, minus);
    prediction.score = no - yes;
    if (y == y) prediction.loss = y > 0.0 ? yes : no;
    return prediction;
}

// The weights when the rate falls to `ratio` times what it was.
inline void cool(Mixture& m, int n, double ratio) {
    for (int j = 0; j < n; ++j) m.w[j] = pow(m.w[j], ratio);
    divide_by_sum(m.w, n);
}

// A new largest weight: no row may count more than 1.
inline void admit(const ScaleConstants& c, Mixture& m, double weight) {
    const double W = m.facts[LARGEST_WEIGHT];
    if (!(weight > W)) return;
    m.facts[LARGEST_WEIGHT] = weight;
    cool(m, experts(c), W / weight);
}

// The part of the weights that is shared out after row t.
inline double share_of(double t) { return least(LARGEST_SHARE, 1.0 / (t + 1.0)); }

// The weights after a row in which expert j lost l_j; `power`_j is e^-l_j, or null. t counts this row.
inline void share_out(const ScaleConstants& c, Mixture& m, const double* l, double weight, double t,
                      const double* power) {
    const int n = experts(c);
    const double low = smallest(l, n), rate = weight / heat_of(m);
    double total = 0.0;
    for (int j = 0; j < n; ++j) {
        m.w[j] *= power != nullptr && rate == 1.0 ? power[j] : exp(rate * (low - l[j]));
        total += m.w[j];
    }
    const double a = share_of(t);
    for (int j = 0; j < n; ++j) m.w[j] = (1.0 - a) * (m.w[j] / total) + a / n;
}

// A Newton step of the stack: its inputs v, the slope and the curvature (times the weight) of its loss. Lanes not used
// are zero and stay so.
inline void newton(Mixture& m, const double* v, int columns, double slope, double b, double weight) {
    alignas(32) double Pv[4 * SIDE_BY_SIDE];
    static_assert(4 * SIDE_BY_SIDE >= MOST_COLUMNS, "the stack fits into the lanes worked on side by side");
    in_lanes((columns + 3) / 4, MatrixTimesVector{&m.P[0][0], MOST_COLUMNS, v, columns, Pv});
    double q = 0.0;
    for (int k = 0; k < columns; ++k) q += v[k] * Pv[k];
    const double d = 1.0 + b * most(q, 0.0);
    move_stack(m.u, &m.P[0][0], MOST_COLUMNS, Pv, columns, weight * slope / d, b / d);
}

// The stack's step with the log loss, at f; e is e^-|f|.
inline void newton_log_loss(const ScaleConstants& c, Mixture& m, const double* scores, double f, double e, double slope,
                            double row_weight) {
    const double weight = least(row_weight, STACK_WEIGHT);
    alignas(32) double v[DENSE_INPUTS];
    for (int k = 0; k < c.count; ++k) v[k] = within(scores[k], STACK_CUT);
    const double p = (f >= 0.0 ? 1.0 : e) / (1.0 + e), curve = weight * most(p * (1.0 - p), LEAST_CURVE);
    if (!has_columns(c, m.dense)) return newton(m, v, c.count, slope, curve, weight);
    for (int k = 0; k <= m.dense->active; ++k) v[c.count + k] = scores[DENSE_AT + k];
    dense_newton(*m.dense, v, slope, curve, weight);
}

// The stack's step where the label was late, at the scores of now.
inline void newton_now(const ScaleConstants& c, Mixture& m, const double* scores, double y, double weight) {
    double s[MOST_EXPERTS], e = 0.0;
    expert_scores(c, m, scores, s);
    const double slope = c.base.loss->at(s[c.count], y, c.base.tau, e).slope;
    newton_log_loss(c, m, scores, s[c.count], e, slope, weight);
}

// The log loss of n experts at once, by the operations of Loss::at for each: scores s and tails e, filled up with zeros
// to a multiple of four; values without the tail, slopes, and the probability of the label.
inline void log_losses(const double* s, const double* e, int n, double y, double* value, double* slope,
                       double* probability) {
    const D minus_y = all(-y), half = all(0.5), one = all(1.0);
    for (int j = 0; j < n; j += 4) {
        const D v = minus_y * load(s + j), tail = load(e + j), whole = one + tail;
        store(value + j, half * v + half * size(v));
        store(slope + j, minus_y * (larger(tail, half + signed_as(half, v)) / whole));
        store(probability + j, larger(tail, one - where_positive(v, one)) / whole);  // the tail is at most 1
    }
}

inline MixedPrediction learn_log_loss(const ScaleConstants& c, Mixture& m, const double* scores, const double* judged,
                                      double y, double weight, double t, bool asked, double* l, double* slopes) {
    const int n = experts(c);
    alignas(32) double e[MOST_EXPERTS] = {}, s[MOST_EXPERTS] = {};
    alignas(32) double other[MOST_EXPERTS], power[MOST_EXPERTS], slope[MOST_EXPERTS] = {};
    expert_scores(c, m, judged, s);
    for (int j = 0; j < n; ++j) e[j] = exp(-fabs(-y * s[j]));
    log_losses(s, e, n, y, l, slope, power);
    for (int j = 0; j < c.count; ++j) slopes[j] = weight * slope[j];
    if (c.coin) slopes[c.count] = weight * slope[c.count + (c.stack ? 1 : 0)];
    tails(e, other, n);
    for (int j = 0; j < n; ++j) {
        l[j] += other[j];
        other[j] += most(y * s[j], 0.0);
    }
    admit(c, m, weight);
    // e^-l is the probability of the label, at hand without another exponential, if it is not too small.
    double total = 0.0;
    for (int j = 0; j < n; ++j) total += m.w[j] * power[j];
    const bool direct = total >= LEAST_CHANCE;
    MixedPrediction prediction = {0.0, direct ? -log(total) : mixed(c, m, l)};
    if (asked) prediction.score = y * (mixed(c, m, other) - prediction.loss);
    share_out(c, m, l, weight, t, direct ? power : nullptr);
    if (c.stack && judged != scores) {
        newton_now(c, m, scores, y, weight);
    } else if (c.stack) {
        newton_log_loss(c, m, scores, s[c.count], e[c.count], slope[c.count], weight);
    }
    return prediction;
}

// What a retirement needs to know: docs/scales.md.
inline void keep_blocks(const ScaleConstants& c, Mixture& m, const double* l, double weight, std::int64_t t) {
    if (c.count <= WINDOW) return;
    for (int k = 0; k < c.count; ++k) m.block[k] += weight * l[k];
    if (t % BLOCK_ROWS != 0) return;
    const int windows = c.count - WINDOW + 1;
    const std::int64_t first = t - BLOCK_ROWS;
    const bool opens = first > 0 && (first & (first - 1)) == 0, closes = (t & (t - 1)) == 0;
    for (int i = 0; i <= windows; ++i) {
        if (opens) {
            m.windows[BEFORE][i] = m.windows[CURRENT][i];
            m.windows[CURRENT][i] = 0.0;
        }
        m.windows[CURRENT][i] += i < windows ? smallest(m.block + i, WINDOW) : smallest(m.block, c.count);
        if (closes) m.windows[LATEST][i] = m.windows[BEFORE][i] + m.windows[CURRENT][i];
    }
    for (int k = 0; k < c.count; ++k) m.block[k] = 0.0;
}

// The slopes alone, of a row that was learned in an earlier pass: its loss no longer shows how well an expert predicts,
// so it moves neither the weights of the experts nor the stack.
inline void learn_slopes(const ScaleConstants& c, const double* scores, double y, double weight, double* slopes) {
    for (int k = 0; k < c.count + (c.coin ? 1 : 0); ++k) {
        double tail = 0.0;
        slopes[k] = weight * c.base.loss->at(scores[k], y, c.base.tau, tail).slope;
    }
}

// The weights of the experts after a held-out row in which they lost l: Bayes' rule over each of them and the mixture
// that the first pass ended with. No share, since all held-out rows are predicted by the same weights of the scales.
inline void weigh_experts(Mixture& m, int n, const double* l, double rate) {
    const double low = smallest(l, n);
    double first = 0.0, total = 0.0;
    for (int j = 0; j < n; ++j) {
        const double power = exp(rate * (low - l[j]));
        first += m.first[j] * power;
        m.weighed[j] = most(m.weighed[j] * power, LEAST_WEIGHT);
        total += m.weighed[j];
    }
    m.first_part *= first;
    total += m.first_part;
    m.first_part /= total;
    for (int j = 0; j < n; ++j) {
        m.weighed[j] /= total;
        m.w[j] = m.weighed[j] + m.first_part * m.first[j];
    }
}

inline void weigh_log_loss(const ScaleConstants& c, Mixture& m, const double* scores, double y, double weight) {
    double l[MOST_EXPERTS] = {}, s[MOST_EXPERTS];
    expert_scores(c, m, scores, s);
    for (int j = 0; j < experts(c); ++j) {
        double tail = 0.0;
        const double value = c.base.loss->at(s[j], y, c.base.tau, tail).value;
        l[j] = total_loss(value, tail);
    }
    weigh_experts(m, experts(c), l, weight / heat_of(m));
}

// ---- labels that arrive late ----

// Keeps what the experts say of a row that is only predicted, for when it is learned.
inline void keep_arrival(const ScaleConstants& c, const RowOutputs& out, std::int64_t r, const double* scores) {
    if (out.arrivals == nullptr) return;
    double* to = out.arrivals + out.arrival_of[r] * arrival_numbers(c.count);
    for (int k = 0; k < c.count; ++k) to[k] = scores[k];
    to[c.count] = c.coin ? scores[c.count] : 0.0;
}

// The inputs by which the mixture judges the experts of a row that is learned: those of its arrival, put into
// `arrival_inputs`, where its label was late. The dense columns are as now: they may be others by now.
inline const double* judged_inputs(const ScaleConstants& c, const RowOutputs& out, std::int64_t r, const double* scores,
                                   double* arrival_inputs) {
    if (out.arrivals == nullptr) return scores;
    const double* from = out.arrivals + out.arrival_of[r] * arrival_numbers(c.count);
    for (int k = 0; k < ROW_INPUTS; ++k) arrival_inputs[k] = scores[k];
    for (int k = 0; k < c.count; ++k) arrival_inputs[k] = from[k];
    if (c.coin) arrival_inputs[c.count] = from[c.count];
    return arrival_inputs;
}

// A row that is learned with the log loss: the prediction of the mixture and its loss, its new weights, and the
// weighted slope of each scale and then of the coin. `judged` are its inputs by which the experts are weighed; the
// stack learns as the scales do, from the scores of now.
MixedPrediction learn_mixture(const ScaleConstants& c, Mixture& m, const double* scores, const double* judged, double y,
                              double weight, double t, bool asked, double* slopes) {
    if (c.frozen) {
        learn_slopes(c, scores, y, weight, slopes);
        return predict_mixture(c, m, scores, y);
    }
    double l[MOST_EXPERTS] = {};
    const MixedPrediction prediction = learn_log_loss(c, m, scores, judged, y, weight, t, asked, l, slopes);
    if (judged != scores) learn_slopes(c, scores, y, weight, slopes);
    for (int j = 0; j < experts(c); ++j) m.totals[j] += weight * l[j];
    keep_blocks(c, m, l, weight, static_cast<std::int64_t>(t));
    return prediction;
}

#include "learners/mix_labels.inl"
