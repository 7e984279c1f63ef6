// The one file of the core that knows Python: it checks what comes in, calls the core, wraps what goes out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hash.hpp"
#include "learner.hpp"
#include "libsvm.hpp"
#include "scale_learner.hpp"
#include "table.hpp"
#include "text.hpp"
#include "vw.hpp"
#include "window.hpp"

namespace nb = nanobind;

namespace {

struct Bytes {
    const unsigned char* data;
    std::size_t size;
};

std::string kind_of(nb::handle value) { return nb::cast<const char*>(value.type().attr("__name__")); }

nb::builtin_exception not_text(const std::string& what, nb::handle value) {
    return nb::type_error((what + " must be str or bytes, got " + kind_of(value)).c_str());
}

// Nothing when `value` is not text. The bytes belong to `value`: Python keeps a string's UTF-8 with it.
std::optional<Bytes> view(nb::handle value) {
    if (PyUnicode_Check(value.ptr())) {
        Py_ssize_t size = 0;
        const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
        if (text == nullptr) throw nb::python_error();  // a lone surrogate has no UTF-8
        return Bytes{reinterpret_cast<const unsigned char*>(text), static_cast<std::size_t>(size)};
    }
    if (PyBytes_Check(value.ptr())) {
        return Bytes{reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(value.ptr())),
                     static_cast<std::size_t>(PyBytes_GET_SIZE(value.ptr()))};
    }
    return std::nullopt;
}

std::uint64_t seed_of(nb::handle value) {
    if (!PyIndex_Check(value.ptr())) {
        throw nb::type_error(("seed must be an integer, got " + kind_of(value)).c_str());
    }
    const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
    if (!index.is_valid()) throw nb::python_error();
    const unsigned long long seed = PyLong_AsUnsignedLongLong(index.ptr());
    if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        const nb::str shown = nb::repr(index);
        throw nb::value_error((std::string("seed must be at least 0 and below 2**64, got ") + shown.c_str()).c_str());
    }
    return seed;
}

std::uint64_t feature_hash(nb::handle data, nb::handle seed) {
    const std::optional<Bytes> bytes = view(data);
    if (!bytes) throw not_text("data", data);
    return ftprl::hash_bytes(bytes->data, bytes->size, seed_of(seed));
}

using Hashes = nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<1>>;

Hashes feature_hashes(nb::handle names, nb::handle seed) {
    // A string is itself a sequence of strings: hashing its letters is never what was meant.
    if (PyUnicode_Check(names.ptr()) || PyBytes_Check(names.ptr()) || !PySequence_Check(names.ptr())) {
        throw nb::type_error(
            ("names must be a sequence of str or bytes, got " + kind_of(names) + "; put a single name in a list")
                .c_str());
    }
    const std::uint64_t start = ftprl::hash_start(seed_of(seed));
    const nb::object items = nb::steal(PySequence_Fast(names.ptr(), "names must be a sequence of str or bytes"));
    if (!items.is_valid()) throw nb::python_error();

    const auto count = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(items.ptr()));
    auto hashes = std::make_unique<std::uint64_t[]>(count);
    PyObject** item = PySequence_Fast_ITEMS(items.ptr());
    for (std::size_t i = 0; i < count; ++i) {
        const std::optional<Bytes> bytes = view(item[i]);
        if (!bytes) throw not_text("names[" + std::to_string(i) + "]", item[i]);
        hashes[i] = ftprl::hash_from(start, bytes->data, bytes->size);
    }

    std::uint64_t* data = hashes.release();
    const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<std::uint64_t*>(p); });
    return Hashes(data, {count}, owner);
}

// ---- readers ----

std::string text_of(const nb::bytes& bytes) { return std::string(bytes.c_str(), bytes.size()); }
nb::bytes bytes_of(const std::string& text) { return nb::bytes(text.data(), text.size()); }
const ftprl::Byte* data_of(const nb::bytes& bytes) { return reinterpret_cast<const ftprl::Byte*>(bytes.c_str()); }

ftprl::Dialect dialect_of(int separator, int quote) {
    ftprl::Dialect dialect;
    dialect.separator = static_cast<ftprl::Byte>(separator);
    dialect.quotes = quote >= 0;
    dialect.quote = static_cast<ftprl::Byte>(quote >= 0 ? quote : 0);
    return dialect;
}

ftprl::Labels labels_of(const std::string& kind, const nb::bytes& positive, const nb::list& words) {
    ftprl::Labels labels;
    if (kind == "positive") {
        labels.set_positive(text_of(positive));
    } else if (kind == "words") {
        labels.kind = ftprl::Labels::Kind::words;
        for (nb::handle pair : words) {
            labels.words.emplace_back(text_of(nb::cast<nb::bytes>(pair[0])), nb::cast<double>(pair[1]));
        }
    } else {
        labels.kind = kind == "sign" ? ftprl::Labels::Kind::sign : ftprl::Labels::Kind::number;
    }
    return labels;
}

std::unique_ptr<ftprl::Parser> make_parser(nb::handle format, std::uint64_t dim, nb::handle seed, bool intercept,
                                           bool wide, bool skip, std::size_t max_row, std::size_t batch_rows,
                                           std::size_t batch_values, nb::handle labels, const nb::bytes& positive,
                                           const nb::list& words, int separator, int quote) {
    if (dim < 2 || dim > (std::uint64_t{1} << 32)) throw nb::value_error("dim must be between 2 and 2**32");
    if (batch_rows == 0 || batch_values == 0) throw nb::value_error("a batch must have room for a row");
    ftprl::Options options;
    options.dim = dim;
    options.seed = seed_of(seed);
    options.intercept = intercept;
    options.wide = wide;
    options.skip = skip;
    options.max_row = max_row;
    options.batch_rows = batch_rows;
    options.batch_values = batch_values;
    ftprl::Labels expected = labels_of(nb::cast<const char*>(labels), positive, words);
    const std::string name = nb::cast<const char*>(format);
    if (name == "table") {
        return std::make_unique<ftprl::TableParser>(options, std::move(expected), dialect_of(separator, quote));
    }
    expected.numbers_only = true;
    if (name == "vw") return std::make_unique<ftprl::VwParser>(options, std::move(expected));
    if (name == "libsvm") return std::make_unique<ftprl::LibsvmParser>(options, std::move(expected));
    throw nb::value_error("format must be 'vw', 'libsvm' or 'table'");
}

template <class T>
nb::object array_of(ftprl::Buffer<T>& buffer) {
    const std::size_t size = buffer.size();
    buffer.reserve(1);  // an empty array has an address, too
    T* data = buffer.release();
    const nb::capsule owner(data, [](void* p) noexcept { ftprl::Blocks::shared().give(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
}

// So many ones: one array for all batches whose values are all 1. It grows, and what was handed out stays.
template <class T>
nb::object ones(std::size_t size) {
    using Ones = std::shared_ptr<std::vector<T>>;
    static Ones& shared = *new Ones;  // never destroyed; guarded by the interpreter's lock
    if (shared == nullptr || shared->size() < size) {
        shared = std::make_shared<std::vector<T>>(std::max(2 * size, std::size_t{1} << 16), T{1});
    }
    const nb::capsule owner(new Ones(shared), [](void* p) noexcept { delete static_cast<Ones*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, const T, nb::ndim<1>>(shared->data(), {size}, owner));
}

nb::object values_of(ftprl::RowBuilder& rows) {
    if (rows.is_plain()) return rows.wide() ? ones<double>(rows.indices.size()) : ones<float>(rows.indices.size());
    return rows.wide() ? array_of(rows.wide_values) : array_of(rows.narrow_values);
}

nb::tuple take_rows(ftprl::Parser& parser) {
    ftprl::RowBuilder& rows = parser.rows;
    nb::list tags;
    for (const auto& [row, tag] : rows.tags) tags.append(nb::make_tuple(row, bytes_of(tag)));
    const nb::object values = values_of(rows);
    const nb::tuple taken = nb::make_tuple(array_of(rows.indptr), array_of(rows.indices), values, array_of(rows.y),
                                           array_of(rows.weight), tags);
    rows.clear();
    return taken;
}

nb::object problem_of(const ftprl::Problem& problem) {
    if (problem.line == 0) return nb::none();
    return nb::make_tuple(problem.line, bytes_of(problem.message));
}

void set_columns(ftprl::Parser& parser, const nb::list& columns) {
    auto* table = dynamic_cast<ftprl::TableParser*>(&parser);
    if (table == nullptr) throw nb::type_error("only a table has columns");
    std::vector<ftprl::Column> ready;
    for (nb::handle pair : columns) {
        const int kind = nb::cast<int>(pair[0]);
        if (kind < 0 || kind > static_cast<int>(ftprl::Column::Kind::text)) throw nb::value_error("no such kind");
        ready.push_back(ftprl::Column{static_cast<ftprl::Column::Kind>(kind), text_of(nb::cast<nb::bytes>(pair[1]))});
    }
    table->set_columns(ready);
}

// The fields of the first row, where the next begins, and how many lines it takes; None when it is not whole.
nb::object first_row(const nb::bytes& data, bool last, int separator, int quote) {
    ftprl::Splitter split(dialect_of(separator, quote));
    const ftprl::Byte* first = data_of(data);
    const ftprl::Split result = split(first, first + data.size(), last);
    if (result == ftprl::Split::cut || result == ftprl::Split::unclosed) return nb::none();
    nb::list fields;  // none when text follows a closing quote
    if (result == ftprl::Split::stray) split.fields.clear();
    for (const ftprl::Field& field : split.fields) {
        fields.append(nb::bytes(field.data, static_cast<std::size_t>(field.end - field.data)));
    }
    return nb::make_tuple(fields, split.next - first, split.lines);
}

nb::tuple look_at(const nb::bytes& data, std::size_t from, bool last, int separator, int quote, std::int64_t rows,
                  std::size_t columns, std::size_t distinct, std::size_t label) {
    if (from > data.size()) throw nb::value_error("from is beyond the data");
    std::vector<ftprl::Sample> samples(columns);
    const ftprl::Byte* first = data_of(data);
    std::int64_t count = 0;
    {
        nb::gil_scoped_release free;
        count = ftprl::look(first + from, first + data.size(), last, dialect_of(separator, quote), rows, distinct, label,
                            samples);
    }
    nb::list seen;
    nb::list values;
    for (const ftprl::Sample& sample : samples) seen.append(nb::make_tuple(sample.present, sample.numbers));
    if (label < columns) {
        for (const std::string& value : samples[label].values) values.append(bytes_of(value));
    }
    return nb::make_tuple(count, seen, values);
}

nb::bytes number_lines(const nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>& values) {
    std::string text;
    {
        const nb::gil_scoped_release free;
        text = ftprl::number_lines(values.data(), values.size());
    }
    return nb::bytes(text.data(), text.size());
}

nb::list words_of(const nb::bytes& data) {
    nb::list words;
    const ftprl::Byte* first = data_of(data);
    ftprl::Words()(first, first + data.size(), [&words](const ftprl::Byte* p, const ftprl::Byte* end) {
        words.append(nb::bytes(p, static_cast<std::size_t>(end - p)));
    });
    return words;
}

// Holds the bytes of an object in their place.
class View {
public:
    explicit View(nb::handle data) {
        if (PyObject_GetBuffer(data.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
    }
    View(const View&) = delete;
    View& operator=(const View&) = delete;
    ~View() { PyBuffer_Release(&view_); }

    const ftprl::Byte* data() const { return static_cast<const ftprl::Byte*>(view_.buf); }
    std::size_t size() const { return static_cast<std::size_t>(view_.len); }

private:
    Py_buffer view_{};
};

std::size_t feed(ftprl::Parser& parser, nb::handle data, std::size_t from, bool last) {
    const View view(data);
    if (from > view.size()) throw nb::value_error("from is beyond the data");
    nb::gil_scoped_release free;
    return parser.feed(view.data(), view.size(), from, last);
}

// Feeds a parser with a part of a file; False when all of it was read.
bool feed_part(ftprl::Window& window, ftprl::Parser& parser) {
    bool more = false;
    {
        const nb::gil_scoped_release free;
        more = window.feed(parser);
    }
    if (window.error == ftprl::Window::SHORTER) {
        PyErr_SetString(PyExc_EOFError, "the file became shorter while it was read");
        throw nb::python_error();
    }
    if (window.error != 0) {
        errno = window.error;
        PyErr_SetFromErrno(PyExc_OSError);
        throw nb::python_error();
    }
    return more;
}

std::size_t whole_rows(nb::handle data, std::size_t from, int separator, int quote) {
    const View view(data);
    if (from > view.size()) throw nb::value_error("start is beyond the data");
    const ftprl::Dialect dialect = dialect_of(separator, quote);
    const nb::gil_scoped_release free;
    return static_cast<std::size_t>(ftprl::whole_rows(view.data() + from, view.data() + view.size(), dialect) - view.data());
}

void bind_readers(nb::module_& m) {
    nb::class_<ftprl::Parser>(m, "Parser", "Rows from blocks of text: feed it bytes, take arrays.")
        .def("feed", &feed, nb::arg("data"), nb::arg("start"), nb::arg("last"),
             "Read whole rows from data[start:]; returns where it stopped.")
        .def("take", &take_rows, "The rows read so far: indptr, indices, values, y, weight, [(row, tag)].")
        .def("set_columns", &set_columns, nb::arg("columns"), "The kind and name of each column of a table.")
        .def_prop_ro("full", [](ftprl::Parser& parser) { return parser.full(); })
        .def_prop_ro("rows", [](ftprl::Parser& parser) { return parser.rows.count(); })
        .def_prop_ro("bad", [](ftprl::Parser& parser) { return parser.bad; })
        .def_prop_ro("problem", [](ftprl::Parser& parser) { return problem_of(parser.problem); })
        .def_prop_ro("first_bad", [](ftprl::Parser& parser) { return problem_of(parser.first_bad); })
        .def_prop_rw("negative", &ftprl::Parser::negative, &ftprl::Parser::set_negative,
                     "The label that counts as -1: 0 or -1 once one was met, 1 before.")
        .def_rw("line", &ftprl::Parser::line);
    nb::class_<ftprl::Window>(m, "Window", "A part of a file, read and parsed bit by bit.")
        .def(nb::init<std::size_t>(), nb::arg("size") = ftprl::Window::USUAL)
        .def("open", &ftprl::Window::open, nb::arg("file"), nb::arg("start"), nb::arg("end"),
             "Whole rows from one byte of an open file to another.")
        .def("feed", &feed_part, nb::arg("parser"), "Until a batch is full or a row bad; False when all was read.");
    m.def("parser", &make_parser, nb::arg("format"), nb::kw_only(), nb::arg("dim"), nb::arg("seed"),
          nb::arg("intercept"), nb::arg("wide"), nb::arg("skip"), nb::arg("max_row"), nb::arg("batch_rows"),
          nb::arg("batch_values"), nb::arg("labels"), nb::arg("positive"), nb::arg("words"), nb::arg("separator"),
          nb::arg("quote"), "A parser of one text format.");
    m.def("first_row", &first_row, nb::arg("data"), nb::arg("last"), nb::arg("separator"), nb::arg("quote"));
    m.def("look_at", &look_at, nb::arg("data"), nb::arg("start"), nb::arg("last"), nb::arg("separator"),
          nb::arg("quote"), nb::arg("rows"), nb::arg("columns"), nb::arg("distinct"), nb::arg("label"));
    m.def("whole_rows", &whole_rows, nb::arg("data"), nb::arg("start"), nb::arg("separator"), nb::arg("quote"),
          "Where the last whole row of data[start:] ends.");
    m.def("number_lines", &number_lines, nb::arg("values").noconvert(), "One number a line, as short as is exact.");
    m.def("words", &words_of, nb::arg("data"), "The words of a text, lower-cased.");
}

}  // namespace

// ---- the kernel ----

namespace {

template <class T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Target = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The arrays of a batch as the core wants them, lengths checked.
struct Entries {
    ftprl::Rows rows;
    std::int64_t size;
    bool wide;
};

Entries entries_of(const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices, const Values& values) {
    const bool wide = values.dtype() == nb::dtype<double>();
    if (!wide && values.dtype() != nb::dtype<float>()) throw nb::type_error("values must be float32 or float64");
    if (indptr.size() == 0) throw nb::value_error("indptr needs one number more than there are rows, got none");
    if (values.size() != indices.size()) {
        throw nb::value_error(("indices and values need one length, got " + std::to_string(indices.size()) + " and " +
                               std::to_string(values.size()))
                                  .c_str());
    }
    const auto count = static_cast<std::int64_t>(indptr.size()) - 1;
    const ftprl::Rows rows{count, indptr.data(), indices.data(), values.data(), nullptr, nullptr};
    return {rows, static_cast<std::int64_t>(indices.size()), wide};
}

void check_length(const char* name, std::size_t got, std::int64_t rows) {
    if (static_cast<std::int64_t>(got) == rows) return;
    throw nb::value_error((std::string(name) + " needs a number for each of the " + std::to_string(rows) +
                           " rows, got " + std::to_string(got))
                              .c_str());
}

double* data_of(const char* name, std::optional<Target>& target, std::int64_t rows) {
    if (!target) return nullptr;
    check_length(name, target->size(), rows);
    return target->data();
}

std::unique_ptr<ftprl::Learner> make_learner(std::uint64_t dim, bool float64, bool receipt, const char* loss, double scale,
                                             double beta, double l1, double l2, double lower, double upper,
                                             bool intercept, double tau) {
    if (dim < 1 || dim > std::uint64_t{1} << 32) throw nb::value_error("dim needs to be from 1 to 2**32");
    const ftprl::Loss chosen = ftprl::loss_named(loss);
    if (chosen == nullptr) throw nb::value_error((std::string("loss is not known: ") + loss).c_str());
    const ftprl::Constants constants{scale, beta, l1, l2, lower, upper, tau, chosen, intercept};
    return std::make_unique<ftprl::Learner>(dim, float64, receipt, constants);
}

void raise_fault(const std::string& fault) {
    if (!fault.empty()) throw nb::value_error(fault.c_str());
}

// One scale or several: both learners have the same door.
template <class L>
nb::tuple learn(L& learner, const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices,
                const Values& values, const Column<double>& y, const Column<double>& weight,
                std::optional<Target> scores, std::optional<Target> losses, std::int64_t first_row) {
    Entries e = entries_of(indptr, indices, values);
    check_length("y", y.size(), e.rows.count);
    check_length("weight", weight.size(), e.rows.count);
    e.rows.y = y.data();
    e.rows.weight = weight.data();
    const ftprl::Out out{data_of("scores", scores, e.rows.count), data_of("losses", losses, e.rows.count)};
    std::string fault;
    ftprl::Totals totals{};
    {
        const nb::gil_scoped_release free;
        fault = learner.fault(e.rows, e.wide, e.size, true, first_row);
        if (fault.empty()) totals = learner.learn(e.rows, e.wide, out);
    }
    raise_fault(fault);
    return nb::make_tuple(totals.loss, totals.weight, totals.rows);
}

template <class L>
void score(const L& learner, const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices,
           const Values& values, const Target& scores, std::int64_t first_row) {
    const Entries e = entries_of(indptr, indices, values);
    check_length("scores", scores.size(), e.rows.count);
    std::string fault;
    {
        const nb::gil_scoped_release free;
        fault = learner.fault(e.rows, e.wide, e.size, false, first_row);
        if (fault.empty()) learner.score(e.rows, e.wide, scores.data());
    }
    raise_fault(fault);
}

double touch(ftprl::Learner& learner, const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices,
           const Values& values) {
    const Entries e = entries_of(indptr, indices, values);
    raise_fault(learner.fault(e.rows, e.wide, e.size, false, 0));
    const nb::gil_scoped_release free;
    const auto began = std::chrono::steady_clock::now();
    learner.touch(e.rows);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

void weights(const ftprl::Learner& learner, const Target& out) {
    if (out.size() != learner.dim()) throw nb::value_error("out needs a number for each cell");
    const nb::gil_scoped_release free;
    learner.weights(out.data());
}

using Places = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The sums of a receipt over the cells at `slots` (or all), a row a sum and a column a scale, into `out`.
template <class L, class Ask>
void ledger(const L& learner, const nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& out, int count,
            const std::optional<Places>& slots, const Ask& ask) {
    if (!learner.receipt()) throw nb::value_error("a ledger needs a learner with a receipt");
    if (out.shape(0) != ftprl::LEDGER_SUMS || static_cast<int>(out.shape(1)) != count) {
        throw nb::value_error("out needs a row a sum and a column a scale");
    }
    const std::int64_t* at = slots ? slots->data() : nullptr;
    const auto size = static_cast<std::int64_t>(slots ? slots->size() : 0);
    for (std::int64_t i = 0; i < size; ++i) {
        if (at[i] < 0 || static_cast<std::uint64_t>(at[i]) >= learner.dim()) throw nb::value_error("a slot is outside the table");
    }
    const nb::gil_scoped_release free;
    const ftprl::LedgerSums found = ask(at, size);
    for (int j = 0; j < ftprl::LEDGER_SUMS; ++j) {
        for (int k = 0; k < count; ++k) out.data()[j * count + k] = found.sums[j][k];
    }
}

using Groups = nb::ndarray<double, nb::shape<ftprl::GROUPS, 4>, nb::c_contig, nb::device::cpu>;

// The cells by how often they were seen, into `out`.
template <class L, class Ask>
void groups(const L& learner, const Groups& out, const Ask& ask) {
    if (!learner.receipt()) throw nb::value_error("a ledger needs a learner with a receipt");
    const nb::gil_scoped_release free;
    const ftprl::LedgerGroups found = ask();
    std::copy(&found.sums[0][0], &found.sums[0][0] + ftprl::GROUPS * 4, out.data());
}

// Views of the learner's own memory: they keep it alive.
nb::object cells_of(nb::handle self) {
    auto& learner = nb::cast<ftprl::Learner&>(self);
    const auto dim = static_cast<std::size_t>(learner.dim());
    if (learner.wide_cells()) {
        return nb::cast(nb::ndarray<nb::numpy, double>(learner.cells(), {dim, 4}, self));
    }
    return nb::cast(nb::ndarray<nb::numpy, float>(learner.cells(), {dim, 4}, self));
}

nb::object intercept_of(nb::handle self) {
    return nb::cast(nb::ndarray<nb::numpy, double>(nb::cast<ftprl::Learner&>(self).intercept(), {4}, self));
}

nb::object tallies_of(nb::handle self) {
    return nb::cast(
        nb::ndarray<nb::numpy, double>(nb::cast<ftprl::Learner&>(self).tallies(), {ftprl::TALLIES}, self));
}

template <class L>
nb::object calibration_of(nb::handle self) {
    auto& learner = nb::cast<L&>(self);
    return nb::cast(nb::ndarray<nb::numpy, double>(&learner.calibration().bins[0][0], {ftprl::BINS, 3}, self));
}

void bind_kernel(nb::module_& m) {
    nb::class_<ftprl::Learner>(m, "Learner", "A table of cells {z, R, M, S} and the constants it is learned with.")
        .def(nb::new_(&make_learner), nb::arg("dim"), nb::kw_only(), nb::arg("float64"), nb::arg("receipt"),
             nb::arg("loss"), nb::arg("scale"), nb::arg("beta"), nb::arg("l1"), nb::arg("l2"), nb::arg("lower"),
             nb::arg("upper"), nb::arg("intercept"), nb::arg("tau"))
        .def("learn", &learn<ftprl::Learner>, nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(),
             nb::arg("values").noconvert(), nb::arg("y").noconvert(), nb::arg("weight").noconvert(),
             nb::arg("scores").noconvert().none() = nb::none(), nb::arg("losses").noconvert().none() = nb::none(),
             nb::arg("first_row") = 0, "Predict and learn, row by row; (loss, weight, rows) of what was learned.")
        .def("score", &score<ftprl::Learner>, nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(),
             nb::arg("values").noconvert(), nb::arg("scores").noconvert(), nb::arg("first_row") = 0,
             "The scores of the rows under the weights as they are.")
        .def("touch", &touch, nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(),
             nb::arg("values").noconvert(), "The seconds it takes to read and write back every cell of the rows: the floor of a benchmark.")
        .def("weights", &weights, nb::arg("out").noconvert(), "The point played in each cell.")
        .def("ledger",
             [](const ftprl::Learner& self, const nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& out,
                const std::optional<Places>& slots) {
                 ledger(self, out, 1, slots, [&](const auto* at, auto size) { return self.ledger(at, size); });
             },
             nb::arg("out").noconvert(), nb::arg("slots").noconvert().none() = nb::none(),
             "The sums of a receipt against the weights as they are, over the cells at `slots` or all.")
        .def("groups",
             [](const ftprl::Learner& self, const Groups& out) {
                 groups(self, out, [&] { return self.groups(); });
             },
             nb::arg("out").noconvert(), "Number, -S.u, penalty and D.R of the cells, by powers of two of G / M^2.")
        .def("copy", [](const ftprl::Learner& self) { return std::make_unique<ftprl::Learner>(self); })
        .def_prop_ro("cells", &cells_of, "The cells, a row each: z, R = sqrt(G), M, S = g_{1:t}. A view.")
        .def_prop_ro("intercept", &intercept_of, "The intercept's own cell, always float64. A view.")
        .def_prop_ro("tallies", &tallies_of, "What was added up since the first row. A view.")
        .def_prop_ro("calibration", &calibration_of<ftprl::Learner>,
                     "Weight, probabilities and positives of each twentieth of [0, 1]. A view.");
    const auto use = [](const std::string& name) {
        return ftprl::use_kernels(name) && ftprl::use_markers(name.c_str());
    };
    m.def("use_kernels", use, nb::arg("name"),
          "Use what was compiled for an instruction set in learners and parsers made from now on ('avx2', 'sse2', "
          "'portable', '' for the best).");
}

// ---- several scales ----

std::unique_ptr<ftprl::ScaleLearner> make_scales(std::uint64_t dim, bool float64, bool receipt, const char* loss,
                                                 const std::vector<double>& scales, double beta, double l1, double l2,
                                                 double lower, double upper, bool intercept, double tau,
                                                 std::optional<double> share, bool capped, bool stack) {
    if (dim < 1 || dim > std::uint64_t{1} << 32) throw nb::value_error("dim needs to be from 1 to 2**32");
    if (scales.size() < 2 || scales.size() > ftprl::MOST_SCALES) throw nb::value_error("scales needs 2 to 16 numbers");
    const ftprl::Loss chosen = ftprl::loss_named(loss);
    if (chosen == nullptr) throw nb::value_error((std::string("loss is not known: ") + loss).c_str());
    ftprl::ScaleConstants c{};
    c.base = {1.0, beta, l1, l2, lower, upper, tau, chosen, intercept};
    c.count = static_cast<int>(scales.size());
    std::copy(scales.begin(), scales.end(), c.h);
    c.sharing = share ? ftprl::Share::fixed : capped ? ftprl::Share::capped : ftprl::Share::falling;
    c.share = share.value_or(0.0);
    c.stack = stack;
    return std::make_unique<ftprl::ScaleLearner>(dim, float64, receipt, c);
}

void weights_of_scale(const ftprl::ScaleLearner& learner, const Target& out, int scale) {
    if (out.size() != learner.dim()) throw nb::value_error("out needs a number for each cell");
    if (scale < 0 || scale >= learner.count()) throw nb::value_error("scale needs the number of one");
    const nb::gil_scoped_release free;
    learner.weights(scale, out.data());
}

void take_lanes(ftprl::ScaleLearner& learner, const ftprl::ScaleLearner& from, int first, bool in_place) {
    if (from.dim() != learner.dim() || from.wide_cells() != learner.wide_cells() || from.receipt() != learner.receipt() ||
        first < 0 || first + learner.count() > from.count()) {
        throw nb::value_error("from needs the same table with these scales and more");
    }
    const nb::gil_scoped_release free;
    learner.take_lanes(from, first, in_place);
}

nb::object scale_cells(nb::handle self) {
    auto& learner = nb::cast<ftprl::ScaleLearner&>(self);
    const auto dim = static_cast<std::size_t>(learner.dim());
    if (learner.wide_cells()) {
        return nb::cast(nb::ndarray<nb::numpy, double>(learner.cells(), {dim, learner.cell_bytes() / 8}, self));
    }
    return nb::cast(nb::ndarray<nb::numpy, float>(learner.cells(), {dim, learner.cell_bytes() / 4}, self));
}

// A view of some doubles of a learner, in rows of `stride` of which the first `columns` are shown.
nb::object rows_of(nb::handle self, double* data, std::size_t rows, std::size_t columns, std::size_t stride) {
    return nb::cast(nb::ndarray<nb::numpy, double>(data, {rows, columns}, self, {static_cast<std::int64_t>(stride), 1}));
}

nb::object vector_of(nb::handle self, double* data, std::size_t size) {
    return nb::cast(nb::ndarray<nb::numpy, double>(data, {size}, self));
}

// The arrays of the mixture by name, all of them views.
nb::dict mixture_of(nb::handle self) {
    auto& learner = nb::cast<ftprl::ScaleLearner&>(self);
    ftprl::Mixture& m = learner.mixture();
    const auto K = static_cast<std::size_t>(learner.count());
    const std::size_t windows = K > ftprl::WINDOW ? K - ftprl::WINDOW + 2 : 0;
    nb::dict all;
    all["P"] = rows_of(self, &m.P[0][0], K, K, ftprl::MOST_SCALES);
    all["u"] = vector_of(self, m.u, K);
    all["w"] = vector_of(self, m.w, K + 1);
    all["totals"] = vector_of(self, m.totals, K + 1);
    all["seen"] = vector_of(self, m.seen, K + 1);
    all["facts"] = vector_of(self, m.facts, 3);
    all["block"] = vector_of(self, m.block, K);
    all["windows"] = rows_of(self, &m.windows[0][0], 3, windows, ftprl::MOST_WINDOWS);
    all["sums"] = rows_of(self, &m.sums[0][0], 3, K, ftprl::MOST_SCALES);
    return all;
}

void bind_scales(nb::module_& m) {
    nb::class_<ftprl::ScaleLearner>(m, "ScaleLearner", "A table of cells with several scales each, and their mixture.")
        .def(nb::new_(&make_scales), nb::arg("dim"), nb::kw_only(), nb::arg("float64"), nb::arg("receipt"),
             nb::arg("loss"), nb::arg("scales"), nb::arg("beta"), nb::arg("l1"), nb::arg("l2"), nb::arg("lower"),
             nb::arg("upper"), nb::arg("intercept"), nb::arg("tau"), nb::arg("share").none(), nb::arg("capped"),
             nb::arg("stack"))
        .def("learn", &learn<ftprl::ScaleLearner>, nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(),
             nb::arg("values").noconvert(), nb::arg("y").noconvert(), nb::arg("weight").noconvert(),
             nb::arg("scores").noconvert().none() = nb::none(), nb::arg("losses").noconvert().none() = nb::none(),
             nb::arg("first_row") = 0, "Predict and learn, row by row; (loss, weight, rows) of what was learned.")
        .def("score", &score<ftprl::ScaleLearner>, nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(),
             nb::arg("values").noconvert(), nb::arg("scores").noconvert(), nb::arg("first_row") = 0,
             "The mixture's scores of the rows, everything as it is.")
        .def("weights", &weights_of_scale, nb::arg("out").noconvert(), nb::arg("scale"),
             "The point that one scale plays in each cell.")
        .def("take_lanes", &take_lanes, nb::arg("other"), nb::arg("first"), nb::arg("in_place") = false,
             "Take the cells' lanes of these scales, which begin at number `first`, from a learner that has more; in place,"
             " its memory goes with them.")
        .def("ledger",
             [](const ftprl::ScaleLearner& self,
                const nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& out, int leader,
                const std::optional<Places>& slots) {
                 if (leader < 0 || leader >= self.count()) throw nb::value_error("leader needs the number of a scale");
                 ledger(self, out, self.count(), slots,
                        [&](const auto* at, auto size) { return self.ledger(leader, at, size); });
             },
             nb::arg("out").noconvert(), nb::arg("leader"), nb::arg("slots").noconvert().none() = nb::none(),
             "The sums of a receipt against one scale's weights as they are, over the cells at `slots` or all.")
        .def("groups",
             [](const ftprl::ScaleLearner& self, const Groups& out, int leader, int scale) {
                 if (std::min(leader, scale) < 0 || std::max(leader, scale) >= self.count()) {
                     throw nb::value_error("leader and scale need the numbers of scales");
                 }
                 groups(self, out, [&] { return self.groups(leader, scale); });
             },
             nb::arg("out").noconvert(), nb::arg("leader"), nb::arg("scale"),
             "Number, -S.u, penalty and D.R of the cells, by powers of two of the rows that had them.")
        .def("copy", [](const ftprl::ScaleLearner& self) { return std::make_unique<ftprl::ScaleLearner>(self); })
        .def_prop_ro("lanes", &ftprl::ScaleLearner::lanes, "The scales, filled up to a multiple of four.")
        .def_prop_ro("cells", &scale_cells, "The cells, a row each: z and R in every lane, s and N, and with a receipt S. A view.")
        .def_prop_ro("intercept",
                     [](nb::handle self) {
                         auto& learner = nb::cast<ftprl::ScaleLearner&>(self);
                         return rows_of(self, learner.intercept(), 3, static_cast<std::size_t>(learner.count()),
                                        ftprl::MOST_SCALES);
                     },
                     "z, R and S of the intercept, a column a scale. A view.")
        .def_prop_ro("tallies",
                     [](nb::handle self) {
                         return vector_of(self, nb::cast<ftprl::ScaleLearner&>(self).tallies(), ftprl::TALLIES);
                     },
                     "What was added up since the first row. A view.")
        .def_prop_ro("calibration", &calibration_of<ftprl::ScaleLearner>,
                     "Weight, probabilities and positives of each twentieth of [0, 1]. A view.")
        .def_prop_ro("mixture", &mixture_of, "The state of the mixture: named views.");
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The compiled core of ftprl.";
    m.attr("HASH_VERSION") = ftprl::HASH_VERSION;
    // .none(): None goes through to the checks above, which name the argument.
    m.def("feature_hash", &feature_hash, nb::arg("data").none(), nb::arg("seed").none() = 0,
          nb::sig("def feature_hash(data: bytes | str, seed: int = 0) -> int"),
          "The 64-bit hash of one name; a str is hashed as its UTF-8.");
    m.def("feature_hashes", &feature_hashes, nb::arg("names").none(), nb::arg("seed").none() = 0,
          nb::sig("def feature_hashes(names: collections.abc.Sequence[str | bytes], seed: int = 0) -> "
                  "numpy.typing.NDArray[numpy.uint64]"),
          "The 64-bit hash of each name, as a NumPy array.");
    bind_kernel(m);
    bind_scales(m);
    bind_readers(m);
}
