// Data frames and records as Python sees them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "readers/records.hpp"
#include "readers/sample.hpp"

namespace nb = nanobind;

namespace {

using ftprl::Byte;
using ftprl::Field;

using ftprl::bindings::column_of;

template <class T>
T* inside(nb::handle capsule, const char* name) {
    auto* const inner = static_cast<T*>(PyCapsule_GetPointer(capsule.ptr(), name));
    if (inner == nullptr) throw nb::python_error();
    return inner;
}

// A record batch in the hands of a parser, which reads it in place: kept as long as the parser has no other.
class HeldBatch {
public:
    HeldBatch(nb::handle schema, nb::handle array) : schema_(nb::borrow(schema)), array_(nb::borrow(array)) {}

    std::vector<std::pair<ftprl::Column, ftprl::ArrowColumn>> columns(const nb::list& kinds) const {
        const auto* const schema = inside<ArrowSchema>(schema_, "arrow_schema");
        const auto* const array = inside<ArrowArray>(array_, "arrow_array");
        const auto count = static_cast<std::int64_t>(kinds.size());
        if (schema->n_children != count || array->n_children != count) {
            throw nb::value_error("a batch needs one kind for each of its columns");
        }
        std::vector<std::pair<ftprl::Column, ftprl::ArrowColumn>> columns;
        for (std::int64_t i = 0; i < count; ++i) {
            if (array->children[i]->length < array->offset + array->length) throw nb::value_error("a column too short");
            columns.emplace_back(column_of(kinds[static_cast<std::size_t>(i)]),
                                 ftprl::ArrowColumn(*schema->children[i], *array->children[i], array->offset));
        }
        return columns;
    }
    std::size_t rows() const { return static_cast<std::size_t>(inside<ArrowArray>(array_, "arrow_array")->length); }

private:
    nb::object schema_;
    nb::object array_;
};

// The capsules own the batch: they are kept beside the parser, and its columns point into them.
void set_batch(nb::handle_t<ftprl::FrameParser> self, const nb::list& kinds, nb::handle schema, nb::handle array) {
    const HeldBatch batch(schema, array);
    auto& parser = nb::cast<ftprl::FrameParser&>(self);
    parser.set_columns(batch.columns(kinds));
    nb::setattr(self, "batch", nb::make_tuple(nb::borrow(schema), nb::borrow(array)));
    nb::setattr(self, "batch_rows", nb::int_(batch.rows()));
}

std::size_t read_rows(nb::handle_t<ftprl::FrameParser> self, std::size_t from, std::size_t to) {
    auto& parser = nb::cast<ftprl::FrameParser&>(self);
    if (from > to || to > nb::cast<std::size_t>(self.attr("batch_rows"))) {
        throw nb::value_error("rows beyond the end of the batch");
    }
    const nb::gil_scoped_release free;
    return parser.read(from, to);
}

std::string name_of(nb::handle key) {
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

// A whole number of any size.
void add_whole(ftprl::RecordParser& parser, const std::string& name, nb::handle value) {
    const double number = PyLong_AsDouble(value.ptr());
    if (number == -1.0 && PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        const double infinite = std::numeric_limits<double>::infinity();
        return parser.add_number(name, infinite, field_of("a number with more than 300 digits"));
    }
    char room[ftprl::LONGEST_VALUE];
    int beyond = 0;
    const long long small = PyLong_AsLongLongAndOverflow(value.ptr(), &beyond);
    if (beyond != 0) return parser.add_number(name, number, field_of(written(value)));
    const char* const end = ftprl::write_value(room, static_cast<std::int64_t>(small));
    const auto* const last = reinterpret_cast<const Byte*>(end);
    parser.add_number(name, number, Field{reinterpret_cast<const Byte*>(room), last, last});
}

void add_float(ftprl::RecordParser& parser, const std::string& name, double number) {
    char room[ftprl::LONGEST_VALUE];
    const auto* const last = reinterpret_cast<const Byte*>(ftprl::write_value(room, number));
    parser.add_number(name, number, Field{reinterpret_cast<const Byte*>(room), last, last});
}

void add_bytes(ftprl::RecordParser& parser, const std::string& name, const char* bytes, Py_ssize_t size) {
    const auto* const first = reinterpret_cast<const Byte*>(bytes);
    parser.add_text(name, Field{first, first + size, first + size});
}

// A number of another type than Python's own: of NumPy, or a decimal number.
void add_rounded(ftprl::RecordParser& parser, const std::string& name, double number, const std::string& type,
                 nb::handle value) {
    if (type != "float32") return parser.add_number(name, number, field_of(written(value)));
    char room[ftprl::LONGEST_VALUE];  // as in a column of this type: NumPy spells some numbers in another way
    const auto* const last = reinterpret_cast<const Byte*>(ftprl::write_value(room, static_cast<float>(number)));
    parser.add_number(name, number, Field{reinterpret_cast<const Byte*>(room), last, last});
}

// Values that are rare: those of NumPy and pandas, decimal numbers, and what no record may have.
void add_other(ftprl::RecordParser& parser, const std::string& name, nb::handle value) {
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
        if (PyErr_Occurred() == nullptr) return add_rounded(parser, name, number, type, value);
        PyErr_Clear();
    }
    if (!parser.uses(name)) return;
    if (type == "date" || type == "datetime" || type == "Timestamp" || type == "datetime64") {
        const std::string text = written(value);  // NumPy's own missing time is NaT
        return text == "NaT" ? parser.add_missing(name) : parser.add_text(name, field_of(text));
    }
    parser.refuse_value("expected a number, text, a date, True, False or None, got " + type + " in column '" + name +
                        "'");
}

void add_value(ftprl::RecordParser& parser, const std::string& name, nb::handle value) {
    PyObject* const object = value.ptr();
    if (value.is_none()) return parser.add_missing(name);
    if (PyUnicode_Check(object)) {
        Py_ssize_t size = 0;
        const char* const bytes = PyUnicode_AsUTF8AndSize(object, &size);
        if (bytes != nullptr) return add_bytes(parser, name, bytes, size);
        PyErr_Clear();
        if (parser.uses(name)) parser.refuse_value("expected text in UTF-8, got other text in column '" + name + "'");
    } else if (PyFloat_Check(object)) {
        add_float(parser, name, PyFloat_AS_DOUBLE(object));
    } else if (PyBool_Check(object)) {
        parser.add_boolean(name, object == Py_True);
    } else if (PyLong_Check(object)) {
        add_whole(parser, name, value);
    } else if (PyBytes_Check(object)) {
        add_bytes(parser, name, PyBytes_AS_STRING(object), PyBytes_GET_SIZE(object));
    } else {
        add_other(parser, name, value);
    }
}

// A dict whose keys are all text.
nb::dict with_text_keys(nb::handle record) {
    const auto items = nb::cast<nb::dict>(record);
    bool is_text = true;
    for (const auto& [key, value] : items) is_text = is_text && PyUnicode_CheckExact(key.ptr());
    if (is_text) return items;
    nb::dict named;
    for (const auto& [key, value] : items) named[nb::str(key)] = value;
    return named;
}

// All known names in their order, and then the others: what a record lacks is a missing value, in its place.
void add_all_names(ftprl::RecordParser& parser, const nb::dict& items, const nb::list& names) {
    std::size_t found = 0;
    for (nb::handle name : names) {
        PyObject* const value = PyDict_GetItemWithError(items.ptr(), name.ptr());
        if (value == nullptr) {
            parser.add_missing(name_of(name));
        } else {
            ++found;
            add_value(parser, name_of(name), value);
        }
    }
    if (found == items.size()) return;
    for (const auto& [key, value] : items) {
        const std::string name = name_of(key);
        if (!parser.knows(name)) add_value(parser, name, value);
    }
}

void add_record(ftprl::RecordParser& parser, std::size_t at, nb::handle record, const nb::list& names) {
    if (!PyDict_Check(record.ptr())) {
        parser.begin_record(at, 0);
        return parser.refuse_value("expected a dict, got " + class_of(record));
    }
    if (parser.wants_missing()) {
        const nb::dict items = with_text_keys(record);
        parser.begin_record(at, items.size());
        add_all_names(parser, items, names);
    } else {
        const auto items = nb::cast<nb::dict>(record);
        parser.begin_record(at, items.size());
        for (const auto& [key, value] : items) add_value(parser, name_of(key), value);
    }
    parser.end_record();
}

std::size_t read_records(nb::handle_t<ftprl::RecordParser> self, const nb::list& records, std::size_t from,
                         std::size_t to) {
    if (from > to || to > records.size()) throw nb::value_error("rows beyond the end of the records");
    auto& parser = nb::cast<ftprl::RecordParser&>(self);
    const auto names = nb::cast<nb::list>(self.attr("names"));
    for (; from < to && !parser.full() && parser.problem.line == 0; ++from) {
        add_record(parser, from, records[from], names);
    }
    return from;
}

// The names are kept as Python's text, too: records are asked for them.
void set_names(nb::handle_t<ftprl::RecordParser> self, const nb::list& names, bool others) {
    std::vector<ftprl::Column> columns;
    nb::list texts;
    for (nb::handle pair : names) {
        columns.push_back(column_of(pair));
        texts.append(nb::steal(PyUnicode_DecodeUTF8(columns.back().name.data(),
                                                    static_cast<Py_ssize_t>(columns.back().name.size()), "replace")));
    }
    nb::cast<ftprl::RecordParser&>(self).set_names(columns, others);
    nb::setattr(self, "names", texts);
}

// What the cells of an Arrow array say of their column.
nb::tuple sample_cells(nb::handle schema, nb::handle array, bool keep) {
    const auto* const described = inside<ArrowSchema>(schema, "arrow_schema");
    const auto* const held = inside<ArrowArray>(array, "arrow_array");
    const ftprl::ArrowColumn cells(*described, *held, 0);
    ftprl::ColumnSample sample;
    sample.keeps_values = keep;
    char room[ftprl::LONGEST_VALUE];
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if (cells.is_temporal() && !cells.is_missing(i)) {
            sample.add_instant(cells.seconds(i));
        } else if (cells.dictionary() != nullptr && !cells.is_missing(i)) {
            const Field entry = cells.written(i, room);
            double number = 0.0;
            const bool is_there = ftprl::parse_number(entry.data, entry.end, number) == ftprl::Parsed::ok &&
                                  number >= 0.0 && number < static_cast<double>(cells.dictionary()->size());
            if (is_there) sample.add(cells.dictionary()->written(static_cast<std::size_t>(number), room));
        } else {
            sample.add(cells.written(i, room));
        }
    }
    return ftprl::bindings::tuple_of(sample);
}

}  // namespace

ftprl::Column ftprl::bindings::column_of(nb::handle pair) {
    const int kind = nb::cast<int>(pair[0]);
    if (kind < 0 || kind >= ftprl::Column::KINDS) throw nb::value_error("no such kind");
    const auto name = nb::cast<nb::bytes>(pair[1]);
    return ftprl::Column{static_cast<ftprl::Column::Kind>(kind), std::string(name.c_str(), name.size())};
}

nb::tuple ftprl::bindings::tuple_of(const ftprl::ColumnSample& sample) {
    nb::list values;
    for (const double value : sample.values) values.append(value);
    const nb::bytes example(sample.example.data(), sample.example.size());
    return nb::make_tuple(sample.cells, sample.empty, sample.absent, sample.numbers, sample.whole, sample.booleans,
                          sample.dates, sample.times, sample.commas, sample.spaced, sample.distinct.count(), sample.low,
                          sample.high, sample.first, sample.last, example, values);
}

void ftprl::bindings::bind_frames(nb::module_& m) {
    nb::class_<ftprl::FrameParser, ftprl::Parser>(m, "FrameParser", nb::dynamic_attr(),
                                                  "Rows from Arrow record batches, read in place.")
        .def("set_batch", &set_batch, nb::arg("columns"), nb::arg("schema"), nb::arg("array"),
             "The batch to read: the kind and name of each column, and the two capsules of __arrow_c_array__.")
        .def("read", &read_rows, nb::arg("start"), nb::arg("stop"),
             "Read rows [start, stop); returns where it stopped.");
    m.def("sample_cells", &sample_cells, nb::arg("schema"), nb::arg("array"), nb::arg("keep"),
          "What the cells of an Arrow array say of their column; with `keep` also their numbers.");
    nb::class_<ftprl::RecordParser, ftprl::FrameParser>(m, "RecordParser", "Rows from dicts.")
        .def("set_names", &set_names, nb::arg("names"), nb::arg("others"),
             "The kind of each known name, and whether others are read by their values.")
        .def("read_records", &read_records, nb::arg("records"), nb::arg("start"), nb::arg("stop"),
             "Read dicts [start, stop) of a list; returns where it stopped.");
}
