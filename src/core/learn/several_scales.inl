// Cells of several scales: a lane is a scale, and entries are worked on one after the other. Included by loops.inl;
// rules as in steps.inl. Where every |value| is 1, and so s = M, a lane learns to the bit what one scale would.

// A cell begins at a line of memory only if it fits into one: of eight scales in 72 bytes every cell lies in two lines
// as one of 128 bytes would, in not much over half the memory, which the system has to clear before it is used.
template <class T, int L>
struct alignas((8 * L + 2) * sizeof(T) <= 64 ? 64 : 8) PlainCoordinate {
    T z[4 * L], R[4 * L], s, N;
};

// With labels in a unit a cell also has kappa, the unit of its weights; 0 before it was learned.
template <class T, int L>
struct alignas((8 * L + 3) * sizeof(T) <= 64 ? 64 : 8) LabelledCoordinate {
    T z[4 * L], R[4 * L], s, N, kappa;
};

template <class T, int L, bool labelled>
struct CoordinateOf {
    using type = PlainCoordinate<T, L>;
};
template <class T, int L>
struct CoordinateOf<T, L, true> {
    using type = LabelledCoordinate<T, L>;
};

// Entries fetched ahead; a cell here is longer than with one scale.
template <class C>
constexpr std::int64_t FAR = sizeof(C) <= 64 ? 128 : 64;

template <class C>
inline void fetch_cell(const C* cell) {
    const char* line = reinterpret_cast<const char*>(cell);
    for (std::size_t at = 0; at < sizeof *cell; at += 64) fetch(line + at);
    if constexpr (sizeof *cell % 64 > 8) fetch(line + sizeof *cell - 1);  // it may end one line further on
}

// The constants of four scales at a time.
template <int L>
struct Lanes {
    Play play[L];
    D inverse[L];
};

template <int L>
inline Lanes<L> lanes_with(const Constants& c) {
    Lanes<L> lanes;
    for (int l = 0; l < L; ++l) {
        double hl2[4], minus[4], inverse[4];
        for (int j = 0; j < 4; ++j) {
            const double h = c.h[4 * l + j];
            minus[j] = -h;
            hl2[j] = h * c.l2;
            inverse[j] = 1.0 / h;
        }
        lanes.play[l] = {load(c.h + 4 * l), load(minus), all(c.beta), all(c.l1), load(hl2), all(c.lower), all(c.upper)};
        lanes.inverse[l] = load(inverse);
    }
    return lanes;
}

// The unit of a feature met once more with the size a: N grows, and s follows the root of the mean square upwards.
template <class T>
FTPRL_INSIDE void raise_unit(T& unit, T& rows, double a) {
    rows = static_cast<T>(static_cast<double>(rows) + 1.0);
    const double s = unit;
    if (!(a > s)) return;
    const double rms = sqrt(s * s + (a * a - s * s) / static_cast<double>(rows));
    unit = static_cast<T>(most(most(s, rms), a * 0.0625));
}

template <class T, int L, bool labelled, bool receipt>
class SeveralScales {
    using C = typename CoordinateOf<T, L, labelled>::type;

public:
    static constexpr bool LOG_LOSS = !labelled;

    SeveralScales(const BasePass& pass, const Constants& constants, const TableState& state, double* buffer)
        : rows_(*pass.rows),
          constants_(constants),
          state_(state),
          cells_(static_cast<C*>(state.cells)),
          kept_(reinterpret_cast<D*>(buffer)),
          lanes_(lanes_with<L>(constants)),
          end_(rows_.indptr[rows_.count]),
          kinked_(constants.loss->has_kink()) {
        if (pass.from != 0) return;
        for (std::int64_t p = 0; p < FAR<C> && p < end_; ++p) fetch_cell(cells_ + rows_.indices[p]);
    }

    int count() const { return constants_.count; }

    // The scores of a row, a lane each. For a row that will be learned units are raised first, plays are kept, and
    // `reach` gets the sum of v^2 / (h Q).
    template <bool raise>
    FTPRL_INSIDE void score(std::int64_t r, const RowFacts& facts, double* scores, double* reach) {
        D total[L], moved[L];
        if (constants_.unconstrained) {
            entries_score<true, raise>(r, total, moved);
        } else {
            entries_score<false, raise>(r, total, moved);
        }
        for (int l = 0; l < L; ++l) {
            if constexpr (labelled) total[l] += all(facts.offset);
            const Block<double> own = own_block(l);
            own_[l] = own.x;
            if (constants_.intercept) {
                total[l] += own.x;
                if constexpr (labelled && raise) moved[l] += rate_of(lanes_.play[l], own.R, all(1.0));
            } else if constexpr (!labelled) {
                total[l] += all(0.0);
            }
            store(scores + 4 * l, total[l]);
            if constexpr (labelled && raise) store(reach + 4 * l, moved[l]);
        }
    }

    FTPRL_INSIDE void step(std::int64_t r, const RowFacts& facts, const double* slopes) {
        D slope[L];
        RegretSums sums[4][L], own[L];
        for (int l = 0; l < L; ++l) {
            slope[l] = load(slopes + 4 * l);
            if constexpr (receipt) own[l] = sums[0][l] = sums[1][l] = sums[2][l] = sums[3][l] = no_sums();
        }
        // Nearly all rows have small gradients; a shorter loop for them is worth its code where most models are.
        const bool small = (!labelled || (!receipt && constants_.unconstrained)) && are_small(slope, r, facts);
        if (constants_.unconstrained) {
            small ? step_entries<true, true>(r, facts, slope, sums) : step_entries<true, false>(r, facts, slope, sums);
        } else if (small) {
            step_entries<false, true>(r, facts, slope, sums);
        } else {
            step_entries<false, false>(r, facts, slope, sums);
        }
        if (constants_.intercept) step_intercept(facts, slope, own);
        if constexpr (receipt) add_sums(sums, own, slope);
    }

private:
    static FTPRL_INSIDE D kappa_of(const C& cell, bool kinked) {
        if constexpr (labelled) {
            return all(kinked ? static_cast<double>(cell.kappa) : 1.0);
        } else {
            return all(1.0);
        }
    }

    // The products x v of one entry, added to `part`, four scales at a time. A call for each entry would cost as much
    // as its work.
    template <bool unconstrained, bool raise>
    FTPRL_INSIDE void predict_entry(std::uint32_t at, double v, D* part, D* reach, D* kept) {
        C& cell = cells_[at];
        if constexpr (raise) raise_unit(cell.s, cell.N, fabs(v));
        const D s = all(cell.s), wide_v = all(v);
        Limits limits = limits_of(lanes_.play[0]);
        if constexpr (!unconstrained) limits = limits_at(lanes_.play[0], constants_.boxes, at);
        for (int l = 0; l < L; ++l) {
            D x;
            if constexpr (labelled) {
                const D rate = rate_of(lanes_.play[l], wide_at(cell.R + 4 * l), s);
                x = play_at<unconstrained>(lanes_.play[l], limits, wide_at(cell.z + 4 * l), rate,
                                           kappa_of(cell, kinked_), s);
                if constexpr (raise) reach[l] += all(v * v) * rate;
            } else {
                x = play<unconstrained>(lanes_.play[l], limits, wide_at(cell.z + 4 * l), wide_at(cell.R + 4 * l), s);
            }
            if constexpr (raise) kept[l] = x;
            part[l] += x * wide_v;
        }
    }

    template <bool unconstrained, bool raise>
    FTPRL_INSIDE void entries_score(std::int64_t r, D* total, D* moved) {
        const std::int64_t from = rows_.indptr[r], to = rows_.indptr[r + 1];
        const std::uint32_t* index = rows_.indices;
        const std::uint32_t* next = index + (to + FAR<C> <= end_ ? FAR<C> : 0);
        D part[4][L], reach[4][L], *kept = kept_;
        for (int j = 0; j < 4; ++j) {
            for (int l = 0; l < L; ++l) part[j][l] = reach[j][l] = all(0.0);
        }
        const auto predict = [&](std::int64_t p, int j) {
            fetch_cell(cells_ + next[p]);
            if constexpr (!unconstrained) fetch_kind(constants_.boxes, next[p]);
            predict_entry<unconstrained, raise>(index[p], value_of(rows_, p), part[j], reach[j], kept);
            if constexpr (raise) kept += L;
        };
        std::int64_t p = from;
        for (; p + 4 <= to; p += 4) {
            for (int j = 0; j < 4; ++j) predict(p + j, j);
        }
        for (int j = 0; p + j < to; ++j) predict(p + j, j);
        for (int l = 0; l < L; ++l) {
            total[l] = (part[0][l] + part[1][l]) + (part[2][l] + part[3][l]);
            if constexpr (labelled && raise) moved[l] = (reach[0][l] + reach[1][l]) + (reach[2][l] + reach[3][l]);
        }
    }

    FTPRL_INSIDE bool are_small(const D* slope, std::int64_t r, const RowFacts& facts) const {
        double largest = rows_.largest;
        if constexpr (labelled) {
            largest = 0.0;
            for (std::int64_t p = rows_.indptr[r]; p < rows_.indptr[r + 1]; ++p)
                largest = most(largest, fabs(value_of(rows_, p)));
        }
        D small = all(1.0);
        for (int l = 0; l < L; ++l) {
            const D g = size(slope[l]) * all(largest);
            small = where_positive(all(LARGEST_GRADIENT<T>) - g, small);
            if constexpr (labelled) small = where_positive(all(LARGEST_GRADIENT<T>) - g * all(1.0 / facts.psi), small);
        }
        return sum(small) == 4.0;
    }

    template <bool unconstrained, bool small>
    FTPRL_INSIDE void step_entries(std::int64_t r, const RowFacts& facts, const D* slope, RegretSums (*sums)[L]) {
        const std::int64_t from = rows_.indptr[r], to = rows_.indptr[r + 1];
        const std::int64_t next = to + FAR<C> <= end_ ? FAR<C> : 0;
        const Units units = units_of<T>(facts);
        const D* kept = kept_;
        for (std::int64_t p = from; p < to; ++p) {
            const std::uint32_t at = rows_.indices[p];
            C& cell = cells_[at];
            if constexpr (receipt) fetch_gradients(rows_.indices[p + next]);
            const int j = receipt ? static_cast<int>((p - from) % 4) : 0;
            const D v = all(value_of(rows_, p));
            const Four<T> s = narrow<T>(all(cell.s));
            D own = all(0.0);
            if constexpr (labelled) {
                const double kappa = first(kappa_of(cell, kinked_));
                own = all(kappa > 0.0 ? 1.0 / kappa : 0.0);
            }
            for (int l = 0; l < L; ++l) {
                const Block<T> b = {wide_at(cell.z + 4 * l), wide_at(cell.R + 4 * l), v, *kept++, s, s};
                Four<T> z, R;
                D g;
                if constexpr (labelled) {
                    g = labelled_step<T, unconstrained, receipt, small>(lanes_.play[l], lanes_.inverse[l], units,
                                                                        kinked_, slope[l], b, own, z, R, sums[j][l]);
                } else {
                    g = ::ftprl::FTPRL_ISA::step<T, unconstrained, receipt, small>(lanes_.play[l], lanes_.inverse[l],
                                                                                   slope[l], b, z, R, sums[j][l]);
                }
                store(cell.z + 4 * l, z);
                store(cell.R + 4 * l, R);
                if constexpr (receipt) {
                    double* S = state_.receipt.S + std::size_t{at} * (4 * L) + 4 * l;
                    store(S, load(S) + g);
                }
            }
            if constexpr (labelled) cell.kappa = static_cast<T>(first(units.kappa));
        }
    }

    // The sums of the gradients of a cell that is learned soon.
    FTPRL_INSIDE void fetch_gradients(std::size_t cell) const {
        for (int l = 0; l < L; l += 2) fetch(state_.receipt.S + cell * (4 * L) + 4 * l);
    }

    // The intercepts of four scales: a coordinate of value and unit 1, without l1, l2 and bounds.
    FTPRL_INSIDE Block<double> own_block(int l) const {
        const double* cell = state_.intercept;
        const D one = all(1.0);
        Block<double> b = {
            load(cell + 4 * l), load(cell + MOST_SCALES + 4 * l), one, one, one, load(cell + 2 * MOST_SCALES + 4 * l)};
        if constexpr (labelled) {
            b.x =
                play_at<true>(lanes_.play[l], b.z, rate_of(lanes_.play[l], b.R, one), all(cell[3 * MOST_SCALES]), one);
        } else {
            b.x = play<true>(lanes_.play[l], b.z, b.R, b.M);
        }
        return b;
    }

    FTPRL_INSIDE void step_intercept(const RowFacts& facts, const D* slope, RegretSums* sums) {
        double* cell = state_.intercept;
        const double kappa = cell[3 * MOST_SCALES];
        const D own = all(kappa > 0.0 ? 1.0 / kappa : 0.0);
        for (int l = 0; l < L; ++l) {
            Block<double> b = own_block(l);
            b.x = own_[l];
            D z, R, g;
            if constexpr (labelled) {
                g = labelled_step<double, true, receipt>(lanes_.play[l], lanes_.inverse[l], units_of<double>(facts),
                                                         kinked_, slope[l], b, own, z, R, sums[l]);
            } else {
                g = ::ftprl::FTPRL_ISA::step<double, true, receipt>(lanes_.play[l], lanes_.inverse[l], slope[l], b, z,
                                                                    R, sums[l]);
            }
            store(cell + 4 * l, z);
            store(cell + MOST_SCALES + 4 * l, R);
            if constexpr (receipt) store(cell + 2 * MOST_SCALES + 4 * l, b.S + g);
        }
        if constexpr (labelled) cell[3 * MOST_SCALES] = facts.kappa;
    }

    FTPRL_INSIDE void add_sums(const RegretSums (*sums)[L], const RegretSums* own, const D* slope) const {
        double (*rounding)[MOST_SCALES] = state_.receipt.rounding;
        for (int l = 0; l < L; ++l) {
            const auto add = [&](D RegretSums::* part, double* at) {
                const D row = (sums[0][l].*part + sums[1][l].*part) + (sums[2][l].*part + sums[3][l].*part);
                store(at + 4 * l, load(at + 4 * l) + (row + own[l].*part));
            };
            add(&RegretSums::linear, state_.receipt.sums[0]);
            add(&RegretSums::proximal, state_.receipt.sums[1]);
            add(&RegretSums::stability, state_.receipt.sums[2]);
            add(&RegretSums::drift, rounding[DRIFT]);
            add(&RegretSums::linear_size, rounding[LINEAR_SIZE]);
            add(&RegretSums::step_size, rounding[STEP_SIZE]);
            store(rounding[SLOPES] + 4 * l, load(rounding[SLOPES] + 4 * l) + size(slope[l]));
        }
    }

    const Rows& rows_;
    const Constants& constants_;
    const TableState& state_;
    C* cells_;
    D* kept_;
    const Lanes<L> lanes_;
    const std::int64_t end_;
    const bool kinked_;
    D own_[L];
};
