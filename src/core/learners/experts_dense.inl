// The stack with dense columns: docs/experts.md. Included by mix.inl; rules as there.

// Whether the stack has dense columns, or had.
inline bool has_columns(const ScaleConstants& c, const DenseBlock* b) { return c.dense && b->inputs > 0; }

// The column of a cell; MOST_DENSE for none. Without a branch, which would often be guessed wrong.
inline int column_of(const ColumnIndex& index, std::uint32_t cell) {
    const int j = index.column[(cell * index.multiplier) >> (32 - INDEX_BITS)];
    return index.cell[j] == cell ? j : MOST_DENSE;
}

// The values of the columns of a row: a 1 and the active ones, in deviations from their means, go to `to`, filled up
// with zeros to a multiple of four. A row that is learned is counted, and its values in watched columns too.
inline void read_columns(const Rows& rows, bool wide, std::int64_t from, std::int64_t end, const ColumnIndex& index,
                         DenseBlock& b, bool learns, double* to) {
    double values[MOST_DENSE + 1];
    const int count = b.active + b.watched;
    if (learns) b.rows += 1.0;
    if (count == 0 && b.inputs == 0) return;
    for (int j = 0; j < count; ++j) values[j] = 0.0;
    std::uint64_t met = 0;
    for (std::int64_t p = from; p < end; ++p) {
        const int j = column_of(index, rows.indices[p]);
        values[j] = wide ? static_cast<const double*>(rows.values)[p]
                         : static_cast<double>(static_cast<const float*>(rows.values)[p]);
        met |= static_cast<std::uint64_t>(j != MOST_DENSE) << (j % MOST_DENSE);
    }
    to[0] = 1.0;
    for (int j = 0; j < b.active; ++j) {
        to[j + 1] = within((values[j] - b.columns[j][CENTRE]) / b.columns[j][DEVIATION], DENSE_CUT);
    }
    for (int j = b.active; j % 4 != 3; ++j) to[j + 1] = 0.0;
    for (int j = 0; learns && j < count; ++j) b.columns[j][MET] += static_cast<double>(met >> j & 1);
    for (int j = b.active; learns && j < count; ++j) {
        double* column = b.columns[j];
        if (met >> j & 1) {
            if (column[MET] == 1.0) column[ONE_VALUE] = values[j];
            if (values[j] != column[ONE_VALUE]) column[DIFFERS] = 1.0;
        }
        const double d = values[j] - column[MEAN];
        column[MEAN] += d / b.rows;
        column[SQUARES] += d * (values[j] - column[MEAN]);
    }
}

// After row t: at powers of two columns come and go, by `settle`. `may_be_dense` says whether an entry's feature should
// be watched.
template <class Settle, class Test>
inline void review_columns(const Rows& rows, std::int64_t from, std::int64_t to, const std::uint32_t* slots, double t,
                           const Settle& settle, ColumnIndex& index, DenseBlock& b, const Test& may_be_dense) {
    const auto row = static_cast<std::int64_t>(t);
    if (row < FIRST_WATCH || (row & (row - 1)) != 0) return;
    settle();
    index_columns(b, index);
    for (std::int64_t p = from; p < to; ++p) {
        const std::uint32_t cell = rows.indices[p];
        if (may_be_dense(p) && column_of(index, cell) == MOST_DENSE) watch_column(b, slots[p], cell);
    }
    index_columns(b, index);
}

// What the constant and the columns add to the score of the stack; `dense` begins with a 1, filled up with zeros.
inline double columns_score(const DenseBlock& b, const double* dense) {
    D f = all(0.0);
    for (int j = 0; j <= b.active; j += 4) f += load(b.u + b.inputs - 1 + j) * load(dense + j);
    return sum(f);
}

// A Newton step of `count` weights u with the inputs v, as `newton`; the rows of P are `stride` apart. Inputs not used,
// up to a multiple of four, are zero and stay so.
inline void newton_step(double* u, double* P, int stride, const double* v, int count, double slope, double curve,
                        double weight) {
    const int lanes = (count + 3) / 4;
    alignas(32) double Pv[DENSE_INPUTS];
    D products = all(0.0);
    for (int l = 0; l < lanes; ++l) {
        D part = all(0.0);
        for (int k = 0; k < count; ++k) part += load(P + k * stride + 4 * l) * all(v[k]);
        store(Pv + 4 * l, part);
        products += part * load(v + 4 * l);
    }
    const double d = 1.0 + curve * most(sum(products), 0.0);
    const double step = weight * slope / d, shrink = curve / d;
    bool positive = true;
    for (int l = 0; l < lanes; ++l) {
        const D part = load(Pv + 4 * l);
        store(u + 4 * l, load(u + 4 * l) - all(step) * part);
        for (int k = 0; k < count; ++k) {
            double* row = P + k * stride + 4 * l;
            store(row, load(row) - all(shrink) * (all(Pv[k]) * part));
        }
    }
    for (int k = 0; k < count; ++k) positive = positive && P[k * stride + k] > 0.0;
    if (positive) return;
    for (int k = 0; k < count; ++k) {
        for (int j = 0; j < count; ++j) P[k * stride + j] = j == k ? 1.0 / STACK_RIDGE : 0.0;
    }
}

// A Newton step of the stack with columns; v has space for more inputs.
inline void dense_newton(DenseBlock& b, double* v, double slope, double curve, double weight) {
    const int count = b.inputs + b.active;
    for (int k = count; k % 4 != 0; ++k) v[k] = 0.0;
    newton_step(b.u, &b.P[0][0], DENSE_INPUTS, v, count, slope, curve, weight);
}
