// The mixture of every loss but the log loss, whose labels may be in any unit: docs/labels.md, in the same order.
// Included by mix.inl; rules as there.

constexpr std::int64_t LAST_EARLY_REVIEW = 256;
constexpr double STRETCH_PART = 0x1p-4;  // of D that the offset loses in a stretch of rows
constexpr double LEAST_STRETCH = 4.0;    // rows; and how many times the longest stretch is too long
constexpr double TOO_LONG = 4.0;
constexpr double SURE_GAP = 4.0;  // the gap from which on a lead counts less
constexpr double LARGEST_POWER = 32.0;
constexpr double LEAST_GAP = 0x1p-30;  // part of the loss so far below which a gap is rounding

// What the experts and the stack say of a row.
struct Opinions {
    double expert[MOST_EXPERTS];  // the scales, the stack, the offset, the coin; cut to the range of the labels
    double seen[MOST_SCALES];     // the scores as the stack sees them
    double f;                     // the stack
    double mean;                  // the prediction
};

inline bool has_classes(const ScaleConstants& c) { return c.base.loss->rule == LabelRule::classes; }

// The unit of the stack's score: that of the labels, but for scores that have none.
inline double stack_unit(const ScaleConstants& c, const LabelState& labels) {
    return has_classes(c) || c.base.loss->has_log_link() ? 1.0 : labels.unit;
}

// What the labels so far predict alone: their offset, or the class that most of them have.
inline double prediction_of_labels(const ScaleConstants& c, const LabelState& labels) {
    if (!has_classes(c)) return labels.offset;
    return labels.mean > 0.0 ? 1.0 : (labels.mean < 0.0 ? -1.0 : 0.0);
}

// Into `o`, of which only the numbers that there are get a value.
void put_opinions(const ScaleConstants& c, const Mixture& m, const double* scores, Opinions& o) {
    const LabelState& labels = m.labels;
    const bool columns = has_columns(c, m.dense), classes = has_classes(c);
    const double* u = columns ? m.dense->u : m.u;
    const double low = labels.lowest, high = labels.highest, offset = labels.offset;
    const int count = c.count;
    for (int k = 0; k < count; ++k) {
        o.expert[k] = cut_to(scores[k], low, high);
        o.seen[k] = classes ? within(scores[k], STACK_CUT) : o.expert[k];
    }
    double sum = 0.0;
    for (int k = 0; k < count; ++k) sum += u[k] * (o.seen[k] - offset);
    double mean = 0.0;
    for (int k = 0; k < count; ++k) mean += m.w[k] * o.expert[k];
    // What comes behind the scales is stored as one vector: read together, numbers stored one by one take long.
    const double labels_alone = prediction_of_labels(c, labels);
    const double coin = c.coin ? cut_to(scores[count], low, high) : 0.0;
    const double* w = m.w + count;
    o.f = 0.0;
    if (c.stack) {
        o.f = offset + sum;
        if (columns) o.f = o.f + stack_unit(c, labels) * columns_score(*m.dense, scores + DENSE_AT);
        const double stack = cut_to(c.base.loss->stack_gain * o.f, low, high);
        mean += *w++ * stack;
        store(o.expert + count, four(stack, labels_alone, coin, 0.0));
    } else {
        store(o.expert + count, four(labels_alone, coin, 0.0, 0.0));
    }
    mean += w[0] * labels_alone;
    if (c.coin) mean += w[1] * coin;
    o.mean = mean;
}

inline Opinions opinions_of(const ScaleConstants& c, const Mixture& m, const double* scores) {
    Opinions o;
    put_opinions(c, m, scores, o);
    return o;
}

// A label within the range that was known before it: no expert is charged for a range that it could not know.
inline double known_label(const Loss& loss, const LabelState& labels, double y) {
    if (loss.rule == LabelRule::classes) return y;
    if (loss.rule == LabelRule::log_mean) return least(y, exp(labels.highest));
    if (loss.rule == LabelRule::log_ratio) return cut_to(y, exp(labels.lowest), exp(labels.highest));
    return cut_to(y, labels.lowest, labels.highest);
}

inline double value_at(const ScaleConstants& c, double score, double y) {
    double tail = 0.0;
    return c.base.loss->at(score, y, c.base.tau, tail).value;  // only log loss has a tail
}

// Which expert predicts from the labels alone.
inline int label_expert(const ScaleConstants& c) { return c.count + (c.stack ? 1 : 0); }

// ---- classes: the mixture is used as far as it has lost less than the majority ----

// By how much a lead counts: less as the gaps add up.
inline double lead_rate(const Mixture& m) { return 1.0 / most(1.0, m.hedge[LEAD_GAP] / SURE_GAP); }

// The part of the mixture in a prediction; the rest is the majority's.
inline double trusted_part(const Mixture& m) { return 1.0 / (1.0 + CAUTION * exp(-lead_rate(m) * m.hedge[LEAD])); }

// The weights within the mixture, of those that predict.
inline void weights_within(const ScaleConstants& c, const Mixture& m, double part, double* w) {
    const int n = experts(c), at = label_expert(c);
    for (int j = 0; j < n; ++j) w[j] = most(j == at ? m.w[j] - (1.0 - part) : m.w[j], LEAST_WEIGHT);
    divide_by_sum(w, n);
}

// The other way round, with the part of after the row.
inline void set_weights(const ScaleConstants& c, Mixture& m, double part, const double* w) {
    for (int j = 0; j < experts(c); ++j) m.w[j] = part * w[j];
    m.w[label_expert(c)] += 1.0 - part;
}

// What a row changes in the lead: `lead_gain` is by how much the mixture lost less than the majority.
inline void learn_lead(Mixture& m, double part, double lead_gain) {
    const double rate = lead_rate(m), power = within(rate * lead_gain, LARGEST_POWER);
    const double gap = (log((1.0 - part) + part * exp(power)) - part * power) / rate;
    m.hedge[LEAD_GAP] += most(gap, 0.0);
    m.hedge[LEAD] = most(m.hedge[LEAD] + lead_gain, 0.0);
}

// The losses of the experts and of their mean, for a label as it is.
struct LossesAtLabel {
    const double* expert;
    double mean;
};

// AdaHedge (de Rooij, van Erven, Grunwald, Koolen 2014) with the loss of the mean in place of the mean loss, gaps that
// may become smaller again, and a share. t counts this row.
inline void hedge(const ScaleConstants& c, Mixture& m, const Opinions& o, const LossesAtLabel& at_label, double mean,
                  double* w, double y, double weight, double t) {
    const int n = experts(c);
    const double ln = LOGARITHMS.of[n], label = known_label(*c.base.loss, m.labels, y);
    const bool known = label == y;  // as nearly every label is: its losses are those that there are already
    double values[MOST_EXPERTS], l[MOST_EXPERTS] = {};
    if (!known) c.base.loss->values(o.expert, n, label, c.base.tau, values);
    const double* of_label = known ? at_label.expert : values;
    for (int j = 0; j < n; ++j) l[j] = weight * of_label[j];
    const double mixture_loss = weight * (known ? at_label.mean : value_at(c, mean, label));
    const double low = smallest(l, n), D = m.hedge[LARGEST_GAP];
    m.hedge[RECENT_LOSS] += weight * fabs(at_label.mean);
    if (c.base.loss->predicts_labels()) m.hedge[STRETCH_LOSS] += l[label_expert(c)];
    if (D == 0.0) {
        if (mixture_loss - low > LEAST_GAP * m.hedge[RECENT_LOSS])
            m.hedge[GAP_NOW] = m.hedge[LARGEST_GAP] = mixture_loss - low;
        return;
    }
    double power[MOST_EXPERTS], after[MOST_EXPERTS], sum = 0.0;
    for (int j = 0; j < n; ++j) power[j] = ((low - l[j]) / D) * ln;
    for (int j = 0; j < n; ++j) after[j] = w[j] * exp(power[j]);
    for (int j = 0; j < n; ++j) sum += after[j];
    const double gap = most(m.hedge[GAP_NOW] + (mixture_loss - (low - log(sum) * D / ln)), 0.0);
    m.hedge[GAP_NOW] = gap;
    if (gap > D) {  // from the weights before the row: at the rate that turned out too large, those after may be 0
        const double ratio = D / gap;
        for (int j = 0; j < n; ++j) w[j] = pow(w[j], ratio) * exp(ratio * power[j]);
        divide_by_sum(w, n);
        m.hedge[LARGEST_GAP] = gap;
    } else {
        for (int j = 0; j < n; ++j) w[j] = after[j] / sum;
    }
    const double a = share_of(t);
    const double each = a / n;
    for (int j = 0; j < n; ++j) w[j] = (1.0 - a) * most(w[j], LEAST_WEIGHT) + each;
}

// The same for classes, where the majority has a place of its own above the mixture.
inline void hedge_classes(const ScaleConstants& c, Mixture& m, const Opinions& o, const double* l, double y,
                          double weight, double t) {
    double w[MOST_EXPERTS], mean = 0.0;
    const double part = trusted_part(m);
    weights_within(c, m, part, w);
    for (int j = 0; j < experts(c); ++j) mean += w[j] * o.expert[j];
    const double mean_loss = value_at(c, mean, y);
    hedge(c, m, o, {l, mean_loss}, mean, w, y, weight, t);
    const double lead_gain = l[label_expert(c)] - mean_loss;
    learn_lead(m, part, weight * lead_gain);
    set_weights(c, m, trusted_part(m), w);
}

// Begin anew where D comes from labels long past, such as a single one far from all others, or labels in a larger
// unit: losses as they are now could not move the weights, and that range does not tell where labels are.
inline void forget_past(Mixture& m, double y, double weight) {
    m.hedge[GAP_NOW] = m.hedge[LARGEST_GAP] = m.hedge[RECENT_LOSS] = 0.0;
    begin_anew(m.labels, y, weight);
}

// In the first rows D is compared with the whole loss since the last power of two. Then with what the offset loses:
// rows are counted in stretches in which it loses a part of D, and one that is several times longer than any before
// tells that losses are no longer what they were. Labels that are mostly 0, say, have long stretches from the
// beginning.
inline void review_past(Mixture& m, double y, double weight, double t) {
    const auto row = static_cast<std::int64_t>(t);
    const double D = m.hedge[LARGEST_GAP];
    double &loss = m.hedge[STRETCH_LOSS], &rows = m.hedge[STRETCH_ROWS], &longest = m.hedge[LONGEST_STRETCH];
    rows += 1.0;
    if (D == 0.0 || loss >= STRETCH_PART * D) {
        if (D != 0.0) longest = most(longest, rows);
        loss = rows = 0.0;
    } else if (rows >= TOO_LONG * most(longest, LEAST_STRETCH) && is_review(row)) {
        longest = rows;
        loss = rows = 0.0;
        forget_past(m, y, weight);
    }
    if (row < FIRST_REVIEW || (row & (row - 1)) != 0) return;
    if (row <= LAST_EARLY_REVIEW && m.hedge[LARGEST_GAP] > m.hedge[RECENT_LOSS]) forget_past(m, y, weight);
    m.hedge[RECENT_LOSS] = 0.0;
}

// The least loss that any score has. It may be below 0 where the link is a logarithm.
inline double least_loss(const Loss& loss, double y) {
    if (loss.rule == LabelRule::log_mean) return y > 0.0 ? y - y * log(y) : 0.0;
    return loss.rule == LabelRule::log_ratio ? 1.0 + log(y) : 0.0;
}

// The Newton step of the stack, whose range is the hull of the labels' ranges before and after this one; `inputs` has
// the dense columns of the row.
inline void learn_stack(const ScaleConstants& c, Mixture& m, const Opinions& o, const double* inputs,
                        const LabelState& before, const LabelledRow& row) {
    const Loss& loss = *c.base.loss;
    const LabelState& labels = m.labels;
    const double low = row.low, high = row.high, y = row.learned;
    const double weight = least(row.weight, STACK_WEIGHT), unit = stack_unit(c, labels);
    const double ratio = stack_unit(c, before) / unit;
    alignas(32) double v[DENSE_INPUTS];
    for (int k = 0; k < c.count; ++k) v[k] = (o.seen[k] - before.offset) / unit;
    StackPoint at = {o.f, y, labels.unit, labels.psi, 0.0, c.base.tau};
    if (loss.has_log_link()) at.f = cut_to(o.f, low, high);
    if (loss.has_kink()) {
        m.hedge[STACK_WEIGHT_SO_FAR] += weight;
        const double value = value_at(c, cut_to(o.f, low, high), y);
        m.hedge[STACK_LOSS] += (weight / m.hedge[STACK_WEIGHT_SO_FAR]) * (value - m.hedge[STACK_LOSS]);
        at.mean_loss = m.hedge[STACK_LOSS];
    }
    const StackSlope slope = loss.stack(at);
    if (has_columns(c, m.dense)) {
        for (int k = 0; k <= m.dense->active; ++k) v[c.count + k] = ratio * inputs[DENSE_AT + k];
        dense_newton(*m.dense, v, slope.slope, weight * slope.curvature, weight);
    } else {
        newton(m, v, c.count, slope.slope, weight * slope.curvature, weight);
    }
}

// The coin's slope at its score, in units of the labels.
inline double coin_slope(const ScaleConstants& c, const Mixture& m, double score, const LabelledRow& row) {
    const double s = cut_to(score, row.low, row.high), y = row.learned;
    double tail = 0.0;
    if (has_classes(c)) return c.base.loss->at(s, y, c.base.tau, tail).slope;
    const StackPoint at = {s, y, m.labels.unit, m.labels.psi, 1.0, c.base.tau};
    return c.base.loss->stack(at).slope;
}

// As weigh_log_loss, at the rate that the first pass came to.
inline void weigh_labelled(const ScaleConstants& c, Mixture& m, const Opinions& o, double y, double weight) {
    const double D = m.hedge[LARGEST_GAP];
    if (D == 0.0) return;
    double l[MOST_EXPERTS] = {};
    const int n = experts(c);
    c.base.loss->values(o.expert, n, known_label(*c.base.loss, m.labels, y), c.base.tau, l);
    weigh_experts(m, n, l, weight * LOGARITHMS.of[n] / D);
}

// As learn_mixture for the log loss: slopes are for weight 1; `judged` as there. Whether the scales learn from the row
// is `row.teaches`.
MixedPrediction learn_with_labels(const ScaleConstants& c, Mixture& m, const double* scores, const double* judged,
                                  const double* reach, double y, double weight, double t, double* slopes,
                                  LabelledRow& row) {
    Opinions o;
    put_opinions(c, m, judged, o);
    const MixedPrediction prediction = {o.mean, value_at(c, o.mean, y)};
    double l[MOST_EXPERTS];
    if (!c.frozen) {
        const int n = experts(c);
        c.base.loss->values(o.expert, n, y, c.base.tau, l);
        for (int j = 0; j < n; ++j) m.totals[j] += weight * l[j];
    }
    const bool late = judged != scores;
    Opinions now;  // what the stack learns from where the label was late: the scores of now
    if (late) put_opinions(c, m, scores, now);
    if (t > 1.0 && !c.frozen) {
        has_classes(c) ? hedge_classes(c, m, o, l, y, weight, t)
                       : hedge(c, m, o, {l, prediction.loss}, o.mean, m.w, y, weight, t);
    }
    if (!c.frozen) {
        if (c.base.loss->has_log_link()) {
            const double least = least_loss(*c.base.loss, y);
            for (int k = 0; k < c.count; ++k) l[k] -= least;
        }
        keep_blocks(c, m, l, weight, static_cast<std::int64_t>(t));
    }
    const LabelState before = m.labels;
    row = learn_row_label(c.base, m.labels, y, weight);
    if (t > 1.0 && !c.frozen && c.base.loss->predicts_labels()) review_past(m, row.learned, weight, t);
    if (!row.teaches) {
        for (int k = 0; k <= c.count; ++k) slopes[k] = 0.0;
        return prediction;
    }
    if (c.stack && !c.frozen) {
        learn_stack(c, m, late ? now : o, scores, before, row);
    }
    if (c.coin) slopes[c.count] = coin_slope(c, m, scores[c.count], row);
    for (int k = 0; k < c.count; ++k) {
        slopes[k] = slope_of(c.base, m.labels, row, scores[k], reach[k]);
    }
    return prediction;
}
