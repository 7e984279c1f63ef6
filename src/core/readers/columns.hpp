// Columns of a table: their kinds, and the features with fixed names that each kind makes.
//
//   categorical   "column=value"
//   numeric       "column" with the value
//   text          "column=word" for each word, lower-cased; repeated words add up
//   boolean       "column=true", "column=false"
//   bucket        "column<2.5", "column 2.5..4", "column>=4": the bucket that a number falls into
//   date          "column trend", years since the earliest date of the sample; "column weekday sin", "... cos" and
//                 "column weekday=Mon"
//   timestamp     the same, and "column hour sin", "... cos", "column hour=17", "column hour of week=Mon 17"
//
// A missing value is the feature "column is missing", if those are asked for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "readers/dates.hpp"
#include "readers/values.hpp"

namespace ftprl {

struct Column {
    enum class Kind { ignore, label, weight, categorical, numeric, text, boolean, date, timestamp, bucket };
    static constexpr int KINDS = 10;
    Kind kind;
    std::string name;
};

// True if a column has features; other columns hold labels, weights and the like.
inline bool makes_features(Column::Kind kind) noexcept {
    return kind != Column::Kind::ignore && kind != Column::Kind::label && kind != Column::Kind::weight;
}

inline constexpr char IS_MISSING[] = " is missing";  // behind the name of a column

inline std::string missing_feature(const std::string& column) { return column + IS_MISSING; }

// The names that contain other names: "a" and "a.b" if there is a column "a.b.c".
inline std::unordered_set<std::string> names_with_others_inside(const std::vector<Column>& columns) {
    std::unordered_set<std::string> objects;
    for (const Column& column : columns) {
        for (std::size_t dot = column.name.find('.'); dot != std::string::npos; dot = column.name.find('.', dot + 1)) {
            objects.insert(column.name.substr(0, dot));
        }
    }
    return objects;
}

// True if a column of this kind may have elements with names.
inline bool may_be_map(Column::Kind kind) noexcept {
    return kind == Column::Kind::categorical || kind == Column::Kind::numeric || kind == Column::Kind::text;
}

// The positions of a date's features among the features with fixed names.
struct DateFeatures {
    static constexpr std::size_t TREND = 0, WEEKDAY_SINE = 1, WEEKDAY_COSINE = 2, WEEKDAY = 3;
    static constexpr std::size_t HOUR_SINE = 10, HOUR_COSINE = 11, HOUR = 12, HOUR_OF_WEEK = 36;
    static constexpr std::size_t OF_DATE = 4, OF_TIMESTAMP = 8;  // features of one cell
};

namespace detail {

inline std::string number_text(double value) {
    char scratch[LONGEST_VALUE];
    std::string text(scratch, write_value(scratch, value));
    const std::size_t size = text.size();
    return size > 2 && text.compare(size - 2, 2, ".0") == 0 ? text.substr(0, size - 2) : text;
}

inline std::vector<std::string> date_features(const std::string& column, bool has_hour) {
    static constexpr std::array<const char*, 7> days{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
    std::vector<std::string> names{column + " trend", column + " weekday sin", column + " weekday cos"};
    for (const char* day : days) names.push_back(column + " weekday=" + day);
    if (!has_hour) return names;
    names.insert(names.end(), {column + " hour sin", column + " hour cos"});
    for (int hour = 0; hour < 24; ++hour) names.push_back(column + " hour=" + std::to_string(hour));
    for (const char* day : days) {
        for (int hour = 0; hour < 24; ++hour) {
            names.push_back(column + " hour of week=" + day + " " + std::to_string(hour));
        }
    }
    return names;
}

// `edges` rise; a bucket includes its lower edge.
inline std::vector<std::string> bucket_features(const std::string& column, const std::vector<double>& edges) {
    if (edges.empty()) return {column + " any"};
    std::vector<std::string> names{column + "<" + number_text(edges.front())};
    for (std::size_t i = 1; i < edges.size(); ++i) {
        names.push_back(column + " " + number_text(edges[i - 1]) + ".." + number_text(edges[i]));
    }
    names.push_back(column + ">=" + number_text(edges.back()));
    return names;
}

}  // namespace detail

// The names of a column's features that are known before its cells. `numbers` come from the sample: the edges of
// buckets.
inline std::vector<std::string> fixed_features(const Column& column, const std::vector<double>& numbers) {
    switch (column.kind) {
        case Column::Kind::numeric:
            return {column.name};
        case Column::Kind::boolean:
            return {column.name + "=false", column.name + "=true"};
        case Column::Kind::date:
        case Column::Kind::timestamp:
            return detail::date_features(column.name, column.kind == Column::Kind::timestamp);
        case Column::Kind::bucket:
            return detail::bucket_features(column.name, numbers);
        default:
            return {};
    }
}

// The largest number of features from one cell of a kind; text is counted when it is read.
inline std::size_t most_features(Column::Kind kind) noexcept {
    return kind == Column::Kind::timestamp ? DateFeatures::OF_TIMESTAMP
           : kind == Column::Kind::date    ? DateFeatures::OF_DATE
                                           : 1;
}

}  // namespace ftprl
