// The kernels, included once for each instruction set with FTPRL_ISA (a namespace), FTPRL_KERNELS (the
// table), FTPRL_SCALES and FTPRL_CLASSES (those of scales.inl and classes.inl) defined. No template or inline function
// of the standard library may be used here.
//
// All arithmetic is in double, whatever a cell stores; a stored number is rounded once, when it is stored.
// A sum over a row adds every fourth entry from the first on, from the second on, and so on: four sums
// s0..s3, together (s0 + s1) + (s2 + s3); the intercept comes last. The same bits for every instruction set
// and however the rows are cut into batches.
#include <float.h>
#include <math.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "learners/classes.hpp"
#include "learners/kernel.hpp"
#include "learners/scales.hpp"

namespace ftprl {
namespace FTPRL_ISA {
namespace {

#include "learners/lanes.inl"

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
    return {all(c.h), all(-c.h), all(c.beta), all(c.l1), all(c.h * c.l2), all(c.lower), all(c.upper)};
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

// The products x v of four coordinates, of which only the first `count` count. For a row that will be learned, M is
// raised first and the block is kept. Its parts are written one by one: a compiler may copy a whole struct in
// pieces, and reading a number back that was written in two pieces takes long.
template <class T, class V, bool unconstrained, bool raise>
FTPRL_INSIDE D predict_block(const Play& c, const Limits& limits, const Cell<T>* const* at, Four<V> values, int count,
                             Block<T>* kept) {
    Four<T> z, R, M, S;
    gather(at, z, R, M, S);
    D v = wide(values);
    if constexpr (raise && sizeof(T) == sizeof(V)) M = larger(M, size(values));
    if constexpr (raise && sizeof(T) != sizeof(V)) M = larger(M, narrow<T>(size(v)));
    const D wide_z = wide(z), wide_R = wide(R);
    D x = play<unconstrained>(c, limits, wide_z, wide_R, wide(M));
    if (count < 4) {
        v = only_first(v, count);
        x = only_first(x, count);
    }
    if constexpr (raise) {
        kept->z = wide_z;
        kept->R = wide_R;
        kept->v = v;
        kept->x = x;
        kept->M = M;
        kept->S = S;
    }
    return x * v;
}

// Fetches four entries ahead; if they are of the row that is worked on, which is a long one, predicting needs them all.
template <bool raise, class Record>
FTPRL_INSIDE void fetch_predicting(const Record* cells, const std::uint32_t* next, bool of_this_row) {
    for (int j = 0; j < SPLIT; ++j) fetch_to_second_level(cells + next[j]);
    if (raise && !of_this_row) return;
    for (int j = SPLIT; j < 4; ++j) fetch_to_second_level(cells + next[j]);
}
template <class Record>
FTPRL_INSIDE void fetch_learning(const Record* cells, const std::uint32_t* next, bool of_this_row) {
    if (of_this_row) return;
    for (int j = SPLIT; j < 4; ++j) fetch_to_second_level(cells + next[j]);
}

// The score of entries [from, to) without the intercept. A row that will be learned leaves its blocks in `scratch`.
template <class T, class V, bool unconstrained, bool raise, class Record>
FTPRL_INSIDE double predict(const Rows& rows, const Play& c, const BoxTable& boxes, const Record* cells,
                            std::int64_t from, std::int64_t to, const Lookahead& look, Block<T>* scratch) {
    const std::uint32_t* index = rows.indices;
    const V* value = static_cast<const V*>(rows.values);
    // Near the end of the batch the row itself is fetched once more, which costs little, rather than asked about.
    const std::uint32_t* next = index + (to + look.ahead <= look.end ? look.ahead : 0);
    const std::int64_t whole = to - (to - from) % 4;
    const Cell<T>* at[4];
    D total = all(0.0);
    std::int64_t p = from;
    for (; p < whole; p += 4) {
        fetch_predicting<raise>(cells, next + p, p + look.ahead < to);
        for (int j = 0; j < 4; ++j) at[j] = cell_of(cells + index[p + j]);
        Limits limits = limits_of(c);
        if constexpr (!unconstrained) {
            for (int j = 0; j < 4; ++j) fetch_kind(boxes, next[p + j]);
            limits = limits_at(c, boxes, index + p);
        }
        total +=
            predict_block<T, V, unconstrained, raise>(c, limits, at, load(value + p), 4, raise ? scratch++ : nullptr);
    }
    if (p < to) {
        const int left = static_cast<int>(to - p);
        for (int j = 0; j < left && j < (raise ? SPLIT : 4); ++j) fetch_to_second_level(cells + next[p + j]);
        for (int j = 0; j < 4; ++j) at[j] = cell_of(cells + index[j < left ? p + j : p]);
        // Read on into the next row where there is one; those lanes are then forgotten.
        Four<V> values;
        if (p + 4 <= look.end) {
            values = load(value + p);
        } else {
            V some[4] = {0, 0, 0, 0};
            for (int j = 0; j < left; ++j) some[j] = value[p + j];
            values = load(some);
        }
        Limits limits = limits_of(c);
        if constexpr (!unconstrained) limits = limits_of_rest(c, boxes, index + p, left);
        total += predict_block<T, V, unconstrained, raise>(c, limits, at, values, left, raise ? scratch : nullptr);
    }
    return sum(total);
}

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

// Add the gradients of some entries of a row to the S beside their cells, which are those of records of this type.
template <class T>
FTPRL_INSIDE void add_gradients(const SummedCell<T>*, Cell<T>* const* at, int count, D g) {
    alignas(32) double gradients[4];
    store(gradients, g);
    for (int j = 0; j < count; ++j) reinterpret_cast<SummedCell<T>*>(at[j])->S += gradients[j];
}

// Cells without one hold S themselves, or need none.
template <class T>
inline void add_gradients(const Cell<T>*, Cell<T>* const*, int, D) {}

template <class T, bool unconstrained, bool receipt, bool small, class Record>
FTPRL_INSIDE void learn_row(const Rows& rows, const Play& c, Record* cells, std::int64_t from, std::int64_t to,
                            const Lookahead& look, D inverse, D slope, Block<T>* scratch, RegretSums& sums) {
    const std::uint32_t* index = rows.indices;
    const std::uint32_t* next = index + (to + look.ahead <= look.end ? look.ahead : 0);
    const std::int64_t whole = to - (to - from) % 4;
    Cell<T>* at[4];
    Four<T> z, R;
    std::int64_t p = from;
    for (; p < whole; p += 4) {
        fetch_learning(cells, next + p, p + look.ahead < to);
        for (int j = 0; j < 4; ++j) at[j] = cell_of(cells + index[p + j]);
        const D g = step<T, unconstrained, receipt, small>(c, inverse, slope, *scratch, z, R, sums);
        scatter(at, z, R, scratch->M, narrow<T>(wide(scratch->S) + g));
        add_gradients(cells, at, 4, g);
        ++scratch;
    }
    if (p < to) {
        const int left = static_cast<int>(to - p);
        for (int j = SPLIT; j < left; ++j) fetch_to_second_level(cells + next[p + j]);
        Cell<T> none;
        for (int j = 0; j < 4; ++j) at[j] = j < left ? cell_of(cells + index[p + j]) : &none;
        const D g = step<T, unconstrained, receipt, small>(c, inverse, slope, *scratch, z, R, sums);
        scatter(at, z, R, scratch->M, narrow<T>(wide(scratch->S) + g));
        add_gradients(cells, at, left, g);
    }
}

// The same for the few rows with gradients that may have to be cut.
template <class T, bool unconstrained, bool receipt, class Record>
FTPRL_OUTSIDE RegretSums learn_row_with_cuts(const Rows& rows, const Play& c, Record* cells, std::int64_t from,
                                             std::int64_t to, const Lookahead& look, D inverse, D slope,
                                             Block<T>* scratch) {
    RegretSums sums = no_sums();
    learn_row<T, unconstrained, receipt, false>(rows, c, cells, from, to, look, inverse, slope, scratch, sums);
    return sums;
}

// The intercept's cell in all lanes, of which the first counts: a coordinate of value 1, without l1, l2 and bounds.
inline Block<double> intercept_block(const double* cell, const Play& c) {
    Block<double> b = {all(cell[0]), all(cell[1]), all(1.0), all(0.0), all(cell[2]), all(cell[3])};
    b.x = play<true>(c, b.z, b.R, b.M);
    return b;
}

template <class Record>
inline void fetch_first(const Rows& rows, const Lookahead& look, const Record* cells) {
    for (std::int64_t p = 0; p < look.ahead && p < look.end; ++p) fetch_to_second_level(cells + rows.indices[p]);
}

// A row's loss that is still to be worked out and added up.
struct PendingLoss {
    double value, tail, weight;
    double* to;  // null when nobody asked
};

FTPRL_INSIDE void add_loss(const PendingLoss& pending, double* tallies, Totals& batch) {
    const double loss = total_loss(pending.value, pending.tail);
    if (pending.to != nullptr) *pending.to = loss;
    batch.loss += pending.weight * loss;
    batch.weight += pending.weight;
    batch.rows += 1;
    tallies[LOSS] += pending.weight * loss;
    tallies[WEIGHT] += pending.weight;
    tallies[ROWS] += 1.0;
}

// Add what one row gave to the sums of a receipt; the intercept's part is in the first lane.
FTPRL_INSIDE void add_single_sums(const State& state, const RegretSums& sums, const RegretSums& own, D slope) {
    double (*rounding)[MOST_SCALES] = state.receipt.rounding;
    alignas(32) double row[8];
    store(row, sums_of(sums.linear, sums.proximal, sums.stability, sums.drift) +
                   four(first(own.linear), first(own.proximal), first(own.stability), first(own.drift)));
    store(row + 4, sums_of(sums.linear_size, sums.step_size, sums.linear_size, sums.step_size) +
                       four(first(own.linear_size), first(own.step_size), 0.0, 0.0));
    state.tallies[LINEAR] += row[0];
    state.tallies[PROXIMAL] += row[1];
    state.tallies[STABILITY] += row[2];
    rounding[DRIFT][0] += row[3];
    rounding[LINEAR_SIZE][0] += row[4];
    rounding[STEP_SIZE][0] += row[5];
    rounding[SLOPES][0] += fabs(first(slope));
}

template <class T, class V, bool unconstrained, bool receipt>
Totals learn(const Rows& rows, const Constants& constants, const State& state, const RowOutputs& out, double* buffer) {
    using Record = typename RecordOf<T, receipt, false>::type;
    Record* cells = static_cast<Record*>(state.cells);
    Block<T>* scratch = reinterpret_cast<Block<T>*>(buffer);
    const Play c = play_of(constants);
    const D inverse = all(1.0 / constants.h);
    const Lookahead look = lookahead_of(rows);
    double* tallies = state.tallies;
    Totals batch = {0.0, 0.0, 0};
    PendingLoss pending = {0.0, 0.0, 0.0, nullptr};
    bool any = false;
    fetch_first(rows, look, cells);
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const std::int64_t from = rows.indptr[r];
        const std::int64_t to = rows.indptr[r + 1];
        const double y = rows.y[r];
        const double weight = rows.weight[r];
        const bool labeled = y == y;
        const bool learns = labeled && weight > 0.0;
        Block<double> base = intercept_block(state.intercept, c);
        const double shift = constants.intercept ? first(base.x) : 0.0;
        const double score =
            (learns ? predict<T, V, unconstrained, true>(rows, c, constants.boxes, cells, from, to, look, scratch)
                    : predict<T, V, unconstrained, false>(rows, c, constants.boxes, cells, from, to, look, scratch)) +
            shift;
        if (out.scores != nullptr) out.scores[r] = score;
        double tail = 0.0;
        if (!learns) {
            if (out.losses == nullptr) continue;
            if (labeled) {
                const double value = constants.loss->at(score, y, constants.tau, tail).value;
                out.losses[r] = total_loss(value, tail);
            } else {
                out.losses[r] = y;
            }
            continue;
        }
        const LossAtScore row_loss = constants.loss->at(score, y, constants.tau, tail);
        // The loss of the row before, while this row's slope is on its way.
        if (any) add_loss(pending, tallies, batch);
        pending = {row_loss.value, tail, weight, out.losses == nullptr ? nullptr : out.losses + r};
        any = true;
        const D slope = all(weight * row_loss.slope);
        RegretSums sums = no_sums(), own_sums = no_sums();
        if (is_small<T>(first(slope), rows.largest)) {
            learn_row<T, unconstrained, receipt, true>(rows, c, cells, from, to, look, inverse, slope, scratch, sums);
        } else {
            sums =
                learn_row_with_cuts<T, unconstrained, receipt>(rows, c, cells, from, to, look, inverse, slope, scratch);
        }
        if (constants.intercept) {
            D z, R;
            const D g = step<double, true, receipt>(c, inverse, slope, base, z, R, own_sums);
            state.intercept[0] = first(z);
            state.intercept[1] = first(R);
            state.intercept[3] = first(base.S + g);
        }
        if constexpr (receipt) add_single_sums(state, sums, own_sums, slope);
    }
    if (any) add_loss(pending, tallies, batch);
    return batch;
}

template <class T, class V, bool unconstrained, bool receipt>
void score(const Rows& rows, const Constants& constants, const State& state, double* scores) {
    const auto* cells = static_cast<const typename RecordOf<T, receipt, false>::type*>(state.cells);
    const Play c = play_of(constants);
    const double shift = constants.intercept ? first(intercept_block(state.intercept, c).x) : 0.0;
    const Lookahead look = lookahead_of(rows);
    fetch_first(rows, look, cells);
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const double part = predict<T, V, unconstrained, false>(
            rows, c, constants.boxes, cells, rows.indptr[r], rows.indptr[r + 1], look, static_cast<Block<T>*>(nullptr));
        scores[r] = part + shift;
    }
}

// Whole numbers as long as a float and a double.
template <class V>
struct BitsOf {
    using type = std::uint64_t;
};
template <>
struct BitsOf<float> {
    using type = std::uint32_t;
};

// The bits of |v|: sizes are in the order of these numbers, NaN above all others.
template <class V>
inline typename BitsOf<V>::type bits_of_size(V v) {
    typename BitsOf<V>::type bits;
    memcpy(&bits, &v, sizeof v);
    return bits & ~(typename BitsOf<V>::type{1} << (8 * sizeof v - 1));
}

// By differences in place of comparisons, and the bits of all indices where they say enough: what every instruction set
// has for several numbers at once.
template <class V>
Scan scan(const Rows& rows, std::uint64_t dim) {
    using Bits = typename BitsOf<V>::type;
    const V* values = static_cast<const V*>(rows.values);
    const std::int64_t end = rows.indptr[rows.count];
    const Bits limit = bits_of_size(static_cast<V>(LIMIT)), small = bits_of_size(static_cast<V>(SMALL_VALUE));
    std::uint32_t largest = 0;
    Bits beyond = 0, large = 0;    // their first bits are set by a difference below 0
    if ((dim & (dim - 1)) == 0) {  // a power of two: all indices are below it when all their bits are
        for (std::int64_t p = 0; p < end; ++p) {
            largest |= rows.indices[p];
            beyond |= limit - bits_of_size(values[p]);
            large |= small - bits_of_size(values[p]);
        }
    } else {
        for (std::int64_t p = 0; p < end; ++p) {
            largest = rows.indices[p] > largest ? rows.indices[p] : largest;
            beyond |= limit - bits_of_size(values[p]);
            large |= small - bits_of_size(values[p]);
        }
    }
    constexpr int SIGN = 8 * sizeof(V) - 1;
    return {largest < dim, (beyond >> SIGN) == 0, (large >> SIGN) == 0};
}

#include "learners/kernel_labels.inl"

}  // namespace
}  // namespace FTPRL_ISA

#define FTPRL_BOTH(f, T, V, ...) {FTPRL_ISA::f<T, V, __VA_ARGS__, false>, FTPRL_ISA::f<T, V, __VA_ARGS__, true>}
#define FTPRL_LABELLED_FOR(T, V, unconstrained, receipt)             \
    {FTPRL_ISA::learn_labelled<T, V, unconstrained, false, receipt>, \
     FTPRL_ISA::learn_labelled<T, V, unconstrained, true, receipt>}
#define FTPRL_FOR(T, V)                                                                   \
    {FTPRL_BOTH(learn, T, V, false), FTPRL_BOTH(learn, T, V, true)},                      \
        {FTPRL_BOTH(score, T, V, false), FTPRL_BOTH(score, T, V, true)},                  \
        {{FTPRL_LABELLED_FOR(T, V, false, false), FTPRL_LABELLED_FOR(T, V, false, true)}, \
         {FTPRL_LABELLED_FOR(T, V, true, false), FTPRL_LABELLED_FOR(T, V, true, true)}},  \
    {                                                                                     \
        FTPRL_BOTH(score_labelled, T, V, false), FTPRL_BOTH(score_labelled, T, V, true)   \
    }

const Kernels FTPRL_KERNELS = {
    {{{FTPRL_FOR(float, float)}, {FTPRL_FOR(float, double)}},
     {{FTPRL_FOR(double, float)}, {FTPRL_FOR(double, double)}}},
    {FTPRL_ISA::scan<float>, FTPRL_ISA::scan<double>},
    &FTPRL_SCALES,
    &FTPRL_CLASSES,
};

}  // namespace ftprl
