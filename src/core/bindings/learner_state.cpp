// What a learner adds up, as Python sees it: the sums of a receipt, and views of its mixture.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/learner.hpp"

namespace nb = nanobind;

namespace {

using ftprl::Learner;
using ftprl::NamedArray;
using ftprl::bindings::check_scale;
using ftprl::bindings::Column;
using ftprl::bindings::Target;

// ---- receipts ----

void ledger(const Learner& learner, const Target<3>& out, int leader,
            const std::optional<Column<std::int64_t>>& slots) {
    if (!learner.receipt()) throw nb::value_error("a ledger needs a learner with a receipt");
    check_scale(learner, leader);
    const auto count = static_cast<std::size_t>(learner.scales());
    if (out.shape(0) != 1 || out.shape(1) != ftprl::LEDGER_SUMS || out.shape(2) != count) {
        throw nb::value_error("out needs ten sums for each output and scale");
    }
    const std::int64_t* at = slots ? slots->data() : nullptr;
    const auto size = static_cast<std::int64_t>(slots ? slots->size() : 0);
    for (std::int64_t i = 0; i < size; ++i) {
        if (at[i] < 0 || static_cast<std::uint64_t>(at[i]) >= learner.dim())
            throw nb::value_error("a slot is outside the table");
    }
    const nb::gil_scoped_release free;
    const ftprl::LedgerSums ledger = learner.ledger(leader, at, size);
    for (std::size_t j = 0; j < ftprl::LEDGER_SUMS; ++j) {
        std::copy(ledger.sums[j], ledger.sums[j] + count, out.data() + j * count);
    }
}

void groups(const Learner& learner, const Target<3>& out, int leader, int scale) {
    if (!learner.receipt()) throw nb::value_error("a ledger needs a learner with a receipt");
    check_scale(learner, leader);
    check_scale(learner, scale);
    if (out.shape(0) != 1 || out.shape(1) != ftprl::GROUPS || out.shape(2) != 4) {
        throw nb::value_error("out needs 128 groups of four numbers for each output");
    }
    const nb::gil_scoped_release free;
    const ftprl::LedgerGroups groups = learner.groups(leader, scale);
    std::copy(&groups.sums[0][0], &groups.sums[0][0] + ftprl::GROUPS * 4, out.data());
}

// ---- views of the learner's own memory, which they keep alive ----

// With `outputs` a first dimension, of length 1: all outputs have one mixture.
nb::object view_of(nb::handle self, const NamedArray& array, bool outputs) {
    std::vector<std::size_t> shape;
    std::vector<std::int64_t> strides;
    if (outputs) {
        shape.push_back(1);
        strides.push_back(array.rows == 0 ? array.columns : std::int64_t{array.rows} * array.stride);
    }
    if (array.blocks != 0) {
        shape.push_back(static_cast<std::size_t>(array.blocks));
        strides.push_back(array.block_stride);
    }
    if (array.rows != 0) {
        shape.push_back(static_cast<std::size_t>(array.rows));
        strides.push_back(array.stride);
    }
    shape.push_back(static_cast<std::size_t>(array.columns));
    strides.push_back(1);
    return nb::cast(nb::ndarray<nb::numpy, double>(array.data, shape.size(), shape.data(), self, strides.data()));
}

nb::dict views_of(nb::handle self, const std::vector<NamedArray>& arrays, bool outputs) {
    nb::dict out;
    for (const NamedArray& array : arrays) out[array.name.c_str()] = view_of(self, array, outputs);
    return out;
}

}  // namespace

void ftprl::bindings::bind_learner_state(nb::class_<Learner>& learner) {
    learner
        .def("ledger", &ledger, nb::arg("out").noconvert(), nb::arg("leader"),
             nb::arg("slots").noconvert().none() = nb::none(),
             "The sums of a receipt against one scale's weights as they are, over the cells at `slots` or all.")
        .def("groups", &groups, nb::arg("out").noconvert(), nb::arg("leader"), nb::arg("scale"),
             "Number, -S.u, penalty and D.R of the cells, by powers of two of how often they were seen.")
        .def_prop_ro(
            "tallies",
            [](nb::handle self) {
                double* data = nb::cast<Learner&>(self).tallies();
                return view_of(self, {"tallies", data, 0, ftprl::TALLIES, 0}, false);
            },
            "What was added up since the first row. A view.")
        .def_prop_ro(
            "loss_totals",
            [](Learner& self) {
                const double* tallies = self.tallies();
                return nb::make_tuple(tallies[ftprl::LOSS], tallies[ftprl::WEIGHT], tallies[ftprl::ROWS]);
            },
            "The first of them: loss, weight and rows.")
        .def_prop_ro(
            "calibration",
            [](nb::handle self) -> nb::object {
                auto& own = nb::cast<Learner&>(self);
                if (!own.calibrates()) return nb::none();
                return view_of(self, {"calibration", &own.calibration().bins[0][0], ftprl::BINS, 3, 3}, false);
            },
            "Weight, probabilities and positives of each twentieth of [0, 1]: log loss with a receipt. A view.")
        .def_prop_ro(
            "rounding", [](nb::handle self) { return view_of(self, nb::cast<Learner&>(self).rounding(), false); },
            "The sums that bound the rounding of a receipt: four rows, a column for each scale. A view.")
        .def_prop_ro(
            "row_sums", [](nb::handle self) { return view_of(self, nb::cast<Learner&>(self).row_sums(), false); },
            "The sums over rows of a receipt when labels are in any unit: five rows, a column for each scale. A view.")
        .def_prop_ro(
            "mixture", [](nb::handle self) { return views_of(self, nb::cast<Learner&>(self).mixture(), true); },
            "The state of the mixture by name, of each output. Views.")
        .def_prop_ro(
            "saved_arrays",
            [](nb::handle self) { return views_of(self, nb::cast<Learner&>(self).saved_arrays(), false); },
            "The arrays of a model file besides the cells, by name. Views.");
}
