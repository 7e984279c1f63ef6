// The mixture of every loss but the log loss, whose labels may be in any unit: docs/labels.md, in the same order.
// Included by loops.inl.

constexpr double SURE_GAP = 4.0;  // the gap from which on a lead counts less
constexpr double LARGEST_POWER = 32.0;
constexpr double LEAST_GAP = 0x1p-30;  // part of the loss so far below which a gap is rounding
constexpr std::int64_t FIRST_OCTAVE = 16;

inline bool has_margins(const Loss& loss) { return loss.rule == LabelRule::classes; }

inline double value_at(const Constants& c, double score, double y) {
    double tail = 0.0;
    return c.loss->at(score, y, c.tau, tail).value;  // only log loss has a tail
}

inline void see_labelled_scores(const MixPass& p, const RowFacts& f, const double* scores, double coin, Said& s) {
    const int K = p.roster->scales;
    for (int k = 0; k < K; ++k) s.expert[k] = cut_to(scores[k], f.low, f.high);
    if (has_margins(*p.constants->loss)) return see_scores(p, scores, coin, s.inputs);
    for (int k = 0; k < K; ++k) s.inputs.v[k] = s.expert[k] - f.offset;
    s.inputs.v[K] = cut_to(coin, f.low, f.high) - f.offset;
}

inline void say_labelled(const MixPass& p, const RowFacts& f, std::int64_t row, const double* scores, double coin,
                         Said& s) {
    see_labelled_scores(p, f, scores, coin, s);
    add_others(p, f, row, coin, s);
}

inline double mean_of(const Said& s, const double* w, int n) {
    double mean = 0.0;
    for (int j = 0; j < n; ++j) mean += w[j] * s.expert[j];
    return mean;
}

// A label within the range that was known before it: no expert is charged for a range that it could not know.
inline double known_label(const Loss& loss, const RowFacts& f) {
    if (has_margins(loss)) return f.y;
    if (loss.rule == LabelRule::log_mean) return least(f.y, exp(f.high));
    if (loss.rule == LabelRule::log_ratio) return cut_to(f.y, exp(f.low), exp(f.high));
    return cut_to(f.y, f.low, f.high);
}

// ---- classes with margins: the mixture is used as far as it has lost less than the majority ----

// By how much a lead counts: less as the gaps add up.
inline double lead_rate(const Mixture& m) { return 1.0 / most(1.0, m.facts[LEAD_GAP] / SURE_GAP); }

// The part of the mixture in a prediction; the rest is the majority's.
inline double trusted_part(const Mixture& m) { return 1.0 / (1.0 + CAUTION * exp(-lead_rate(m) * m.facts[LEAD])); }

// The weights within the mixture, of those that predict.
inline void weights_within(const Roster& x, const Mixture& m, double part, double* w) {
    for (int j = 0; j < x.count; ++j) w[j] = most(j == x.offset ? m.w[j] - (1.0 - part) : m.w[j], LEAST_WEIGHT);
    divide_by_sum(w, x.count);
}

// The other way round, with the part of after the row.
inline void set_weights(const Roster& x, Mixture& m, double part, const double* w) {
    for (int j = 0; j < x.count; ++j) m.w[j] = part * w[j];
    m.w[x.offset] += 1.0 - part;
}

// What a row changes in the lead: `lead_gain` is by how much the mixture lost less than the majority.
inline void learn_lead(Mixture& m, double part, double lead_gain) {
    const double rate = lead_rate(m), power = within(rate * lead_gain, LARGEST_POWER);
    const double gap = (log((1.0 - part) + part * exp(power)) - part * power) / rate;
    m.facts[LEAD_GAP] += most(gap, 0.0);
    m.facts[LEAD] = most(m.facts[LEAD] + lead_gain, 0.0);
}

// ---- AdaHedge ----

// AdaHedge (de Rooij, van Erven, Grunwald, Koolen 2014) with the loss of the mean in place of the mean loss, gaps that
// may become smaller again, and a share. t counts this row; `of_label` has the losses of the experts for the label as
// it is, and `mean_loss` that of their mean.
inline void hedge(const MixPass& p, const RowFacts& f, const Said& s, const double* of_label, double mean_loss,
                  double mean, double* w, double t) {
    const Constants& c = *p.constants;
    Mixture& m = *p.mixture;
    const int n = p.roster->count;
    const double ln = LOGARITHMS.of[n], label = known_label(*c.loss, f);
    const bool known = label == f.y;  // as nearly every label is: its losses are those that there are already
    double values[MOST_EXPERTS], l[MOST_EXPERTS];
    if (!known) c.loss->values(s.expert, n, label, c.tau, values);
    for (int j = 0; j < n; ++j) l[j] = f.weight * (known ? of_label[j] : values[j]);
    const double mixture_loss = f.weight * (known ? mean_loss : value_at(c, mean, label));
    const double low = smallest(l, n), D = m.facts[LARGEST_GAP];
    m.facts[PAID] += f.weight * fabs(mean_loss);
    if (D == 0.0) {
        if (mixture_loss - low > LEAST_GAP * m.facts[PAID])
            m.facts[GAP_NOW] = m.facts[LARGEST_GAP] = mixture_loss - low;
        return;
    }
    double power[MOST_EXPERTS], after[MOST_EXPERTS], sum = 0.0;
    for (int j = 0; j < n; ++j) power[j] = ((low - l[j]) / D) * ln;
    for (int j = 0; j < n; ++j) after[j] = w[j] * exp(power[j]);
    for (int j = 0; j < n; ++j) sum += after[j];
    const double gap = most(m.facts[GAP_NOW] + (mixture_loss - (low - log(sum) * D / ln)), 0.0);
    m.facts[GAP_NOW] = gap;
    if (gap > D) {  // from the weights before the row: at the rate that turned out too large, those after may be 0
        const double ratio = D / gap;
        for (int j = 0; j < n; ++j) w[j] = pow(w[j], ratio) * exp(ratio * power[j]);
        divide_by_sum(w, n);
        m.facts[LARGEST_GAP] = gap;
    } else {
        for (int j = 0; j < n; ++j) w[j] = after[j] / sum;
    }
    const double a = share_of(t);
    const double each = a / n;
    for (int j = 0; j < n; ++j) w[j] = (1.0 - a) * most(w[j], LEAST_WEIGHT) + each;
}

// The same for classes with margins, where the majority has a place of its own above the mixture.
inline void hedge_margins(const MixPass& p, const RowFacts& f, const Said& s, const double* l, double t) {
    const Roster& x = *p.roster;
    Mixture& m = *p.mixture;
    double w[MOST_EXPERTS];
    const double part = trusted_part(m);
    weights_within(x, m, part, w);
    const double mean = mean_of(s, w, x.count), mean_loss = value_at(*p.constants, mean, f.y);
    hedge(p, f, s, l, mean_loss, mean, w, t);
    learn_lead(m, part, f.weight * (l[x.offset] - mean_loss));
    set_weights(x, m, trusted_part(m), w);
}

// ---- rows ----

// The least loss that any score has. It may be below 0 where the link is a logarithm.
inline double least_loss(const Loss& loss, double y) {
    if (loss.rule == LabelRule::log_mean) return y > 0.0 ? y - y * log(y) : 0.0;
    return loss.rule == LabelRule::log_ratio ? 1.0 + log(y) : 0.0;
}

// The steps of the Newton experts, whose range is the hull of the labels' ranges before and after this one.
inline void newton_labelled_steps(const MixPass& p, const RowFacts& f, const Said& s) {
    const Constants& c = *p.constants;
    const Loss& loss = *c.loss;
    const double unit = f.unit_after, y = f.learned;
    for (int i = 0; i < p.roster->newtons; ++i) {
        const Newton& n = p.roster->newton[i];
        const double cut = cut_to(s.raw[i], f.hull_low, f.hull_high);
        StackPoint at = {loss.has_log_link() ? cut : s.raw[i], y, f.label_unit, f.psi, 0.0, c.tau};
        if (loss.has_kink()) {
            const double weight = least(f.weight, MOST_WEIGHT);
            n.loss[0] += weight;
            n.loss[1] += (weight / n.loss[0]) * (value_at(c, cut, y) - n.loss[1]);
            at.mean_loss = n.loss[1];
        }
        const StackSlope own = loss.stack(at);
        const auto after = [&](double slope, double move) {
            const double A = move * unit;
            return loss.rule == LabelRule::quantile && A > 0.0 ? loss.implicit(at.f, y, A, f.label_unit, c.tau) : slope;
        };
        newton_step(n, s.inputs, unit, f.unit / unit, own.slope, own.curvature, f.weight, after);
    }
}

// A row that is learned, as learn_log_row.
inline void learn_labelled_row(const MixPass& p, const RowFacts& f, std::int64_t r, const double* scores, double coin) {
    const Constants& c = *p.constants;
    const Roster& x = *p.roster;
    Mixture& m = *p.mixture;
    const int n = x.count;
    const std::int64_t row = r - p.from;
    const double y = f.y, t = p.tallies[ROWS] + 1.0, *arrival = arrival_of(p, r);
    const auto number = static_cast<std::int64_t>(t);
    const bool late = arrival != nullptr;
    Said s;
    say_labelled(p, f, row, late ? arrival : scores, late ? arrival[x.scales] : coin, s);
    if (late && x.drift >= 0) {
        double w[MOST_EXPERTS];
        predicting_weights(x, m, w);
        s.expert[x.drift] = 0.0;
        s.expert[x.drift] = mean_of(s, w, n);
    }
    const double mean = mean_of(s, m.w, n), loss = value_at(c, mean, y), base = least_loss(*c.loss, y);
    double l[MOST_EXPERTS];
    c.loss->values(s.expert, n, y, c.tau, l);
    m.facts[LARGEST_WEIGHT] = most(m.facts[LARGEST_WEIGHT], f.weight);
    for (int j = 0; j < n; ++j) m.totals[j] += f.weight * l[j];
    add_octave(x, m, l, loss, base, f.weight);
    for (int i = 0; i < x.droppables; ++i) {
        const int j = x.droppable[i];
        const double rest = 1.0 - m.w[j];
        const double own =
            rest < LEAST_REST ? smallest_but(l, n, j) : value_at(c, (mean - m.w[j] * s.expert[j]) / rest, y);
        m.without[OCTAVE_NOW][j] += f.weight * (own - base);
    }
    if (t > 1.0) has_margins(*c.loss) ? hedge_margins(p, f, s, l, t) : hedge(p, f, s, l, loss, mean, m.w, t);
    for (int k = 0; k < x.scales; ++k) l[k] -= base;
    keep_blocks(x.scales, m, l, f.weight, number);
    if (number >= FIRST_OCTAVE && (number & (number - 1)) == 0) m.facts[PAID] = 0.0;
    if (f.teaches) {
        if (late) say_labelled(p, f, row, scores, coin, s);
        newton_labelled_steps(p, f, s);
    }
    if (p.out.scores != nullptr) p.out.scores[r] = mean;
    if (p.out.losses != nullptr) p.out.losses[r] = loss;
    for (int k = 0; p.row_sums != nullptr && k < x.scales; ++k)
        add_row_sums(c, f, scores[k], p.slopes[row * p.stride + k], mean, loss, p.row_sums, k);
    add_totals(p.tallies, *p.totals, f.weight, loss);
    end_octave(m, number);
}

// As weigh_log_row, at the rate that the first pass came to.
inline void weigh_labelled_row(const MixPass& p, const RowFacts& f, const Said& s) {
    Mixture& m = *p.mixture;
    const double D = m.facts[LARGEST_GAP];
    if (D == 0.0) return;
    double l[MOST_EXPERTS];
    const int n = p.roster->count;
    p.constants->loss->values(s.expert, n, known_label(*p.constants->loss, f), p.constants->tau, l);
    weigh_experts(m, n, l, f.weight * LOGARITHMS.of[n] / D);
}

inline void mix_labelled_rows(const MixPass& p) {
    const Constants& c = *p.constants;
    double w[MOST_EXPERTS];
    Said s;
    const bool fixed = !p.learns || p.frozen;
    if (fixed) predicting_weights(*p.roster, *p.mixture, w);
    for (std::int64_t r = p.from; r < p.to; ++r) {
        const std::int64_t row = r - p.from;
        const RowFacts& f = p.facts[row];
        const double *scores = p.scores + row * p.stride, coin = p.coin == nullptr ? 0.0 : p.coin[row];
        if (f.learns && !p.frozen) {
            learn_labelled_row(p, f, r, scores, coin);
            continue;
        }
        if (!fixed) predicting_weights(*p.roster, *p.mixture, w);
        say_labelled(p, f, row, scores, coin, s);
        const double mean = mean_of(s, w, p.roster->count), loss = f.y == f.y ? value_at(c, mean, f.y) : f.y;
        if (p.out.scores != nullptr) p.out.scores[r] = mean;
        if (p.out.losses != nullptr) p.out.losses[r] = loss;
        if (!f.learns) keep_arrival(p, r, scores, coin);
        if (f.learns) add_totals(p.tallies, *p.totals, f.weight, loss);
        if (p.weighs && f.y == f.y && f.weight > 0.0) weigh_labelled_row(p, f, s);
    }
}

// ---- one scale, which mixes nothing ----

inline void predict_single_rows(const MixPass& p) {
    const Constants& c = *p.constants;
    const bool labelled = c.loss->rule != LabelRule::none;
    for (std::int64_t r = p.from; r < p.to; ++r) {
        const std::int64_t row = r - p.from;
        const RowFacts& f = p.facts[row];
        const double score = p.scores[row], prediction = cut_to(score, f.low, f.high);
        if (p.out.scores != nullptr) p.out.scores[r] = prediction;
        if (!f.learns && p.out.losses == nullptr) continue;
        double tail = 0.0, loss = f.y;
        if (f.learns && !labelled) {
            const double v = -f.y * score;
            loss = total_loss(0.5 * v + 0.5 * fabs(v), p.tails[row]);
        } else if (f.y == f.y) {
            const double value = c.loss->at(prediction, f.y, c.tau, tail).value;
            loss = total_loss(value, tail);
        }
        if (p.out.losses != nullptr) p.out.losses[r] = loss;
        if (!f.learns) continue;
        add_totals(p.tallies, *p.totals, f.weight, loss);
        if (p.row_sums != nullptr) add_row_sums(c, f, score, p.slopes[row], prediction, loss, p.row_sums, 0);
    }
}

void mix_rows(const MixPass& p) {
    if (p.roster->count == 1) return predict_single_rows(p);
    p.constants->loss->rule == LabelRule::none ? mix_log_rows(p) : mix_labelled_rows(p);
}
