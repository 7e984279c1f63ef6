// What the first lines of JSON say of their columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "readers/json.hpp"
#include "readers/json_lines.hpp"
#include "readers/table.hpp"

namespace ftprl {

class JsonSample {
public:
    // Looks for up to `distinct` values of the column `label`.
    JsonSample(std::string label, std::size_t distinct) : label_(std::move(label)), distinct_(distinct) {}

    // Looks at up to `most` lines and returns how many it saw. Lines that are no JSON are left out.
    std::int64_t operator()(const Byte* p, const Byte* end, bool last, std::int64_t most) {
        std::int64_t count = 0;
        for (const Byte* newline = nullptr; p != end && count < most; p = newline == end ? end : newline + 1) {
            newline = find(p, end, '\n');
            if (newline == end && !last) break;
            const Byte* const first = skip_blanks(p, newline);
            if (first == newline) continue;
            ++count;
            entry_of_ = ROOT;
            walk_(first, newline, end, ROOT);
        }
        return count;
    }

    std::vector<std::pair<std::string, ColumnSample>> columns;  // in the order of their first values

private:
    friend class JsonWalk<JsonSample>;
    using Scope = std::size_t;  // a path
    static constexpr Scope ROOT = 0;

    Scope enter(Scope object, const Field& key) {
        std::string path = object == ROOT ? std::string() : paths_[object] + ".";
        path.append(key.data, key.end);
        const auto [found, is_new] = numbers_.emplace(path, paths_.size());
        if (is_new) paths_.push_back(std::move(path));
        return found->second;
    }

    static const ExpectedKey* expected(Scope) { return nullptr; }
    static Scope enter_expected(Scope object) { return object; }
    static bool skips(Scope) { return false; }
    bool number(Scope scope, const Field& text, std::ptrdiff_t) {
        count(scope, true, text);
        return true;
    }
    bool text(Scope scope, const Field& text, std::ptrdiff_t) {
        count(scope, false, text);
        return true;
    }
    bool boolean(Scope scope, bool value, std::ptrdiff_t) {
        count(scope, false, spelled(value));
        return true;
    }
    static void count_missing(Scope, std::ptrdiff_t) {}

    // Objects of an array count as what their values are, under the name of the array.
    bool open_object(Scope& scope, std::ptrdiff_t place) {
        if (place == NO_PLACE) return true;
        entry_of_ = scope;
        return true;
    }
    static bool close_object(Scope) { return true; }
    static bool open_array(Scope, std::ptrdiff_t) { return true; }
    bool close_array(Scope) {
        entry_of_ = ROOT;
        return true;
    }

    void count(Scope scope, bool is_number, const Field& text) {
        if (entry_of_ != ROOT && scope != entry_of_) {
            const std::string& path = paths_[scope];
            const std::string& array = paths_[entry_of_];
            if (path != array + ".value") return;
            scope = entry_of_;
        }
        if (columns_.size() <= scope) columns_.resize(scope + 1, NONE);
        if (columns_[scope] == NONE) {
            columns_[scope] = columns.size();
            columns.emplace_back(paths_[scope], ColumnSample{});
        }
        ColumnSample& sample = columns[columns_[scope]].second;
        ++sample.present;
        sample.numbers += is_number ? 1 : 0;
        if (paths_[scope] == label_) see(sample, std::string(text.data, text.end));
    }

    void see(ColumnSample& sample, const std::string& value) const {
        if (value.empty() || sample.values.size() >= distinct_) return;
        for (const std::string& known : sample.values) {
            if (known == value) return;
        }
        sample.values.push_back(value);
    }

    static constexpr std::size_t NONE = ~std::size_t{0};
    std::string label_;
    std::size_t distinct_;
    std::vector<std::string> paths_{std::string()};
    std::unordered_map<std::string, std::size_t> numbers_;
    std::vector<std::size_t> columns_;  // of a path: its place in `columns`
    Scope entry_of_ = ROOT;             // the array whose objects are read
    JsonWalk<JsonSample> walk_{*this};
};

}  // namespace ftprl
