// One scale with labels in any unit: every loss but the log loss (docs/labels.md). Included by kernel.inl; rules as
// there. The last number of a cell is kappa, the unit of its weight; 0 before it was learned.

#include "learners/labels.inl"

template <class T>
constexpr double LARGEST_OF = sizeof(T) == sizeof(float) ? FLT_MAX : DBL_MAX;

// The units of a row, after its label.
struct Units {
    D over_psi, over_kappa, kappa;
};

// For cells of type T: with kappa as they hold it, since Q has to be what is read back.
template <class T>
inline Units units_of(const LabelState& labels) {
    const double kappa = static_cast<T>(labels.kappa);
    return {all(1.0 / labels.psi), all(1.0 / kappa), all(kappa)};
}

// 1 over h Q, with kappa left out; 0 where nothing was met.
inline D rate_of(const Play& c, D R, D s) {
    const D strength = s * (c.beta * s + R);
    return smaller(where_positive(strength, c.h / strength), all(DBL_MAX));
}

// The same with kappa and l2: 1 / (Q + l2 s²).
template <bool unconstrained>
inline D rate_with(const Play& c, D rate, D kappa, D s) {
    const D own = rate * kappa;
    if constexpr (unconstrained) return own;
    const D finite = smaller(own, all(DBL_MAX));  // infinity times an l2 of 0 is no number
    return finite / (all(1.0) + finite * (c.hl2 / c.h * (s * s)));
}

// The play with a given rate.
template <bool unconstrained>
inline D play_at(const Play& c, const Limits& limits, D z, D rate, D kappa, D s) {
    if constexpr (unconstrained) return opposite(z * rate) * kappa;
    const D x = signed_as(larger(size(z) - c.l1 * s, all(0.0)), opposite(z)) * rate_with<false>(c, rate, kappa, s);
    return smaller(larger(x, limits.lower), limits.upper);
}

template <bool unconstrained>
inline D play_at(const Play& c, D z, D rate, D kappa, D s) {
    return play_at<unconstrained>(c, limits_of(c), z, rate, kappa, s);
}

// As add_bounded_rounding; sigma x may be larger than z, where kappa falls.
template <class T>
inline void add_labelled_sums(const Block<T>& b, D g, D sigma, D moved, D z, D rate, RegretSums& sums) {
    const D per_strength = smaller(rate, all(DBL_MAX)), size_x = size(b.x), size_g = size(g);
    const D pulled = size_g + size(sigma * b.x), proximal = sigma * b.x * b.x;
    D lost_at_most = where_positive(size(b.v), all(0x1p-52) * (size(z) + pulled));
    if constexpr (sizeof(T) == sizeof(float)) {
        const D lost = z - moved;
        sums.drift += lost * ((g + all(0.5) * lost) * per_strength - b.x);
        lost_at_most = size(lost);
    }
    sums.linear += g * b.x;
    sums.proximal += proximal;
    sums.stability += g * g * per_strength;
    sums.linear_size += size_g * size_x + size(proximal);
    sums.step_size += (pulled + size(z) + lost_at_most) * (size_x + (size_g + lost_at_most) * per_strength);
}

// One block after the gradients; `own` is 1 over the kappa it had. `small`: no gradient is large enough to be cut.
template <class T, bool unconstrained, bool kinked, bool receipt, bool small = false>
inline D labelled_step(const Play& c, D inverse, const Units& units, D slope, const Block<T>& b, D own, Four<T>& z,
                       Four<T>& R, RegretSums& sums) {
    D g = slope * b.v;
    if constexpr (!small) g = cut<T>(g);
    D in_units = g * units.over_psi;
    if constexpr (!small) in_units = cut<T>(in_units);
    R = narrow<T>(root(b.R * b.R + in_units * in_units));
    if constexpr (sizeof(T) == sizeof(double)) R = larger(R, b.R);
    const D M = wide(b.M), after = wide(R);
    D rise = after - b.R;
    if constexpr (kinked) rise = (c.beta * M + after) * units.over_kappa - (c.beta * M + b.R) * own;
    const D sigma = M * rise * inverse;
    const D moved = b.z + (g - sigma * b.x);
    z = narrow<T>(larger(smaller(moved, all(LARGEST_OF<T>)), all(-LARGEST_OF<T>)));
    if constexpr (receipt) {
        const D rate = rate_with<unconstrained>(c, rate_of(c, after, M), units.kappa, M);
        add_labelled_sums<T>(b, g, sigma, moved, wide(z), rate, sums);
    }
    return g;
}

// As predict_block; `reach` gets v^2 / (h Q) of each lane.
template <class T, class V, bool unconstrained, bool raise>
inline D predict_labelled_block(const Play& c, const Limits& limits, const Cell<T>* const* at, Four<V> values,
                                int count, Block<T>* kept, D& reach) {
    Four<T> z, R, M, kappa;
    gather(at, z, R, M, kappa);
    D v = wide(values);
    if constexpr (raise && sizeof(T) == sizeof(V)) M = larger(M, size(values));
    if constexpr (raise && sizeof(T) != sizeof(V)) M = larger(M, narrow<T>(size(v)));
    const D wide_z = wide(z), wide_R = wide(R), rate = rate_of(c, wide_R, wide(M));
    D x = play_at<unconstrained>(c, limits, wide_z, rate, wide(kappa), wide(M));
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
template <class T, class V, bool unconstrained, bool raise, class Record>
inline double predict_labelled(const Rows& rows, const Play& c, const BoxTable& boxes, const Record* cells,
                               std::int64_t from, std::int64_t to, const Lookahead& look, Block<T>* scratch,
                               double& reach) {
    const std::uint32_t* index = rows.indices;
    const V* value = static_cast<const V*>(rows.values);
    const std::uint32_t* next = index + (to + look.ahead <= look.end ? look.ahead : 0);
    const std::int64_t whole = to - (to - from) % 4;
    const Cell<T>* at[4];
    D total = all(0.0), moved = all(0.0);
    std::int64_t p = from;
    for (; p < whole; p += 4) {
        fetch_predicting<raise>(cells, next + p, p + look.ahead < to);
        for (int j = 0; j < 4; ++j) at[j] = cell_of(cells + index[p + j]);
        Limits limits = limits_of(c);
        if constexpr (!unconstrained) {
            for (int j = 0; j < 4; ++j) fetch_kind(boxes, next[p + j]);
            limits = limits_at(c, boxes, index + p);
        }
        total += predict_labelled_block<T, V, unconstrained, raise>(c, limits, at, load(value + p), 4,
                                                                    raise ? scratch++ : nullptr, moved);
    }
    if (p < to) {
        const int left = static_cast<int>(to - p);
        for (int j = 0; j < left && j < (raise ? SPLIT : 4); ++j) fetch_to_second_level(cells + next[p + j]);
        for (int j = 0; j < 4; ++j) at[j] = cell_of(cells + index[j < left ? p + j : p]);
        Four<V> values;
        if (p + 4 <= look.end) {
            values = load(value + p);
        } else {
            V some[4] = {0, 0, 0, 0};
            for (int j = 0; j < left; ++j) some[j] = value[p + j];
            values = load(some);
        }
        Limits limits = limits_of(c);
        if constexpr (!unconstrained) limits = limits_of_rest(c, boxes, index + p, left);
        total += predict_labelled_block<T, V, unconstrained, raise>(c, limits, at, values, left,
                                                                    raise ? scratch : nullptr, moved);
    }
    reach = sum(moved);
    return sum(total);
}

template <class T, bool unconstrained, bool kinked, bool receipt, class Record>
inline void learn_labelled_row(const Rows& rows, const Play& c, Record* cells, std::int64_t from, std::int64_t to,
                               const Lookahead& look, D inverse, const Units& units, D slope, Block<T>* scratch,
                               RegretSums& sums) {
    const std::uint32_t* index = rows.indices;
    const std::uint32_t* next = index + (to + look.ahead <= look.end ? look.ahead : 0);
    const Four<T> kappa = narrow<T>(units.kappa);
    const std::int64_t whole = to - (to - from) % 4;
    Cell<T>* at[4];
    Four<T> z, R;
    const auto step_block = [&] {
        const D own = wide(scratch->S);
        return labelled_step<T, unconstrained, kinked, receipt>(c, inverse, units, slope, *scratch,
                                                                where_positive(own, all(1.0) / own), z, R, sums);
    };
    std::int64_t p = from;
    for (; p < whole; p += 4, ++scratch) {
        fetch_learning(cells, next + p, p + look.ahead < to);
        for (int j = 0; j < 4; ++j) at[j] = cell_of(cells + index[p + j]);
        const D g = step_block();
        scatter(at, z, R, scratch->M, kappa);
        add_gradients(cells, at, 4, g);
    }
    if (p < to) {
        const int left = static_cast<int>(to - p);
        for (int j = SPLIT; j < left; ++j) fetch_to_second_level(cells + next[p + j]);
        Cell<T> none;
        for (int j = 0; j < 4; ++j) at[j] = j < left ? cell_of(cells + index[p + j]) : &none;
        const D g = step_block();
        scatter(at, z, R, scratch->M, kappa);
        add_gradients(cells, at, left, g);
    }
}

inline double cut_to(double v, double low, double high) { return v < low ? low : (v > high ? high : v); }

// A row that is learned, with the range of the labels that it is learned with: the hull of those before and after it.
struct LabelledRow {
    double y, weight;
    double learned;  // the label as it is learned
    double offset;   // before it
    double low, high;
    bool teaches;  // whether there is anything to learn but its label
};

// Learns the label of a row.
inline LabelledRow learn_row_label(const Constants& c, LabelState& labels, double y, double weight) {
    const LabelState before = labels;
    const double learned = c.loss->predicts_labels() ? believed_label(labels, y) : y;
    learn_label(labels, *c.loss, c.tau, learned, weight);
    const bool first = before.rows == 0.0 && c.loss->rule != LabelRule::classes;
    const bool teaches = !first && labels.unit != 0.0 && labels.kappa >= c.least_kappa;
    LabelledRow row = {y, weight, learned, before.offset, labels.lowest, labels.highest, teaches};
    if (first) return row;
    if (before.lowest < row.low) row.low = before.lowest;
    if (before.highest > row.high) row.high = before.highest;
    return row;
}

// The score at which the slope is taken: within the range of the labels, but what is more than its width beyond it
// counts. Weights that one label far from all others has made would hardly move by the slope at the end of the range.
inline double start_of(const Loss& loss, const LabelledRow& row, double score) {
    const double s = cut_to(score, row.low, row.high), beyond = fabs(score - s) - (row.high - row.low);
    if (!(beyond > 0.0) || !loss.predicts_labels()) return s;
    return score < s ? s - beyond : s + beyond;
}

// The slope of a row for weight 1; `reach` is by how much a slope of 1 moves the score, without the weight and kappa.
inline double slope_of(const Constants& c, const LabelState& labels, const LabelledRow& row, double score,
                       double reach) {
    const double A = row.weight * labels.kappa * reach;
    return c.loss->implicit(start_of(*c.loss, row, score), row.learned, A, labels.unit, c.tau);
}

// Whether the slope was that of a score beyond the range: the row term is then that of a longer step, of which the cut
// takes back more.
inline bool is_far(const Loss& loss, const LabelledRow& row, double score) {
    return start_of(loss, row, score) != cut_to(score, row.low, row.high);
}

// The size of a loss before anything cancels out.
inline double size_of_loss(const Loss& loss, double value, double score, double y) {
    const double linear =
        loss.rule == LabelRule::log_mean ? y * score : (loss.rule == LabelRule::log_ratio ? score : 0.0);
    return fabs(value) + 2.0 * fabs(linear);
}

// What a receipt adds up over the rows, for scale number k. Counts that were all 0 have no unit: these rows are left
// out.
inline void add_row_sums(const Constants& c, const LabelState& labels, const LabelledRow& row, double score,
                         double slope, double prediction, double prediction_loss, double (*sums)[MOST_SCALES], int k) {
    const Loss& loss = *c.loss;
    const bool counts = loss.rule == LabelRule::log_mean;
    if (counts && labels.unit == 0.0) return;
    const double s = cut_to(score, row.low, row.high), over_unit = counts ? 1.0 / labels.unit : 1.0;
    const RowTerm term = loss.row_term(s, row.y, slope, labels.unit, c.tau);
    const double beyond = slope * (s - score);  // above 0 where a cut moved the score away from the label
    double tail = 0.0;
    const double value = loss.at(s, row.y, c.tau, tail).value;
    const double label = loss.has_log_link() ? 0.0 : fabs(row.y);
    const double losses = size_of_loss(loss, value, s, row.y) + size_of_loss(loss, prediction_loss, prediction, row.y);
    sums[ROW_TERMS][k] += row.weight * (term.value + (beyond > 0.0 || is_far(loss, row, score) ? beyond : 0.0));
    sums[SCALE_LOSS][k] += row.weight * (value * over_unit);
    sums[PREDICTION_LOSS][k] += row.weight * (prediction_loss * over_unit);
    sums[ROW_WEIGHT][k] += row.weight * over_unit;
    sums[ROW_SIZES][k] += row.weight * (term.size + fabs(slope) * (fabs(s) + fabs(score) + fabs(row.offset) + label) +
                                        losses * over_unit);
}

// The intercept's cell in all lanes, of which the first counts.
inline Block<double> labelled_intercept(const double* cell, const Play& c, D& rate) {
    Block<double> b = {all(cell[0]), all(cell[1]), all(1.0), all(0.0), all(cell[2]), all(cell[3])};
    rate = rate_of(c, b.R, b.M);
    b.x = play_at<true>(c, b.z, rate, b.S, b.M);
    return b;
}

inline double within_labels(const LabelState& labels, double score) {
    return cut_to(score, labels.lowest, labels.highest);
}

template <class T, class V, bool unconstrained, bool kinked, bool receipt>
Totals learn_labelled(const Rows& rows, const Constants& constants, const State& state, const RowOutputs& out,
                      double* buffer) {
    using Record = typename RecordOf<T, receipt, true>::type;
    Record* cells = static_cast<Record*>(state.cells);
    Block<T>* scratch = reinterpret_cast<Block<T>*>(buffer);
    const Play c = play_of(constants);
    const D inverse = all(1.0 / constants.h);
    const Lookahead look = lookahead_of(rows);
    double* tallies = state.tallies;
    LabelState& labels = *state.labels;
    Totals batch = {0.0, 0.0, 0};
    fetch_first(rows, look, cells);
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const std::int64_t from = rows.indptr[r], to = rows.indptr[r + 1];
        const double y = rows.y[r], weight = rows.weight[r];
        const bool learns = y == y && weight > 0.0;
        D own_rate;
        const Block<double> base = labelled_intercept(state.intercept, c, own_rate);
        double reach = 0.0;
        double score = learns ? predict_labelled<T, V, unconstrained, true>(rows, c, constants.boxes, cells, from, to,
                                                                            look, scratch, reach)
                              : predict_labelled<T, V, unconstrained, false>(rows, c, constants.boxes, cells, from, to,
                                                                             look, scratch, reach);
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
        if (constants.intercept) reach += first(own_rate);
        const LabelledRow row = learn_row_label(constants, labels, y, weight);
        const double unweighted = row.teaches ? slope_of(constants, labels, row, score, reach) : 0.0;
        if constexpr (receipt) {
            add_row_sums(constants, labels, row, score, unweighted, prediction, loss, state.receipt.rows, 0);
        }
        if (!row.teaches) continue;
        const D slope = all(weight * unweighted);
        RegretSums sums = no_sums(), own_sums = no_sums();
        learn_labelled_row<T, unconstrained, kinked, receipt>(rows, c, cells, from, to, look, inverse,
                                                              units_of<T>(labels), slope, scratch, sums);
        if (constants.intercept) {
            D z, R;
            const D g =
                labelled_step<double, true, kinked, receipt>(c, inverse, units_of<double>(labels), slope, base,
                                                             where_positive(base.S, all(1.0) / base.S), z, R, own_sums);
            state.intercept[0] = first(z);
            state.intercept[1] = first(R);
            state.intercept[3] = labels.kappa;
            if constexpr (receipt) state.intercept[4] += first(g);
        }
        if constexpr (receipt) add_single_sums(state, sums, own_sums, slope);
    }
    return batch;
}

template <class T, class V, bool unconstrained, bool receipt>
void score_labelled(const Rows& rows, const Constants& constants, const State& state, double* scores) {
    const auto* cells = static_cast<const typename RecordOf<T, receipt, true>::type*>(state.cells);
    const Play c = play_of(constants);
    D own_rate;
    const double shift = constants.intercept ? first(labelled_intercept(state.intercept, c, own_rate).x) : 0.0;
    const Lookahead look = lookahead_of(rows);
    const LabelState& labels = *state.labels;
    fetch_first(rows, look, cells);
    for (std::int64_t r = 0; r < rows.count; ++r) {
        double reach = 0.0;
        const double part = predict_labelled<T, V, unconstrained, false>(rows, c, constants.boxes, cells,
                                                                         rows.indptr[r], rows.indptr[r + 1], look,
                                                                         static_cast<Block<T>*>(nullptr), reach);
        scores[r] = within_labels(labels, (part + labels.offset) + shift);
    }
}
