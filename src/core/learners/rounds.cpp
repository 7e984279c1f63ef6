// How a learner takes rounds of several rows: it cuts the rows into rounds, and runs the phases of rounds.hpp.
#include "learners/rounds.hpp"

#include <algorithm>
#include <vector>

#include "learners/learner.hpp"

namespace ftprl {
namespace {

bool is_learned(const Rows& rows, std::int64_t r) { return rows.y[r] == rows.y[r] && rows.weight[r] > 0.0; }

std::int64_t power_of_two_within(std::int64_t n) {
    std::int64_t power = 1;
    while (2 * power <= n) power *= 2;
    return power;
}

// The part of an array of numbers by row, from a row on.
double* from_row(double* numbers, std::int64_t row) { return numbers == nullptr ? nullptr : numbers + row; }

RowOutputs outputs_from(const RowOutputs& out, std::int64_t row) {
    return {from_row(out.scores, row), from_row(out.losses, row), nullptr, nullptr};
}

// Rows [from, to) of others. Their entries are counted from where they were.
Rows part_of(const Rows& rows, std::int64_t from, std::int64_t to) {
    return {to - from, rows.indptr + from, rows.indices, rows.values, rows.y + from, rows.weight + from};
}

}  // namespace

std::int64_t round_size(std::int64_t learned, std::int64_t most, std::int64_t growth) {
    return power_of_two_within(std::max<std::int64_t>(1, std::min(most, growth > 0 ? learned / growth : most)));
}

// ---- the phases, on the cells of this learner ----

const RoundSet& Learner::round_set() const {
    const int wide = wide_cells() ? 1 : 0, sums = receipt() ? 1 : 0, free = unconstrained_ ? 1 : 0;
    if (scales() == 1) return kernels_->rounds->one[wide][sums][free];
    return kernels_->rounds->several[wide][sums][free][(scales() + 3) / 4 - 1];
}

int Learner::round_stride() const { return scales() == 1 ? 1 : (scales() + 3) / 4 * 4; }

const std::uint32_t* Learner::cells_of_round(const RoundCoordinates& coordinates) {
    const std::uint32_t* slots = coordinates.local_slots == nullptr ? coordinates.slots : coordinates.local_slots;
    round_cells_.resize(static_cast<std::size_t>(coordinates.count));
    for (std::size_t i = 0; i < round_cells_.size(); ++i) {
        round_cells_[i] = static_cast<std::uint32_t>(claim_cell(slots[i]));
    }
    return round_cells_.data();
}

void Learner::play_round(RoundCoordinates coordinates, double* x) {
    coordinates.cells = cells_of_round(coordinates);
    round_set().play(coordinates, options_.constants, round_state(), x);
}

void Learner::score_round(const RoundRows& rows, const double* x, double* scores) const {
    round_set().score(rows, x, scores);
}

Totals Learner::chain_round(const RoundRows& rows, const std::int64_t* hot_indptr, const std::uint32_t* hot_slots,
                            const double* hot_values, const double* scores, const RowOutputs& out, double* slopes) {
    const auto size = static_cast<std::size_t>(hot_indptr[rows.count]);
    std::vector<std::uint32_t> cells(size);
    for (std::size_t p = 0; p < size; ++p) cells[p] = static_cast<std::uint32_t>(claim_cell(hot_slots[p]));
    std::int64_t longest = 1;
    for (std::int64_t r = 0; r < rows.count; ++r) longest = std::max(longest, hot_indptr[r + 1] - hot_indptr[r]);
    const std::size_t bytes = static_cast<std::size_t>(longest) * MOST_SCALES * sizeof(double);
    if (round_buffer_ == nullptr || round_buffer_->size() < bytes) round_buffer_ = std::make_unique<Memory>(bytes);
    return round_set().chain(rows, {hot_indptr, cells.data(), hot_values}, scores, options_.constants, round_state(),
                             out, static_cast<double*>(round_buffer_->data()), slopes);
}

void Learner::sum_round(const RoundRows& rows, const double* slopes, double* sums) const {
    round_set().sum(rows, slopes, sums);
}

void Learner::step_round(RoundCoordinates coordinates, const double* x, const double* g, ShardSums& sums) {
    coordinates.cells = cells_of_round(coordinates);
    round_set().step(coordinates, x, g, options_.constants, round_state(), sums);
}

// The shards in order, and then onto what there is.
void Learner::add_round_sums(const ShardSums& sums) {
    if (!receipt()) return;
    for (int k = 0; k < scales(); ++k) {
        double total[STEP_SUMS] = {};
        for (const auto& shard : sums.of) {
            for (int j = 0; j < STEP_SUMS; ++j) total[j] += shard[j][k];
        }
        for (int j = 0; j < 3; ++j) *regret_sum(j, k) += total[j];
        for (int j = 3; j < STEP_SUMS; ++j) rounding_[j - 3][k] += total[j];
    }
}

void Learner::count_round(const Rows& rows, const double* losses) {
    if (calibrates()) calibration_.add(rows, losses);
}

// ---- a round ----

Totals Learner::learn_round(const Rows& rows, bool wide_values, const RowOutputs& out, std::int64_t block) {
    if (numbering_ == nullptr) numbering_ = std::make_unique<Numbering>(dim());
    Numbering& own = *numbering_;
    own.clear();
    own.add(rows, wide_values, block);
    const std::size_t count = own.count(), stride = static_cast<std::size_t>(round_stride());
    std::vector<double> met = own.rows();  // with 0 for the hot ones, which are not learned here
    std::vector<char> is_hot(count, 0);
    for (const std::uint32_t i : own.numbers_of(hot_)) {
        met[i] = 0.0;
        is_hot[i] = 1;
    }
    RoundCoordinates all{};
    all.count = static_cast<std::int64_t>(count);
    all.slots = own.slots().data();
    all.rows = met.data();
    all.largest = own.largest().data();
    all.squares = own.squares().data();
    for (std::int64_t r = 0; r < rows.count; ++r) {
        if (is_learned(rows, r)) all.heaviest = std::max(all.heaviest, rows.weight[r]);
    }
    std::vector<double> x(count * stride), g(count * stride), part;
    play_round(all, x.data());
    for (std::size_t i = 0; i < count; ++i) {
        if (is_hot[i]) std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(i * stride), stride, 0.0);
    }
    Totals totals{};
    const std::int64_t first = rows.indptr[0];
    std::vector<std::int64_t> indptr, hot_indptr;
    std::vector<std::uint32_t> hot_slots;
    std::vector<double> hot_values, scores, slopes;
    for (std::int64_t from = 0; from < rows.count;) {
        std::int64_t to = from, learned = 0;
        while (to < rows.count && learned < block) learned += is_learned(rows, to++) ? 1 : 0;
        indptr.clear();
        hot_indptr.assign(1, 0);
        hot_slots.clear();
        hot_values.clear();
        for (std::int64_t r = from; r <= to; ++r) indptr.push_back(rows.indptr[r] - first);
        for (std::int64_t r = from; r < to; ++r) {
            for (std::int64_t p = rows.indptr[r] - first; p < rows.indptr[r + 1] - first; ++p) {
                const std::uint32_t i = own.coordinates()[static_cast<std::size_t>(p)];
                if (!is_hot[i]) continue;
                hot_slots.push_back(own.slots()[i]);
                hot_values.push_back(own.values()[static_cast<std::size_t>(p)]);
            }
            hot_indptr.push_back(static_cast<std::int64_t>(hot_slots.size()));
        }
        const RoundRows these = {to - from,           indptr.data(), own.coordinates().data(),
                                 own.values().data(), rows.y + from, rows.weight + from};
        scores.resize(static_cast<std::size_t>(to - from) * stride);
        slopes.resize(scores.size());
        score_round(these, x.data(), scores.data());
        const Totals some = chain_round(these, hot_indptr.data(), hot_slots.data(), hot_values.data(), scores.data(),
                                        outputs_from(out, from), slopes.data());
        totals.loss += some.loss;
        totals.weight += some.weight;
        totals.rows += some.rows;
        if (to == rows.count && from == 0) {
            sum_round(these, slopes.data(), g.data());
        } else {
            part.assign(count * stride, 0.0);
            sum_round(these, slopes.data(), part.data());
            for (std::size_t i = 0; i < g.size(); ++i) g[i] += part[i];
        }
        from = to;
    }
    ShardSums sums{};
    step_round(all, x.data(), g.data(), sums);
    add_round_sums(sums);
    hot_ = own.next_hot();
    return totals;
}

// Rows that are learned one by one, or not at all.
Totals Learner::learn_singly(const Rows& rows, bool wide_values, const RowOutputs& out) {
    if (rows.count == 0) return {};
    const std::int64_t first = rows.indptr[0];
    std::vector<std::int64_t> indptr(rows.indptr, rows.indptr + rows.count + 1);
    for (std::int64_t& end : indptr) end -= first;
    Rows own = rows;
    own.indptr = indptr.data();
    own.indices += first;
    own.values = wide_values ? static_cast<const void*>(static_cast<const double*>(rows.values) + first)
                             : static_cast<const void*>(static_cast<const float*>(rows.values) + first);
    const Totals totals = learn_rows(own, wide_values, out);
    for (std::int64_t r = rows.count - 1; r >= 0 && !options_.constants.weighs; --r) {
        if (!is_learned(rows, r)) continue;
        hot_.assign(own.indices + indptr[static_cast<std::size_t>(r)],
                    own.indices + indptr[static_cast<std::size_t>(r) + 1]);
        std::sort(hot_.begin(), hot_.end());
        hot_.erase(std::unique(hot_.begin(), hot_.end()), hot_.end());
        break;
    }
    return totals;
}

Totals Learner::learn_in_rounds(const Rows& rows, bool wide_values, const RowOutputs& out) {
    Totals totals{};
    const auto add = [&](const Totals& some) {
        totals.loss += some.loss;
        totals.weight += some.weight;
        totals.rows += some.rows;
    };
    for (std::int64_t from = 0; from < rows.count;) {
        const auto t = static_cast<std::int64_t>(tallies_[ROWS]);
        const std::int64_t size = round_size(t, options_.round_rows, ROUND_GROWTH);
        // Rounds of one row follow each other up to the first of two.
        const std::int64_t missing = size == 1 ? std::max<std::int64_t>(1, 2 * ROUND_GROWTH - t) : size - t % size;
        std::int64_t to = from, last = from, learned = 0;  // behind the last row that is learned
        while (to < rows.count && learned < missing) {
            if (is_learned(rows, to)) {
                ++learned;
                last = to + 1;
            }
            ++to;
        }
        const std::int64_t whole = learned == missing ? to : last;
        const Rows round = part_of(rows, from, whole);
        const bool singly = size == 1 || learned <= 1 || options_.constants.weighs;
        add(singly ? learn_singly(round, wide_values, outputs_from(out, from))
                   : learn_round(round, wide_values, outputs_from(out, from), ROUND_BLOCK));
        add(learn_singly(part_of(rows, whole, to), wide_values, outputs_from(out, whole)));
        from = to;
    }
    return totals;
}

}  // namespace ftprl
