// The cells of data frames, looked up for a block of rows at once, with one loop per type of column. A distinct value
// of a dictionary column is hashed once.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "readers/arrow.hpp"
#include "readers/cells.hpp"
#include "readers/elements.hpp"
#include "readers/utf8.hpp"

namespace ftprl {

class FrameCells : public ElementParser {
protected:
    using ElementParser::ElementParser;

    static constexpr std::size_t BLOCK = 256;  // rows, so that the cells of a block stay in the cache
    enum class State : std::uint8_t { absent = 0, present = 1, bad = 2, missing = 3 };  // an odd one is a feature

    struct FrameColumn {
        FrameColumn(Column what, ColumnReader column_reader, ElementReader of_lists, ArrowColumn data)
            : column(std::move(what)),
              reader(std::move(column_reader)),
              elements(std::move(of_lists)),
              cells(std::move(data)) {}
        // True if the cells of a block are looked up at once.
        bool is_loaded() const noexcept {
            const FixedKind* const entry = reader.entry;
            const bool is_one = reader.kind == Column::Kind::categorical || reader.kind == Column::Kind::numeric ||
                                (entry != nullptr && (entry->has_truths || entry->of_number != nullptr));
            return is_one && !cells.is_list();
        }
        Column column;
        ColumnReader reader;
        ElementReader elements;
        ArrowColumn cells;
        std::array<State, BLOCK> states{};
        std::array<std::uint64_t, BLOCK> hashes{};
        std::array<double, BLOCK> values{};
        Feature form{};                      // of its cells, but for the hash
        std::vector<std::uint64_t> entries;  // the hashes of a dictionary's entries, as far as they are known; else 0
        bool has_high_bytes = false;         // whether an entry may be no text in UTF-8
    };

    // Looks up features, hashes and values of `count` cells from row `from` on, if the column is looked up in blocks.
    void load(FrameColumn& column, std::size_t from, std::size_t count) {
        if (!column.is_loaded()) return;
        switch (column.reader.kind) {
            case Column::Kind::numeric:
                load_numbers(column, from, count);
                if (marks_missing()) column.hashes.fill(column.reader.hash);
                break;
            case Column::Kind::categorical:
                load_categories(column, from, count);
                break;
            default:
                if (column.reader.entry->has_truths) {
                    load_booleans(column, from, count);
                    break;
                }
                load_numbers(column, from, count);
                if (column.cells.type() == ArrowColumn::Type::f32) as_written(column, from, count);
                for (std::size_t i = 0; i < count; ++i) {
                    set_fixed(column, i, column.reader.entry->of_number(column.values[i], column.reader.numbers));
                }
                column.values.fill(1.0);
                break;
        }
        if (marks_missing()) mark_missing(column, count);
    }

    static void mark_missing(FrameColumn& column, std::size_t count) noexcept {
        unsigned absent = 0;
        for (std::size_t i = 0; i < count; ++i) absent |= column.states[i] == State::absent ? 1u : 0u;
        for (std::size_t i = 0; absent != 0 && i < count; ++i) {
            const bool is_missing = column.states[i] == State::absent;
            column.hashes[i] = is_missing ? column.reader.missing_hash : column.hashes[i];
            column.values[i] = is_missing ? 1.0 : column.values[i];
            column.states[i] = is_missing ? State::missing : column.states[i];
        }
    }

    // The numbers of a float32 column as a CSV file has them, so that 0.7 is not below 0.7.
    static void as_written(FrameColumn& column, std::size_t from, std::size_t count) {
        char scratch[LONGEST_VALUE];
        for (std::size_t i = 0; i < count; ++i) {
            const Field field = column.cells.written(from + i, scratch);
            parse_number(field.data, field.end, column.values[i]);
        }
    }

    // Sets the cell to the feature with this number.
    static void set_fixed(FrameColumn& column, std::size_t i, std::size_t number) {
        column.hashes[i] = (*column.reader.fixed)[number].hash;
    }

    void load_booleans(FrameColumn& column, std::size_t from, std::size_t count) {
        const bool is_typed = column.cells.type() == ArrowColumn::Type::boolean;
        char scratch[LONGEST_VALUE];
        for (std::size_t i = 0; i < count; ++i) {
            bool truth = false;
            column.states[i] = State::present;
            if (column.cells.is_missing(from + i)) {
                column.states[i] = State::absent;
            } else if (is_typed) {
                truth = column.cells.boolean(from + i);
            } else if (const Field field = trimmed(column.cells.written(from + i, scratch));
                       !parse_boolean(field, truth)) {
                column.states[i] = is_absent(field) ? State::absent : State::bad;
            }
            set_fixed(column, i, truth ? 1 : 0);
        }
    }

    void load_categories(FrameColumn& column, std::size_t from, std::size_t count) {
        if (column.cells.dictionary() != nullptr) return load_entries(column, from, count);
        const bool checks = column.cells.may_break_utf8(from, count);
        if (column.cells.is_large_text() && !column.cells.has_missing() && !checks) {
            return load_texts(column, from, count);
        }
        for (std::size_t i = 0; i < count; ++i) load_category(column, from, i, checks);
    }

    // Looks up texts of which none is missing and none needs a check.
    static void load_texts(FrameColumn& column, std::size_t from, std::size_t count) {
        const ArrowColumn& cells = column.cells;
        const auto* const ends = cells.numbers<std::int64_t>(from);
        const Byte* const bytes = cells.bytes();
        const Byte* const limit = cells.limit();
        const Prefix with_value = column.reader.with_value;
        for (std::size_t i = 0; i < count; ++i) {
            const auto size = static_cast<std::size_t>(ends[i + 1] - ends[i]);
            column.states[i] = size == 0 ? State::absent : State::present;
            if (size != 0) column.hashes[i] = with_value.quick(bytes + ends[i], size, limit);
        }
    }

    void load_category(FrameColumn& column, std::size_t from, std::size_t i, bool checks) {
        char scratch[LONGEST_VALUE];
        const Field field = column.cells.written(from + i, scratch);
        const auto size = static_cast<std::size_t>(field.end - field.data);
        column.states[i] = size == 0 ? State::absent : State::present;
        if (size == 0) return;
        if (checks && !is_utf8(field.data, field.end)) column.states[i] = State::bad;
        column.hashes[i] = column.reader.with_value.quick(field.data, size, field.limit);
    }

    void load_entries(FrameColumn& column, std::size_t from, std::size_t count) {
        const ArrowColumn& cells = column.cells;
        column.entries.resize(cells.dictionary()->size());
        const bool has_missing = cells.has_missing();
        cells.by_type([&](auto* type) {
            const auto* const numbers = cells.template numbers<std::decay_t<decltype(*type)>>(from);
            const std::uint64_t* const known = column.entries.data();
            const std::uint64_t size = column.entries.size();
            for (std::size_t i = 0; i < count; ++i) {
                const auto number = static_cast<std::uint64_t>(numbers[i]);
                const bool is_there = number < size && !(has_missing && cells.is_missing(from + i));
                const std::uint64_t hash = is_there ? known[number] : 0;
                column.hashes[i] = hash;
                column.states[i] = State::present;
                if (hash == 0) load_entry(column, from, i, number);
            }
        });
    }

    // Loads a cell whose dictionary entry is unknown, missing, empty or bad.
    void load_entry(FrameColumn& column, std::size_t from, std::size_t i, std::uint64_t number) {
        column.states[i] = State::absent;
        if (column.cells.is_missing(from + i)) return;
        column.states[i] = State::bad;
        if (number >= column.entries.size()) return;
        char scratch[LONGEST_VALUE];
        const ArrowColumn& dictionary = *column.cells.dictionary();
        const Field field = dictionary.written(number, scratch);
        const auto size = static_cast<std::size_t>(field.end - field.data);
        if (column.has_high_bytes && !is_utf8(field.data, field.end)) return;
        column.states[i] = size == 0 ? State::absent : State::present;
        if (size == 0) return;
        column.hashes[i] = column.entries[number] = column.reader.with_value(field.data, size, field.limit);
    }

    // True if the number of an entry is within the dictionary.
    static bool has_entry(const FrameColumn& column, std::size_t at) {
        return column.cells.entry(at) < column.entries.size();
    }

    void load_numbers(FrameColumn& column, std::size_t from, std::size_t count) {
        const ArrowColumn& cells = column.cells;
        if (cells.is_text()) {
            for (std::size_t i = 0; i < count; ++i) column.states[i] = parsed(cells, from + i, column.values[i]);
        } else if (cells.type() == ArrowColumn::Type::boolean) {
            for (std::size_t i = 0; i < count; ++i) column.values[i] = cells.boolean(from + i) ? 1.0 : 0.0;
            settle(column, from, count);
        } else if (cells.type() == ArrowColumn::Type::nothing) {
            column.states.fill(State::absent);
        } else {
            cells.by_type([&](auto* type) {
                const auto* const numbers = cells.template numbers<std::decay_t<decltype(*type)>>(from);
                for (std::size_t i = 0; i < count; ++i) column.values[i] = static_cast<double>(numbers[i]);
            });
            settle(column, from, count);
        }
    }

    // Classifies the numbers of a block: NaN is a missing number, infinity is bad.
    static void settle(FrameColumn& column, std::size_t from, std::size_t count) {
        if (!column.cells.has_missing()) {
            unsigned odd = 0;
            for (std::size_t i = 0; i < count; ++i) {
                odd |= std::fabs(column.values[i]) <= std::numeric_limits<double>::max() ? 0u : 1u;
            }
            if (odd == 0) return std::fill_n(column.states.begin(), count, State::present), void();
        }
        for (std::size_t i = 0; i < count; ++i) {
            const double value = column.values[i];
            const State state = std::isnan(value) ? State::absent : std::isinf(value) ? State::bad : State::present;
            column.states[i] = column.cells.is_missing(from + i) ? State::absent : state;
        }
    }

    static State parsed(const ArrowColumn& cells, std::size_t at, double& value) {
        if (cells.is_missing(at)) return State::absent;
        const Field field = trimmed(cells.field(at));
        if (parse_number(field.data, field.end, value) == Parsed::ok) return State::present;
        return is_absent(field) ? State::absent : State::bad;
    }

    // ---- the feature of a cell, with its name ----

    // The features of a column without their hashes. Most names are known, so the text of one is looked up only when it
    // is recorded.
    static Feature form_of(const ColumnReader& column, std::size_t column_index) noexcept {
        if (column.kind == Column::Kind::numeric) return Feature{0, nullptr, 0, column.group};
        return Feature{0, TEXT_LATER, static_cast<std::uint32_t>(column_index),
                       column.entry != nullptr ? column.fixed_group : column.group};
    }

    static Feature feature_of(const FrameColumn& column, std::size_t i) {
        if (column.states[i] == State::missing) return missing_of(column.reader);
        Feature feature = column.form;
        feature.hash = column.hashes[i];
        return feature;
    }

    // The feature with this hash and text, one of the few of a column of buckets or booleans.
    static Feature fixed_feature(const FrameColumn& column, const Feature& feature) {
        std::size_t number = 0;
        while ((*column.reader.fixed)[number].hash != feature.hash) ++number;
        return fixed_of(column.reader, number);
    }
};

}  // namespace ftprl
