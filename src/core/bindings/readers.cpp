// The readers as Python sees them.
#include "bindings/bindings.hpp"
#include "bindings/buffers.hpp"
#include "bindings/records.hpp"
#include "bindings/texts.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "readers/json_lines.hpp"
#include "readers/libsvm.hpp"
#include "readers/table.hpp"
#include "readers/vw.hpp"
#include "readers/window.hpp"

namespace nb = nanobind;

namespace {

using ftprl::bindings::array_of;
using ftprl::bindings::bytes_of;
using ftprl::bindings::dialect_of;
using ftprl::bindings::seed_of;
using ftprl::bindings::text_of;
using ftprl::bindings::View;

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
        labels.kind = kind == "sign"      ? ftprl::Labels::Kind::sign
                      : kind == "classes" ? ftprl::Labels::Kind::classes
                                          : ftprl::Labels::Kind::number;
    }
    return labels;
}

std::unique_ptr<ftprl::Parser> make_parser(nb::handle format, std::uint64_t dim, nb::handle seed, bool intercept,
                                           bool wide, bool skip, std::size_t max_row, std::size_t batch_rows,
                                           std::size_t batch_values, nb::handle labels, const nb::bytes& positive,
                                           const nb::list& words, int separator, int quote, bool names, bool all_names,
                                           const nb::list& interactions, const nb::list& grams,
                                           const std::optional<nb::list>& namespaces) {
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
    options.names = names || all_names;
    options.all_names = all_names;
    options.namespaces = namespaces.has_value();
    for (nb::handle known : namespaces.value_or(nb::list())) {
        options.known_namespaces.insert(text_of(nb::cast<nb::bytes>(known)));
    }
    for (nb::handle product : interactions) {
        std::vector<std::string> terms;
        for (nb::handle term : product) terms.push_back(text_of(nb::cast<nb::bytes>(term)));
        if (!options.interactions.add(terms)) throw nb::value_error("interactions need 2 to 4 terms, 64 in all");
    }
    for (nb::handle one : grams) {
        ftprl::GramRule rule;
        rule.words = nb::cast<std::size_t>(one[1]);
        rule.skips = nb::cast<std::size_t>(one[2]);
        rule.shortest = nb::cast<std::size_t>(one[3]);
        rule.longest = nb::cast<std::size_t>(one[4]);
        if (!options.grams.add(text_of(nb::cast<nb::bytes>(one[0])), rule)) {
            throw nb::value_error("n-grams that are too long");
        }
    }
    ftprl::Labels expected = labels_of(nb::cast<const char*>(labels), positive, words);
    const std::string name = nb::cast<const char*>(format);
    if (name == "table") {
        return std::make_unique<ftprl::TableParser>(options, std::move(expected), dialect_of(separator, quote));
    }
    if (name == "records") return std::make_unique<ftprl::bindings::DictParser>(options, std::move(expected));
    if (name == "jsonl") return std::make_unique<ftprl::JsonLinesParser>(options, std::move(expected));
    expected.numbers_only = true;
    if (name == "vw") return std::make_unique<ftprl::VwParser>(options, std::move(expected));
    options.names = false;  // ids are the names
    options.interactions = ftprl::Interactions();
    options.grams = ftprl::Grams();
    if (name == "libsvm") return std::make_unique<ftprl::LibsvmParser>(options, std::move(expected));
    throw nb::value_error("format must be 'vw', 'libsvm', 'table', 'jsonl' or 'records'");
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
    if (rows.has_unit_values())
        return rows.wide() ? ones<double>(rows.indices.size()) : ones<float>(rows.indices.size());
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

nb::object take_names(ftprl::Parser& parser) {
    if (!parser.rows.log.is_on()) return nb::none();
    const auto take = [&parser] {
        const nb::gil_scoped_release free;
        return parser.rows.log.take();
    };
    return nb::cast(take());
}

nb::object problem_of(const ftprl::Problem& problem) {
    if (problem.line == 0) return nb::none();
    const ftprl::Fault& fault = problem.fault;
    return nb::make_tuple(problem.line, bytes_of(fault.message), fault.remedy, fault.option);
}

void set_columns(ftprl::Parser& parser, const nb::list& columns, int separator) {
    auto* table = dynamic_cast<ftprl::TableParser*>(&parser);
    auto* lines = dynamic_cast<ftprl::JsonLinesParser*>(&parser);
    if (table == nullptr && lines == nullptr) throw nb::type_error("only a table has columns");
    std::vector<ftprl::Column> ready;
    for (nb::handle pair : columns) ready.push_back(ftprl::bindings::column_of(pair));
    if (table != nullptr) {
        if (separator >= 0) table->set_separator(static_cast<ftprl::Byte>(separator));
        table->set_columns(ready);
    } else {
        lines->set_names(ready);
    }
}

void set_rules(ftprl::Parser& parser, bool marks_missing, bool advises, const nb::dict& numbers) {
    auto* cells = dynamic_cast<ftprl::CellParser*>(&parser);
    if (cells == nullptr) throw nb::type_error("only a table has columns");
    ftprl::CellParser::Rules rules;
    rules.marks_missing = marks_missing;
    rules.advises = advises;
    for (const auto& [name, values] : numbers) {
        std::vector<double>& own = rules.numbers[text_of(nb::cast<nb::bytes>(name))];
        for (nb::handle value : values) own.push_back(nb::cast<double>(value));
    }
    cells->set_rules(std::move(rules));
}

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

}  // namespace

void ftprl::bindings::bind_readers(nb::module_& m) {
    nb::class_<ftprl::Parser>(m, "Parser", "Rows from blocks of text: feed it bytes, take arrays.")
        .def("feed", &feed, nb::arg("data"), nb::arg("start"), nb::arg("last"),
             "Read whole rows from data[start:]; returns where it stopped.")
        .def("take", &take_rows, "The rows read so far: indptr, indices, values, y, weight, [(row, tag)].")
        .def("take_left_out", &ftprl::Parser::take_left_out,
             "Where rows were left out since the last call: the rows of the batch before each.")
        .def(
            "take_records",
            [](ftprl::Parser& parser) {
                nb::list records;
                for (const std::string& record : parser.take_records()) records.append(bytes_of(record));
                return records;
            },
            "The text of every row since the last call, good or left out, if it is kept; without line ends.")
        .def_rw("keeps_records", &ftprl::Parser::keeps_records)
        .def("take_names", &take_names,
             "The names that the rows read so far have and earlier ones did not; None if not kept.")
        .def(
            "join_names",
            [](ftprl::Parser& parser, const ftprl::Parser& other) { parser.rows.log.join(other.rows.log); },
            nb::arg("other"), "Stop recording names together with another parser of the same data.")
        .def(
            "forget_names", [](ftprl::Parser& parser) { parser.rows.log.forget(); },
            "Rows that follow may come before those read so far: take all their names.")
        .def(
            "set_rules", &set_rules, nb::arg("marks_missing"), nb::arg("advises"), nb::arg("numbers"),
            "Whether missing values are features, and the numbers of the sample by column; before the columns are set.")
        .def("set_columns", &set_columns, nb::arg("columns"), nb::arg("separator") = -1,
             "The kind and name of each column of a table, and what separates them: -1 for the same as before.")
        .def_prop_ro("full", [](ftprl::Parser& parser) { return parser.full(); })
        .def_prop_ro("rows", [](ftprl::Parser& parser) { return parser.rows.count(); })
        .def_prop_ro("bad", [](ftprl::Parser& parser) { return parser.bad; })
        .def_prop_ro("problem", [](ftprl::Parser& parser) { return problem_of(parser.problem); })
        .def_prop_ro("first_bad", [](ftprl::Parser& parser) { return problem_of(parser.first_bad); })
        .def(
            "take_label_texts",
            [](ftprl::Parser& parser) {
                nb::list texts;
                for (const auto& [code, text] : parser.take_label_texts())
                    texts.append(nb::make_tuple(code, bytes_of(text)));
                return texts;
            },
            "The texts of labels that became codes since the last call: pairs of a code and a text.")
        .def_prop_rw("negative", &ftprl::Parser::negative, &ftprl::Parser::set_negative,
                     "The label that counts as -1: 0 or -1 once one was met, 1 before.")
        .def_prop_rw(
            "reads_others",
            [](ftprl::Parser& parser) {
                auto* lines = dynamic_cast<ftprl::JsonLinesParser*>(&parser);
                return lines != nullptr && lines->reads_others;
            },
            [](ftprl::Parser& parser, bool others) {
                auto* lines = dynamic_cast<ftprl::JsonLinesParser*>(&parser);
                if (lines == nullptr) throw nb::type_error("only JSON lines have other columns");
                lines->reads_others = others;
            },
            "Whether columns of JSON lines whose kind is not known are read by their values.")
        .def_ro("row_line", &ftprl::Parser::row_line, "Where the last row begins.")
        .def_rw("line", &ftprl::Parser::line);
    nb::class_<ftprl::Window>(m, "Window", "A part of a file, read and parsed bit by bit.")
        .def(nb::init<std::size_t>(), nb::arg("size") = ftprl::Window::USUAL)
        .def("open", &ftprl::Window::open, nb::arg("file"), nb::arg("start"), nb::arg("end"),
             "Read whole rows from one byte of an open file to another.")
        .def("feed", &feed_part, nb::arg("parser"), "Until a batch is full or a row bad; False when all was read.");
    m.def("parser", &make_parser, nb::arg("format"), nb::kw_only(), nb::arg("dim"), nb::arg("seed"),
          nb::arg("intercept"), nb::arg("wide"), nb::arg("skip"), nb::arg("max_row"), nb::arg("batch_rows"),
          nb::arg("batch_values"), nb::arg("labels"), nb::arg("positive"), nb::arg("words"), nb::arg("separator"),
          nb::arg("quote"), nb::arg("names") = false, nb::arg("all_names") = false,
          nb::arg("interactions") = nb::list(), nb::arg("grams") = nb::list(), nb::arg("namespaces") = nb::none(),
          "A parser of one format; `names` keeps the names of features, of which `all_names` misses none.");
}
