// The coin-betting expert: docs/scales.md. Included by scales.inl; rules as there. Its arithmetic runs over four
// coordinates at a time, as that of one scale in kernel.inl.

// A coordinate between its prediction and its step: theta, the sizes, what was won, the largest value.
template <class T>
struct Bet {
    D theta, sizes, v, x;
    Four<T> won, largest;
};
static_assert(sizeof(Bet<double>) == 4 * SCRATCH * sizeof(double), "the scratch is measured in these");

// The weight of four coordinates: a part of the wealth, never more than the next row can take.
template <class T>
inline D bet_of(D theta, D sizes, D won, D largest, D bound) {
    const D most_lost = largest * bound, held = most_lost * (most_lost + sizes);
    return where_positive(held, (all(COIN_WEALTH) + won) * theta / held);
}

template <class T, bool raise>
FTPRL_INSIDE D bet_block(const Cell<T>* const* at, D v, D bound, int count, Bet<T>* kept) {
    Four<T> theta, sizes, won, largest;
    gather(at, theta, sizes, won, largest);
    if constexpr (raise) largest = larger(largest, narrow<T>(size(v)));
    D x = bet_of<T>(wide(theta), wide(sizes), wide(won), wide(largest), bound);
    if (count < 4) {
        v = only_first(v, count);
        x = only_first(x, count);
    }
    if constexpr (raise) {
        kept->theta = wide(theta);
        kept->sizes = wide(sizes);
        kept->v = v;
        kept->x = x;
        kept->won = won;
        kept->largest = largest;
    }
    return x * v;
}

// The values of four entries, read on into the next row where there is one: lanes from `count` on are forgotten.
inline D values_of(const Rows& rows, bool wide_values, std::int64_t p, int count, std::int64_t end) {
    if (p + 4 <= end) {
        if (wide_values) return load(static_cast<const double*>(rows.values) + p);
        return wide(load(static_cast<const float*>(rows.values) + p));
    }
    double v[4] = {0.0, 0.0, 0.0, 0.0};
    for (int j = 0; j < count; ++j) v[j] = value_of(rows, wide_values, p + j);
    return load(v);
}

// What the intercept may win, as a cell of doubles: labels that only rise double it row by row.
constexpr double MOST_WON = 0x1p400;

// The weight of the intercept, a coordinate of value 1.
inline double intercept_bet(const double* own) {
    const double bound = own[COIN_BOUND];
    return (COIN_WEALTH + own[WON]) * own[THETA] / (bound * (bound + own[SIZES]));
}

// The log odds of the labels so far, as if there had been half a row of each class before them (Krichevsky and
// Trofimov 1981), of the largest weight that a slope has shown.
inline double label_odds(const double* own) {
    const double half = 0.5 * own[COIN_BOUND];
    return log((own[POSITIVE_WEIGHT] + half) / (own[NEGATIVE_WEIGHT] + half));
}

// What the score of every row has: the bet of the intercept and, with the log loss, the base rate it is counted from.
inline double coin_constant(const ScaleConstants& c, const double* own) {
    if (!c.base.intercept) return 0.0;
    return c.base.loss->rule != LabelRule::none ? intercept_bet(own) : intercept_bet(own) + label_odds(own);
}

// The coin's score of entries [from, to).
template <class T, bool raise>
double coin_score(const Rows& rows, bool wide_values, const ExpertState& state, double constant, std::int64_t from,
                  std::int64_t to, std::int64_t end) {
    const auto* cells = static_cast<const Cell<T>*>(state.coin);
    auto* kept = reinterpret_cast<Bet<T>*>(state.coin_scratch);
    const std::uint32_t* index = rows.indices;
    const std::uint32_t* next = index + (to + AHEAD <= end ? AHEAD : 0);
    const D bound = all(state.coin_intercept[COIN_BOUND]);
    D total = all(0.0);
    const Cell<T>* at[4];
    std::int64_t p = from;
    for (; p + 4 <= to; p += 4) {
        for (int j = 0; j < 4; ++j) fetch(cells + next[p + j]);
        for (int j = 0; j < 4; ++j) at[j] = cells + index[p + j];
        const D v = wide_values ? load(static_cast<const double*>(rows.values) + p)
                                : wide(load(static_cast<const float*>(rows.values) + p));
        total += bet_block<T, raise>(at, v, bound, 4, raise ? kept++ : nullptr);
    }
    if (p < to) {
        const int count = static_cast<int>(to - p);
        for (int j = 0; j < count; ++j) fetch(cells + next[p + j]);
        for (int j = 0; j < 4; ++j) at[j] = cells + index[j < count ? p + j : p];
        total +=
            bet_block<T, raise>(at, values_of(rows, wide_values, p, count, end), bound, count, raise ? kept : nullptr);
    }
    return sum(total) + constant;
}

// The gradients of a block, and what its coordinates become.
template <class T>
inline void settle_bets(const Bet<T>& bet, D slope, Four<T>& theta, Four<T>& sizes, Four<T>& won) {
    const D g = cut<T>(slope * bet.v);
    theta = narrow<T>(bet.theta - g);
    sizes = narrow<T>(bet.sizes + size(g));
    won = narrow<T>(cut<T>(wide(bet.won) - g * bet.x));
}

// Learn from the weighted slope of a row. No coordinate can lose more than it has: the slope is cut to the largest
// so far, which it raises for the rows to come.
template <class T>
void learn_coin(const Rows& rows, const ExpertState& state, bool intercept, std::int64_t from, std::int64_t to,
                double row_slope) {
    auto* cells = static_cast<Cell<T>*>(state.coin);
    const auto* kept = reinterpret_cast<const Bet<T>*>(state.coin_scratch);
    double* own = state.coin_intercept;
    const double g = within(row_slope, own[COIN_BOUND]);
    const D slope = all(g);
    Cell<T>* at[4];
    Four<T> theta, sizes, won;
    std::int64_t p = from;
    for (; p + 4 <= to; p += 4, ++kept) {
        for (int j = 0; j < 4; ++j) at[j] = cells + rows.indices[p + j];
        settle_bets<T>(*kept, slope, theta, sizes, won);
        scatter(at, theta, sizes, won, kept->largest);
    }
    if (p < to) {
        Cell<T> none;
        for (int j = 0; j < 4; ++j) at[j] = p + j < to ? cells + rows.indices[p + j] : &none;
        settle_bets<T>(*kept, slope, theta, sizes, won);
        scatter(at, theta, sizes, won, kept->largest);
    }
    if (intercept) {
        own[WON] = within(own[WON] - g * intercept_bet(own), MOST_WON);
        own[THETA] -= g;
        own[SIZES] += fabs(g);
    }
    own[COIN_BOUND] = most(own[COIN_BOUND], fabs(row_slope));
}

// ---- both additions, before and after a row is learned ----

// The coin's score, counted from the base rate or the offset of the labels and in their unit, and the columns of the
// stack.
template <class T>
inline void read_experts(const Rows& rows, bool wide_values, const ScaleConstants& c, const ScaleState& state,
                         const ColumnIndex& index, std::int64_t from, std::int64_t to, std::int64_t end, bool learns,
                         double* scores) {
    const Mixture& m = *state.mixture;
    if (c.coin) {
        const double constant = coin_constant(c, state.experts.coin_intercept);
        const double bet = learns ? coin_score<T, true>(rows, wide_values, state.experts, constant, from, to, end)
                                  : coin_score<T, false>(rows, wide_values, state.experts, constant, from, to, end);
        const bool labelled = c.base.loss->rule != LabelRule::none;
        scores[c.count] = labelled ? m.labels.offset + stack_unit(c, m.labels) * bet : bet;
    }
    if (c.dense) {
        const bool counts = learns && !c.frozen;  // rows that were learned before do not count again
        read_columns(rows, wide_values, from, to, index, *state.experts.dense, counts, scores + DENSE_AT);
    }
}

// The label of a row that is learned with the log loss, for the base rate of the coin.
inline void count_label(const ScaleConstants& c, const ScaleState& state, double y, double weight) {
    if (c.coin && c.base.intercept) {
        state.experts.coin_intercept[y > 0.0 ? POSITIVE_WEIGHT : NEGATIVE_WEIGHT] += weight;
    }
}

// After row t, which was learned; `slope` is the coin's, with the weight of the row. `cells` have the units by the
// number of a cell.
template <class T, class C>
inline void learn_experts(const Rows& rows, bool wide_values, const ScaleConstants& c, const ScaleState& state,
                          const C* cells, ColumnIndex& index, std::int64_t from, std::int64_t to, double t,
                          double slope) {
    if (c.coin) learn_coin<T>(rows, state.experts, c.base.intercept, from, to, slope);
    if (!c.dense || c.frozen) return;  // the stack of rows that were learned before stays as it is
    // A name has one value, which is its unit: it is not worth a look.
    const auto may_be_dense = [&](std::int64_t p) {
        const auto& cell = cells[rows.indices[p]];
        return cell.N >= DENSE_PART * t && fabs(value_of(rows, wide_values, p)) != cell.s;
    };
    DenseBlock& block = *state.experts.dense;
    const auto settle = [&] { settle_columns(block, *state.mixture, c.count); };
    review_columns(rows, from, to, state.experts.slots, t, settle, index, block, may_be_dense);
}
