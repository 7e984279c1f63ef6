// Tables as text: fields between separators, quoted or not, one row a line (or more, inside quotes).
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
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "hash.hpp"
#include "names.hpp"
#include "number.hpp"
#include "parser.hpp"
#include "words.hpp"

namespace ftprl {

struct Field {
    const Byte* data;
    const Byte* end;
    const Byte* limit;  // bytes up to here may be read
};

struct Dialect {
    Byte separator = ',';
    bool quotes = true;
    Byte quote = '"';
};

enum class Split { whole, cut, unclosed, stray };

// Splits the row at p into fields. Quoted text with doubled quotes is copied; the rest points into the data.
class Splitter {
public:
    explicit Splitter(const Dialect& dialect)
        : dialect_(dialect), stop_({dialect.separator, Byte{'\n'}}) {}

    std::vector<Field> fields;
    const Byte* next = nullptr;  // where the next row begins
    std::int64_t lines = 0;      // that the row takes

    Split operator()(const Byte* p, const Byte* end, bool last) {
        fields.clear();
        copies_.clear();
        lines = 1;
        Split result = Split::whole;
        for (;;) {
            const bool quoted = dialect_.quotes && p != end && *p == dialect_.quote;
            const Byte* stop = nullptr;
            if (quoted) {
                stop = quoted_field(p + 1, end);
                if (stop == nullptr) return last ? Split::unclosed : Split::cut;
                const Byte* after = stop_(stop, end);
                if (after == end && !last) return Split::cut;
                if (after != stop && !(is_row_end(after, end) && after - stop == 1 && *stop == '\r')) {
                    result = Split::stray;
                    fields.back().end = fields.back().data;
                }
                stop = after;
            } else {
                stop = stop_(p, end);
                if (stop == end && !last) return Split::cut;
                const Byte* tail = stop;
                if (is_row_end(stop, end) && tail != p && tail[-1] == '\r') --tail;
                fields.push_back(Field{p, tail, end});
            }
            if (is_row_end(stop, end)) {
                next = stop == end ? end : stop + 1;
                return result;
            }
            p = stop + 1;
        }
    }

    bool is_empty() const { return fields.size() == 1 && fields[0].data == fields[0].end; }

private:
    bool is_row_end(const Byte* p, const Byte* end) const { return p == end || *p == '\n'; }

    // The text behind an opening quote; returns what follows the closing one, null when there is none.
    const Byte* quoted_field(const Byte* p, const Byte* end) {
        const Byte* first = p;
        std::string* copy = nullptr;
        for (;;) {
            const Byte* quote = find(p, end, dialect_.quote);
            if (quote == end) return nullptr;
            for (const Byte* q = find(p, quote, '\n'); q != quote; q = find(q + 1, quote, '\n')) ++lines;
            const bool doubled = end - quote > 1 && quote[1] == dialect_.quote;
            if (copy == nullptr && doubled) copy = &copies_.emplace_back();
            if (copy != nullptr) copy->append(reinterpret_cast<const char*>(p), static_cast<std::size_t>(quote - p));
            if (!doubled) {
                if (copy == nullptr) {
                    fields.push_back(Field{first, quote, end});
                } else {
                    const auto* text = reinterpret_cast<const Byte*>(copy->data());
                    fields.push_back(Field{text, text + copy->size(), text + copy->size()});
                }
                return quote + 1;
            }
            copy->push_back(static_cast<char>(dialect_.quote));
            p = quote + 2;
        }
    }

    Dialect dialect_;
    Finder<2> stop_;
    std::deque<std::string> copies_;  // a deque: fields point into the strings
};

// Where the last whole row of [p, end) ends; p when there is none.
inline const Byte* whole_rows(const Byte* p, const Byte* end, const Dialect& dialect) {
    Splitter split(dialect);
    while (p != end && split(p, end, false) != Split::cut) p = split.next;
    return p;
}

inline Field trimmed(Field field) {
    field.data = skip_blanks(field.data, field.end);
    while (field.end != field.data && is_blank(field.end[-1])) --field.end;
    return field;
}

// Whether a field of a numeric column says that there is no number.
inline bool is_absent(const Field& field) {
    const auto size = static_cast<std::size_t>(field.end - field.data);
    if (size == 0) return true;
    if (size > 4) return false;
    std::string lower(field.data, field.end);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return lower == "na" || lower == "nan" || lower == "n/a" || lower == "#n/a" || lower == "null" || lower == "none";
}

struct Column {
    enum class Kind { ignore, label, weight, categorical, numeric, text };
    Kind kind;
    std::string name;
};

class TableParser final : public Parser {
public:
    TableParser(const Options& options, Labels labels, const Dialect& dialect)
        : Parser(options, std::move(labels)), split_(dialect), start_(hash_start(options.seed)) {}

    // The columns of the rows to come.
    void set_columns(const std::vector<Column>& columns) {
        columns_.clear();
        for (const Column& column : columns) {
            const auto* name = reinterpret_cast<const Byte*>(column.name.data());
            const std::uint32_t slot = rows.slots()(hash_from(start_, name, column.name.size()));
            columns_.push_back(Ready{column.kind, quoted(name, name + column.name.size()), slot, Prefix(start_, column.name + "=")});
        }
    }

protected:
    const Byte* row(const Byte* p, const Byte* end, bool last) override {
        const Split result = split_(p, end, last);
        if (result == Split::cut) return nullptr;
        if (result == Split::unclosed) {
            const bool lengthy = static_cast<std::size_t>(end - p) > options_.max_row;
            give_up(lengthy ? too_long() : "expected a closing quote, got the end of the file");
            return end;
        }
        const Byte* stop = split_.next;
        if (static_cast<std::size_t>(stop - p) > options_.max_row + (stop[-1] == '\n' ? 1 : 0)) {
            give_up(too_long());
        } else if (result == Split::stray) {
            refuse("expected a separator after a closing quote, got other text");
        } else if (!split_.is_empty()) {
            take();
        }
        if (problem.line == 0) line += split_.lines;
        return stop;
    }

private:
    struct Ready {
        Column::Kind kind;
        std::string name;  // quoted and short, for messages
        std::uint32_t slot;
        Prefix joined;  // the hash of "column=" and what follows
    };

    void take() {
        const std::vector<Field>& fields = split_.fields;
        if (fields.size() != columns_.size()) {
            return refuse("expected " + std::to_string(columns_.size()) + " columns, got " + std::to_string(fields.size()));
        }
        double y = MISSING, weight = 1.0;
        rows.begin(columns_.size());
        for (std::size_t i = 0; i < fields.size(); ++i) {
            const Ready& column = columns_[i];
            bool good = true;
            switch (column.kind) {
                case Column::Kind::ignore: break;
                case Column::Kind::label: good = label(column, fields[i], y); break;
                case Column::Kind::weight: good = importance(column, fields[i], weight); break;
                case Column::Kind::categorical: category(column, fields[i]); break;
                case Column::Kind::numeric: good = number(column, fields[i]); break;
                case Column::Kind::text: text(column, fields[i], columns_.size() - i); break;
            }
            if (!good) return;
        }
        finish(y, weight);
    }

    bool label(const Ready& column, const Field& field, double& y) {
        const Field found = trimmed(field);
        std::string why;
        if (labels_.read(found.data, found.end, y, why)) return true;
        const std::size_t hint = why.rfind(Labels::HINT);
        refuse(why.insert(hint == std::string::npos ? why.size() : hint, " in column " + column.name));
        return false;
    }

    bool importance(const Ready& column, const Field& field, double& weight) {
        const Field found = trimmed(field);
        if (parse_number(found.data, found.end, weight) == Parsed::ok && weight >= 0.0) return true;
        refuse("expected a weight of at least 0, got " + quoted(found.data, found.end) + " in column " + column.name);
        return false;
    }

    bool number(const Ready& column, const Field& field) {
        const Field found = trimmed(field);
        double value = 0.0;
        const Parsed parsed = parse_number(found.data, found.end, value);
        if (parsed == Parsed::ok) {
            rows.add(column.slot, value);
            return true;
        }
        if (is_absent(found)) return true;
        refuse((parsed == Parsed::malformed ? "expected a number, got " : "expected a finite number, got ") +
               quoted(found.data, found.end) + " in column " + column.name);
        return false;
    }

    void category(const Ready& column, const Field& field) {
        if (field.data == field.end) return;
        const auto size = static_cast<std::size_t>(field.end - field.data);
        rows.add(rows.slots()(column.joined(field.data, size, field.limit)), 1.0);
    }

    // `rest` columns follow, this one included: they keep their room.
    void text(const Ready& column, const Field& field, std::size_t rest) {
        rows.more(static_cast<std::size_t>(field.end - field.data) / 2 + 1 + rest);
        words_(field.data, field.end, [&](const Byte* p, const Byte* end) {
            rows.add(rows.slots()(column.joined(p, static_cast<std::size_t>(end - p), end)), 1.0);
        });
    }

    Splitter split_;
    Words words_;
    std::vector<Ready> columns_;
    std::uint64_t start_;
};

// What the first rows say of a column.
struct Sample {
    std::int64_t present = 0;
    std::int64_t numbers = 0;
    std::vector<std::string> values;  // the first distinct ones, if asked for
};

// Looks at up to `most` whole rows that have as many fields as there are samples. Returns how many it saw.
inline std::int64_t look(const Byte* p, const Byte* end, bool last, const Dialect& dialect, std::int64_t most,
                         std::size_t distinct, std::size_t label, std::vector<Sample>& samples) {
    Splitter split(dialect);
    std::int64_t count = 0;
    while (p != end && count < most) {
        const Split result = split(p, end, last);
        if (result == Split::cut || result == Split::unclosed) break;
        p = split.next;
        if (result == Split::stray || split.fields.size() != samples.size() || split.is_empty()) continue;
        ++count;
        for (std::size_t i = 0; i < samples.size(); ++i) {
            const Field field = trimmed(split.fields[i]);
            Sample& sample = samples[i];
            if (i == label && field.data != field.end && sample.values.size() < distinct) {
                const std::string text(field.data, field.end);
                bool known = false;
                for (const std::string& value : sample.values) known = known || value == text;
                if (!known) sample.values.push_back(text);
            }
            if (is_absent(field)) continue;
            ++sample.present;
            double value = 0.0;
            if (parse_number(field.data, field.end, value) != Parsed::malformed) ++sample.numbers;
        }
    }
    return count;
}

}  // namespace ftprl
