// Kinds of columns whose features have names that are known before the cells: one entry each, in FIXED_KINDS.
//
//   boolean       "column=true", "column=false"
//   date          "column trend", years since the earliest date of the sample; "column weekday sin", "... cos" and
//                 "column weekday=Mon"
//   timestamp     the same, and "column hour sin", "... cos", "column hour=17", "column hour of week=Mon 17"
//   bucket        "column<2.5", "column 2.5..4", "column>=4": the bucket that a number falls into
//
// A new kind is one more entry here and one in src/ftprl/data/columns.py, which finds this one by its name.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "readers/columns.hpp"
#include "readers/dates.hpp"
#include "readers/number.hpp"
#include "readers/split.hpp"
#include "readers/values.hpp"

namespace ftprl {

using Numbers = std::vector<double>;  // what the sample says of a column: the edges of buckets, the earliest date

// Features of a cell: their positions among the names of the column, and their values.
struct FixedFeatures {
    static constexpr std::size_t MOST = 8;
    struct One {
        std::size_t number;
        double value;
    };
    void add(std::size_t number, double value = 1.0) noexcept { all[count++] = One{number, value}; }
    std::size_t count = 0;
    std::array<One, MOST> all;
};

struct FixedKind {
    const char* name;
    std::size_t most;  // features of one cell
    std::vector<std::string> (*names)(const std::string& column, const Numbers& numbers);
    bool (*read)(const Field& text, const Numbers& numbers, FixedFeatures& out);  // false for a cell that does not fit
    const char* (*expected)(const Field& text);                                   // what is said of such a cell
    // Where cells need not be written as text first: the feature of a number, and those of a moment in seconds since
    // 1970. Cells of true and false are features 1 and 0 if `has_truths`.
    std::size_t (*of_number)(double number, const Numbers& numbers) = nullptr;
    void (*of_moment)(std::int64_t seconds, const Numbers& numbers, FixedFeatures& out) = nullptr;
    bool has_truths = false;
};

// Whether a field is a word for true or false, whatever its case, as labels have them.
inline bool parse_boolean(const Field& field, bool& out) {
    static constexpr const char* words[] = {"0", "1", "false", "true", "f", "t", "no", "yes", "n", "y"};
    const auto size = static_cast<std::size_t>(field.end - field.data);
    if (size == 0 || size > 5) return false;
    std::string lower(field.data, field.end);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    for (std::size_t i = 0; i < std::size(words); ++i) {
        if (lower != words[i]) continue;
        out = i % 2 == 1;
        return true;
    }
    double number = 0.0;  // 1.0, of a column that was made of numbers
    if (parse_number(field.data, field.end, number) != Parsed::ok || (number != 0.0 && number != 1.0)) return false;
    out = number == 1.0;
    return true;
}

namespace detail {

// ---- numbers ----

inline const char* expected_number(const Field& text) {
    double number = 0.0;
    const bool is_malformed = parse_number(text.data, text.end, number) == Parsed::malformed;
    return is_malformed ? "expected a number" : "expected a finite number";
}

// ---- true and false ----

inline std::vector<std::string> boolean_names(const std::string& column, const Numbers& /*numbers*/) {
    return {column + "=false", column + "=true"};
}

inline bool read_boolean(const Field& text, const Numbers& /*numbers*/, FixedFeatures& out) {
    bool truth = false;
    if (!parse_boolean(text, truth)) return false;
    out.add(truth ? 1 : 0);
    return true;
}

inline const char* expected_boolean(const Field& /*text*/) { return "expected true or false"; }

// ---- dates ----

// Where the features of a date stand.
struct DateFeatures {
    static constexpr std::size_t TREND = 0, WEEKDAY_SINE = 1, WEEKDAY_COSINE = 2, WEEKDAY = 3;
    static constexpr std::size_t HOUR_SINE = 10, HOUR_COSINE = 11, HOUR = 12, HOUR_OF_WEEK = 36;
};

inline std::vector<std::string> date_names(const std::string& column, const Numbers& /*numbers*/) {
    static constexpr std::array<const char*, 7> days{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
    std::vector<std::string> names{column + " trend", column + " weekday sin", column + " weekday cos"};
    for (const char* day : days) names.push_back(column + " weekday=" + day);
    return names;
}

inline std::vector<std::string> timestamp_names(const std::string& column, const Numbers& numbers) {
    static constexpr std::array<const char*, 7> days{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
    std::vector<std::string> names = date_names(column, numbers);
    names.insert(names.end(), {column + " hour sin", column + " hour cos"});
    for (int hour = 0; hour < 24; ++hour) names.push_back(column + " hour=" + std::to_string(hour));
    for (const char* day : days) {
        for (int hour = 0; hour < 24; ++hour) {
            names.push_back(column + " hour of week=" + day + " " + std::to_string(hour));
        }
    }
    return names;
}

inline void date_of(std::int64_t seconds, const Numbers& numbers, FixedFeatures& out) {
    const double origin = numbers.empty() ? 0.0 : numbers.front();
    out.add(DateFeatures::TREND, (static_cast<double>(seconds) - origin) / YEAR_SECONDS);
    const std::size_t day = weekday_of(seconds);
    out.add(DateFeatures::WEEKDAY_SINE, Circle<7>::shared().sine[day]);
    out.add(DateFeatures::WEEKDAY_COSINE, Circle<7>::shared().cosine[day]);
    out.add(DateFeatures::WEEKDAY + day);
}

inline void timestamp_of(std::int64_t seconds, const Numbers& numbers, FixedFeatures& out) {
    date_of(seconds, numbers, out);
    const std::size_t minute = minute_of(seconds), hour = minute / 60;
    out.add(DateFeatures::HOUR_SINE, Circle<1440>::shared().sine[minute]);
    out.add(DateFeatures::HOUR_COSINE, Circle<1440>::shared().cosine[minute]);
    out.add(DateFeatures::HOUR + hour);
    out.add(DateFeatures::HOUR_OF_WEEK + 24 * weekday_of(seconds) + hour);
}

template <void (*of_moment)(std::int64_t, const Numbers&, FixedFeatures&)>
bool read_moment(const Field& text, const Numbers& numbers, FixedFeatures& out) {
    std::int64_t seconds = 0;
    if (parse_date(text.data, text.end, seconds) != DateParsed::ok) return false;
    of_moment(seconds, numbers, out);
    return true;
}

inline const char* expected_date(const Field& text) {
    std::int64_t seconds = 0;
    return parse_date(text.data, text.end, seconds) == DateParsed::invalid
               ? "expected a day and a time of the years 1 to 9999"
               : "expected a date such as 2024-05-31 or 2024-05-31T17:04:00Z";
}

// ---- buckets ----

inline std::string number_text(double value) {
    char scratch[LONGEST_VALUE];
    std::string text(scratch, write_value(scratch, value));
    const std::size_t size = text.size();
    return size > 2 && text.compare(size - 2, 2, ".0") == 0 ? text.substr(0, size - 2) : text;
}

// `edges` rise; a bucket begins at its edge.
inline std::vector<std::string> bucket_names(const std::string& column, const Numbers& edges) {
    if (edges.empty()) return {column + " any"};
    std::vector<std::string> names{column + "<" + number_text(edges.front())};
    for (std::size_t i = 1; i < edges.size(); ++i) {
        names.push_back(column + " " + number_text(edges[i - 1]) + ".." + number_text(edges[i]));
    }
    names.push_back(column + ">=" + number_text(edges.back()));
    return names;
}

inline std::size_t bucket_of(double number, const Numbers& edges) {
    return static_cast<std::size_t>(std::upper_bound(edges.begin(), edges.end(), number) - edges.begin());
}

inline bool read_bucket(const Field& text, const Numbers& edges, FixedFeatures& out) {
    double number = 0.0;
    if (parse_number(text.data, text.end, number) != Parsed::ok) return false;
    out.add(bucket_of(number, edges));
    return true;
}

}  // namespace detail

inline constexpr std::array FIXED_KINDS{
    FixedKind{"boolean", 1, detail::boolean_names, detail::read_boolean, detail::expected_boolean, nullptr, nullptr,
              true},
    FixedKind{"date", 4, detail::date_names, detail::read_moment<detail::date_of>, detail::expected_date, nullptr,
              detail::date_of},
    FixedKind{"timestamp", 8, detail::timestamp_names, detail::read_moment<detail::timestamp_of>, detail::expected_date,
              nullptr, detail::timestamp_of},
    FixedKind{"bucket", 1, detail::bucket_names, detail::read_bucket, detail::expected_number, detail::bucket_of},
};

inline constexpr std::array OTHER_KINDS{"ignore", "label", "weight", "categorical", "numeric", "text"};
inline constexpr std::size_t KINDS = OTHER_KINDS.size() + FIXED_KINDS.size();

// The entry of a kind; null for one that has none.
inline const FixedKind* fixed_kind(Column::Kind kind) noexcept {
    const auto code = static_cast<std::size_t>(kind);
    return code < OTHER_KINDS.size() ? nullptr : &FIXED_KINDS[code - OTHER_KINDS.size()];
}

// The names of a column's features that are known before its cells.
inline std::vector<std::string> fixed_features(const Column& column, const Numbers& numbers) {
    if (column.kind == Column::Kind::numeric) return {column.name};
    const FixedKind* const kind = fixed_kind(column.kind);
    return kind == nullptr ? std::vector<std::string>{} : kind->names(column.name, numbers);
}

// The most features that one cell of a kind makes; those of text are counted when it is read.
inline std::size_t most_features(Column::Kind kind) noexcept {
    const FixedKind* const entry = fixed_kind(kind);
    return entry == nullptr ? 1 : entry->most;
}

}  // namespace ftprl
