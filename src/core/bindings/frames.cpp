// Data frames and records as Python sees them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/records.hpp"
#include "readers/sample.hpp"

namespace nb = nanobind;

namespace {

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

std::size_t read_records(ftprl::bindings::DictParser& parser, const nb::list& records, std::size_t from,
                         std::size_t to) {
    if (from > to || to > records.size()) throw nb::value_error("rows beyond the end of the records");
    for (; from < to && !parser.full() && parser.problem.line == 0; ++from) parser.add_dict(from, records[from]);
    return from;
}

void set_names(ftprl::bindings::DictParser& parser, const nb::list& names, bool others) {
    std::vector<ftprl::Column> columns;
    for (nb::handle pair : names) columns.push_back(column_of(pair));
    parser.set_names(columns, others);
}

// Whether a cell is a finite number that its text stands for exactly: float32 is written with fewer digits than it has,
// and a double does not hold every whole number beyond 2^53.
bool is_exact(const ftprl::ArrowColumn& cells, std::size_t i, double& number) {
    using Type = ftprl::ArrowColumn::Type;
    const Type type = cells.type();
    if (type == Type::f32 || type == Type::boolean || type == Type::nothing || cells.is_text() || cells.is_list()) {
        return false;
    }
    if (cells.is_missing(i)) return false;
    number = cells.number(i);
    return type == Type::f64 ? std::isfinite(number) : std::fabs(number) < 0x1p53;
}

// A cell that is text or a number, or the number of a dictionary's entry, or a moment.
void add_cell(const ftprl::ArrowColumn& cells, std::size_t i, ftprl::ColumnSample& sample) {
    char scratch[ftprl::LONGEST_VALUE];
    if (cells.is_temporal() && !cells.is_missing(i)) {
        sample.add_instant(cells.seconds(i));
    } else if (double number = 0.0; is_exact(cells, i, number)) {
        if (sample.example.empty()) sample.set_example(cells.written(i, scratch));
        sample.add_exact(number);
    } else {
        sample.add(cells.written(i, scratch));
    }
}

// The same for a column with a dictionary: each entry is looked at once.
void add_entries(const ftprl::ArrowColumn& cells, std::size_t rows, ftprl::ColumnSample& sample) {
    const ftprl::ArrowColumn& dictionary = *cells.dictionary();
    std::vector<std::int64_t> counts(dictionary.size(), 0);
    std::vector<std::size_t> order;
    cells.by_type([&](auto* type) {
        const auto* const numbers = cells.template numbers<std::decay_t<decltype(*type)>>(0);
        for (std::size_t i = 0; i < rows; ++i) {
            if (cells.is_missing(i)) {
                sample.add(Field{nullptr, nullptr, nullptr});
            } else if (const auto entry = static_cast<std::size_t>(numbers[i]);
                       entry < counts.size() && counts[entry]++ == 0) {
                order.push_back(entry);
            }
        }
    });
    char scratch[ftprl::LONGEST_VALUE];
    for (const std::size_t entry : order) sample.add(dictionary.written(entry, scratch), counts[entry]);
}

// What the cells of an Arrow array say of their column.
nb::tuple sample_cells(nb::handle schema, nb::handle array, bool keep) {
    ftprl::ColumnSample sample;
    sample.keeps_values = keep;
    const ftprl::ArrowColumn cells(*inside<ArrowSchema>(schema, "arrow_schema"),
                                   *inside<ArrowArray>(array, "arrow_array"), 0);
    if (cells.dictionary() != nullptr) {
        add_entries(cells, cells.size(), sample);
    } else {
        for (std::size_t i = 0; i < cells.size(); ++i) add_cell(cells, i, sample);
    }
    return ftprl::bindings::tuple_of(sample);
}

}  // namespace

ftprl::Column ftprl::bindings::column_of(nb::handle pair) {
    const auto kind = nb::cast<std::size_t>(pair[0]);
    if (kind >= ftprl::KINDS) throw nb::value_error("no such kind");
    const auto name = nb::cast<nb::bytes>(pair[1]);
    return ftprl::Column{static_cast<ftprl::Column::Kind>(kind), std::string(name.c_str(), name.size())};
}

nb::tuple ftprl::bindings::tuple_of(const ftprl::ColumnSample& sample) {
    nb::list values;
    for (const double value : sample.values) values.append(value);
    const nb::bytes example(sample.example.data(), sample.example.size());
    return nb::make_tuple(sample.cells, sample.empty, sample.absent, sample.numbers, sample.whole, sample.booleans,
                          sample.dates, sample.times, sample.commas, sample.spaced, sample.signs, sample.slashes,
                          sample.points, sample.distinct.count(), sample.low, sample.high, sample.first, sample.last,
                          example, values);
}

void ftprl::bindings::bind_frames(nb::module_& m) {
    nb::class_<ftprl::FrameParser, ftprl::Parser>(m, "FrameParser", nb::dynamic_attr(),
                                                  "Rows from Arrow record batches, read in place.")
        .def("set_batch", &set_batch, nb::arg("columns"), nb::arg("schema"), nb::arg("array"),
             "The batch to read: the kind and name of each column, and the two capsules of __arrow_c_array__.")
        .def("read", &read_rows, nb::arg("start"), nb::arg("stop"),
             "Read rows [start, stop); returns where it stopped.");
    m.def(
        "column_kinds",
        [] {
            nb::list names;
            for (const char* name : ftprl::OTHER_KINDS) names.append(name);
            for (const ftprl::FixedKind& kind : ftprl::FIXED_KINDS) names.append(kind.name);
            return names;
        },
        "The names of the kinds of columns, in the order of their numbers.");
    m.def("sample_cells", &sample_cells, nb::arg("schema"), nb::arg("array"), nb::arg("keep"),
          "What the cells of an Arrow array say of their column; with `keep` also their numbers.");
    nb::class_<DictParser, ftprl::FrameParser>(m, "RecordParser", "Rows from dicts.")
        .def("set_names", &set_names, nb::arg("names"), nb::arg("others"),
             "The kind of each known name, and whether others are read by their values.")
        .def_rw("needs_all_names", &ftprl::bindings::DictParser::needs_all_names,
                "Whether a dict that lacks a known feature is refused.")
        .def("read_records", &read_records, nb::arg("records"), nb::arg("start"), nb::arg("stop"),
             "Read dicts [start, stop) of a list; returns where it stopped.");
}
