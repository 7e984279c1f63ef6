// Data frames: the columns of Arrow record batches, read in place, with the features of a CSV file of the same rows.
//
// The cells of a block of rows are looked up column by column (see frame_cells.hpp); then the rows are put together.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "readers/arrow.hpp"
#include "readers/cells.hpp"
#include "readers/frame_cells.hpp"
#include "readers/utf8.hpp"

namespace ftprl {

class FrameParser : public FrameCells, private FeatureTexts {
public:
    FrameParser(const Options& options, Labels labels)
        : FrameCells(options, std::move(labels), DelimiterIndex(std::array<Byte, 2>{Byte{'\n'}, Byte{'\n'}})) {
        rows.log.set_texts(*this);
    }

    // The columns of the rows to come.
    void set_columns(std::vector<std::pair<Column, ArrowColumn>> columns) {
        capacity_ = 0;
        if (!replace_cells(columns)) {
            columns_.clear();
            columns_.reserve(columns.size());
            for (auto& [column, cells] : columns) {
                FrameColumn& added =
                    columns_.emplace_back(column, reader_of(column), elements_of(column.name), std::move(cells));
                added.hashes.fill(added.reader.hash);  // of a numeric column; others have their own, and the value 1
                added.values.fill(1.0);
                added.form = form_of(added.reader, columns_.size() - 1);
                look_at_dictionary(added);
            }
        }
        for (const FrameColumn& column : columns_) capacity_ += most_features(column.column.kind);
        arrange_slots();
    }

    // Reads rows [from, to) and returns where it stopped: at `to`, behind the row that filled the batch, or behind a
    // bad row (see `problem`). Row r is "line" r + 1.
    std::size_t read(std::size_t from, std::size_t to) {
        const bool has_slots = has_slots_ && !rows.log.has_interactions() && !rows.log.has_grams();
        while (from < to && !full() && problem.line == 0) {
            const std::size_t most = std::min(slot_block_, to - from);
            if (has_slots && load_slots(from, most)) {
                from = rows_of_slots(from, most);
                continue;
            }
            const std::size_t count = std::min(BLOCK, to - from);
            for (FrameColumn& column : columns_) load(column, from, count);
            for (std::size_t i = 0; i < count && !full() && problem.line == 0; ++i, ++from) {
                line = static_cast<std::int64_t>(from) + 1;
                row_of(from, i);
            }
        }
        rows.log.settle();  // names that were recorded have their texts in the columns
        return from;
    }

protected:
    // Text is not fed: there is none.
    const Byte* row(const Byte* /*p*/, const Byte* /*end*/, bool /*last*/) override { return nullptr; }

    std::vector<FrameColumn>& columns() noexcept { return columns_; }

    // A cell that takes no part in a block: the label, the weight, the delay, a text, a date, a list.
    bool read_cell(FrameColumn& column, std::size_t at, double& y, double& weight) {
        if (column.reader.kind == Column::Kind::ignore) return true;
        if (column.cells.is_list()) return list(column.reader, column.elements, column.cells, at, capacity_);
        if (column.cells.is_temporal()) return read_date(column, at);
        char scratch[LONGEST_VALUE];
        const Field field = column.cells.written(at, scratch);
        switch (column.reader.kind) {
            case Column::Kind::label:
                return label(column.reader, field, y);
            case Column::Kind::weight:
                return importance(column.reader, field, weight);
            case Column::Kind::delay:
                return lateness(column.reader, field);
            case Column::Kind::text:
                if (column.cells.is_utf8() && !is_utf8(field.data, field.end)) return refuse_bytes(column.reader);
                text(column.reader, field, capacity_);
                return true;
            default:
                return feature(column.reader, field, capacity_);
        }
    }

private:
    // The features of a column, without the hash. Most names were met before, so the text of one is looked for only
    // when it is recorded.
    static Feature form_of(const ColumnReader& column, std::size_t column_index) noexcept {
        if (column.kind == Column::Kind::numeric) return Feature{0, nullptr, 0, column.group};
        const bool is_fixed = column.kind == Column::Kind::boolean || column.kind == Column::Kind::bucket;
        return Feature{0, TEXT_LATER, static_cast<std::uint32_t>(column_index),
                       is_fixed ? column.fixed_group : column.group};
    }

    // The feature of a cell of the present row: `size` is the number of its column.
    Feature with_text(const Feature& feature) override {
        const FrameColumn& column = columns_[feature.size];
        if (column.reader.kind == Column::Kind::categorical) return written_text(column, feature);
        std::size_t number = 0;
        while ((*column.reader.fixed)[number].hash != feature.hash) ++number;
        return fixed_of(column.reader, number);
    }

    bool is_new(const Feature& feature) override {
        FrameColumn& column = columns_[feature.size];
        if (column.cells.dictionary() == nullptr || column.reader.kind != Column::Kind::categorical) return true;
        column.recorded.resize(column.cells.dictionary()->size());
        const std::size_t number = column.cells.entry(row_);
        const bool is_new = !column.recorded[number];
        column.recorded[number] = true;
        return is_new;
    }

    void forget() override {
        for (FrameColumn& column : columns_) {
            column.recorded.clear();
            std::fill(column.slots.begin(), column.slots.end(), UNMET);
        }
    }

    // Puts other cells into the columns that are there, if they are the same columns. What is known of a dictionary
    // stays known when the next one is the same, perhaps with more entries.
    bool replace_cells(std::vector<std::pair<Column, ArrowColumn>>& columns) {
        bool are_same = columns.size() == columns_.size();
        for (std::size_t i = 0; are_same && i < columns.size(); ++i) {
            const Column& one = columns[i].first;
            are_same = one.kind == columns_[i].column.kind && one.name == columns_[i].column.name;
        }
        for (std::size_t i = 0; are_same && i < columns.size(); ++i) {
            FrameColumn& column = columns_[i];
            const ArrowColumn* const before = column.cells.dictionary();
            const ArrowColumn* const dictionary = columns[i].second.dictionary();
            const bool goes_on = before != nullptr && dictionary != nullptr && dictionary->begins_with(*before);
            const bool is_same = goes_on && dictionary->size() == before->size();
            if (!goes_on) {
                if (before != nullptr) rows.log.know_names();  // the next dictionary may have the same entries
                column.entries.clear();
                column.slots.clear();
                column.recorded.clear();
            }
            column.cells = std::move(columns[i].second);
            if (!is_same) look_at_dictionary(column);
        }
        return are_same;
    }

    void look_at_dictionary(FrameColumn& column) {
        const ArrowColumn* const dictionary = column.cells.dictionary();
        column.has_high_bytes = dictionary != nullptr && dictionary->may_break_utf8(0, dictionary->size());
    }

    void row_of(std::size_t at, std::size_t i) {
        double y = MISSING, weight = 1.0;
        const std::size_t count = columns_.size();
        row_ = at;
        rows.begin(capacity_);
        for (std::size_t c = 0; c < count;) {
            if (!columns_[c].is_loaded()) {
                if (!read_cell(columns_[c], at, y, weight)) return;
                ++c;
                continue;
            }
            std::size_t size = rows.size();
            const Slots slots = rows.slots();
            std::uint32_t* const row_slots = rows.row_slots();
            double* const values = rows.row_values();
            Feature* const features = rows.log.is_on() ? rows.log.features() : nullptr;
            for (; c < count && columns_[c].is_loaded(); ++c) {
                const FrameColumn& column = columns_[c];
                row_slots[size] = slots(column.hashes[i]);
                values[size] = column.values[i];
                if (features != nullptr) features[size] = feature_of(column, i);
                size += static_cast<std::size_t>(column.states[i]) & 1;
                if (column.states[i] == State::bad) return refuse_cell(column, at);
            }
            rows.set_size(size);
        }
        finish(y, weight);
    }

    static Feature feature_of(const FrameColumn& column, std::size_t i) {
        if (column.states[i] == State::missing) return missing_of(column.reader);
        Feature feature = column.form;
        feature.hash = column.hashes[i];
        return feature;
    }

    // A category of the present row.
    Feature written_text(const FrameColumn& column, const Feature& feature) {
        char scratch[LONGEST_VALUE];
        const Field field = column.cells.spelled(row_, scratch);
        const auto size = static_cast<std::size_t>(field.end - field.data);
        return Feature{feature.hash, lasting(field.data, size), static_cast<std::uint32_t>(size), feature.group};
    }

    void refuse_cell(const FrameColumn& column, std::size_t at) {
        char scratch[LONGEST_VALUE];
        if (column.reader.kind == Column::Kind::categorical) {
            const bool is_text = column.cells.dictionary() == nullptr || has_entry(column, at);
            if (is_text)
                refuse_bytes(column.reader);
            else
                refuse("expected an entry of the dictionary, got none in column " + column.reader.name);
            return;
        }
        misfit(column.reader, column.cells.written(at, scratch));
    }

    // A cell of a date or a time of Arrow's own.
    bool read_date(const FrameColumn& column, std::size_t at) {
        if (column.cells.is_missing(at)) {
            missing(column.reader);
            return true;
        }
        const std::int64_t seconds = column.cells.seconds(at);
        if (seconds < FIRST_SECOND || seconds > LAST_SECOND) {
            refuse("expected a date of the years 1 to 9999, got one beyond it in column " + column.reader.name);
            return false;
        }
        add_date(column.reader, seconds);
        return true;
    }

    // ---- rows whose features are all looked up in blocks, each by itself: as slots, without their hashes ----

    // Rows of a block, if all values are 1: more of them, so that the slots of a dictionary, which all together may be
    // far too many for it, are in the cache when they are looked up.
    static constexpr std::size_t CODED_BLOCK = 4 * BLOCK;
    static constexpr std::uint32_t UNMET = 0xffffffff, EMPTY = 0xfffffffe;  // of a dictionary's entry
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
            } else if (!column.cells.is_list() &&
                       (kind == Column::Kind::label || kind == Column::Kind::weight || kind == Column::Kind::delay)) {
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
                feature = with_text(feature);  // one of a few, which stay
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

    void fetch(const Feature& feature) const noexcept {
        rows.log.fetch_known(feature.hash);
        prefetch(feature.text);
    }

    // The rows of a block whose slots are loaded; returns where it stopped.
    std::size_t rows_of_slots(std::size_t from, std::size_t count) {
        const std::size_t first = rows.count();
        whole_labels_ = only_labels();
        const bool are_ones = !has_numbers_ && !has_gaps_ && rows.takes_ones();
        const std::size_t next = are_ones ? rows_of_ones(from, count) : rows_of_any(from, count);
        record_names(from, rows.count() - first, first);  // a row that was left out ends the block
        return next;
    }

    // A row that is left out ends the block if names were listed: another row may be the first to have them.
    std::size_t rows_of_any(std::size_t from, std::size_t count) {
        const std::size_t last = from + count;
        for (std::size_t i = 0; from < last && !full() && problem.line == 0; ++i) {
            line = static_cast<std::int64_t>(from) + 1;
            const std::size_t before = rows.count();
            row_of_slots(from++, i);
            if (rows.count() == before && !met_.empty()) break;
        }
        return from;
    }

    // The same for rows of features with the value 1, as many in each.
    std::size_t rows_of_ones(std::size_t from, std::size_t count) {
        const std::size_t features = block_columns_.size(), stride = stride_;
        const std::uint32_t* slots = block_slots_.data();
        const std::size_t last = from + count;
        rows.reserve_ones(count, features);
        for (; from < last && !full() && problem.line == 0; ++from, ++slots) {
            line = row_line = static_cast<std::int64_t>(from) + 1;
            double y = MISSING, weight = 1.0;
            const bool is_read = read_beside(from, y, weight);
            if (is_read && is_within(y, weight)) {
                rows.add_ones(slots, stride, features, y, weight);
                continue;
            }
            if (is_read) {
                row_of_slots(from, static_cast<std::size_t>(slots - block_slots_.data()));  // refuses it
                rows.reserve_ones(last - from, features);
            }
            if (!met_.empty()) return from + 1;
        }
        return from;
    }

    // The labels of all rows, where nothing else stands beside the features and they are whole numbers; else null.
    const std::int64_t* only_labels() const noexcept {
        if (beside_.size() != 1) return nullptr;
        const FrameColumn& column = columns_[beside_.front()];
        const bool is_plain = column.reader.kind == Column::Kind::label && !column.cells.is_temporal() &&
                              column.cells.type() == ArrowColumn::Type::i64 && !column.cells.has_missing() &&
                              column.cells.dictionary() == nullptr;
        return is_plain ? column.cells.numbers<std::int64_t>(0) : nullptr;
    }
    // What most labels become, without a text of them; false for any other.
    bool usual_label(std::int64_t number, double& y) const noexcept {
        if (static_cast<std::uint64_t>(number) > 9) return false;
        const auto digit = static_cast<Byte>('0' + number);
        return labels_.usual(&digit, &digit + 1, y);
    }
    // The label, the weight and the delay of a row; false when the row is refused.
    bool read_beside(std::size_t at, double& y, double& weight) {
        if (whole_labels_ != nullptr && usual_label(whole_labels_[at], y)) return true;
        for (const std::size_t column_index : beside_) {
            if (!read_cell(columns_[column_index], at, y, weight)) return false;
        }
        return true;
    }

    void row_of_slots(std::size_t at, std::size_t i) {
        double y = MISSING, weight = 1.0;
        row_ = at;
        rows.begin(capacity_);
        if (!read_beside(at, y, weight)) return;
        const std::size_t count = block_columns_.size();
        const std::uint32_t* const slots = block_slots_.data() + i;
        const std::uint8_t* const present = block_present_.data() + i;
        std::uint32_t* const out = rows.row_slots();
        std::size_t size = 0;
        if (has_numbers_) {
            double* const values = rows.row_values();
            for (std::size_t b = 0; b < count; ++b) {
                out[size] = slots[b * stride_];
                values[size] = columns_[block_columns_[b]].values[i];
                size += present[b * stride_];
            }
        } else {
            rows.set_unit_values();
            if (has_gaps_) {
                for (std::size_t b = 0; b < count; ++b) {
                    out[size] = slots[b * stride_];
                    size += present[b * stride_];
                }
            } else {
                for (; size < count; ++size) out[size] = slots[size * stride_];
            }
        }
        rows.set_size(size);
        rows.set_named(0);  // names of a block are recorded together
        if (never_repeats_) rows.set_distinct();
        finish(y, weight);
    }

    std::vector<FrameColumn> columns_;
    bool has_slots_ = false;
    bool has_numbers_ = false;        // a column of values other than 1
    bool has_gaps_ = false;           // in the block
    bool never_repeats_ = false;      // no row has a slot twice
    std::size_t slot_block_ = BLOCK;  // rows whose slots are loaded at once
    std::size_t stride_ = BLOCK;  // from one column to the next: were it a power of two, a row would not fit the cache
    std::vector<std::size_t> block_columns_;  // of columns that are loaded
    std::vector<std::size_t> beside_;         // of labels, weights and delays
    std::vector<std::uint32_t> block_slots_;
    std::vector<std::uint8_t> block_present_;     // 1, but for the gaps of the block
    std::uint32_t left_from_ = EMPTY;             // entries with such slots are not met, or empty
    bool records_ = false;                        // whether names of the block are listed
    std::vector<FirstMet> met_;                   // names of the block that may be new, column by column
    std::vector<std::uint32_t> row_begins_;       // where the names of each row of the block begin in by_row_
    std::vector<std::uint32_t> by_row_;           // numbers of met_, row by row
    const std::int64_t* whole_labels_ = nullptr;  // of all rows, where nothing else stands beside the features
    std::size_t row_ = 0;                         // the present one
    std::size_t capacity_ = 0;                    // features of a row, words of text aside
};

}  // namespace ftprl
