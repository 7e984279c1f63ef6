// The learner of one scale as Python sees it.
#include "bindings/bindings.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "bindings/learners.hpp"
#include "learners/learner.hpp"
#include "learners/scale_learner.hpp"
#include "readers/delimiters.hpp"

namespace nb = nanobind;

namespace {

using namespace ftprl::bindings;

std::unique_ptr<ftprl::Learner> make_learner(std::uint64_t dim, bool float64, bool receipt, const char* loss,
                                             double scale, double beta, double l1, double l2, double lower,
                                             double upper, bool intercept, double tau) {
    if (dim < 1 || dim > std::uint64_t{1} << 32) throw nb::value_error("dim needs to be from 1 to 2**32");
    const ftprl::Loss chosen = ftprl::loss_named(loss);
    if (chosen == nullptr) throw nb::value_error((std::string("loss is not known: ") + loss).c_str());
    const ftprl::Constants constants{scale, beta, l1, l2, lower, upper, tau, chosen, intercept};
    return std::make_unique<ftprl::Learner>(dim, float64, receipt, constants);
}

template <class T>
bool are_units(const T* values, std::size_t size) {
    constexpr std::size_t together = 4096;  // without a branch on each, and not much further than the first other one
    for (std::size_t from = 0; from < size; from += together) {
        const std::size_t to = std::min(from + together, size);
        unsigned odd = 0;
        for (std::size_t i = from; i < to; ++i) odd |= (std::fabs(values[i]) != T(1)) & (values[i] != T(0));
        if (odd != 0) return false;
    }
    return true;
}

bool has_units(const Values& values) {
    if (values.dtype() == nb::dtype<float>()) return are_units(static_cast<const float*>(values.data()), values.size());
    if (values.dtype() != nb::dtype<double>()) throw nb::type_error("values must be float32 or float64");
    return are_units(static_cast<const double*>(values.data()), values.size());
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
    return nb::cast(nb::ndarray<nb::numpy, double>(nb::cast<ftprl::Learner&>(self).tallies(), {ftprl::TALLIES}, self));
}

}  // namespace

void ftprl::bindings::bind_kernels(nb::module_& m) {
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
             nb::arg("values").noconvert(),
             "The seconds it takes to read and write back every cell of the rows: the floor of a benchmark.")
        .def("weights", &weights, nb::arg("out").noconvert(), "The point played in each cell.")
        .def(
            "ledger",
            [](const ftprl::Learner& self, const nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& out,
               const std::optional<SlotList>& slots) {
                ledger(self, out, 1, slots, [&](const auto* at, auto size) { return self.ledger(at, size); });
            },
            nb::arg("out").noconvert(), nb::arg("slots").noconvert().none() = nb::none(),
            "The sums of a receipt against the weights as they are, over the cells at `slots` or all.")
        .def(
            "groups",
            [](const ftprl::Learner& self, const Groups& out) { groups(self, out, [&] { return self.groups(); }); },
            nb::arg("out").noconvert(), "Number, -S.u, penalty and D.R of the cells, by powers of two of G / M^2.")
        .def("touched", &touched_of<ftprl::Learner>, nb::arg("out").noconvert(),
             "Write the slots that have been touched, in order, into room for all; returns how many there are.")
        .def("copy", [](const ftprl::Learner& self) { return std::make_unique<ftprl::Learner>(self); })
        .def_prop_ro("cells", &cells_of, "The cells, a row each: z, R = sqrt(G), M, S = g_{1:t}. A view.")
        .def_prop_ro("intercept", &intercept_of, "The intercept's own cell, always float64. A view.")
        .def_prop_ro("tallies", &tallies_of, "What was added up since the first row. A view.")
        .def_prop_ro("calibration", &calibration_of<ftprl::Learner>,
                     "Weight, probabilities and positives of each twentieth of [0, 1]. A view.");
    const auto use = [](const std::string& name) {
        return ftprl::use_kernels(name) && ftprl::use_delimiter_search(name.c_str());
    };
    m.def("use_kernels", use, nb::arg("name"),
          "Use what was compiled for an instruction set in learners and parsers made from now on ('avx2', 'sse2', "
          "'portable', '' for the best).");
    const auto expect = [](std::uint64_t dim, std::size_t scales, bool float64, bool receipt) {
        if (dim < 1 || dim > std::uint64_t{1} << 32 || scales < 1 || scales > ftprl::MOST_SCALES) return;
        try {
            if (scales == 1) {
                ftprl::Learner::expect(dim, float64);
            } else {
                ftprl::ScaleLearner::expect(dim, float64, receipt, static_cast<int>(scales));
            }
        } catch (const std::exception&) {  // no memory, or no thread: whoever needs them will say so
        }
    };
    m.def("has_units", &has_units, nb::arg("values").noconvert(), "Whether every value is 1, -1 or 0.");
    m.def("expect", expect, nb::arg("dim"), nb::kw_only(), nb::arg("scales"), nb::arg("float64"), nb::arg("receipt"),
          "Have memory made ready, by a thread, for the next learner of this kind.");
}
