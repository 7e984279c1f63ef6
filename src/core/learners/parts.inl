// The kernels for scales that several threads learn, included behind scales.inl with FTPRL_PARTS (the table) defined.
// They do to each number what learn_scales and learn_labelled do, in the same order.
#include "learners/parts.hpp"

namespace ftprl {
namespace FTPRL_ISA {
namespace {

// ---- the scales of one part ----

template <class C>
inline void fetch_part(const PartRows& job, const C* cells) {
    const std::int64_t from = job.rows.indptr[job.first_row];
    for (std::int64_t p = from; p < from + FAR<C> && p < job.end; ++p) fetch_cell(cells + job.rows.indices[p]);
}

inline bool row_learns(const PartRows& job, const ScaleConstants& c, std::int64_t r) {
    return !job.only_scores && job.rows.y[r] == job.rows.y[r] && job.rows.weight[r] > 0.0 && !c.weighs;
}

template <class T, int L, bool unconstrained, bool receipt>
void learn_part(const PartRows& job, const ScaleConstants& constants, const PartState& state, PartRowNumbers* to) {
    auto* cells = static_cast<Coordinate<T, L>*>(state.cells);
    D* kept = reinterpret_cast<D*>(state.plays);
    const Lanes<L> c = lanes_of<L>(constants);
    const Rows& rows = job.rows;
    const Loss& loss = *constants.base.loss;
    double* intercept = state.sums->intercept;
    alignas(32) double slopes[4 * L] = {};
    D score[L], slope[L];
    fetch_part(job, cells);
    for (std::int64_t r = job.first_row; r < job.last_row; ++r, to += 8 * L) {
        const std::int64_t from = rows.indptr[r], last = rows.indptr[r + 1];
        const bool learns = row_learns(job, constants, r);
        if (learns) {
            predict<T, L, unconstrained, true>(rows, job.wide, c, constants.base.boxes, cells, from, last, job.end,
                                               score, kept);
        } else {
            predict<T, L, unconstrained, false>(rows, job.wide, c, constants.base.boxes, cells, from, last, job.end,
                                                score, kept);
        }
        add_intercept(c, intercept, constants.base.intercept, score);
        for (int l = 0; l < L; ++l) store(to + 4 * l, score[l]);
        if (!learns) continue;
        const double y = rows.y[r], weight = rows.weight[r];
        for (int k = 0; k < constants.count; ++k) {
            slopes[k] = weight * loss.at(to[k], y, constants.base.tau, to[4 * L + k]).slope;
        }
        RegretSums sums[4][L], own[L];
        for (int l = 0; l < L; ++l) {
            slope[l] = load(slopes + 4 * l);
            if constexpr (receipt) own[l] = sums[0][l] = sums[1][l] = sums[2][l] = sums[3][l] = no_sums();
        }
        learn_row<T, L, unconstrained, receipt>(rows, job.wide, c, cells, from, last, job.end, slope, kept, state.S,
                                                sums);
        if (constants.base.intercept) learn_intercept<L, receipt>(c, intercept, slope, own);
        if constexpr (receipt) add_sums<L>(sums, own, slope, state.sums->regret, state.sums->rounding);
    }
}

template <class C, class T, int L, bool unconstrained, bool kinked, bool receipt>
void learn_labelled_part(const PartRows& job, const ScaleConstants& constants, const PartState& state,
                         PartRowNumbers* to) {
    auto* cells = static_cast<C*>(state.cells);
    D* kept = reinterpret_cast<D*>(state.plays);
    const Lanes<L> c = lanes_of<L>(constants);
    const Rows& rows = job.rows;
    LabelState& labels = state.sums->labels;
    double *intercept = state.sums->intercept, *own_kappa = intercept + 3 * MOST_SCALES;
    alignas(32) double reaches[4 * L];
    D score[L], reach[L], slope[L], x[L];
    for (int l = 0; l < L; ++l) x[l] = all(0.0);
    fetch_part(job, cells);
    for (std::int64_t r = job.first_row; r < job.last_row; ++r, to += 8 * L) {
        const std::int64_t from = rows.indptr[r], last = rows.indptr[r + 1];
        const bool learns = row_learns(job, constants, r);
        double largest = 0.0;
        if (learns) {
            predict_labelled<C, T, L, unconstrained, true>(rows, job.wide, c, constants.base.boxes, cells, from, last,
                                                           job.end, score, reach, kept, largest);
        } else {
            predict_labelled<C, T, L, unconstrained, false>(rows, job.wide, c, constants.base.boxes, cells, from, last,
                                                            job.end, score, reach, kept, largest);
        }
        for (int l = 0; l < L; ++l) score[l] += all(labels.offset);
        if (constants.base.intercept) {
            add_labelled_intercept(c, intercept, *own_kappa, score, x, learns ? reach : nullptr);
        }
        for (int l = 0; l < L; ++l) store(to + 4 * l, score[l]);
        if (!learns) continue;
        double* slopes = to + 4 * L;
        for (int l = 0; l < L; ++l) {
            store(reaches + 4 * l, reach[l]);
            store(slopes + 4 * l, all(0.0));
        }
        const double weight = rows.weight[r];
        const LabelledRow row = learn_row_label(constants.base, labels, rows.y[r], weight);
        if (!row.teaches) continue;
        for (int k = 0; k < constants.count; ++k) {
            slopes[k] = slope_of(constants.base, labels, row, to[k], reaches[k]);
        }
        RegretSums sums[4][L], own[L];
        for (int l = 0; l < L; ++l) {
            slope[l] = all(weight) * load(slopes + 4 * l);
            if constexpr (receipt) own[l] = sums[0][l] = sums[1][l] = sums[2][l] = sums[3][l] = no_sums();
        }
        learn_labelled_row<C, T, L, unconstrained, kinked, receipt>(
            rows, job.wide, c, cells, from, last, job.end, units_of<T>(labels), slope, kept, largest, state.S, sums);
        if (constants.base.intercept) {
            learn_labelled_intercept<L, kinked, receipt>(c, intercept, *own_kappa, units_of<double>(labels), slope, x,
                                                         own);
            *own_kappa = labels.kappa;
        }
        if constexpr (receipt) add_sums<L>(sums, own, slope, state.sums->regret, state.sums->rounding);
    }
}

// ---- the mixture ----

// s and N in the cells of a part, behind z and R of its lanes.
template <class T>
struct UnitsOfCells {
    const unsigned char* first;
    std::size_t bytes;

    struct Unit {
        T s, N;
    };
    Unit operator[](std::uint32_t cell) const {
        Unit unit;
        memcpy(&unit, first + cell * bytes, sizeof unit);
        return unit;
    }
};

// The numbers of a row from all parts: scores, and what follows them.
inline void collect(const MixedRows& mixed, std::int64_t number, double* scores, double* others) {
    for (int i = 0; i < mixed.parts; ++i) {
        const int lanes = mixed.lanes[i], first = mixed.first[i], count = mixed.first[i + 1] - first;
        const PartRowNumbers* from = mixed.numbers[i] + number * (2 * lanes);
        for (int k = 0; k < count; ++k) {
            scores[first + k] = from[k];
            others[first + k] = from[lanes + k];
        }
    }
}

// What a row adds to the numbers of a batch and of all rows.
inline void count_row(double weight, double loss, double* tallies, Totals& batch) {
    batch.loss += weight * loss;
    batch.weight += weight;
    batch.rows += 1;
    tallies[LOSS] += weight * loss;
    tallies[WEIGHT] += weight;
    tallies[ROWS] += 1.0;
}

template <class T>
void mix_log_loss(const MixedRows& mixed, const ScaleConstants& constants, const ScaleState& state,
                  const RowOutputs& out) {
    const PartRows& job = mixed.rows;
    const Rows& rows = job.rows;
    const UnitsOfCells<T> units = {mixed.units, mixed.cell_bytes};
    alignas(32) double scores[ROW_INPUTS] = {}, arrival[ROW_INPUTS];
    double slopes[DENSE_AT] = {}, tails_of_scales[MOST_SCALES] = {};
    for (std::int64_t r = job.first_row; r < job.last_row; ++r) {
        const std::int64_t from = rows.indptr[r], last = rows.indptr[r + 1];
        const bool learns = row_learns(job, constants, r);
        collect(mixed, r - job.first_row, scores, tails_of_scales);
        read_experts<T>(rows, job.wide, constants, state, *mixed.index, from, last, job.end, learns, scores);
        if (job.only_scores) {
            out.scores[r] = predict_mixture(constants, *state.mixture, scores, 0.0).score;
            continue;
        }
        const double y = rows.y[r], weight = rows.weight[r];
        if (!learns) {
            keep_arrival(constants, out, r, scores);
            const MixedPrediction prediction = predict_mixture(constants, *state.mixture, scores, y);
            if (out.scores != nullptr) out.scores[r] = prediction.score;
            if (out.losses != nullptr) out.losses[r] = prediction.loss;
            if (constants.weighs && y == y && weight > 0.0) {
                weigh_log_loss(constants, *state.mixture, scores, y, weight);
            }
            continue;
        }
        const double* judged = judged_inputs(constants, out, r, scores, arrival);
        const MixedPrediction prediction =
            learn_mixture(constants, *state.mixture, scores, judged, y, weight, state.tallies[ROWS] + 1.0,
                          out.scores != nullptr, slopes, tails_of_scales);
        if (out.scores != nullptr) out.scores[r] = prediction.score;
        if (out.losses != nullptr) out.losses[r] = prediction.loss;
        count_row(weight, prediction.loss, state.tallies, *mixed.totals);
        count_label(constants, state, y, weight);
        learn_experts<T>(rows, job.wide, constants, state, units, *mixed.index, from, last, state.tallies[ROWS],
                         slopes[constants.count]);
    }
}

template <class T>
void mix_labelled(const MixedRows& mixed, const ScaleConstants& constants, const ScaleState& state,
                  const RowOutputs& out, bool receipt) {
    const PartRows& job = mixed.rows;
    const Rows& rows = job.rows;
    const UnitsOfCells<T> units = {mixed.units, mixed.cell_bytes};
    Mixture& m = *state.mixture;
    alignas(32) double scores[ROW_INPUTS] = {}, arrival[ROW_INPUTS];
    double slopes[DENSE_AT] = {}, slopes_of_scales[MOST_SCALES] = {};
    for (std::int64_t r = job.first_row; r < job.last_row; ++r) {
        const std::int64_t from = rows.indptr[r], last = rows.indptr[r + 1];
        const bool learns = row_learns(job, constants, r);
        collect(mixed, r - job.first_row, scores, slopes_of_scales);
        put_levels(m, scores);
        read_experts<T>(rows, job.wide, constants, state, *mixed.index, from, last, job.end, learns, scores);
        if (job.only_scores) {
            out.scores[r] = opinions_of(constants, m, scores).mean;
            continue;
        }
        const double y = rows.y[r], weight = rows.weight[r];
        if (!learns) {
            keep_arrival(constants, out, r, scores);
            const Opinions o = opinions_of(constants, m, scores);
            if (out.scores != nullptr) out.scores[r] = o.mean;
            if (out.losses != nullptr) out.losses[r] = y == y ? value_at(constants, o.mean, y) : y;
            if (constants.weighs && y == y && weight > 0.0) weigh_labelled(constants, m, o, y, weight);
            continue;
        }
        LabelledRow row;
        const MixedPrediction prediction =
            learn_with_labels(constants, m, scores, judged_inputs(constants, out, r, scores, arrival), nullptr, y,
                              weight, state.tallies[ROWS] + 1.0, slopes, row);
        if (out.scores != nullptr) out.scores[r] = prediction.score;
        if (out.losses != nullptr) out.losses[r] = prediction.loss;
        count_row(weight, prediction.loss, state.tallies, *mixed.totals);
        for (int k = 0; receipt && k < constants.count; ++k) {
            add_row_sums(constants.base, m.labels, row, scores[k], slopes_of_scales[k], prediction.score,
                         prediction.loss, state.receipt.rows, k);
        }
        learn_experts<T>(rows, job.wide, constants, state, units, *mixed.index, from, last, state.tallies[ROWS],
                         weight * slopes[constants.count]);
    }
}

template <class T>
void mix(const MixedRows& mixed, const ScaleConstants& constants, const ScaleState& state, const RowOutputs& out,
         bool receipt) {
    if (constants.base.loss->rule == LabelRule::none) return mix_log_loss<T>(mixed, constants, state, out);
    mix_labelled<T>(mixed, constants, state, out, receipt);
}

}  // namespace
}  // namespace FTPRL_ISA

#define FTPRL_PART(T, L, receipt)                                                               \
    {{FTPRL_ISA::learn_part<T, L, false, receipt>, FTPRL_ISA::learn_part<T, L, true, receipt>}, \
     sizeof(FTPRL_ISA::Coordinate<T, L>)}
#define FTPRL_PARTS_OF(T)                                                                                      \
    {                                                                                                          \
        {FTPRL_PART(T, 1, false), FTPRL_PART(T, 2, false)}, { FTPRL_PART(T, 1, true), FTPRL_PART(T, 2, true) } \
    }

#define FTPRL_LABELLED_PART(C, T, L, kinked, receipt)                                   \
    {{FTPRL_ISA::learn_labelled_part<FTPRL_ISA::C<T, L>, T, L, false, kinked, receipt>, \
      FTPRL_ISA::learn_labelled_part<FTPRL_ISA::C<T, L>, T, L, true, kinked, receipt>}, \
     sizeof(FTPRL_ISA::C<T, L>)}
#define FTPRL_LABELLED_PARTS(C, T, kinked)                                                            \
    {                                                                                                 \
        {FTPRL_LABELLED_PART(C, T, 1, kinked, false), FTPRL_LABELLED_PART(C, T, 2, kinked, false)}, { \
            FTPRL_LABELLED_PART(C, T, 1, kinked, true), FTPRL_LABELLED_PART(C, T, 2, kinked, true)    \
        }                                                                                             \
    }

const PartKernels FTPRL_PARTS = {
    {FTPRL_PARTS_OF(float), FTPRL_PARTS_OF(double)},
    {{FTPRL_LABELLED_PARTS(Coordinate, float, false), FTPRL_LABELLED_PARTS(Coordinate, double, false)},
     {FTPRL_LABELLED_PARTS(KinkedCoordinate, float, true), FTPRL_LABELLED_PARTS(KinkedCoordinate, double, true)}},
    {FTPRL_ISA::mix<float>, FTPRL_ISA::mix<double>},
};

}  // namespace ftprl
