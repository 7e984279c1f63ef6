// Cells of a table of any source: text, Arrow columns, records. columns.hpp lists the features of a cell. Names are
// hashed with the seed alone, as in the default namespace of Vowpal Wabbit's format. An empty cell is a missing value,
// and so are spellings of "not available", except in columns of categories or text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "readers/columns.hpp"
#include "readers/kinds.hpp"
#include "readers/names.hpp"
#include "readers/number.hpp"
#include "readers/parser.hpp"
#include "readers/split.hpp"
#include "readers/words.hpp"
#include "support/hash.hpp"

namespace ftprl {

class CellParser : public Parser {
public:
    // Settings that columns share, and the numbers that the sample gave for some of them.
    struct Rules {
        bool marks_missing = false;  // a feature "column is missing"
        bool advises = false;        // whether a kind that does not fit can still be changed by an option
        std::unordered_map<std::string, std::vector<double>> numbers;
    };

    CellParser(const Options& options, Labels labels, DelimiterIndex index)
        : Parser(options, std::move(labels), std::move(index)), start_(hash_start(options.seed)) {}

    void set_rules(Rules rules) { rules_ = std::move(rules); }

    // The separator between the name of an object and a key within it.
    char joint_of(const std::string& object) const {
        return options_.namespaces && object.find('^') == std::string::npos ? '^' : '.';
    }

protected:
    // A feature whose name, the column's and a suffix, is known before the cells.
    struct FixedFeature {
        std::string suffix;
        std::uint64_t hash;
    };

    struct ColumnReader {
        Column::Kind kind;
        const FixedKind* entry;  // of a kind with fixed features, else null
        std::string name;        // quoted and short, for messages
        std::uint64_t hash;
        std::uint64_t missing_hash;
        Prefix with_value;  // the hash of "column=" and what follows
        std::uint32_t group;
        std::uint32_t fixed_group;  // of the features with a suffix
        std::shared_ptr<const std::vector<FixedFeature>> fixed;
        std::vector<double> numbers;  // the edges of buckets, or where the trend of a date begins
    };

    // The hash with which the features of a column begin, and the name that it leaves out: for "user^age", if columns
    // are named as in VW text, the hash of namespace user and the name "age". The default namespace may be written as
    // "^age".
    std::pair<std::uint64_t, std::string> own_name(const std::string& column) const {
        const std::size_t caret = options_.namespaces ? column.find('^') : std::string::npos;
        if (caret == std::string::npos) return {start_, column};
        const auto* const name = reinterpret_cast<const Byte*>(column.data());
        return {caret == 0 ? start_ : hash_start(hash_from(start_, name, caret)), column.substr(caret + 1)};
    }

    // The fault of the namespace of a name: none if the namespace is known, or if all are read.
    std::string foreign_namespace(const std::string& name) const {
        const auto& known = options_.known_namespaces;
        const std::size_t caret = name.find('^');
        if (known.empty() || known.count(caret == std::string::npos ? "" : name.substr(0, caret)) != 0) return {};
        std::string some;
        for (auto one = known.begin(); one != known.end() && some.size() < 60; ++one) {
            some += (some.empty() ? "" : ", ") + (one->empty() ? std::string("one without a name") : "'" + *one + "'");
        }
        const auto* const text = reinterpret_cast<const Byte*>(name.data());
        return "expected a name in a namespace of the model (" + some + "), got " + quoted(text, text + name.size()) +
               "; write it as 'namespace^name'";
    }

    // The parser of a column with this name; `lasts` is true if later rows may have the column, too.
    ColumnReader reader_of(const Column& column, bool lasts = true) {
        const auto* name = reinterpret_cast<const Byte*>(column.name.data());
        const auto [start, own] = own_name(column.name);
        const std::size_t size = own.size();
        const auto known = rules_.numbers.find(column.name);
        std::vector<double> numbers = known == rules_.numbers.end() ? std::vector<double>{} : known->second;
        auto fixed = std::make_shared<std::vector<FixedFeature>>();
        for (const std::string& feature : fixed_features(Column{column.kind, own}, numbers)) {
            fixed->push_back(FixedFeature{feature.substr(size), hash_of_name(start, feature)});
        }
        const bool has_suffixes = rules_.marks_missing || !fixed->empty();
        return ColumnReader{column.kind,
                            fixed_kind(column.kind),
                            quoted(name, name + column.name.size()),
                            hash_of_name(start, own),
                            hash_of_name(start, missing_feature(own)),
                            Prefix(start, own + "="),
                            group_of(column.name, lasts, '='),
                            has_suffixes ? group_of(column.name, lasts, '\0') : 0,
                            std::move(fixed),
                            std::move(numbers)};
    }

    bool marks_missing() const noexcept { return rules_.marks_missing; }

    bool label(const ColumnReader& column, const Field& field, double& y) {
        const Field text = trimmed(field);
        if (text.data != text.end && labels_.usual(text.data, text.end, y)) return true;
        Fault fault;
        if (labels_.read(text.data, text.end, y, fault)) return true;
        fault.message += " in column " + column.name;
        refuse(std::move(fault));
        return false;
    }

    static bool is_weight(const Field& field, double& weight) {
        return parse_number(field.data, field.end, weight) == Parsed::ok && weight >= 0.0;
    }

    bool importance(const ColumnReader& column, const Field& field, double& weight) {
        const Field text = trimmed(field);
        if (is_weight(text, weight)) return true;
        refuse("expected a weight of at least 0, got " + quoted(text.data, text.end) + " in column " + column.name);
        return false;
    }

    // Adds a cell of a column of features; `rest` is the largest number of features that the row may still add, this
    // column's included.
    bool feature(const ColumnReader& column, const Field& field, std::size_t rest, bool lasts = true) {
        switch (column.kind) {
            case Column::Kind::categorical:
                category(column, field, lasts);
                return true;
            case Column::Kind::text:
                text(column, field, rest);
                return true;
            default:
                return add_cell(column, field) || misfit(column, field);
        }
    }

    // `lasts` is true if the text stays in memory until the row is finished.
    void category(const ColumnReader& column, const Field& field, bool lasts = true) {
        if (field.data == field.end) return missing(column);
        const auto size = static_cast<std::size_t>(field.end - field.data);
        const std::uint64_t hash = column.with_value.quick(field.data, size, field.limit);
        rows.add(hash, 1.0, column.group, lasts ? field.data : lasting(field.data, size), size);
    }

    void text(const ColumnReader& column, const Field& field, std::size_t rest) {
        rows.reserve(static_cast<std::size_t>(field.end - field.data) / 2 + 1 + rest);
        if (field.data == field.end) return missing(column);
        words_(field.data, field.end, [&](const Byte* p, const Byte* end) {
            const auto size = static_cast<std::size_t>(end - p);
            rows.add_copied(column.with_value(p, size, end), 1.0, column.group, p, size);
        });
    }

    void missing(const ColumnReader& column) {
        if (!rules_.marks_missing) return;
        const Feature feature = missing_of(column);
        rows.add(feature.hash, 1.0, feature.group, feature.text, feature.size);
    }

    static Feature missing_of(const ColumnReader& column) noexcept {
        return Feature{column.missing_hash, reinterpret_cast<const Byte*>(IS_MISSING), sizeof IS_MISSING - 1,
                       column.fixed_group};
    }

    static Feature fixed_of(const ColumnReader& column, std::size_t number) noexcept {
        const FixedFeature& fixed = (*column.fixed)[number];
        return Feature{fixed.hash, reinterpret_cast<const Byte*>(fixed.suffix.data()),
                       static_cast<std::uint32_t>(fixed.suffix.size()), column.fixed_group};
    }

    void add_fixed(const ColumnReader& column, std::size_t number, double value) {
        const Feature feature = fixed_of(column, number);
        rows.add(feature.hash, value, feature.group, feature.text, feature.size);
    }

    void add_fixed(const ColumnReader& column, const FixedFeatures& features) {
        for (std::size_t i = 0; i < features.count; ++i) {
            add_fixed(column, features.all[i].number, features.all[i].value);
        }
    }

    // A cell of any kind but a category or a text; false, and nothing was added, for one that does not fit.
    bool add_cell(const ColumnReader& column, const Field& field) {
        const Field text = trimmed(field);
        if (column.entry != nullptr) {
            FixedFeatures features;
            if (column.entry->read(text, column.numbers, features)) {
                add_fixed(column, features);
                return true;
            }
        } else if (double number = 0.0; parse_number(text.data, text.end, number) == Parsed::ok) {
            add_number(column, number);
            return true;
        }
        if (!is_absent(text)) return false;
        missing(column);
        return true;
    }

    void add_number(const ColumnReader& column, double number) {
        if (column.entry != nullptr) {
            add_fixed(column, column.entry->of_number(number, column.numbers), 1.0);
        } else {
            rows.add(column.hash, number, column.group, nullptr, 0);
        }
    }

    // A number, or what is wrong with it.
    bool parsed_number(const ColumnReader& column, const Field& text, double& value) {
        return parse_number(text.data, text.end, value) == Parsed::ok || misfit(column, text);
    }

    // Reports a cell that does not fit its column.
    bool misfit(const ColumnReader& column, const Field& field) {
        const Field text = trimmed(field);
        const std::string expected =
            column.entry == nullptr ? detail::expected_number(text) : column.entry->expected(text);
        refuse(Fault{expected + ", got " + quoted(text.data, text.end) + " in column " + column.name, "",
                     rules_.advises ? "categorical" : ""});
        return false;
    }

    // Keeps a text until the end of the row, for the feature's name.
    const Byte* lasting(const Byte* p, std::size_t size) { return rows.log.is_on() ? rows.log.lasting(p, size) : p; }

    // The group of a column's features; `joint` separates the column's name from the text of a feature.
    std::uint32_t group_of(const std::string& column, bool lasts, char joint) {
        if (!rows.log.is_on()) return 0;
        if (options_.namespaces && column[0] == '^') return group_of(column.substr(1), lasts, joint);
        const auto size = static_cast<std::uint32_t>(column.size());
        const auto mark = static_cast<Byte>(joint);
        if (!lasts) {
            const auto* const text = reinterpret_cast<const Byte*>(column.data());
            return rows.log.add_passing_group(FeatureGroup{rows.log.lasting(text, size), size, mark});
        }
        const auto [entry, is_new] = groups_.emplace(column + joint, static_cast<std::uint32_t>(groups_.size()));
        if (is_new) rows.log.add_group(FeatureGroup{reinterpret_cast<const Byte*>(entry->first.data()), size, mark});
        return entry->second;
    }

    const std::uint64_t start_;  // of the hash of a name

private:
    static std::uint64_t hash_of_name(std::uint64_t start, const std::string& name) {
        return hash_from(start, reinterpret_cast<const Byte*>(name.data()), name.size());
    }

    Words words_;
    std::unordered_map<std::string, std::uint32_t> groups_;  // of all columns but those that one row had
    Rules rules_;
};

}  // namespace ftprl
