// Rows of arrays and sparse matrices of Python's as batches have them: in one pass, into memory that is used again.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/buffers.hpp"
#include "readers/buffer.hpp"

namespace nb = nanobind;

namespace {

using ftprl::bindings::array_of;

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Table = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// The entries of a batch under construction: those whose value is not 0 once it is rounded.
template <class To>
struct Entries {
    ftprl::Buffer<std::int64_t> indptr;
    ftprl::Buffer<std::uint32_t> indices;
    ftprl::Buffer<To> values;

    Entries(std::size_t rows, std::size_t most) {
        indptr.reserve(rows + 1);
        indptr.push(0);
        indices.reserve(most + 1);
        values.reserve(most + 1);
    }
    nb::tuple take() { return nb::make_tuple(array_of(indptr), array_of(indices), array_of(values)); }
};

// Rows [first, last) of a CSR matrix. A value too large for float32 becomes infinite, and the learner refuses it.
template <class Index, class From, class To>
nb::tuple csr_rows(const Vector<Index>& indptr, const Vector<Index>& indices, const Vector<From>& data,
                   std::size_t first, std::size_t last) {
    if (first > last || last >= indptr.size()) throw nb::value_error("rows beyond the end of the matrix");
    const Index* const rows = indptr.data();
    for (std::size_t r = first; r < last; ++r) {
        if (rows[r] < 0 || rows[r] > rows[r + 1]) throw nb::value_error("indptr of a matrix must not fall");
    }
    const auto end = static_cast<std::size_t>(rows[last]);
    if (end > indices.size() || end > data.size()) throw nb::value_error("indptr of a matrix beyond its entries");
    const auto begin = static_cast<std::size_t>(rows[first]);
    Entries<To> made(last - first, end - begin);
    {
        const nb::gil_scoped_release free;
        const Index* const slots = indices.data();
        const From* const values = data.data();
        std::uint32_t* const to_slots = made.indices.data();
        To* const to_values = made.values.data();
        std::size_t out = 0, at = begin;
        for (std::size_t r = first; r < last; ++r) {
            const auto stop = static_cast<std::size_t>(rows[r + 1]);
            for (; at < stop && at < end; ++at) {
                const To value = static_cast<To>(values[at]);
                to_slots[out] = static_cast<std::uint32_t>(slots[at]);
                to_values[out] = value;
                out += value != To{0} ? 1 : 0;
            }
            made.indptr.push(static_cast<std::int64_t>(out));
        }
        made.indices.resize(out);
        made.values.resize(out);
    }
    return made.take();
}

// Whether no value of a row is 0 once it is rounded; all are copied.
template <class From, class To>
bool copy_row(const From* from, std::size_t size, To* to) {
    unsigned zeros = 0;
    for (std::size_t j = 0; j < size; ++j) {
        to[j] = static_cast<To>(from[j]);
        zeros |= to[j] == To{0} ? 1u : 0u;
    }
    return zeros == 0;
}

template <class From, class To>
nb::tuple dense_rows(const Table<From>& table, std::size_t first, std::size_t last) {
    if (first > last || last > table.shape(0)) throw nb::value_error("rows beyond the end of the array");
    const std::size_t columns = table.shape(1);
    Entries<To> made(last - first, (last - first) * columns);
    {
        const nb::gil_scoped_release free;
        const From* value = table.data() + first * columns;
        std::uint32_t* const to_slots = made.indices.data();
        To* const to_values = made.values.data();
        std::vector<std::uint32_t> every(columns);
        std::iota(every.begin(), every.end(), 0u);
        std::size_t out = 0;
        for (std::size_t r = first; r < last; ++r, value += columns) {
            // Most arrays have no zero: then all is copied, several numbers at a time.
            if (copy_row(value, columns, to_values + out)) {
                std::copy(every.begin(), every.end(), to_slots + out);
                out += columns;
            } else {
                for (std::size_t j = 0; j < columns; ++j) {
                    const To rounded = static_cast<To>(value[j]);
                    to_slots[out] = static_cast<std::uint32_t>(j);
                    to_values[out] = rounded;
                    out += rounded != To{0} ? 1 : 0;
                }
            }
            made.indptr.push(static_cast<std::int64_t>(out));
        }
        made.indices.resize(out);
        made.values.resize(out);
    }
    return made.take();
}

template <class Index, class From>
nb::tuple csr_rows_of(const Vector<Index>& indptr, const Vector<Index>& indices, const Vector<From>& data,
                      std::size_t first, std::size_t last, bool wide) {
    return wide ? csr_rows<Index, From, double>(indptr, indices, data, first, last)
                : csr_rows<Index, From, float>(indptr, indices, data, first, last);
}

template <class From>
nb::tuple dense_rows_of(const Table<From>& table, std::size_t first, std::size_t last, bool wide) {
    return wide ? dense_rows<From, double>(table, first, last) : dense_rows<From, float>(table, first, last);
}

template <class Index, class From>
void bind_csr(nb::module_& m) {
    m.def("csr_rows", &csr_rows_of<Index, From>, nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(),
          nb::arg("data").noconvert(), nb::arg("first"), nb::arg("last"), nb::arg("wide"),
          "Rows of a CSR matrix as a batch has them: indptr, indices and values, without zeros.");
}

}  // namespace

void ftprl::bindings::bind_matrix(nb::module_& m) {
    bind_csr<std::int32_t, float>(m);
    bind_csr<std::int32_t, double>(m);
    bind_csr<std::int64_t, float>(m);
    bind_csr<std::int64_t, double>(m);
    const char* const of_array = "Rows of an array in the same way.";
    m.def("dense_rows", &dense_rows_of<float>, nb::arg("table").noconvert(), nb::arg("first"), nb::arg("last"),
          nb::arg("wide"), of_array);
    m.def("dense_rows", &dense_rows_of<double>, nb::arg("table").noconvert(), nb::arg("first"), nb::arg("last"),
          nb::arg("wide"), of_array);
}
