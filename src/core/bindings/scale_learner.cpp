// The learner of several scales as Python sees it.
#include "bindings/bindings.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/learners.hpp"
#include "learners/scale_learner.hpp"

namespace nb = nanobind;

namespace {

using namespace ftprl::bindings;

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
    if (from.dim() != learner.dim() || from.wide_cells() != learner.wide_cells() ||
        from.receipt() != learner.receipt() || first < 0 || first + learner.count() > from.count()) {
        throw nb::value_error("from needs the same table with these scales and more");
    }
    if (!learner.is_fresh()) throw nb::value_error("scales can be taken over only before anything is learned");
    const nb::gil_scoped_release free;
    learner.take_lanes(from, first, in_place);
}

using CellSlots = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Whether `cells` has room for so many whole cells of a learner, and all slots are below its dim.
template <class Array>
void check_cells(const ftprl::ScaleLearner& learner, const CellSlots& slots, const Array& cells) {
    const std::size_t size = learner.wide_cells() ? 8 : 4;
    const auto kind = learner.wide_cells() ? nb::dtype<double>() : nb::dtype<float>();
    if (cells.dtype() != kind || cells.shape(0) != slots.size() || cells.shape(1) * size != learner.cell_bytes()) {
        throw nb::value_error("cells needs a row for each slot");
    }
    for (std::size_t i = 0; i < slots.size(); ++i) {
        if (slots.data()[i] >= learner.dim()) throw nb::value_error("a slot is outside the table");
    }
}

void take_cells(const ftprl::ScaleLearner& learner, const CellSlots& slots,
                const nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu>& out) {
    check_cells(learner, slots, out);
    const nb::gil_scoped_release free;
    learner.take(slots.data(), slots.size(), out.data());
}

void put_cells(ftprl::ScaleLearner& learner, const CellSlots& slots,
               const nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>& cells) {
    check_cells(learner, slots, cells);
    const nb::gil_scoped_release free;
    learner.put(slots.data(), slots.size(), cells.data());
}

// A view of some doubles of a learner, in rows of `stride` of which the first `columns` are shown.
nb::object rows_of(nb::handle self, double* data, std::size_t rows, std::size_t columns, std::size_t stride) {
    return nb::cast(
        nb::ndarray<nb::numpy, double>(data, {rows, columns}, self, {static_cast<std::int64_t>(stride), 1}));
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

}  // namespace

void ftprl::bindings::bind_scales(nb::module_& m) {
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
             "Take the cells' lanes of these scales, which begin at number `first`, from a learner that has more; in "
             "place,"
             " its memory goes with them.")
        .def(
            "ledger",
            [](const ftprl::ScaleLearner& self,
               const nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& out, int leader,
               const std::optional<SlotList>& slots) {
                if (leader < 0 || leader >= self.count()) throw nb::value_error("leader needs the number of a scale");
                ledger(self, out, self.count(), slots,
                       [&](const auto* at, auto size) { return self.ledger(leader, at, size); });
            },
            nb::arg("out").noconvert(), nb::arg("leader"), nb::arg("slots").noconvert().none() = nb::none(),
            "The sums of a receipt against one scale's weights as they are, over the cells at `slots` or all.")
        .def(
            "groups",
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
        .def_prop_ro(
            "width", [](const ftprl::ScaleLearner& self) { return self.cell_bytes() / (self.wide_cells() ? 8 : 4); },
            "The numbers of a cell: z and R in every lane, s and N, with a receipt S, and what fills it up.")
        .def("touched", &touched_of<ftprl::ScaleLearner>, nb::arg("out").noconvert(),
             "Write the slots that have been met, in order, into room for all; returns how many there are.")
        .def("take", &take_cells, nb::arg("slots").noconvert(), nb::arg("out").noconvert(),
             "Copy whole cells, a row each.")
        .def("put", &put_cells, nb::arg("slots").noconvert(), nb::arg("cells").noconvert(),
             "Overwrite whole cells, a row each.")
        .def_prop_ro(
            "intercept",
            [](nb::handle self) {
                auto& learner = nb::cast<ftprl::ScaleLearner&>(self);
                return rows_of(self, learner.intercept(), 3, static_cast<std::size_t>(learner.count()),
                               ftprl::MOST_SCALES);
            },
            "z, R and S of the intercept, a column a scale. A view.")
        .def_prop_ro(
            "tallies",
            [](nb::handle self) {
                return vector_of(self, nb::cast<ftprl::ScaleLearner&>(self).tallies(), ftprl::TALLIES);
            },
            "What was added up since the first row. A view.")
        .def_prop_ro("calibration", &calibration_of<ftprl::ScaleLearner>,
                     "Weight, probabilities and positives of each twentieth of [0, 1]. A view.")
        .def_prop_ro("mixture", &mixture_of, "The state of the mixture: named views.");
}
