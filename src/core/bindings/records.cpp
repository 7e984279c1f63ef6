#include "bindings/records.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "bindings/record_values.hpp"

namespace nb = nanobind;

namespace ftprl::bindings {
namespace {

using Name = RecordParser::Name;

nb::str python_text(const std::string& text) { return nb::str(text.data(), text.size()); }

// A dict whose keys are all text and whose values are no dicts: {"a": {"b": 1}} becomes {"a.b": 1}.
struct FlatDict {
    nb::dict items;
    std::vector<std::pair<std::string, nb::object>>
        repeated;  // values of a name that has one, as in {"a.b": 2} as well

    void add(const std::string& path, nb::handle value) {
        const nb::str key = python_text(path);
        if (items.contains(key)) {
            repeated.emplace_back(path, nb::borrow(value));
        } else {
            items[key] = value;
        }
    }
};

bool add_flat(RecordParser& parser, FlatDict& flat, const nb::dict& items, const std::string& object, int depth) {
    if (depth > MOST_DICTS) {
        parser.refuse_value(TOO_DEEP);
        return false;
    }
    for (const auto& [key, value] : items) {
        const std::string path = depth == 1 ? text_of_key(key) : object + parser.joint_of(object) + text_of_key(key);
        if (is_list_of_columns(parser, path, value)) {
            SplitList split;
            if (!split_list(parser, path, value, split)) return false;
            if (split.has_others) flat.add(path, split.others);
            for (const auto& [column, own] : split.columns) flat.add(column, own);
        } else if (!PyDict_Check(value.ptr()) || parser.is_map(path)) {
            flat.add(path, value);
        } else if (!parser.ignores(path)) {
            if (!parser.may_have_several(path, "a dict")) return false;
            // A column that has a dict here is not missing: it has no value of its own.
            if (parser.knows(path)) flat.add(path, nb::make_tuple());
            if (!add_flat(parser, flat, nb::borrow<nb::dict>(value), path, depth + 1)) return false;
        }
    }
    return true;
}

bool is_flat(const RecordParser& parser, const nb::dict& items) {
    bool is_flat = true;
    for (const auto& [key, value] : items) {
        is_flat = is_flat && PyUnicode_CheckExact(key.ptr()) && !PyDict_Check(value.ptr()) &&
                  !may_be_list_of_columns(parser, value);
    }
    return is_flat;
}

}  // namespace

void DictParser::set_names(const std::vector<Column>& names, bool reads_others) {
    forget_order();
    keys_ = nb::dict();
    RecordParser::set_names(names, reads_others);
    names_in_order_ = nb::list();
    for (const Column& column : names) {
        const auto size = static_cast<Py_ssize_t>(column.name.size());
        names_in_order_.append(nb::steal(PyUnicode_DecodeUTF8(column.name.data(), size, "replace")));
    }
}

const Name* DictParser::name_of(PyObject* key) {
    if (!PyUnicode_CheckExact(key)) return find_name(text_of_key(key));
    if (PyObject* const known = PyDict_GetItem(keys_.ptr(), key)) {
        return static_cast<const Name*>(PyLong_AsVoidPtr(known));
    }
    const Name* const name = find_name(text_of_key(key));
    if (keys_.size() < MOST_KEYS && (name == nullptr ? is_good() : name->lasts)) {
        keys_[key] = nb::steal(PyLong_FromVoidPtr(const_cast<Name*>(name)));
    }
    return name;
}

void DictParser::forget_order() noexcept {
    for (const Key& known : order_) Py_XDECREF(known.text);
    order_.clear();
}

// Whether a dict has a key for each feature that is known, or for an object that it may be in. It is refused if not.
bool DictParser::has_all_names(const nb::dict& items) {
    for (nb::handle key : names_in_order_) {
        const std::string name = text_of_key(key);
        const Name* const known = find_name(name);
        if (known == nullptr || !makes_features(known->reader.kind) || items.contains(key)) continue;
        bool is_inside = false;
        for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
            is_inside = is_inside || items.contains(python_text(name.substr(0, dot)));
        }
        for (const auto& [other, value] : items) is_inside = is_inside || text_of_key(other).rfind(name + ".", 0) == 0;
        if (is_inside) continue;
        refuse_value("expected a key " + known->reader.name + ", got " + std::to_string(items.size()) +
                     " others; add it, with None where it is missing");
        return false;
    }
    return true;
}

// All known names in their order, and then the others: what a record lacks is a missing value, in its place.
void DictParser::add_all_names(const nb::dict& items) {
    std::size_t match = 0;
    for (nb::handle key : names_in_order_) {
        const Name* const name = name_of(key.ptr());
        PyObject* const value = PyDict_GetItemWithError(items.ptr(), key.ptr());
        match += value != nullptr ? 1 : 0;
        if (name == nullptr) continue;
        if (value == nullptr) {
            add_missing(*name);
        } else {
            add_value(*this, *name, key, value);
        }
    }
    if (match != items.size()) add_items(items, true);
}

// The items of a dict in their order; there is space for as many as it had at first.
void DictParser::add_items(const nb::dict& items, bool only_others) {
    const std::size_t size = items.size();
    std::size_t count = 0;
    for (const auto& [key, value] : items) {
        if (++count > size || items.size() != size)
            return refuse_value("expected a dict that nobody changes, got one that changed");
        if (PyDict_Check(value.ptr())) {
            const std::string path = text_of_key(key);
            if (!is_map(path)) {
                add_inside(nb::borrow<nb::dict>(value), path, 2);
                continue;
            }
        } else if (!only_others && may_be_list_of_columns(*this, value)) {
            if (const std::string path = text_of_key(key); is_object(path)) {
                add_split(nb::borrow(value), path);
                continue;
            }
        }
        const Name* const name = name_of(key.ptr());
        if (name != nullptr && (name->by_value || !only_others)) add_value(*this, *name, key, value);
    }
}

// The items of a dict within another, whose keys follow that of the dict and a dot.
void DictParser::add_inside(const nb::dict& items, const std::string& object, int depth) {
    if (ignores(object) || !may_have_several(object, "a dict")) return;
    if (depth > MOST_DICTS) return refuse_value(TOO_DEEP);
    const auto copy = nb::steal<nb::list>(PyDict_Items(items.ptr()));
    expect_more(copy.size());
    for (nb::handle item : copy) {
        const nb::object value = item[1];
        const std::string path = object + joint_of(object) + text_of_key(item[0]);
        if (PyDict_Check(value.ptr()) && !is_map(path)) {
            add_inside(nb::borrow<nb::dict>(value), path, depth + 1);
        } else if (is_list_of_columns(*this, path, value)) {
            add_split(value, path);
        } else if (const Name* const name = find_name(path); name != nullptr) {
            add_value(*this, *name, python_text(path), value);
        }
    }
}

// A list where there are columns within its name.
void DictParser::add_split(const nb::object& list, const std::string& path) {
    SplitList split;
    if (!split_list(*this, path, list, split)) return;
    expect_more(split.columns.size());
    const Name* const own = split.has_others ? find_name(path) : nullptr;
    if (own != nullptr) add_value(*this, *own, python_text(path), split.others);
    for (const auto& [column, value] : split.columns) {
        if (const Name* const name = find_name(column)) add_value(*this, *name, python_text(column), value);
    }
}

bool DictParser::has_same_keys(const nb::dict& items) {
    if (order_.empty() || static_cast<std::size_t>(PyDict_GET_SIZE(items.ptr())) != order_.size()) return false;
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    for (std::size_t i = 0; PyDict_Next(items.ptr(), &position, &key, &value) != 0; ++i) {
        const Key& known = order_[i];
        const bool is_same = key == known.text || (PyUnicode_CheckExact(key) && PyObject_Hash(key) == known.hash &&
                                                   PyUnicode_Compare(key, known.text) == 0);
        const bool is_plain = PyFloat_CheckExact(value) || PyUnicode_CheckExact(value) || PyLong_CheckExact(value) ||
                              PyBool_Check(value) || value == Py_None;
        if (!is_same || !is_plain) return false;
        in_order_[i] = value;
    }
    return true;
}

void DictParser::add_same_keys() {
    for (std::size_t i = 0; i < order_.size(); ++i) {
        const Key& known = order_[i];
        if (known.name != nullptr) add_value(*this, *known.name, known.text, in_order_[i]);
    }
}

// Not every dict where they differ all the time: it would cost more than it saves.
void DictParser::note_keys(const nb::dict& items) {
    constexpr std::size_t OFTEN = 64;
    if (unlike_++ >= OFTEN && unlike_ % OFTEN != 0) return;
    forget_order();
    const std::size_t names = names_in_order_.size();
    if (names != 0 && names != items.size()) return;
    for (const auto& [key, value] : items) {
        if (PyDict_Check(value.ptr())) return forget_order();
        const bool is_text = PyUnicode_CheckExact(key.ptr());
        const bool fits = names == 0 || (is_text && order_.size() < names &&
                                         PyUnicode_Compare(names_in_order_[order_.size()].ptr(), key.ptr()) == 0);
        const Name* const name = is_text && fits ? name_of(key.ptr()) : nullptr;
        if (!is_text || !fits || (name != nullptr && !name->lasts)) return forget_order();
        Py_INCREF(key.ptr());
        order_.push_back(Key{key.ptr(), PyObject_Hash(key.ptr()), name});
    }
    in_order_.resize(order_.size());
}

void DictParser::add_dict(std::size_t at, nb::handle record) {
    if (!PyDict_Check(record.ptr())) {
        begin_record(at, 0);
        return refuse_value("expected a dict, got " + class_of(record));
    }
    const auto items = nb::borrow<nb::dict>(record);
    const bool is_same = has_same_keys(items);
    if (!is_same && needs_all_names) {
        begin_record(at, 0);
        if (!has_all_names(items)) return;
    }
    if (is_same) {
        begin_record(at, items.size());
        add_same_keys();
    } else if (wants_missing()) {
        begin_record(at, items.size());
        if (is_flat(*this, items)) {
            add_all_names(items);
        } else {
            FlatDict flat;
            if (!add_flat(*this, flat, items, "", 1)) return;
            expect_more(flat.items.size() + flat.repeated.size());
            add_all_names(flat.items);
            for (const auto& [path, value] : flat.repeated) {
                if (const Name* const name = find_name(path)) add_value(*this, *name, python_text(path), value);
            }
        }
    } else {
        begin_record(at, items.size());
        add_items(items, false);
    }
    end_record();
    if (!is_same && is_good()) note_keys(items);
}

}  // namespace ftprl::bindings
