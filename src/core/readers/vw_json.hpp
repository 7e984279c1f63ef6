// Vowpal Wabbit's JSON format: one example a line, with the features of the same example as VW text.
//
//   - A key with a number is a feature, one with a text the feature "keytext" (blanks, bars and colons of the text
//     become '_'), one with true a feature of value 1; false and null are nothing.
//   - A key with an object or an array opens a namespace; what stands outside of all is in the default one. A namespace
//     within another is named by its own key alone. The numbers of an array are features without a name.
//   - "_label" is a number, a text as before the bar of VW text, or an object with Label and Weight; "_label_Label" and
//     "_label_Weight" are the same. "_tag" is the tag. The words of "_text" are features. Other keys that begin with an
//     underscore are left out.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "readers/features.hpp"
#include "readers/joined_features.hpp"
#include "readers/json.hpp"
#include "readers/json_shape.hpp"
#include "readers/names.hpp"
#include "readers/number.hpp"
#include "readers/parser.hpp"
#include "readers/vw_json_keys.hpp"
#include "support/hash.hpp"

namespace ftprl {

class VwJsonParser final : public LineParser {
public:
    VwJsonParser(const Options& options, Labels labels)
        : LineParser(options, std::move(labels), DelimiterIndex(std::array<Byte, 2>{Byte{'\n'}, Byte{'\n'}})),
          seed_start_(hash_start(options.seed)) {}

private:
    friend class JsonWalk<VwJsonParser>;

    using Role = VwJsonRole;
    // A value: its role, its key, and the namespace it is in or opens.
    struct Level {
        Role role = Role::feature;
        Field key{};
        std::uint64_t start = 0;    // of the hash of a name in the namespace
        std::uint32_t group = 0;    // the namespace
        std::uint64_t unnamed = 0;  // features without a name so far
        std::size_t space = 0;      // which of the namespaces of the row it is, in their order; the default one is 0
    };
    using Scope = Level*;

    // A key of rows that have the same bytes between their values.
    struct Node {
        Node(const Level& known, std::string text) : level(known), key(std::move(text)), with_text(known.start, key) {}
        Level level;
        std::string key;
        Prefix with_text;                // the hash of the key and of what follows
        std::uint32_t joined_group = 0;  // of features whose names are the key and what follows
    };

    friend class JsonShape<Node>;

    static constexpr std::size_t SLACK = 16;  // bytes that may be read behind a name

    void parse(const Byte* p, const Byte* eol, const Byte* end) override {
        if (shape_.is_known()) {
            begin(p, eol, true);
            const ShapeRead read = shape_.read(p, eol, end, *this, joined_features_);
            misses_ = read == ShapeRead::other ? misses_ + 1 : 0;
            if (read != ShapeRead::other && lessons_ < MOST_LESSONS) ++lessons_;
            if (read == ShapeRead::whole) {
                rows.log.set_texts_stay_unless_copied();  // those that were not copied are in the line
                return end_row();
            }
            if (read == ShapeRead::refused) return;
            if (misses_ == MOST_MISSES) shape_.forget();
        }
        begin(p, eol, false);
        is_learning_ = lessons_ > 0;
        // Names of rows before have parts in what a new shape replaces. Not later: whether the text of a name of this
        // row has to be copied is decided as the row is read, by the names that are settled.
        if (is_learning_) rows.log.settle();
        keys_.clear();
        if (!walk_(p, eol, end, &levels_[0])) {
            if (!walk_.fault.empty()) refuse(walk_.fault);
            return;
        }
        if (is_learning_) learn_shape(p, eol);
        end_row();
    }

    void begin(const Byte* p, const Byte* eol, bool has_shape) {
        y_ = MISSING;
        weight_ = 1.0;
        tag_.clear();
        rows.begin(static_cast<std::size_t>(eol - p) / 2 + 1);
        spaces_ = 0;
        levels_[0] = Level{Role::feature, Field{}, seed_start_, 0, 0, 0};
        if (has_shape && has_shape_groups_) return;
        rows.log.clear_groups();
        levels_[0].group = group_of(Field{p, p, p});
        has_shape_groups_ = has_shape && rows.log.is_on();
        if (has_shape_groups_) add_shape_groups();
    }

    // The groups of the keys of the shape, which last as long as rows have it: those of their namespaces, and those of
    // names that begin with a key.
    void add_shape_groups() {
        std::vector<std::uint32_t> of_space(space_names_.size() + 1, NO_GROUP);
        of_space[0] = levels_[0].group;
        for (Node& node : nodes_) {
            const std::size_t space = node.level.space;
            const auto* const key = reinterpret_cast<const Byte*>(node.key.data());
            FeatureGroup group{key, 0, 0};  // of the default namespace, which has no name
            if (space != 0) {
                const std::string& name = space_names_[space - 1];
                group =
                    FeatureGroup{reinterpret_cast<const Byte*>(name.data()), static_cast<std::uint32_t>(name.size()),
                                 static_cast<Byte>(name.empty() ? 0 : '^')};
            }
            if (of_space[space] == NO_GROUP) of_space[space] = rows.log.add_group(group);
            node.level.group = of_space[space];
            group.key = key;
            group.key_size = static_cast<std::uint32_t>(node.key.size());
            node.joined_group = rows.log.add_group(group);
        }
    }

    void end_row() {
        const std::size_t row = rows.count();
        finish(y_, weight_);
        if (!tag_.empty() && rows.count() != row) rows.tags.emplace_back(row, tag_);
    }

    // ---- rows like those before ----

    // A shape is learned from any row that has another one, as long as enough rows had a shape that was known.
    static constexpr int MOST_LESSONS = 16, MOST_MISSES = 64;

    static Scope scope_of(Node& node) noexcept { return &node.level; }

    // The label, the tag and what is left out are no features.
    static bool may_add(const Level* level) noexcept {
        return level->role == Role::feature || level->role == Role::text;
    }

    // The feature of a key and a text, without putting them together; false where the text has bytes that change.
    bool joins(const JsonShape<Node>::Step& step, const Field& text) {
        const Node& node = *step.node;
        if (node.level.role != Role::feature) return false;
        const auto size = static_cast<std::size_t>(text.end - text.data);
        if (size == 0 || has_vw_separator(text)) return false;
        if (rows.log.has_grams()) return false;  // which are made of the whole name
        joined_features_.add(node.with_text, node.joined_group, text.data, size);
        return true;
    }

    void learn_shape(const Byte* p, const Byte* eol) {
        nodes_.clear();
        std::vector<Node*> order;
        for (auto& [level, key] : keys_) nodes_.emplace_back(level, std::move(key));
        for (Node& node : nodes_) {
            const auto* const first = reinterpret_cast<const Byte*>(node.key.data());
            const Byte* const last = first + node.key.size();
            node.level.key = Field{first, last, last};
            order.push_back(&node);
        }
        space_names_ = opened_;
        shape_.learn(p, eol, order.data(), order.size());
        --lessons_;
        misses_ = 0;
    }

    // ---- what a walk asks for ----

    Scope enter(Scope object, const Field& key) {
        Level& level = *(object + 1);
        const Role role = object->role == Role::label ? vw_label_part(std::string(key.data, key.end)) : vw_role_of(key);
        level = Level{role, key, object->start, object->group, 0, object->space};
        if (is_learning_) keys_.emplace_back(level, std::string(key.data, key.end));
        return &level;
    }

    static const ExpectedKey* expected(const Level*) { return nullptr; }
    static Scope enter_expected(Scope object) { return object; }

    static bool skips(const Level* level) { return level->role == Role::nothing; }

    bool number(Scope level, const Field& text, std::ptrdiff_t position) {
        switch (level->role) {
            case Role::label:
            case Role::label_value:
                return read_label(text);
            case Role::label_weight:
                return read_weight(text);
            case Role::feature:
                break;
            default:
                return refuse_value(*level, text);
        }
        double value = 0.0;
        if (parse_number(text.data, text.end, value) != Parsed::ok) {
            refuse("expected a finite number, got " + quoted(text.data, text.end));
            return false;
        }
        if (position == NOT_IN_ARRAY) {
            add(*level, level->key, value);
        } else {
            name_ = std::to_string(level->unnamed++);
            add_name(*level, value);
        }
        return true;
    }

    bool text(Scope level, const Field& text, std::ptrdiff_t position) {
        switch (level->role) {
            case Role::label:
                return read_label_text(text);
            case Role::tag:
                tag_.assign(text.data, text.end);
                return true;
            case Role::text:
                words(*level, text);
                return true;
            case Role::feature:
                break;
            default:
                return refuse_value(*level, text);
        }
        if (position != NOT_IN_ARRAY) return refuse_element("text");
        const auto key = static_cast<std::size_t>(level->key.end - level->key.data);
        const auto size = static_cast<std::size_t>(text.end - text.data);
        scratch(key + size);
        Byte* const name = joined_.data();
        std::copy(level->key.data, level->key.end, name);
        for (std::size_t i = 0; i < size; ++i) name[key + i] = detail::VW_NAME_BYTES.of[text.data[i]];
        add(*level, Field{name, name + key + size, name + key + size + SLACK}, 1.0);
        return true;
    }

    void scratch(std::size_t size) {
        if (joined_.size() < size + SLACK) joined_.resize(2 * size + SLACK);
    }

    bool boolean(Scope level, bool value, std::ptrdiff_t position) {
        if (level->role != Role::feature) return refuse_value(*level, Field{});
        if (position != NOT_IN_ARRAY) return refuse_element("true or false");
        if (value) add(*level, level->key, 1.0);
        return true;
    }

    static void count_missing(Scope, std::ptrdiff_t) {}

    bool open_object(Scope& level, std::ptrdiff_t position) {
        if (level->role == Role::several) return refuse_several(*level);
        if (level->role == Role::label) return true;
        if (level->role != Role::feature) return refuse_value(*level, Field{});
        if (position == NOT_IN_ARRAY) {
            open_namespace(*level);
            return true;
        }
        // An object of an array is in the array's namespace; it is another level, since the array counts on.
        Level& inner = *(level + 1);
        inner = Level{Role::feature, level->key, level->start, level->group, 0, level->space};
        level = &inner;
        return true;
    }
    static bool close_object(Scope) { return true; }

    bool open_array(Scope& level, std::ptrdiff_t position) {
        if (level->role == Role::several) return refuse_several(*level);
        if (level->role != Role::feature) return refuse_value(*level, Field{});
        if (position != NOT_IN_ARRAY) return refuse_element("an array");
        open_namespace(*level);
        return true;
    }
    static bool close_array(Scope) { return true; }

    // ---- namespaces and names ----

    void open_namespace(Level& level) {
        level.start = hash_start(hash_field(seed_start_, level.key));
        level.group = group_of(level.key);
        level.space = ++spaces_;
        if (!is_learning_) return;
        opened_.resize(spaces_ - 1);
        opened_.emplace_back(level.key.data, level.key.end);
    }

    // The group of a namespace, whose name lasts as long as the row; the default one has none.
    std::uint32_t group_of(const Field& name) {
        if (!rows.log.is_on()) return 0;
        const auto size = static_cast<std::size_t>(name.end - name.data);
        const Byte* const text = rows.log.lasting(name.data, size);
        return rows.log.add_group(
            FeatureGroup{text, static_cast<std::uint32_t>(size), static_cast<Byte>(size == 0 ? 0 : '^')});
    }

    static std::uint64_t hash_field(std::uint64_t start, const Field& name) {
        return hash_name(start, name.data, static_cast<std::size_t>(name.end - name.data), name.limit);
    }

    void add(const Level& level, const Field& name, double value) {
        const auto size = static_cast<std::size_t>(name.end - name.data);
        const bool has_room = size != 0 && name.limit - name.data >= static_cast<std::ptrdiff_t>(size + SLACK);
        const std::uint64_t hash = has_room ? hash_inside(level.start, name.data, size) : hash_field(level.start, name);
        rows.add_copied(hash, value, level.group, name.data, size);
    }

    // A feature with the name that was put together.
    void add_name(const Level& level, double value) {
        const auto* const first = reinterpret_cast<const Byte*>(name_.data());
        const Byte* const end = first + name_.size();
        add(level, Field{first, end, end}, value);
    }

    void words(const Level& level, const Field& text) {
        const auto flush = [&] {
            if (name_.empty()) return;
            add_name(level, 1.0);
            name_.clear();
        };
        name_.clear();
        for (const Byte* p = text.data; p != text.end; ++p) {
            if (is_blank(*p)) {
                flush();
            } else {
                name_.push_back(*p == ':' || *p == '|' ? '_' : static_cast<char>(*p));
            }
        }
        flush();
    }

    // ---- labels ----

    bool read_label(const Field& text) {
        Fault fault;
        if (labels_.read(text.data, text.end, y_, fault)) return true;
        refuse(std::move(fault));
        return false;
    }

    bool read_weight(const Field& text) {
        if (parse_number(text.data, text.end, weight_) == Parsed::ok && weight_ >= 0.0) return true;
        refuse("expected a weight of at least 0, got " + quoted(text.data, text.end));
        return false;
    }

    // A label and perhaps a weight, with a blank between them.
    bool read_label_text(const Field& text) {
        Field rest = trimmed(text), word = rest;
        word.end = find_blank(rest);
        if (!read_label(word)) return false;
        rest.data = skip_blanks(word.end, rest.end);
        return rest.data == rest.end || read_weight(rest);
    }

    static const Byte* find_blank(const Field& field) {
        const Byte* p = field.data;
        while (p != field.end && !is_blank(*p)) ++p;
        return p;
    }

    // ---- what is not read ----

    bool refuse_several(const Level& level) {
        refuse("expected one example a line, got " + quoted(level.key.data, level.key.end) +
               " for several, as contextual bandits have");
        return false;
    }

    bool refuse_element(const char* what) {
        refuse(std::string("expected numbers or objects in an array, got ") + what);
        return false;
    }

    bool refuse_value(const Level& level, const Field& text) {
        const std::string got = text.data == text.end ? "another value" : quoted(text.data, text.end);
        switch (level.role) {
            case Role::several:
                return refuse_several(level);
            case Role::label_other:
                refuse("expected Label or Weight in the label, got " + quoted(level.key.data, level.key.end));
                return false;
            case Role::tag:
            case Role::text:
                refuse("expected text for " + quoted(level.key.data, level.key.end) + ", got " + got);
                return false;
            default:
                refuse("expected a number for the label and its weight, got " + got);
                return false;
        }
    }

    std::uint64_t seed_start_;
    std::array<Level, 2 * JsonWalk<VwJsonParser>::DEEPEST + 4>
        levels_{};  // one per value, and one per object in an array
    std::string name_, tag_;
    static constexpr std::uint32_t NO_GROUP = ~std::uint32_t{0};
    JsonShape<Node> shape_;
    JoinedFeatures joined_features_{rows};
    std::deque<Node> nodes_;  // of the shape, in the order of their keys: steps point to them
    bool is_learning_ = false;
    int lessons_ = MOST_LESSONS;                       // that may still be taken
    int misses_ = 0;                                   // rows of another shape, one after the other
    std::vector<std::pair<Level, std::string>> keys_;  // of the row that is walked through
    std::size_t spaces_ = 0;                           // namespaces of the row so far
    std::vector<std::string> opened_, space_names_;    // those of the row that is walked through, and of the shape
    bool has_shape_groups_ = false;                    // those of the log are those of the shape
    std::vector<Byte> joined_;                         // the key and the text of a feature
    double y_ = MISSING;
    double weight_ = 1.0;
    JsonWalk<VwJsonParser> walk_{*this};
};

}  // namespace ftprl
