// Parquet files as Python sees them: their metadata, and rows with the interface of Arrow's C data.
#include <fcntl.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "readers/arrow.hpp"
#include "readers/parquet/rows.hpp"

namespace nb = nanobind;

namespace {

using ftprl::Byte;
using ftprl::parquet::Cells;
using ftprl::parquet::Damaged;
using ftprl::parquet::Leaf;
using ftprl::parquet::Metadata;
using ftprl::parquet::Physical;
using ftprl::parquet::Rows;

constexpr std::int64_t DATE = 6, UNSIGNED_32 = 13,
                       UNSIGNED_64 = 14;  // converted types, and the first a logical one too
constexpr std::int64_t MILLISECONDS = 9, MICROSECONDS = 10;
constexpr std::int64_t TIMESTAMP = 8;  // a logical type

// The type of a column as Arrow writes it; texts of a dictionary have smaller offsets.
std::string format_of(const Leaf& leaf, bool is_text_of_dictionary) {
    const bool is_utf8 = leaf.converted == 0 || leaf.logical == 1;
    switch (static_cast<Physical>(leaf.type)) {
        case Physical::boolean:
            return "b";
        case Physical::int32:
            return leaf.converted == DATE || leaf.logical == DATE ? "tdD" : leaf.converted == UNSIGNED_32 ? "I" : "i";
        case Physical::int64: {
            const std::int64_t unit = leaf.logical == TIMESTAMP        ? leaf.unit
                                      : leaf.converted == MILLISECONDS ? 1
                                      : leaf.converted == MICROSECONDS ? 2
                                                                       : 0;
            if (unit < 0 || unit > 3) throw Damaged("a time of an unknown unit");
            if (unit == 0) return leaf.converted == UNSIGNED_64 ? "L" : "l";
            const bool is_utc = leaf.logical == TIMESTAMP ? leaf.is_utc : true;
            return std::string("ts") + "  mun"[1 + unit] + (is_utc ? ":UTC" : ":");
        }
        case Physical::float32:
            return "f";
        case Physical::float64:
            return "g";
        case Physical::bytes:
            return is_text_of_dictionary ? is_utf8 ? "u" : "z" : is_utf8 ? "U" : "Z";
        default:
            throw Damaged("a type that is not read");
    }
}

// ---- Arrow's C data interface: structures that own what they need, and free it when they are released ----

struct OwnedSchema {
    std::string format, name;
    std::vector<std::unique_ptr<ArrowSchema>> children;
    std::vector<ArrowSchema*> pointers;
    std::unique_ptr<ArrowSchema> dictionary;
};

struct OwnedArray {
    std::shared_ptr<const Rows> rows;
    std::vector<const void*> buffers;
    std::vector<std::unique_ptr<ArrowArray>> children;
    std::vector<ArrowArray*> pointers;
    std::unique_ptr<ArrowArray> dictionary;
};

template <class T, class Owned>
void release(T* self) {
    auto* const owned = static_cast<Owned*>(self->private_data);
    for (const auto& child : owned->children) {
        if (child->release != nullptr) child->release(child.get());
    }
    if (owned->dictionary && owned->dictionary->release != nullptr) owned->dictionary->release(owned->dictionary.get());
    self->release = nullptr;
    delete owned;
}

std::unique_ptr<ArrowSchema> schema_of(std::string format, std::string name,
                                       std::vector<std::unique_ptr<ArrowSchema>> children,
                                       std::unique_ptr<ArrowSchema> dictionary) {
    auto owned = std::make_unique<OwnedSchema>();
    owned->format = std::move(format);
    owned->name = std::move(name);
    owned->children = std::move(children);
    owned->dictionary = std::move(dictionary);
    for (const auto& child : owned->children) owned->pointers.push_back(child.get());
    auto made = std::make_unique<ArrowSchema>();
    made->format = owned->format.c_str();
    made->name = owned->name.c_str();
    made->metadata = nullptr;
    made->flags = 2;  // cells may be missing
    made->n_children = static_cast<std::int64_t>(owned->pointers.size());
    made->children = owned->pointers.data();
    made->dictionary = owned->dictionary.get();
    made->release = &release<ArrowSchema, OwnedSchema>;
    made->private_data = owned.release();
    return made;
}

std::unique_ptr<ArrowArray> array_of(const std::shared_ptr<const Rows>& rows, std::size_t size, std::size_t missing,
                                     std::vector<const void*> buffers,
                                     std::vector<std::unique_ptr<ArrowArray>> children,
                                     std::unique_ptr<ArrowArray> dictionary) {
    auto owned = std::make_unique<OwnedArray>();
    owned->rows = rows;
    owned->buffers = std::move(buffers);
    owned->children = std::move(children);
    owned->dictionary = std::move(dictionary);
    for (const auto& child : owned->children) owned->pointers.push_back(child.get());
    auto made = std::make_unique<ArrowArray>();
    made->length = static_cast<std::int64_t>(size);
    made->null_count = static_cast<std::int64_t>(missing);
    made->offset = 0;
    made->n_buffers = static_cast<std::int64_t>(owned->buffers.size());
    made->n_children = static_cast<std::int64_t>(owned->pointers.size());
    made->buffers = owned->buffers.data();
    made->children = owned->pointers.data();
    made->dictionary = owned->dictionary.get();
    made->release = &release<ArrowArray, OwnedArray>;
    made->private_data = owned.release();
    return made;
}

template <class T>
nb::object capsule_of(std::unique_ptr<T> made, const char* name, PyCapsule_Destructor destructor) {
    PyObject* const capsule = PyCapsule_New(made.get(), name, destructor);
    if (capsule == nullptr) throw nb::python_error();
    made.release();
    return nb::steal(capsule);
}

template <class T>
void destroy(PyObject* capsule) {
    const char* const name = PyCapsule_GetName(capsule);
    auto* const made = static_cast<T*>(PyCapsule_GetPointer(capsule, name));
    if (made->release != nullptr) made->release(made);
    delete made;
}

// ---- the classes ----

// Rows in memory: a record batch of Arrow.
struct Batch {
    std::shared_ptr<const Metadata> metadata;
    std::shared_ptr<const Rows> rows;

    std::unique_ptr<ArrowSchema> schema(const Cells& cells) const {
        const Leaf& leaf = metadata->leaves[cells.leaf];
        if (cells.form != Cells::Form::codes) return schema_of(format_of(leaf, false), leaf.name, {}, nullptr);
        return schema_of("i", leaf.name, {}, schema_of(format_of(leaf, true), "", {}, nullptr));
    }

    std::unique_ptr<ArrowArray> array(const Cells& cells) const {
        std::vector<const void*> buffers{rows->valid(cells), rows->data(cells)};
        std::unique_ptr<ArrowArray> dictionary;
        if (cells.form == Cells::Form::texts) buffers.push_back(text_of(cells));
        if (cells.form == Cells::Form::codes) {
            const ftprl::parquet::Dictionary& known = *cells.dictionary;
            dictionary = array_of(rows, known.size, 0, {nullptr, known.ends.data(), known.bytes.data()}, {}, nullptr);
        }
        return array_of(rows, rows->count, cells.missing, std::move(buffers), {}, std::move(dictionary));
    }

    const Byte* text_of(const Cells& cells) const {
        static constexpr Byte NOTHING[1] = {0};
        const Byte* const texts = rows->texts[cells.lane].data();
        return texts == nullptr ? NOTHING : texts + cells.texts;
    }

    nb::tuple capsules(nb::handle /*requested_schema*/) const {
        std::vector<std::unique_ptr<ArrowSchema>> schemas;
        std::vector<std::unique_ptr<ArrowArray>> arrays;
        for (const Cells& cells : rows->columns) {
            schemas.push_back(schema(cells));
            arrays.push_back(array(cells));
        }
        auto whole_schema = schema_of("+s", "", std::move(schemas), nullptr);
        auto whole = array_of(rows, rows->count, 0, {nullptr}, std::move(arrays), nullptr);
        return nb::make_tuple(capsule_of(std::move(whole_schema), "arrow_schema", &destroy<ArrowSchema>),
                              capsule_of(std::move(whole), "arrow_array", &destroy<ArrowArray>));
    }

    // The cells of a column as Python has them.
    nb::list values(std::size_t column) const {
        if (column >= rows->columns.size()) throw nb::index_error("no such column");
        const Cells& cells = rows->columns[column];
        const auto described = schema(cells);
        const auto held = array(cells);
        nb::list out;
        {
            const ftprl::ArrowColumn read(*described, *held, 0);
            char scratch[ftprl::LONGEST_VALUE];
            for (std::size_t i = 0; i < rows->count; ++i) out.append(value(read, i, scratch));
        }
        described->release(described.get());
        held->release(held.get());
        return out;
    }

    static nb::object value(const ftprl::ArrowColumn& read, std::size_t i, char (&scratch)[ftprl::LONGEST_VALUE]) {
        using Type = ftprl::ArrowColumn::Type;
        if (read.is_missing(i)) return nb::none();
        if (read.dictionary() != nullptr || read.is_text()) {
            const ftprl::Field field = read.spelled(i, scratch);
            return nb::bytes(reinterpret_cast<const char*>(field.data),
                             static_cast<std::size_t>(field.end - field.data));
        }
        if (read.type() == Type::boolean) return nb::bool_(read.boolean(i));
        if (read.type() == Type::f32 || read.type() == Type::f64) return nb::float_(read.number(i));
        if (read.type() == Type::u64) return nb::int_(*read.numbers<std::uint64_t>(i));
        if (read.type() == Type::u32) return nb::int_(*read.numbers<std::uint32_t>(i));
        if (read.type() == Type::i32) return nb::int_(*read.numbers<std::int32_t>(i));
        return nb::int_(*read.numbers<std::int64_t>(i));
    }
};

class Group {
public:
    Group(const std::shared_ptr<const ftprl::parquet::File>& file, std::shared_ptr<const Metadata> metadata,
          std::size_t number, const std::vector<ftprl::parquet::Wanted>& wanted,
          const ftprl::parquet::Decompress& decompress)
        : metadata_(std::move(metadata)), reader_(file, *metadata_, number, wanted, decompress) {}

    nb::object read(std::size_t most) {
        std::shared_ptr<const Rows> rows;
        {
            const nb::gil_scoped_release free;
            rows = reader_.read(most);
        }
        return rows->count == 0 ? nb::none() : nb::cast(Batch{metadata_, std::move(rows)});
    }

private:
    std::shared_ptr<const Metadata> metadata_;
    ftprl::parquet::GroupReader reader_;
};

class ParquetFile {
public:
    explicit ParquetFile(const std::string& path) {
        const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        struct stat about{};
        if (descriptor < 0 || ::fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode)) {
            const int error = errno;
            if (descriptor >= 0) ::close(descriptor);
            throw Damaged(descriptor < 0 ? std::strerror(error) : "something that is no file");
        }
        file_ = std::make_shared<ftprl::parquet::File>(descriptor);
        const std::int64_t size = about.st_size;
        Byte head[4], tail[8];
        if (size < 12) throw Damaged("a file that is too short");
        file_->read(0, head, sizeof head);
        file_->read(size - 8, tail, sizeof tail);
        if (std::memcmp(head, "PAR1", 4) != 0 || std::memcmp(tail + 4, "PAR1", 4) != 0) throw Damaged("other bytes");
        const auto length = static_cast<std::int64_t>(ftprl::detail::load4(tail));
        if (length > size - 12) throw Damaged("an end that is cut");
        std::vector<Byte> text(static_cast<std::size_t>(length));
        file_->read(size - 8 - length, text.data(), text.size());
        metadata_ = std::make_shared<Metadata>(
            ftprl::parquet::read_metadata(text.data(), text.data() + text.size(), size - 8 - length));
    }

    nb::list leaves() const {
        nb::list out;
        for (const Leaf& leaf : metadata_->leaves) {
            const nb::bytes name(leaf.name.data(), leaf.name.size());
            out.append(
                nb::make_tuple(name, leaf.type, leaf.converted, leaf.logical, leaf.unit, leaf.encodings, leaf.codecs));
        }
        return out;
    }
    nb::bytes arrow_schema() const { return nb::bytes(metadata_->arrow_schema.data(), metadata_->arrow_schema.size()); }
    bool is_flat() const { return metadata_->is_flat; }
    std::size_t groups() const { return metadata_->groups.size(); }

    // `decompress` takes the bytes of a page and its size, and returns what is in them.
    std::unique_ptr<Group> group(std::size_t number, const std::vector<std::pair<std::size_t, bool>>& columns,
                                 const nb::object& decompress) const {
        if (file_ == nullptr) throw nb::value_error("the file is closed");
        if (number >= groups() || !is_flat()) throw nb::index_error("no such row group");
        std::vector<ftprl::parquet::Wanted> wanted;
        for (const auto& [leaf, as_codes] : columns) {
            if (leaf >= metadata_->leaves.size()) throw nb::index_error("no such column");
            format_of(metadata_->leaves[leaf], false);  // has to be known
            wanted.push_back({leaf, as_codes});
        }
        const auto call = [decompress](const Byte* p, const Byte* end, Byte* out, std::size_t size) {
            const nb::gil_scoped_acquire hold;
            unpack(decompress, p, end, out, size);
        };
        return std::make_unique<Group>(file_, metadata_, number, wanted, call);
    }

    void close() { file_.reset(); }

private:
    static void unpack(const nb::object& decompress, const Byte* p, const Byte* end, Byte* out, std::size_t size) {
        const nb::bytes page(reinterpret_cast<const char*>(p), static_cast<std::size_t>(end - p));
        const nb::object content = decompress(page, size);
        Py_buffer view;
        if (PyObject_GetBuffer(content.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
        const bool fits = static_cast<std::size_t>(view.len) == size;
        if (fits && size != 0) std::memcpy(out, view.buf, size);
        PyBuffer_Release(&view);
        if (!fits) throw Damaged("a page of another size");
    }

    std::shared_ptr<const ftprl::parquet::File> file_;
    std::shared_ptr<const Metadata> metadata_;
};

nb::list columns_with_dictionaries(const nb::bytes& metadata) {
    const auto* const p = reinterpret_cast<const Byte*>(metadata.c_str());
    nb::list out;
    for (const std::string& name : ftprl::parquet::columns_with_dictionaries(p, p + metadata.size())) {
        out.append(nb::bytes(name.data(), name.size()));
    }
    return out;
}

}  // namespace

void ftprl::bindings::bind_parquet(nb::module_& m) {
    nb::class_<Batch>(m, "ParquetBatch", "Rows of a Parquet file in memory.")
        .def("__arrow_c_array__", &Batch::capsules, nb::arg("requested_schema").none() = nb::none(),
             "The rows as Arrow's C data.")
        .def("values", &Batch::values, nb::arg("column"), "The cells of a column.")
        .def_prop_ro("num_rows", [](const Batch& batch) { return batch.rows->count; });
    nb::class_<Group>(m, "ParquetGroup", "The columns of a row group.")
        .def("read", &Group::read, nb::arg("most"), "The next rows; None at the end.");
    nb::class_<ParquetFile>(m, "ParquetFile", "A Parquet file; one that is damaged is a ValueError.")
        .def(nb::init<const std::string&>(), nb::arg("path"))
        .def_prop_ro("leaves", &ParquetFile::leaves,
                     "Of each column the name, type, converted type, logical type, unit of time, encodings and codecs.")
        .def_prop_ro("arrow_schema", &ParquetFile::arrow_schema)
        .def_prop_ro("is_flat", &ParquetFile::is_flat)
        .def_prop_ro("groups", &ParquetFile::groups)
        .def("group", &ParquetFile::group, nb::arg("number"), nb::arg("columns"), nb::arg("decompress").none(),
             "A row group: the number of each column, and whether it may come as a dictionary.")
        .def("close", &ParquetFile::close);
    m.def(
        "has_zstd", [] { return ftprl::parquet::Unzstd::library().is_there(); },
        "Whether the system has the library that decompresses zstd.");
    m.def("columns_with_dictionaries", &columns_with_dictionaries, nb::arg("metadata"),
          "The columns that are in no other and have a dictionary in the first row group of a file with this end.");
}
