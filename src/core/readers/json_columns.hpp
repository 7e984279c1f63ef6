// The keys of JSON lines as columns: their kinds, their order in the rows, and the missing ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "readers/elements.hpp"
#include "readers/json.hpp"

namespace ftprl {

class JsonColumns : public ByLine<ElementParser> {
public:
    bool reads_others = true;  // columns whose kind is not known; or else they are left out

protected:
    JsonColumns(const Options& options, Labels labels)
        : ByLine(options, std::move(labels), DelimiterIndex(std::array<Byte, 2>{Byte{'\n'}, Byte{'\n'}})),
          root_(node(Column::Kind::numeric, "", "", nullptr)) {}

    // A key within its object, and the treatment of its values.
    struct Node {
        std::string key;
        ExpectedKey text;
        const Node* parent;
        bool by_value;
        ColumnReader reader;
        ElementReader elements;
        std::size_t rank;  // among the columns of features that are known, or UNRANKED
        // The role of a key: a column, an element of a map, an object in an array, and so on.
        enum class Role : std::uint8_t {
            column,
            element,
            entry,
            entry_name,
            entry_value,
            entry_other
        } role = Role::column;
        Node* map = nullptr;       // the column that an element with a name belongs to
        bool has_columns = false;  // it is none itself, and the model has columns within it
    };
    using Scope = Node*;
    using Kind = Column::Kind;
    static constexpr std::size_t UNRANKED = ~std::size_t{0};

    // The columns whose kind is known.
    void set_known(const std::vector<Column>& names) {
        kinds_.clear();
        nodes_.clear();
        map_nodes_.clear();
        order_.clear();
        known_.clear();
        known_capacity_ = 0;
        objects_ = names_with_others_inside(names);
        for (const Column& column : names) {
            kinds_.emplace(column.name, Known{column.kind, known_.size()});
            if (!makes_features(column.kind)) continue;
            known_.push_back(reader_of(column));
            known_capacity_ += most_features(column.kind);
        }
    }

    Node node(Kind kind, const std::string& path, std::string key, const Node* parent, bool by_value = false,
              bool lasts = true, std::size_t rank = UNRANKED) {
        ExpectedKey text(key);
        ColumnReader reader = reader_of(Column{kind, path}, lasts);
        return Node{std::move(key),    std::move(text),          parent, by_value,
                    std::move(reader), elements_of(path, lasts), rank};
    }

    // ---- the keys of a row ----

    void begin_keys() {
        next_ = 0;
        passing_.clear();
        current_ = &root_;
        key_features_.clear();
    }

    // Most rows have their keys in one order: a key is first compared with the key at this position of the previous
    // row.
    const ExpectedKey* expected(const Node* object) const {
        const Node* const last = next_ < order_.size() ? order_[next_] : nullptr;
        return last != nullptr && last->parent == object ? &last->text : nullptr;
    }

    Scope enter_expected(Scope) { return begin_key(order_[next_++]); }

    // Looks up a key that differs from the previous row.
    Scope enter_column(Scope object, const Field& key) {
        return begin_key(look_up(object, std::string(key.data, key.end)));
    }

    // The column within `object` that the model has under this name, or null.
    Node* known_column(Node* object, const std::string& name) {
        return kinds_.count(object->elements.name + joint_of(object->elements.name) + name) != 0 ? node_at(object, name)
                                                                                                 : nullptr;
    }

    // Marks where the features of a key begin.
    Scope begin_key(Node* node) {
        if (marks_missing()) key_features_.push_back(KeyFeatures{node->rank, rows.size()});
        return current_ = node;
    }

    // True if an object here is a map: the model has a column without nested columns under this name, and reads no
    // other keys.
    bool is_map(const Node& node) const {
        if (reads_others || node.by_value || &node == &root_ || node.role != Node::Role::column) return false;
        return makes_features(node.reader.kind) && objects_.count(node.elements.name) == 0;
    }

    // ---- missing values ----

    // Sorts the features of a row into the order of the columns, as in a table, with missing values at their places;
    // other keys follow.
    void arrange() {
        const std::size_t size = rows.size();
        std::size_t next = 0;
        bool is_arranged = true;
        for (std::size_t i = 0; i < key_features_.size() && is_arranged; ++i) {
            const bool is_empty = end_of(i, size) == key_features_[i].first;
            if (key_features_[i].rank == UNRANKED) {
                is_arranged = is_empty || next == known_.size();
            } else {
                is_arranged = key_features_[i].rank == next++;
            }
        }
        if (is_arranged && next == known_.size()) return;
        const std::vector<std::uint32_t> slots(rows.row_slots(), rows.row_slots() + size);
        const std::vector<double> values(rows.row_values(), rows.row_values() + size);
        std::vector<Feature> features;
        if (rows.log.is_on()) features.assign(rows.log.features(), rows.log.features() + size);
        by_rank_.assign(known_.size(), {});
        for (std::size_t i = 0; i < key_features_.size(); ++i) {
            if (key_features_[i].rank != UNRANKED) by_rank_[key_features_[i].rank].push_back(i);
        }
        rows.set_size(0);
        const auto copy = [&](std::size_t i) {
            for (std::size_t k = key_features_[i].first; k < end_of(i, size); ++k) {
                if (!features.empty()) rows.log.features()[rows.size()] = features[k];
                rows.add(slots[k], values[k]);
            }
        };
        for (std::size_t rank = 0; rank < known_.size(); ++rank) {
            if (by_rank_[rank].empty()) missing(known_[rank]);
            for (const std::size_t i : by_rank_[rank]) copy(i);
        }
        for (std::size_t i = 0; i < key_features_.size(); ++i) {
            if (key_features_[i].rank == UNRANKED) copy(i);
        }
    }

    // The keys of the current row, each with its first feature.
    struct KeyFeatures {
        std::size_t rank;
        std::size_t first;
    };
    std::vector<KeyFeatures> key_features_;
    std::vector<ColumnReader> known_;  // columns of features
    std::size_t known_capacity_ = 0;
    Node root_;
    std::vector<Node*> order_;  // the keys of the row before
    std::size_t next_ = 0;      // how many keys the current row has so far
    Node* current_ = nullptr;   // the key that was met last

private:
    static constexpr std::size_t MOST_NEW_NAMES = 100'000;  // that are remembered: there is no end to names
    static constexpr std::size_t LONGEST_ORDER = 4096;
    struct Known {
        Kind kind;
        std::size_t rank;
    };

    Node* look_up(Node* object, std::string key) {
        Node* const node = node_at(object, std::move(key));
        if (!passing_.empty() && node == &passing_.back()) return node;
        if (next_ < order_.size()) {
            order_[next_] = node;
        } else if (next_ < LONGEST_ORDER) {
            order_.push_back(node);
        }
        ++next_;
        return node;
    }

    Node* node_at(Node* object, std::string key) {
        path_ = object == &root_ ? key : object->elements.name + joint_of(object->elements.name) + key;
        // An element of a map differs from a column with an equal path, such as the path of a key that contains a
        // point.
        Node* const map = is_map(*object) ? object : object->map;
        auto& nodes = map == nullptr ? nodes_ : map_nodes_;
        auto match = nodes.find(path_);
        if (match == nodes.end()) {
            const auto known = kinds_.find(path_);
            const bool is_new = known == kinds_.end();
            const Kind kind = is_new ? Kind::numeric : known->second.kind;
            const std::size_t rank = is_new || !makes_features(kind) ? UNRANKED : known->second.rank;
            const bool lasts = !is_new || nodes_.size() + map_nodes_.size() < kinds_.size() + MOST_NEW_NAMES;
            Node fresh = node(kind, path_, std::move(key), object, is_new, lasts, map == nullptr ? rank : map->rank);
            fresh.map = map;
            if (map != nullptr) fresh.role = Node::Role::element;
            fresh.has_columns = is_new && map == nullptr && objects_.count(path_) != 0;
            if (!lasts) return &passing_.emplace_back(std::move(fresh));
            match = nodes.emplace(path_, std::make_unique<Node>(std::move(fresh))).first;
        }
        return match->second.get();
    }

    std::size_t end_of(std::size_t key, std::size_t size) const noexcept {
        return key + 1 < key_features_.size() ? key_features_[key + 1].first : size;
    }

    std::unordered_map<std::string, Known> kinds_;
    std::unordered_set<std::string> objects_;                           // names that have known ones within them
    std::unordered_map<std::string, std::unique_ptr<Node>> nodes_;      // by path
    std::unordered_map<std::string, std::unique_ptr<Node>> map_nodes_;  // elements of maps, by path
    std::deque<Node> passing_;  // keys of the current row that are not remembered; a deque, since others point to them
    std::string path_;
    std::vector<std::vector<std::size_t>> by_rank_;  // keys of the current row by their ranks
};

}  // namespace ftprl
