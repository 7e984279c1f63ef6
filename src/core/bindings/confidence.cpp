// Confidence sequences as Python sees them.
#include "measure/confidence.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "measure/monitor.hpp"

namespace nb = nanobind;

namespace {

using namespace ftprl::bindings;
using Numbers = std::vector<double>;
using Pairs = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A state whose members are all doubles, as an array, and back.
template <class State>
Numbers numbers_of(const State& state) {
    Numbers numbers(sizeof(State) / sizeof(double));
    std::memcpy(numbers.data(), &state, sizeof(State));
    return numbers;
}

template <class State>
State state_of(const Numbers& numbers) {
    check_length("numbers", numbers.size(), sizeof(State) / sizeof(double));
    State state;
    std::memcpy(&state, numbers.data(), sizeof(State));
    return state;
}

// Numbers of a file, which may be anything: no index that follows from them may lie outside of its array.
ftprl::ResidualState residual_state_of(const Numbers& numbers) {
    const auto state = state_of<ftprl::ResidualState>(numbers);
    const double used = state.last - state.first;
    const bool finite = std::all_of(numbers.begin(), numbers.end(), [](double value) { return std::isfinite(value); });
    if (!finite || !(used >= 0.0 && used < ftprl::PREDICTION_BINS) || !(state.width >= 0.0) || !(state.top >= 0.0))
        throw nb::value_error("residuals needs numbers that a monitor saved");
    return state;
}

std::pair<double, double> interval_of(const ftprl::MeanSequence& sequence) {
    const ftprl::Range range = sequence.interval();
    return {range.lower, range.upper};
}

// Mean, lower and upper end, rows, bound, rows that were cut, and how far the mean would be from 0 without that; None
// before the first row.
nb::object summary_of(const ftprl::MeanSequence& sequence) {
    const ftprl::MeanState& s = sequence.state();
    const double weight = s.weight + s.epoch_weight;
    if (!(weight > 0.0)) return nb::none();
    const ftprl::Range range = sequence.interval();
    return nb::make_tuple((s.total + s.sum) / weight, range.lower, range.upper, s.rows, s.bound, s.cut_rows,
                          s.cut_off / weight);
}

// The number of the first row, counted from 0, after which 0 lay outside the interval; -1 if there is none.
std::int64_t add_numbers(ftprl::MeanSequence& sequence, const Column<double>& x, const Column<double>& weight) {
    const auto count = static_cast<std::int64_t>(x.size());
    check_length("weight", weight.size(), count);
    std::int64_t decided = -1;
    const nb::gil_scoped_release free;
    for (std::int64_t r = 0; r < count;) {
        const std::int64_t rows = decided < 0 ? 1 : count - r;  // one by one until it is decided
        r += sequence.add(x.data() + r, weight.data() + r, rows);
        if (decided < 0 && sequence.is_decided()) decided = r - 1;
    }
    return decided;
}

std::unique_ptr<ftprl::Monitor> make_monitor(const char* loss, double error_probability, double false_alarm) {
    const ftprl::Loss* chosen = ftprl::loss_named(loss);
    if (chosen == nullptr) throw nb::value_error((std::string("loss is not known: ") + loss).c_str());
    return std::make_unique<ftprl::Monitor>(chosen, error_probability, false_alarm);
}

void add_rows(ftprl::Monitor& monitor, const Column<double>& losses, const Pairs& baselines,
              const std::optional<Column<double>>& scores, const Column<double>& y, const Column<double>& weight) {
    const auto count = static_cast<std::int64_t>(y.size());
    check_length("losses", losses.size(), count);
    check_length("baselines", baselines.shape(0), count);
    check_length("weight", weight.size(), count);
    if (baselines.shape(1) != 2) throw nb::value_error("baselines needs two numbers for each row");
    if (scores) check_length("scores", scores->size(), count);
    if (!scores && monitor.needs_scores()) throw nb::value_error("scores are needed for this loss");
    const nb::gil_scoped_release free;
    monitor.add({losses.data(), baselines.data(), scores ? scores->data() : nullptr, y.data(), weight.data(), count});
}

}  // namespace

void ftprl::bindings::bind_confidence(nb::module_& m) {
    nb::class_<ftprl::MeanSequence>(m, "MeanSequence", "A confidence sequence of a running mean.")
        .def(nb::init<double, bool, bool, double>(), nb::arg("bound"), nb::arg("is_signed"), nb::arg("grows"),
             nb::arg("error_probability"))
        .def("add", &add_numbers, nb::arg("x").noconvert(), nb::arg("weight").noconvert(),
             "Add numbers; returns which of them was the first after which 0 lay outside the interval, or -1.")
        .def_prop_ro("interval", &interval_of, "The lower and the upper end.")
        .def_prop_ro("summary", &summary_of,
                     "Mean, lower and upper end, rows, bound, cut rows and what was cut off; None before any row.")
        .def_prop_rw(
            "numbers", [](const ftprl::MeanSequence& self) { return numbers_of(self.state()); },
            [](ftprl::MeanSequence& self, const Numbers& numbers) {
                self.state() = state_of<ftprl::MeanState>(numbers);
            },
            "All that it remembers.");
    nb::class_<ftprl::Monitor>(m, "Monitor", "Confidence sequences and the drift alarm of a run.")
        .def(nb::new_(&make_monitor), nb::arg("loss"), nb::arg("error_probability"), nb::arg("false_alarm"))
        .def("add", &add_rows, nb::arg("losses").noconvert(), nb::arg("baselines").noconvert(),
             nb::arg("scores").noconvert().none(), nb::arg("y").noconvert(), nb::arg("weight").noconvert(),
             "Rows as they were predicted before they were learned.")
        .def_prop_ro("needs_scores", &ftprl::Monitor::needs_scores, "Whether losses do not tell the predictions.")
        .def_prop_ro(
            "sequences",
            [](const ftprl::Monitor& self) {
                return std::vector<ftprl::MeanSequence>{self.losses(), self.improvement(), self.calibration(),
                                                        self.errors()};
            },
            "Copies: loss, improvement, calibration, errors.")
        .def_prop_rw(
            "numbers", [](const ftprl::Monitor& self) { return numbers_of(self.state()); },
            [](ftprl::Monitor& self, const Numbers& numbers) {
                self.set_state(state_of<ftprl::MonitorState>(numbers));
            },
            "All that it remembers of means.")
        .def_prop_ro("has_residuals", &ftprl::Monitor::has_residuals, "Whether labels are numbers, not two classes.")
        .def_prop_rw(
            "residuals", [](ftprl::Monitor& self) { return numbers_of(self.residuals().state()); },
            [](ftprl::Monitor& self, const Numbers& numbers) { self.residuals().state() = residual_state_of(numbers); },
            "All that it remembers of residuals.");
    m.def("log_wealth", &ftprl::log_wealth, nb::arg("s"), nb::arg("v"), nb::arg("doublings") = 0);
    m.def("largest_deviation", &ftprl::largest_deviation, nb::arg("v"), nb::arg("threshold"), nb::arg("doublings") = 0);
}
