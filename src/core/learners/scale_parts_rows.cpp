// The rows of scales in parts: which thread learns which block when, and how its predictions are mixed.
#include "learners/scale_parts.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <system_error>

#include "learners/mixture_state.hpp"

namespace ftprl {
namespace {

constexpr std::int64_t BLOCK_ENTRIES = 4096;  // some 40 microseconds of work: threads rarely wait for each other
constexpr std::int64_t MOST_BLOCK_ROWS = 128;
constexpr std::int64_t KEPT_BLOCKS = 32;    // whose scores may wait for the mixture
constexpr std::int64_t FOUND_AHEAD = 2;     // blocks whose cells are known before they are learned
constexpr std::int64_t FEW_ENTRIES = 4096;  // a batch of fewer is not worth waking other threads
constexpr std::int64_t FIRST_REVIEWED = 8;  // FIRST_WATCH of experts.hpp

// Rows that are learned together. After a row whose number is a power of two dense columns may come or go, which needs
// the units as they are then, and after is_review of scales.hpp the range of the labels may be forgotten, which the
// next row needs: such a row is the last of its block, and no part goes on before it is mixed.
struct RowBlock {
    std::int64_t first, last;
    bool is_reviewed;
};

bool has_reviews(const ScaleConstants& c) { return !c.frozen && (c.dense || c.base.loss->predicts_labels()); }

std::vector<RowBlock> blocks_of(const Rows& rows, const ScaleConstants& c, double rows_before) {
    std::vector<RowBlock> blocks;
    const bool reviewed = has_reviews(c);
    auto t = static_cast<std::int64_t>(rows_before);
    std::int64_t first = 0;
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const bool learns = rows.y[r] == rows.y[r] && rows.weight[r] > 0.0 && !c.weighs;
        t += learns ? 1 : 0;
        const bool by_dense = c.dense && t >= FIRST_REVIEWED && (t & (t - 1)) == 0;
        const bool is_reviewed = reviewed && learns && (by_dense || (c.base.loss->predicts_labels() && is_review(t)));
        const bool is_full =
            r + 1 - first == MOST_BLOCK_ROWS || rows.indptr[r + 1] - rows.indptr[first] >= BLOCK_ENTRIES;
        if (!is_reviewed && !is_full && r + 1 < rows.count) continue;
        blocks.push_back({first, r + 1, is_reviewed});
        first = r + 1;
    }
    return blocks;
}

ScaleConstants constants_of(const ScaleConstants& all, int first, int count) {
    ScaleConstants own = all;
    keep_constants(own, first, count);
    return own;
}

// The numbers of some scales in arrays of MOST_SCALES, from one place to another.
void copy_scales(const double* from, int first, double* to, int start, int count, int rows) {
    for (int j = 0; j < rows; ++j) {
        std::copy(from + j * MOST_SCALES + first, from + j * MOST_SCALES + first + count, to + j * MOST_SCALES + start);
    }
}

void grow(std::unique_ptr<Memory>& memory, std::size_t bytes) {
    if (memory == nullptr || memory->size() < bytes) memory = std::make_unique<Memory>(bytes);
}

}  // namespace

// The rows of one call of `learn`, and how far they are.
class ScaleParts::Batch {
public:
    Batch(ScaleParts& parts, const Rows& rows, bool wide, SlotMap& slot_map, std::uint32_t* cells,
          const ScaleConstants& constants, bool unconstrained, const ScaleState& state, const RowOutputs& out)
        : parts_(parts.parts_),
          mix_(parts.kernels_->mix[parts.wide_cells_]),
          slots_(rows.indices),
          slot_map_(slot_map),
          cells_(cells),
          constants_(constants),
          unconstrained_(unconstrained),
          receipt_(parts.receipt_),
          state_(state),
          out_(out),
          blocks_(blocks_of(rows, constants, state.tallies[ROWS])),
          mixed_rows_(parts.mixed_rows(rows, wide)),
          learned_(parts.parts_.size()) {
        mixed_rows_.rows.rows.indices = cells;
        mixed_rows_.index = &index_;
        mixed_rows_.totals = &totals_;
        if (constants.dense) index_columns(*state.experts.dense, index_);
        for (const auto& part : parts_) own_constants_.push_back(constants_of(constants, part->first, part->count));
    }

    // One after the other, on this thread.
    Totals run() {
        for (std::int64_t b = 0; b < count(); ++b) {
            find_cells(b);
            for (std::size_t i = 0; i < parts_.size(); ++i) learn(i, b);
            mix(b);
        }
        return totals_;
    }

    Totals run_on(Workers& workers) {
        workers.run([](void* batch, int number) { static_cast<Batch*>(batch)->work(static_cast<std::size_t>(number)); },
                    this);
        return totals_;
    }

private:
    enum class Task { none, find, learn, mix, end };
    struct Choice {
        Task task;
        std::size_t part;  // that is learned
    };
    // Blocks in order, by one thread at a time.
    struct alignas(64) Turn {
        std::atomic<std::int64_t> blocks{0};  // done
        std::atomic<bool> is_taken{false};
    };

    std::int64_t count() const { return static_cast<std::int64_t>(blocks_.size()); }

    PartRows rows_of(std::int64_t block, std::int64_t match) const {
        PartRows rows = mixed_rows_.rows;
        rows.first_row = blocks_[static_cast<std::size_t>(block)].first;
        rows.last_row = blocks_[static_cast<std::size_t>(block)].last;
        rows.end = rows.rows.indptr[blocks_[static_cast<std::size_t>(match - 1)].last];
        return rows;
    }

    double* numbers_of(const Part& part, std::int64_t block) const {
        const std::int64_t at = block % KEPT_BLOCKS * MOST_BLOCK_ROWS * 2 * part.lanes;
        return static_cast<double*>(part.numbers->data()) + at;
    }

    void find_cells(std::int64_t block) {
        const RowBlock& rows = blocks_[static_cast<std::size_t>(block)];
        const std::int64_t* indptr = mixed_rows_.rows.rows.indptr;
        const std::int64_t from = indptr[rows.first], to = indptr[rows.last];
        slot_map_.claim(slots_ + from, to - from, cells_ + from, indptr[blocks_.back().last] - from);
        found_.blocks.store(block + 1);
    }

    void learn(std::size_t number, std::int64_t block) {
        Part& part = *parts_[number];
        // What the labels are known to be may have been changed by the mixture.
        if (block > 0 && blocks_[static_cast<std::size_t>(block - 1)].is_reviewed) {
            part.sums.labels = state_.mixture->labels;
        }
        const PartState state = {part.cells.data(), part.S == nullptr ? nullptr : static_cast<double*>(part.S->data()),
                                 &part.sums, static_cast<double*>(part.plays->data())};
        part.set->learn[unconstrained_](rows_of(block, found_.blocks.load()), own_constants_[number], state,
                                        numbers_of(part, block));
        learned_[number].blocks.store(block + 1);
    }

    void mix(std::int64_t block) {
        MixedRows rows = mixed_rows_;
        rows.rows = rows_of(block, found_.blocks.load());
        for (std::size_t i = 0; i < parts_.size(); ++i) rows.numbers[i] = numbers_of(*parts_[i], block);
        mix_(rows, constants_, state_, out_, receipt_);
        mixed_.blocks.store(block + 1);
    }

    // Whether a part may learn a block, given how many have their cells and how many are mixed.
    bool may_learn(std::int64_t block, std::int64_t match, std::int64_t mixed) const {
        const bool waits = block > 0 && blocks_[static_cast<std::size_t>(block - 1)].is_reviewed && mixed < block;
        return block < match && block < mixed + KEPT_BLOCKS && !waits;
    }

    bool can_learn(std::size_t part, std::int64_t match, std::int64_t mixed) const {
        return may_learn(learned_[part].blocks.load(), match, mixed) && !learned_[part].is_taken.load();
    }

    // What a thread does next: it learns its own part, unless it is ahead of another and there is something to mix.
    // When it can do neither it learns another part, whose thread may be late or wait for a processor.
    Choice next(std::size_t number) const {
        const std::int64_t mixed = mixed_.blocks.load(), match = found_.blocks.load();
        if (mixed == count()) return {Task::end, 0};
        const std::int64_t own = learned_[number].blocks.load();
        if (match < count() && match < own + FOUND_AHEAD && !found_.is_taken.load()) return {Task::find, 0};
        std::int64_t least = count();
        for (std::size_t i = 0; i < parts_.size(); ++i) least = std::min(least, learned_[i].blocks.load());
        const bool can_mix = mixed < least && !mixed_.is_taken.load(), learns = can_learn(number, match, mixed);
        const bool is_behind = own == least && !are_equal(least);
        if (can_mix && !(is_behind && learns)) return {Task::mix, 0};
        if (learns) return {Task::learn, number};
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            if (can_learn(i, match, mixed)) return {Task::learn, i};
        }
        return {Task::none, 0};
    }

    bool are_equal(std::int64_t blocks) const {
        return std::all_of(learned_.begin(), learned_.end(),
                           [&](const Turn& part) { return part.blocks.load() == blocks; });
    }

    // Do the next block of what goes by turns, if nobody else is at it and it can be done.
    template <class Ready, class Work>
    void take(Turn& turn, const Ready& ready, const Work& work) {
        if (turn.is_taken.exchange(true)) return;
        const std::int64_t block = turn.blocks.load();
        if (ready(block)) work(block);
        turn.is_taken.store(false);
        event_.announce();
    }

    void work(std::size_t number) {
        for (;;) {
            const Choice choice = next(number);
            if (choice.task == Task::end) return;
            if (choice.task == Task::find) {
                take(found_, [&](std::int64_t b) { return b < count(); }, [&](std::int64_t b) { find_cells(b); });
            } else if (choice.task == Task::mix) {
                const auto is_learned = [&](std::int64_t b) {
                    return std::all_of(learned_.begin(), learned_.end(),
                                       [&](const Turn& part) { return part.blocks.load() > b; });
                };
                take(mixed_, is_learned, [&](std::int64_t b) { mix(b); });
            } else if (choice.task == Task::learn) {
                const auto is_ready = [&](std::int64_t b) {
                    return may_learn(b, found_.blocks.load(), mixed_.blocks.load());
                };
                take(learned_[choice.part], is_ready, [&](std::int64_t b) { learn(choice.part, b); });
            } else {
                event_.wait([&] { return next(number).task != Task::none; });
            }
        }
    }

    std::vector<std::unique_ptr<Part>>& parts_;
    void (*mix_)(const MixedRows&, const ScaleConstants&, const ScaleState&, const RowOutputs&, bool);
    const std::uint32_t* slots_;
    SlotMap& slot_map_;
    std::uint32_t* cells_;
    const ScaleConstants& constants_;
    const bool unconstrained_, receipt_;
    const ScaleState& state_;
    const RowOutputs& out_;
    const std::vector<RowBlock> blocks_;
    std::vector<ScaleConstants> own_constants_;
    MixedRows mixed_rows_;  // but for the block
    ColumnIndex index_;
    Totals totals_ = {0.0, 0.0, 0};
    Event event_;
    Turn found_, mixed_;
    std::vector<Turn> learned_;  // of each part
};

MixedRows ScaleParts::mixed_rows(const Rows& rows, bool wide) const {
    MixedRows mixed{};
    mixed.rows.rows = rows;
    mixed.rows.wide = wide;
    mixed.parts = static_cast<int>(parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        mixed.first[i] = parts_[i]->first;
        mixed.first[i + 1] = parts_[i]->first + parts_[i]->count;
        mixed.lanes[i] = parts_[i]->lanes;
    }
    const Part& first = *parts_[0];
    const std::size_t units =
        2 * static_cast<std::size_t>(first.lanes) * (wide_cells_ ? sizeof(double) : sizeof(float));
    mixed.units = static_cast<const unsigned char*>(first.cells.data()) + units;
    mixed.cell_bytes = first.layout.bytes;
    return mixed;
}

// Threads, one for each part but that of the caller.
bool ScaleParts::have_workers() {
    if (workers_ != nullptr && !workers_->are_here()) workers_.reset();
    if (workers_ != nullptr) return true;
    if (lacks_threads_ || parts_.size() < 2) return false;
    try {
        workers_.reset(new Workers(static_cast<int>(parts_.size()) - 1));
    } catch (const std::system_error&) {
        lacks_threads_ = true;
    }
    return workers_ != nullptr;
}

Totals ScaleParts::learn(const Rows& rows, bool wide, SlotMap& slot_map, std::uint32_t* cells,
                         const ScaleConstants& constants, bool unconstrained, const ScaleState& state,
                         const RowOutputs& out) {
    if (rows.count == 0) return {0.0, 0.0, 0};
    std::int64_t longest = 1;
    for (std::int64_t r = 0; r < rows.count; ++r) longest = std::max(longest, rows.indptr[r + 1] - rows.indptr[r]);
    for (const auto& part : parts_) {
        const std::size_t lanes = static_cast<std::size_t>(part->lanes) * sizeof(double);
        grow(part->plays, static_cast<std::size_t>(longest) * lanes);
        grow(part->numbers, static_cast<std::size_t>(KEPT_BLOCKS * MOST_BLOCK_ROWS) * 2 * lanes);
        copy_scales(state.intercept, part->first, part->sums.intercept, 0, part->count, 3);
        copy_scales(&state.mixture->sums[0][0], part->first, &part->sums.regret[0][0], 0, part->count, 3);
        copy_scales(&state.receipt.rounding[0][0], part->first, &part->sums.rounding[0][0], 0, part->count,
                    ROUNDING_SUMS);
        part->sums.intercept[3 * MOST_SCALES] = state.intercept[3 * MOST_SCALES];
        part->sums.labels = state.mixture->labels;
    }
    const std::int64_t entries = rows.indptr[rows.count] - rows.indptr[0];
    const bool has_cells =
        entries < static_cast<std::int64_t>(std::numeric_limits<std::uint32_t>::max() - slot_map.count());
    // Only then no cell can be missing when some rows are learned already.
    if (!has_cells) slot_map.claim(rows.indices, rows.indptr[rows.count], cells);
    Batch batch(*this, rows, wide, slot_map, cells, constants, unconstrained, state, out);
    const Totals totals = entries >= FEW_ENTRIES && have_workers() ? batch.run_on(*workers_) : batch.run();
    for (const auto& part : parts_) {
        copy_scales(part->sums.intercept, 0, state.intercept, part->first, part->count, 3);
        copy_scales(&part->sums.regret[0][0], 0, &state.mixture->sums[0][0], part->first, part->count, 3);
        copy_scales(&part->sums.rounding[0][0], 0, &state.receipt.rounding[0][0], part->first, part->count,
                    ROUNDING_SUMS);
    }
    state.intercept[3 * MOST_SCALES] = parts_[0]->sums.intercept[3 * MOST_SCALES];
    return totals;
}

void ScaleParts::score(const Rows& rows, bool wide, const ScaleConstants& constants, bool unconstrained,
                       const ScaleState& state, double* scores) const {
    ColumnIndex index;
    if (constants.dense) index_columns(*state.experts.dense, index);
    Totals none = {0.0, 0.0, 0};
    const std::int64_t together = std::min(rows.count, MOST_BLOCK_ROWS);
    std::vector<std::vector<double>> numbers;
    std::vector<PartSums> sums(parts_.size());
    MixedRows mixed = mixed_rows(rows, wide);
    mixed.rows.only_scores = true;
    mixed.rows.end = rows.indptr[rows.count];
    mixed.index = &index;
    mixed.totals = &none;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        const Part& part = *parts_[i];
        numbers.emplace_back(static_cast<std::size_t>(together * 2 * part.lanes));
        mixed.numbers[i] = numbers.back().data();
        copy_scales(state.intercept, part.first, sums[i].intercept, 0, part.count, 3);
        sums[i].intercept[3 * MOST_SCALES] = state.intercept[3 * MOST_SCALES];
        sums[i].labels = state.mixture->labels;
    }
    RowOutputs out{};
    out.scores = scores;
    for (std::int64_t first = 0; first < rows.count; first += together) {
        mixed.rows.first_row = first;
        mixed.rows.last_row = std::min(first + together, rows.count);
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            const Part& part = *parts_[i];
            const PartState own = {part.cells.data(), nullptr, &sums[i], nullptr};
            part.set->learn[unconstrained](mixed.rows, constants_of(constants, part.first, part.count), own,
                                           numbers[i].data());
        }
        kernels_->mix[wide_cells_](mixed, constants, state, out, receipt_);
    }
}

}  // namespace ftprl
