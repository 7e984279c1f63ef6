// The coin-betting expert: docs/scales.md. Included by loops.inl; rules as in steps.inl. Its arithmetic runs over four
// coordinates at a time, as that of one scale.

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

// What the intercept may win, as a cell of doubles: labels that only rise double it row by row.
constexpr double MOST_WON = 0x1p400;

// The weight of the intercept, a coordinate of value 1.
inline double intercept_bet(const double* own) {
    const double bound = own[COIN_BOUND];
    return (COIN_WEALTH + own[WON]) * own[THETA] / (bound * (bound + own[SIZES]));
}

// The score of a row, without the intercept.
template <class T, bool raise>
FTPRL_INSIDE double coin_score(const Rows& rows, const CoinState& state, Bet<T>* kept, std::int64_t r) {
    const auto* cells = static_cast<const Cell<T>*>(state.cells);
    const std::int64_t from = rows.indptr[r], to = rows.indptr[r + 1], end = rows.indptr[rows.count];
    const std::uint32_t* index = rows.indices;
    const std::uint32_t* next = index + (to + AHEAD <= end ? AHEAD : 0);
    const D bound = all(state.intercept[COIN_BOUND]);
    D total = all(0.0);
    const Cell<T>* at[4];
    std::int64_t p = from;
    for (; p + 4 <= to; p += 4) {
        for (int j = 0; j < 4; ++j) fetch(cells + next[p + j]);
        for (int j = 0; j < 4; ++j) at[j] = cells + index[p + j];
        const D v = rows.wide ? load(static_cast<const double*>(rows.values) + p)
                              : wide(load(static_cast<const float*>(rows.values) + p));
        total += bet_block<T, raise>(at, v, bound, 4, raise ? kept++ : nullptr);
    }
    if (p < to) {
        const int count = static_cast<int>(to - p);
        for (int j = 0; j < count; ++j) fetch(cells + next[p + j]);
        for (int j = 0; j < 4; ++j) at[j] = cells + index[j < count ? p + j : p];
        total += bet_block<T, raise>(at, values_of(rows, p, count, end), bound, count, raise ? kept : nullptr);
    }
    return sum(total);
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
FTPRL_INSIDE void learn_coin(const Rows& rows, const CoinState& state, const Bet<T>* kept, bool intercept,
                             std::int64_t r, double row_slope) {
    auto* cells = static_cast<Cell<T>*>(state.cells);
    const std::int64_t from = rows.indptr[r], to = rows.indptr[r + 1];
    double* own = state.intercept;
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

// The weighted slope at the coin's score, in units of the labels where they have one.
inline double coin_slope(const Constants& c, const RowFacts& f, double score) {
    const Loss& loss = *c.loss;
    const bool labelled = loss.rule != LabelRule::none;
    if (labelled && !f.teaches) return 0.0;
    const double s = cut_to(score, f.hull_low, f.hull_high);
    if (!labelled || loss.rule == LabelRule::classes) {
        double tail = 0.0;
        return f.weight * loss.at(labelled ? s : score, f.learned, c.tau, tail).slope;
    }
    return f.weight * loss.stack({s, f.learned, f.label_unit, f.psi, 1.0, c.tau}).slope;
}

// The coin's score is counted from the base rate or the offset of the labels, and in their unit.
template <class T>
void learn_coin_rows(const BasePass& pass, const Constants& c, const CoinState& state, double* buffer) {
    const Rows& rows = *pass.rows;
    auto* kept = reinterpret_cast<Bet<T>*>(buffer);
    const bool labelled = c.loss->rule != LabelRule::none;
    for (std::int64_t r = pass.from; r < pass.to; ++r) {
        const RowFacts& f = pass.facts[r - pass.from];
        const double own = c.intercept ? intercept_bet(state.intercept) : 0.0;
        const double bet =
            f.learns ? coin_score<T, true>(rows, state, kept, r) : coin_score<T, false>(rows, state, kept, r);
        const double score = labelled ? f.offset + f.unit * (bet + own) : bet + (own + f.alone);
        pass.scores[r - pass.from] = score;
        if (f.learns) learn_coin<T>(rows, state, kept, c.intercept, r, coin_slope(c, f, score));
    }
}
