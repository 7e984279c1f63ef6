// Newton experts: their scores and steps (docs/scales.md). Included by loops.inl; rules as in steps.inl. Every sum
// starts at 0 and runs upwards over its index unless it says otherwise.

constexpr double SCORE_CUT = 8.0;        // scores without a unit are seen cut to this
constexpr double LEAST_CURVE = 0x1p-13;  // no row is taken for flatter
constexpr double MOST_WEIGHT = 0x1p10;   // nor for heavier, or P would lose its last digits
constexpr double MOST_VARIANCE = 1.0;    // of a constant that drifts

// ---- P x, and P less a multiple of its outer product ----
//
// P is symmetric. Of a row i only the columns from 4 floor(i / 4) on are read and written; `Newtons` fills in the
// others where it hands P out. Four rows are worked on at a time.

// P x: number i is the sum over j < 4 floor(i / 4) + 4, upwards, and what the others give in fours.
inline void times_symmetric(const double* P, int stride, const double* x, int lanes, double* Px) {
    for (int l = 0; l < lanes; ++l) store(Px + 4 * l, all(0.0));
    for (int block = 0; block < lanes; ++block) {
        const double *a = P + 4 * block * stride, *b = a + stride, *c = b + stride, *d = c + stride;
        const D xa = all(x[4 * block]), xb = all(x[4 * block + 1]), xc = all(x[4 * block + 2]),
                xd = all(x[4 * block + 3]);
        D da = all(0.0), db = da, dc = da, dd = da;
        const auto add = [&](int at, D ra, D rb, D rc, D rd) {
            store(Px + at, (((load(Px + at) + ra * xa) + rb * xb) + rc * xc) + rd * xd);
        };
        add(4 * block, load(a + 4 * block), load(b + 4 * block), load(c + 4 * block), load(d + 4 * block));
        for (int at = 4 * (block + 1); at < 4 * lanes; at += 4) {
            const D ra = load(a + at), rb = load(b + at), rc = load(c + at), rd = load(d + at), v = load(x + at);
            add(at, ra, rb, rc, rd);
            da += ra * v;
            db += rb * v;
            dc += rc * v;
            dd += rd * v;
        }
        store(Px + 4 * block, load(Px + 4 * block) + sums_of(da, db, dc, dd));
    }
}

// P less shrink Px Px^T: ((shrink Px_i) Px_j) for i <= j.
inline void less_outer_product(double* P, int stride, const double* Px, int lanes, double shrink) {
    for (int block = 0; block < lanes; ++block) {
        const D own = load(Px + 4 * block), scaled = all(shrink) * own;
        double* const rows = P + 4 * block * stride;
        for (int i = 0; i < 4; ++i) {
            double* const at = rows + i * stride + 4 * block;
            const D behind = only_first(scaled * all(own[i]), i), ahead = all(scaled[i]) * own;
            store(at, load(at) - (behind + (ahead - only_first(ahead, i))));
        }
        const D sa = all(scaled[0]), sb = all(scaled[1]), sc = all(scaled[2]), sd = all(scaled[3]);
        double *a = rows, *b = a + stride, *c = b + stride, *d = c + stride;
        for (int at = 4 * (block + 1); at < 4 * lanes; at += 4) {
            const D v = load(Px + at);
            store(a + at, load(a + at) - sa * v);
            store(b + at, load(b + at) - sb * v);
            store(c + at, load(c + at) - sc * v);
            store(d + at, load(d + at) - sd * v);
        }
    }
}

inline void begin_anew(double* P, int stride, int count) {
    for (int k = 0; k < count; ++k) {
        for (int j = 0; j < count; ++j) P[k * stride + j] = j == k ? 1.0 / RIDGE : 0.0;
    }
}

// P times the inputs x into Px, and x P x; inputs not used, up to a multiple of four, are zero.
inline double curve_along(const double* P, int stride, const double* x, int count, double* Px) {
    const int lanes = (count + 3) / 4;
    times_symmetric(P, stride, x, lanes, Px);
    D products = all(0.0);
    for (int l = 0; l < lanes; ++l) products += load(Px + 4 * l) * load(x + 4 * l);
    return most(sum(products), 0.0);
}

// u and P after a step of length `step` along Px. Rounding may in the end leave a matrix that is not positive; the
// expert then learns its Hessian anew. `drifts`: the input whose variance grows by `drift`.
inline void move_weights(double* u, double* P, int stride, const double* Px, int count, double step, double shrink,
                         int drifts = -1, double drift = 0.0) {
    const int lanes = (count + 3) / 4;
    for (int l = 0; l < lanes; ++l) store(u + 4 * l, load(u + 4 * l) - all(step) * load(Px + 4 * l));
    less_outer_product(P, stride, Px, lanes, shrink);
    if (drifts >= 0) {
        double& variance = P[drifts * stride + drifts];
        if (variance < MOST_VARIANCE) variance += drift;
    }
    bool positive = true;
    for (int k = 0; k < count; ++k) positive &= P[k * stride + k] > 0.0;
    if (!positive) begin_anew(P, stride, count);
}

// The weights of a 1 and the columns times these; `columns` is filled up with zeros.
inline double columns_score(const double* u, const double* columns, int used) {
    D f = all(0.0);
    for (int j = 0; j <= used; j += 4) f += load(u + j) * load(columns + j);
    return sum(f);
}

// What a Newton expert sees of a row: the scores it may see, and the columns.
struct NewtonInputs {
    alignas(32) double v[MOST_SCALES + 4];
    const double* columns;
    int used;
};

inline int inputs_of(const Newton& n, int used) {
    return n.scores + (n.kind->constant ? 1 : 0) + (n.kind->columns ? used : 0);
}

inline double newton_score(const Newton& n, const NewtonInputs& x, double offset, double unit) {
    double f = 0.0;
    for (int k = 0; k < n.scores; ++k) f += n.u[k] * x.v[k];
    f = offset + f;
    if (n.kind->columns) return f + unit * columns_score(n.u + n.scores, x.columns, x.used);
    return n.kind->constant ? f + unit * n.u[n.scores] : f;
}

// A Newton step where the expert said f; `slope_at` gives slope and curvature of its loss, and `after` the slope that
// is taken in its place, given by how much a slope of 1 moves f.
template <class After>
inline void newton_step(const Newton& n, const NewtonInputs& x, double unit, double ratio, double slope,
                        double curvature, double row_weight, const After& after) {
    const double weight = least(row_weight, MOST_WEIGHT), b = weight * curvature;
    const int count = inputs_of(n, x.used);
    alignas(32) double inputs[MOST_INPUTS], Px[MOST_INPUTS];
    for (int k = 0; k < n.scores; ++k) inputs[k] = x.v[k] / unit;
    if (n.kind->constant) inputs[n.scores] = ratio;
    for (int j = 1; n.kind->columns && j <= x.used; ++j) inputs[n.scores + j] = ratio * x.columns[j];
    for (int k = count; k % 4 != 0; ++k) inputs[k] = 0.0;
    const double q = curve_along(n.P, n.stride, inputs, count, Px), d = 1.0 + b * q;
    const double g = after(slope, (weight * q) / d);
    const int drifts = n.kind->drift > 0.0 ? n.scores : -1;
    move_weights(n.u, n.P, n.stride, Px, count, (weight * g) / d, b / d, drifts, n.kind->drift);
}

inline double slope_before(double slope, double) { return slope; }
