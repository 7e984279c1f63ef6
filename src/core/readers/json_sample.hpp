// A sample of the first lines of JSON: the kinds of values in their columns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "readers/json.hpp"
#include "readers/json_spelling.hpp"
#include "readers/sample.hpp"

namespace ftprl {

class JsonSample {
public:
    // Collects up to `distinct` values of the column `label`, and the numbers of some columns.
    JsonSample(std::string label, std::size_t distinct, std::vector<std::string> keep)
        : label_(std::move(label)), distinct_(distinct), keep_(std::move(keep)) {}

    // A column: how many of its values are numbers, and whether a line may have several values.
    struct Column {
        std::string name;
        std::int64_t numbers = 0;
        bool has_several = false;
        ColumnSample sample;
    };

    // Reads up to `most` lines and returns their number. Lines that are not JSON are skipped.
    std::int64_t operator()(const Byte* p, const Byte* end, bool last, std::int64_t most) {
        std::int64_t count = 0;
        for (const Byte* newline = nullptr; p != end && count < most; p = newline == end ? end : newline + 1) {
            newline = find(p, end, '\n');
            if (newline == end && !last) break;
            const Byte* const first = skip_blanks(p, newline);
            if (first == newline) continue;
            ++count;
            entry_of_ = ROOT;
            next_ = 0;
            walk_(first, newline, end, ROOT);
        }
        return count;
    }

    std::vector<Column> columns;  // in the order in which they were met

private:
    friend class JsonWalk<JsonSample>;
    using Scope = std::size_t;  // a path
    static constexpr Scope ROOT = 0;

    // Most rows have their keys in one order: a key is first compared with the key at this position of the previous
    // row.
    struct Known {
        Scope object;
        Scope scope;
        ExpectedKey key;
    };
    static constexpr std::size_t LONGEST_ORDER = 4096;

    Scope enter(Scope object, const Field& key) {
        std::string path = object == ROOT ? std::string() : paths_[object] + ".";
        path.append(key.data, key.end);
        const auto [match, is_new] = numbers_.emplace(path, paths_.size());
        if (is_new) paths_.push_back(std::move(path));
        const Scope scope = match->second;
        if (next_ < LONGEST_ORDER) {
            if (next_ >= order_.size()) order_.emplace_back();
            order_[next_++] = Known{object, scope, ExpectedKey(std::string(key.data, key.end))};
        }
        return scope;
    }

    const ExpectedKey* expected(Scope object) const {
        return next_ < order_.size() && order_[next_].object == object ? &order_[next_].key : nullptr;
    }
    Scope enter_expected(Scope) { return order_[next_++].scope; }
    static bool skips(Scope) { return false; }
    bool number(Scope scope, const Field& text, std::ptrdiff_t position) {
        count(scope, true, text, position);
        return true;
    }
    bool text(Scope scope, const Field& text, std::ptrdiff_t position) {
        count(scope, false, text, position);
        return true;
    }
    bool boolean(Scope scope, bool value, std::ptrdiff_t position) {
        count(scope, false, spelled(value), position);
        return true;
    }
    // A key keeps its position also if its value is null.
    void count_missing(Scope scope, std::ptrdiff_t position) {
        if (position == NOT_IN_ARRAY && entry_of_ == ROOT) column_of(scope);
    }

    // Objects of an array count with their values, under the name of the array.
    bool open_object(Scope& scope, std::ptrdiff_t position) {
        if (position == NOT_IN_ARRAY) return true;
        entry_of_ = scope;
        return true;
    }
    static bool close_object(Scope) { return true; }
    static bool open_array(Scope, std::ptrdiff_t) { return true; }
    bool close_array(Scope) {
        entry_of_ = ROOT;
        return true;
    }

    void count(Scope scope, bool is_number, const Field& text, std::ptrdiff_t position) {
        const bool is_one_of_several = position != NOT_IN_ARRAY || entry_of_ != ROOT;
        if (entry_of_ != ROOT && scope != entry_of_) {
            const std::string& path = paths_[scope];
            const std::string& array = paths_[entry_of_];
            if (path != array + ".value") return;
            scope = entry_of_;
        }
        Column& column = column_of(scope);
        column.numbers += is_number ? 1 : 0;
        column.has_several = column.has_several || is_one_of_several;
        column.sample.add(text);
        if (column.name == label_) column.sample.add_label(text, distinct_);
    }

    Column& column_of(Scope scope) {
        if (columns_.size() <= scope) columns_.resize(scope + 1, NONE);
        if (columns_[scope] == NONE) {
            columns_[scope] = columns.size();
            Column& fresh = columns.emplace_back();
            fresh.name = paths_[scope];
            fresh.sample.keeps_values = std::find(keep_.begin(), keep_.end(), fresh.name) != keep_.end();
        }
        return columns[columns_[scope]];
    }

    static constexpr std::size_t NONE = ~std::size_t{0};
    std::string label_;
    std::size_t distinct_;
    std::vector<std::string> keep_;
    std::vector<std::string> paths_{std::string()};
    std::unordered_map<std::string, std::size_t> numbers_;
    std::vector<std::size_t> columns_;  // of a path: its number in `columns`
    Scope entry_of_ = ROOT;             // the array whose objects are read
    std::vector<Known> order_;          // the keys of the row before
    std::size_t next_ = 0;              // how many keys the current row has so far
    JsonWalk<JsonSample> walk_{*this};
};

}  // namespace ftprl
