// The mixture of several scales with the log loss: docs/scales.md, in the same order. Included by loops.inl.

inline void see_scores(const MixPass& p, const double* scores, double coin, NewtonInputs& x) {
    const int K = p.roster->scales;
    for (int k = 0; k < K; ++k) x.v[k] = within(scores[k], SCORE_CUT);
    x.v[K] = within(coin, SCORE_CUT);
}

inline void say(const MixPass& p, const RowFacts& f, std::int64_t row, const double* scores, double coin, Said& s) {
    for (int k = 0; k < p.roster->scales; ++k) s.expert[k] = scores[k];
    see_scores(p, scores, coin, s.inputs);
    add_others(p, f, row, coin, s);
}

// The losses of the mixture for a label of 1, and for one of -1.
struct BothLosses {
    double yes, no;
};

// Where one of the two has hardly any probability.
FTPRL_OUTSIDE BothLosses unlikely_losses(const double* scores, int n, const double* e, const double* w) {
    alignas(32) double plus[MOST_EXPERTS], minus[MOST_EXPERTS];
    tails(e, minus, n);
    for (int j = 0; j < n; ++j) {
        plus[j] = most(-scores[j], 0.0) + minus[j];
        minus[j] += most(scores[j], 0.0);
    }
    return {mixed(w, n, plus), mixed(w, n, minus)};
}

inline BothLosses both_losses(Said& s, int n, const double* w) {
    alignas(32) double e[MOST_EXPERTS], same[MOST_EXPERTS], other[MOST_EXPERTS];
    for (int j = 0; j < n; ++j) e[j] = exp(-fabs(s.expert[j]));
    for (int j = n; j % 4 != 0; ++j) e[j] = s.expert[j] = 0.0;
    for (int j = 0; j < n; j += 4) {
        const D tail = load(e + j), whole = all(1.0) + tail;
        store(same + j, all(1.0) / whole);
        store(other + j, tail / whole);
    }
    double yes = 0.0, no = 0.0;
    for (int j = 0; j < n; ++j) {
        yes += w[j] * (s.expert[j] >= 0.0 ? same[j] : other[j]);
        no += w[j] * (s.expert[j] >= 0.0 ? other[j] : same[j]);
    }
    if (yes >= LEAST_CHANCE && no >= LEAST_CHANCE) return {-log(yes), -log(no)};
    return unlikely_losses(s.expert, n, e, w);
}

// The loss of the mixture for a row that is not learned here, with weights w; NaN without a label.
inline double predict_log_row(const MixPass& p, Said& s, const double* w, std::int64_t r, double y) {
    const BothLosses losses = both_losses(s, p.roster->count, w);
    const double loss = y == y ? (y > 0.0 ? losses.yes : losses.no) : y;
    if (p.out.scores != nullptr) p.out.scores[r] = losses.no - losses.yes;
    if (p.out.losses != nullptr) p.out.losses[r] = loss;
    return loss;
}

inline void weigh_log_row(const MixPass& p, const Said& s, double y, double weight) {
    double l[MOST_EXPERTS];
    const int n = p.roster->count;
    for (int j = 0; j < n; ++j) {
        double tail = 0.0;
        const double value = p.constants->loss->at(s.expert[j], y, p.constants->tau, tail).value;
        l[j] = total_loss(value, tail);
    }
    Mixture& m = *p.mixture;
    weigh_experts(m, n, l, weight / m.facts[LARGEST_WEIGHT]);
}

inline void newton_log_steps(const MixPass& p, const RowFacts& f, const Said& s) {
    for (int i = 0; i < p.roster->newtons; ++i) {
        double e = 0.0;
        const double slope = p.constants->loss->at(s.raw[i], f.y, p.constants->tau, e).slope;
        const double chance = (s.raw[i] >= 0.0 ? 1.0 : e) / (1.0 + e);
        newton_step(p.roster->newton[i], s.inputs, 1.0, 1.0, slope, most(chance * (1.0 - chance), LEAST_CURVE),
                    f.weight, slope_before);
    }
}

// A row that is learned: the prediction of the mixture and its loss, its new weights, and the steps of the Newton
// experts. Where the label was late the experts are judged by what they said when the row arrived, `arrival`; the
// Newton experts learn from the scores of now, as the scales do, and the one whose constant drifts sleeps: it says what
// the others do.
inline void learn_log_row(const MixPass& p, const RowFacts& f, std::int64_t r, const double* scores, double coin) {
    const Roster& x = *p.roster;
    Mixture& m = *p.mixture;
    const int n = x.count;
    const std::int64_t row = r - p.from;
    const double y = f.y, t = p.tallies[ROWS] + 1.0, *arrival = arrival_of(p, r);
    const bool late = arrival != nullptr;
    Said s;
    say(p, f, row, late ? arrival : scores, late ? arrival[x.scales] : coin, s);
    alignas(32) double e[MOST_EXPERTS], l[MOST_EXPERTS], slope[MOST_EXPERTS], power[MOST_EXPERTS], other[MOST_EXPERTS];
    const int known = late ? 0 : x.scales;
    for (int j = 0; j < known; ++j) e[j] = p.tails[row * p.stride + j];
    for (int j = known; j < n; ++j) e[j] = exp(-fabs(-y * s.expert[j]));
    for (int j = n; j % 4 != 0; ++j) e[j] = s.expert[j] = 0.0;
    log_losses(s.expert, e, n, y, l, slope, power);
    tails(e, other, n);
    for (int j = 0; j < n; ++j) {
        l[j] += other[j];
        other[j] += most(y * s.expert[j], 0.0);
    }
    admit(m, n, f.weight);
    if (late && x.drift >= 0) {
        double w[MOST_EXPERTS];
        predicting_weights(x, m, w);
        double chance = 0.0;
        for (int j = 0; j < n; ++j) chance += w[j] * power[j];
        power[x.drift] = chance;
        l[x.drift] = chance >= LEAST_CHANCE ? -log(chance) : mixed(w, n, l);
        other[x.drift] = mixed(w, n, other);
    }
    // e^-l is the probability of the label, at hand without another exponential, if it is not too small.
    double total = 0.0;
    for (int j = 0; j < n; ++j) total += m.w[j] * power[j];
    const bool direct = total >= LEAST_CHANCE;
    const double loss = direct ? -log(total) : mixed(m.w, n, l);
    if (p.out.scores != nullptr) p.out.scores[r] = y * (mixed(m.w, n, other) - loss);
    if (p.out.losses != nullptr) p.out.losses[r] = loss;
    add_octave(x, m, l, loss, 0.0, f.weight);
    for (int i = 0; i < x.droppables; ++i) {
        const int j = x.droppable[i];
        m.without[OCTAVE_NOW][j] += f.weight * loss_without(m.w, power, l, n, j, total);
    }
    share_out(m, n, l, f.weight, t, direct ? power : nullptr);
    if (late) say(p, f, row, scores, coin, s);
    newton_log_steps(p, f, s);
    for (int j = 0; j < n; ++j) m.totals[j] += f.weight * l[j];
    keep_blocks(x.scales, m, l, f.weight, static_cast<std::int64_t>(t));
    add_totals(p.tallies, *p.totals, f.weight, loss);
    end_octave(m, static_cast<std::int64_t>(t));
}

inline void mix_log_rows(const MixPass& p) {
    double w[MOST_EXPERTS];
    Said s;
    const bool fixed = !p.learns || p.frozen;
    if (fixed) predicting_weights(*p.roster, *p.mixture, w);
    for (std::int64_t r = p.from; r < p.to; ++r) {
        const std::int64_t row = r - p.from;
        const RowFacts& f = p.facts[row];
        const double *scores = p.scores + row * p.stride, coin = p.coin == nullptr ? 0.0 : p.coin[row];
        if (f.learns && !p.frozen) {
            learn_log_row(p, f, r, scores, coin);
            continue;
        }
        if (!fixed) predicting_weights(*p.roster, *p.mixture, w);
        say(p, f, row, scores, coin, s);
        if (!f.learns) keep_arrival(p, r, scores, coin);
        const double loss = predict_log_row(p, s, w, r, f.y);
        if (f.learns) add_totals(p.tallies, *p.totals, f.weight, loss);
        if (p.weighs && f.y == f.y && f.weight > 0.0) weigh_log_row(p, s, f.y, f.weight);
    }
}
