// Data frames: the columns of Arrow record batches, read in place, with the features of a CSV file of the same rows.
//
// The cells of a block of rows are looked up column by column (see frame_cells.hpp), where possible straight to slots
// (see frame_slots.hpp); then the rows are put together.
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
#include "readers/frame_slots.hpp"
#include "readers/utf8.hpp"

namespace ftprl {

class FrameParser : public FrameSlots, private FeatureTexts {
public:
    FrameParser(const Options& options, Labels labels)
        : FrameSlots(options, std::move(labels), DelimiterIndex(std::array<Byte, 2>{Byte{'\n'}, Byte{'\n'}})) {
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

    // A cell that takes no part in a block: the label, the weight, a text, a date, a list.
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
            case Column::Kind::text:
                if (column.cells.is_utf8() && !is_utf8(field.data, field.end)) return refuse_bytes(column.reader);
                text(column.reader, field, capacity_);
                return true;
            default:
                return feature(column.reader, field, capacity_);
        }
    }

private:
    // ---- texts of features, looked for when a name is recorded ----

    // The feature of a cell of the present row: `size` is the number of its column.
    Feature with_text(const Feature& feature) override {
        const FrameColumn& column = columns_[feature.size];
        if (column.reader.kind == Column::Kind::categorical) return written_text(column, feature);
        return fixed_feature(column, feature);
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

    // A category of the present row.
    Feature written_text(const FrameColumn& column, const Feature& feature) {
        char scratch[LONGEST_VALUE];
        const Field field = column.cells.spelled(row_, scratch);
        const auto size = static_cast<std::size_t>(field.end - field.data);
        return Feature{feature.hash, lasting(field.data, size), static_cast<std::uint32_t>(size), feature.group};
    }

    // ---- columns ----

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

    // ---- rows, cell by cell ----

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

    // ---- rows of a block of slots ----

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
            if (rows.count() == before && has_names()) break;
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
            if (has_names()) return from + 1;
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
    // The label and the weight of a row; false when the row is refused.
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

    const std::int64_t* whole_labels_ = nullptr;  // of all rows, where nothing else stands beside the features
    std::size_t capacity_ = 0;                    // features of a row, words of text aside
};

}  // namespace ftprl
