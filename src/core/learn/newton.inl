// Newton experts: their scores and steps (docs/scales.md). Included by loops.inl; rules as in steps.inl. Every sum starts
// at 0 and runs upwards over its index unless it says otherwise.

constexpr double SCORE_CUT = 8.0;       // scores without a unit are seen cut to this
constexpr double LEAST_CURVE = 0x1p-13;  // no row is taken for flatter
constexpr double MOST_WEIGHT = 0x1p10;   // nor for heavier, or P would lose its last digits
constexpr double MOST_VARIANCE = 1.0;    // of a constant that drifts

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

inline void begin_anew(double* P, int stride, int count) {
    for (int k = 0; k < count; ++k) {
        for (int j = 0; j < count; ++j) P[k * stride + j] = j == k ? 1.0 / RIDGE : 0.0;
    }
}

// P times the inputs x into Px, and x P x; inputs not used, up to a multiple of four, are zero.
inline double curve_along(const double* P, int stride, const double* x, int count, double* Px) {
    const int lanes = (count + 3) / 4;
    in_lanes(lanes, MatrixTimesVector{P, stride, x, count, Px});
    D products = all(0.0);
    for (int l = 0; l < lanes; ++l) products += load(Px + 4 * l) * load(x + 4 * l);
    return most(sum(products), 0.0);
}

// u and P after a step of length `step` along Px. Rounding may in the end leave a matrix that is not positive; the expert
// then learns its Hessian anew. `drifts`: the input whose variance grows by `drift`.
inline void move_weights(double* u, double* P, int stride, const double* Px, int count, double step, double shrink,
                         int drifts = -1, double drift = 0.0) {
    const int lanes = (count + 3) / 4;
    for (int l = 0; l < lanes; ++l) store(u + 4 * l, load(u + 4 * l) - all(step) * load(Px + 4 * l));
    in_lanes(lanes, LessOuterProduct{P, stride, Px, count, shrink});
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

// A Newton step where the expert said f; `slope_at` gives slope and curvature of its loss, and `after` the slope that is
// taken in its place, given by how much a slope of 1 moves f.
template <class After>
inline void newton_step(const Newton& n, const NewtonInputs& x, double unit, double ratio, double slope, double curvature,
                        double row_weight, const After& after) {
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
