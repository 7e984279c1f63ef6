// The kernels, included once for each instruction set with FTPRL_ISA (a namespace) and FTPRL_KERNELS (the
// table) defined. No template or inline function of the standard library may be used here.
//
// All arithmetic is in double, whatever a cell stores; a stored number is rounded once, when it is stored.
// A sum over a row adds every fourth entry from the first on, from the second on, and so on: four sums
// s0..s3, together (s0 + s1) + (s2 + s3); the intercept comes last. The same bits for every instruction set
// and however the rows are cut into batches.
#include <float.h>
#include <math.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "kernel.hpp"

namespace ftprl {
namespace FTPRL_ISA {
namespace {

#include "lanes.inl"

// Entries between the one worked on and the one fetched; measured with benchmarks/micro/kernel.py.
constexpr std::int64_t AHEAD = 128;

// The smallest positive double: dividing 0 by it gives 0, where 0/0 would not.
constexpr double TINY = 4.9406564584124654e-324;

#if defined(__GNUC__)
inline void fetch(const void* p) { __builtin_prefetch(p, 1, 3); }
#else
inline void fetch(const void*) {}
#endif

// What a cell can hold: beyond its range a number stays at the end of it. `rounded` also takes its precision.
template <class T>
inline D within(D v) {
    constexpr double top = sizeof(T) == sizeof(float) ? FLT_MAX : DBL_MAX;
    return larger(smaller(v, all(top)), all(-top));
}

template <class T>
inline D rounded(D v) {
    if constexpr (sizeof(T) == sizeof(float)) return to_float(within<T>(v));
    return within<T>(v);
}

// The constants of the play, a copy a lane.
struct Play {
    D h, beta, l1, hl2, lower, upper;
};

inline Play play_of(const Constants& c) {
    return {all(c.h), all(c.beta), all(c.l1), all(c.h * c.l2), all(c.lower), all(c.upper)};
}

// The intercept is a coordinate of value 1 without penalty or bounds.
inline Play free_play_of(const Constants& c) {
    return {all(c.h), all(c.beta), all(0.0), all(0.0), all(-HUGE_VAL), all(HUGE_VAL)};
}

// h (Q + l2).
inline D hold(const Play& c, D R, D M) { return M * (c.beta * M + R) + c.hl2; }

// clip( -sgn(z) (|z| - l1)_+ / (Q + l2) ), both sides of the fraction times h; clip(0) where Q + l2 = 0.
inline D play(const Play& c, D z, D R, D M) {
    const D den = hold(c, R, M);
    const D pull = where_positive(den, larger(size(z) - c.l1, all(0.0)) * c.h);
    const D x = against(pull / larger(den, all(TINY)), z);
    return smaller(larger(x, c.lower), c.upper);
}

// Four coordinates of a row between their prediction and their step.
struct Block {
    D z, R, M, S, v, x;
};
static_assert(sizeof(Block) == 4 * SCRATCH * sizeof(double), "the scratch is measured in these");

// The cells of the next four entries, or of `n` and `none` beyond.
template <class T>
inline void find(Cell<T>** at, Cell<T>* cells, const std::uint32_t* indices, std::int64_t n, Cell<T>* none) {
    if (n >= 4) {
        for (int j = 0; j < 4; ++j) at[j] = cells + indices[j];
    } else {
        for (int j = 0; j < 4; ++j) at[j] = j < n ? cells + indices[j] : none;
    }
}

// The next four values, or `n` and zeros, which add nothing to any sum.
template <class V>
inline D values_of(const V* p, std::int64_t n) {
    if (n >= 4) return values(p);
    const V some[4] = {p[0], n > 1 ? p[1] : V(0), n > 2 ? p[2] : V(0), V(0)};
    return values(some);
}

// The score of entries [from, to) without the intercept. A row that will be learned raises M first and leaves
// its blocks in `scratch`.
template <class T, class V, bool raise>
inline double predict(const Rows& rows, const Play& c, Cell<T>* cells, std::int64_t from, std::int64_t to,
                      std::int64_t end, Block* scratch) {
    const std::uint32_t* indices = rows.indices;
    const V* values = static_cast<const V*>(rows.values);
    Cell<T> none = {0, 0, 0, 0};
    D total = all(0.0);
    for (std::int64_t p = from; p < to; p += 4) {
        if (p + AHEAD + 4 <= end) {
            for (int j = 0; j < 4; ++j) fetch(cells + indices[p + AHEAD + j]);
        }
        Cell<T>* at[4];
        find(at, cells, indices + p, to - p, &none);
        Block b;
        gather(at, b.z, b.R, b.M, b.S);
        b.v = values_of(values + p, to - p);
        if constexpr (raise) b.M = larger(b.M, rounded<T>(size(b.v)));
        b.x = play(c, b.z, b.R, b.M);
        total += b.x * b.v;
        if constexpr (raise) *scratch++ = b;
    }
    return sum(total);
}

// What a receipt adds up over a row.
struct Sums {
    D linear, proximal, stability;
};

// The gradients of one block: z, R and S move on, and the sums when there is a receipt.
template <class T, bool receipt>
inline void step(const Play& c, D inverse, D slope, Block& b, Sums& sums) {
    const D g = slope * b.v;
    const D R = larger(rounded<T>(root(b.R * b.R + g * g)), b.R);
    // From what is stored: Q is then what z assumes, also when R has stalled.
    const D sigma = b.M * (R - b.R) * inverse;
    b.z = within<T>(b.z + (g - sigma * b.x));
    b.R = R;
    b.S = within<T>(b.S + g);
    if constexpr (receipt) {
        const D den = hold(c, R, b.M);
        sums.linear += g * b.x;
        sums.proximal += sigma * b.x * b.x;
        sums.stability += where_positive(den, g * g * c.h) / larger(den, all(TINY));
    }
}

template <class T, bool receipt>
inline void learn_row(const Rows& rows, const Play& c, Cell<T>* cells, std::int64_t from, std::int64_t to, D inverse,
                      D slope, Block* scratch, Sums& sums) {
    const std::uint32_t* indices = rows.indices;
    Cell<T> none;
    for (std::int64_t p = from; p < to; p += 4) {
        Block b = *scratch++;
        step<T, receipt>(c, inverse, slope, b, sums);
        Cell<T>* at[4];
        find(at, cells, indices + p, to - p, &none);
        scatter(at, b.z, b.R, b.M, b.S);
    }
}

// The intercept's cell in all lanes, of which the first counts.
inline Block intercept_block(const double* cell, const Play& c) {
    Block b = {all(cell[0]), all(cell[1]), all(cell[2]), all(cell[3]), all(1.0), all(0.0)};
    b.x = play(c, b.z, b.R, b.M);
    return b;
}

template <class T>
inline void fetch_first(const Rows& rows, const Cell<T>* cells) {
    const std::int64_t end = rows.indptr[rows.count];
    for (std::int64_t p = 0; p < AHEAD && p < end; ++p) fetch(cells + rows.indices[p]);
}

template <class T, class V, bool receipt>
Totals learn(const Rows& rows, const Constants& constants, const State& state, const Out& out, double* room) {
    Cell<T>* cells = static_cast<Cell<T>*>(state.cells);
    Block* scratch = reinterpret_cast<Block*>(room);
    const Play c = play_of(constants);
    const Play own = free_play_of(constants);
    const D inverse = all(1.0 / constants.h);
    const std::int64_t end = rows.indptr[rows.count];
    double* tallies = state.tallies;
    Totals batch = {0.0, 0.0, 0};
    fetch_first(rows, cells);
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const std::int64_t from = rows.indptr[r];
        const std::int64_t to = rows.indptr[r + 1];
        const double y = rows.y[r];
        const double weight = rows.weight[r];
        const bool labeled = y == y;
        const bool learns = labeled && weight > 0.0;
        Block base = intercept_block(state.intercept, own);
        const double shift = constants.intercept ? first(base.x) : 0.0;
        const double score = (learns ? predict<T, V, true>(rows, c, cells, from, to, end, scratch)
                                     : predict<T, V, false>(rows, c, cells, from, to, end, scratch)) +
                             shift;
        if (out.scores != nullptr) out.scores[r] = score;
        if (!learns) {
            if (out.losses != nullptr) out.losses[r] = labeled ? constants.loss(score, y, constants.tau).value : y;
            continue;
        }
        const Pull pull = constants.loss(score, y, constants.tau);
        if (out.losses != nullptr) out.losses[r] = pull.value;
        const D slope = all(weight * pull.slope);
        Sums sums = {all(0.0), all(0.0), all(0.0)};
        learn_row<T, receipt>(rows, c, cells, from, to, inverse, slope, scratch, sums);
        Sums own_sums = {all(0.0), all(0.0), all(0.0)};
        if (constants.intercept) {
            step<double, receipt>(own, inverse, slope, base, own_sums);
            state.intercept[0] = first(base.z);
            state.intercept[1] = first(base.R);
            state.intercept[3] = first(base.S);
        }
        const double loss = weight * pull.value;
        batch.loss += loss;
        batch.weight += weight;
        batch.rows += 1;
        tallies[LOSS] += loss;
        tallies[WEIGHT] += weight;
        tallies[ROWS] += 1.0;
        if constexpr (receipt) {
            tallies[LINEAR] += sum(sums.linear) + first(own_sums.linear);
            tallies[PROXIMAL] += sum(sums.proximal) + first(own_sums.proximal);
            tallies[STABILITY] += sum(sums.stability) + first(own_sums.stability);
        }
    }
    return batch;
}

template <class T, class V>
void score(const Rows& rows, const Constants& constants, const State& state, double* scores) {
    Cell<T>* cells = static_cast<Cell<T>*>(state.cells);
    const Play c = play_of(constants);
    const double shift = constants.intercept ? first(intercept_block(state.intercept, free_play_of(constants)).x) : 0.0;
    const std::int64_t end = rows.indptr[rows.count];
    fetch_first(rows, cells);
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const double part = predict<T, V, false>(rows, c, cells, rows.indptr[r], rows.indptr[r + 1], end, nullptr);
        scores[r] = part + shift;
    }
}

template <class V>
Scan scan(const Rows& rows) {
    const V* values = static_cast<const V*>(rows.values);
    const std::int64_t end = rows.indptr[rows.count];
    constexpr V limit = static_cast<V>(LIMIT);
    std::uint32_t largest = 0;
    std::uint32_t unfit = 0;
    for (std::int64_t p = 0; p < end; ++p) {
        largest = rows.indices[p] > largest ? rows.indices[p] : largest;
        unfit |= !((values[p] < 0 ? -values[p] : values[p]) <= limit);
    }
    return {largest, unfit == 0};
}

template <class T>
void weights(const Constants& constants, const State& state, std::uint64_t dim, double* out) {
    const Cell<T>* cells = static_cast<const Cell<T>*>(state.cells);
    const Play c = play_of(constants);
    for (std::uint64_t i = 0; i < dim; ++i) {
        out[i] = first(play(c, all(cells[i].z), all(cells[i].R), all(cells[i].M)));
    }
}

// The widest piece that every instruction set moves at once.
#if defined(__GNUC__)
typedef float Piece __attribute__((vector_size(16), may_alias));
#else
typedef double Piece;
#endif

template <class T>
void touch(const Rows& rows, const State& state) {
    Cell<T>* cells = static_cast<Cell<T>*>(state.cells);
    const std::int64_t end = rows.indptr[rows.count];
    fetch_first(rows, cells);
    for (std::int64_t p = 0; p < end; ++p) {
        if (p + AHEAD < end) fetch(cells + rows.indices[p + AHEAD]);
        // Through volatile, or the compiler would see that nothing changes and leave it all out.
        volatile Piece* piece = reinterpret_cast<volatile Piece*>(cells + rows.indices[p]);
        for (std::size_t j = 0; j < sizeof(Cell<T>) / sizeof(Piece); ++j) piece[j] = piece[j];
    }
}

}  // namespace
}  // namespace FTPRL_ISA

const Kernels FTPRL_KERNELS = {
    {{{FTPRL_ISA::learn<float, float, false>, FTPRL_ISA::learn<float, float, true>},
      {FTPRL_ISA::learn<float, double, false>, FTPRL_ISA::learn<float, double, true>}},
     {{FTPRL_ISA::learn<double, float, false>, FTPRL_ISA::learn<double, float, true>},
      {FTPRL_ISA::learn<double, double, false>, FTPRL_ISA::learn<double, double, true>}}},
    {{FTPRL_ISA::score<float, float>, FTPRL_ISA::score<float, double>},
     {FTPRL_ISA::score<double, float>, FTPRL_ISA::score<double, double>}},
    {FTPRL_ISA::scan<float>, FTPRL_ISA::scan<double>},
    {FTPRL_ISA::weights<float>, FTPRL_ISA::weights<double>},
    {FTPRL_ISA::touch<float>, FTPRL_ISA::touch<double>},
};

}  // namespace ftprl
