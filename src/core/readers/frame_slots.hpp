// Blocks of a data frame's rows as slots: where all features of the rows are looked up in blocks, each by itself, their
// slots are loaded column by column, without keeping their hashes. Names that may be new are listed meanwhile; they are
// recorded when it is known which rows of the block were read.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "readers/arrow.hpp"
#include "readers/frame_cells.hpp"
#include "readers/utf8.hpp"

namespace ftprl {

class FrameSlots : public FrameCells {
protected:
    using FrameCells::FrameCells;

    static constexpr std::uint32_t UNMET = 0xffffffff, EMPTY = 0xfffffffe;  // of a dictionary's entry

    // Chooses how the rows of `columns_` are read: has_slots_ is false where some cells have to be read one by one.
    void arrange_slots() {
        block_columns_.clear();
        beside_.clear();
        has_slots_ = rows.slots().dim() < EMPTY;
        has_numbers_ = false;
        for (std::size_t column_index = 0; column_index < columns_.size(); ++column_index) {
            const FrameColumn& column = columns_[column_index];
            const Column::Kind kind = column.reader.kind;
            if (column.is_loaded()) {
                block_columns_.push_back(column_index);
                has_numbers_ = has_numbers_ || kind == Column::Kind::numeric;
            } else if (!column.cells.is_list() && (kind == Column::Kind::label || kind == Column::Kind::weight)) {
                beside_.push_back(column_index);
            } else if (kind != Column::Kind::ignore) {
                has_slots_ = false;
            }
        }
        if (!has_slots_) return;
        slot_block_ = has_numbers_ ? BLOCK : CODED_BLOCK;
        stride_ = slot_block_ + 16;
        block_slots_.resize(block_columns_.size() * stride_);
        block_present_.assign(block_columns_.size() * stride_, std::uint8_t{1});
        never_repeats_ = are_distinct();
        left_from_ = rows.slots().dim() <= NEW ? NEW : EMPTY;
        for (FrameColumn& column : columns_) {
            if (column.is_coded()) hash_all(column);
        }
    }

    // The slots of a block of rows, and the names that may be new; false when there is a cell that is no feature.
    bool load_slots(std::size_t from, std::size_t count) {
        if (std::exchange(has_gaps_, false)) std::fill(block_present_.begin(), block_present_.end(), std::uint8_t{1});
        met_.clear();
        records_ = rows.log.is_recording();
        bool is_good = true;
        for (std::size_t b = 0; is_good && b < block_columns_.size(); ++b) {
            std::uint32_t* const out = block_slots_.data() + b * stride_;
            std::uint8_t* const present = block_present_.data() + b * stride_;
            const std::size_t column_index = block_columns_[b];
            is_good = columns_[column_index].is_coded() ? load_coded(column_index, from, count, out, present)
                                                        : load_others(column_index, from, count, out, present);
        }
        if (!is_good) {
            has_gaps_ = true;  // cells that are no features left some
            for (const FirstMet& one : met_) forget_met(one);
        }
        return is_good;
    }

    // Records the listed names of the first `count` rows of the block, in the order of rows and of columns within a
    // row, as from a text file. `first` is the number of the first row in the batch.
    void record_names(std::size_t from, std::size_t count, std::size_t first) {
        if (met_.empty()) return;
        row_begins_.assign(slot_block_ + 1, 0);  // names were listed by columns: they are put in order by counting
        for (const FirstMet& one : met_) ++row_begins_[one.row + 1];
        for (std::size_t i = 1; i < row_begins_.size(); ++i) row_begins_[i] += row_begins_[i - 1];
        by_row_.resize(met_.size());
        for (std::size_t k = 0; k < met_.size(); ++k) {
            by_row_[row_begins_[met_[k].row]++] = static_cast<std::uint32_t>(k);
        }
        rows.log.begin_row();
        for (std::size_t k = 0; k < by_row_.size(); ++k) {
            if (k + NEXT < by_row_.size()) fetch(met_[by_row_[k + NEXT]].feature);
            const FirstMet& one = met_[by_row_[k]];
            if (one.row >= count) {
                forget_met(one);
                continue;
            }
            row_ = from + one.row;  // where a text is looked for that does not stay
            rows.log.record_met(one.feature, first + one.row, one.entry == NO_ENTRY);
        }
        rows.log.end_met();
    }

    // Whether names of the block wait to be recorded.
    bool has_names() const noexcept { return !met_.empty(); }

    std::vector<FrameColumn> columns_;
    bool has_slots_ = false;
    bool has_numbers_ = false;        // a column of values other than 1
    bool has_gaps_ = false;           // in the block
    bool never_repeats_ = false;      // no row has a slot twice
    std::size_t slot_block_ = BLOCK;  // rows whose slots are loaded at once
    std::size_t stride_ = BLOCK;  // from one column to the next: were it a power of two, a row would not fit the cache
    std::vector<std::size_t> block_columns_;  // of columns that are loaded
    std::vector<std::size_t> beside_;         // of labels and weights
    std::vector<std::uint32_t> block_slots_;
    std::vector<std::uint8_t> block_present_;  // 1, but for the gaps of the block
    std::size_t row_ = 0;                      // the present one, whose texts are looked for

private:
    // Rows of a block, if all values are 1: more of them, so that the slots of a dictionary, which all together may be
    // far too many for it, are in the cache when they are looked up.
    static constexpr std::size_t CODED_BLOCK = 4 * BLOCK;
    static constexpr std::uint32_t NEW = 0x80000000;  // beside the slot of an entry: no row had it so far

    // A cell whose name may be new: the first with an entry of a dictionary, or any that is not among the recent ones.
    struct FirstMet {
        Feature feature;
        std::uint64_t entry;  // of the dictionary, or NO_ENTRY
        std::uint32_t row;    // of the block
        std::uint32_t column_index;
    };
    static constexpr std::uint64_t NO_ENTRY = ~std::uint64_t{0};
    static constexpr std::size_t NEXT = 12;  // names

    // Whether no two columns can have a feature in the same slot, since each has one slot, and another where a cell is
    // missing.
    bool are_distinct() {
        std::vector<std::uint32_t> slots;
        for (const std::size_t column_index : block_columns_) {
            const ColumnReader& reader = columns_[column_index].reader;
            if (reader.kind != Column::Kind::numeric) return false;
            slots.push_back(rows.slots()(reader.hash));
            if (marks_missing()) slots.push_back(rows.slots()(reader.missing_hash));
        }
        std::sort(slots.begin(), slots.end());
        return std::adjacent_find(slots.begin(), slots.end()) == slots.end();
    }

    // The slots of all entries of a dictionary, one behind the other, but for those that are empty or no text. Where
    // names are recorded they are marked as new, and their hashes are kept until a row has them.
    void hash_all(FrameColumn& column) {
        const ArrowColumn& dictionary = *column.cells.dictionary();
        std::size_t number = column.slots.size();
        if (dictionary.type() != ArrowColumn::Type::text || dictionary.has_missing() || column.has_high_bytes) return;
        const bool records = rows.log.is_recording();
        if (records && left_from_ != NEW) return;  // there is no bit for it
        column.slots.resize(dictionary.size(), UNMET);
        if (records) column.entries.resize(dictionary.size());
        const auto* const ends = dictionary.numbers<std::int32_t>(0);
        const Byte* const bytes = dictionary.bytes();
        const Slots slots = rows.slots();
        const Prefix with_value = column.reader.with_value;
        const std::uint32_t mark = records ? NEW : 0;
        for (; number < column.slots.size(); ++number) {
            const auto size = static_cast<std::size_t>(ends[number + 1] - ends[number]);
            if (size == 0) continue;
            const std::uint64_t hash = with_value.quick(bytes + ends[number], size, dictionary.limit());
            column.slots[number] = slots(hash) | mark;
            if (records) column.entries[number] = hash;
        }
    }

    bool load_others(std::size_t column_index, std::size_t from, std::size_t count, std::uint32_t* out,
                     std::uint8_t* present) {
        FrameColumn& column = columns_[column_index];
        const bool may_be_direct = column.reader.kind == Column::Kind::categorical && !column.cells.has_missing();
        bool is_good = true;
        for (std::size_t at = 0; is_good && at < count; at += BLOCK) {
            const std::size_t part = std::min(BLOCK, count - at);
            if (may_be_direct && direct_slots(column, from + at, part, out + at)) {
                if (records_) list_names(column_index, from, at, part);
            } else {
                is_good = load_part(column_index, from, at, part, out + at, present + at);
            }
        }
        return is_good;
    }

    // The hashes and slots of texts of which none is missing, in one go; false when one is empty or is to be checked.
    bool direct_slots(FrameColumn& column, std::size_t from, std::size_t count, std::uint32_t* out) const noexcept {
        if (column.cells.is_view()) return view_slots(column, from, count, out);
        return column.cells.is_large_text() && text_slots(column, from, count, out);
    }

    // The same for views; false, too, when one has its text elsewhere.
    bool view_slots(FrameColumn& column, std::size_t from, std::size_t count, std::uint32_t* out) const noexcept {
        const Prefix with_value = column.reader.with_value;
        const Slots slots = rows.slots();
        const Byte* view = column.cells.view_at(from);
        std::uint64_t bytes = 0;
        unsigned odd = 0;
        for (std::size_t i = 0; i < count; ++i, view += 16) {
            prefetch_next(view);
            std::uint64_t size = detail::load4(view);
            odd |= size - 1 >= ArrowColumn::LONGEST_INSIDE ? 1u : 0u;
            if (size - 1 >= ArrowColumn::LONGEST_INSIDE) size = 1;
            bytes |= detail::load8(view + 4) | detail::load4(view + 12);  // zeros behind the text
            const std::uint64_t hash =
                size <= 8 ? with_value.inside(view + 4, size) : with_value(view + 4, size, view + 16);
            column.hashes[i] = hash;
            out[i] = slots(hash);
            if (records_) rows.log.recent().fetch(hash);
        }
        if (odd != 0 || (column.cells.is_utf8() && (bytes & 0x8080808080808080u) != 0)) return false;
        if (records_) std::fill_n(column.states.begin(), count, State::present);
        return true;
    }

    bool text_slots(FrameColumn& column, std::size_t from, std::size_t count, std::uint32_t* out) const noexcept {
        const ArrowColumn& cells = column.cells;
        if (cells.may_break_utf8(from, count)) return false;
        const auto* const ends = cells.numbers<std::int64_t>(from);
        const Byte* const bytes = cells.bytes();
        const Byte* const limit = cells.limit();
        const Prefix with_value = column.reader.with_value;
        const Slots slots = rows.slots();
        for (std::size_t i = 0; i < count; ++i) {
            const auto size = static_cast<std::size_t>(ends[i + 1] - ends[i]);
            if (size == 0) return false;
            const std::uint64_t hash = with_value.quick(bytes + ends[i], size, limit);
            column.hashes[i] = hash;
            out[i] = slots(hash);
            if (records_) rows.log.recent().fetch(hash);
        }
        if (records_) std::fill_n(column.states.begin(), count, State::present);
        return true;
    }

    // The slots of at most BLOCK rows, from row `at` of the block that begins with `from`.
    bool load_part(std::size_t column_index, std::size_t from, std::size_t at, std::size_t count, std::uint32_t* out,
                   std::uint8_t* present) {
        FrameColumn& column = columns_[column_index];
        load(column, from + at, count);
        const Slots slots = rows.slots();
        unsigned states = 0;
        if (column.reader.kind == Column::Kind::numeric) {  // in most blocks all cells are in the same slot
            for (std::size_t i = 0; i < count; ++i) states |= 1u << static_cast<unsigned>(column.states[i]);
            if (states == 1u << static_cast<unsigned>(State::present)) {
                std::fill(out, out + count, slots(column.reader.hash));
                if (records_) list_names(column_index, from, at, 1);
                return true;
            }
        }
        for (std::size_t i = 0; i < count; ++i) {
            out[i] = slots(column.hashes[i]);
            present[i] = static_cast<std::uint8_t>(column.states[i]) & 1;
            states |= 1u << static_cast<unsigned>(column.states[i]);
        }
        if (records_) list_names(column_index, from, at, count);
        has_gaps_ = has_gaps_ || (states & 1u << static_cast<unsigned>(State::absent)) != 0;
        return (states & 1u << static_cast<unsigned>(State::bad)) == 0;
    }

    // Lists those names of `count` cells that are not recent: cells of the part of a block that begins with row `at`.
    void list_names(std::size_t column_index, std::size_t from, std::size_t at, std::size_t count) {
        const FrameColumn& column = columns_[column_index];
        std::array<std::uint32_t, BLOCK> others;
        const std::size_t size = rows.log.find_others(column.hashes.data(), count, others.data());
        const bool is_category = column.reader.kind == Column::Kind::categorical;
        for (std::size_t k = 0; k < size; ++k) {
            const std::size_t i = others[k];
            if ((static_cast<unsigned>(column.states[i]) & 1) == 0) continue;
            Feature feature = feature_of(column, i);
            if (feature.text == TEXT_LATER && !is_category) {
                feature = fixed_feature(column, feature);  // one of a few, which stay
            } else if (feature.text == TEXT_LATER && column.cells.is_text()) {
                const Field field = column.cells.field(from + at + i);
                feature.text = field.data;
                feature.size = static_cast<std::uint32_t>(field.end - field.data);
            }
            add_met(feature, NO_ENTRY, at + i, column_index);
        }
    }

    void add_met(const Feature& feature, std::uint64_t entry, std::size_t row, std::size_t column_index) {
        met_.push_back({feature, entry, static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column_index)});
    }

    bool load_coded(std::size_t column_index, std::size_t from, std::size_t count, std::uint32_t* out,
                    std::uint8_t* present) {
        FrameColumn& column = columns_[column_index];
        const ArrowColumn& cells = column.cells;
        column.slots.resize(cells.dictionary()->size(), UNMET);
        const std::uint32_t* const known = column.slots.data();
        const std::uint64_t size = column.slots.size();
        std::uint32_t bits = 0;  // of all slots: if there is one from `left_from_` on, they are as large
        cells.by_type([&](auto* type) {
            const auto* const numbers = cells.template numbers<std::decay_t<decltype(*type)>>(from);
            for (std::size_t i = 0; i < count; ++i) {
                const auto number = static_cast<std::uint64_t>(numbers[i]);
                const std::uint32_t slot = number < size ? known[number] : UNMET;
                out[i] = slot;
                bits |= slot;
            }
        });
        const bool has_missing = cells.has_missing();
        if (bits < left_from_ && !has_missing) return true;
        bool lists_missing = records_ && rows.log.wants_text(column.reader.missing_hash);  // the first of them
        constexpr std::size_t STEP = 16;  // cells that are tested at once
        for (std::size_t first = 0; first < count; first += STEP) {
            const std::size_t end = std::min(first + STEP, count);
            bits = has_missing ? UNMET : 0;
            for (std::size_t i = first; i < end; ++i) bits |= out[i];
            if (bits < left_from_) continue;
            for (std::size_t i = first; i < end; ++i) {
                const bool is_missing = has_missing && cells.is_missing(from + i);
                if (out[i] < left_from_ && !is_missing) continue;
                const std::uint64_t number = is_missing ? NO_ENTRY : cells.entry(from + i);
                if (!is_missing && (number >= size || !meet(column_index, number, i))) return false;
                if (!is_missing && column.slots[number] != EMPTY) {
                    out[i] = column.slots[number];
                } else if (marks_missing()) {
                    out[i] = rows.slots()(column.reader.missing_hash);
                    if (std::exchange(lists_missing, false)) {
                        add_met(missing_of(column.reader), NO_ENTRY, i, column_index);
                    }
                } else {
                    present[i] = 0;
                    has_gaps_ = true;
                }
            }
        }
        return true;
    }

    // The slot of an entry is known from now on, and its name is listed if it is met for the first time; false when it
    // is no text.
    bool meet(std::size_t column_index, std::uint64_t number, std::size_t row) {
        FrameColumn& column = columns_[column_index];
        if (column.slots[number] < left_from_ || column.slots[number] == EMPTY) return true;
        const ArrowColumn& dictionary = *column.cells.dictionary();
        Feature feature = column.form;
        if (column.slots[number] != UNMET) {  // it is new, and its hash known
            column.slots[number] &= ~NEW;
            const auto* const ends = dictionary.numbers<std::int32_t>(number);
            feature.hash = column.entries[number];
            // Entries are mostly in the order in which rows have them first: the next ones are there when they are met.
            prefetch(ends + 24);
            prefetch(column.entries.data() + number + 12);
            feature.text = dictionary.bytes() + ends[0];
            feature.size = static_cast<std::uint32_t>(ends[1] - ends[0]);
        } else {
            char scratch[LONGEST_VALUE];
            const Field field = dictionary.written(number, scratch);
            const auto size = static_cast<std::size_t>(field.end - field.data);
            if (column.has_high_bytes && !is_utf8(field.data, field.end)) return false;
            column.slots[number] = EMPTY;
            if (size == 0) return true;
            feature.hash = column.reader.with_value.quick(field.data, size, field.limit);
            column.slots[number] = rows.slots()(feature.hash);
            if (dictionary.is_text()) {
                feature.text = field.data;
                feature.size = static_cast<std::uint32_t>(size);
            }
        }
        if (records_) add_met(feature, number, row, column_index);
        return true;
    }

    // An entry counts as not met: its row is not read, or not now.
    void forget_met(const FirstMet& one) {
        if (one.entry != NO_ENTRY) columns_[one.column_index].slots[one.entry] = UNMET;
    }

    void fetch(const Feature& feature) const noexcept {
        rows.log.fetch_known(feature.hash);
        prefetch(feature.text);
    }

    std::uint32_t left_from_ = EMPTY;        // entries with such slots are not met, or empty
    bool records_ = false;                   // whether names of the block are listed
    std::vector<FirstMet> met_;              // names of the block that may be new, column by column
    std::vector<std::uint32_t> row_begins_;  // where the names of each row of the block begin in by_row_
    std::vector<std::uint32_t> by_row_;      // numbers of met_, row by row
};

}  // namespace ftprl
