// How a batch goes through a learner, block by block: learner.hpp.
#include "learn/blocks.hpp"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "learn/learner.hpp"

namespace ftprl {
namespace {

constexpr std::int64_t BLOCK_LENGTH = 256;       // rows
constexpr std::int64_t MOST_NUMBERS = 1 << 16;   // that the scales say of a block, unless a single row has more
constexpr std::int64_t ROWS_FOR_THREADS = 1024;  // fewer are done before a thread has begun
constexpr std::int64_t IN_FLIGHT = 8;            // blocks at a time

// The steps of a block that come before one of it.
constexpr bool needs(int step, int before) {
    return (before == LABELS && step != LABELS) || (step == MIX && before != MIX);
}

// Hands the steps of blocks to threads. A step of a block begins when the same step of the block before is done, so
// that every expert learns its rows in their order.
class Schedule {
public:
    Schedule(std::int64_t blocks, std::int64_t in_flight) : blocks_(blocks), in_flight_(in_flight) {}

    // What the calling thread does until all is done, or something was thrown.
    template <class Run>
    void work(const Run& run) {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            const int step = ready();
            if (step < 0 && (done_[MIX] == blocks_ || error_ != nullptr)) return;
            if (step < 0) {
                changed_.wait(lock);
                continue;
            }
            busy_[step] = true;
            const std::int64_t block = done_[step];
            lock.unlock();
            std::exception_ptr error;
            try {
                run(static_cast<Step>(step), block);
            } catch (...) {
                error = std::current_exception();
            }
            lock.lock();
            busy_[step] = false;
            ++done_[step];
            if (error != nullptr) error_ = error;
            changed_.notify_all();
        }
    }

    void rethrow() const {
        if (error_ != nullptr) std::rethrow_exception(error_);
    }

private:
    // The last step that can begin: then blocks leave as soon as they can.
    int ready() const {
        if (error_ != nullptr) return -1;
        for (int step = STEPS - 1; step >= 0; --step) {
            if (busy_[step] || done_[step] == blocks_) continue;
            bool waits = step == LABELS && done_[LABELS] - done_[MIX] >= in_flight_;
            for (int before = 0; before < STEPS; ++before)
                waits = waits || (needs(step, before) && done_[before] <= done_[step]);
            if (!waits) return step;
        }
        return -1;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    const std::int64_t blocks_, in_flight_;
    std::int64_t done_[STEPS] = {};
    bool busy_[STEPS] = {};
    std::exception_ptr error_;
};

template <class Run>
void run_with_threads(std::int64_t blocks, int threads, const Run& run) {
    Schedule schedule(blocks, IN_FLIGHT);
    std::vector<std::thread> helpers;
    try {
        for (int i = 1; i < std::min(threads, int{STEPS}); ++i) helpers.emplace_back([&] { schedule.work(run); });
    } catch (const std::system_error&) {  // fewer are to be had
    }
    schedule.work(run);
    for (std::thread& helper : helpers) helper.join();
    schedule.rethrow();
}

}  // namespace

std::int64_t Learner::most_block_rows() const {
    return std::clamp<std::int64_t>(MOST_NUMBERS / said_numbers(), 1, BLOCK_LENGTH);
}

// Where the block that begins at row `from` ends: columns change after rows whose numbers are powers of two.
// `row_number` counts the rows learned for the first time.
std::int64_t Learner::block_end(const Rows& rows, std::int64_t from, std::int64_t& row_number) const {
    const std::int64_t end = std::min(rows.count, from + most_block_rows());
    if (weighs_ || frozen_ || columns_ == nullptr) return end;
    for (std::int64_t r = from; r < end; ++r) {
        if (!(rows.y[r] == rows.y[r] && rows.weight[r] > 0.0)) continue;
        if (Columns::is_review(++row_number)) return r + 1;
    }
    return end;
}

void Learner::begin(Block& block, const Batch& batch, std::int64_t from, std::int64_t to, bool learns) const {
    const auto rows = static_cast<std::size_t>(to - from);
    const auto reserve = [&](std::vector<double>& numbers, std::size_t width, bool wanted) {
        if (wanted && numbers.size() < rows * width) numbers.resize(rows * width);
    };
    block.from = from;
    block.to = to;
    block.stride = said_numbers();
    block.changes.clear();
    const auto stride = static_cast<std::size_t>(block.stride);
    if (block.facts.size() < rows) block.facts.resize(rows);
    reserve(block.scores, stride, true);
    reserve(block.tails, stride, has_classes() || (learns && !labelled()));
    reserve(block.slopes, stride, learns && receipt() && labelled());
    reserve(block.coin, 1, coin_ != nullptr);
    reserve(block.columns, COLUMN_STRIDE, columns_ != nullptr);
    if (learns) return;
    block.used = columns_ == nullptr ? 0 : columns_->used();
    const RowFacts facts = facts_of_labels(options_.constants, labels_, rates_);
    for (std::int64_t r = from; r < to; ++r) {
        RowFacts& own = block.facts[static_cast<std::size_t>(r - from)] = facts;
        own.y = batch.rows.y == nullptr ? NAN : batch.rows.y[r];
    }
}

BasePass Learner::pass_of(Block& block, const Batch& batch, bool learns) const {
    BasePass pass = {};
    pass.rows = &batch.rows;
    pass.from = block.from;
    pass.to = block.to;
    pass.facts = block.facts.data();
    pass.learns = learns;
    pass.scores = block.scores.data();
    pass.stride = block.stride;
    if (has_classes() || (learns && !labelled())) pass.tails = block.tails.data();
    if (learns && receipt() && labelled()) pass.slopes = block.slopes.data();
    return pass;
}

void Learner::run_coin(Block& block, const Batch& batch, bool learns, double* buffer) const {
    BasePass pass = pass_of(block, batch, learns);
    pass.scores = block.coin.data();
    // Loops that do not learn leave the numbers alone.
    const CoinState state = {coin_->data(), const_cast<double*>(coin_intercept_)};
    kernels_->coin[wide_cells()](pass, options_.constants, state, buffer);
}

// Rows that were learned in an earlier pass, or are only predicted, are not counted.
void Learner::learn_columns(Block& block, const Batch& batch, std::int64_t row_number) {
    block.used = columns_->used();
    const Columns::Reader reader(*columns_);
    for (std::int64_t r = block.from; r < block.to; ++r) {
        const auto row = static_cast<std::size_t>(r - block.from);
        double* to = block.columns.data() + row * COLUMN_STRIDE;
        if (block.facts[row].learns && !frozen_) {
            columns_->learn(batch.rows, batch.slots, r, to);
            ++row_number;
        } else {
            reader.read(batch.rows, batch.slots, r, to);
        }
    }
    if (block.facts[static_cast<std::size_t>(block.to - block.from - 1)].learns && !frozen_)
        columns_->review(row_number, block.changes);
}

MixPass Learner::mix_pass(const Block& block, const Batch& batch, const RowOutputs& out, const Roster& roster,
                          Totals& totals, bool learns) const {
    auto* self = const_cast<Learner*>(this);  // a pass that does not learn leaves it alone
    MixPass pass = {};
    pass.constants = &options_.constants;
    pass.rows = &batch.rows;
    pass.from = block.from;
    pass.to = block.to;
    pass.facts = block.facts.data();
    pass.scores = block.scores.data();
    pass.tails = block.tails.data();
    pass.slopes = block.slopes.data();
    pass.stride = block.stride;
    pass.coin = coin_ == nullptr ? nullptr : block.coin.data();
    pass.columns = block.columns.data();
    pass.used = block.used;
    pass.roster = &roster;
    pass.mixture = &self->mixture_;
    pass.learns = learns;
    pass.frozen = frozen_;
    pass.weighs = learns && weighs_;
    pass.out = out;
    pass.tallies = self->tallies_;
    pass.totals = &totals;
    pass.row_sums = learns && receipt() && labelled() ? self->row_sums_ : nullptr;
    return pass;
}

void Learner::mix(const MixPass& pass, double*) const { kernels_->mix(pass); }

Totals Learner::learn_blocks(const Batch& batch, const RowOutputs& out) {
    const Rows& rows = batch.rows;
    is_mirrored_ = false;
    Totals totals = {0.0, 0.0, 0};
    const Roster roster = this->roster();
    // Where each block begins, and the number of rows learned before it.
    std::vector<std::pair<std::int64_t, std::int64_t>> bounds;
    auto row_number = static_cast<std::int64_t>(tallies_[ROWS]);
    for (std::int64_t from = 0; from < rows.count;) {
        bounds.emplace_back(from, row_number);
        from = block_end(rows, from, row_number);
    }
    const auto count = static_cast<std::int64_t>(bounds.size());
    bounds.emplace_back(rows.count, row_number);
    while (static_cast<std::int64_t>(blocks_.size()) < std::min(count, IN_FLIGHT))
        blocks_.push_back(std::make_unique<Block>());
    const auto longest = std::max<std::int64_t>(longest_row(rows), 1);
    const std::size_t own = scratch_numbers(longest),
                      numbers = own + static_cast<std::size_t>((longest + 3) / 4 * 4 * SCRATCH);
    if (buffer_ == nullptr || buffer_->size() < numbers * sizeof(double))
        buffer_ = std::make_unique<Memory>(numbers * sizeof(double));
    auto* const buffer = static_cast<double*>(buffer_->data());
    double* const coin_buffer = buffer + own;
    const auto run = [&](Step step, std::int64_t b) {
        Block& block = *blocks_[static_cast<std::size_t>(b % IN_FLIGHT)];
        const auto [from, number] = bounds[static_cast<std::size_t>(b)];
        switch (step) {
            case LABELS:
                begin(block, batch, from, bounds[static_cast<std::size_t>(b) + 1].first, true);
                learn_labels(options_.constants, rows, block.from, block.to, !weighs_, labels_, rates_,
                             block.facts.data());
                break;
            case SCALES: {
                run_scales(pass_of(block, batch, true), buffer);
                break;
            }
            case COIN:
                if (coin_ != nullptr) run_coin(block, batch, true, coin_buffer);
                break;
            case COLUMNS:
                block.used = 0;
                if (columns_ != nullptr) learn_columns(block, batch, number);
                break;
            default:
                mix(mix_pass(block, batch, out, roster, totals, true), nullptr);
                if (!block.changes.empty()) newtons_->change(block.changes);
        }
    };
    if (threads > 1 && rows.count >= ROWS_FOR_THREADS) {
        run_with_threads(count, threads, run);
    } else {
        for (std::int64_t b = 0; b < count; ++b) {
            for (int step = 0; step < STEPS; ++step) run(static_cast<Step>(step), b);
        }
    }
    return totals;
}

void Learner::score_said(std::int64_t rows, const double* scores, const double* coin, const double* values,
                         std::int64_t width, double* out) const {
    const Roster roster = this->roster();
    Totals totals = {0.0, 0.0, 0};
    Block block = {};
    Batch none = {};
    for (std::int64_t from = 0; from < rows; from += BLOCK_LENGTH) {
        begin(block, none, 0, std::min(BLOCK_LENGTH, rows - from), false);
        for (std::int64_t r = 0; columns_ != nullptr && r < block.to; ++r)
            columns_->read_dense(values + (from + r) * width, width, block.columns.data() + r * COLUMN_STRIDE);
        RowOutputs targets = {};
        targets.scores = out + from;
        MixPass pass = mix_pass(block, none, targets, roster, totals, false);
        pass.scores = scores + from * scales();
        pass.coin = coin == nullptr ? nullptr : coin + from;
        mix(pass, nullptr);
    }
}

// Several threads may score at once: each has a block of its own.
void Learner::score_rows(const Rows& given, double* scores) const {
    std::vector<std::uint32_t> cell_numbers;
    Batch batch = {given, given.indices};
    batch.rows.y = batch.rows.weight = nullptr;
    if (slot_map_ != nullptr) {
        const std::int64_t size = given.indptr[given.count];
        cell_numbers.resize(static_cast<std::size_t>(size));
        slot_map_->find(given.indices, size, cell_numbers.data());
        batch.rows.indices = cell_numbers.data();
    }
    Block block = {};
    Totals totals = {0.0, 0.0, 0};
    const Roster roster = this->roster();
    std::unique_ptr<Columns::Reader> reader;
    if (columns_ != nullptr) reader = std::make_unique<Columns::Reader>(*columns_);
    const std::size_t scratch = scratch_numbers(0);
    Memory buffer(std::max<std::size_t>(scratch, 1) * sizeof(double));
    for (std::int64_t from = 0; from < given.count; from = block.to) {
        begin(block, batch, from, std::min(given.count, from + most_block_rows()), false);
        run_scales(pass_of(block, batch, false), static_cast<double*>(buffer.data()));
        if (coin_ != nullptr) run_coin(block, batch, false, nullptr);
        for (std::int64_t r = block.from; reader != nullptr && r < block.to; ++r)
            reader->read(batch.rows, batch.slots, r, block.columns.data() + (r - from) * COLUMN_STRIDE);
        RowOutputs out = {};
        if (!has_classes()) out.scores = scores;
        mix(mix_pass(block, batch, out, roster, totals, false), scores + from * outputs());
    }
}

}  // namespace ftprl
