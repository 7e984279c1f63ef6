// The fields of a row of a table: quoted or not, between separators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "readers/scan.hpp"

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
    explicit Splitter(const Dialect& dialect) : dialect_(dialect), stop_({dialect.separator, Byte{'\n'}}) {}

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

    // Reads the text after an opening quote; returns the position after the closing one, or null if there is none.
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

inline Field trimmed(Field field) {
    field.data = skip_blanks(field.data, field.end);
    while (field.end != field.data && is_blank(field.end[-1])) --field.end;
    return field;
}

// True if a field of a numeric column is a spelling of a missing number.
inline bool is_absent(const Field& field) {
    const auto size = static_cast<std::size_t>(field.end - field.data);
    if (size == 0) return true;
    if (size > 4) return false;
    std::string lower(field.data, field.end);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return lower == "na" || lower == "nan" || lower == "n/a" || lower == "#n/a" || lower == "null" || lower == "none" ||
           lower == "?";
}

}  // namespace ftprl
