// One scale with labels in any unit: every loss but the log loss (docs/labels.md). Included by kernel.inl; rules as there.
// The last number of a cell is kappa, the unit of its weight; 0 before it was learned.

template <class T>
constexpr double LARGEST_OF = sizeof(T) == sizeof(float) ? FLT_MAX : DBL_MAX;

// The units of a row, after its label.
struct Units {
    D over_psi, over_kappa;
    double kappa;
};

inline Units units_of(const LabelState& labels) {
    return {all(1.0 / labels.psi), all(1.0 / labels.kappa), labels.kappa};
}

// 1 over h Q, with kappa left out; 0 where nothing was met.
inline D rate_of(const Play& c, D R, D s) {
    const D strength = s * (c.beta * s + R);
    return where_positive(strength, c.h / strength);
}

// The play with a given rate.
template <bool unconstrained>
inline D play_at(const Play& c, D z, D rate, D kappa) {
    if constexpr (unconstrained) return opposite(z * rate) * kappa;
    const D rate_and_kappa = rate * kappa;  // 1 / Q
    const D strength = all(1.0) + rate_and_kappa * (c.hl2 / c.h);
    const D x = signed_as(larger(size(z) - c.l1, all(0.0)), opposite(z)) * rate_and_kappa / strength;
    return smaller(larger(x, c.lower), c.upper);
}

// One block after the gradients; `own` is 1 over the kappa it had.
template <class T, bool unconstrained, bool kinked>
inline D labelled_step(const Play& c, D inverse, const Units& units, D slope, const Block<T>& b, D own, Four<T>& z,
                       Four<T>& R) {
    const D g = cut<T>(slope * b.v), in_units = g * units.over_psi;
    R = narrow<T>(root(b.R * b.R + in_units * in_units));
    if constexpr (sizeof(T) == sizeof(double)) R = larger(R, b.R);
    const D M = wide(b.M), after = wide(R);
    D rise = after - b.R;
    if constexpr (kinked) rise = (c.beta * M + after) * units.over_kappa - (c.beta * M + b.R) * own;
    const D sigma = M * rise * inverse;
    const D moved = b.z + (g - sigma * b.x);
    z = narrow<T>(larger(smaller(moved, all(LARGEST_OF<T>)), all(-LARGEST_OF<T>)));
    return g;
}

// As predict_block; `reach` gets v^2 / (h Q) of each lane.
template <class T, class V, bool unconstrained, bool raise>
inline D predict_labelled_block(const Play& c, const Cell<T>* const* at, Four<V> values, int count, Block<T>* kept,
                                D& reach) {
    Four<T> z, R, M, kappa;
    gather(at, z, R, M, kappa);
    D v = wide(values);
    if constexpr (raise && sizeof(T) == sizeof(V)) M = larger(M, size(values));
    if constexpr (raise && sizeof(T) != sizeof(V)) M = larger(M, narrow<T>(size(v)));
    const D wide_z = wide(z), wide_R = wide(R), rate = rate_of(c, wide_R, wide(M));
    D x = play_at<unconstrained>(c, wide_z, rate, wide(kappa));
    if (count < 4) {
        v = only_first(v, count);
        x = only_first(x, count);
    }
    if constexpr (raise) {
        kept->z = wide_z;
        kept->R = wide_R;
        kept->v = v;
        kept->x = x;
        kept->M = M;
        kept->S = kappa;
        reach += v * v * rate;
    }
    return x * v;
}

// As predict, and the reach of the row without the intercept.
template <class T, class V, bool unconstrained, bool raise>
inline double predict_labelled(const Rows& rows, const Play& c, const Cell<T>* cells, std::int64_t from,
                               std::int64_t to, std::int64_t end, Block<T>* scratch, double& reach) {
    const std::uint32_t* index = rows.indices;
    const V* value = static_cast<const V*>(rows.values);
    const std::uint32_t* next = index + (to + AHEAD <= end ? AHEAD : 0);
    const std::int64_t whole = to - (to - from) % 4;
    const Cell<T>* at[4];
    D total = all(0.0), moved = all(0.0);
    std::int64_t p = from;
    for (; p < whole; p += 4) {
        for (int j = 0; j < (raise ? SPLIT : 4); ++j) fetch(cells + next[p + j]);
        for (int j = 0; j < 4; ++j) at[j] = cells + index[p + j];
        total += predict_labelled_block<T, V, unconstrained, raise>(c, at, load(value + p), 4,
                                                                    raise ? scratch++ : nullptr, moved);
    }
    if (p < to) {
        const int left = static_cast<int>(to - p);
        for (int j = 0; j < left && j < (raise ? SPLIT : 4); ++j) fetch(cells + next[p + j]);
        for (int j = 0; j < 4; ++j) at[j] = cells + index[j < left ? p + j : p];
        V some[4] = {0, 0, 0, 0};
        for (int j = 0; j < left; ++j) some[j] = value[p + j];
        total += predict_labelled_block<T, V, unconstrained, raise>(c, at, load(some), left, raise ? scratch : nullptr,
                                                                    moved);
    }
    reach = sum(moved);
    return sum(total);
}

template <class T, bool unconstrained, bool kinked>
inline void learn_labelled_row(const Rows& rows, const Play& c, Cell<T>* cells, std::int64_t from, std::int64_t to,
                               std::int64_t end, D inverse, const Units& units, D slope, Block<T>* scratch) {
    const std::uint32_t* index = rows.indices;
    const std::uint32_t* next = index + (to + AHEAD <= end ? AHEAD : 0);
    const Four<T> kappa = narrow<T>(all(units.kappa));
    Cell<T>* at[4];
    Cell<T> none;
    for (std::int64_t p = from; p < to; p += 4, ++scratch) {
        const int count = to - p < 4 ? static_cast<int>(to - p) : 4;
        for (int j = SPLIT; j < count; ++j) fetch(cells + next[p + j]);
        for (int j = 0; j < 4; ++j) at[j] = j < count ? cells + index[p + j] : &none;
        const D own = wide(scratch->S);
        Four<T> z, R;
        labelled_step<T, unconstrained, kinked>(c, inverse, units, slope, *scratch, where_positive(own, all(1.0) / own),
                                                z, R);
        scatter(at, z, R, scratch->M, kappa);
    }
}

// What a row's label changes: learns the label, and the slope at a score. Whether there is anything to learn but it.
inline bool slope_of_label(const Constants& c, LabelState& labels, double score, double reach, double y, double weight,
                           double& slope) {
    const LabelState before = labels;
    learn_label(labels, *c.loss, c.tau, y, weight);
    if (labels.unit == 0.0 || (before.rows == 0.0 && c.loss->rule != LabelRule::classes)) return false;
    const double low = before.lowest < labels.lowest ? before.lowest : labels.lowest;
    const double high = before.highest > labels.highest ? before.highest : labels.highest;
    const double s = score < low ? low : (score > high ? high : score), A = weight * labels.kappa * reach;
    slope = weight * c.loss->implicit(s, y, A, labels.unit, c.tau);
    return true;
}

// The intercept's cell in all lanes, of which the first counts.
inline Block<double> labelled_intercept(const double* cell, const Play& c, D& rate) {
    Block<double> b = {all(cell[0]), all(cell[1]), all(1.0), all(0.0), all(cell[2]), all(cell[3])};
    rate = rate_of(c, b.R, b.M);
    b.x = play_at<true>(c, b.z, rate, b.S);
    return b;
}

inline double within_labels(const LabelState& labels, double score) {
    return score < labels.lowest ? labels.lowest : (score > labels.highest ? labels.highest : score);
}

template <class T, class V, bool unconstrained, bool kinked>
Totals learn_labelled(const Rows& rows, const Constants& constants, const State& state, const RowOutputs& out,
                      double* buffer) {
    Cell<T>* cells = static_cast<Cell<T>*>(state.cells);
    Block<T>* scratch = reinterpret_cast<Block<T>*>(buffer);
    const Play c = play_of(constants);
    const D inverse = all(1.0 / constants.h);
    const std::int64_t end = rows.indptr[rows.count];
    double* tallies = state.tallies;
    LabelState& labels = *state.labels;
    Totals batch = {0.0, 0.0, 0};
    fetch_first(rows, cells);
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const std::int64_t from = rows.indptr[r], to = rows.indptr[r + 1];
        const double y = rows.y[r], weight = rows.weight[r];
        const bool learns = y == y && weight > 0.0;
        D own_rate;
        const Block<double> base = labelled_intercept(state.intercept, c, own_rate);
        double reach = 0.0;
        double score = learns ? predict_labelled<T, V, unconstrained, true>(rows, c, cells, from, to, end, scratch, reach)
                              : predict_labelled<T, V, unconstrained, false>(rows, c, cells, from, to, end, scratch,
                                                                             reach);
        score = (score + labels.offset) + (constants.intercept ? first(base.x) : 0.0);
        const double prediction = within_labels(labels, score);
        double tail = 0.0;
        const double loss = y == y ? constants.loss->at(prediction, y, constants.tau, tail).value : y;
        if (out.scores != nullptr) out.scores[r] = prediction;
        if (out.losses != nullptr) out.losses[r] = loss;
        if (!learns) continue;
        batch.loss += weight * loss;
        batch.weight += weight;
        batch.rows += 1;
        tallies[LOSS] += weight * loss;
        tallies[WEIGHT] += weight;
        tallies[ROWS] += 1.0;
        double slope = 0.0;
        if (constants.intercept) reach += first(own_rate);
        if (!slope_of_label(constants, labels, score, reach, y, weight, slope)) continue;
        const Units units = units_of(labels);
        learn_labelled_row<T, unconstrained, kinked>(rows, c, cells, from, to, end, inverse, units, all(slope), scratch);
        if (constants.intercept) {
            D z, R;
            labelled_step<double, true, kinked>(c, inverse, units, all(slope), base,
                                                where_positive(base.S, all(1.0) / base.S), z, R);
            state.intercept[0] = first(z);
            state.intercept[1] = first(R);
            state.intercept[3] = units.kappa;
        }
    }
    return batch;
}

template <class T, class V, bool unconstrained>
void score_labelled(const Rows& rows, const Constants& constants, const State& state, double* scores) {
    Cell<T>* cells = static_cast<Cell<T>*>(state.cells);
    const Play c = play_of(constants);
    D own_rate;
    const double shift = constants.intercept ? first(labelled_intercept(state.intercept, c, own_rate).x) : 0.0;
    const std::int64_t end = rows.indptr[rows.count];
    const LabelState& labels = *state.labels;
    fetch_first(rows, cells);
    for (std::int64_t r = 0; r < rows.count; ++r) {
        double reach = 0.0;
        const double part = predict_labelled<T, V, unconstrained, false>(rows, c, cells, rows.indptr[r],
                                                                         rows.indptr[r + 1], end, nullptr, reach);
        scores[r] = within_labels(labels, (part + labels.offset) + shift);
    }
}

template <class T>
void weights_labelled(const Constants& constants, const State& state, std::uint64_t dim, double* out) {
    const Cell<T>* cells = static_cast<const Cell<T>*>(state.cells);
    const Play c = play_of(constants);
    for (std::uint64_t i = 0; i < dim; ++i) {
        const D rate = rate_of(c, all(cells[i].R), all(cells[i].M));
        out[i] = first(play_at<false>(c, all(cells[i].z), rate, all(cells[i].S)));
    }
}
