#include "bindings/record_values.hpp"

#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace nb = nanobind;

namespace ftprl::bindings {

using Name = RecordParser::Name;

std::string text_of_key(nb::handle key) {
    Py_ssize_t size = 0;
    const nb::object text = PyUnicode_Check(key.ptr()) ? nb::borrow(key) : nb::object(nb::str(key));
    const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (bytes == nullptr) throw nb::python_error();
    return std::string(bytes, static_cast<std::size_t>(size));
}

std::string class_of(nb::handle value) { return nb::cast<std::string>(nb::handle(value.type()).attr("__name__")); }

namespace {

Field field_of(const std::string& text) {
    const auto* const first = reinterpret_cast<const Byte*>(text.data());
    return Field{first, first + text.size(), first + text.size()};
}

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

bool has_elements(nb::handle value) {
    return is_list(value) && (class_of(value) != "ndarray" || nb::cast<int>(value.attr("ndim")) > 0);
}

}  // namespace

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

bool is_list_of_columns(const RecordParser& parser, const std::string& path, nb::handle value) {
    return parser.is_object(path) && has_elements(value);
}

bool may_be_list_of_columns(const RecordParser& parser, nb::handle value) {
    PyObject* const object = value.ptr();
    const bool is_plain = PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) || PyLong_CheckExact(object) ||
                          PyBool_Check(object) || object == Py_None;
    return !is_plain && parser.has_objects() && has_elements(value);
}

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

}  // namespace ftprl::bindings
