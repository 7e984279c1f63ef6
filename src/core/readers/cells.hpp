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
        std::string name;  // quoted and short, for messages
        std::uint32_t slot;
        Prefix with_value;  // the hash of "column=" and what follows
    };

    ColumnReader reader_of(const Column& column) const {
        const auto* name = reinterpret_cast<const Byte*>(column.name.data());
        const std::uint32_t slot = rows.slots()(hash_from(start_, name, column.name.size()));
        return ColumnReader{column.kind, quoted(name, name + column.name.size()), slot,
                            Prefix(start_, column.name + "=")};
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
        if (good) rows.add(column.slot, value);
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

    void category(const ColumnReader& column, const Field& field) {
        if (field.data == field.end) return;
        const auto size = static_cast<std::size_t>(field.end - field.data);
        rows.add(rows.slots()(column.with_value(field.data, size, field.limit)), 1.0);
    }

    // `rest` columns follow, this one included: their room is kept.
    void text(const ColumnReader& column, const Field& field, std::size_t rest) {
        rows.reserve(static_cast<std::size_t>(field.end - field.data) / 2 + 1 + rest);
        words_(field.data, field.end, [&](const Byte* p, const Byte* end) {
            rows.add(rows.slots()(column.with_value(p, static_cast<std::size_t>(end - p), end)), 1.0);
        });
    }

    const std::uint64_t start_;  // of the hash of a name

private:
    Words words_;
};

}  // namespace ftprl
