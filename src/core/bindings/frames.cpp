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

// What the first cells of Arrow arrays say of their column: of the arrays themselves, or of one of their columns.
nb::tuple sample_cells(const nb::list& parts, const nb::object& column, std::size_t most, bool keep) {
    ftprl::ColumnSample sample;
    sample.keeps_values = keep;
    for (nb::handle part : parts) {
        const auto* described = inside<ArrowSchema>(part[0], "arrow_schema");
        const auto* held = inside<ArrowArray>(part[1], "arrow_array");
        if (!column.is_none()) {
            const auto number = nb::cast<std::int64_t>(column);
            if (number < 0 || number >= described->n_children) throw nb::index_error("no such column");
            described = described->children[number];
            held = held->children[number];
        }
        const ftprl::ArrowColumn cells(*described, *held, 0);
        const std::size_t rows = std::min(most, cells.size());
        if (cells.dictionary() != nullptr) {
            add_entries(cells, rows, sample);
        } else {
            for (std::size_t i = 0; i < rows; ++i) add_cell(cells, i, sample);
        }
        most -= rows;
    }
    return ftprl::bindings::tuple_of(sample);
}

// ---- frames with the stream of Arrow's C data ----

template <class T>
void destroy(PyObject* capsule) {
    auto* const made = static_cast<T*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
    if (made->release != nullptr) made->release(made);
    delete made;
}

template <class T>
nb::object capsule_of(std::unique_ptr<T> made, const char* name) {
    PyObject* const capsule = PyCapsule_New(made.get(), name, &destroy<T>);
    if (capsule == nullptr) {
        if (made->release != nullptr) made->release(made.get());
        throw nb::python_error();
    }
    made.release();
    return nb::steal(capsule);
}

// Rows of a frame, in its own memory.
struct FrameBatch {
    nb::object schema, array;

    const ArrowArray& rows() const { return *inside<ArrowArray>(array, "arrow_array"); }

    // The first cells of a column as Python has them; texts are bytes.
    nb::list values(std::size_t column, std::size_t most) const {
        const auto* const described = inside<ArrowSchema>(schema, "arrow_schema");
        if (column >= static_cast<std::size_t>(described->n_children)) throw nb::index_error("no such column");
        const ftprl::ArrowColumn cells(*described->children[column], *rows().children[column], 0);
        nb::list out;
        for (std::size_t i = 0; i < std::min(most, cells.size()); ++i) out.append(value(cells, i));
        return out;
    }

    static nb::object value(const ftprl::ArrowColumn& cells, std::size_t i) {
        using Type = ftprl::ArrowColumn::Type;
        if (cells.is_missing(i)) return nb::none();
        if (cells.is_text()) {
            const Field field = cells.field(i);
            return nb::bytes(reinterpret_cast<const char*>(field.data),
                             static_cast<std::size_t>(field.end - field.data));
        }
        if (cells.type() == Type::boolean) return nb::bool_(cells.boolean(i));
        if (cells.type() == Type::f32 || cells.type() == Type::f64) return nb::float_(cells.number(i));
        nb::object number;
        cells.by_type([&](auto* type) { number = nb::int_(*cells.numbers<std::decay_t<decltype(*type)>>(i)); });
        return number;
    }
};

// Releases a stream however it ends.
struct StreamEnd {
    ArrowArrayStream& stream;
    ~StreamEnd() {
        if (stream.release != nullptr) stream.release(&stream);
    }
};

// Whether the columns of some rows begin with the rows and have as many cells.
bool has_plain_columns(const ArrowArray& rows) {
    bool is_plain = rows.offset == 0 && rows.null_count <= 0;
    for (std::int64_t i = 0; i < rows.n_children; ++i) is_plain = is_plain && rows.children[i]->length == rows.length;
    return is_plain;
}

// Whether a column is of an extension type: among its metadata, pairs of texts behind their lengths, is its name.
bool is_extension(const char* metadata) {
    if (metadata == nullptr) return false;
    const auto next = [&metadata] {
        std::int32_t number = 0;
        std::memcpy(&number, metadata, sizeof number);
        metadata += sizeof number;
        return number;
    };
    const std::int32_t pairs = next();
    for (std::int32_t i = 0; i < pairs; ++i) {
        const auto size = static_cast<std::size_t>(next());
        const std::string key(metadata, size);
        if (key == "ARROW:extension:name") return true;
        metadata += size;
        const std::int32_t value_size = next();
        metadata += value_size;
    }
    return false;
}

nb::object text_or_none(const char* text) { return text == nullptr ? nb::object(nb::none()) : nb::str(text); }

// The name, the type, the type of the dictionary and whether it is an extension, of each column; and all batches. None
// for what is no frame, and where columns and rows differ.
nb::object frame_batches(nb::handle capsule) {
    auto& stream = *inside<ArrowArrayStream>(capsule, "arrow_array_stream");
    if (stream.release == nullptr) throw nb::value_error("the stream was read before");
    const StreamEnd end{stream};
    const auto check = [&](int code) {
        if (code == 0) return;
        const char* const what = stream.get_last_error(&stream);
        throw nb::value_error(what == nullptr ? "the frame cannot be read" : what);
    };
    auto described = std::make_unique<ArrowSchema>();
    check(stream.get_schema(&stream, described.get()));
    const ArrowSchema& schema = *described;
    const nb::object shared = capsule_of(std::move(described), "arrow_schema");
    if (std::strcmp(schema.format, "+s") != 0) return nb::none();
    nb::list fields, batches;
    for (std::int64_t i = 0; i < schema.n_children; ++i) {
        const ArrowSchema& column = *schema.children[i];
        const char* const values = column.dictionary == nullptr ? nullptr : column.dictionary->format;
        fields.append(nb::make_tuple(text_or_none(column.name), text_or_none(column.format), text_or_none(values),
                                     is_extension(column.metadata)));
    }
    while (true) {
        auto rows = std::make_unique<ArrowArray>();
        check(stream.get_next(&stream, rows.get()));
        if (rows->release == nullptr) break;
        const bool is_plain = has_plain_columns(*rows) && rows->n_children == schema.n_children;
        nb::object array = capsule_of(std::move(rows), "arrow_array");
        if (!is_plain) return nb::none();
        batches.append(FrameBatch{shared, std::move(array)});
    }
    return nb::make_tuple(fields, batches);
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
    nb::class_<FrameBatch>(m, "FrameBatch", "Rows of a data frame, in its own memory.")
        .def(
            "__arrow_c_array__",
            [](const FrameBatch& batch, nb::handle /*requested_schema*/) {
                return nb::make_tuple(batch.schema, batch.array);
            },
            nb::arg("requested_schema").none() = nb::none(), "The rows as Arrow's C data.")
        .def("values", &FrameBatch::values, nb::arg("column"), nb::arg("most"), "The first cells of a column.")
        .def_prop_ro("num_rows", [](const FrameBatch& batch) { return batch.rows().length; });
    m.def("frame_batches", &frame_batches, nb::arg("stream"),
          "The columns of a frame, by the capsule of __arrow_c_stream__, and its rows; None where it has other parts.");
    m.def("sample_cells", &sample_cells, nb::arg("parts"), nb::arg("column").none(), nb::arg("most"), nb::arg("keep"),
          "What the first cells of Arrow arrays, or of one of their columns, say; with `keep` also their numbers.");
    nb::class_<DictParser, ftprl::FrameParser>(m, "RecordParser", "Rows from dicts.")
        .def("set_names", &set_names, nb::arg("names"), nb::arg("others"),
             "The kind of each known name, and whether others are read by their values.")
        .def("read_records", &read_records, nb::arg("records"), nb::arg("start"), nb::arg("stop"),
             "Read dicts [start, stop) of a list; returns where it stopped.");
}
