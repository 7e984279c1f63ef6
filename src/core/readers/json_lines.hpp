// JSON lines: one object per line, with each key a column of a table in which any column may be missing. A nested
// object is flattened: {"a": {"b": 1}} has the column "a.b". Arrays have several values (see elements.hpp); the objects
// of an array need a name (or key) and a value. A column has the kind that was set for it, or its values decide:
// numbers are numeric, anything else is a category.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "readers/joined_features.hpp"
#include "readers/json.hpp"
#include "readers/json_columns.hpp"
#include "readers/json_shape.hpp"
#include "readers/json_spelling.hpp"

namespace ftprl {

class JsonLinesParser final : public JsonColumns {
public:
    JsonLinesParser(const Options& options, Labels labels) : JsonColumns(options, std::move(labels)) {}

    // The columns whose kind is known; the values decide for all other columns.
    void set_names(const std::vector<Column>& names) {
        set_known(names);
        shape_.forget();
        failures_ = 0;
    }

private:
    friend class JsonWalk<JsonLinesParser>;
    friend class JsonShape<Node>;

    static constexpr int MOST_FAILURES = 16;  // one after the other: then rows have no common shape
    // The value of an object of an array, as it is written.
    enum class EntryValue : std::uint8_t { null, number, text, yes, no };
    struct Entry {
        EntryValue type = EntryValue::null;
        std::string text;
    };
    struct Pair {
        Node* column;
        Entry value;
    };

    void parse(const Byte* p, const Byte* eol, const Byte* end) override {
        line_ = p;
        line_end_ = eol;
        if (shape_.is_known()) {
            begin();
            const ShapeRead read = shape_.read(p, eol, end, *this, joined_);
            if (read == ShapeRead::whole) return finish(y_, weight_);
            if (read == ShapeRead::refused) return;
        }
        begin();
        is_regular_ = true;
        if (walk_(p, eol, end, &root_)) {
            if (is_regular_ && failures_ < MOST_FAILURES) learn_shape(p, eol);
            if (marks_missing()) arrange();
            return finish(y_, weight_);
        }
        if (walk_.fault.empty()) return;
        const std::string& name = current_->reader.name;
        refuse(walk_.fault + (current_ == &root_ ? std::string() : " in column " + name));
    }

    void begin() {
        y_ = MISSING;
        weight_ = 1.0;
        begin_keys();
        rows.begin(static_cast<std::size_t>(line_end_ - line_) / 2 + 1 + known_capacity_);
    }

    // ---- rows with the shape of the previous row ----

    static Scope scope_of(Node& node) noexcept { return &node; }

    // Adds a text to the joined features if it is a category of a known column.
    bool joins(const JsonShape<Node>::Step& step, const Field& text) {
        if (step.beginning == nullptr || text.data == text.end) return false;
        joined_.add(*step.beginning, step.group, text.data, static_cast<std::size_t>(text.end - text.data));
        return true;
    }

    // True if values of the key may add features; labels and weights add none.
    static bool may_add(const Node* node) { return node->by_value || makes_features(node->reader.kind); }

    // Learns the shape of a row whose keys equal those of the previous row. If missing values have features, columns
    // must be complete and in order.
    void learn_shape(const Byte* p, const Byte* eol) {
        bool is_good = shape_.learn(p, eol, order_.data(), next_);
        std::size_t rank = 0;
        for (const auto& step : shape_.steps()) {
            const Node* const node = step.node;
            is_good = is_good && (node == nullptr || node->role == Node::Role::column);
            if (node == nullptr || !marks_missing()) continue;
            const bool has_features = node->rank != UNRANKED || (node->by_value && reads_others);
            is_good = is_good && (node->rank == UNRANKED ? !has_features || rank == known_.size() : node->rank == rank);
            rank += node->rank != UNRANKED ? 1 : 0;
        }
        std::size_t ranked = 0;
        for (const KeyFeatures& one : key_features_) ranked += one.rank != UNRANKED ? 1 : 0;
        is_good = is_good && (!marks_missing() || (rank == known_.size() && ranked == rank));
        failures_ = is_good ? 0 : failures_ + 1;
        if (!is_good) shape_.forget();
        for (auto& step : shape_.steps()) {
            const Node* const node = step.node;
            if (node == nullptr || node->by_value || node->reader.kind != Kind::categorical) continue;
            step.beginning = &node->reader.with_value;
            step.group = node->reader.group;
        }
    }

    // ---- members that a walk calls ----

    Scope enter(Scope object, const Field& key) {
        is_regular_ = false;
        if (object->role == Node::Role::entry) return entry_part(key);
        return enter_column(object, key);
    }

    static bool skips(const Node* scope) { return scope->reader.kind == Kind::ignore; }

    bool number(Scope scope, const Field& text, std::ptrdiff_t position) {
        if (scope->role == Node::Role::element) return element_number(*scope, text);
        if (scope->role != Node::Role::column) return entry_number(scope, text);
        if (scope->by_value && !reads_others) return true;
        if (scope->by_value && is_foreign(*scope)) return false;
        const bool is_numeric = scope->by_value || scope->reader.kind == Kind::numeric;
        if (!is_numeric) {
            char scratch[LONGEST_VALUE];
            const bool is_feature = scope->reader.kind == Kind::categorical || scope->reader.kind == Kind::text;
            return field(*scope, is_feature ? spelled(text, scratch) : text, position);
        }
        double value = 0.0;
        if (!parsed_number(scope->reader, text, value)) return false;
        add_number(*scope, value, position);
        return true;
    }

    bool text(Scope scope, const Field& text, std::ptrdiff_t position) {
        if (scope->role == Node::Role::element) return element_text(*scope, text);
        if (scope->role != Node::Role::column) return entry_text(scope, text);
        return field(*scope, text, position);
    }

    bool boolean(Scope scope, bool value, std::ptrdiff_t position) {
        if (scope->role == Node::Role::element) return element_boolean(*scope, value);
        if (scope->role != Node::Role::column) return entry_boolean(scope, value);
        if (!scope->by_value && scope->reader.kind == Kind::numeric) {
            add_number(*scope, value ? 1.0 : 0.0, position);
            return true;
        }
        return field(*scope, spelled(value), position);
    }

    // Null; within an array it is skipped.
    void count_missing(Scope scope, std::ptrdiff_t position) {
        if (position == NOT_IN_ARRAY && scope->rank != UNRANKED && scope->role == Node::Role::column)
            missing(scope->reader);
        if (scope->role == Node::Role::entry_value) entry_.type = EntryValue::null;
    }

    bool open_object(Scope& scope, std::ptrdiff_t position) {
        if (scope->role == Node::Role::element) return true;
        if (scope->role != Node::Role::column) return refuse_nested(*scope, "an object within an object of an array");
        if (position == NOT_IN_ARRAY) {
            if (!is_map(*scope) || may_be_map(scope->reader.kind)) return is_no_single(*scope, "an object");
            refuse("expected one value, got an object in column " + scope->reader.name);
            return false;
        }
        if (!is_no_single(*scope, "an array")) return false;
        owner_ = scope;
        has_name_ = false;
        entry_.type = EntryValue::null;
        scope = &entry_node_;
        return true;
    }

    bool close_object(const Node* scope) {
        if (scope->role != Node::Role::entry || !has_name_) return true;
        if (Node* const column = owner_->has_columns ? known_column(owner_, entry_name_) : nullptr) {
            keep_pair(*column);
            return true;
        }
        if (entry_.type == EntryValue::null || (owner_->by_value && !reads_others)) return true;
        return add_entry();
    }

    bool open_array(Scope& scope, std::ptrdiff_t position) {
        if (scope->role == Node::Role::element) {
            refuse("expected numbers or text in an object, got an array in column " + scope->map->reader.name);
            return false;
        }
        if (position != NOT_IN_ARRAY || scope->role != Node::Role::column) {
            return refuse_nested(*scope, "an array within an array");
        }
        pairs_.clear();
        return is_no_single(*scope, "an array");
    }

    // Pairs of a name and a value are read as values of the columns that the names denote.
    bool close_array(const Node*) {
        for (std::size_t i = 0; i < pairs_.size(); ++i) {
            if (!add_pair(pairs_[i])) return false;
        }
        pairs_.clear();
        return true;
    }

    // ---- values ----

    // True if a key is in a namespace that a model of VW text does not have; then the row is bad.
    bool is_foreign(const Node& node) {
        const std::string wrong = foreign_namespace(node.elements.name);
        if (!wrong.empty()) refuse(wrong);
        return !wrong.empty();
    }

    // Adds a value that is not a number, or a number to a column that is not numeric.
    bool field(Node& node, const Field& field, std::ptrdiff_t position) {
        if (node.by_value && !reads_others) return true;
        if (node.by_value && is_foreign(node)) return false;
        switch (node.by_value ? Kind::categorical : node.reader.kind) {
            case Kind::label:
                return label(node.reader, field, y_);
            case Kind::weight:
                return importance(node.reader, field, weight_);
            case Kind::text:
                if (position == NOT_IN_ARRAY || field.data != field.end) {
                    ElementParser::text(node.reader, field, known_capacity_);
                }
                return true;
            case Kind::numeric:
                return written_number(node, trimmed(field), position);
            case Kind::categorical:
                // An empty text counts as null: only a known column has a feature for a missing value.
                if (field.data != field.end || (position == NOT_IN_ARRAY && !node.by_value)) {
                    category(node.reader, field, stays(field));
                }
                return true;
            default:
                return is_single(node, position) && feature(node.reader, field, 0);
        }
    }

    // True if a text is part of the line, and not of scratch memory that the next value may overwrite.
    bool stays(const Field& field) const noexcept {
        const std::less<const Byte*> is_before;
        return !is_before(field.data, line_) && is_before(field.data, line_end_);
    }

    // A date, a bucket, true or false, which must be a single value of a line.
    bool is_single(const Node& node, std::ptrdiff_t position) {
        if (position != NOT_IN_ARRAY) refuse("expected one value, got an array in column " + node.reader.name);
        return position == NOT_IN_ARRAY;
    }

    bool written_number(Node& node, const Field& text, std::ptrdiff_t position) {
        double value = 0.0;
        if (is_absent(text)) {
            if (position == NOT_IN_ARRAY) missing(node.reader);
            return true;
        }
        if (!parsed_number(node.reader, text, value)) return false;
        add_number(node, value, position);
        return true;
    }

    using ElementParser::add_number;
    void add_number(Node& node, double value, std::ptrdiff_t position) {
        if (position == NOT_IN_ARRAY) return CellParser::add_number(node.reader, value);
        add_at_position(node.elements, static_cast<std::size_t>(position), value);
    }

    // The label and the weight must be single values.
    bool is_no_single(const Node& node, const char* what) {
        const Kind kind = node.reader.kind;
        const bool is_single = !node.by_value && kind != Kind::ignore && !makes_features(kind);
        if (is_single) refuse(std::string("expected one value, got ") + what + " in column " + node.reader.name);
        return !is_single;
    }

    bool refuse_nested(const Node& node, const char* what) {
        const std::string& name = node.role == Node::Role::column ? node.reader.name : owner_->reader.name;
        refuse(std::string("expected numbers, text, or objects with a name and a value in an array, got ") + what +
               " in column " + name);
        return false;
    }

    // ---- objects that are maps: named elements, as in a map of Arrow ----

    // The name of an element: its path within the map.
    static Field name_of(const Node& element) {
        const std::string& path = element.elements.name;
        const auto* const first = reinterpret_cast<const Byte*>(path.data());
        const Byte* const end = first + path.size();
        return Field{first + element.map->elements.name.size() + 1, end, end};
    }

    bool element_number(const Node& element, const Field& text) {
        char scratch[LONGEST_VALUE];
        if (element.map->reader.kind != Kind::numeric) return element_text(element, spelled(text, scratch));
        double value = 0.0;
        if (!parsed_number(element.map->reader, text, value)) return false;
        add_named(element.map->elements, name_of(element), value);
        return true;
    }

    bool element_text(const Node& element, const Field& text) {
        if (element.map->reader.kind == Kind::numeric) {
            const Field number = trimmed(text);
            return is_absent(number) || element_number(element, number);
        }
        if (text.data != text.end) add_named(element.map->elements, name_of(element), text);
        return true;
    }

    bool element_boolean(const Node& element, bool value) {
        if (element.map->reader.kind != Kind::numeric) return element_text(element, spelled(value));
        add_named(element.map->elements, name_of(element), value ? 1.0 : 0.0);
        return true;
    }

    // ---- objects of an array: a name and a value ----

    Scope entry_part(const Field& key) {
        const std::string name(key.data, key.end);
        const bool is_name = name == "name" || name == "key";
        return is_name ? &entry_name_node_ : name == "value" ? &entry_value_node_ : &entry_other_node_;
    }

    bool entry_number(const Node* part, const Field& text) {
        char scratch[LONGEST_VALUE];
        const bool is_value = part->role == Node::Role::entry_value;
        return keep(part, EntryValue::number, is_value ? text : spelled(text, scratch));
    }

    bool entry_text(const Node* part, const Field& text) { return keep(part, EntryValue::text, text); }

    bool entry_boolean(const Node* part, bool value) {
        return keep(part, value ? EntryValue::yes : EntryValue::no, spelled(value));
    }

    bool keep(const Node* part, EntryValue type, const Field& text) {
        if (part->role == Node::Role::entry_other) return refuse_nested(*part, "an object with other keys");
        if (part->role == Node::Role::entry_name) {
            entry_name_.assign(text.data, text.end);
            has_name_ = true;
        } else {
            entry_.type = type;
            entry_.text.assign(text.data, text.end);
        }
        return true;
    }

    static Field field_of(const std::string& text) {
        const auto* const first = reinterpret_cast<const Byte*>(text.data());
        return Field{first, first + text.size(), first + text.size()};
    }

    // Adds the element with a name to the array.
    bool add_entry() {
        const bool is_boolean = entry_.type == EntryValue::yes || entry_.type == EntryValue::no;
        const Field name = field_of(entry_name_);
        Field value = field_of(entry_.text);
        char scratch[LONGEST_VALUE];
        double number = entry_.type == EntryValue::yes ? 1.0 : 0.0;
        if (owner_->by_value ? entry_.type == EntryValue::number : owner_->reader.kind == Kind::numeric) {
            if (!is_boolean) {
                value = trimmed(value);
                if (is_absent(value)) return true;
                if (!parsed_number(owner_->reader, value, number)) return false;
            }
            add_named(owner_->elements, name, number);
            return true;
        }
        if (entry_.type == EntryValue::number) value = spelled(value, scratch);
        if (value.data != value.end) add_named(owner_->elements, name, value);
        return true;
    }

    // If a name occurs twice the last value counts, as in a dict.
    void keep_pair(Node& column) {
        for (Pair& pair : pairs_) {
            if (pair.column == &column) {
                pair.value = entry_;
                return;
            }
        }
        pairs_.push_back(Pair{&column, entry_});
    }

    bool add_pair(const Pair& pair) {
        Node* const column = pair.column;
        begin_key(column);
        if (skips(column)) return true;
        switch (pair.value.type) {
            case EntryValue::number:
                return number(column, field_of(pair.value.text), NOT_IN_ARRAY);
            case EntryValue::text:
                return text(column, field_of(pair.value.text), NOT_IN_ARRAY);
            case EntryValue::yes:
            case EntryValue::no:
                return boolean(column, pair.value.type == EntryValue::yes, NOT_IN_ARRAY);
            default:
                count_missing(column, NOT_IN_ARRAY);
                return true;
        }
    }

    Node part_of_entry(Node::Role role) {
        Node part = node(Kind::numeric, "", "", nullptr);
        part.role = role;
        return part;
    }

    bool is_regular_ = false;  // the keys of the row are those of the row before
    JsonShape<Node> shape_;
    JoinedFeatures joined_{rows};
    int failures_ = 0;  // to learn it
    const Byte* line_ = nullptr;
    const Byte* line_end_ = nullptr;
    double y_ = MISSING;
    double weight_ = 1.0;
    // The current object of an array.
    Node* owner_ = nullptr;
    bool has_name_ = false;
    std::string entry_name_;
    Entry entry_;
    std::vector<Pair> pairs_;  // of the current array, which are values of columns
    Node entry_node_ = part_of_entry(Node::Role::entry);
    Node entry_name_node_ = part_of_entry(Node::Role::entry_name);
    Node entry_value_node_ = part_of_entry(Node::Role::entry_value);
    Node entry_other_node_ = part_of_entry(Node::Role::entry_other);
    JsonWalk<JsonLinesParser> walk_{*this};
};

}  // namespace ftprl
