// Records: rows of named values, such as dictionaries, in which any name may be missing.
//
// A name has the kind it was given, or is read by its value: a number is numeric, anything else a category. Labels and
// weights may also be columns beside the records, bound as those of a frame.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "readers/frame.hpp"

namespace ftprl {

class RecordParser final : public FrameParser {
public:
    using FrameParser::FrameParser;

    // The names whose kind is known; others are read by their values, or else left out.
    void set_names(const std::vector<Column>& names, bool reads_others) {
        names_.clear();
        known_capacity_ = 0;
        for (const Column& column : names) {
            names_.emplace(column.name, Name{reader_of(column), false});
            known_capacity_ += most_features(column.kind);
        }
        known_names_ = names_.size();
        reads_others_ = reads_others;
    }

    // Whether a name that a record lacks has to be told: then all known names come first, in their order, as in a
    // table.
    bool wants_missing() const noexcept { return marks_missing(); }

    // Starts the record of row `at`, of at most `size` values.
    void begin_record(std::size_t at, std::size_t size) {
        line = static_cast<std::int64_t>(at) + 1;
        at_ = at;
        y_ = MISSING;
        weight_ = 1.0;
        rest_ = size + known_capacity_;
        is_good_ = true;
        rows.begin(rest_);
    }

    // The record has no value of this name.
    void add_missing(const std::string& name) {
        const auto known = names_.find(name);
        if (!is_good_ || known == names_.end() || known->second.by_value) return;
        if (makes_features(known->second.reader.kind)) missing(known->second.reader);
    }

    // A value of the record: a number, with `field` as its text, or a text alone.
    void add_number(const std::string& name, double value, const Field& field) {
        const Name* const known = find_name(name);
        if (!is_good_ || known == nullptr) return;
        const ColumnReader& column = known->reader;
        if (column.kind != Column::Kind::numeric && !known->by_value) return add_field(column, field);
        if (std::isnan(value)) return add_missing(name);
        if (std::isinf(value)) {
            refuse_value("expected a finite number, got " + quoted(field.data, field.end) + " in column " +
                         column.name);
        } else {
            CellParser::add_number(column, value);
        }
    }

    void add_text(const std::string& name, const Field& field) {
        const Name* const known = find_name(name);
        if (!is_good_ || known == nullptr) return;
        if (known->by_value) {
            // An empty text counts as None, and only names of known columns have a feature where they are missing.
            if (field.data != field.end) category(known->reader, field, false);
        } else {
            add_field(known->reader, field);
        }
    }

    // True or false: a category, or 1 and 0 in a numeric column.
    void add_boolean(const std::string& name, bool value) {
        const Name* const known = find_name(name);
        if (known != nullptr && !known->by_value && is_number(known->reader.kind)) {
            if (is_good_) CellParser::add_number(known->reader, value ? 1.0 : 0.0);
            return;
        }
        char room[LONGEST_VALUE];
        const auto* const end = reinterpret_cast<const Byte*>(write_value(room, value));
        add_text(name, Field{reinterpret_cast<const Byte*>(room), end, end});
    }

    bool knows(const std::string& name) const {
        const auto found = names_.find(name);
        return found != names_.end() && !found->second.by_value;
    }

    // Whether a value of this name counts; for those that are hard to read.
    bool uses(const std::string& name) {
        const Name* const known = find_name(name);
        return known != nullptr && known->reader.kind != Column::Kind::ignore;
    }

    void refuse_value(std::string message) {
        if (is_good_) refuse(std::move(message));
        is_good_ = false;
    }

    void end_record() {
        for (FrameColumn& column : columns()) {
            if (is_good_) is_good_ = read_cell(column, at_, y_, weight_);
        }
        if (is_good_) finish(y_, weight_);
    }

private:
    struct Name {
        ColumnReader reader;
        bool by_value;
    };
    static constexpr std::size_t MOST_NEW_NAMES = 100'000;  // that are remembered: there is no end to names

    const Name* find_name(const std::string& name) {
        const auto found = names_.find(name);
        if (found != names_.end()) return &found->second;
        if (!reads_others_) return nullptr;
        const bool lasts = names_.size() - known_names_ < MOST_NEW_NAMES;
        Name fresh{reader_of(Column{Column::Kind::numeric, name}, lasts), true};
        if (lasts) return &names_.emplace(name, std::move(fresh)).first->second;
        passing_.assign(1, std::move(fresh));
        return &passing_.front();
    }

    void add_field(const ColumnReader& column, const Field& field) {
        switch (column.kind) {
            case Column::Kind::ignore:
                return;
            case Column::Kind::label:
                is_good_ = label(column, field, y_);
                return;
            case Column::Kind::weight:
                is_good_ = importance(column, field, weight_);
                return;
            case Column::Kind::delay:
                is_good_ = lateness(column, field);
                return;
            default:
                is_good_ = feature(column, field, rest_, false);
        }
    }

    static bool is_number(Column::Kind kind) noexcept {
        return kind == Column::Kind::numeric || kind == Column::Kind::bucket;
    }

    std::unordered_map<std::string, Name> names_;
    std::vector<Name> passing_;  // the name that was met last, if it is not remembered
    std::size_t known_names_ = 0;
    std::size_t known_capacity_ = 0;  // features of the known names
    bool reads_others_ = true;
    // The current record.
    std::size_t at_ = 0;
    std::size_t rest_ = 0;  // features it may have, words of text aside
    double y_ = MISSING;
    double weight_ = 1.0;
    bool is_good_ = true;
};

}  // namespace ftprl
