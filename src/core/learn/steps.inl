// The arithmetic of a weight and of its step, for one scale and for several, and what a receipt adds up. Included by
// loops.inl inside a namespace. No template or inline function of the standard library may be used here.
//
// All arithmetic is in double, whatever a cell stores; a stored number is rounded once, when it is stored.
// A sum over a row adds every fourth entry from the first on, from the second on, and so on: four sums
// s0..s3, together (s0 + s1) + (s2 + s3); the intercept comes last. The same bits for every instruction set
// and however the rows are cut into batches.

inline double most(double a, double b) { return b > a ? b : a; }
inline double least(double a, double b) { return b < a ? b : a; }
inline double within(double v, double bound) { return least(most(v, -bound), bound); }

// One branch a row's entry that always goes the same way is cheaper to have than a loop for each type of values.
inline double value_of(const Rows& rows, std::int64_t p) {
    return rows.wide ? static_cast<const double*>(rows.values)[p]
                     : static_cast<double>(static_cast<const float*>(rows.values)[p]);
}

// Entries between the one worked on and the one fetched where nothing else is known of the rows; this and what follows
// was measured with benchmarks/micro/kernel.py.
constexpr std::int64_t AHEAD = 112;
// Of four entries to fetch, so many are fetched while predicting and the others while learning: the memory
// then works during both.
constexpr int SPLIT = 1;

// Which entries of a batch are fetched: those `ahead` of the one worked on, none from `end` on.
struct Lookahead {
    std::int64_t end, ahead;
};

// Predicting a row asks for entries faster than it fetches others, SPLIT of four: what was fetched before has to be
// enough up to its last entry, and so the longer the rows are, the further ahead. Cells of two rows then have to stay
// in the second level of the cache. Those of very long rows do not, and are fetched while their own row is predicted.
inline Lookahead lookahead_of(const Rows& rows) {
    constexpr std::int64_t LEAST = 84, LONG_ROW = 1400, WITHIN_ROW = 256;
    const std::int64_t end = rows.indptr[rows.count], mean = rows.count > 0 ? end / rows.count : 0;
    const std::int64_t ahead = LEAST + (4 - SPLIT) * mean / 4;
    return {end, mean > LONG_ROW ? WITHIN_ROW : (ahead > mean ? ahead : mean)};
}

// What is hardly ever called, and would take registers from what is.
#define FTPRL_OUTSIDE __attribute__((noinline))

inline void fetch(const void* p) { __builtin_prefetch(p, 1, 3); }
// Into the second level of the cache: many more lines can be on their way there than to the first, where what is read
// meanwhile would have to wait as well.
inline void fetch_to_second_level(const void* p) { __builtin_prefetch(p, 0, 2); }

// No gradient is larger than this, so that z, R and S, which add them up, stay in the range of a cell.
template <class T>
constexpr double LARGEST_GRADIENT = sizeof(T) == sizeof(float) ? 0x1p96 : 0x1p400;

template <class T>
inline D cut(D g) {
    return larger(smaller(g, all(LARGEST_GRADIENT<T>)), all(-LARGEST_GRADIENT<T>));
}

// Whether no gradient of a row with such a slope and values up to `largest` is large enough to be cut: a product is
// rounded to no less than a smaller one.
template <class T>
inline bool is_small(double slope, double largest) {
    return fabs(slope) * largest <= LARGEST_GRADIENT<T>;
}

// The constants of the play, a copy a lane.
struct Play {
    D h, minus_h, beta, l1, hl2, lower, upper;
};

inline Play play_of(const Constants& c) {
    const double h = c.h[0];
    return {all(h), all(-h), all(c.beta), all(c.l1), all(h * c.l2), all(c.lower), all(c.upper)};
}

// Between which numbers the plays of four lanes are.
struct Limits {
    D lower, upper;
};

inline Limits limits_of(const Play& c) { return {c.lower, c.upper}; }

// Those of one cell in all lanes.
inline Limits limits_at(const Play& c, const BoxTable& boxes, std::uint64_t cell) {
    if (boxes.kinds == nullptr) return limits_of(c);
    const double* ends = boxes.ends[boxes.kinds[cell]];
    return {all(ends[0]), all(ends[1])};
}

// Those of four cells. The branch always goes the same way.
inline Limits limits_at(const Play& c, const BoxTable& boxes, const std::uint32_t* cells) {
    if (boxes.kinds == nullptr) return limits_of(c);
    const double *a = boxes.ends[boxes.kinds[cells[0]]], *b = boxes.ends[boxes.kinds[cells[1]]];
    const double *e = boxes.ends[boxes.kinds[cells[2]]], *f = boxes.ends[boxes.kinds[cells[3]]];
    return {four(a[0], b[0], e[0], f[0]), four(a[1], b[1], e[1], f[1])};
}

// Those of the last cells of a row, of which there are fewer than four.
inline Limits limits_of_rest(const Play& c, const BoxTable& boxes, const std::uint32_t* cells, int left) {
    const std::uint32_t some[4] = {cells[0], cells[left > 1 ? 1 : 0], cells[left > 2 ? 2 : 0], cells[0]};
    return limits_at(c, boxes, some);
}

inline void fetch_kind(const BoxTable& boxes, std::uint32_t cell) {
    if (boxes.kinds != nullptr) fetch(boxes.kinds + cell);
}

// h (Q + l2 M²): the strength of the regulariser times the scale; penalties are on weights times the unit M of their
// feature. Unconstrained means no l1, no l2 and no bounds: the same numbers from fewer instructions.
template <bool unconstrained>
inline D scaled_strength(const Play& c, D R, D M) {
    const D hQ = M * (c.beta * M + R);
    if constexpr (unconstrained) return hQ;
    return hQ + c.hl2 * (M * M);
}

// clip( -sgn(z) (|z| - l1 M)_+ / (Q + l2 M²) ), both sides of the fraction times h; clip(0) where that is 0.
template <bool unconstrained>
inline D play(const Play& c, const Limits& limits, D z, D R, D M) {
    const D den = scaled_strength<unconstrained>(c, R, M);
    if constexpr (unconstrained) return where_positive(den, z * c.minus_h / den);
    const D x = where_positive(den, signed_as(larger(size(z) - c.l1 * M, all(0.0)), z) * c.minus_h / den);
    return smaller(larger(x, limits.lower), limits.upper);
}

template <bool unconstrained>
inline D play(const Play& c, D z, D R, D M) {
    return play<unconstrained>(c, limits_of(c), z, R, M);
}

// Four coordinates of a row between their prediction and their step; M and S as their cells hold them.
template <class T>
struct Block {
    D z, R, v, x;
    Four<T> M, S;
};
static_assert(sizeof(Block<double>) == 4 * SCRATCH * sizeof(double), "the scratch is measured in these");

// What a receipt adds up over a row: Tally and RoundingSum.
struct RegretSums {
    D linear, proximal, stability;
    D drift, linear_size, step_size;
};

FTPRL_INSIDE RegretSums no_sums() {
    const D none = all(0.0);
    return {none, none, none, none, none, none};
}

// `moved` is z after a step before it is rounded to what a cell holds. The stored z acts as if the gradient had been
// g + lost, which costs the bound the difference of the two stabilities less lost x: lost (g + lost/2) / (Q + l2) less
// lost x. In a cell of float64 what is lost cannot be seen; it is at most 2^-52 |z|.
template <class T>
FTPRL_INSIDE void add_bounded_rounding(const Play& c, const Block<T>& b, D g, D moved, D z, D den, RegretSums& sums) {
    const D per_strength = smaller(where_positive(den, c.h / den), all(DBL_MAX));  // 1 / (Q + l2)
    const D size_x = size(b.x), size_g = size(g);
    D lost_at_most = where_positive(size(b.v), all(0x1p-52) * size(z));  // nothing in lanes beyond the end of a row
    if constexpr (sizeof(T) == sizeof(float)) {
        const D lost = z - moved;
        sums.drift += lost * ((g + all(0.5) * lost) * per_strength - b.x);
        lost_at_most = size(lost);
    }
    sums.step_size += (size_g + size(z) + lost_at_most) * (size_x + (size_g + lost_at_most) * per_strength);
}

// A z below the normal numbers of a float may have lost as much as it is. These lanes get the part of second order of
// the drift and the sizes of their step in full.
FTPRL_OUTSIDE void add_lost_below_normal(const Play& c, D x, D g, D lost, D z, D den, D& drift, D& step) {
    const D below = all(FLT_MIN) - size(z), size_g = size(g), size_lost = size(lost);
    const D per_strength = smaller(where_positive(den, c.h / den), all(DBL_MAX));
    drift += where_positive(below, all(0.5) * lost * lost * per_strength);
    step =
        step - where_positive(below, (size_g + size(z) + size_lost) * (size(x) + (size_g + size_lost) * per_strength));
}

// The same where x = -z / Q. The part of second order, at most 2^-49 z^2 / Q, is left to the bound on rounding, and of
// the sizes of a step |z x| is enough: the others are at most those of the sums without signs (docs/receipt.md). `pull`
// is g / Q.
template <class T>
FTPRL_INSIDE void add_rounding(const Play& c, const Block<T>& b, D g, D pull, D moved, Four<T> stored, D den,
                               RegretSums& sums) {
    D step = b.z * b.x;  // never above 0
    if constexpr (sizeof(T) == sizeof(float)) {
        const D z = wide(stored), lost = z - moved;
        D drift = lost * (pull - b.x);
        if (any_below_normal(stored) && any_nonzero(lost)) {
            D rare_drift = drift, rare_step = step;  // the others stay in registers
            add_lost_below_normal(c, b.x, g, lost, z, den, rare_drift, rare_step);
            drift = rare_drift;
            step = rare_step;
        }
        sums.drift += drift;
    }
    sums.step_size = sums.step_size - step;
}

// What one block becomes: z and R after the gradients, as a cell holds them; and the sums of a receipt. Returns the
// gradients. `small`: none of them is large enough to be cut.
template <class T, bool unconstrained, bool receipt, bool small = false>
FTPRL_INSIDE D step(const Play& c, D inverse, D slope, const Block<T>& b, Four<T>& z, Four<T>& R, RegretSums& sums) {
    D g = slope * b.v;
    if constexpr (!small) g = cut<T>(g);
    R = narrow<T>(root(b.R * b.R + g * g));
    // The square of a float is exact in double, hence the root is at least R; that of a double may be nothing.
    if constexpr (sizeof(T) == sizeof(double)) R = larger(R, b.R);
    // From what is stored: Q is then what z assumes, also when R has stalled.
    const D M = wide(b.M), after = wide(R);
    const D sigma = M * (after - b.R) * inverse;
    const D moved = b.z + (g - sigma * b.x);
    D kept = moved;
    // A bound may hold x far from what z asks for, and sigma x is then not tied to z.
    if constexpr (!unconstrained && sizeof(T) == sizeof(float))
        kept = larger(smaller(moved, all(FLT_MAX)), all(-FLT_MAX));
    z = narrow<T>(kept);
    if constexpr (receipt) {
        const D den = scaled_strength<unconstrained>(c, after, M);
        const D linear = g * b.x;
        sums.linear += linear;
        sums.linear_size += size(linear);
        sums.proximal += sigma * b.x * b.x;
        const D pull = where_positive(den, g * c.h / den);  // g / (Q + l2): one division for two sums
        sums.stability += g * pull;
        if constexpr (unconstrained) add_rounding<T>(c, b, g, pull, moved, z, den, sums);
        if constexpr (!unconstrained) add_bounded_rounding<T>(c, b, g, moved, wide(z), den, sums);
    }
    return g;
}

// ---- labels in any unit ----

template <class T>
constexpr double LARGEST_OF = sizeof(T) == sizeof(float) ? FLT_MAX : DBL_MAX;

// The units of a row, after its label.
struct Units {
    D over_psi, over_kappa, kappa;
};

// For cells of type T: with kappa as they hold it, since Q has to be what is read back.
template <class T>
inline Units units_of(const RowFacts& facts) {
    const double kappa = static_cast<T>(facts.kappa);
    return {all(1.0 / facts.psi), all(1.0 / kappa), all(kappa)};
}

// 1 over h Q, with kappa left out; 0 where nothing was met.
inline D rate_of(const Play& c, D R, D s) {
    const D strength = s * (c.beta * s + R);
    return smaller(where_positive(strength, c.h / strength), all(DBL_MAX));
}

// The same with kappa and l2: 1 / (Q + l2 s²).
template <bool unconstrained>
inline D rate_with(const Play& c, D rate, D kappa, D s) {
    const D own = rate * kappa;
    if constexpr (unconstrained) return own;
    const D finite = smaller(own, all(DBL_MAX));  // infinity times an l2 of 0 is no number
    return finite / (all(1.0) + finite * (c.hl2 / c.h * (s * s)));
}

// The play with a given rate.
template <bool unconstrained>
inline D play_at(const Play& c, const Limits& limits, D z, D rate, D kappa, D s) {
    if constexpr (unconstrained) return opposite(z * rate) * kappa;
    const D x = signed_as(larger(size(z) - c.l1 * s, all(0.0)), opposite(z)) * rate_with<false>(c, rate, kappa, s);
    return smaller(larger(x, limits.lower), limits.upper);
}

template <bool unconstrained>
inline D play_at(const Play& c, D z, D rate, D kappa, D s) {
    return play_at<unconstrained>(c, limits_of(c), z, rate, kappa, s);
}

// As add_bounded_rounding; sigma x may be larger than z, where kappa falls.
template <class T>
inline void add_labelled_sums(const Block<T>& b, D g, D sigma, D moved, D z, D rate, RegretSums& sums) {
    const D per_strength = smaller(rate, all(DBL_MAX)), size_x = size(b.x), size_g = size(g);
    const D pulled = size_g + size(sigma * b.x), proximal = sigma * b.x * b.x;
    D lost_at_most = where_positive(size(b.v), all(0x1p-52) * (size(z) + pulled));
    if constexpr (sizeof(T) == sizeof(float)) {
        const D lost = z - moved;
        sums.drift += lost * ((g + all(0.5) * lost) * per_strength - b.x);
        lost_at_most = size(lost);
    }
    sums.linear += g * b.x;
    sums.proximal += proximal;
    sums.stability += g * g * per_strength;
    sums.linear_size += size_g * size_x + size(proximal);
    sums.step_size += (pulled + size(z) + lost_at_most) * (size_x + (size_g + lost_at_most) * per_strength);
}

// One block after the gradients; `own` is 1 over the kappa it had. `small`: no gradient is large enough to be cut.
template <class T, bool unconstrained, bool receipt, bool small = false>
FTPRL_INSIDE D labelled_step(const Play& c, D inverse, const Units& units, bool kinked, D slope, const Block<T>& b,
                             D own, Four<T>& z, Four<T>& R, RegretSums& sums) {
    D g = slope * b.v;
    if constexpr (!small) g = cut<T>(g);
    D in_units = g * units.over_psi;
    if constexpr (!small) in_units = cut<T>(in_units);
    R = narrow<T>(root(b.R * b.R + in_units * in_units));
    if constexpr (sizeof(T) == sizeof(double)) R = larger(R, b.R);
    const D M = wide(b.M), after = wide(R);
    D rise = after - b.R;
    if (kinked) rise = (c.beta * M + after) * units.over_kappa - (c.beta * M + b.R) * own;
    const D sigma = M * rise * inverse;
    const D moved = b.z + (g - sigma * b.x);
    z = narrow<T>(larger(smaller(moved, all(LARGEST_OF<T>)), all(-LARGEST_OF<T>)));
    if constexpr (receipt) {
        const D rate = rate_with<unconstrained>(c, rate_of(c, after, M), units.kappa, M);
        add_labelled_sums<T>(b, g, sigma, moved, wide(z), rate, sums);
    }
    return g;
}

inline double cut_to(double v, double low, double high) { return v < low ? low : (v > high ? high : v); }

// The score at which the slope is taken: within the range of the labels, but what is more than its width beyond it
// counts. Weights that one label far from all others has made would hardly move by the slope at the end of the range.
inline double start_of(const Loss& loss, const RowFacts& row, double score) {
    const double s = cut_to(score, row.hull_low, row.hull_high),
                 beyond = fabs(score - s) - (row.hull_high - row.hull_low);
    if (!(beyond > 0.0) || !loss.predicts_labels()) return s;
    return score < s ? s - beyond : s + beyond;
}

// The slope of a row for weight 1; `reach` is by how much a slope of 1 moves the score, without the weight and kappa.
inline double slope_of(const Constants& c, const RowFacts& row, double score, double reach) {
    const double A = row.weight * row.kappa * reach;
    return c.loss->implicit(start_of(*c.loss, row, score), row.learned, A, row.label_unit, c.tau);
}

// Whether the slope was that of a score beyond the range: the row term is then that of a longer step, of which the cut
// takes back more.
inline bool is_far(const Loss& loss, const RowFacts& row, double score) {
    return start_of(loss, row, score) != cut_to(score, row.hull_low, row.hull_high);
}

// The size of a loss before anything cancels out.
inline double size_of_loss(const Loss& loss, double value, double score, double y) {
    const double linear =
        loss.rule == LabelRule::log_mean ? y * score : (loss.rule == LabelRule::log_ratio ? score : 0.0);
    return fabs(value) + 2.0 * fabs(linear);
}

// What a receipt adds up over the rows, for scale number k. Counts that were all 0 have no unit: these rows are left
// out.
inline void add_row_sums(const Constants& c, const RowFacts& row, double score, double slope, double prediction,
                         double prediction_loss, double (*sums)[MOST_SCALES], int k) {
    const Loss& loss = *c.loss;
    const bool counts = loss.rule == LabelRule::log_mean;
    if (counts && row.label_unit == 0.0) return;
    const double s = cut_to(score, row.hull_low, row.hull_high), over_unit = counts ? 1.0 / row.label_unit : 1.0;
    const RowTerm term = loss.row_term(s, row.y, slope, row.label_unit, c.tau);
    const double beyond = slope * (s - score);  // above 0 where a cut moved the score away from the label
    double tail = 0.0;
    const double value = loss.at(s, row.y, c.tau, tail).value;
    const double label = loss.has_log_link() ? 0.0 : fabs(row.y);
    const double losses = size_of_loss(loss, value, s, row.y) + size_of_loss(loss, prediction_loss, prediction, row.y);
    sums[ROW_TERMS][k] += row.weight * (term.value + (beyond > 0.0 || is_far(loss, row, score) ? beyond : 0.0));
    sums[SCALE_LOSS][k] += row.weight * (value * over_unit);
    sums[PREDICTION_LOSS][k] += row.weight * (prediction_loss * over_unit);
    sums[ROW_WEIGHT][k] += row.weight * over_unit;
    sums[ROW_SIZES][k] += row.weight * (term.size + fabs(slope) * (fabs(s) + fabs(score) + fabs(row.offset) + label) +
                                        losses * over_unit);
}
