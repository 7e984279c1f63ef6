// Cells of one scale: their rows are worked on four entries at a time. Included by loops.inl; rules as in steps.inl.

// Fetches four entries ahead; if they are of the row that is worked on, which is a long one, predicting needs them all.
template <bool raise, class Record>
FTPRL_INSIDE void fetch_predicting(const Record* cells, const std::uint32_t* next, bool of_this_row) {
    for (int j = 0; j < SPLIT; ++j) fetch_to_second_level(cells + next[j]);
    if (raise && !of_this_row) return;
    for (int j = SPLIT; j < 4; ++j) fetch_to_second_level(cells + next[j]);
}
template <class Record>
FTPRL_INSIDE void fetch_learning(const Record* cells, const std::uint32_t* next, bool of_this_row) {
    if (of_this_row) return;
    for (int j = SPLIT; j < 4; ++j) fetch_to_second_level(cells + next[j]);
}

template <class Record>
inline void fetch_first(const Rows& rows, const Lookahead& look, const Record* cells) {
    for (std::int64_t p = 0; p < look.ahead && p < look.end; ++p) fetch_to_second_level(cells + rows.indices[p]);
}

// The values of four entries, read on into the next row where there is one: lanes from `count` on are to be forgotten.
inline D values_of(const Rows& rows, std::int64_t p, int count, std::int64_t end) {
    if (p + 4 <= end) {
        if (rows.wide) return load(static_cast<const double*>(rows.values) + p);
        return wide(load(static_cast<const float*>(rows.values) + p));
    }
    double v[4] = {0.0, 0.0, 0.0, 0.0};
    for (int j = 0; j < count; ++j) v[j] = value_of(rows, p + j);
    return load(v);
}

// Add the gradients of some entries of a row to the S beside their cells, which are those of records of this type.
template <class T>
FTPRL_INSIDE void add_gradients(const SummedCell<T>*, Cell<T>* const* at, int count, D g) {
    alignas(32) double gradients[4];
    store(gradients, g);
    for (int j = 0; j < count; ++j) reinterpret_cast<SummedCell<T>*>(at[j])->S += gradients[j];
}

// Cells without one hold S themselves, or need none.
template <class T>
inline void add_gradients(const Cell<T>*, Cell<T>* const*, int, D) {}

template <class T, bool labelled, bool receipt>
class OneScale {
    using Record = typename RecordOf<T, receipt, labelled>::type;

public:
    static constexpr bool LOG_LOSS = !labelled;

    OneScale(const BasePass& pass, const Constants& constants, const TableState& state, double* buffer)
        : rows_(*pass.rows),
          constants_(constants),
          state_(state),
          cells_(static_cast<Record*>(state.cells)),
          scratch_(reinterpret_cast<Block<T>*>(buffer)),
          play_(play_of(constants)),
          inverse_(all(1.0 / constants.h[0])),
          look_(lookahead_of(rows_)),
          kinked_(constants.loss->has_kink()) {
        if (pass.from == 0) fetch_first(rows_, look_, cells_);
    }

    int count() const { return 1; }

    // The score of a row. For a row that will be learned M is raised first, blocks of four entries are kept, and
    // `reach` gets the sum of v^2 / (h Q).
    template <bool raise>
    FTPRL_INSIDE void score(std::int64_t r, const RowFacts& facts, double* score, double* reach) {
        *score =
            constants_.unconstrained ? entries_score<true, raise>(r, reach) : entries_score<false, raise>(r, reach);
        base_ = own_block(facts);
        if constexpr (labelled) {
            *score = (*score + facts.offset) + (constants_.intercept ? first(base_.x) : 0.0);
            if (raise && constants_.intercept) *reach += first(own_rate_);
        } else {
            *score = *score + (constants_.intercept ? first(base_.x) : 0.0);
        }
    }

    FTPRL_INSIDE void step(std::int64_t r, const RowFacts& facts, const double* slopes) {
        const D slope = all(slopes[0]);
        RegretSums sums = no_sums(), own = no_sums();
        const bool small = !labelled && fabs(slopes[0]) * rows_.largest <= LARGEST_GRADIENT<T>;
        if (constants_.unconstrained && small) {
            step_entries<true, true>(r, facts, slope, sums);
        } else if (small) {
            step_entries<false, true>(r, facts, slope, sums);
        } else {
            sums = constants_.unconstrained ? step_with_cuts<true>(r, facts, slope)
                                            : step_with_cuts<false>(r, facts, slope);
        }
        if (constants_.intercept) step_intercept(facts, slope, own);
        if constexpr (receipt) add_sums(sums, own, slopes[0]);
    }

private:
    // The products x v of four coordinates, of which only the first `count` count. For a row that will be learned, M is
    // raised first and the block is kept. Its parts are written one by one: a compiler may copy a whole struct in
    // pieces, and reading a number back that was written in two pieces takes long.
    template <bool unconstrained, bool raise>
    FTPRL_INSIDE D predict_block(const Limits& limits, const Cell<T>* const* at, D v, int count, Block<T>* kept,
                                 D& reach) {
        Four<T> z, R, M, S;
        gather(at, z, R, M, S);
        if constexpr (raise) M = larger(M, narrow<T>(size(v)));
        const D wide_z = wide(z), wide_R = wide(R);
        D rate = wide_z, x;
        if constexpr (labelled) {
            rate = rate_of(play_, wide_R, wide(M));
            x = play_at<unconstrained>(play_, limits, wide_z, rate, wide(S), wide(M));
        } else {
            x = play<unconstrained>(play_, limits, wide_z, wide_R, wide(M));
        }
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
            kept->S = S;
            if constexpr (labelled) reach += v * v * rate;
        }
        return x * v;
    }

    template <bool unconstrained, bool raise>
    FTPRL_INSIDE double entries_score(std::int64_t r, double* reach) {
        const std::int64_t from = rows_.indptr[r], to = rows_.indptr[r + 1], whole = to - (to - from) % 4;
        const std::uint32_t* index = rows_.indices;
        const std::uint32_t* next = index + (to + look_.ahead <= look_.end ? look_.ahead : 0);
        const Cell<T>* at[4];
        Block<T>* kept = scratch_;
        D total = all(0.0), moved = all(0.0);
        std::int64_t p = from;
        for (; p < whole; p += 4) {
            fetch_predicting<raise>(cells_, next + p, p + look_.ahead < to);
            for (int j = 0; j < 4; ++j) at[j] = cell_of(cells_ + index[p + j]);
            Limits limits = limits_of(play_);
            if constexpr (!unconstrained) {
                for (int j = 0; j < 4; ++j) fetch_kind(constants_.boxes, next[p + j]);
                limits = limits_at(play_, constants_.boxes, index + p);
            }
            const D v = rows_.wide ? load(static_cast<const double*>(rows_.values) + p)
                                   : wide(load(static_cast<const float*>(rows_.values) + p));
            total += predict_block<unconstrained, raise>(limits, at, v, 4, kept++, moved);
        }
        if (p < to) {
            const int left = static_cast<int>(to - p);
            for (int j = 0; j < left && j < (raise ? SPLIT : 4); ++j) fetch_to_second_level(cells_ + next[p + j]);
            for (int j = 0; j < 4; ++j) at[j] = cell_of(cells_ + index[j < left ? p + j : p]);
            Limits limits = limits_of(play_);
            if constexpr (!unconstrained) limits = limits_of_rest(play_, constants_.boxes, index + p, left);
            const D v = values_of(rows_, p, left, look_.end);
            total += predict_block<unconstrained, raise>(limits, at, v, left, kept, moved);
        }
        if constexpr (raise) *reach = sum(moved);
        return sum(total);
    }

    template <bool unconstrained, bool small>
    FTPRL_INSIDE void step_entries(std::int64_t r, const RowFacts& facts, D slope, RegretSums& sums) {
        const std::int64_t from = rows_.indptr[r], to = rows_.indptr[r + 1], whole = to - (to - from) % 4;
        const std::uint32_t* index = rows_.indices;
        const std::uint32_t* next = index + (to + look_.ahead <= look_.end ? look_.ahead : 0);
        const Units units = units_of<T>(facts);
        const Four<T> kappa = narrow<T>(units.kappa);
        const Block<T>* kept = scratch_;
        Cell<T>* at[4];
        Four<T> z, R;
        const auto step_block = [&](int count) {
            D g;
            if constexpr (labelled) {
                const D own = wide(kept->S);
                g = labelled_step<T, unconstrained, receipt>(play_, inverse_, units, kinked_, slope, *kept,
                                                             where_positive(own, all(1.0) / own), z, R, sums);
                scatter(at, z, R, kept->M, kappa);
            } else {
                g = ::ftprl::FTPRL_ISA::step<T, unconstrained, receipt, small>(play_, inverse_, slope, *kept, z, R,
                                                                               sums);
                scatter(at, z, R, kept->M, narrow<T>(wide(kept->S) + g));
            }
            add_gradients(cells_, at, count, g);
        };
        std::int64_t p = from;
        for (; p < whole; p += 4, ++kept) {
            fetch_learning(cells_, next + p, p + look_.ahead < to);
            for (int j = 0; j < 4; ++j) at[j] = cell_of(cells_ + index[p + j]);
            step_block(4);
        }
        if (p < to) {
            const int left = static_cast<int>(to - p);
            for (int j = SPLIT; j < left; ++j) fetch_to_second_level(cells_ + next[p + j]);
            Cell<T> none;
            for (int j = 0; j < 4; ++j) at[j] = j < left ? cell_of(cells_ + index[p + j]) : &none;
            step_block(left);
        }
    }

    // The few rows with gradients that may have to be cut, and all with labels in a unit.
    template <bool unconstrained>
    FTPRL_OUTSIDE RegretSums step_with_cuts(std::int64_t r, const RowFacts& facts, D slope) {
        RegretSums sums = no_sums();
        step_entries<unconstrained, false>(r, facts, slope, sums);
        return sums;
    }

    // The intercept's cell in all lanes, of which the first counts: a coordinate of value 1, without l1, l2 and bounds.
    FTPRL_INSIDE Block<double> own_block(const RowFacts&) {
        const double* cell = state_.intercept;
        Block<double> b = {all(cell[0]), all(cell[1]), all(1.0), all(0.0), all(cell[2]), all(cell[3])};
        if constexpr (labelled) {
            own_rate_ = rate_of(play_, b.R, b.M);
            b.x = play_at<true>(play_, b.z, own_rate_, b.S, b.M);
        } else {
            b.x = play<true>(play_, b.z, b.R, b.M);
        }
        return b;
    }

    FTPRL_INSIDE void step_intercept(const RowFacts& facts, D slope, RegretSums& own) {
        double* cell = state_.intercept;
        D z, R, g;
        if constexpr (labelled) {
            g = labelled_step<double, true, receipt>(play_, inverse_, units_of<double>(facts), kinked_, slope, base_,
                                                     where_positive(base_.S, all(1.0) / base_.S), z, R, own);
            cell[3] = facts.kappa;
            if constexpr (receipt) cell[4] += first(g);
        } else {
            g = ::ftprl::FTPRL_ISA::step<double, true, receipt>(play_, inverse_, slope, base_, z, R, own);
            cell[3] = first(base_.S + g);
        }
        cell[0] = first(z);
        cell[1] = first(R);
    }

    // Add what one row gave to the sums of a receipt; the intercept's part is in the first lane.
    FTPRL_INSIDE void add_sums(const RegretSums& sums, const RegretSums& own, double slope) const {
        double (*rounding)[MOST_SCALES] = state_.receipt.rounding;
        alignas(32) double row[8];
        store(row, sums_of(sums.linear, sums.proximal, sums.stability, sums.drift) +
                       four(first(own.linear), first(own.proximal), first(own.stability), first(own.drift)));
        store(row + 4, sums_of(sums.linear_size, sums.step_size, sums.linear_size, sums.step_size) +
                           four(first(own.linear_size), first(own.step_size), 0.0, 0.0));
        for (int part = 0; part < 3; ++part) state_.receipt.sums[part][0] += row[part];
        rounding[DRIFT][0] += row[3];
        rounding[LINEAR_SIZE][0] += row[4];
        rounding[STEP_SIZE][0] += row[5];
        rounding[SLOPES][0] += fabs(slope);
    }

    const Rows& rows_;
    const Constants& constants_;
    const TableState& state_;
    Record* cells_;
    Block<T>* scratch_;
    const Play play_;
    const D inverse_;
    const Lookahead look_;
    const bool kinked_;
    Block<double> base_;
    D own_rate_;
};
