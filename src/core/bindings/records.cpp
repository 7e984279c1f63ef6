#include "bindings/records.hpp"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace nb = nanobind;

namespace ftprl::bindings {
namespace {

using Name = RecordParser::Name;

constexpr int MOST_DICTS = 64;  // within each other, as in JSON lines
const char* const TOO_DEEP = "expected at most 64 dicts within each other, got more";

std::string text_of_key(nb::handle key) {
    Py_ssize_t size = 0;
    const nb::object text = PyUnicode_Check(key.ptr()) ? nb::borrow(key) : nb::object(nb::str(key));
    const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (bytes == nullptr) throw nb::python_error();
    return std::string(bytes, static_cast<std::size_t>(size));
}

Field field_of(const std::string& text) {
    const auto* const first = reinterpret_cast<const Byte*>(text.data());
    return Field{first, first + text.size(), first + text.size()};
}

std::string class_of(nb::handle value) { return nb::cast<std::string>(nb::handle(value.type()).attr("__name__")); }

// The text of a value that is none itself, as a CSV file has it.
std::string written(nb::handle value) { return nb::cast<std::string>(nb::str(value)); }

// A number as a column of its type has it.
template <class T>
void add_written(RecordParser& parser, const Name& name, double number, T value) {
    char scratch[LONGEST_VALUE];
    parser.add_number(name, number, [&] {
        const auto* const last = reinterpret_cast<const Byte*>(write_value(scratch, value));
        return Field{reinterpret_cast<const Byte*>(scratch), last, last};
    });
}

// A number whose text Python knows.
void add_spelled(RecordParser& parser, const Name& name, double number, nb::handle value) {
    std::string text;
    parser.add_number(name, number, [&] {
        text = written(value);
        return field_of(text);
    });
}

// A whole number of any size.
void add_whole(RecordParser& parser, const Name& name, nb::handle value) {
    const double number = PyLong_AsDouble(value.ptr());
    if (number == -1.0 && PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        const std::string text = "a number with more than 300 digits";
        return parser.add_number(name, std::numeric_limits<double>::infinity(), [&] { return field_of(text); });
    }
    int beyond = 0;
    const long long small = PyLong_AsLongLongAndOverflow(value.ptr(), &beyond);
    if (beyond != 0) return add_spelled(parser, name, number, value);
    add_written(parser, name, number, static_cast<std::int64_t>(small));
}

void add_bytes(RecordParser& parser, const Name& name, const char* bytes, Py_ssize_t size) {
    const auto* const first = reinterpret_cast<const Byte*>(bytes);
    parser.add_text(name, Field{first, first + size, first + size});
}

bool is_list(nb::handle value) {
    return PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()) || class_of(value) == "ndarray";
}

void add_list(RecordParser& parser, const Name& name, nb::handle key, nb::handle list);
void add_map(RecordParser& parser, const Name& name, nb::handle key, const nb::dict& map);

// Values that are rare: lists, those of NumPy and pandas, decimal numbers, and what no record may have. Code of
// Python's may run, and change the dict: what is read has an owner.
void add_other(RecordParser& parser, const Name& name, nb::object key, nb::object value) {
    if (PyDict_Check(value.ptr())) return add_map(parser, name, key, nb::borrow<nb::dict>(value));
    if (is_list(value)) return add_list(parser, name, key, value);
    const std::string type = class_of(value);
    if (type == "NAType" || type == "NaTType") return parser.add_missing(name);  // of pandas
    if (type == "bool" || type == "bool_")
        return parser.add_boolean(name, PyObject_IsTrue(value.ptr()) == 1);  // of NumPy
    if (PyIndex_Check(value.ptr()) != 0) {
        const nb::object whole = nb::steal(PyNumber_Index(value.ptr()));
        if (whole.is_valid()) return add_whole(parser, name, whole);
        PyErr_Clear();
    } else if (Py_TYPE(value.ptr())->tp_as_number != nullptr &&
               Py_TYPE(value.ptr())->tp_as_number->nb_float != nullptr) {
        const double number = PyFloat_AsDouble(value.ptr());
        if (PyErr_Occurred() == nullptr) {
            if (type != "float32") return add_spelled(parser, name, number, value);
            // As in a column of this type: NumPy spells some numbers in another way.
            return add_written(parser, name, number, static_cast<float>(number));
        }
        PyErr_Clear();
    }
    if (name.reader.kind == Column::Kind::ignore) return;
    if (type == "date" || type == "datetime" || type == "Timestamp" || type == "datetime64") {
        const std::string text = written(value);  // NumPy's own missing time is NaT
        return text == "NaT" ? parser.add_missing(name) : parser.add_text(name, field_of(text));
    }
    parser.refuse_value("expected a number, text, a date, True, False, None, a dict or a list, got " + type +
                        " in column '" + text_of_key(key) + "'");
}

void add_value(RecordParser& parser, const Name& name, nb::handle key, nb::handle value) {
    PyObject* const object = value.ptr();
    if (PyFloat_Check(object)) return add_written(parser, name, PyFloat_AS_DOUBLE(object), PyFloat_AS_DOUBLE(object));
    if (value.is_none()) return parser.add_missing(name);
    if (PyUnicode_Check(object)) {
        Py_ssize_t size = 0;
        const char* const bytes = PyUnicode_AsUTF8AndSize(object, &size);
        if (bytes != nullptr) return add_bytes(parser, name, bytes, size);
        PyErr_Clear();
        if (name.reader.kind == Column::Kind::ignore) return;
        parser.refuse_value("expected text in UTF-8, got other text in column '" + text_of_key(key) + "'");
    } else if (PyBool_Check(object)) {
        parser.add_boolean(name, object == Py_True);
    } else if (PyLong_Check(object)) {
        add_whole(parser, name, value);
    } else if (PyBytes_Check(object)) {
        add_bytes(parser, name, PyBytes_AS_STRING(object), PyBytes_GET_SIZE(object));
    } else {
        add_other(parser, name, nb::borrow(key), nb::borrow(value));
    }
}

void refuse_in_list(RecordParser& parser, nb::handle key, const char* what) {
    parser.refuse_value("expected numbers, text, or dicts with a name and a value in a list, got " + std::string(what) +
                        " in column '" + text_of_key(key) + "'");
}

// The name of an element as JSON lines have it. False for one that is none.
bool read_element_name(nb::handle value, std::string& name) {
    char scratch[LONGEST_VALUE];
    if (PyUnicode_Check(value.ptr()) || (PyLong_Check(value.ptr()) && !PyBool_Check(value.ptr()))) {
        name = text_of_key(value);
    } else if (PyBool_Check(value.ptr())) {
        name.assign(scratch, write_value(scratch, value.ptr() == Py_True));
    } else if (PyFloat_Check(value.ptr())) {
        name.assign(scratch, write_value(scratch, PyFloat_AS_DOUBLE(value.ptr())));
    } else {
        return false;
    }
    return true;
}

// An element with a name: a dict with the keys `name` (or `key`) and `value`.
struct NamedElement {
    std::string name;
    nb::object value = nb::none();
    bool has_name = false;
};

// False for a dict that is none.
bool read_named_element(RecordParser& parser, nb::handle key, const nb::dict& element, NamedElement& read) {
    const auto items = nb::steal<nb::list>(PyDict_Items(element.ptr()));
    for (nb::handle item : items) {
        const std::string part = text_of_key(item[0]);
        const nb::object own = item[1];
        if (own.is_none()) continue;
        if (part == "value") {
            read.value = own;
        } else if (part != "name" && part != "key") {
            refuse_in_list(parser, key, "a dict with other keys");
            return false;
        } else if (read.has_name = read_element_name(own, read.name); !read.has_name) {
            refuse_in_list(parser, key, "a dict whose name is no text");
            return false;
        }
    }
    if (read.has_name && (PyDict_Check(read.value.ptr()) || is_list(read.value))) {
        refuse_in_list(parser, key, "a dict or a list within a dict of a list");
        return false;
    }
    return true;
}

void add_named_element(RecordParser& parser, const Name& name, nb::handle key, const nb::dict& element) {
    NamedElement read;
    if (!read_named_element(parser, key, element, read) || !read.has_name || read.value.is_none()) return;
    parser.set_element_name(std::move(read.name));
    add_value(parser, name, key, read.value);
}

void add_list(RecordParser& parser, const Name& name, nb::handle key, nb::handle list) {
    if (!name.by_value && name.reader.kind == Column::Kind::ignore) return;
    const std::string path = text_of_key(key);
    if (!parser.may_have_several(path, "a list")) return;
    nb::object sequence = nb::borrow(list);
    if (class_of(list) == "ndarray") sequence = list.attr("tolist")();  // of no dimension, a single value
    if (!PyList_Check(sequence.ptr()) && !PyTuple_Check(sequence.ptr())) return add_value(parser, name, key, sequence);
    // A copy: code of Python's may run that changes the list.
    const auto elements = nb::steal<nb::tuple>(PySequence_Tuple(sequence.ptr()));
    parser.begin_list(name, path, elements.size());
    std::size_t position = 0;
    for (nb::handle element : elements) {
        if (PyDict_Check(element.ptr())) {
            add_named_element(parser, name, key, nb::borrow<nb::dict>(element));
        } else if (is_list(element)) {
            refuse_in_list(parser, key, "a list within a list");
        } else {
            parser.set_position(position);
            add_value(parser, name, key, element);
        }
        ++position;
    }
    parser.end_list();
}

// The elements of a map under their names; those of a dict within it as "outer.inner".
bool add_elements(RecordParser& parser, const Name& name, nb::handle key, const nb::dict& map,
                  const std::string& before, int depth) {
    if (depth > MOST_DICTS) {
        parser.refuse_value(TOO_DEEP);
        return false;
    }
    // A copy: code of Python's may run that changes the dict.
    const auto items = nb::steal<nb::list>(PyDict_Items(map.ptr()));
    parser.expect_more(items.size());
    for (nb::handle item : items) {
        const nb::object value = item[1];
        std::string element_name = before + text_of_key(item[0]);
        if (PyDict_Check(value.ptr())) {
            const auto inner = nb::borrow<nb::dict>(value);
            if (!add_elements(parser, name, key, inner, element_name + ".", depth + 1)) return false;
        } else if (is_list(value)) {
            parser.refuse_value("expected numbers or text in a dict, got a list in column '" + text_of_key(key) + "'");
            return false;
        } else {
            parser.set_element_name(std::move(element_name));
            add_value(parser, name, key, value);
        }
    }
    return true;
}

// A dict where the model has a column: named elements, as those of a map of Arrow.
void add_map(RecordParser& parser, const Name& name, nb::handle key, const nb::dict& map) {
    if (!may_be_map(name.reader.kind)) {
        return parser.refuse_value("expected one value, got a dict in column " + name.reader.name);
    }
    parser.begin_list(name, text_of_key(key), 0);
    add_elements(parser, name, key, map, "", 2);
    parser.end_list();
}

// A list where the model has columns within this name: the values of these, and the other elements in their places.
struct SplitList {
    std::vector<std::pair<std::string, nb::object>> columns;
    nb::list others;
    bool has_others = false;
};

bool has_elements(nb::handle value) {
    return is_list(value) && (class_of(value) != "ndarray" || nb::cast<int>(value.attr("ndim")) > 0);
}

bool is_list_of_columns(const RecordParser& parser, const std::string& path, nb::handle value) {
    return parser.is_object(path) && has_elements(value);
}

// A quick answer for most values.
bool may_be_list_of_columns(const RecordParser& parser, nb::handle value) {
    PyObject* const object = value.ptr();
    const bool is_plain = PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) || PyLong_CheckExact(object) ||
                          PyBool_Check(object) || object == Py_None;
    return !is_plain && parser.has_objects() && has_elements(value);
}

// False when it is refused.
bool split_list(RecordParser& parser, const std::string& path, nb::handle list, SplitList& split) {
    nb::object sequence = nb::borrow(list);
    if (class_of(list) == "ndarray") sequence = list.attr("tolist")();
    const auto elements = nb::steal<nb::tuple>(PySequence_Tuple(sequence.ptr()));  // a copy, as everywhere
    for (nb::handle element : elements) {
        NamedElement read;
        if (PyDict_Check(element.ptr())) {
            const auto pair = nb::borrow<nb::dict>(element);
            if (!read_named_element(parser, nb::str(path.data(), path.size()), pair, read)) return false;
        }
        std::string column = path + "." + read.name;
        if (!read.has_name || !parser.knows(column)) {
            split.others.append(element);
            split.has_others = true;
            continue;
        }
        split.others.append(nb::none());
        auto match = split.columns.begin();
        while (match != split.columns.end() && match->first != column) ++match;
        if (match == split.columns.end()) {
            split.columns.emplace_back(std::move(column), read.value);
        } else {
            match->second = read.value;  // the last one counts, as in a dict
        }
    }
    return true;
}

std::string path_of(const std::string& object, nb::handle key) { return object + "." + text_of_key(key); }

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
        const std::string path = depth == 1 ? text_of_key(key) : path_of(object, key);
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
    forget_keys();
    RecordParser::set_names(names, reads_others);
    names_in_order_ = nb::list();
    for (const Column& column : names) {
        const auto size = static_cast<Py_ssize_t>(column.name.size());
        names_in_order_.append(nb::steal(PyUnicode_DecodeUTF8(column.name.data(), size, "replace")));
    }
}

const Name* DictParser::name_of(PyObject* key) {
    if (!PyUnicode_CheckExact(key)) return find_name(text_of_key(key));
    const Py_hash_t hash = PyObject_Hash(key);  // which a text keeps once it is known
    const std::size_t mask = keys_.size() - 1;
    for (std::size_t at = static_cast<std::size_t>(hash) & mask; !keys_.empty() && keys_[at].text != nullptr;
         at = (at + 1) & mask) {
        const Key& known = keys_[at];
        if (known.text == key || (known.hash == hash && PyUnicode_Compare(known.text, key) == 0)) return known.name;
    }
    const Name* const name = find_name(text_of_key(key));
    if (key_count_ < MOST_KEYS && (name == nullptr || name->lasts)) remember(key, hash, name);
    return name;
}

void DictParser::remember(PyObject* key, Py_hash_t hash, const Name* name) {
    if (2 * (key_count_ + 1) > keys_.size()) {
        std::vector<Key> before(keys_.empty() ? 64 : 2 * keys_.size());
        std::swap(keys_, before);
        key_count_ = 0;
        for (const Key& known : before) {
            if (known.text == nullptr) continue;
            remember(known.text, known.hash, known.name);
            Py_DECREF(known.text);
        }
    }
    const std::size_t mask = keys_.size() - 1;
    std::size_t at = static_cast<std::size_t>(hash) & mask;
    while (keys_[at].text != nullptr) at = (at + 1) & mask;
    Py_INCREF(key);
    keys_[at] = Key{key, hash, name};
    ++key_count_;
}

void DictParser::forget_order() noexcept {
    for (const Key& known : order_) Py_XDECREF(known.text);
    order_.clear();
}

void DictParser::forget_keys() noexcept {
    forget_order();
    for (const Key& known : keys_) Py_XDECREF(known.text);
    keys_.clear();
    key_count_ = 0;
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
        const std::string path = path_of(object, item[0]);
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
    if (!is_same) note_keys(items);
}

}  // namespace ftprl::bindings
