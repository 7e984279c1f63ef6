// The kernels, included once for each instruction set with FTPRL_ISA (a namespace) and FTPRL_KERNELS (the
// table) defined. No template or inline function of the standard library may be used here.
//
// All arithmetic is in double, whatever a cell stores; a stored number is rounded once, when it is stored.
// A sum over a row adds every fourth entry from the first on, from the second on, and so on: four sums
// s0..s3, together (s0 + s1) + (s2 + s3); the intercept comes last. The same bits for every instruction set
// and however the rows are cut into batches.
#include <float.h>
#include <math.h>
#if defined(__SSE2__) && !defined(FTPRL_PORTABLE)
#include <immintrin.h>
#endif

#include "kernel.hpp"

namespace ftprl {
namespace FTPRL_ISA {
namespace {

#include "lanes.inl"

// Entries between the one worked on and the one fetched; measured with benchmarks/micro/kernel.py.
constexpr std::int64_t AHEAD = 160;
// Of four entries to fetch, so many are fetched while predicting and the others while learning: the memory
// then works during both.
constexpr int SPLIT = 1;

#if defined(__GNUC__)
inline void fetch(const void* p) { __builtin_prefetch(p, 1, 3); }
#else
inline void fetch(const void*) {}
#endif

// The precision of a cell.
template <class T>
inline D rounded(D v) {
    if constexpr (sizeof(T) == sizeof(float)) return to_float(v);
    return v;
}

// No gradient is larger than this, so that z, R and S, which add them up, stay in the range of a cell.
template <class T>
inline D cut(D g) {
    constexpr double top = sizeof(T) == sizeof(float) ? 0x1p96 : 0x1p400;
    return larger(smaller(g, all(top)), all(-top));
}

// The constants of the play, a copy a lane.
struct Play {
    D h, beta, l1, hl2, lower, upper;
};

inline Play play_of(const Constants& c) {
    return {all(c.h), all(c.beta), all(c.l1), all(c.h * c.l2), all(c.lower), all(c.upper)};
}

// h (Q + l2). A plain play has no l1, no l2 and no bounds: the same numbers from fewer instructions.
template <bool plain>
inline D hold(const Play& c, D R, D M) {
    const D hQ = M * (c.beta * M + R);
    if constexpr (plain) return hQ;
    return hQ + c.hl2;
}

// clip( -sgn(z) (|z| - l1)_+ / (Q + l2) ), both sides of the fraction times h; clip(0) where Q + l2 = 0.
template <bool plain>
inline D play(const Play& c, D z, D R, D M) {
    const D den = hold<plain>(c, R, M);
    if constexpr (plain) return where_positive(den, opposite(z) * c.h / den);
    const D x = where_positive(den, opposite(signed_as(larger(size(z) - c.l1, all(0.0)), z)) * c.h / den);
    return smaller(larger(x, c.lower), c.upper);
}

// Four coordinates of a row between their prediction and their step.
struct Block {
    D z, R, M, S, v, x;
};
static_assert(sizeof(Block) == 4 * SCRATCH * sizeof(double), "the scratch is measured in these");

// The score of entries [from, to) without the intercept. A row that will be learned raises M first and leaves
// its blocks in `scratch`. The last block of a row reads on into the next row and then forgets those values.
template <class T, class V, bool plain, bool raise>
inline double predict(const Rows& rows, const Play& c, Cell<T>* cells, std::int64_t from, std::int64_t to,
                      std::int64_t end, Block* scratch) {
    const std::uint32_t* indices = rows.indices;
    const V* value = static_cast<const V*>(rows.values);
    D total = all(0.0);
    for (std::int64_t p = from; p < to; p += 4) {
        if (p + AHEAD + 4 <= end) {
            for (int j = 0; j < (raise ? SPLIT : 4); ++j) fetch(cells + indices[p + AHEAD + j]);
        }
        Block b;
        const Cell<T>* at[4];
        if (p + 4 <= end) {
            for (int j = 0; j < 4; ++j) at[j] = cells + indices[p + j];
            b.v = values(value + p);
        } else {
            V some[4] = {0, 0, 0, 0};
            for (int j = 0; j < 4; ++j) at[j] = cells + indices[p + j < end ? p + j : p];
            for (int j = 0; j < 4; ++j) some[j] = p + j < end ? value[p + j] : V(0);
            b.v = values(some);
        }
        if (to - p < 4) b.v = only_first(b.v, static_cast<int>(to - p));
        gather(at, b.z, b.R, b.M, b.S);
        if constexpr (raise && sizeof(T) < sizeof(V)) b.M = larger(b.M, rounded<T>(size(b.v)));
        if constexpr (raise && sizeof(T) >= sizeof(V)) b.M = larger(b.M, size(b.v));
        b.x = play<plain>(c, b.z, b.R, b.M);
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
template <class T, bool plain, bool receipt>
inline void step(const Play& c, D inverse, D slope, Block& b, Sums& sums) {
    const D g = cut<T>(slope * b.v);
    const D R = larger(rounded<T>(root(b.R * b.R + g * g)), b.R);
    // From what is stored: Q is then what z assumes, also when R has stalled.
    const D sigma = b.M * (R - b.R) * inverse;
    b.z = b.z + (g - sigma * b.x);
    // A bound may hold x far from what z asks for, and sigma x is then not tied to z.
    if constexpr (!plain && sizeof(T) == sizeof(float)) b.z = larger(smaller(b.z, all(FLT_MAX)), all(-FLT_MAX));
    b.R = R;
    b.S = b.S + g;
    if constexpr (receipt) {
        const D den = hold<plain>(c, R, b.M);
        sums.linear += g * b.x;
        sums.proximal += sigma * b.x * b.x;
        sums.stability += where_positive(den, g * g * c.h / den);
    }
}

template <class T, bool plain, bool receipt>
inline void learn_row(const Rows& rows, const Play& c, Cell<T>* cells, std::int64_t from, std::int64_t to,
                      std::int64_t end, D inverse, D slope, Block* scratch, Sums& sums) {
    const std::uint32_t* indices = rows.indices;
    Cell<T> none;
    for (std::int64_t p = from; p < to; p += 4) {
        if (p + AHEAD + 4 <= end) {
            for (int j = SPLIT; j < 4; ++j) fetch(cells + indices[p + AHEAD + j]);
        }
        Block b = *scratch++;
        step<T, plain, receipt>(c, inverse, slope, b, sums);
        Cell<T>* at[4];
        if (to - p >= 4) {
            for (int j = 0; j < 4; ++j) at[j] = cells + indices[p + j];
        } else {
            for (int j = 0; j < 4; ++j) at[j] = p + j < to ? cells + indices[p + j] : &none;
        }
        scatter(at, b.z, b.R, b.M, b.S);
    }
}

// The intercept's cell in all lanes, of which the first counts: a coordinate of value 1, played plainly.
inline Block intercept_block(const double* cell, const Play& c) {
    Block b = {all(cell[0]), all(cell[1]), all(cell[2]), all(cell[3]), all(1.0), all(0.0)};
    b.x = play<true>(c, b.z, b.R, b.M);
    return b;
}

template <class T>
inline void fetch_first(const Rows& rows, const Cell<T>* cells) {
    const std::int64_t end = rows.indptr[rows.count];
    for (std::int64_t p = 0; p < AHEAD && p < end; ++p) fetch(cells + rows.indices[p]);
}

template <class T, class V, bool plain, bool receipt>
Totals learn(const Rows& rows, const Constants& constants, const State& state, const Out& out, double* room) {
    Cell<T>* cells = static_cast<Cell<T>*>(state.cells);
    Block* scratch = reinterpret_cast<Block*>(room);
    const Play c = play_of(constants);
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
        Block base = intercept_block(state.intercept, c);
        const double shift = constants.intercept ? first(base.x) : 0.0;
        const double score = (learns ? predict<T, V, plain, true>(rows, c, cells, from, to, end, scratch)
                                     : predict<T, V, plain, false>(rows, c, cells, from, to, end, scratch)) +
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
        learn_row<T, plain, receipt>(rows, c, cells, from, to, end, inverse, slope, scratch, sums);
        Sums own_sums = {all(0.0), all(0.0), all(0.0)};
        if (constants.intercept) {
            step<double, true, receipt>(c, inverse, slope, base, own_sums);
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

template <class T, class V, bool plain>
void score(const Rows& rows, const Constants& constants, const State& state, double* scores) {
    Cell<T>* cells = static_cast<Cell<T>*>(state.cells);
    const Play c = play_of(constants);
    const double shift = constants.intercept ? first(intercept_block(state.intercept, c).x) : 0.0;
    const std::int64_t end = rows.indptr[rows.count];
    fetch_first(rows, cells);
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const double part = predict<T, V, plain, false>(rows, c, cells, rows.indptr[r], rows.indptr[r + 1], end, nullptr);
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
        out[i] = first(play<false>(c, all(cells[i].z), all(cells[i].R), all(cells[i].M)));
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

#define FTPRL_FOR(T, V)                                                                          \
    {{FTPRL_ISA::learn<T, V, false, false>, FTPRL_ISA::learn<T, V, false, true>},                \
     {FTPRL_ISA::learn<T, V, true, false>, FTPRL_ISA::learn<T, V, true, true>}},                 \
    {FTPRL_ISA::score<T, V, false>, FTPRL_ISA::score<T, V, true>}

const Kernels FTPRL_KERNELS = {
    {{{FTPRL_FOR(float, float)}, {FTPRL_FOR(float, double)}}, {{FTPRL_FOR(double, float)}, {FTPRL_FOR(double, double)}}},
    {FTPRL_ISA::scan<float>, FTPRL_ISA::scan<double>},
    {FTPRL_ISA::weights<float>, FTPRL_ISA::weights<double>},
    {FTPRL_ISA::touch<float>, FTPRL_ISA::touch<double>},
};

}  // namespace ftprl
