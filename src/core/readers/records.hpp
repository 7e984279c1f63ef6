// Records: rows of named values, such as dictionaries, in which any name may be missing. A name has the kind that was
// set for it, or its value decides: a number is numeric, anything else a category. A value may be a list, whose
// elements are read as in JSON's arrays (see elements.hpp). Labels and weights may also be separate columns, bound as
// in a frame.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "readers/frame.hpp"

namespace ftprl {

class RecordParser : public FrameParser {
public:
    using FrameParser::FrameParser;

    // How the values of a name are read. The object stays in place until the names are set again, if it lasts.
    struct Name {
        ColumnReader reader;
        bool by_value;
        bool lasts;
    };

    // The names whose kind is known; other values are read by their type, or skipped.
    void set_names(const std::vector<Column>& names, bool reads_others) {
        names_.clear();
        known_elements_.clear();
        known_capacity_ = 0;
        for (const Column& column : names) {
            names_.emplace(column.name, Name{reader_of(column), false, true});
            known_capacity_ += most_features(column.kind);
        }
        known_names_ = names_.size();
        reads_others_ = reads_others;
        objects_ = names_with_others_inside(names);
    }

    // True if a missing name must be reported: then all known names come first, in their order, as in a table.
    bool wants_missing() const noexcept { return marks_missing(); }

    // Starts the record of row `at`, of at most `size` values.
    void begin_record(std::size_t at, std::size_t size) {
        line = static_cast<std::int64_t>(at) + 1;
        at_ = at;
        y_ = MISSING;
        weight_ = 1.0;
        rest_ = size + known_capacity_;
        is_good_ = true;
        elements_ = nullptr;
        rows.begin(rest_);
    }

    // Makes space for `count` more values than announced.
    void expect_more(std::size_t count) {
        rest_ += count;
        rows.reserve(rest_);
    }

    // How the values of a name are read; null if they are skipped.
    const Name* find_name(const std::string& name) {
        const auto match = names_.find(name);
        if (match != names_.end()) return &match->second;
        if (!reads_others_ || !has_namespace(name)) return nullptr;
        const bool lasts = names_.size() - known_names_ < MOST_NEW_NAMES;
        Name fresh{reader_of(Column{Column::Kind::numeric, name}, lasts), true, lasts};
        if (lasts) return &names_.emplace(name, std::move(fresh)).first->second;
        passing_.assign(1, std::move(fresh));
        return &passing_.front();
    }
    // True if the namespace of a name is known; otherwise the record is bad.
    bool has_namespace(const std::string& name) {
        const std::string wrong = foreign_namespace(name);
        if (!wrong.empty()) refuse_value(wrong);
        return wrong.empty();
    }
    // True if the kind of this name was set.
    bool knows(const std::string& name) const {
        const auto match = names_.find(name);
        return match != names_.end() && !match->second.by_value;
    }
    // True if the values of this name, which may be a dict, are skipped as a whole.
    bool ignores(const std::string& name) const {
        const auto match = names_.find(name);
        return match != names_.end() && match->second.reader.kind == Column::Kind::ignore;
    }

    // True if a dict under this name is a map: a column without nested columns has the name, and no other keys are
    // read.
    bool is_map(const std::string& name) const {
        const auto match = reads_others_ ? names_.end() : names_.find(name);
        return match != names_.end() && makes_features(match->second.reader.kind) && objects_.count(name) == 0;
    }

    // True if any column is nested, and true if some column is nested within this name, which is no column itself.
    bool has_objects() const noexcept { return !objects_.empty(); }
    bool is_object(const std::string& name) const { return objects_.count(name) != 0 && !knows(name); }

    // Reports several values, such as a dict, where the label or the weight is expected.
    bool may_have_several(const std::string& name, const char* what) {
        const auto match = names_.find(name);
        if (match == names_.end() || match->second.by_value || makes_features(match->second.reader.kind)) return true;
        refuse_value(std::string("expected one value, got ") + what + " in column " + match->second.reader.name);
        return false;
    }

    // All additions until `end_list` are elements of a list of `count` values of `name`, which is written `path`.
    void begin_list(const Name& name, const std::string& path, std::size_t count) {
        expect_more(count);
        if (!name.lasts) {
            passing_elements_.assign(1, elements_of(path, false));
            elements_ = &passing_elements_.front();
            return;
        }
        auto match = known_elements_.find(path);
        if (match == known_elements_.end()) match = known_elements_.emplace(path, elements_of(path)).first;
        elements_ = &match->second;
    }
    // The next value is the element at this position, or with this name.
    void set_position(std::size_t position) {
        position_ = position;
        has_element_name_ = false;
    }
    void set_element_name(std::string name) {
        element_name_ = std::move(name);
        has_element_name_ = true;
    }
    void end_list() noexcept { elements_ = nullptr; }

    // The record has no value of this name.
    void add_missing(const Name& name) {
        if (elements_ != nullptr) return;  // an element that is missing does not make the list missing
        if (is_good_ && !name.by_value && makes_features(name.reader.kind)) missing(name.reader);
    }

    // A value of the record: a number, with `text()` as its spelling if that is needed, or a text alone.
    template <class Text>
    void add_number(const Name& name, double value, const Text& text) {
        if (!is_good_) return;
        const ColumnReader& column = name.reader;
        if (elements_ != nullptr && std::isnan(value)) return;
        if (column.kind != Column::Kind::numeric && !name.by_value) return add_text(name, text());
        if (std::isnan(value)) return add_missing(name);
        if (std::isinf(value)) {
            const Field field = text();
            refuse_value("expected a finite number, got " + quoted(field.data, field.end) + " in column " +
                         column.name);
        } else {
            add_number_of(name, value);
        }
    }

    void add_text(const Name& name, const Field& field) {
        if (!is_good_) return;
        if (elements_ != nullptr) {
            is_good_ = add_element(name, field);
        } else if (name.by_value) {
            // An empty text counts as None; only names of known columns have a feature for missing values.
            if (field.data != field.end) category(name.reader, field, false);
        } else {
            add_field(name.reader, field);
        }
    }

    // True or false: a category, or 1 and 0 in a numeric column.
    void add_boolean(const Name& name, bool value) {
        const Column::Kind kind = name.reader.kind;
        const FixedKind* const entry = name.reader.entry;
        const bool is_single_number = entry != nullptr && entry->of_number != nullptr && elements_ == nullptr;
        if (!name.by_value && (kind == Column::Kind::numeric || is_single_number)) {
            if (is_good_) add_number_of(name, value ? 1.0 : 0.0);
            return;
        }
        char scratch[LONGEST_VALUE];
        const auto* const end = reinterpret_cast<const Byte*>(write_value(scratch, value));
        add_text(name, Field{reinterpret_cast<const Byte*>(scratch), end, end});
    }

    void refuse_value(std::string message) {
        if (is_good_) refuse(std::move(message));
        is_good_ = false;
    }

    bool is_good() const noexcept { return is_good_; }  // the current record, so far

    void end_record() {
        for (FrameColumn& column : columns_) {
            if (is_good_) is_good_ = read_cell(column, at_, y_, weight_);
        }
        if (is_good_) finish(y_, weight_);
    }

private:
    static constexpr std::size_t MOST_NEW_NAMES = 100'000;  // that are remembered: there is no end to names

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
            default:
                is_good_ = feature(column, field, rest_, false);
        }
    }

    void add_number_of(const Name& name, double value) {
        if (elements_ == nullptr) return CellParser::add_number(name.reader, value);
        if (!has_element_name_) return add_at_position(*elements_, position_, value);
        add_named(*elements_, element_name(), value);
    }

    // Adds an element that is not a number, or an element to a column that is not numeric. False if it does not fit.
    bool add_element(const Name& name, const Field& field) {
        const ColumnReader& column = name.reader;
        const Column::Kind kind = name.by_value ? Column::Kind::categorical : column.kind;
        if (kind == Column::Kind::numeric) {
            const Field text = trimmed(field);
            double value = 0.0;
            if (is_absent(text)) return true;
            if (!parsed_number(column, text, value)) return false;
            add_number_of(name, value);
            return true;
        }
        if (field.data == field.end) return true;
        if (has_element_name_) {
            add_named(*elements_, element_name(), field);
        } else if (kind == Column::Kind::text) {
            text(column, field, rest_);
        } else if (kind == Column::Kind::categorical) {
            category(column, field, false);
        } else {
            refuse("expected one value, got a list in column " + column.name);
            return false;
        }
        return true;
    }

    Field element_name() const {
        const auto* const first = reinterpret_cast<const Byte*>(element_name_.data());
        return Field{first, first + element_name_.size(), first + element_name_.size()};
    }

    std::unordered_map<std::string, Name> names_;
    std::unordered_set<std::string> objects_;  // names that have known ones within them
    std::vector<Name> passing_;                // the name that was met last, if it is not remembered
    std::unordered_map<std::string, ElementReader> known_elements_;  // of names that had a list
    std::vector<ElementReader> passing_elements_;                    // of the name that was met last
    std::size_t known_names_ = 0;
    std::size_t known_capacity_ = 0;  // features of the known names
    bool reads_others_ = true;
    // The current record.
    std::size_t at_ = 0;
    std::size_t rest_ = 0;  // features it may have, words of text aside
    double y_ = MISSING;
    double weight_ = 1.0;
    bool is_good_ = true;
    // The current list.
    ElementReader* elements_ = nullptr;
    std::size_t position_ = 0;
    std::string element_name_;
    bool has_element_name_ = false;
};

}  // namespace ftprl
