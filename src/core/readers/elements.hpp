// Cells with several values: lists, maps and the arrays of JSON. What becomes of an element of column "a":
//
//   categorical   the feature "a=value", as for a single value
//   numeric       the feature "a.0", "a.1", ... with the number at that position
//   text          the words of all elements, as for one text
//   with a name   the feature "a.name" with the number, or "a.name=value" with the text
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "readers/arrow.hpp"
#include "readers/cells.hpp"
#include "readers/utf8.hpp"

namespace ftprl {

class ElementParser : public CellParser {
public:
    using CellParser::CellParser;

protected:
    // The hash of "a.", with which names of elements begin, and the hashes of "a.0", "a.1" and so on for the first
    // positions.
    struct ElementReader {
        std::string name;
        std::uint64_t start;   // of the hashes
        std::string own_name;  // behind the start
        Prefix inside;
        std::vector<std::uint64_t> number_hashes;
        std::uint32_t group;
    };

    ElementReader elements_of(const std::string& name, bool lasts = true) {
        auto [start, own] = own_name(name);
        const Prefix inside(start, own + ".");
        return ElementReader{name, start, std::move(own), inside, {}, group_of(name, lasts, '.')};
    }

    // The number at position `i` of a list.
    void add_at_position(ElementReader& reader, std::size_t i, double value) {
        while (reader.number_hashes.size() <= i && reader.number_hashes.size() < MOST_HASHES) {
            reader.number_hashes.push_back(hash_of_number(reader, reader.number_hashes.size()));
        }
        const std::uint64_t hash =
            i < reader.number_hashes.size() ? reader.number_hashes[i] : hash_of_number(reader, i);
        if (!rows.log.is_on()) return rows.add(rows.slots()(hash), value);
        const std::string digits = std::to_string(i);
        rows.add_copied(hash, value, reader.group, reinterpret_cast<const Byte*>(digits.data()), digits.size());
    }

    // Adds a number with a name.
    void add_named(const ElementReader& reader, const Field& name, double value) {
        const auto size = static_cast<std::size_t>(name.end - name.data);
        rows.add_copied(reader.inside(name.data, size, name.limit), value, reader.group, name.data, size);
    }

    // Adds a category with a name.
    void add_named(const ElementReader& reader, const Field& name, const Field& value) {
        joined_.assign(reader.own_name).append(1, '.').append(name.data, name.end).append(1, '=');
        joined_.append(value.data, value.end);
        const auto* const whole = reinterpret_cast<const Byte*>(joined_.data());
        const std::size_t before = reader.own_name.size() + 1, size = joined_.size() - before;
        rows.add_copied(hash_from(reader.start, whole, joined_.size()), 1.0, reader.group, whole + before, size);
    }

    bool refuse_bytes(const ColumnReader& column) {
        refuse("expected text in UTF-8, got other bytes in column " + column.name);
        return false;
    }

    // Adds all elements of a cell of Arrow lists; `rest` is the largest number of features that the row may still add,
    // this column's included. False if an element is bad.
    bool list(const ColumnReader& column, ElementReader& reader, const ArrowColumn& lists, std::size_t at,
              std::size_t rest) {
        if (lists.is_missing(at)) {
            missing(column);
            return true;
        }
        const auto [first, end] = lists.range(at);
        rows.reserve(end - first + rest);
        for (std::size_t i = first; i < end; ++i) {
            if (!lists.has_element(i)) continue;
            const bool good = lists.names() != nullptr
                                  ? named(column, reader, lists, i)
                                  : element(column, reader, *lists.elements(), i, i - first, end - i + rest);
            if (!good) return false;
        }
        return true;
    }

private:
    static constexpr std::size_t MOST_HASHES = 1 << 16;  // positions whose hashes are kept

    static std::uint64_t hash_of_number(const ElementReader& reader, std::size_t i) {
        char digits[24];
        const char* const stop = std::to_chars(digits, digits + sizeof digits, i).ptr;
        const auto* const first = reinterpret_cast<const Byte*>(digits);
        const auto* const end = reinterpret_cast<const Byte*>(stop);
        return reader.inside(first, static_cast<std::size_t>(end - first), end);
    }

    bool element(const ColumnReader& column, ElementReader& reader, const ArrowColumn& cells, std::size_t i,
                 std::size_t position, std::size_t rest) {
        if (column.kind == Column::Kind::numeric) {
            double value = 0.0;
            if (!element_number(column, cells, i, value)) return false;
            if (!std::isnan(value)) add_at_position(reader, position, value);
            return true;
        }
        char scratch[LONGEST_VALUE];
        const Field field = cells.written(i, scratch);
        if (cells.is_utf8() && !is_utf8(field.data, field.end)) return refuse_bytes(column);
        if (field.data == field.end) return true;  // an element that is empty does not make the cell missing
        if (column.kind == Column::Kind::text) {
            text(column, field, rest);
        } else {
            category(column, field, cells.is_text());
        }
        return true;
    }

    bool named(const ColumnReader& column, const ElementReader& reader, const ArrowColumn& lists, std::size_t i) {
        if (lists.names()->is_missing(i)) return true;
        char name_scratch[LONGEST_VALUE], scratch[LONGEST_VALUE];
        const Field name = lists.names()->written(i, name_scratch);
        const ArrowColumn& cells = *lists.elements();
        if (lists.names()->is_utf8() && !is_utf8(name.data, name.end)) return refuse_bytes(column);
        if (column.kind == Column::Kind::numeric) {
            double value = 0.0;
            if (!element_number(column, cells, i, value)) return false;
            if (!std::isnan(value)) add_named(reader, name, value);
            return true;
        }
        const Field field = cells.written(i, scratch);
        if (cells.is_utf8() && !is_utf8(field.data, field.end)) return refuse_bytes(column);
        if (field.data != field.end) add_named(reader, name, field);
        return true;
    }

    // NaN for a number that is not there.
    bool element_number(const ColumnReader& column, const ArrowColumn& cells, std::size_t i, double& value) {
        char scratch[LONGEST_VALUE];
        value = MISSING;
        if (!cells.is_text()) {
            value = cells.number(i);
            if (!std::isinf(value)) return true;
        }
        const Field field = trimmed(cells.written(i, scratch));
        return cells.is_text() && is_absent(field) ? true : parsed_number(column, field, value);
    }

    std::string joined_;
};

}  // namespace ftprl
