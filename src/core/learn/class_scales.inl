// Cells of several classes: a lane is a scale of a column of classes (docs/classes.md). The step of a lane is that of
// one scale. Included by loops.inl; rules as in steps.inl.

// The arrays of one row; a number for each lane.
struct ClassRow {
    double *score, *slope;
    RegretSums* sums;  // of a receipt, four lanes each
    D* kept;           // the plays: lanes of each entry
};

inline ClassRow class_row(const ClassConstants& c, double* buffer) {
    static_assert(LANE_NUMBERS == 8 && sizeof(RegretSums) == 6 * sizeof(D), "what the buffer is for");
    return {buffer, buffer + c.lanes, reinterpret_cast<RegretSums*>(buffer + 2 * c.lanes),
            reinterpret_cast<D*>(buffer + LANE_NUMBERS * c.lanes)};
}

inline Play lane_play(const ClassConstants& c, int l) {
    const Constants& base = *c.base;
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

// The scores of all lanes; for a row that will be learned the units are raised first and the plays are kept.
template <class T, bool unconstrained, bool raise>
inline void predict_classes(const Rows& rows, const ClassConstants& c, const TableState& state, std::int64_t from,
                            std::int64_t to, std::int64_t end, const ClassRow& row) {
    T* cells = static_cast<T*>(state.cells);
    const int fours = c.lanes / 4;
    D* kept = row.kept;
    for (int l = 0; l < fours; ++l) store(row.score + 4 * l, all(0.0));
    for (std::int64_t p = from; p < to; ++p) {
        fetch_class_cell(rows, c, cells, p, end);
        const ClassCell<T> cell(cells, rows.indices[p], c.cell_lanes);
        const double value = value_of(rows, p);
        if constexpr (raise) raise_unit(*cell.s, cell.N(), fabs(value));
        const D s = all(*cell.s), v = all(value);
        Limits limits = limits_of(lane_play(c, 0));
        if constexpr (!unconstrained) limits = limits_at(lane_play(c, 0), c.base->boxes, rows.indices[p]);
        for (int l = 0; l < fours; ++l) {
            const D x =
                play<unconstrained>(lane_play(c, l), limits, wide_at(cell.z + 4 * l), wide_at(cell.R + 4 * l), s);
            if constexpr (raise) *kept++ = x;
            store(row.score + 4 * l, load(row.score + 4 * l) + x * v);
        }
    }
    if (!c.base->intercept) return;
    for (int l = 0; l < fours; ++l) {
        const D x = play<true>(lane_play(c, l), load(state.intercept + 4 * l), load(state.intercept + c.lanes + 4 * l),
                               all(1.0));
        store(row.score + 4 * l, load(row.score + 4 * l) + x);
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

// The weighted slope of each lane: its probability of its class, less 1 for the class of the label.
inline void class_slopes(const ClassConstants& c, const ClassRow& row, const double* chance, int label, double weight) {
    const int K = c.base->count, n = c.columns * K;
    if (c.one_vs_rest) {
        for (int i = 0; i < n; ++i) row.slope[i] = -fabs(row.score[i]);
        exp_below(row.slope, row.slope, n);
        for (int i = 0; i < n; ++i) row.slope[i] = (row.score[i] >= 0.0 ? 1.0 : row.slope[i]) / (1.0 + row.slope[i]);
    } else {
        for (int i = 0; i < n; ++i) row.slope[i] = chance[i];
    }
    for (int k = 0; k < K; ++k) row.slope[label * K + k] -= 1.0;
    for (int i = 0; i < n; ++i) row.slope[i] *= weight;
    for (int i = n; i < c.lanes; ++i) row.slope[i] = 0.0;
}

template <class T, bool unconstrained, bool receipt>
inline void learn_class_entries(const Rows& rows, const ClassConstants& c, const TableState& state, std::int64_t from,
                                std::int64_t to, const ClassRow& row) {
    T* cells = static_cast<T*>(state.cells);
    const int fours = c.lanes / 4;
    const D* kept = row.kept;
    RegretSums none = no_sums();
    if constexpr (receipt) {
        for (int l = 0; l < fours; ++l) row.sums[l] = none;
    }
    for (std::int64_t p = from; p < to; ++p) {
        const ClassCell<T> cell(cells, rows.indices[p], c.cell_lanes);
        const D v = all(value_of(rows, p));
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
    if (!c.base->intercept) return;
    double *own_z = state.intercept, *own_R = own_z + c.lanes, *own_S = own_R + c.lanes;
    const D one = all(1.0);
    for (int l = 0; l < fours; ++l) {
        const Play play_of_lanes = lane_play(c, l);
        Block<double> b = {load(own_z + 4 * l), load(own_R + 4 * l), one, one, one, one};
        b.x = play<true>(play_of_lanes, b.z, b.R, b.M);
        D z, R;
        const D g = step<double, true, receipt>(play_of_lanes, load(c.inverse + 4 * l), load(row.slope + 4 * l), b, z,
                                                R, receipt ? row.sums[l] : none);
        store(own_z + 4 * l, z);
        store(own_R + 4 * l, R);
        if constexpr (receipt) store(own_S + 4 * l, load(own_S + 4 * l) + g);
    }
}

// What a row adds to the sums of a receipt: of each scale over its classes, in their order.
inline void add_class_sums(const ClassConstants& c, const TableState& state, const ClassRow& row) {
    const int K = c.base->count;
    const auto* numbers = reinterpret_cast<const double*>(row.sums);
    double (*rounding)[MOST_SCALES] = state.receipt.rounding;
    double* to[] = {state.receipt.sums[0], state.receipt.sums[1], state.receipt.sums[2],
                    rounding[DRIFT],       rounding[LINEAR_SIZE], rounding[STEP_SIZE]};
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

// The column of a label: a class that was not seen yet is one of those to come.
inline int column_of_label(const ClassConstants& c, double y) {
    if (!(y == y)) return 0;
    return y < c.columns ? static_cast<int>(y) : c.columns - 1;
}

// The loop over rows of learn_rows, for as many lanes as there are: a row's scores become logarithms of probabilities.
template <class T, bool receipt>
void learn_class_rows(const BasePass& pass, const ClassConstants& c, const TableState& state, double* buffer) {
    const ClassRow row = class_row(c, buffer);
    const Rows& rows = *pass.rows;
    const std::int64_t end = rows.indptr[rows.count];
    const bool unconstrained = c.base->unconstrained;
    const int n = c.columns * c.base->count;
    for (std::int64_t r = pass.from; r < pass.to; ++r) {
        const std::int64_t from = rows.indptr[r], to = rows.indptr[r + 1], at = (r - pass.from) * pass.stride;
        const RowFacts& facts = pass.facts[r - pass.from];
        double *logs = pass.scores + at, *chance = pass.tails + at;
        if (facts.learns) {
            unconstrained ? predict_classes<T, true, true>(rows, c, state, from, to, end, row)
                          : predict_classes<T, false, true>(rows, c, state, from, to, end, row);
        } else {
            unconstrained ? predict_classes<T, true, false>(rows, c, state, from, to, end, row)
                          : predict_classes<T, false, false>(rows, c, state, from, to, end, row);
        }
        if (c.one_vs_rest) {
            log_sigmoids(row.score, logs, chance, n);
        } else {
            for (int i = 0; i < n; ++i) logs[i] = row.score[i];
        }
        softmax(c, logs, chance, c.base->count);
        if (!facts.learns) continue;
        class_slopes(c, row, chance, column_of_label(c, facts.y), facts.weight);
        unconstrained ? learn_class_entries<T, true, receipt>(rows, c, state, from, to, row)
                      : learn_class_entries<T, false, receipt>(rows, c, state, from, to, row);
        if constexpr (receipt) add_class_sums(c, state, row);
    }
}
