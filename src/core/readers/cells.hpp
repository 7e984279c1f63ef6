// Cells of a table, whatever the table is: text, Arrow columns, records.
//
//   categorical   the feature "column=value"
//   numeric       the feature "column" with the field's value
//   text          the feature "column=word" for each word, lower-cased; repeated words add up
//
// Names are hashed with the seed alone, as in the default namespace of Vowpal Wabbit's format. An empty field is
// nothing; so is one of the spellings of "not available" in a numeric column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "readers/names.hpp"
#include "readers/number.hpp"
#include "readers/parser.hpp"
#include "readers/split.hpp"
#include "readers/words.hpp"
#include "support/hash.hpp"

namespace ftprl {

struct Column {
    enum class Kind { ignore, label, weight, categorical, numeric, text };
    Kind kind;
    std::string name;
};

class CellParser : public Parser {
public:
    CellParser(const Options& options, Labels labels, DelimiterIndex index)
        : Parser(options, std::move(labels), std::move(index)), start_(hash_start(options.seed)) {}

protected:
    struct ColumnReader {
        Column::Kind kind;
        std::string name;    // quoted and short, for messages
        std::uint64_t hash;  // of the name alone
        Prefix with_value;   // the hash of "column=" and what follows
        std::uint32_t group;
    };

    // What reads a column of this name; `lasts` is whether more rows than the present one may have it.
    ColumnReader reader_of(const Column& column, bool lasts = true) {
        const auto* name = reinterpret_cast<const Byte*>(column.name.data());
        const std::size_t size = column.name.size();
        return ColumnReader{column.kind, quoted(name, name + size), hash_from(start_, name, size),
                            Prefix(start_, column.name + "="), group_of(column.name, lasts, '=')};
    }

    bool label(const ColumnReader& column, const Field& field, double& y) {
        const Field text = trimmed(field);
        Fault fault;
        if (labels_.read(text.data, text.end, y, fault)) return true;
        fault.message += " in column " + column.name;
        refuse(std::move(fault));
        return false;
    }

    static bool is_weight(const Field& field, double& weight) {
        return parse_number(field.data, field.end, weight) == Parsed::ok && weight >= 0.0;
    }

    bool importance(const ColumnReader& column, const Field& field, double& weight) {
        const Field text = trimmed(field);
        if (is_weight(text, weight)) return true;
        refuse("expected a weight of at least 0, got " + quoted(text.data, text.end) + " in column " + column.name);
        return false;
    }

    bool number(const ColumnReader& column, const Field& field) {
        const Field text = trimmed(field);
        double value = 0.0;
        const bool good = parse_number(text.data, text.end, value) == Parsed::ok;
        if (good) add_number(column, value);
        return good || is_absent(text) || parsed_number(column, text, value);
    }

    // A number, or what is wrong with it.
    bool parsed_number(const ColumnReader& column, const Field& text, double& value) {
        const Parsed parsed = parse_number(text.data, text.end, value);
        if (parsed == Parsed::ok) return true;
        refuse((parsed == Parsed::malformed ? "expected a number, got " : "expected a finite number, got ") +
               quoted(text.data, text.end) + " in column " + column.name);
        return false;
    }

    // The feature of a column of numbers.
    void add_number(const ColumnReader& column, double value) {
        rows.add(column.hash, value, column.group, nullptr, 0);
    }

    // `lasts` is whether the text stays where it is until the row is finished.
    void category(const ColumnReader& column, const Field& field, bool lasts = true) {
        if (field.data == field.end) return;
        const auto size = static_cast<std::size_t>(field.end - field.data);
        const std::uint64_t hash = column.with_value.quick(field.data, size, field.limit);
        rows.add(hash, 1.0, column.group, lasts ? field.data : lasting(field.data, size), size);
    }

    // `rest` columns follow, this one included: their room is kept.
    void text(const ColumnReader& column, const Field& field, std::size_t rest) {
        rows.reserve(static_cast<std::size_t>(field.end - field.data) / 2 + 1 + rest);
        words_(field.data, field.end, [&](const Byte* p, const Byte* end) {
            const auto size = static_cast<std::size_t>(end - p);
            rows.add(column.with_value(p, size, end), 1.0, column.group, lasting(p, size), size);
        });
    }

    // A text that lasts as long as the row, for its name.
    const Byte* lasting(const Byte* p, std::size_t size) { return rows.log.is_on() ? rows.log.lasting(p, size) : p; }

    // The group of a column's features; `joint` stands between its name and the text of a feature.
    std::uint32_t group_of(const std::string& column, bool lasts, char joint) {
        if (!rows.log.is_on()) return 0;
        const auto size = static_cast<std::uint32_t>(column.size());
        const auto mark = static_cast<Byte>(joint);
        if (!lasts) {
            const auto* const text = reinterpret_cast<const Byte*>(column.data());
            return rows.log.add_passing_group(FeatureGroup{rows.log.lasting(text, size), size, mark});
        }
        const auto [entry, is_new] = groups_.emplace(column + joint, static_cast<std::uint32_t>(groups_.size()));
        if (is_new) rows.log.add_group(FeatureGroup{reinterpret_cast<const Byte*>(entry->first.data()), size, mark});
        return entry->second;
    }

    const std::uint64_t start_;  // of the hash of a name

private:
    Words words_;
    std::unordered_map<std::string, std::uint32_t> groups_;  // of all columns but those that one row had
};

}  // namespace ftprl
