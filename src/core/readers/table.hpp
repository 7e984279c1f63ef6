// Tables as text: fields between separators, quoted or not, one row per line (or several lines, inside quotes).
// cells.hpp converts the fields.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "readers/cells.hpp"
#include "readers/number.hpp"
#include "readers/parser.hpp"
#include "readers/split.hpp"

namespace ftprl {

// The end of the last whole row of [p, end); p if there is none.
inline const Byte* whole_rows(const Byte* p, const Byte* end, const Dialect& dialect) {
    Splitter split(dialect);
    while (p != end && split(p, end, false) != Split::cut) p = split.next;
    return p;
}

class TableParser final : public CellParser {
public:
    TableParser(const Options& options, Labels labels, const Dialect& dialect)
        : CellParser(options, std::move(labels), DelimiterIndex(std::array<Byte, 2>{dialect.separator, Byte{'\n'}})),
          split_(dialect),
          dialect_(dialect) {}

    // Sets the separator and the quote of the next rows.
    void set_separator(Byte separator) {
        if (separator == dialect_.separator) return;
        dialect_.separator = separator;
        split_ = Splitter(dialect_);
        index_ = DelimiterIndex(std::array<Byte, 2>{separator, Byte{'\n'}});
    }

    // Sets the columns of the next rows.
    void set_columns(const std::vector<Column>& columns) {
        columns_.clear();
        for (const Column& column : columns) columns_.push_back(reader_of(column));
        runs_.clear();
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            if (i == 0 || columns_[i].kind != columns_[i - 1].kind) runs_.push_back(ColumnRun{columns_[i].kind, i, i});
            ++runs_.back().end;
        }
        std::size_t labels = 0, weights = 0;
        capacity_ = 0;
        for (const ColumnReader& column : columns_) {
            capacity_ += most_features(column.kind);
            labels += column.kind == Column::Kind::label ? 1 : 0;
            weights += column.kind == Column::Kind::weight ? 1 : 0;
        }
        has_unit_values_ = std::all_of(columns.begin(), columns.end(), [](const Column& column) {
            return column.kind == Column::Kind::categorical || !makes_features(column.kind);
        });
        categories_.clear();
        for (const ColumnReader& column : columns_) {
            categories_.push_back(CategoryReader{column.with_value, column.missing_hash, column.group});
        }
        has_fast_path_ = columns_.size() > 1 && labels <= 1 && weights <= 1;
    }

protected:
    const Byte* row(const Byte* p, const Byte* end, bool last) override {
        const Byte* const next = parse_fast(p, end);
        if (next != nullptr) return next;
        const Split result = split_(p, end, last);
        if (result == Split::cut) return nullptr;
        if (result == Split::unclosed) {
            const bool lengthy = static_cast<std::size_t>(end - p) > options_.max_row;
            give_up(lengthy ? too_long()
                            : Fault{"expected a closing quote, got the end of the file", "close it, or pass another",
                                    "quote"});
            return end;
        }
        const Byte* stop = split_.next;
        if (static_cast<std::size_t>(stop - p) > options_.max_row + (stop[-1] == '\n' ? 1 : 0)) {
            give_up(too_long());
        } else if (result == Split::stray) {
            refuse("expected a separator after a closing quote, got other text");
        } else if (!split_.is_empty()) {
            parse_fields();
        }
        if (problem.line == 0) line += split_.lines;
        return stop;
    }

private:
    // A run of neighbouring columns of one kind: columns [first, end).
    struct ColumnRun {
        Column::Kind kind;
        std::size_t first;
        std::size_t end;
    };

    // The data that a column of categories needs for each cell, stored compactly.
    struct CategoryReader {
        Prefix with_value;
        std::uint64_t missing_hash;
        std::uint32_t group;
    };

    // Reads the row at p if it is one line without quotes and faults, from delimiter to delimiter, and returns the
    // start of the next row; else returns null without effect. The label is read last, because reading it may decide
    // which label is negative, and a row with a fault elsewhere must not reach it here.
    const Byte* parse_fast(const Byte* p, const Byte* end) {
        if (!has_fast_path_) return nullptr;
        const std::size_t count = columns_.size();
        const Byte* const newline = find(p, end, '\n');
        if (newline == end || static_cast<std::size_t>(newline - p) > options_.max_row) return nullptr;
        if (dialect_.quotes && find(p, newline, dialect_.quote) != newline) return nullptr;
        if (!index_.cover(p, newline + 1, end)) return nullptr;
        const Byte* const base = index_.base();
        std::uint32_t* const delimiters = index_.positions();
        if (index_.count() < count || base + delimiters[count - 1] != newline) return nullptr;
        if (delimiters[count - 1] - delimiters[count - 2] > 1 && newline[-1] == '\r') --delimiters[count - 1];
        Field label{p, p, end};
        double y = MISSING, weight = 1.0;
        auto from = static_cast<std::size_t>(p - base);
        rows.begin(capacity_);
        for (const ColumnRun& run : runs_) {
            const Field first{base + from, base + delimiters[run.first], end};
            bool good = true;
            switch (run.kind) {
                case Column::Kind::ignore:
                    break;
                case Column::Kind::label:
                    label = trimmed(first);
                    break;
                case Column::Kind::weight:
                    good = is_weight(trimmed(first), weight);
                    break;
                case Column::Kind::categorical:
                    categories(run, base, delimiters, from);
                    break;
                case Column::Kind::numeric:
                    good = numbers(run, base, delimiters, from);
                    break;
                case Column::Kind::text:
                    good = texts(run, base, delimiters, from);
                    break;
                default:
                    good = others(run, base, delimiters, from);
                    break;
            }
            if (!good) return nullptr;
            from = delimiters[run.end - 1] + 1;
        }
        Fault fault;
        if (!labels_.read(label.data, label.end, y, fault)) return nullptr;
        index_.done(delimiters + count);
        if (has_unit_values_) rows.set_unit_values();
        finish(y, weight);
        if (problem.line == 0) ++line;
        return newline + 1;
    }

    // Reads the fields of a run on the fast path; the first begins at `from`.
    void categories(const ColumnRun& run, const Byte* base, const std::uint32_t* delimiters, std::size_t from) {
        const Slots slots = rows.slots();
        if (!slots.masked()) return categories(run, base, delimiters, from, slots);
        const auto mask = static_cast<std::uint32_t>(slots.mask());
        categories(run, base, delimiters, from,
                   [mask](std::uint64_t hash) { return static_cast<std::uint32_t>(hash) & mask; });
    }
    template <class Slot>
    void categories(const ColumnRun& run, const Byte* base, const std::uint32_t* delimiters, std::size_t from,
                    Slot slot) {
        if (!rows.log.is_on()) {
            add_categories<false>(run, base, delimiters, from, slot);
        } else {
            add_categories<true>(run, base, delimiters, from, slot);
        }
    }
    template <bool is_logged, class Slot>
    void add_categories(const ColumnRun& run, const Byte* base, const std::uint32_t* delimiters, std::size_t from,
                        Slot slot) {
        std::uint32_t* const row_slots = rows.row_slots();
        double* const row_values = has_unit_values_ ? nullptr : rows.row_values();
        Feature* const features = is_logged ? rows.log.features() : nullptr;
        std::size_t size = rows.size();
        const std::size_t before = size;
        const std::size_t of_missing = marks_missing() ? 1 : 0;
        for (std::size_t i = run.first; i < run.end; ++i) {
            const CategoryReader& column = categories_[i];
            const std::size_t n = delimiters[i] - from;
            const bool is_there = n != 0;
            const std::uint64_t hash = is_there ? column.with_value.inside(base + from, n) : column.missing_hash;
            row_slots[size] = slot(hash);
            if constexpr (is_logged) {
                features[size] = is_there ? Feature{hash, base + from, static_cast<std::uint32_t>(n), column.group}
                                          : missing_of(columns_[i]);
            }
            size += is_there ? 1 : of_missing;
            from = delimiters[i] + std::size_t{1};
        }
        for (std::size_t i = before; row_values != nullptr && i < size; ++i) row_values[i] = 1.0;
        rows.set_size(size);
    }

    bool numbers(const ColumnRun& run, const Byte* base, const std::uint32_t* delimiters, std::size_t from) {
        const Slots slots = rows.slots();
        std::uint32_t* const row_slots = rows.row_slots();
        double* const row_values = rows.row_values();
        Feature* const features = rows.log.is_on() ? rows.log.features() : nullptr;
        std::size_t size = rows.size();
        const bool marks = marks_missing();
        const auto mark = [&](const ColumnReader& column) {
            row_slots[size] = slots(column.missing_hash);
            row_values[size] = 1.0;
            if (features != nullptr) features[size] = missing_of(column);
            size += marks ? 1 : 0;
        };
        for (std::size_t i = run.first; i < run.end; ++i) {
            const Byte* const p = base + from;
            const std::size_t n = delimiters[i] - from;
            from = delimiters[i] + std::size_t{1};
            row_slots[size] = slots(columns_[i].hash);
            if (features != nullptr) features[size] = Feature{columns_[i].hash, nullptr, 0, columns_[i].group};
            std::uint32_t whole = 0;
            if (n == 0) {
                mark(columns_[i]);
            } else if (parse_whole(p, n, whole)) {
                row_values[size++] = whole;
            } else {
                const Field field = trimmed(Field{p, p + n, p + n});
                const bool good = parse_short(p, n, row_values[size]) ||
                                  parse_number(field.data, field.end, row_values[size]) == Parsed::ok;
                if (good) {
                    ++size;
                } else if (is_absent(field)) {
                    mark(columns_[i]);
                } else {
                    return false;
                }
            }
        }
        rows.set_size(size);
        return true;
    }

    bool texts(const ColumnRun& run, const Byte* base, const std::uint32_t* delimiters, std::size_t from) {
        for (std::size_t i = run.first; i < run.end; ++i) {
            text(columns_[i], Field{base + from, base + delimiters[i], base + delimiters[i]}, capacity_);
            from = delimiters[i] + std::size_t{1};
        }
        return true;
    }

    bool others(const ColumnRun& run, const Byte* base, const std::uint32_t* delimiters, std::size_t from) {
        for (std::size_t i = run.first; i < run.end; ++i) {
            if (!add_cell(columns_[i], Field{base + from, base + delimiters[i], base + delimiters[i]})) return false;
            from = delimiters[i] + std::size_t{1};
        }
        return true;
    }

    void parse_fields() {
        const std::vector<Field>& fields = split_.fields;
        if (fields.size() != columns_.size()) {
            return refuse("expected " + std::to_string(columns_.size()) + " columns, got " +
                          std::to_string(fields.size()));
        }
        double y = MISSING, weight = 1.0;
        rows.begin(capacity_);
        for (std::size_t i = 0; i < fields.size(); ++i) {
            const ColumnReader& column = columns_[i];
            bool good = true;
            switch (column.kind) {
                case Column::Kind::ignore:
                    break;
                case Column::Kind::label:
                    good = label(column, fields[i], y);
                    break;
                case Column::Kind::weight:
                    good = importance(column, fields[i], weight);
                    break;
                default:
                    good = feature(column, fields[i], capacity_);
                    break;
            }
            if (!good) return;
        }
        finish(y, weight);
    }

    Splitter split_;
    Dialect dialect_;
    std::vector<ColumnReader> columns_;
    std::vector<ColumnRun> runs_;
    std::size_t capacity_ = 0;  // features of a row, words of text aside
    bool has_fast_path_ = false;
    std::vector<CategoryReader> categories_;  // by the numbers of columns, of whatever kind
    bool has_unit_values_ = false;            // every feature of a row has the value 1
};

}  // namespace ftprl
