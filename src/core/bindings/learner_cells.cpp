// The cells of a learner as Python sees them: weights, whole cells, bounds, and which scales and classes there are.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/learner.hpp"
#include "learn/mixture.hpp"

namespace nb = nanobind;

namespace {

using ftprl::Learner;
using ftprl::bindings::check_scale;
using ftprl::bindings::Column;
using ftprl::bindings::Target;

using Slots = nb::ndarray<std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void weights(const Learner& learner, const Target<2>& out, int scale) {
    if (out.shape(0) != static_cast<std::size_t>(learner.outputs()) || out.shape(1) != learner.dim())
        throw nb::value_error("out needs a number for each output and cell");
    check_scale(learner, scale);
    const nb::gil_scoped_release free;
    learner.weights(scale, out.data());
}

void intercept(const Learner& learner, const Target<3>& out) {
    if (out.shape(0) != static_cast<std::size_t>(learner.outputs()) || out.shape(1) != 4 ||
        out.shape(2) != static_cast<std::size_t>(learner.scales()))
        throw nb::value_error("out needs z, R, S and kappa of each output and scale");
    learner.intercept(out.data());
}

std::size_t touched(const Learner& learner, const Slots& out) {
    if (out.size() != learner.dim()) throw nb::value_error("out needs a number for each cell");
    const nb::gil_scoped_release free;
    return learner.touched(out.data());
}

nb::list experts_of(const Learner& learner) {
    nb::list out;
    for (const ftprl::ExpertEntry& e : learner.experts()) out.append(nb::make_tuple(e.name, e.prior, e.droppable));
    return out;
}

// Whether `cells` has space for so many whole cells of a learner, and all slots are below its dim.
template <class Array>
void check_cells(const Learner& learner, const Column<std::uint32_t>& slots, const Array& cells) {
    const std::size_t size = learner.wide_cells() ? 8 : 4;
    const auto kind = learner.wide_cells() ? nb::dtype<double>() : nb::dtype<float>();
    if (cells.dtype() != kind || cells.shape(0) != slots.size() || cells.shape(1) * size != learner.cell_bytes()) {
        throw nb::value_error("cells needs a row for each slot");
    }
    const std::uint32_t *slot = slots.data(), *end = slot + slots.size();
    std::uint32_t largest = 0;
    for (; slot != end; ++slot) largest = std::max(largest, *slot);
    if (slots.size() > 0 && largest >= learner.dim()) throw nb::value_error("a slot is outside the table");
}

void take(const Learner& learner, const Column<std::uint32_t>& slots,
          const nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu>& out) {
    check_cells(learner, slots, out);
    const nb::gil_scoped_release free;
    learner.take(slots.data(), slots.size(), out.data());
}

void put(Learner& learner, const Column<std::uint32_t>& slots,
         const nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>& cells) {
    check_cells(learner, slots, cells);
    const nb::gil_scoped_release free;
    learner.put(slots.data(), slots.size(), cells.data());
}

// Whether `gradients` has a row for each slot and a number for each scale, and all slots are below a learner's dim.
template <class Array>
void check_gradients(const Learner& learner, const Column<std::uint32_t>& slots, const Array& gradients) {
    if (!learner.receipt()) throw nb::value_error("sums of gradients need a learner with a receipt");
    if (gradients.shape(0) != slots.size() || gradients.shape(1) != static_cast<std::size_t>(learner.gradient_width()))
        throw nb::value_error("gradients needs a row for each slot and a column for each scale of each class");
    for (std::size_t i = 0; i < slots.size(); ++i) {
        if (slots.data()[i] >= learner.dim()) throw nb::value_error("a slot is outside the table");
    }
}

void take_gradients(const Learner& learner, const Column<std::uint32_t>& slots, const Target<2>& out) {
    check_gradients(learner, slots, out);
    const nb::gil_scoped_release free;
    learner.take_gradients(slots.data(), slots.size(), out.data());
}

void put_gradients(Learner& learner, const Column<std::uint32_t>& slots,
                   const nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& gradients) {
    check_gradients(learner, slots, gradients);
    const nb::gil_scoped_release free;
    learner.put_gradients(slots.data(), slots.size(), gradients.data());
}

// Whether `ends` has a pair for each slot, all slots are below a learner's dim, and weights may have bounds of their
// own.
template <class Array>
void check_boxes(const Learner& learner, const Column<std::uint32_t>& slots, const Array& ends) {
    if (!learner.boxed()) throw nb::value_error("bounds of single weights need a learner that is boxed");
    if (ends.shape(0) != slots.size() || ends.shape(1) != 2) throw nb::value_error("ends needs a pair for each slot");
    for (std::size_t i = 0; i < slots.size(); ++i) {
        if (slots.data()[i] >= learner.dim()) throw nb::value_error("a slot is outside the table");
    }
}

bool put_boxes(Learner& learner, const Column<std::uint32_t>& slots,
               const nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& ends) {
    check_boxes(learner, slots, ends);
    return learner.put_boxes(slots.data(), slots.size(), ends.data());
}

void take_boxes(const Learner& learner, const Column<std::uint32_t>& slots, const Target<2>& ends) {
    check_boxes(learner, slots, ends);
    learner.take_boxes(slots.data(), slots.size(), ends.data());
}

void expect_columns(Learner& learner, int used, int watched) {
    if (used < 0 || used > ftprl::MOST_COLUMNS || watched < 0 || watched > ftprl::MOST_WATCHED)
        throw nb::value_error("there are at most 64 columns, and 1024 features are counted");
    learner.expect_columns(used, watched);
}

void keep_scales(Learner& learner, int first, int count) {
    if (first < 0 || count < 2 || first + count > learner.scales())
        throw nb::value_error("at least two of the scales need to stay");
    const nb::gil_scoped_release free;
    learner.keep_scales(first, count);
}

void know_classes(Learner& learner, int classes) {
    if (!learner.has_classes() || classes < learner.outputs() || classes > learner.most_classes())
        throw nb::value_error("classes need to be those known so far, or more, up to the most there may be");
    const nb::gil_scoped_release free;
    learner.know_classes(classes);
}

nb::dict dict_of(const std::vector<ftprl::Part>& parts) {
    nb::dict out;
    for (const ftprl::Part& part : parts) out[part.name] = nb::make_tuple(part.first, part.count);
    return out;
}

}  // namespace

void ftprl::bindings::bind_learner_cells(nb::class_<Learner>& learner) {
    learner
        .def("weights", &weights, nb::arg("out").noconvert(), nb::arg("scale"),
             "The weight of each output and cell in one scale.")
        .def("intercept", &intercept, nb::arg("out").noconvert(),
             "z, R and S of the intercept, of each output and scale.")
        .def("touched", &touched, nb::arg("out").noconvert(),
             "Write the slots that have been learned, in order, into space for all; returns how many there are.")
        .def("use_small_pages", &Learner::use_small_pages,
             "Before the first cell is put: few of the cells of a large table will be used.")
        .def("take", &take, nb::arg("slots").noconvert(), nb::arg("out").noconvert(), "Copy whole cells, a row each.")
        .def("put", &put, nb::arg("slots").noconvert(), nb::arg("cells").noconvert(),
             "Overwrite whole cells, a row each.")
        .def("take_gradients", &take_gradients, nb::arg("slots").noconvert(), nb::arg("out").noconvert(),
             "Copy the sums of the gradients of cells, a row each and a column for each scale; with a receipt.")
        .def("put_gradients", &put_gradients, nb::arg("slots").noconvert(), nb::arg("gradients").noconvert(),
             "Overwrite the sums of the gradients of cells that are there.")
        .def("put_boxes", &put_boxes, nb::arg("slots").noconvert(), nb::arg("ends").noconvert(),
             "Set the lower and the upper bound of the weights of cells; False when too many pairs differ.")
        .def("take_boxes", &take_boxes, nb::arg("slots").noconvert(), nb::arg("ends").noconvert(),
             "Copy the bounds of the weights of cells, a pair each.")
        .def("expect_columns", &expect_columns, nb::arg("used"), nb::arg("watched"),
             "Before a file's arrays are put: how many columns there are, and how many features are counted.")
        .def("know_classes", &know_classes, nb::arg("classes"),
             "Of several classes: make so many known, at least those that are.")
        .def_prop_ro("outputs", &Learner::outputs, "Scores of a row: 1, or the number of classes known so far.")
        .def("keep_scales", &keep_scales, nb::arg("first"), nb::arg("count"),
             "Drop all scales but `count` neighbours from number `first` on.")
        .def("drop_expert", &Learner::drop_expert, nb::arg("name"), nb::call_guard<nb::gil_scoped_release>(),
             "Drop an expert that may be dropped, if it is there.")
        .def_prop_ro("experts", &experts_of,
                     "Name, first weight and whether it may be dropped, of each expert in order.")
        .def_prop_ro(
            "width", [](const Learner& self) { return self.cell_bytes() / (self.wide_cells() ? 8 : 4); },
            "How many numbers a cell has, those that fill it up included.")
        .def_prop_ro("slot_bytes", &Learner::slot_bytes, "The memory that each slot of the table may take up.")
        .def_prop_ro(
            "columns", [](const Learner& self) { return dict_of(self.parts()); },
            "Parts of a cell by name: the first number, and how many; 0 for a single one.")
        .def_prop_ro(
            "saved_columns", [](const Learner& self) { return dict_of(self.saved_parts()); },
            "Parts of a cell as a model file names them.");
}
