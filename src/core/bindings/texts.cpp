// Functions over text as Python sees them: samples of columns, lines of numbers, words, blocks of files.
#include "bindings/texts.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "readers/fingerprint.hpp"
#include "readers/json_sample.hpp"
#include "readers/sample.hpp"
#include "readers/table.hpp"
#include "readers/text.hpp"
#include "readers/words.hpp"
#include "support/blocks.hpp"

namespace nb = nanobind;

namespace {

using ftprl::bindings::bytes_of;
using ftprl::bindings::data_of;
using ftprl::bindings::dialect_of;
using ftprl::bindings::text_of;
using ftprl::bindings::View;

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
                  std::size_t columns, std::size_t distinct, std::size_t label, const nb::list& keep) {
    if (from > data.size()) throw nb::value_error("from is beyond the data");
    std::vector<ftprl::ColumnSample> samples(columns);
    for (nb::handle column : keep) samples.at(nb::cast<std::size_t>(column)).keeps_values = true;
    const ftprl::Byte* first = data_of(data);
    std::int64_t count = 0;
    {
        nb::gil_scoped_release free;
        count = ftprl::sample_columns(first + from, first + data.size(), last, dialect_of(separator, quote), rows,
                                      distinct, label, samples);
    }
    nb::list seen;
    nb::list values;
    for (const ftprl::ColumnSample& sample : samples) seen.append(ftprl::bindings::tuple_of(sample));
    if (label < columns) {
        for (const std::string& value : samples[label].labels) values.append(bytes_of(value));
    }
    return nb::make_tuple(count, seen, values);
}

// How many lines were seen; of each column its name, how many values it has and how many of them are numbers; and the
// first values of the label.
nb::tuple look_at_json(const nb::bytes& data, bool last, std::int64_t rows, const nb::bytes& label,
                       std::size_t distinct, const nb::list& keep) {
    std::vector<std::string> names;
    for (nb::handle name : keep) names.push_back(text_of(nb::cast<nb::bytes>(name)));
    ftprl::JsonSample sample(text_of(label), distinct, std::move(names));
    const ftprl::Byte* first = data_of(data);
    std::int64_t count = 0;
    {
        const nb::gil_scoped_release free;
        count = sample(first, first + data.size(), last, rows);
    }
    nb::list seen;
    nb::list values;
    for (const auto& column : sample.columns) {
        seen.append(nb::make_tuple(bytes_of(column.name), column.numbers, column.has_several,
                                   ftprl::bindings::tuple_of(column.sample)));
        for (const std::string& value : column.sample.labels) values.append(bytes_of(value));
    }
    return nb::make_tuple(count, seen, values);
}

nb::bytes lines_of(const nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>& values) {
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

std::size_t end_of_rows(nb::handle data, std::size_t from, int separator, int quote) {
    const View view(data);
    if (from > view.size()) throw nb::value_error("start is beyond the data");
    const ftprl::Dialect dialect = dialect_of(separator, quote);
    const nb::gil_scoped_release free;
    return static_cast<std::size_t>(ftprl::whole_rows(view.data() + from, view.data() + view.size(), dialect) -
                                    view.data());
}

std::uint64_t fingerprint_of(nb::handle data, std::size_t start, std::size_t end, std::uint64_t offset) {
    const View view(data);
    if (start > end || end > view.size()) throw nb::value_error("start and end must be within the data");
    const nb::gil_scoped_release free;
    return ftprl::text_fingerprint(view.data() + start, end - start, offset);
}

}  // namespace

void ftprl::bindings::bind_texts(nb::module_& m) {
    m.def("first_row", &first_row, nb::arg("data"), nb::arg("last"), nb::arg("separator"), nb::arg("quote"));
    m.def("look_at", &look_at, nb::arg("data"), nb::arg("start"), nb::arg("last"), nb::arg("separator"),
          nb::arg("quote"), nb::arg("rows"), nb::arg("columns"), nb::arg("distinct"), nb::arg("label"), nb::arg("keep"),
          "What the first rows say of each column, and the first distinct labels.");
    m.def("look_at_json", &look_at_json, nb::arg("data"), nb::arg("last"), nb::arg("rows"), nb::arg("label"),
          nb::arg("distinct"), nb::arg("keep"));
    m.def("whole_rows", &end_of_rows, nb::arg("data"), nb::arg("start"), nb::arg("separator"), nb::arg("quote"),
          "Where the last whole row of data[start:] ends.");
    m.def("text_fingerprint", &fingerprint_of, nb::arg("data"), nb::arg("start"), nb::arg("end"), nb::arg("offset"),
          "The fingerprint of data[start:end], which begins at byte `offset` of a text: parts of a text add up modulo "
          "2**64.");
    m.def("number_lines", &lines_of, nb::arg("values").noconvert(), "One number a line, as short as is exact.");
    m.def(
        "trim", [] { ftprl::Blocks::shared().trim(); },
        "Give memory for batches that is not in use back to the system.");
    m.def("words", &words_of, nb::arg("data"), "The words of a text, lower-cased.");
}
