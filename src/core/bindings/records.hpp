// A parser of Python's dicts: the features of a row by their keys. Keys that were met before are found by their text as
// Python has hashed it, so that a row costs little more than its numbers.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>
#include <vector>

#include "readers/records.hpp"

namespace ftprl::bindings {

class DictParser final : public RecordParser {
public:
    using RecordParser::RecordParser;
    ~DictParser() override { forget_order(); }

    // The names whose kind is known, also as Python's text: where missing values are features, dicts are asked for
    // them.
    void set_names(const std::vector<Column>& names, bool reads_others);
    // Reads the dict of row `at`; anything else is refused as a bad row.
    void add_dict(std::size_t at, nanobind::handle record);

    bool needs_all_names = false;  // a dict that lacks a known feature is refused

private:
    struct Key {
        PyObject* text = nullptr;  // owned
        Py_hash_t hash = 0;
        const Name* name = nullptr;
    };
    static constexpr std::size_t MOST_KEYS = 1 << 17;  // that are remembered: there is no end to keys

    // How the values of a key are read; null when they are left out.
    const Name* name_of(PyObject* key);
    bool has_all_names(const nanobind::dict& items);
    void add_all_names(const nanobind::dict& items);
    void add_items(const nanobind::dict& items, bool only_others);
    void add_inside(const nanobind::dict& items, const std::string& object, int depth);
    void add_split(const nanobind::object& list, const std::string& path);
    // Rows often have the same keys in the same order: then no key is looked up. Only values that are read without any
    // code of Python's, which could change the dict meanwhile.
    bool has_same_keys(const nanobind::dict& items);
    void add_same_keys();
    void note_keys(const nanobind::dict& items);
    void forget_order() noexcept;

    nanobind::dict keys_;  // texts that were met, and the addresses of their names
    nanobind::list names_in_order_;
    std::vector<Key> order_;           // the keys of a dict that was read, all of them texts whose names last
    std::vector<PyObject*> in_order_;  // the values of a dict that has them, too; borrowed
    std::size_t unlike_ = 0;           // dicts that had others
};

}  // namespace ftprl::bindings
