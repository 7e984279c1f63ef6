// Several scales with labels in any unit: every loss but the log loss. Included by scales.inl; rules as there.

// A cell of a loss with a kink also has kappa, the unit of its weights; 0 before it was learned.
template <class T, int L>
struct alignas((8 * L + 3) * sizeof(T) <= 64 ? 64 : 8) KinkedCoordinate {
    T z[4 * L], R[4 * L], s, N, kappa;
};

template <class T, int L>
inline double kappa_of(const Coordinate<T, L>&) {
    return 1.0;
}
template <class T, int L>
inline double kappa_of(const KinkedCoordinate<T, L>& cell) {
    return cell.kappa;
}
template <class T, int L>
inline void set_kappa(Coordinate<T, L>&, double) {}
template <class T, int L>
inline void set_kappa(KinkedCoordinate<T, L>& cell, double kappa) {
    cell.kappa = static_cast<T>(kappa);
}

// As predict_entry; `reach` adds up v^2 / (h Q), by which a slope of 1 moves the score.
template <class C, class T, int L, bool unconstrained, bool raise>
FTPRL_INSIDE void predict_labelled_entry(const Lanes<L>& c, const BoxTable& boxes, C* cells, std::uint32_t at, double v,
                                         D* part, D* reach, D* kept) {
    C& cell = cells[at];
    if constexpr (raise) raise_unit(cell, fabs(v));
    const D s = all(cell.s), kappa = all(kappa_of(cell)), wide_v = all(v), square = all(v * v);
    Limits limits = limits_of(c.play[0]);
    if constexpr (!unconstrained) limits = limits_at(c.play[0], boxes, at);
    for (int l = 0; l < L; ++l) {
        const D rate = rate_of(c.play[l], wide_at(cell.R + 4 * l), s);
        const D x = play_at<unconstrained>(c.play[l], limits, wide_at(cell.z + 4 * l), rate, kappa, s);
        if constexpr (raise) {
            kept[l] = x;
            reach[l] += square * rate;
        }
        part[l] += x * wide_v;
    }
}

// `largest` is raised to the largest |value| of a row that will be learned.
template <class C, class T, int L, bool unconstrained, bool raise>
inline void predict_labelled(const Rows& rows, bool wide, const Lanes<L>& c, const BoxTable& boxes, C* cells,
                             std::int64_t from, std::int64_t to, std::int64_t end, D* score, D* reach, D* kept,
                             double& largest) {
    constexpr std::int64_t far = FAR<C>;
    const std::uint32_t* next = rows.indices + (to + far <= end ? far : 0);
    D part[4][L], moved[4][L];
    for (int j = 0; j < 4; ++j) {
        for (int l = 0; l < L; ++l) part[j][l] = moved[j][l] = all(0.0);
    }
    for (std::int64_t p = from; p < to; ++p) {
        const auto j = static_cast<int>((p - from) % 4);
        fetch_cell(cells + next[p]);
        if constexpr (!unconstrained) fetch_kind(boxes, next[p]);
        const double v = value_of(rows, wide, p);
        predict_labelled_entry<C, T, L, unconstrained, raise>(c, boxes, cells, rows.indices[p], v, part[j], moved[j],
                                                              kept);
        if constexpr (raise) {
            kept += L;
            largest = most(largest, fabs(v));
        }
    }
    for (int l = 0; l < L; ++l) {
        score[l] = (part[0][l] + part[1][l]) + (part[2][l] + part[3][l]);
        if constexpr (raise) reach[l] = (moved[0][l] + moved[1][l]) + (moved[2][l] + moved[3][l]);
    }
}

// Whether no gradient of a row with values up to `largest`, nor one in units, is large enough to be cut: a product is
// rounded to no less than a smaller one.
template <class T, int L>
inline bool are_small(const D* slope, double largest, const Units& units) {
    D small = all(1.0);
    for (int l = 0; l < L; ++l) {
        const D g = size(slope[l]) * all(largest);
        small = where_positive(all(LARGEST_GRADIENT<T>) - g, small);
        small = where_positive(all(LARGEST_GRADIENT<T>) - g * units.over_psi, small);
    }
    return sum(small) == 4.0;
}

template <class C, class T, int L, bool unconstrained, bool kinked, bool receipt, bool small>
inline void learn_labelled_entries(const Rows& rows, bool wide, const Lanes<L>& c, C* cells, std::int64_t from,
                                   std::int64_t to, std::int64_t end, const Units& units, const D* slope, const D* kept,
                                   double* sums_of_gradients, RegretSums (*sums)[L]) {
    const std::int64_t next = to + FAR<C> <= end ? FAR<C> : 0;
    for (std::int64_t p = from; p < to; ++p) {
        C& cell = cells[rows.indices[p]];
        if constexpr (receipt) fetch_gradients<L>(sums_of_gradients, rows.indices[p + next]);
        const int j = receipt ? static_cast<int>((p - from) % 4) : 0;
        const D v = all(value_of(rows, wide, p));
        const Four<T> s = narrow<T>(all(cell.s));
        const double kappa = kappa_of(cell);
        const D own = all(kappa > 0.0 ? 1.0 / kappa : 0.0);
        for (int l = 0; l < L; ++l) {
            const Block<T> b = {wide_at(cell.z + 4 * l), wide_at(cell.R + 4 * l), v, *kept++, s, s};
            Four<T> z, R;
            const D g = labelled_step<T, unconstrained, kinked, receipt, small>(c.play[l], c.inverse[l], units,
                                                                                slope[l], b, own, z, R, sums[j][l]);
            store(cell.z + 4 * l, z);
            store(cell.R + 4 * l, R);
            if constexpr (receipt) {
                double* S = sums_of_gradients + std::size_t{rows.indices[p]} * (4 * L) + 4 * l;
                store(S, load(S) + g);
            }
        }
        set_kappa(cell, first(units.kappa));
    }
}

// Nearly all rows have small gradients; a shorter loop for them is worth its code where most models are.
template <class C, class T, int L, bool unconstrained, bool kinked, bool receipt>
inline void learn_labelled_row(const Rows& rows, bool wide, const Lanes<L>& c, C* cells, std::int64_t from,
                               std::int64_t to, std::int64_t end, const Units& units, const D* slope, const D* kept,
                               double largest, double* sums_of_gradients, RegretSums (*sums)[L]) {
    constexpr bool may_be_small = unconstrained && !receipt;
    if (may_be_small && are_small<T, L>(slope, largest, units)) {
        learn_labelled_entries<C, T, L, unconstrained, kinked, receipt, may_be_small>(
            rows, wide, c, cells, from, to, end, units, slope, kept, sums_of_gradients, sums);
    } else {
        learn_labelled_entries<C, T, L, unconstrained, kinked, receipt, false>(
            rows, wide, c, cells, from, to, end, units, slope, kept, sums_of_gradients, sums);
    }
}

// The intercepts of four scales: a coordinate of value and unit 1, without l1, l2 and bounds; `kappa` is theirs.
template <int L>
inline void add_labelled_intercept(const Lanes<L>& c, const double* cell, double kappa, D* score, D* x, D* reach) {
    for (int l = 0; l < L; ++l) {
        const D rate = rate_of(c.play[l], load(cell + MOST_SCALES + 4 * l), all(1.0));
        x[l] = play_at<true>(c.play[l], load(cell + 4 * l), rate, all(kappa), all(1.0));
        score[l] += x[l];
        if (reach != nullptr) reach[l] += rate;
    }
}

template <int L, bool kinked, bool receipt>
inline void learn_labelled_intercept(const Lanes<L>& c, double* cell, double kappa, const Units& units, const D* slope,
                                     const D* x, RegretSums* sums) {
    const D one = all(1.0), own = all(kappa > 0.0 ? 1.0 / kappa : 0.0);
    for (int l = 0; l < L; ++l) {
        const Block<double> b = {load(cell + 4 * l), load(cell + MOST_SCALES + 4 * l), one, x[l], one, one};
        D z, R;
        const D g = labelled_step<double, true, kinked, receipt>(c.play[l], c.inverse[l], units, slope[l], b, own, z, R,
                                                                 sums[l]);
        store(cell + 4 * l, z);
        store(cell + MOST_SCALES + 4 * l, R);
        if constexpr (receipt) {
            double* S = cell + 2 * MOST_SCALES + 4 * l;
            store(S, load(S) + g);
        }
    }
}

template <class C, class T, int L, bool unconstrained, bool kinked, bool receipt>
Totals learn_labelled(const Rows& rows, bool wide, const ScaleConstants& constants, const ScaleState& state,
                      const RowOutputs& out, double* buffer) {
    auto* cells = static_cast<C*>(state.cells);
    D* kept = reinterpret_cast<D*>(buffer);
    const Lanes<L> c = lanes_of<L>(constants);
    const std::int64_t end = rows.indptr[rows.count];
    double *tallies = state.tallies, *own_kappa = state.intercept + 3 * MOST_SCALES;
    Mixture& m = *state.mixture;
    Totals batch = {0.0, 0.0, 0};
    alignas(32) double scores[ROW_INPUTS] = {}, arrival[ROW_INPUTS], reaches[4 * L], slopes[DENSE_AT] = {};
    D score[L], reach[L], slope[L], x[L] = {};
    ColumnIndex index;
    if (constants.dense) index_columns(*state.experts.dense, index);
    fetch_first_cells(rows, cells);
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const std::int64_t from = rows.indptr[r], to = rows.indptr[r + 1];
        const double y = rows.y[r], weight = rows.weight[r];
        const bool learns = y == y && weight > 0.0 && !constants.weighs;
        double largest = 0.0;
        if (learns) {
            predict_labelled<C, T, L, unconstrained, true>(rows, wide, c, constants.base.boxes, cells, from, to, end,
                                                           score, reach, kept, largest);
        } else {
            predict_labelled<C, T, L, unconstrained, false>(rows, wide, c, constants.base.boxes, cells, from, to, end,
                                                            score, reach, kept, largest);
        }
        for (int l = 0; l < L; ++l) score[l] += all(m.labels.offset);
        if (constants.base.intercept) {
            add_labelled_intercept(c, state.intercept, *own_kappa, score, x, learns ? reach : nullptr);
        }
        for (int l = 0; l < L; ++l) store(scores + 4 * l, score[l]);
        read_experts<T>(rows, wide, constants, state, index, from, to, end, learns, scores);
        if (!learns) {
            keep_arrival(constants, out, r, scores);
            const Opinions o = opinions_of(constants, m, scores);
            if (out.scores != nullptr) out.scores[r] = o.mean;
            if (out.losses != nullptr) out.losses[r] = y == y ? value_at(constants, o.mean, y) : y;
            if (constants.weighs && y == y && weight > 0.0) weigh_labelled(constants, m, o, y, weight);
            continue;
        }
        for (int l = 0; l < L; ++l) store(reaches + 4 * l, reach[l]);
        LabelledRow row;
        const MixedPrediction prediction =
            learn_with_labels(constants, m, scores, judged_inputs(constants, out, r, scores, arrival), reaches, y,
                              weight, tallies[ROWS] + 1.0, slopes, row);
        if (out.scores != nullptr) out.scores[r] = prediction.score;
        if (out.losses != nullptr) out.losses[r] = prediction.loss;
        batch.loss += weight * prediction.loss;
        batch.weight += weight;
        batch.rows += 1;
        tallies[LOSS] += weight * prediction.loss;
        tallies[WEIGHT] += weight;
        tallies[ROWS] += 1.0;
        for (int k = 0; receipt && k < constants.count; ++k) {
            add_row_sums(constants.base, m.labels, row, scores[k], slopes[k], prediction.score, prediction.loss,
                         state.receipt.rows, k);
        }
        learn_experts<T>(rows, wide, constants, state, cells, index, from, to, tallies[ROWS],
                         weight * slopes[constants.count]);
        if (!row.teaches) continue;
        RegretSums sums[4][L], own[L];
        for (int l = 0; l < L; ++l) {
            slope[l] = all(weight) * load(slopes + 4 * l);
            if constexpr (receipt) own[l] = sums[0][l] = sums[1][l] = sums[2][l] = sums[3][l] = no_sums();
        }
        learn_labelled_row<C, T, L, unconstrained, kinked, receipt>(
            rows, wide, c, cells, from, to, end, units_of<T>(m.labels), slope, kept, largest, state.receipt.S, sums);
        if (constants.base.intercept) {
            learn_labelled_intercept<L, kinked, receipt>(c, state.intercept, *own_kappa, units_of<double>(m.labels),
                                                         slope, x, own);
            *own_kappa = m.labels.kappa;
        }
        if constexpr (receipt) add_sums<L>(sums, own, slope, m.sums, state.receipt.rounding);
    }
    return batch;
}

template <class C, class T, int L, bool unconstrained>
void score_labelled(const Rows& rows, bool wide, const ScaleConstants& constants, const ScaleState& state, double* to) {
    auto* cells = static_cast<C*>(state.cells);
    const Lanes<L> c = lanes_of<L>(constants);
    const std::int64_t end = rows.indptr[rows.count];
    const Mixture& m = *state.mixture;
    alignas(32) double scores[ROW_INPUTS];
    D score[L], x[L] = {};
    ColumnIndex index;
    if (constants.dense) index_columns(*state.experts.dense, index);
    fetch_first_cells(rows, cells);
    for (std::int64_t r = 0; r < rows.count; ++r) {
        double largest = 0.0;
        predict_labelled<C, T, L, unconstrained, false>(rows, wide, c, constants.base.boxes, cells, rows.indptr[r],
                                                        rows.indptr[r + 1], end, score, nullptr, nullptr, largest);
        for (int l = 0; l < L; ++l) score[l] += all(m.labels.offset);
        if (constants.base.intercept) {
            add_labelled_intercept(c, state.intercept, state.intercept[3 * MOST_SCALES], score, x, nullptr);
        }
        for (int l = 0; l < L; ++l) store(scores + 4 * l, score[l]);
        read_experts<T>(rows, wide, constants, state, index, rows.indptr[r], rows.indptr[r + 1], end, false, scores);
        to[r] = opinions_of(constants, m, scores).mean;
    }
}
