// The stack with dense columns: docs/scales.md. Included by mix.inl; rules as there.

// Whether the stack has dense columns, or had.
inline bool has_columns(const ScaleConstants& c, const DenseBlock* b) { return c.dense && b->inputs > 0; }

inline bool is_direct(const ColumnIndex& index) { return index.multiplier == 0; }

// The column of a cell; MOST_DENSE for none. Without a branch, which would often be guessed wrong. `direct`: the table
// is by the number of a cell, and higher ones are in no column, as is number 0.
template <bool direct>
inline int column_in(const ColumnIndex& index, std::uint32_t cell) {
    if constexpr (direct) {
        const std::uint32_t is_low = ((cell >> INDEX_BITS) - 1) >> 31;
        return index.column[cell & (0 - is_low)];
    }
    const int j = index.column[(cell * index.multiplier) >> (32 - INDEX_BITS)];
    return index.cell[j] == cell ? j : MOST_DENSE;
}

inline int column_of(const ColumnIndex& index, std::uint32_t cell) {
    return is_direct(index) ? column_in<true>(index, cell) : column_in<false>(index, cell);
}

// The values of a row in its columns, behind them what is in none, and which columns it has.
template <bool direct, class V>
inline std::uint64_t find_columns(const Rows& rows, std::int64_t from, std::int64_t end, const ColumnIndex& index,
                                  double* values) {
    const V* value = static_cast<const V*>(rows.values);
    std::uint64_t met = 0;
    for (std::int64_t p = from; p < end; ++p) {
        const int j = column_in<direct>(index, rows.indices[p]);
        values[j] = static_cast<double>(value[p]);
        met |= static_cast<std::uint64_t>(j != MOST_DENSE) << (j % MOST_DENSE);
    }
    return met;
}

// The values of the columns of a row: a 1 and the active ones, in deviations from their means, go to `to`, filled up
// with zeros to a multiple of four. A row that is learned is counted, and its values in watched columns too.
inline void read_columns(const Rows& rows, bool wide, std::int64_t from, std::int64_t end, const ColumnIndex& index,
                         DenseBlock& b, bool learns, double* to) {
    alignas(32) double values[MOST_DENSE + 4];
    const int count = b.active + b.watched;
    if (learns) b.rows += 1.0;
    if (count == 0 && b.inputs == 0) return;
    for (int j = 0; j < count; j += 4) store(values + j, all(0.0));
    const std::uint64_t met = is_direct(index) ? (wide ? find_columns<true, double>(rows, from, end, index, values)
                                                       : find_columns<true, float>(rows, from, end, index, values))
                                               : (wide ? find_columns<false, double>(rows, from, end, index, values)
                                                       : find_columns<false, float>(rows, from, end, index, values));
    to[0] = 1.0;
    for (int j = 0; j < b.active; j += 4) {
        const D x = (load(values + j) - load(index.centre + j)) / load(index.deviation + j);
        store(to + j + 1, smaller(larger(x, all(-DENSE_CUT)), all(DENSE_CUT)));
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

// ---- the arithmetic of Newton steps: P v, and P less a multiple of its outer product ----

// Lanes worked on side by side: the next sum need not wait for the one before, and what all rows need is in registers.
constexpr int SIDE_BY_SIDE = 6;

// `use.of<W>(l)` for all lanes, W from number l on at a time.
template <class Use>
FTPRL_INSIDE void in_lanes(int lanes, const Use& use) {
    int l = 0;
    for (; l + SIDE_BY_SIDE <= lanes; l += SIDE_BY_SIDE) use.template of<SIDE_BY_SIDE>(l);
    switch (lanes - l) {
        case 5:
            return use.template of<5>(l);
        case 4:
            return use.template of<4>(l);
        case 3:
            return use.template of<3>(l);
        case 2:
            return use.template of<2>(l);
        case 1:
            return use.template of<1>(l);
        default:
            return;
    }
}

// P is symmetric: its rows, each times its own number, add up to what each row would give with v.
struct MatrixTimesVector {
    const double* P;
    int stride;
    const double* v;
    int count;
    double* to;

    template <int W>
    FTPRL_INSIDE void of(int l) const {
        D part[W];
        for (int w = 0; w < W; ++w) part[w] = all(0.0);
        const double* row = P + 4 * l;
        for (int k = 0; k < count; ++k, row += stride) {
            const D own = all(v[k]);
            for (int w = 0; w < W; ++w) part[w] += load(row + 4 * w) * own;
        }
        for (int w = 0; w < W; ++w) store(to + 4 * (l + w), part[w]);
    }
};

struct LessOuterProduct {
    double* P;
    int stride;
    const double* Pv;
    int count;
    double shrink;

    template <int W>
    FTPRL_INSIDE void of(int l) const {
        D part[W];
        for (int w = 0; w < W; ++w) part[w] = load(Pv + 4 * (l + w));
        const D factor = all(shrink);
        double* row = P + 4 * l;
        for (int k = 0; k < count; ++k, row += stride) {
            const D own = all(Pv[k]);
            for (int w = 0; w < W; ++w) store(row + 4 * w, load(row + 4 * w) - factor * (own * part[w]));
        }
    }
};

// u and P after a Newton step of weight `step` with Pv. Rounding may in the end leave a matrix that is not positive;
// the stack then learns its Hessian anew.
inline void move_stack(double* u, double* P, int stride, const double* Pv, int count, double step, double shrink) {
    const int lanes = (count + 3) / 4;
    for (int l = 0; l < lanes; ++l) store(u + 4 * l, load(u + 4 * l) - all(step) * load(Pv + 4 * l));
    in_lanes(lanes, LessOuterProduct{P, stride, Pv, count, shrink});
    bool positive = true;
    for (int k = 0; k < count; ++k) positive &= P[k * stride + k] > 0.0;
    if (positive) return;
    for (int k = 0; k < count; ++k) {
        for (int j = 0; j < count; ++j) P[k * stride + j] = j == k ? 1.0 / STACK_RIDGE : 0.0;
    }
}

// A Newton step of `count` weights u with the inputs v, as `newton`; the rows of P are `stride` apart. Inputs not used,
// up to a multiple of four, are zero and stay so.
inline void newton_step(double* u, double* P, int stride, const double* v, int count, double slope, double curve,
                        double weight) {
    const int lanes = (count + 3) / 4;
    alignas(32) double Pv[DENSE_INPUTS];
    in_lanes(lanes, MatrixTimesVector{P, stride, v, count, Pv});
    D products = all(0.0);
    for (int l = 0; l < lanes; ++l) products += load(Pv + 4 * l) * load(v + 4 * l);
    const double d = 1.0 + curve * most(sum(products), 0.0);
    move_stack(u, P, stride, Pv, count, weight * slope / d, curve / d);
}

// A Newton step of the stack with columns; v has space for more inputs.
inline void dense_newton(DenseBlock& b, double* v, double slope, double curve, double weight) {
    const int count = b.inputs + b.active;
    for (int k = count; k % 4 != 0; ++k) v[k] = 0.0;
    newton_step(b.u, &b.P[0][0], DENSE_INPUTS, v, count, slope, curve, weight);
}
