// Columns of a table: their names and kinds.
//
//   categorical   "column=value"
//   numeric       "column" with the value
//   text          "column=word" for each word, lower-cased; repeated words add up
//
// All other kinds with features are entries of the table in kinds.hpp. A missing value is the feature
// "column is missing", if those are asked for.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_set>
#include <vector>

namespace ftprl {

struct Column {
    // From `first_fixed` on they are the entries of FIXED_KINDS.
    enum class Kind { ignore, label, weight, categorical, numeric, text, first_fixed };
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

}  // namespace ftprl
