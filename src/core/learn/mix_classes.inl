// The mixture of several classes: docs/classes.md, in the same order. Included by loops.inl.

constexpr double LOWEST_LOG = -8.0;  // Newton experts see logarithms of probabilities cut to this

inline double seen_log(double log_chance) { return most(log_chance, LOWEST_LOG); }

// What the experts give each column of classes: of the scales, and of the Newton experts, one after the other.
struct ClassOpinions {
    const double *logs, *chance;
    double *newton_logs, *newton_chance;
    int K, C, newtons;

    double log_of(int j, int column) const { return j < K ? logs[column * K + j] : newton_logs[(j - K) * C + column]; }
    double chance_of(int j, int column) const {
        return j < K ? chance[column * K + j] : newton_chance[(j - K) * C + column];
    }
};

inline ClassOpinions class_opinions(const ClassPass& p, std::int64_t row) {
    const MixPass& rows = *p.rows;
    const Roster& x = *rows.roster;
    const int K = x.scales, C = p.classes->columns;
    const std::int64_t at = row * rows.stride;
    ClassOpinions o = {rows.scores + at, rows.tails + at, p.opinions, p.opinions + x.newtons * C, K, C, x.newtons};
    for (int i = 0; i < x.newtons; ++i) {
        const Newton& n = x.newton[i];
        double* scores = o.newton_logs + i * C;
        for (int column = 0; column < C; ++column) {
            double f = 0.0;
            for (int k = 0; k < K; ++k) f += n.u[k] * seen_log(o.logs[column * K + k]);
            if (n.kind->columns) {
                f = f +
                    columns_score(p.newtons->W + column * CLASS_STRIDE, rows.columns + row * COLUMN_STRIDE, rows.used);
            } else if (n.kind->constant) {
                f = f + p.newtons->bias[column];
            }
            scores[column] = f;
        }
        softmax(*p.classes, scores, o.newton_chance + i * C, 1);
    }
    return o;
}

// The probability that the mixture gives one class of a column.
inline double mixed_chance(const ClassOpinions& o, const double* w, int column) {
    double total = 0.0;
    for (int j = 0; j < o.K + o.newtons; ++j) total += w[j] * o.chance_of(j, column);
    return total;
}

inline void class_losses(const ClassOpinions& o, int column, double* l) {
    for (int j = 0; j < o.K + o.newtons; ++j) l[j] = -o.log_of(j, column);
}

// -ln of it, also where it is too small for a probability.
inline double mixed_loss(const ClassOpinions& o, const double* w, int column) {
    const double total = mixed_chance(o, w, column);
    if (total >= LEAST_CHANCE) return -log(total);
    double l[MOST_EXPERTS];
    class_losses(o, column, l);
    return mixed(w, o.K + o.newtons, l);
}

// The most probable of the first `known` classes, the first of equals; NaN before there is one.
inline double best_class(const ClassOpinions& o, const double* w, int known) {
    double best = -1.0, match = NAN;
    for (int column = 0; column < known; ++column) {
        const double chance = mixed_chance(o, w, column);
        if (!(chance > best)) continue;
        best = chance;
        match = column;
    }
    return match;
}

// A Newton step of the weights of the scales. The Hessian of the loss is the sum of p (v - mean)(v - mean)^T over the
// classes, v what the expert sees of a class: a step of Sherman and Morrison for each column.
inline void newton_scales(const ClassConstants& c, const Newton& n, const ClassOpinions& o, const double* chances,
                          int label, double weight) {
    const int K = o.K, fours = (K + 3) / 4;
    alignas(32) double mean[MOST_SCALES] = {}, d[MOST_SCALES] = {}, Pd[MOST_SCALES] = {};
    for (int column = 0; column < o.C; ++column) {
        const double p = copies(c, column) * chances[column];
        for (int k = 0; k < K; ++k) mean[k] += p * seen_log(o.logs[column * K + k]);
    }
    const auto times_P = [&] {
        for (int l = 0; l < fours; ++l) {
            D part = all(0.0);
            for (int k = 0; k < K; ++k) part += load(n.P + k * n.stride + 4 * l) * all(d[k]);
            store(Pd + 4 * l, part);
        }
    };
    for (int column = 0; column < o.C; ++column) {
        const double p = copies(c, column) * chances[column], b = weight * most(p, LEAST_CURVE);
        for (int k = 0; k < K; ++k) d[k] = seen_log(o.logs[column * K + k]) - mean[k];
        times_P();
        double q = 0.0;
        for (int k = 0; k < K; ++k) q += d[k] * Pd[k];
        const double shrink = b / (1.0 + b * most(q, 0.0));
        for (int l = 0; l < fours; ++l) {
            const D part = load(Pd + 4 * l);
            for (int k = 0; k < K; ++k) {
                double* to = n.P + k * n.stride + 4 * l;
                store(to, load(to) - all(shrink) * (all(Pd[k]) * part));
            }
        }
    }
    for (int k = 0; k < K; ++k) d[k] = mean[k] - seen_log(o.logs[label * K + k]);
    times_P();
    bool positive = true;
    for (int k = 0; k < K; ++k) {
        n.u[k] -= weight * Pd[k];
        positive = positive && n.P[k * n.stride + k] > 0.0;
    }
    if (!positive) begin_anew(n.P, n.stride, K);
}

// A Newton step of the weights of a constant and the columns, of each class as if it were learned against the rest.
inline void newton_columns(const ClassPass& p, const ClassOpinions& o, const double* chances, const double* columns,
                           int label, double weight) {
    alignas(32) double Px[CLASS_STRIDE];
    const int inputs = 1 + p.rows->used;
    for (int column = 0; column < o.C; ++column) {
        const double chance = chances[column], b = weight * most(chance * (1.0 - chance), LEAST_CURVE);
        double* u = p.newtons->W + column * CLASS_STRIDE;
        double* Q = p.newtons->Q + static_cast<std::size_t>(column) * CLASS_INPUTS * CLASS_STRIDE;
        const double d = 1.0 + b * curve_along(Q, CLASS_STRIDE, columns, inputs, Px);
        const double slope = column == label ? chance - 1.0 : chance;
        move_weights(u, Q, CLASS_STRIDE, Px, inputs, (weight * slope) / d, b / d);
    }
}

// The same of a constant that drifts.
inline void newton_constants(const ClassPass& p, const Newton& n, const ClassOpinions& o, const double* chances,
                             int label, double weight) {
    for (int column = 0; column < o.C; ++column) {
        double &bias = p.newtons->bias[column], &variance = p.newtons->variance[column];
        const double chance = chances[column], b = weight * most(chance * (1.0 - chance), LEAST_CURVE);
        const double e = 1.0 + b * variance, slope = column == label ? chance - 1.0 : chance;
        bias -= ((weight * slope) * variance) / e;
        variance = variance / e;
        if (variance < 1.0 / RIDGE) variance += n.kind->drift;
    }
}

// Labels that arrive late: the losses of the experts of a row that is only predicted are kept until it is learned. That
// the label is in the data already does no harm: nothing reads them before. The expert whose constant drifts is left
// out.
inline void keep_class_arrival(const MixPass& p, std::int64_t r, const ClassOpinions& o, int label) {
    if (p.out.arrivals == nullptr) return;
    double* to = p.out.arrivals + p.out.arrival_of[r] * arrival_numbers(o.K);
    for (int j = 0; j < arrival_numbers(o.K); ++j)
        to[j] = j < p.roster->count && j != p.roster->drift ? -o.log_of(j, label) : 0.0;
}

// A row that is learned; returns the loss of the mixture.
inline double learn_class_row(const ClassPass& p, const ClassOpinions& o, const RowFacts& f, std::int64_t r,
                              int label) {
    const MixPass& rows = *p.rows;
    const Roster& x = *rows.roster;
    Mixture& m = *rows.mixture;
    const int n = x.count;
    const double t = rows.tallies[ROWS] + 1.0, *arrival = arrival_of(rows, r);
    double l[MOST_EXPERTS], power[MOST_EXPERTS];
    class_losses(o, label, l);
    for (int j = 0; j < n; ++j) power[j] = o.chance_of(j, label);
    admit(m, n, f.weight);
    if (arrival != nullptr) {
        for (int j = 0; j < n; ++j) l[j] = j == x.drift ? l[j] : arrival[j];
        double w[MOST_EXPERTS];
        predicting_weights(x, m, w);
        if (x.drift >= 0) l[x.drift] = mixed(w, n, l);
        for (int j = 0; j < n; ++j) power[j] = exp(-l[j]);
    }
    double total = 0.0;
    for (int j = 0; j < n; ++j) total += m.w[j] * power[j];
    const bool direct = total >= LEAST_CHANCE;
    const double loss = direct ? -log(total) : mixed(m.w, n, l);
    for (int j = 0; j < n; ++j) m.totals[j] += f.weight * l[j];
    add_octave(x, m, l, loss, 0.0, f.weight);
    for (int i = 0; i < x.droppables; ++i) {
        const int j = x.droppable[i];
        m.without[OCTAVE_NOW][j] += f.weight * loss_without(m.w, power, l, n, j, total);
    }
    if (n > 1) share_out(m, n, l, f.weight, t, direct ? power : nullptr);
    const double weight = least(f.weight, MOST_WEIGHT);
    const double* columns = rows.columns + (r - rows.from) * COLUMN_STRIDE;
    for (int i = 0; i < x.newtons; ++i) {
        const double* chances = o.newton_chance + i * o.C;
        newton_scales(*p.classes, x.newton[i], o, chances, label, weight);
        if (x.newton[i].kind->columns) {
            newton_columns(p, o, chances, columns, label, weight);
        } else if (x.newton[i].kind->constant) {
            newton_constants(p, x.newton[i], o, chances, label, weight);
        }
    }
    keep_blocks(x.scales, m, l, f.weight, static_cast<std::int64_t>(t));
    end_octave(m, static_cast<std::int64_t>(t));
    return loss;
}

void mix_class_rows(const ClassPass& p) {
    const MixPass& rows = *p.rows;
    const ClassConstants& c = *p.classes;
    Mixture& m = *rows.mixture;
    double w[MOST_EXPERTS], *scores = p.scores;
    for (std::int64_t r = rows.from; r < rows.to; ++r) {
        const RowFacts& f = rows.facts[r - rows.from];
        const ClassOpinions o = class_opinions(p, r - rows.from);
        const int known = r == 0 ? c.seen_before : c.seen, label = column_of_label(c, f.y);
        const bool is_new = f.learns && !rows.frozen;
        if (!is_new) predicting_weights(*rows.roster, m, w);
        if (rows.out.scores != nullptr) rows.out.scores[r] = best_class(o, is_new ? m.w : w, known);
        for (int column = 0; p.scores != nullptr && column < c.seen; ++column) *scores++ = -mixed_loss(o, w, column);
        double loss = f.y;
        if (is_new) {
            loss = learn_class_row(p, o, f, r, label);
        } else if (f.y == f.y && (f.learns || rows.out.losses != nullptr)) {
            loss = mixed_loss(o, w, label);
        }
        if (rows.out.losses != nullptr) rows.out.losses[r] = loss;
        if (f.learns) add_totals(rows.tallies, *rows.totals, f.weight, loss);
        if (rows.weighs && f.y == f.y && f.weight > 0.0) {
            double l[MOST_EXPERTS];
            class_losses(o, label, l);
            weigh_experts(m, rows.roster->count, l, f.weight / m.facts[LARGEST_WEIGHT]);
        }
        if (!f.learns && !rows.weighs && f.y == f.y) keep_class_arrival(rows, r, o, label);
    }
}
