// The learners as Python sees them: one scale, and several.
#include "bindings.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "learner.hpp"
#include "marks.hpp"
#include "memory.hpp"
#include "scale_learner.hpp"

namespace nb = nanobind;

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
    const auto expect = [](std::uint64_t dim, std::size_t scales, bool float64, bool receipt) {
        if (dim < 1 || dim > std::uint64_t{1} << 32 || scales < 1 || scales > ftprl::MOST_SCALES) return;
        if (scales == 1) {
            ftprl::Learner::expect(dim, float64);
        } else {
            ftprl::ScaleLearner::expect(dim, float64, receipt, static_cast<int>(scales));
        }
    };
    m.def("has_units", &has_units, nb::arg("values").noconvert(), "Whether every value is 1, -1 or 0.");
    m.def("expect", expect, nb::arg("dim"), nb::kw_only(), nb::arg("scales"), nb::arg("float64"), nb::arg("receipt"),
          "Have memory made ready, by a thread, for the next learner of this kind.");
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

using Slots = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Whether `cells` has room for so many whole cells of a learner, and all slots are below its dim.
template <class Array>
void check_cells(const ftprl::ScaleLearner& learner, const Slots& slots, const Array& cells) {
    const std::size_t size = learner.wide_cells() ? 8 : 4;
    const auto kind = learner.wide_cells() ? nb::dtype<double>() : nb::dtype<float>();
    if (cells.dtype() != kind || cells.shape(0) != slots.size() || cells.shape(1) * size != learner.cell_bytes()) {
        throw nb::value_error("cells needs a row for each slot");
    }
    for (std::size_t i = 0; i < slots.size(); ++i) {
        if (slots.data()[i] >= learner.dim()) throw nb::value_error("a slot is outside the table");
    }
}

void take_cells(const ftprl::ScaleLearner& learner, const Slots& slots,
                const nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu>& out) {
    check_cells(learner, slots, out);
    const nb::gil_scoped_release free;
    learner.take(slots.data(), slots.size(), out.data());
}

void put_cells(ftprl::ScaleLearner& learner, const Slots& slots,
               const nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>& cells) {
    check_cells(learner, slots, cells);
    const nb::gil_scoped_release free;
    learner.put(slots.data(), slots.size(), cells.data());
}

std::size_t touched_of(const ftprl::ScaleLearner& learner,
                       const nb::ndarray<std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& out) {
    if (out.size() != learner.dim()) throw nb::value_error("out needs a number for each cell");
    const nb::gil_scoped_release free;
    return learner.touched(out.data());
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
        .def_prop_ro("width",
                     [](const ftprl::ScaleLearner& self) { return self.cell_bytes() / (self.wide_cells() ? 8 : 4); },
                     "The numbers of a cell: z and R in every lane, s and N, with a receipt S, and what fills it up.")
        .def("touched", &touched_of, nb::arg("out").noconvert(),
             "Write the slots that have been met, in order, into room for all; returns how many there are.")
        .def("take", &take_cells, nb::arg("slots").noconvert(), nb::arg("out").noconvert(), "Copy whole cells, a row each.")
        .def("put", &put_cells, nb::arg("slots").noconvert(), nb::arg("cells").noconvert(), "Overwrite whole cells, a row each.")
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

void ftprl::bindings::bind_kernels(nb::module_& m) {
    bind_kernel(m);
    bind_scales(m);
}
