// The learner as Python sees it: how it is made, and its rows. learner_cells.cpp has its cells, learner_state.cpp its
// sums.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/learner.hpp"
#include "learn/classes.hpp"
#include "learn/learner.hpp"
#include "learn/mixture.hpp"
#include "measure/baseline.hpp"
#include "support/dispatch.hpp"

namespace nb = nanobind;

namespace {

using ftprl::Learner;
using ftprl::bindings::check_length;
using ftprl::bindings::check_pairs;
using ftprl::bindings::Column;
using ftprl::bindings::Target;
using ftprl::bindings::Values;

// ---- options ----

ftprl::CalibrationKind calibration_of(const std::string& name) {
    if (name == "none") return ftprl::CalibrationKind::none;
    if (name == "platt") return ftprl::CalibrationKind::platt;
    if (name == "isotonic") return ftprl::CalibrationKind::isotonic;
    throw nb::value_error("calibrate needs to be none, platt or isotonic");
}

// What every learner is made with, numbers that Python has checked.
std::unique_ptr<Learner> make_learner(std::uint64_t dim, int outputs, bool float64, bool receipt, const char* loss,
                                      const std::vector<double>& scales, double beta, double l1, double l2,
                                      double lower, double upper, bool intercept, double tau, bool coin, bool columns,
                                      bool boxed, int classes, const char* calibrate, bool coin_input) {
    if (dim < 1 || dim > std::uint64_t{1} << 32) throw nb::value_error("dim needs to be from 1 to 2**32");
    if (classes < 0 || classes > ftprl::MOST_CLASSES) throw nb::value_error("classes needs to be at most 10000");
    if (classes == 0 ? outputs != 1 : outputs < 0 || outputs > classes)
        throw nb::value_error("outputs needs to be 1, or the number of classes known so far");
    if (classes > ftprl::MOST_COLUMN_CLASSES && columns) throw nb::value_error("so many classes have no columns");
    if (scales.empty() || scales.size() > ftprl::MOST_SCALES) throw nb::value_error("scales needs 1 to 16 numbers");
    ftprl::LearnerOptions options;
    options.dim = dim;
    options.outputs = outputs;
    options.most_classes = classes;
    options.wide_cells = float64;
    options.receipt = receipt;
    options.boxed = boxed;
    options.calibration = calibration_of(calibrate);
    ftprl::Constants& c = options.constants;
    c.loss = ftprl::loss_named(loss);
    if (c.loss == nullptr) throw nb::value_error((std::string("loss is not known: ") + loss).c_str());
    if ((c.loss->labels == ftprl::Labels::classes) != (classes > 0))
        throw nb::value_error("classes are for the losses of several classes");
    const bool logistic = classes == 0 && c.loss->rule == ftprl::LabelRule::none;
    if (options.calibration != ftprl::CalibrationKind::none && (receipt || !logistic))
        throw nb::value_error("scores are calibrated with the logistic loss alone, and without a receipt");
    c.beta = beta;
    c.l1 = l1;
    c.l2 = l2;
    c.lower = lower;
    c.upper = upper;
    c.tau = tau;
    c.intercept = intercept;
    c.count = static_cast<int>(scales.size());
    std::copy(scales.begin(), scales.end(), c.h);
    options.coin = coin;
    options.columns = columns;
    options.coin_input = coin_input;
    return Learner::make(options);
}

// ---- rows ----

// The arrays of a batch as the core wants them, lengths checked.
struct Entries {
    ftprl::Rows rows;
    std::int64_t size;
};

Entries entries_of(const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices, const Values& values) {
    Entries e{};
    e.rows.wide = values.dtype() == nb::dtype<double>();
    if (!e.rows.wide && values.dtype() != nb::dtype<float>()) throw nb::type_error("values must be float32 or float64");
    if (indptr.size() == 0) throw nb::value_error("indptr needs one number more than there are rows, got none");
    if (values.size() != indices.size()) {
        throw nb::value_error(("indices and values need one length, got " + std::to_string(indices.size()) + " and " +
                               std::to_string(values.size()))
                                  .c_str());
    }
    e.size = static_cast<std::int64_t>(indices.size());
    e.rows.count = static_cast<std::int64_t>(indptr.size()) - 1;
    e.rows.indptr = indptr.data();
    e.rows.indices = indices.data();
    e.rows.values = values.data();
    return e;
}

Entries labelled_entries_of(const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices,
                            const Values& values, const Column<double>& y, const Column<double>& weight) {
    Entries e = entries_of(indptr, indices, values);
    check_length("y", y.size(), e.rows.count);
    check_length("weight", weight.size(), e.rows.count);
    e.rows.y = y.data();
    e.rows.weight = weight.data();
    return e;
}

void check_scores(const Target<2>& scores, std::int64_t rows, int columns) {
    check_length("scores", scores.shape(0), rows);
    if (scores.shape(1) != static_cast<std::size_t>(columns))
        throw nb::value_error("scores needs a column for each output");
}

// A bad row is raised as RowError, whose `row` is its number in the stream; a batch of a wrong shape as ValueError.
void raise_fault(const ftprl::RowFault& fault, std::int64_t first_row) {
    if (!fault) return;
    if (fault.row < 0) throw nb::value_error(fault.message.c_str());
    const nb::object type = nb::module_::import_("ftprl._core").attr("RowError");
    const nb::object error = type(fault.message);
    error.attr("row") = first_row + fault.row;
    PyErr_SetObject(type.ptr(), error.ptr());
    throw nb::python_error();
}

void check(const Learner& learner, const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices,
           const Values& values, const Column<double>& y, const Column<double>& weight, std::int64_t first_row) {
    const Entries e = labelled_entries_of(indptr, indices, values, y, weight);
    raise_fault(learner.find_fault(e.rows, e.size, true), first_row);
}

// Labels and weights are learned by the baseline first, while the check has them in the cache. A learner that cannot
// have the memory it needs has learned nothing, and then the baseline has not either.
ftprl::Totals learn_with_baseline(Learner& learner, ftprl::Baseline* baseline, const Entries& e,
                                  const ftprl::RowOutputs& out, double* losses) {
    if (baseline == nullptr) return learner.learn(e.rows, out);
    const ftprl::Baseline::Saved before = baseline->saved();
    baseline->learn(e.rows.y, e.rows.weight, e.rows.count, losses);
    try {
        return learner.learn(e.rows, out);
    } catch (...) {
        baseline->restore(before);
        throw;
    }
}

// Where the experts of each row are kept until its label arrives.
void check_arrivals(const Learner& learner, const Target<2>& arrivals,
                    const std::optional<Column<std::int64_t>>& arrival_of, std::int64_t rows) {
    if (arrivals.shape(1) != static_cast<std::size_t>(ftprl::arrival_numbers(learner.scales())) || !arrival_of) {
        throw nb::value_error("arrivals need a number for each scale and two more, and arrival_of");
    }
    check_length("arrival_of", arrival_of->size(), rows);
    const auto count = static_cast<std::int64_t>(arrivals.shape(0));
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t at = arrival_of->data()[r];
        if (at < 0 || at >= count) throw nb::value_error("arrival_of needs rows of arrivals");
    }
}

nb::tuple learn(Learner& learner, const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices,
                const Values& values, const Column<double>& y, const Column<double>& weight,
                const std::optional<Target<2>>& scores, const std::optional<Target<1>>& losses, std::int64_t first_row,
                bool scales, bool mixture, ftprl::Baseline* baseline, const std::optional<Target<2>>& baselines,
                const std::optional<Target<2>>& arrivals, const std::optional<Column<std::int64_t>>& arrival_of) {
    Entries e = labelled_entries_of(indptr, indices, values, y, weight);
    if (scores) check_scores(*scores, e.rows.count, 1);
    if (losses) check_length("losses", losses->size(), e.rows.count);
    if (baselines) check_pairs(*baselines, e.rows.count);
    if (arrivals) check_arrivals(learner, *arrivals, arrival_of, e.rows.count);
    ftprl::RowOutputs out{};
    out.arrivals = arrivals ? arrivals->data() : nullptr;
    out.arrival_of = arrivals ? arrival_of->data() : nullptr;
    out.scores = scores ? scores->data() : nullptr;
    out.losses = losses ? losses->data() : nullptr;
    learner.choose_parts(scales, mixture);
    ftprl::RowFault fault;
    ftprl::Totals totals{};
    {
        const nb::gil_scoped_release free;
        fault = learner.find_fault(e.rows, e.size, true, &e.rows.largest);
        if (!fault) totals = learn_with_baseline(learner, baseline, e, out, baselines ? baselines->data() : nullptr);
    }
    raise_fault(fault, first_row);
    return nb::make_tuple(totals.loss, totals.weight, totals.rows);
}

void score(const Learner& learner, const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices,
           const Values& values, const Target<2>& scores, std::int64_t first_row, bool calibrated) {
    const Entries e = entries_of(indptr, indices, values);
    check_scores(scores, e.rows.count, learner.outputs());
    ftprl::RowFault fault;
    {
        const nb::gil_scoped_release free;
        fault = learner.find_fault(e.rows, e.size, false);
        if (!fault) learner.score(e.rows, scores.data(), calibrated);
    }
    raise_fault(fault, first_row);
}

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void score_said(const Learner& learner, const Matrix& scores, const std::optional<Column<double>>& coin,
                const Matrix& values, const Target<1>& out) {
    const auto rows = static_cast<std::int64_t>(out.size());
    check_length("scores", scores.shape(0), rows);
    check_length("values", values.shape(0), rows);
    if (learner.has_classes() || scores.shape(1) != static_cast<std::size_t>(learner.scales()))
        throw nb::value_error("scores needs a column for each scale of one score");
    if (coin.has_value() != learner.has_coin()) throw nb::value_error("coin is needed where the learner has one");
    if (coin) check_length("coin", coin->size(), rows);
    const nb::gil_scoped_release free;
    learner.score_said(rows, scores.data(), coin ? coin->data() : nullptr, values.data(),
                       static_cast<std::int64_t>(values.shape(1)), out.data());
}

void moves(const Learner& learner, const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices,
           const Values& values, const Target<2>& out, std::int64_t first_row) {
    const Entries e = entries_of(indptr, indices, values);
    check_scores(out, e.rows.count, learner.outputs() * learner.scales());
    ftprl::RowFault fault;
    {
        const nb::gil_scoped_release free;
        fault = learner.find_fault(e.rows, e.size, false);
        if (!fault) learner.moves(e.rows, out.data());
    }
    raise_fault(fault, first_row);
}

// A row for each bin of scores: log-odds before and after calibration.
void knots(const Learner& learner, const Target<2>& out) {
    if (learner.calibrator() == nullptr || out.shape(0) != ftprl::SCORE_BINS || out.shape(1) != 2)
        throw nb::value_error("out needs two numbers for each bin of a calibrator");
    const ftprl::CalibrationMap map = learner.calibrator()->map();
    for (std::size_t b = 0; b < ftprl::SCORE_BINS; ++b) {
        out.data()[2 * b] = map.x[b];
        out.data()[2 * b + 1] = map.odds[b];
    }
}

ftprl::Rows rows_of(const ftprl::bindings::OneRowView& row) {
    ftprl::Rows rows{};
    rows.count = 1;
    rows.indptr = row.indptr;
    rows.indices = row.indices;
    rows.values = row.values;
    rows.y = row.y;
    rows.weight = row.weight;
    rows.wide = row.wide;
    return rows;
}

// ---- the module's part ----

void bind_rows(nb::class_<Learner>& learner) {
    learner
        .def(
            "learn", &learn, nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(),
            nb::arg("values").noconvert(), nb::arg("y").noconvert(), nb::arg("weight").noconvert(),
            nb::arg("scores").noconvert().none() = nb::none(), nb::arg("losses").noconvert().none() = nb::none(),
            nb::arg("first_row") = 0, nb::arg("scales") = true, nb::arg("mixture") = true,
            nb::arg("baseline").none() = nb::none(), nb::arg("baselines").noconvert().none() = nb::none(),
            nb::arg("arrivals").noconvert().none() = nb::none(), nb::arg("arrival_of").noconvert().none() = nb::none(),
            "Predict and learn, row by row; (loss, weight, rows) of what was learned. Without `mixture` the mixture "
            "stays as it is; without `scales` only the weights of its experts learn. A `baseline` learns the labels, "
            "whose losses go to `baselines` as in Baseline.learn. With `arrivals`, row r keeps what its experts say in "
            "row arrival_of[r] of it when it is only predicted, and is weighed by that when it is learned.")
        .def("check", &check, nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(),
             nb::arg("values").noconvert(), nb::arg("y").noconvert(), nb::arg("weight").noconvert(),
             nb::arg("first_row") = 0, "Raise RowError for the first row that cannot be learned.")
        .def("score", &score, nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(),
             nb::arg("values").noconvert(), nb::arg("scores").noconvert(), nb::arg("first_row") = 0,
             nb::arg("calibrated") = true,
             "The scores of the rows, a column for each output, with the weights as they are.")
        .def("score_said", &score_said, nb::arg("scores").noconvert(), nb::arg("coin").noconvert().none(),
             nb::arg("values").noconvert(), nb::arg("out").noconvert(),
             "The scores of dense rows for which the scales and the coin have theirs already.")
        .def("moves", &moves, nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(),
             nb::arg("values").noconvert(), nb::arg("out").noconvert(), nb::arg("first_row") = 0,
             "How far one more such row could move each score: a column for each scale of each output.")
        .def("knots", &knots, nb::arg("out").noconvert(),
             "Log-odds before and after isotonic calibration, a row for each bin; between them it is linear.");
}

}  // namespace

// The interpreter's lock is kept: a row takes less time than to give it back and to take it again.
double ftprl::bindings::learn_row(Learner& learner, Baseline& baseline, const OneRowView& row) {
    Entries e{rows_of(row), row.indptr[1]};
    raise_fault(learner.find_fault(e.rows, e.size, true, &e.rows.largest), 0);
    learner.choose_parts(true, true);
    learn_with_baseline(learner, &baseline, e, RowOutputs{}, nullptr);
    return learner.tallies()[ROWS];
}

std::vector<double> ftprl::bindings::score_classes(const Learner& learner, const OneRowView& row) {
    const Entries e{rows_of(row), row.indptr[1]};
    raise_fault(learner.find_fault(e.rows, e.size, false), 0);
    std::vector<double> scores(static_cast<std::size_t>(learner.outputs()));
    learner.score(e.rows, scores.data());
    return scores;
}

double ftprl::bindings::score_row(const Learner& learner, const OneRowView& row) {
    if (learner.has_classes()) throw nb::value_error("several classes have several scores");
    const Entries e{rows_of(row), row.indptr[1]};
    raise_fault(learner.find_fault(e.rows, e.size, false), 0);
    double score = 0.0;
    learner.score(e.rows, &score);
    return score;
}

void ftprl::bindings::check_row(const Learner& learner, const OneRowView& row) {
    raise_fault(learner.find_fault(rows_of(row), row.indptr[1], true), 0);
}

bool ftprl::bindings::bound_cells(Learner& learner, const std::uint32_t* slots, std::size_t count, const double* ends) {
    return learner.put_boxes(slots, count, ends);
}

Learner& ftprl::bindings::learner_of(nb::handle learner) { return nb::cast<Learner&>(learner); }
ftprl::Baseline& ftprl::bindings::baseline_of(nb::handle baseline) { return nb::cast<Baseline&>(baseline); }

void ftprl::bindings::bind_learner(nb::module_& m) {
    m.attr("RowError") = nb::steal(PyErr_NewExceptionWithDoc(
        "ftprl._core.RowError", "A row that cannot be learned or scored; `row` is its number.", PyExc_ValueError,
        nullptr));
    nb::list newtons;
    for (const ftprl::NewtonKind& kind : ftprl::NEWTONS)
        newtons.append(
            nb::make_tuple(kind.name, kind.letter, kind.prior, kind.columns, kind.drift > 0.0, kind.droppable));
    m.attr("NEWTONS") = nb::tuple(newtons);
    m.attr("OTHER_PRIORS") = nb::make_tuple(ftprl::OFFSET_PRIOR, ftprl::COIN_PRIOR);
    nb::class_<Learner> learner(m, "Learner", "A table of cells and the constants it is learned with.");
    learner.def(nb::new_(&make_learner), nb::arg("dim"), nb::arg("outputs") = 1, nb::kw_only(), nb::arg("float64"),
                nb::arg("receipt"), nb::arg("loss"), nb::arg("scales"), nb::arg("beta"), nb::arg("l1"), nb::arg("l2"),
                nb::arg("lower"), nb::arg("upper"), nb::arg("intercept"), nb::arg("tau"), nb::arg("coin") = false,
                nb::arg("dense") = false, nb::arg("boxed") = false, nb::arg("classes") = 0,
                nb::arg("calibrate") = "none", nb::arg("coin_input") = true);
    learner.def("copy", &Learner::copy);
    learner.def_rw("threads", &Learner::threads,
                   "How many threads learn a batch together; the bits do not depend on it.");
    bind_rows(learner);
    bind_learner_cells(learner);
    bind_learner_state(learner);
    m.def("use_instruction_set", &use_instruction_set, nb::arg("name"),
          "Use what was compiled for an instruction set in learners and parsers made from now on ('avx2', 'sse2', "
          "'portable', '' for the best). False when the processor lacks it.");
}
