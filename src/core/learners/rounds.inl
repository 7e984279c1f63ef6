// The phases of a round of several rows, included behind scales.inl with FTPRL_ROUNDS (the table) defined. The order of
// all operations is that of docs/rounds.md.
#include "learners/rounds.hpp"

namespace ftprl {
namespace FTPRL_ISA {
namespace {

// ---- cells of one scale and of several, in lanes ----

// One scale: its numbers stand in all four lanes, and the first is stored.
template <class T, bool receipt>
struct OneScale {
    using Type = T;
    using Record = typename RecordOf<T, receipt, false>::type;
    static constexpr int L = 1;
    static constexpr int stride = 1;  // numbers of a coordinate in an array by lane
    static constexpr bool several = false;

    Record* records;

    explicit OneScale(const ScaleState& state) : records(static_cast<Record*>(state.cells)) {}
    Cell<T>& cell(std::uint32_t at) const { return *cell_of(records + at); }
    void fetch_at(std::uint32_t at) const { fetch(records + at); }

    void raise(std::uint32_t at, double, double largest, double) const {
        const T a = static_cast<T>(largest);
        if (a > cell(at).M) cell(at).M = a;
    }
    D unit(std::uint32_t at) const { return all(cell(at).M); }
    D z(std::uint32_t at, int) const { return all(cell(at).z); }
    D R(std::uint32_t at, int) const { return all(cell(at).R); }
    void put(std::uint32_t at, int, Four<T> z, Four<T> R, D g) const {
        Cell<T>& own = cell(at);
        own.z = static_cast<T>(first(wide(z)));
        own.R = static_cast<T>(first(wide(R)));
        own.S = static_cast<T>(static_cast<double>(own.S) + first(g));
        Cell<T>* const cells[1] = {&own};
        add_gradients(records, cells, 1, g);
    }
    static D read(const double* p, int) { return all(*p); }
    static void write(double* p, int, D v) { *p = first(v); }
};

template <class T, int lanes, bool receipt>
struct SeveralScales {
    using Type = T;
    static constexpr int L = lanes;
    static constexpr int stride = 4 * lanes;
    static constexpr bool several = true;

    Coordinate<T, L>* cells;
    double* S;

    explicit SeveralScales(const ScaleState& state)
        : cells(static_cast<Coordinate<T, L>*>(state.cells)), S(state.receipt.S) {}
    void fetch_at(std::uint32_t at) const {
        fetch_cell(cells + at);
        if constexpr (receipt) fetch_gradients<L>(S, at);
    }

    // As raise_unit, for several rows at once.
    void raise(std::uint32_t at, double rows, double largest, double squares) const {
        Coordinate<T, L>& cell = cells[at];
        cell.N = static_cast<T>(static_cast<double>(cell.N) + rows);
        const double s = cell.s;
        if (!(largest > s)) return;
        const double rms = sqrt(most(0.0, s * s + (squares - rows * (s * s)) / static_cast<double>(cell.N)));
        cell.s = static_cast<T>(most(most(s, rms), largest * 0.0625));
    }
    D unit(std::uint32_t at) const { return all(cells[at].s); }
    D z(std::uint32_t at, int l) const { return wide_at(cells[at].z + 4 * l); }
    D R(std::uint32_t at, int l) const { return wide_at(cells[at].R + 4 * l); }
    void put(std::uint32_t at, int l, Four<T> z, Four<T> R, D g) const {
        store(cells[at].z + 4 * l, z);
        store(cells[at].R + 4 * l, R);
        if constexpr (receipt) {
            double* own = S + std::size_t{at} * stride + 4 * l;
            store(own, load(own) + g);
        }
    }
    static D read(const double* p, int l) { return load(p + 4 * l); }
    static void write(double* p, int l, D v) { store(p + 4 * l, v); }
};

constexpr std::int64_t COORDINATES_AHEAD = 16;

// ---- units and plays ----

// What is played is what a cell could hold, so that it can be sent as it is: rounded, then put within its bounds.
template <class T, bool unconstrained>
inline D rounded_play(const Play& c, const Limits& limits, D z, D R, D unit) {
    const Limits none = {all(-HUGE_VAL), all(HUGE_VAL)};
    D x = play<unconstrained>(c, none, z, R, unit);
    if constexpr (sizeof(T) == sizeof(float)) {
        x = wide(narrow<float>(larger(smaller(x, all(FLT_MAX)), all(-FLT_MAX))));
    }
    if constexpr (unconstrained) return x;
    return smaller(larger(x, limits.lower), limits.upper);
}

template <class Access, bool unconstrained>
void play_round(const RoundCoordinates& all_of, const ScaleConstants& constants, const ScaleState& state, double* x) {
    const Access cells(state);
    const auto c = lanes_of<Access::L>(constants);
    for (std::int64_t i = 0; i < all_of.count; ++i, x += Access::stride) {
        if (i + COORDINATES_AHEAD < all_of.count) cells.fetch_at(all_of.cells[i + COORDINATES_AHEAD]);
        const std::uint32_t at = all_of.cells[i];
        if (all_of.rows[i] > 0.0) cells.raise(at, all_of.rows[i], all_of.largest[i], all_of.squares[i]);
        const D unit = cells.unit(at);
        const Limits limits = limits_at(c.play[0], constants.base.boxes, at);
        for (int l = 0; l < Access::L; ++l) {
            const D own = rounded_play<typename Access::Type, unconstrained>(c.play[l], limits, cells.z(at, l),
                                                                             cells.R(at, l), unit);
            Access::write(x, l, own);
        }
    }
}

// ---- scores and sums of rows ----

// The sum of each fourth entry, from the first on, from the second on and so on, as everywhere.
template <class Access>
void score_round(const RoundRows& rows, const double* x, double* scores) {
    for (std::int64_t r = 0; r < rows.count; ++r, scores += Access::stride) {
        D part[4][Access::L];
        for (int j = 0; j < 4; ++j) {
            for (int l = 0; l < Access::L; ++l) part[j][l] = all(0.0);
        }
        const std::int64_t from = rows.indptr[r];
        for (std::int64_t p = from; p < rows.indptr[r + 1]; ++p) {
            const double* own = x + std::size_t{rows.coordinates[p]} * Access::stride;
            const D v = all(rows.values[p]);
            for (int l = 0; l < Access::L; ++l) part[(p - from) % 4][l] += Access::read(own, l) * v;
        }
        for (int l = 0; l < Access::L; ++l) {
            Access::write(scores, l, (part[0][l] + part[1][l]) + (part[2][l] + part[3][l]));
        }
    }
}

template <class Access>
void sum_round(const RoundRows& rows, const double* slopes, double* sums) {
    for (std::int64_t r = 0; r < rows.count; ++r, slopes += Access::stride) {
        if (!(rows.y[r] == rows.y[r] && rows.weight[r] > 0.0)) continue;
        for (std::int64_t p = rows.indptr[r]; p < rows.indptr[r + 1]; ++p) {
            double* own = sums + std::size_t{rows.coordinates[p]} * Access::stride;
            const D v = all(rows.values[p]);
            for (int l = 0; l < Access::L; ++l) {
                const D g = cut<typename Access::Type>(Access::read(slopes, l) * v);
                Access::write(own, l, Access::read(own, l) + g);
            }
        }
    }
}

// ---- steps ----

// The step of a coordinate with the gradient slope v; `x` is what was played.
template <class Access, bool unconstrained, bool receipt>
inline void step_cell(const Access& cells, const Lanes<Access::L>& c, std::uint32_t at, int l, D slope, D v, D x,
                      RegretSums& sums) {
    using T = typename Access::Type;
    const Four<T> unit = narrow<T>(cells.unit(at));
    const Block<T> b = {cells.z(at, l), cells.R(at, l), v, x, unit, unit};
    Four<T> z, R;
    const D g = Step<T, unconstrained, receipt>::of(c.play[l], c.inverse[l], slope, b, z, R, sums);
    cells.put(at, l, z, R, g);
}

template <class Access, bool unconstrained, bool receipt>
void step_round(const RoundCoordinates& all_of, const double* x, const double* g, const ScaleConstants& constants,
                const ScaleState& state, ShardSums& shards) {
    const Access cells(state);
    const auto c = lanes_of<Access::L>(constants);
    const D one = all(1.0);
    for (std::int64_t i = 0; i < all_of.count; ++i, x += Access::stride, g += Access::stride) {
        if (i + COORDINATES_AHEAD < all_of.count) cells.fetch_at(all_of.cells[i + COORDINATES_AHEAD]);
        if (!(all_of.rows[i] > 0.0)) continue;
        double (*to)[MOST_SCALES] = shards.of[shard_of(all_of.slots[i])];
        for (int l = 0; l < Access::L; ++l) {
            RegretSums sums = no_sums();
            step_cell<Access, unconstrained, receipt>(cells, c, all_of.cells[i], l, Access::read(g, l), one,
                                                      Access::read(x, l), sums);
            if constexpr (receipt) {
                // What was played is up to half a unit in its last place off, and the sum of the gradients was rounded:
                // no slope of the log loss is larger than the weight of its row.
                if constexpr (sizeof(typename Access::Type) == sizeof(float)) {
                    const D own = size(cut<float>(Access::read(g, l)));
                    sums.drift += all(0x1p-24) * size(sums.linear) + all(0x1p-149) * own;
                }
                const D gradients = all(all_of.rows[i] * all_of.largest[i] * all_of.heaviest);
                sums.linear_size = size(Access::read(x, l)) * gradients;
                const D parts[STEP_SUMS] = {sums.linear, sums.proximal,    sums.stability,
                                            sums.drift,  sums.linear_size, sums.step_size};
                for (int j = 0; j < STEP_SUMS; ++j) store(to[j] + 4 * l, load(to[j] + 4 * l) + parts[j]);
            }
        }
    }
}

// ---- the chain of rows ----

// What the rows of a round have in common on their way through the chain.
struct ChainRow {
    std::int64_t number;
    double y, weight;
    bool learns;
};

// The loss of one scale and the slope of a row that is learned.
inline void chain_one(const ChainRow& row, const ScaleConstants& constants, const ScaleState& state,
                      const RowOutputs& out, double score, D* slope, Totals& batch) {
    const Constants& c = constants.base;
    double tail = 0.0;
    if (out.scores != nullptr) out.scores[row.number] = score;
    double* to = out.losses == nullptr ? nullptr : out.losses + row.number;
    if (row.y != row.y) {
        if (to != nullptr) *to = row.y;
        return;
    }
    const LossAtScore at = c.loss->at(score, row.y, c.tau, tail);
    if (row.learns) {
        slope[0] = all(row.weight * at.slope);
        add_loss({at.value, tail, row.weight, to}, state.tallies, batch);
    } else if (to != nullptr) {
        *to = total_loss(at.value, tail);
    }
}

// The same for several scales, with all that their mixture does.
template <int L>
inline void chain_several(const ChainRow& row, const ScaleConstants& constants, const ScaleState& state,
                          const RowOutputs& out, const double* scores, D* slope, Totals& batch) {
    double* tallies = state.tallies;
    MixedPrediction prediction;
    if (row.learns) {
        alignas(32) double slopes[DENSE_AT] = {};
        prediction = learn_mixture(constants, *state.mixture, scores, scores, row.y, row.weight, tallies[ROWS] + 1.0,
                                   out.scores != nullptr, slopes);
        for (int l = 0; l < L; ++l) slope[l] = load(slopes + 4 * l);
        batch.loss += row.weight * prediction.loss;
        batch.weight += row.weight;
        batch.rows += 1;
        tallies[LOSS] += row.weight * prediction.loss;
        tallies[WEIGHT] += row.weight;
        tallies[ROWS] += 1.0;
    } else {
        prediction = predict_mixture(constants, *state.mixture, scores, row.y);
    }
    if (out.scores != nullptr) out.scores[row.number] = prediction.score;
    if (out.losses != nullptr) out.losses[row.number] = prediction.loss;
}

template <class Access, bool receipt>
inline void learn_own_intercept(const Lanes<Access::L>& c, const ScaleState& state, const D* slope, RegretSums* own) {
    if constexpr (Access::several) {
        learn_intercept<Access::L, receipt>(c, state.intercept, slope, own);
    } else {
        const Block<double> base = intercept_block(state.intercept, c.play[0]);
        D z, R;
        const D g = Step<double, true, receipt>::of(c.play[0], c.inverse[0], slope[0], base, z, R, own[0]);
        state.intercept[0] = first(z);
        state.intercept[1] = first(R);
        state.intercept[3] = first(base.S + g);
    }
}

template <class Access>
inline void add_own_sums(const ScaleState& state, const RegretSums* sums, const RegretSums* own, const D* slope) {
    if constexpr (Access::several) {
        RegretSums rows[4][Access::L];
        for (int l = 0; l < Access::L; ++l) {
            rows[0][l] = sums[l];
            rows[1][l] = rows[2][l] = rows[3][l] = no_sums();
        }
        add_sums<Access::L>(rows, own, slope, state.mixture->sums, state.receipt.rounding);
    } else {
        double (*rounding)[MOST_SCALES] = state.receipt.rounding;
        state.tallies[LINEAR] += first(sums->linear) + first(own->linear);
        state.tallies[PROXIMAL] += first(sums->proximal) + first(own->proximal);
        state.tallies[STABILITY] += first(sums->stability) + first(own->stability);
        rounding[DRIFT][0] += first(sums->drift) + first(own->drift);
        rounding[LINEAR_SIZE][0] += first(sums->linear_size) + first(own->linear_size);
        rounding[STEP_SIZE][0] += first(sums->step_size) + first(own->step_size);
        rounding[SLOPES][0] += fabs(first(*slope));
    }
}

template <class Access, bool unconstrained, bool receipt>
Totals chain_round(const RoundRows& rows, const HotEntries& hot, const double* scores, const ScaleConstants& constants,
                   const ScaleState& state, const RowOutputs& out, double* buffer, double* slopes) {
    constexpr int L = Access::L;
    const Access cells(state);
    const Lanes<L> c = lanes_of<L>(constants);
    D* kept = reinterpret_cast<D*>(buffer);
    Totals batch = {0.0, 0.0, 0};
    alignas(32) double inputs[ROW_INPUTS] = {};
    D score[L], slope[L];
    for (std::int64_t r = 0; r < rows.count; ++r, scores += Access::stride, slopes += Access::stride) {
        const double y = rows.y[r], weight = rows.weight[r];
        const ChainRow row = {r, y, weight, y == y && weight > 0.0};
        for (int l = 0; l < L; ++l) {
            score[l] = Access::read(scores, l);
            slope[l] = all(0.0);
        }
        const std::int64_t from = hot.indptr[r], to = hot.indptr[r + 1];
        for (std::int64_t p = from; p < to; ++p) {
            const double v = hot.values[p];
            if (row.learns) cells.raise(hot.cells[p], 1.0, fabs(v), v * v);
            const Limits limits = limits_at(c.play[0], constants.base.boxes, hot.cells[p]);
            const D unit = cells.unit(hot.cells[p]);
            for (int l = 0; l < L; ++l) {
                const D x =
                    play<unconstrained>(c.play[l], limits, cells.z(hot.cells[p], l), cells.R(hot.cells[p], l), unit);
                kept[(p - from) * L + l] = x;
                score[l] += x * all(v);
            }
        }
        if constexpr (Access::several) {
            add_intercept(c, state.intercept, constants.base.intercept, score);
            for (int l = 0; l < L; ++l) store(inputs + 4 * l, score[l]);
            chain_several<L>(row, constants, state, out, inputs, slope, batch);
        } else {
            const double shift = constants.base.intercept ? first(intercept_block(state.intercept, c.play[0]).x) : 0.0;
            chain_one(row, constants, state, out, first(score[0]) + shift, slope, batch);
        }
        for (int l = 0; l < L; ++l) Access::write(slopes, l, slope[l]);
        if (!row.learns) continue;
        RegretSums sums[L], own[L];
        for (int l = 0; l < L; ++l) sums[l] = own[l] = no_sums();
        for (std::int64_t p = from; p < to; ++p) {
            for (int l = 0; l < L; ++l) {
                step_cell<Access, unconstrained, receipt>(cells, c, hot.cells[p], l, slope[l], all(hot.values[p]),
                                                          kept[(p - from) * L + l], sums[l]);
            }
        }
        if (constants.base.intercept) learn_own_intercept<Access, receipt>(c, state, slope, own);
        if constexpr (receipt) add_own_sums<Access>(state, sums, own, slope);
    }
    return batch;
}

}  // namespace
}  // namespace FTPRL_ISA

#define FTPRL_ROUND_SET(receipt, unconstrained, ...)                                                               \
    {FTPRL_ISA::play_round<FTPRL_ISA::__VA_ARGS__, unconstrained>, FTPRL_ISA::score_round<FTPRL_ISA::__VA_ARGS__>, \
     FTPRL_ISA::chain_round<FTPRL_ISA::__VA_ARGS__, unconstrained, receipt>,                                       \
     FTPRL_ISA::sum_round<FTPRL_ISA::__VA_ARGS__>,                                                                 \
     FTPRL_ISA::step_round<FTPRL_ISA::__VA_ARGS__, unconstrained, receipt>}
#define FTPRL_ROUND_ONE(T, receipt) \
    {FTPRL_ROUND_SET(receipt, false, OneScale<T, receipt>), FTPRL_ROUND_SET(receipt, true, OneScale<T, receipt>)}
#define FTPRL_ROUND_LANES(T, receipt, unconstrained)                        \
    {FTPRL_ROUND_SET(receipt, unconstrained, SeveralScales<T, 1, receipt>), \
     FTPRL_ROUND_SET(receipt, unconstrained, SeveralScales<T, 2, receipt>), \
     FTPRL_ROUND_SET(receipt, unconstrained, SeveralScales<T, 3, receipt>), \
     FTPRL_ROUND_SET(receipt, unconstrained, SeveralScales<T, 4, receipt>)}
#define FTPRL_ROUND_SEVERAL(T, receipt) {FTPRL_ROUND_LANES(T, receipt, false), FTPRL_ROUND_LANES(T, receipt, true)}

const RoundKernels FTPRL_ROUNDS = {
    {{FTPRL_ROUND_ONE(float, false), FTPRL_ROUND_ONE(float, true)},
     {FTPRL_ROUND_ONE(double, false), FTPRL_ROUND_ONE(double, true)}},
    {{FTPRL_ROUND_SEVERAL(float, false), FTPRL_ROUND_SEVERAL(float, true)},
     {FTPRL_ROUND_SEVERAL(double, false), FTPRL_ROUND_SEVERAL(double, true)}},
};

}  // namespace ftprl
