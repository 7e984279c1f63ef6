// Data frames: the columns of Arrow record batches, read in place, with the features of a CSV file of the same rows.
// The cells of a block of rows are looked up column by column (see frame_cells.hpp); then the rows are assembled.
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

    // Sets the columns of the next rows.
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
    }

    // Reads rows [from, to) and returns where it stopped: at `to`, after the row that filled the batch, or after a bad
    // row (see `problem`). Row r is "line" r + 1.
    std::size_t read(std::size_t from, std::size_t to) {
        while (from < to && !full() && problem.line == 0) {
            const std::size_t count = std::min(BLOCK, to - from);
            for (FrameColumn& column : columns_) load(column, from, count);
            for (std::size_t i = 0; i < count && !full() && problem.line == 0; ++i, ++from) {
                line = static_cast<std::int64_t>(from) + 1;
                row_of(from, i);
            }
        }
        return from;
    }

protected:
    // Not used: a frame has no text to feed.
    const Byte* row(const Byte* /*p*/, const Byte* /*end*/, bool /*last*/) override { return nullptr; }

    std::vector<FrameColumn> columns_;

    // Reads a cell that is not looked up in blocks: the label, the weight, a text, a date, a list.
    bool read_cell(FrameColumn& column, std::size_t at, double& y, double& weight) {
        if (column.reader.kind == Column::Kind::ignore) return true;
        if (column.cells.is_list()) return list(column.reader, column.elements, column.cells, at, capacity_);
        if (column.cells.is_temporal() && has_moments(column.reader)) return read_moment(column, at);
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

    // The feature of a cell of the current row: `size` is the number of its column.
    Feature with_text(const Feature& feature) override {
        const FrameColumn& column = columns_[feature.size];
        if (column.reader.kind == Column::Kind::categorical) return written_text(column, feature);
        return fixed_feature(column, feature);
    }

    // A category of the current row.
    Feature written_text(const FrameColumn& column, const Feature& feature) {
        char scratch[LONGEST_VALUE];
        const Field field = column.cells.spelled(row_, scratch);
        const auto size = static_cast<std::size_t>(field.end - field.data);
        return Feature{feature.hash, lasting(field.data, size), static_cast<std::uint32_t>(size), feature.group};
    }

    // ---- columns ----

    // Replaces the cells if the new columns have the names and types of the current ones. Known dictionary entries stay
    // known if the new dictionary begins with the old one.
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
                column.entries.clear();
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

    static bool has_moments(const ColumnReader& column) noexcept {
        return column.entry != nullptr && column.entry->of_moment != nullptr;
    }

    // A cell of a date or a time of Arrow's own.
    bool read_moment(const FrameColumn& column, std::size_t at) {
        if (column.cells.is_missing(at)) {
            missing(column.reader);
            return true;
        }
        const std::int64_t seconds = column.cells.seconds(at);
        if (seconds < FIRST_SECOND || seconds > LAST_SECOND) {
            refuse("expected a date of the years 1 to 9999, got one beyond it in column " + column.reader.name);
            return false;
        }
        FixedFeatures features;
        column.reader.entry->of_moment(seconds, column.reader.numbers, features);
        add_fixed(column.reader, features);
        return true;
    }

    std::size_t row_ = 0;       // the present one, whose texts are looked for
    std::size_t capacity_ = 0;  // features of a row, words of text aside
};

}  // namespace ftprl
