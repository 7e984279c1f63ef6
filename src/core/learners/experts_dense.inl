// The dense stack: docs/experts.md. Included by mix.inl; rules as there.

// The scores that the stack sees.
inline int inputs_of(const ScaleConstants& c) { return c.count + (c.coin ? 1 : 0); }

inline int column_of(const ColumnIndex& index, std::uint32_t cell) {
    std::uint32_t at = cell % INDEX_SIZE;
    while (index.column[at] >= 0 && index.cell[at] != cell) at = (at + 1) % INDEX_SIZE;
    return index.column[at];
}

// The values of the columns of a row: a 1 and the active ones, in deviations from their means, go to `to`. A row that
// is learned is counted, and its values in watched columns too.
inline void read_columns(const Rows& rows, bool wide, std::int64_t from, std::int64_t end, const ColumnIndex& index,
                         DenseBlock& b, bool learns, double* to) {
    double values[MOST_DENSE];
    const int all_columns = b.active + (learns ? b.watched : 0);
    if (learns) b.facts[ROWS_SINCE] += 1.0;
    to[0] = 1.0;
    if (all_columns == 0) return;
    for (int j = 0; j < all_columns; ++j) values[j] = 0.0;
    for (std::int64_t p = from; p < end; ++p) {
        const int j = column_of(index, rows.indices[p]);
        if (j < 0 || j >= all_columns) continue;
        values[j] = wide ? static_cast<const double*>(rows.values)[p]
                         : static_cast<double>(static_cast<const float*>(rows.values)[p]);
        if (learns) b.columns[j][MET] += 1.0;
    }
    for (int j = 0; j < b.active; ++j) {
        to[j + 1] = within((values[j] - b.columns[j][CENTRE]) / b.columns[j][DEVIATION], DENSE_CUT);
    }
    for (int j = b.active; j < all_columns; ++j) {
        double* column = b.columns[j];
        const double d = values[j] - column[MEAN];
        column[MEAN] += d / b.facts[ROWS_SINCE];
        column[SQUARES] += d * (values[j] - column[MEAN]);
    }
}

// After row t: at powers of two columns come and go. `count_of` gives the rows that had an entry's feature.
template <class Count>
inline void review_columns(const Rows& rows, std::int64_t from, std::int64_t to, const std::uint32_t* slots, double t,
                           const Mixture& m, int stack_inputs, ColumnIndex& index, DenseBlock& b,
                           const Count& count_of) {
    const auto row = static_cast<std::int64_t>(t);
    if (row < FIRST_WATCH || (row & (row - 1)) != 0) return;
    settle_columns(b, m, stack_inputs);
    index_columns(b, index);
    for (std::int64_t p = from; p < to; ++p) {
        const std::uint32_t cell = rows.indices[p];
        if (count_of(cell) >= DENSE_PART * t && column_of(index, cell) < 0) watch_column(b, slots[p], cell);
    }
    index_columns(b, index);
}

// What the columns add to the score of the stack's inputs: `dense` begins with a 1.
inline double columns_score(const DenseBlock& b, const double* dense) {
    double f = 0.0;
    for (int j = 0; j <= b.active; ++j) f += b.u[b.inputs - 1 + j] * dense[j];
    return f;
}

// A Newton step of the dense stack, as that of the stack. Inputs not used are zero and stay so.
inline void dense_newton(DenseBlock& b, const double* v, double slope, double curve, double weight) {
    const int count = b.inputs + b.active, lanes = (count + 3) / 4;
    alignas(32) double Pv[DENSE_INPUTS];
    for (int l = 0; l < lanes; ++l) {
        D part = all(0.0);
        for (int k = 0; k < count; ++k) part += load(&b.P[k][4 * l]) * all(v[k]);
        store(Pv + 4 * l, part);
    }
    double q = 0.0;
    for (int k = 0; k < count; ++k) q += v[k] * Pv[k];
    const double d = 1.0 + curve * most(q, 0.0);
    const double step = weight * slope / d, shrink = curve / d;
    bool positive = true;
    for (int l = 0; l < lanes; ++l) {
        const D part = load(Pv + 4 * l);
        store(b.u + 4 * l, load(b.u + 4 * l) - all(step) * part);
        for (int k = 0; k < count; ++k) {
            store(&b.P[k][4 * l], load(&b.P[k][4 * l]) - all(shrink) * (all(Pv[k]) * part));
        }
    }
    for (int k = 0; k < count; ++k) positive = positive && b.P[k][k] > 0.0;
    if (positive) return;
    for (int k = 0; k < count; ++k) {
        for (int j = 0; j < count; ++j) b.P[k][j] = j == k ? 1.0 / STACK_RIDGE : 0.0;
    }
}
