// The admission of rare features as Python sees it.
#include "learners/admission.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"

namespace nb = nanobind;

namespace {

using ftprl::bindings::Column;
using Bytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void admit(const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices,
           const Column<std::uint8_t>& numbers, const Column<std::uint8_t>& learned, const Bytes& state,
           const Bytes& kept, int after, std::uint64_t chance, std::uint64_t seed, std::uint64_t first_row,
           bool is_sketch) {
    const std::size_t rows = learned.size(), entries = indices.size();
    bool good =
        indptr.size() == rows + 1 && kept.size() == entries && numbers.size() == entries && indptr.data()[0] == 0;
    for (std::size_t r = 0; good && r < rows; ++r) {
        good = indptr.data()[r] <= indptr.data()[r + 1] && static_cast<std::size_t>(indptr.data()[r + 1]) <= entries;
    }
    good = good && (!is_sketch || (state.size() > 0 && after > 0));
    for (std::size_t i = 0; good && !is_sketch && i < entries; ++i) good = indices.data()[i] < state.size();
    if (!good) throw nb::value_error("indptr must rise from 0 to the number of entries, indices be cells of the state");
    if (after < 0 || after >= ftprl::ADMITTED) throw nb::value_error("after must be from 0 to 254");
    const ftprl::AdmissionRule rule{static_cast<std::uint8_t>(after), chance, seed};
    const nb::gil_scoped_release free;
    for (std::size_t r = 0; r < rows; ++r) {
        for (auto i = static_cast<std::size_t>(indptr.data()[r]); i < static_cast<std::size_t>(indptr.data()[r + 1]);
             ++i) {
            const std::uint32_t slot = indices.data()[i];
            const bool learns = learned.data()[r] != 0, is_number = numbers.data()[i] != 0;
            const bool yes =
                is_sketch ? ftprl::is_admitted_by_sketch(state.data(), state.size(), rule, learns, is_number, slot)
                          : ftprl::is_admitted(state.data()[slot], rule, learns, is_number, slot, first_row + r);
            kept.data()[i] = yes ? 1 : 0;
        }
    }
}

}  // namespace

void ftprl::bindings::bind_admission(nb::module_& m) {
    m.def("admit", &admit, nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(),
          nb::arg("numbers").noconvert(), nb::arg("learned").noconvert(), nb::arg("state").noconvert(),
          nb::arg("kept").noconvert(), nb::kw_only(), nb::arg("after"), nb::arg("chance"), nb::arg("seed"),
          nb::arg("first_row"), nb::arg("is_sketch") = false,
          "Which entries are of features that are admitted; the state of each cell goes on, or that of the filter.");
}
