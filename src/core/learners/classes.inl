// The kernels for several classes, included behind scales.inl with FTPRL_CLASSES (the table) defined as well: the
// arithmetic of docs/classes.md in the same order. The step of a lane is that of one scale.
#include "learners/classes.hpp"

namespace ftprl {
namespace FTPRL_ISA {
namespace {

constexpr double LOWEST_LOG = -8.0;  // the stack sees logarithms of probabilities cut to this

// The arrays of one row; a number for each lane, or for each column.
struct ClassRow {
    double *score, *logs, *chance, *slope;  // lanes
    double *stack_logs, *stack_chance;      // columns
    RegretSums* sums;                       // of a receipt, four lanes each
    D* kept;                                // the plays: lanes of each entry
    double* dense;                          // a 1 and the dense columns
};

inline ClassRow class_row(const ClassConstants& c, double* buffer, double* dense) {
    const auto part = [&](int number) { return buffer + number * c.lanes; };
    static_assert(LANE_NUMBERS == 10 && COLUMN_NUMBERS == 2 && sizeof(RegretSums) == 6 * sizeof(D),
                  "what the buffer is for");
    return {part(0),
            part(1),
            part(2),
            part(3),
            part(4),
            part(5),
            reinterpret_cast<RegretSums*>(part(6)),
            reinterpret_cast<D*>(part(12)),
            dense};
}

inline Play lane_play(const ClassConstants& c, int l) {
    const Constants& base = c.scales->base;
    const D h = load(c.h + 4 * l);
    return {h, opposite(h), all(base.beta), all(base.l1), h * all(base.l2), all(base.lower), all(base.upper)};
}

// Where z, R, s and N of a cell are.
template <class T>
struct ClassCell {
    T *z, *R, *s;

    ClassCell(T* cells, std::size_t number, int lanes)
        : z(cells + number * (2 * static_cast<std::size_t>(lanes) + 2)), R(z + lanes), s(R + lanes) {}
    T& N() const { return s[1]; }
};

constexpr std::int64_t CLASSES_AHEAD = 4;  // entries; cells are long, and the processor fetches on by itself

template <class T>
inline void fetch_class_cell(const Rows& rows, const ClassConstants& c, T* cells, std::int64_t p, std::int64_t end) {
    if (p + CLASSES_AHEAD >= end) return;
    const ClassCell<T> next(cells, rows.indices[p + CLASSES_AHEAD], c.cell_lanes);
    const int lanes = c.lanes;
    for (int at = 0; at < lanes; at += static_cast<int>(64 / sizeof(T))) {
        fetch(next.z + at);
        fetch(next.R + at);
    }
    fetch(next.s);
}

// N and s as with several scales: raise_unit in scales.inl.
template <class T>
inline void raise_class_unit(const ClassCell<T>& cell, double a) {
    cell.N() = static_cast<T>(static_cast<double>(cell.N()) + 1.0);
    const double s = *cell.s;
    if (!(a > s)) return;
    const double rms = sqrt(s * s + (a * a - s * s) / static_cast<double>(cell.N()));
    *cell.s = static_cast<T>(most(most(s, rms), a * 0.0625));
}

// The scores of all lanes; for a row that will be learned the units are raised first and the plays are kept.
template <class T, bool unconstrained, bool raise>
inline void predict_classes(const Rows& rows, bool wide, const ClassConstants& c, const ClassState& state,
                            std::int64_t from, std::int64_t to, std::int64_t end, const ClassRow& row) {
    T* cells = static_cast<T*>(state.cells);
    const int fours = c.lanes / 4;
    D* kept = row.kept;
    for (int l = 0; l < fours; ++l) store(row.score + 4 * l, all(0.0));
    for (std::int64_t p = from; p < to; ++p) {
        fetch_class_cell(rows, c, cells, p, end);
        const ClassCell<T> cell(cells, rows.indices[p], c.cell_lanes);
        const double value = value_of(rows, wide, p);
        if constexpr (raise) raise_class_unit(cell, fabs(value));
        const D s = all(*cell.s), v = all(value);
        Limits limits = limits_of(lane_play(c, 0));
        if constexpr (!unconstrained) limits = limits_at(lane_play(c, 0), c.scales->base.boxes, rows.indices[p]);
        for (int l = 0; l < fours; ++l) {
            const D x =
                play<unconstrained>(lane_play(c, l), limits, wide_at(cell.z + 4 * l), wide_at(cell.R + 4 * l), s);
            if constexpr (raise) *kept++ = x;
            store(row.score + 4 * l, load(row.score + 4 * l) + x * v);
        }
    }
    if (!c.scales->base.intercept) return;
    for (int l = 0; l < fours; ++l) {
        const D x = play<true>(lane_play(c, l), load(state.z + 4 * l), load(state.R + 4 * l), all(1.0));
        store(row.score + 4 * l, load(row.score + 4 * l) + x);
    }
}

// e^x of n numbers of at most 0, within 2 units in the last place; e^-700 below that. Without a call, so that the
// compiler can take several at once; the same operations for every instruction set.
inline void exp_below(const double* x, double* out, int n) {
    constexpr double LOG2E = 1.4426950408889634, LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33;
    constexpr double SHIFT = 0x1.8p52, FARTHEST = -700.0;
    for (int i = 0; i < n; ++i) {
        const double t = x[i] > FARTHEST ? x[i] : FARTHEST, shifted = t * LOG2E + SHIFT, whole = shifted - SHIFT;
        const double r = (t - whole * LN2_HIGH) - whole * LN2_LOW;
        double p = 1.0 / 6227020800.0;
        p = p * r + 1.0 / 479001600.0;
        p = p * r + 1.0 / 39916800.0;
        p = p * r + 1.0 / 3628800.0;
        p = p * r + 1.0 / 362880.0;
        p = p * r + 1.0 / 40320.0;
        p = p * r + 1.0 / 5040.0;
        p = p * r + 1.0 / 720.0;
        p = p * r + 1.0 / 120.0;
        p = p * r + 1.0 / 24.0;
        p = p * r + 1.0 / 6.0;
        p = p * r + 0.5;
        p = p * r + 1.0;
        p = p * r + 1.0;
        std::uint64_t bits;
        memcpy(&bits, &shifted, sizeof bits);
        bits = (bits + 1023) << 52;  // the low bits of `shifted` are the exponent
        double power;
        memcpy(&power, &bits, sizeof power);
        out[i] = p * power;
    }
}

inline double copies(const ClassConstants& c, int column) { return column < c.seen ? 1.0 : c.to_come; }

// From numbers t, `stride` apart a column, to the logarithms and the values of the softmax over all classes, in place:
// `count` neighbouring softmaxes at once, count at most MOST_SCALES.
inline void softmax(const ClassConstants& c, double* logs, double* chance, int count) {
    double high[MOST_SCALES], total[MOST_SCALES];
    for (int k = 0; k < count; ++k) {
        high[k] = logs[k];
        total[k] = 0.0;
    }
    for (int column = 1; column < c.columns; ++column) {
        for (int k = 0; k < count; ++k) high[k] = most(high[k], logs[column * count + k]);
    }
    for (int column = 0; column < c.columns; ++column) {
        for (int k = 0; k < count; ++k) logs[column * count + k] -= high[k];
    }
    exp_below(logs, chance, c.columns * count);
    for (int column = 0; column < c.columns; ++column) {
        const double times = copies(c, column);
        for (int k = 0; k < count; ++k) total[k] += times * chance[column * count + k];
    }
    for (int k = 0; k < count; ++k) high[k] = log(total[k]);
    for (int column = 0; column < c.columns; ++column) {
        for (int k = 0; k < count; ++k) {
            logs[column * count + k] -= high[k];
            chance[column * count + k] /= total[k];
        }
    }
}

// ln of the logistic function of each score, of which the softmax is what the functions are when they sum to 1.
inline void log_sigmoids(const double* score, double* logs, double* scratch, int n) {
    for (int i = 0; i < n; ++i) logs[i] = -fabs(score[i]);
    exp_below(logs, scratch, n);
    for (int i = 0; i < n; ++i) logs[i] = least(score[i], 0.0) - log1p(scratch[i]);
}

inline double stack_input(double log_chance) { return most(log_chance, LOWEST_LOG); }

// Whether the stack has dense columns, or had.
inline bool has_class_columns(const ClassDense* dense) { return dense != nullptr && dense->block.inputs > 0; }

// What the constant and the dense columns add to the score of one column of classes.
inline double class_columns_score(const ClassDense& dense, const double* inputs, int column) {
    const double* u = dense.u + column * dense.stride;
    D f = all(0.0);
    for (int j = 0; j < dense.stride; j += 4) f += load(u + j) * load(inputs + j);
    return sum(f);
}

// What every scale, and the stack, gives each class: logarithms and probabilities.
inline void class_experts(const ClassConstants& c, const Mixture& m, const ClassDense* dense, const ClassRow& row) {
    const int K = c.scales->count, n = c.columns * K;
    if (c.one_vs_rest) {
        log_sigmoids(row.score, row.logs, row.chance, n);
    } else {
        for (int i = 0; i < n; ++i) row.logs[i] = row.score[i];
    }
    softmax(c, row.logs, row.chance, K);
    if (!c.scales->stack) return;
    for (int column = 0; column < c.columns; ++column) {
        double f = 0.0;
        for (int k = 0; k < K; ++k) f += m.u[k] * stack_input(row.logs[column * K + k]);
        row.stack_logs[column] = has_class_columns(dense) ? f + class_columns_score(*dense, row.dense, column) : f;
    }
    softmax(c, row.stack_logs, row.stack_chance, 1);
}

// The loss of each expert if the label is in this column.
inline void class_losses(const ClassConstants& c, const ClassRow& row, int column, double* l) {
    const int K = c.scales->count;
    for (int k = 0; k < K; ++k) l[k] = -row.logs[column * K + k];
    if (c.scales->stack) l[K] = -row.stack_logs[column];
}

// The probability that the mixture gives one class of a column.
inline double mixed_chance(const ClassConstants& c, const Mixture& m, const ClassRow& row, int column) {
    const int K = c.scales->count;
    double total = 0.0;
    for (int k = 0; k < K; ++k) total += m.w[k] * row.chance[column * K + k];
    return c.scales->stack ? total + m.w[K] * row.stack_chance[column] : total;
}

// -ln of it, also where it is too small for a probability.
inline double mixed_loss(const ClassConstants& c, const Mixture& m, const ClassRow& row, int column) {
    const double total = mixed_chance(c, m, row, column);
    if (total >= LEAST_CHANCE) return -log(total);
    double l[MOST_EXPERTS] = {};
    class_losses(c, row, column, l);
    return mixed(*c.scales, m, l);
}

// The most probable of the first `known` classes, the first of equals; NaN before there is one.
inline double best_class(const ClassConstants& c, const Mixture& m, const ClassRow& row, int known) {
    double best = -1.0, match = NAN;
    for (int column = 0; column < known; ++column) {
        const double chance = mixed_chance(c, m, row, column);
        if (!(chance > best)) continue;
        best = chance;
        match = column;
    }
    return match;
}

// A Newton step of the stack. The Hessian of its loss is the sum of p (v - mean)(v - mean)^T over the classes, v what
// the stack sees of a class: a step of Sherman and Morrison for each column.
inline void newton_classes(const ClassConstants& c, Mixture& m, const ClassRow& row, int label, double row_weight) {
    const int K = c.scales->count, fours = (K + 3) / 4;
    const double weight = least(row_weight, STACK_WEIGHT);
    alignas(32) double mean[MOST_SCALES] = {}, d[MOST_SCALES] = {}, Pd[MOST_SCALES] = {};
    for (int column = 0; column < c.columns; ++column) {
        const double p = copies(c, column) * row.stack_chance[column];
        for (int k = 0; k < K; ++k) mean[k] += p * stack_input(row.logs[column * K + k]);
    }
    const auto times_P = [&] {
        for (int l = 0; l < fours; ++l) {
            D part = all(0.0);
            for (int k = 0; k < K; ++k) part += load(&m.P[k][4 * l]) * all(d[k]);
            store(Pd + 4 * l, part);
        }
    };
    for (int column = 0; column < c.columns; ++column) {
        const double p = copies(c, column) * row.stack_chance[column], b = weight * most(p, LEAST_CURVE);
        for (int k = 0; k < K; ++k) d[k] = stack_input(row.logs[column * K + k]) - mean[k];
        times_P();
        double q = 0.0;
        for (int k = 0; k < K; ++k) q += d[k] * Pd[k];
        const double shrink = b / (1.0 + b * most(q, 0.0));
        for (int l = 0; l < fours; ++l) {
            const D part = load(Pd + 4 * l);
            for (int k = 0; k < K; ++k) {
                store(&m.P[k][4 * l], load(&m.P[k][4 * l]) - all(shrink) * (all(Pd[k]) * part));
            }
        }
    }
    for (int k = 0; k < K; ++k) d[k] = mean[k] - stack_input(row.logs[label * K + k]);
    times_P();
    for (int k = 0; k < K; ++k) m.u[k] -= weight * Pd[k];
    // Rounding may in the end leave a matrix that is not positive; the stack then learns its Hessian anew.
    bool positive = true;
    for (int k = 0; k < K; ++k) positive = positive && m.P[k][k] > 0.0;
    if (positive) return;
    for (int k = 0; k < K; ++k) {
        for (int j = 0; j < MOST_COLUMNS; ++j) m.P[k][j] = j == k ? 1.0 / STACK_RIDGE : 0.0;
    }
}

// A Newton step of the weights of the dense columns, of each class as if it were learned against the rest.
inline void newton_class_columns(const ClassConstants& c, ClassDense& dense, const ClassRow& row, int label,
                                 double row_weight) {
    const double weight = least(row_weight, STACK_WEIGHT);
    const int inputs = dense.block.inputs + dense.block.active;
    for (int column = 0; column < c.columns; ++column) {
        const double p = row.stack_chance[column], curve = weight * most(p * (1.0 - p), LEAST_CURVE);
        newton_step(dense.u + column * dense.stride, dense.P + static_cast<std::size_t>(column) * inputs * dense.stride,
                    dense.stride, row.dense, inputs, column == label ? p - 1.0 : p, curve, weight);
    }
}

// The weighted slope of each lane: its probability of its class, less 1 for the class of the label.
inline void class_slopes(const ClassConstants& c, const ClassRow& row, int label, double weight) {
    const int K = c.scales->count, n = c.columns * K;
    if (c.one_vs_rest) {
        double* e = row.chance;  // not needed any more
        for (int i = 0; i < n; ++i) row.slope[i] = -fabs(row.score[i]);
        exp_below(row.slope, e, n);
        for (int i = 0; i < n; ++i) row.slope[i] = (row.score[i] >= 0.0 ? 1.0 : e[i]) / (1.0 + e[i]);
    } else {
        for (int i = 0; i < n; ++i) row.slope[i] = row.chance[i];
    }
    for (int k = 0; k < K; ++k) row.slope[label * K + k] -= 1.0;
    for (int i = 0; i < n; ++i) row.slope[i] *= weight;
    for (int i = n; i < c.lanes; ++i) row.slope[i] = 0.0;
}

// Labels that arrive late: the losses of the experts of a row that is only predicted are kept until it is learned. That
// the label is in the data already does no harm: nothing reads them before.
inline void keep_class_arrival(const ClassConstants& c, const RowOutputs& out, std::int64_t r, const ClassRow& row,
                               int label) {
    if (out.arrivals == nullptr) return;
    class_losses(c, row, label, out.arrivals + out.arrival_of[r] * arrival_numbers(c.scales->count));
}

// What was kept of a row that is learned now; null where its label is not late.
inline const double* class_arrival(const ClassConstants& c, const RowOutputs& out, std::int64_t r) {
    if (out.arrivals == nullptr) return nullptr;
    return out.arrivals + out.arrival_of[r] * arrival_numbers(c.scales->count);
}

// A row that is learned: the loss of the mixture, its new weights, and the slopes. Where its label was late the experts
// are judged by their losses when it arrived, `arrival`.
inline double learn_class_mixture(const ClassConstants& c, Mixture& m, ClassDense* dense, const ClassRow& row,
                                  const double* arrival, int label, double weight, double t) {
    const int n = experts(*c.scales), K = c.scales->count;
    if (c.scales->frozen) {
        const double loss = mixed_loss(c, m, row, label);
        class_slopes(c, row, label, weight);
        return loss;
    }
    double l[MOST_EXPERTS] = {}, power[MOST_EXPERTS] = {};
    class_losses(c, row, label, l);
    for (int j = 0; arrival != nullptr && j < n; ++j) l[j] = arrival[j];
    admit(*c.scales, m, weight);
    const double loss = arrival != nullptr ? mixed(*c.scales, m, l) : mixed_loss(c, m, row, label);
    for (int j = 0; j < n; ++j) {
        m.totals[j] += weight * l[j];
        power[j] = j < K ? row.chance[label * K + j] : row.stack_chance[label];
    }
    const bool direct = arrival == nullptr && mixed_chance(c, m, row, label) >= LEAST_CHANCE;
    if (n > 1) share_out(*c.scales, m, l, weight, t, direct ? power : nullptr);
    if (c.scales->stack) newton_classes(c, m, row, label, weight);
    if (has_class_columns(dense)) newton_class_columns(c, *dense, row, label, weight);
    keep_blocks(*c.scales, m, l, weight, static_cast<std::int64_t>(t));
    class_slopes(c, row, label, weight);
    return loss;
}

// A held-out row moves the weights of the experts alone, as weigh_log_loss does.
inline void weigh_classes(const ClassConstants& c, Mixture& m, const ClassRow& row, int label, double weight) {
    double l[MOST_EXPERTS] = {};
    const int n = experts(*c.scales);
    class_losses(c, row, label, l);
    weigh_experts(m, n, l, weight / heat_of(m));
}

template <class T, bool unconstrained, bool receipt>
inline void learn_class_entries(const Rows& rows, bool wide, const ClassConstants& c, const ClassState& state,
                                std::int64_t from, std::int64_t to, const ClassRow& row) {
    T* cells = static_cast<T*>(state.cells);
    const int fours = c.lanes / 4;
    const D* kept = row.kept;
    RegretSums none = no_sums();
    if constexpr (receipt) {
        for (int l = 0; l < fours; ++l) row.sums[l] = none;
    }
    for (std::int64_t p = from; p < to; ++p) {
        const ClassCell<T> cell(cells, rows.indices[p], c.cell_lanes);
        const D v = all(value_of(rows, wide, p));
        const Four<T> s = narrow<T>(all(*cell.s));
        for (int l = 0; l < fours; ++l) {
            const Block<T> b = {wide_at(cell.z + 4 * l), wide_at(cell.R + 4 * l), v, *kept++, s, s};
            Four<T> z, R;
            const D g = step<T, unconstrained, receipt>(lane_play(c, l), load(c.inverse + 4 * l),
                                                        load(row.slope + 4 * l), b, z, R, receipt ? row.sums[l] : none);
            store(cell.z + 4 * l, z);
            store(cell.R + 4 * l, R);
            if constexpr (receipt) {
                double* S = state.receipt.S + std::size_t{rows.indices[p]} * c.cell_lanes + 4 * l;
                store(S, load(S) + g);
            }
        }
    }
    if (!c.scales->base.intercept) return;
    const D one = all(1.0);
    for (int l = 0; l < fours; ++l) {
        const Play play_of_lanes = lane_play(c, l);
        Block<double> b = {load(state.z + 4 * l), load(state.R + 4 * l), one, one, one, one};
        b.x = play<true>(play_of_lanes, b.z, b.R, b.M);
        D z, R;
        const D g = step<double, true, receipt>(play_of_lanes, load(c.inverse + 4 * l), load(row.slope + 4 * l), b, z,
                                                R, receipt ? row.sums[l] : none);
        store(state.z + 4 * l, z);
        store(state.R + 4 * l, R);
        if constexpr (receipt) store(state.S + 4 * l, load(state.S + 4 * l) + g);
    }
}

// What a row adds to the sums of a receipt: of each scale over its classes, in their order.
inline void add_class_sums(const ClassConstants& c, const ClassState& state, const ClassRow& row) {
    const int K = c.scales->count;
    const auto* numbers = reinterpret_cast<const double*>(row.sums);
    double (*rounding)[MOST_SCALES] = state.receipt.rounding;
    double* to[] = {state.mixture->sums[0], state.mixture->sums[1], state.mixture->sums[2],
                    rounding[DRIFT],        rounding[LINEAR_SIZE],  rounding[STEP_SIZE]};
    for (int k = 0; k < K; ++k) {
        double total[6] = {}, slopes = 0.0;
        for (int column = 0; column < c.columns; ++column) {
            const int lane = column * K + k;
            const double times = copies(c, column);
            for (int part = 0; part < 6; ++part) total[part] += times * numbers[lane / 4 * 24 + part * 4 + lane % 4];
            slopes += times * fabs(row.slope[lane]);
        }
        for (int part = 0; part < 6; ++part) to[part][k] += total[part];
        rounding[SLOPES][k] += slopes;
    }
}

// The dense columns of a row; those of one that is learned for the first time are counted.
inline void read_class_columns(const Rows& rows, bool wide, const ClassState& state, const ColumnIndex& index,
                               std::int64_t from, std::int64_t to, bool counts, const ClassRow& row) {
    if (state.dense == nullptr) return;
    read_columns(rows, wide, from, to, index, state.dense->block, counts, row.dense);
}

// After row t, which was learned for the first time.
template <class T>
inline void review_class_columns(const Rows& rows, bool wide, const ClassConstants& c, const ClassState& state,
                                 ColumnIndex& index, std::int64_t from, std::int64_t to, double t) {
    if (state.dense == nullptr) return;
    const auto may_be_dense = [&](std::int64_t p) {
        const ClassCell<T> cell(static_cast<T*>(state.cells), rows.indices[p], c.cell_lanes);
        return cell.N() >= DENSE_PART * t && fabs(value_of(rows, wide, p)) != *cell.s;
    };
    review_columns(
        rows, from, to, state.slots, t, [&] { settle_class_columns(*state.dense); }, index, state.dense->block,
        may_be_dense);
}

template <class T, bool unconstrained, bool receipt>
Totals learn_classes(const Rows& rows, bool wide, const ClassConstants& c, const ClassState& state,
                     const RowOutputs& out, double* buffer) {
    alignas(32) double dense[ROW_INPUTS];
    const ClassRow row = class_row(c, buffer, dense);
    ColumnIndex index;
    if (state.dense != nullptr) index_columns(state.dense->block, index);
    const std::int64_t end = rows.indptr[rows.count];
    Mixture& m = *state.mixture;
    double* tallies = state.tallies;
    Totals batch = {0.0, 0.0, 0};
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const std::int64_t from = rows.indptr[r], to = rows.indptr[r + 1];
        const double y = rows.y[r], weight = rows.weight[r];
        const bool labelled = y == y, counts = labelled && weight > 0.0;
        // A class that was not seen yet is one of those to come.
        const int label = !labelled ? 0 : y < c.columns ? static_cast<int>(y) : c.columns - 1;
        if (counts && !c.scales->weighs) {
            predict_classes<T, unconstrained, true>(rows, wide, c, state, from, to, end, row);
        } else {
            predict_classes<T, unconstrained, false>(rows, wide, c, state, from, to, end, row);
        }
        const bool learns = counts && !c.scales->weighs, first_time = learns && !c.scales->frozen;
        read_class_columns(rows, wide, state, index, from, to, first_time, row);
        class_experts(c, m, state.dense, row);
        if (out.scores != nullptr) out.scores[r] = best_class(c, m, row, r == 0 ? c.seen_before : c.seen);
        if (!learns) {
            if (out.losses != nullptr) out.losses[r] = labelled ? mixed_loss(c, m, row, label) : y;
            if (counts) weigh_classes(c, m, row, label, weight);
            if (labelled && !counts) keep_class_arrival(c, out, r, row, label);
            continue;
        }
        const double* arrival = class_arrival(c, out, r);
        const double loss = learn_class_mixture(c, m, state.dense, row, arrival, label, weight, tallies[ROWS] + 1.0);
        if (out.losses != nullptr) out.losses[r] = loss;
        batch.loss += weight * loss;
        batch.weight += weight;
        batch.rows += 1;
        tallies[LOSS] += weight * loss;
        tallies[WEIGHT] += weight;
        tallies[ROWS] += 1.0;
        learn_class_entries<T, unconstrained, receipt>(rows, wide, c, state, from, to, row);
        if constexpr (receipt) add_class_sums(c, state, row);
        if (first_time) review_class_columns<T>(rows, wide, c, state, index, from, to, tallies[ROWS]);
    }
    return batch;
}

template <class T, bool unconstrained>
void score_classes(const Rows& rows, bool wide, const ClassConstants& c, const ClassState& state, double* scores,
                   double* buffer) {
    alignas(32) double dense[ROW_INPUTS];
    const ClassRow row = class_row(c, buffer, dense);
    ColumnIndex index;
    if (state.dense != nullptr) index_columns(state.dense->block, index);
    const std::int64_t end = rows.indptr[rows.count];
    for (std::int64_t r = 0; r < rows.count; ++r) {
        predict_classes<T, unconstrained, false>(rows, wide, c, state, rows.indptr[r], rows.indptr[r + 1], end, row);
        read_class_columns(rows, wide, state, index, rows.indptr[r], rows.indptr[r + 1], false, row);
        class_experts(c, *state.mixture, state.dense, row);
        for (int column = 0; column < c.seen; ++column) *scores++ = -mixed_loss(c, *state.mixture, row, column);
    }
}

}  // namespace
}  // namespace FTPRL_ISA

#define FTPRL_CLASS_SET(T)                                                                      \
    {                                                                                           \
        {{FTPRL_ISA::learn_classes<T, false, false>, FTPRL_ISA::learn_classes<T, false, true>}, \
         {FTPRL_ISA::learn_classes<T, true, false>, FTPRL_ISA::learn_classes<T, true, true>}},  \
        {                                                                                       \
            FTPRL_ISA::score_classes<T, false>, FTPRL_ISA::score_classes<T, true>               \
        }                                                                                       \
    }

const ClassKernels FTPRL_CLASSES = {{FTPRL_CLASS_SET(float), FTPRL_CLASS_SET(double)}};

}  // namespace ftprl
