// What mixtures of all losses share: weights, shares, blocks and octaves of losses (docs/scales.md). Included by
// loops.inl; rules as in newton.inl.

constexpr double LEAST_CHANCE = 0x1p-900;   // a mixture that gave the label less works with logarithms
constexpr double LEAST_WEIGHT = 0x1p-1000;  // without a share an expert whose weight is 0 could never come back
constexpr double LARGEST_SHARE = 0x1p-10;
constexpr double LEAST_REST = 0x1p-20;  // of the weights: without an expert that has all the others' mean says nothing

inline double smallest(const double* v, int n) {
    double low = v[0];
    for (int j = 1; j < n; ++j) low = least(low, v[j]);
    return low;
}

// The least of the others.
inline double smallest_but(const double* v, int n, int but) {
    double low = v[but == 0 ? 1 : 0];
    for (int j = 0; j < n; ++j) low = j == but ? low : least(low, v[j]);
    return low;
}

inline void divide_by_sum(double* w, int n) {
    double total = 0.0;
    for (int j = 0; j < n; ++j) total += w[j];
    for (int j = 0; j < n; ++j) w[j] /= total;
}

// -ln sum_j w_j e^-l_j over the experts that have a weight: others may have losses far below all of theirs.
inline double mixed(const double* w, int n, const double* l) {
    double total = 0.0, low = INFINITY;
    for (int j = 0; j < n; ++j) low = w[j] > 0.0 ? least(low, l[j]) : low;
    for (int j = 0; j < n; ++j) total += w[j] > 0.0 ? w[j] * exp(low - l[j]) : 0.0;
    return low - log(total);
}

// The weights of a prediction whose row is not learned there and then: without the expert whose constant drifts, which
// is right for the next row only.
inline void predicting_weights(const Roster& x, const Mixture& m, double* w) {
    double rest = 0.0;
    for (int j = 0; j < x.count; ++j) rest += j == x.drift ? 0.0 : m.w[j];
    for (int j = 0; j < x.count; ++j) w[j] = x.drift < 0 ? m.w[j] : (j == x.drift ? 0.0 : m.w[j] / rest);
}

// The weights when the rate falls to `ratio` times what it was.
inline void cool(Mixture& m, int n, double ratio) {
    for (int j = 0; j < n; ++j) m.w[j] = pow(m.w[j], ratio);
    divide_by_sum(m.w, n);
}

// A new largest weight: no row may count more than 1.
inline void admit(Mixture& m, int n, double weight) {
    const double W = m.facts[LARGEST_WEIGHT];
    if (!(weight > W)) return;
    m.facts[LARGEST_WEIGHT] = weight;
    cool(m, n, W / weight);
}

// The part of the weights that is shared out after row t.
inline double share_of(double t) { return least(LARGEST_SHARE, 1.0 / (t + 1.0)); }

// Bayes' rule after a row in which expert j lost l_j; `power`_j is e^-l_j, or null. t counts this row.
inline void share_out(Mixture& m, int n, const double* l, double weight, double t, const double* power) {
    const double low = smallest(l, n), rate = weight / m.facts[LARGEST_WEIGHT];
    double total = 0.0;
    for (int j = 0; j < n; ++j) {
        m.w[j] *= power != nullptr && rate == 1.0 ? power[j] : exp(rate * (low - l[j]));
        total += m.w[j];
    }
    const double a = share_of(t);
    for (int j = 0; j < n; ++j) m.w[j] = (1.0 - a) * (m.w[j] / total) + a / n;
}

// What a retirement needs to know: docs/scales.md.
inline void keep_blocks(int count, Mixture& m, const double* l, double weight, std::int64_t t) {
    if (count <= WINDOW) return;
    for (int k = 0; k < count; ++k) m.block[k] += weight * l[k];
    if (t % BLOCK_ROWS != 0) return;
    const int windows = count - WINDOW + 1;
    const std::int64_t first = t - BLOCK_ROWS;
    const bool opens = first > 0 && (first & (first - 1)) == 0, closes = (t & (t - 1)) == 0;
    for (int i = 0; i <= windows; ++i) {
        if (opens) {
            m.windows[BEFORE][i] = m.windows[CURRENT][i];
            m.windows[CURRENT][i] = 0.0;
        }
        m.windows[CURRENT][i] += i < windows ? smallest(m.block + i, WINDOW) : smallest(m.block, count);
        if (closes) m.windows[LATEST][i] = m.windows[BEFORE][i] + m.windows[CURRENT][i];
    }
    for (int k = 0; k < count; ++k) m.block[k] = 0.0;
}

// The loss of the mixture without expert j, where the chance it gives the label is too small for a probability or j has
// all the weight: that of the best of the others.
inline double loss_without(const double* w, const double* power, const double* l, int n, int j, double total) {
    const double rest = 1.0 - w[j], chance = (total - w[j] * power[j]) / rest;
    if (total < LEAST_CHANCE || rest < LEAST_REST || !(chance > LEAST_CHANCE)) return smallest_but(l, n, j);
    return -log(chance);
}

// Losses of a row are counted above `base`, the least that any score has.
inline void add_octave(const Roster& x, Mixture& m, const double* l, double mixture_loss, double base, double weight) {
    for (int j = 0; j < x.count; ++j) m.octave[OCTAVE_NOW][j] += weight * (l[j] - base);
    m.octave_loss[OCTAVE_NOW] += weight * (mixture_loss - base);
}

inline void end_octave(Mixture& m, std::int64_t t) {
    if ((t & (t - 1)) != 0) return;
    for (int j = 0; j < MOST_EXPERTS; ++j) {
        m.octave[OCTAVE_BEFORE][j] = m.octave[OCTAVE_NOW][j];
        m.without[OCTAVE_BEFORE][j] = m.without[OCTAVE_NOW][j];
        m.octave[OCTAVE_NOW][j] = m.without[OCTAVE_NOW][j] = 0.0;
    }
    m.octave_loss[OCTAVE_BEFORE] = m.octave_loss[OCTAVE_NOW];
    m.octave_loss[OCTAVE_NOW] = 0.0;
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

// ---- labels that arrive late ----

// Keeps what the base experts say of a row that is only predicted, for when it is learned.
inline void keep_arrival(const MixPass& p, std::int64_t r, const double* scores, double coin) {
    if (p.out.arrivals == nullptr) return;
    double* to = p.out.arrivals + p.out.arrival_of[r] * arrival_numbers(p.roster->scales);
    for (int k = 0; k < p.roster->scales; ++k) to[k] = scores[k];
    to[p.roster->scales] = coin;
    to[p.roster->scales + 1] = 0.0;
}

inline const double* arrival_of(const MixPass& p, std::int64_t r) {
    return p.out.arrivals == nullptr ? nullptr
                                     : p.out.arrivals + p.out.arrival_of[r] * arrival_numbers(p.roster->scales);
}

inline void add_totals(double* tallies, Totals& totals, double weight, double loss) {
    totals.loss += weight * loss;
    totals.weight += weight;
    totals.rows += 1;
    tallies[LOSS] += weight * loss;
    tallies[WEIGHT] += weight;
    tallies[ROWS] += 1.0;
}

// What the experts say of a row.
struct Said {
    alignas(32) double expert[MOST_EXPERTS];  // cut to the range of the labels
    double raw[MOST_NEWTONS];                 // the Newton experts, not cut
    NewtonInputs inputs;
};

// The scores of the Newton experts, of the labels alone and of the coin behind those of the scales.
inline void add_others(const MixPass& p, const RowFacts& f, std::int64_t row, double coin, Said& s) {
    const Roster& x = *p.roster;
    const double gain = p.constants->loss->stack_gain;
    s.inputs.columns = p.columns + row * COLUMN_STRIDE;
    s.inputs.used = p.used;
    for (int i = 0; i < x.newtons; ++i) {
        s.raw[i] = newton_score(x.newton[i], s.inputs, f.offset, f.unit);
        s.expert[x.scales + i] = cut_to(gain * s.raw[i], f.low, f.high);
    }
    if (x.offset >= 0) s.expert[x.offset] = f.alone;
    if (x.coin >= 0) s.expert[x.coin] = cut_to(coin, f.low, f.high);
}
