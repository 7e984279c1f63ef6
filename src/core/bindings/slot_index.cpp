// The list of cells of a model that has few of a large table.
#include "support/slot_index.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"

namespace nb = nanobind;

namespace {

using ftprl::SlotIndex;
using ftprl::bindings::check_length;
using ftprl::bindings::Column;
using Numbers = nb::ndarray<std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void init(SlotIndex* self, const Column<std::uint32_t>& slots) {
    if (slots.size() > std::size_t{1} << 30) throw nb::value_error("slots need to be at most 2**30");
    new (self) SlotIndex(slots.data(), slots.size());
}

void find(const SlotIndex& self, const Column<std::uint32_t>& slots, const Numbers& out) {
    check_length("out", out.size(), static_cast<std::int64_t>(slots.size()));
    const nb::gil_scoped_release free;
    for (std::size_t i = 0; i < slots.size(); ++i) out.data()[i] = self[slots.data()[i]];
}

}  // namespace

void ftprl::bindings::bind_slot_index(nb::module_& m) {
    nb::class_<SlotIndex>(m, "SlotIndex", "The numbers of some slots in a list.")
        .def("__init__", &init, nb::arg("slots").noconvert())
        .def("find", &find, nb::arg("slots").noconvert(), nb::arg("out").noconvert(),
             "Write the number of each slot; one more than the last for one that is not in the list.");
}
