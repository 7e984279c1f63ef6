// The kernels for several scales, included behind kernel.inl with FTPRL_SCALES (the table) defined as well. A lane is a
// scale. Its arithmetic is that of kernel.inl, in the same order: where every |value| is 1, and so s = M, a lane
// learns to the bit what one scale would.
#include "learners/scales.hpp"

namespace ftprl {
namespace FTPRL_ISA {
namespace {

#include "learners/mix.inl"

static_assert(DENSE_AT > MOST_SCALES, "the coin comes behind the scales");

// A cell begins at a line of memory only if it fits into one: of eight scales in 72 bytes every cell lies in two lines
// as one of 128 bytes would, in not much over half the memory, which the system has to clear before it is used.
template <class T, int L>
struct alignas((8 * L + 2) * sizeof(T) <= 64 ? 64 : 8) Coordinate {
    T z[4 * L], R[4 * L], s, N;
};

// Entries fetched ahead; a cell here is longer than with one scale.
template <class C>
constexpr std::int64_t FAR = sizeof(C) <= 64 ? 128 : 64;

template <class C>
inline void fetch_cell(const C* cell) {
    const char* line = reinterpret_cast<const char*>(cell);
    for (std::size_t at = 0; at < sizeof *cell; at += 64) fetch(line + at);
    if constexpr (sizeof *cell % 64 > 8) fetch(line + sizeof *cell - 1);  // it may end one line further on
}

// The constants of four scales at a time.
template <int L>
struct Lanes {
    Play play[L];
    D inverse[L];
};

template <int L>
inline Lanes<L> lanes_of(const ScaleConstants& c) {
    Lanes<L> lanes;
    for (int l = 0; l < L; ++l) {
        double hl2[4], minus[4], inverse[4];
        for (int j = 0; j < 4; ++j) {
            const double h = c.h[4 * l + j];
            minus[j] = -h;
            hl2[j] = h * c.base.l2;
            inverse[j] = 1.0 / h;
        }
        lanes.play[l] = {load(c.h + 4 * l), load(minus),       all(c.base.beta), all(c.base.l1),
                         load(hl2),         all(c.base.lower), all(c.base.upper)};
        lanes.inverse[l] = load(inverse);
    }
    return lanes;
}

// One branch a row's entry that always goes the same way is cheaper to have than a kernel for each type of values.
inline double value_of(const Rows& rows, bool wide, std::int64_t p) {
    return wide ? static_cast<const double*>(rows.values)[p]
                : static_cast<double>(static_cast<const float*>(rows.values)[p]);
}

#include "learners/experts_coin.inl"

// The unit of a feature met once more with the size a: N grows, and s follows the root of the mean square upwards.
template <class C>
inline void raise_unit(C& cell, double a) {
    using T = decltype(cell.s);
    cell.N = static_cast<T>(static_cast<double>(cell.N) + 1.0);
    const double s = cell.s;
    if (!(a > s)) return;
    const double rms = sqrt(s * s + (a * a - s * s) / static_cast<double>(cell.N));
    cell.s = static_cast<T>(most(most(s, rms), a * 0.0625));
}

// The products x v of one entry, added to `part`, four scales at a time. For a row that will be learned the unit is
// raised first and the plays are left in `kept`. A call for each entry would cost as much as its work.
template <class T, int L, bool unconstrained, bool raise>
FTPRL_INSIDE void predict_entry(const Lanes<L>& c, const BoxTable& boxes, Coordinate<T, L>* cells, std::uint32_t at,
                                double v, D* part, D* kept) {
    Coordinate<T, L>& cell = cells[at];
    if constexpr (raise) raise_unit(cell, fabs(v));
    const D s = all(cell.s);
    Limits limits = limits_of(c.play[0]);
    if constexpr (!unconstrained) limits = limits_at(c.play[0], boxes, at);
    for (int l = 0; l < L; ++l) {
        const D x = play<unconstrained>(c.play[l], limits, wide_at(cell.z + 4 * l), wide_at(cell.R + 4 * l), s);
        if constexpr (raise) kept[l] = x;
        part[l] += x * all(v);
    }
}

// The scores of entries [from, to) without the intercept.
template <class T, int L, bool unconstrained, bool raise>
FTPRL_INSIDE void predict(const Rows& rows, bool wide, const Lanes<L>& c, const BoxTable& boxes,
                          Coordinate<T, L>* cells, std::int64_t from, std::int64_t to, std::int64_t end, D* score,
                          D* kept) {
    constexpr std::int64_t far = FAR<Coordinate<T, L>>;
    const std::uint32_t* index = rows.indices;
    const std::uint32_t* next = index + (to + far <= end ? far : 0);
    D part[4][L], last[4][L];
    for (int j = 0; j < 4; ++j) {
        for (int l = 0; l < L; ++l) part[j][l] = last[j][l] = all(0.0);
    }
    std::int64_t p = from;
    for (; p + 4 <= to; p += 4) {
        for (int j = 0; j < 4; ++j) {
            fetch_cell(cells + next[p + j]);
            if constexpr (!unconstrained) fetch_kind(boxes, next[p + j]);
            predict_entry<T, L, unconstrained, raise>(c, boxes, cells, index[p + j], value_of(rows, wide, p + j),
                                                      part[j], kept);
            if constexpr (raise) kept += L;
        }
    }
    for (int j = 0; p + j < to; ++j) {
        fetch_cell(cells + next[p + j]);
        predict_entry<T, L, unconstrained, raise>(c, boxes, cells, index[p + j], value_of(rows, wide, p + j), last[j],
                                                  kept);
        if constexpr (raise) kept += L;
    }
    for (int j = 0; j < 4; ++j) {
        for (int l = 0; l < L; ++l) part[j][l] += last[j][l];
    }
    for (int l = 0; l < L; ++l) score[l] = (part[0][l] + part[1][l]) + (part[2][l] + part[3][l]);
}

// The sums of the gradients of a cell that is learned soon.
template <int L>
inline void fetch_gradients(const double* S, std::size_t cell) {
    for (int l = 0; l < L; l += 2) fetch(S + cell * (4 * L) + 4 * l);
}

template <class T, int L, bool unconstrained, bool receipt, bool small>
inline void learn_entries(const Rows& rows, bool wide, const Lanes<L>& c, Coordinate<T, L>* cells, std::int64_t from,
                          std::int64_t to, std::int64_t end, const D* slope, const D* kept, double* sums_of_gradients,
                          RegretSums (*sums)[L]) {
    const std::int64_t next = to + FAR<Coordinate<T, L>> <= end ? FAR<Coordinate<T, L>> : 0;
    for (std::int64_t p = from; p < to; ++p) {
        Coordinate<T, L>& cell = cells[rows.indices[p]];
        if constexpr (receipt) fetch_gradients<L>(sums_of_gradients, rows.indices[p + next]);
        const int j = receipt ? static_cast<int>((p - from) % 4) : 0;
        const D v = all(value_of(rows, wide, p));
        const Four<T> s = narrow<T>(all(cell.s));
        for (int l = 0; l < L; ++l) {
            const Block<T> b = {wide_at(cell.z + 4 * l), wide_at(cell.R + 4 * l), v, *kept++, s, s};
            Four<T> z, R;
            const D g = step<T, unconstrained, receipt, small>(c.play[l], c.inverse[l], slope[l], b, z, R, sums[j][l]);
            store(cell.z + 4 * l, z);
            store(cell.R + 4 * l, R);
            if constexpr (receipt) {
                double* S = sums_of_gradients + std::size_t{rows.indices[p]} * (4 * L) + 4 * l;
                store(S, load(S) + g);
            }
        }
    }
}

template <class T, int L>
inline bool are_small(const D* slope, double largest) {
    D small = all(1.0);
    for (int l = 0; l < L; ++l) {
        small = where_positive(all(LARGEST_GRADIENT<T>) - size(slope[l]) * all(largest), small);
    }
    return sum(small) == 4.0;
}

// Nearly all rows have small gradients.
template <class T, int L, bool unconstrained, bool receipt>
inline void learn_row(const Rows& rows, bool wide, const Lanes<L>& c, Coordinate<T, L>* cells, std::int64_t from,
                      std::int64_t to, std::int64_t end, const D* slope, const D* kept, double* sums_of_gradients,
                      RegretSums (*sums)[L]) {
    if (are_small<T, L>(slope, rows.largest)) {
        learn_entries<T, L, unconstrained, receipt, true>(rows, wide, c, cells, from, to, end, slope, kept,
                                                          sums_of_gradients, sums);
    } else {
        learn_entries<T, L, unconstrained, receipt, false>(rows, wide, c, cells, from, to, end, slope, kept,
                                                           sums_of_gradients, sums);
    }
}

// The intercepts of four scales: a coordinate of value and unit 1, without l1, l2 and bounds.
inline Block<double> intercept_lanes(const double* cell, int l, const Play& c) {
    const D one = all(1.0);
    Block<double> b = {
        load(cell + 4 * l), load(cell + MOST_SCALES + 4 * l), one, one, one, load(cell + 2 * MOST_SCALES + 4 * l)};
    b.x = play<true>(c, b.z, b.R, b.M);
    return b;
}

template <int L>
inline void add_intercept(const Lanes<L>& c, const double* cell, bool intercept, D* score) {
    for (int l = 0; l < L; ++l) score[l] += intercept ? intercept_lanes(cell, l, c.play[l]).x : all(0.0);
}

template <int L, bool receipt>
inline void learn_intercept(const Lanes<L>& c, double* cell, const D* slope, RegretSums* sums) {
    for (int l = 0; l < L; ++l) {
        const Block<double> b = intercept_lanes(cell, l, c.play[l]);
        D z, R;
        const D g = step<double, true, receipt>(c.play[l], c.inverse[l], slope[l], b, z, R, sums[l]);
        store(cell + 4 * l, z);
        store(cell + MOST_SCALES + 4 * l, R);
        if constexpr (receipt) store(cell + 2 * MOST_SCALES + 4 * l, b.S + g);
    }
}

template <int L>
inline void add_sums(const RegretSums (*sums)[L], const RegretSums* own, const D* slope, double (*to)[MOST_SCALES],
                     double (*rounding)[MOST_SCALES]) {
    for (int l = 0; l < L; ++l) {
        const auto add = [&](D RegretSums::* part, double* at) {
            const D row = (sums[0][l].*part + sums[1][l].*part) + (sums[2][l].*part + sums[3][l].*part);
            store(at + 4 * l, load(at + 4 * l) + (row + own[l].*part));
        };
        add(&RegretSums::linear, to[0]);
        add(&RegretSums::proximal, to[1]);
        add(&RegretSums::stability, to[2]);
        add(&RegretSums::drift, rounding[DRIFT]);
        add(&RegretSums::linear_size, rounding[LINEAR_SIZE]);
        add(&RegretSums::step_size, rounding[STEP_SIZE]);
        store(rounding[SLOPES] + 4 * l, load(rounding[SLOPES] + 4 * l) + size(slope[l]));
    }
}

template <class C>
inline void fetch_first_cells(const Rows& rows, const C* cells) {
    const std::int64_t end = rows.indptr[rows.count];
    for (std::int64_t p = 0; p < FAR<C> && p < end; ++p) fetch_cell(cells + rows.indices[p]);
}

template <class T, int L, bool unconstrained, bool receipt>
Totals learn_scales(const Rows& rows, bool wide, const ScaleConstants& constants, const ScaleState& state,
                    const RowOutputs& out, double* buffer) {
    auto* cells = static_cast<Coordinate<T, L>*>(state.cells);
    D* kept = reinterpret_cast<D*>(buffer);
    const Lanes<L> c = lanes_of<L>(constants);
    const std::int64_t end = rows.indptr[rows.count];
    double* tallies = state.tallies;
    Totals batch = {0.0, 0.0, 0};
    alignas(32) double scores[ROW_INPUTS] = {}, arrival[ROW_INPUTS];
    alignas(32) double slopes[DENSE_AT] = {};
    D score[L], slope[L];
    ColumnIndex index;
    if (constants.dense) index_columns(*state.experts.dense, index);
    fetch_first_cells(rows, cells);
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const std::int64_t from = rows.indptr[r];
        const std::int64_t to = rows.indptr[r + 1];
        const double y = rows.y[r];
        const double weight = rows.weight[r];
        const bool learns = y == y && weight > 0.0 && !constants.weighs;
        if (learns) {
            predict<T, L, unconstrained, true>(rows, wide, c, constants.base.boxes, cells, from, to, end, score, kept);
        } else {
            predict<T, L, unconstrained, false>(rows, wide, c, constants.base.boxes, cells, from, to, end, score,
                                                nullptr);
        }
        add_intercept(c, state.intercept, constants.base.intercept, score);
        for (int l = 0; l < L; ++l) store(scores + 4 * l, score[l]);
        read_experts<T>(rows, wide, constants, state, index, from, to, end, learns, scores);
        if (!learns) {
            keep_arrival(constants, out, r, scores);
            const MixedPrediction prediction = predict_mixture(constants, *state.mixture, scores, y);
            if (out.scores != nullptr) out.scores[r] = prediction.score;
            if (out.losses != nullptr) out.losses[r] = prediction.loss;
            if (constants.weighs && y == y && weight > 0.0)
                weigh_log_loss(constants, *state.mixture, scores, y, weight);
            continue;
        }
        const double* judged = judged_inputs(constants, out, r, scores, arrival);
        const MixedPrediction prediction = learn_mixture(constants, *state.mixture, scores, judged, y, weight,
                                                         tallies[ROWS] + 1.0, out.scores != nullptr, slopes);
        if (out.scores != nullptr) out.scores[r] = prediction.score;
        if (out.losses != nullptr) out.losses[r] = prediction.loss;
        batch.loss += weight * prediction.loss;
        batch.weight += weight;
        batch.rows += 1;
        tallies[LOSS] += weight * prediction.loss;
        tallies[WEIGHT] += weight;
        tallies[ROWS] += 1.0;
        RegretSums sums[4][L], own[L];
        for (int l = 0; l < L; ++l) {
            slope[l] = load(slopes + 4 * l);
            if constexpr (receipt) own[l] = sums[0][l] = sums[1][l] = sums[2][l] = sums[3][l] = no_sums();
        }
        learn_row<T, L, unconstrained, receipt>(rows, wide, c, cells, from, to, end, slope, kept, state.receipt.S,
                                                sums);
        if (constants.base.intercept) learn_intercept<L, receipt>(c, state.intercept, slope, own);
        if constexpr (receipt) add_sums<L>(sums, own, slope, state.mixture->sums, state.receipt.rounding);
        count_label(constants, state, y, weight);
        learn_experts<T>(rows, wide, constants, state, cells, index, from, to, tallies[ROWS], slopes[constants.count]);
    }
    return batch;
}

template <class T, int L, bool unconstrained>
void score_scales(const Rows& rows, bool wide, const ScaleConstants& constants, const ScaleState& state, double* to) {
    auto* cells = static_cast<Coordinate<T, L>*>(state.cells);
    const Lanes<L> c = lanes_of<L>(constants);
    const std::int64_t end = rows.indptr[rows.count];
    alignas(32) double scores[ROW_INPUTS];
    D score[L];
    ColumnIndex index;
    if (constants.dense) index_columns(*state.experts.dense, index);
    fetch_first_cells(rows, cells);
    for (std::int64_t r = 0; r < rows.count; ++r) {
        predict<T, L, unconstrained, false>(rows, wide, c, constants.base.boxes, cells, rows.indptr[r],
                                            rows.indptr[r + 1], end, score, nullptr);
        add_intercept(c, state.intercept, constants.base.intercept, score);
        for (int l = 0; l < L; ++l) store(scores + 4 * l, score[l]);
        read_experts<T>(rows, wide, constants, state, index, rows.indptr[r], rows.indptr[r + 1], end, false, scores);
        to[r] = predict_mixture(constants, *state.mixture, scores, 0.0).score;
    }
}

#include "learners/scales_labels.inl"

}  // namespace
}  // namespace FTPRL_ISA

#define FTPRL_SET(T, L, receipt)                                                                    \
    {{FTPRL_ISA::learn_scales<T, L, false, receipt>, FTPRL_ISA::learn_scales<T, L, true, receipt>}, \
     {FTPRL_ISA::score_scales<T, L, false>, FTPRL_ISA::score_scales<T, L, true>},                   \
     sizeof(FTPRL_ISA::Coordinate<T, L>)}
#define FTPRL_SETS(T, receipt) \
    {FTPRL_SET(T, 1, receipt), FTPRL_SET(T, 2, receipt), FTPRL_SET(T, 3, receipt), FTPRL_SET(T, 4, receipt)}

#define FTPRL_LABELLED(C, T, L, kinked, receipt)                                   \
    {{FTPRL_ISA::learn_labelled<FTPRL_ISA::C<T, L>, T, L, false, kinked, receipt>, \
      FTPRL_ISA::learn_labelled<FTPRL_ISA::C<T, L>, T, L, true, kinked, receipt>}, \
     {FTPRL_ISA::score_labelled<FTPRL_ISA::C<T, L>, T, L, false>,                  \
      FTPRL_ISA::score_labelled<FTPRL_ISA::C<T, L>, T, L, true>},                  \
     sizeof(FTPRL_ISA::C<T, L>)}
#define FTPRL_LABELLED_SETS(C, T, kinked, receipt)                                       \
    {FTPRL_LABELLED(C, T, 1, kinked, receipt), FTPRL_LABELLED(C, T, 2, kinked, receipt), \
     FTPRL_LABELLED(C, T, 3, kinked, receipt), FTPRL_LABELLED(C, T, 4, kinked, receipt)}
#define FTPRL_LABELLED_TYPE(C, T, kinked) \
    {FTPRL_LABELLED_SETS(C, T, kinked, false), FTPRL_LABELLED_SETS(C, T, kinked, true)}

const ScaleKernels FTPRL_SCALES = {
    {
        {FTPRL_SETS(float, false), FTPRL_SETS(float, true)},
        {FTPRL_SETS(double, false), FTPRL_SETS(double, true)},
    },
    {
        {FTPRL_LABELLED_TYPE(Coordinate, float, false), FTPRL_LABELLED_TYPE(Coordinate, double, false)},
        {FTPRL_LABELLED_TYPE(KinkedCoordinate, float, true), FTPRL_LABELLED_TYPE(KinkedCoordinate, double, true)},
    },
};

}  // namespace ftprl
