// The baseline and the intervals of `ftprl verify` as Python sees them.
#include "replay/intervals.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "replay/baseline.hpp"

namespace nb = nanobind;

namespace {

using namespace ftprl::bindings;
using ftprl::replay::Baseline;
using ftprl::replay::Interval;
using ftprl::replay::Intervals;
using ftprl::replay::MeanSequence;

const ftprl::replay::Loss* loss_of(const std::string& name, int classes) {
    return classes > 0 ? nullptr : &ftprl::replay::loss_named(name);
}

// The baseline, with what its arguments are checked by.
struct ReplayedBaseline {
    int classes;
    Baseline baseline;
};

void check_labels(const ReplayedBaseline& self, const Column<double>& y) {
    for (std::size_t r = 0; r < y.size(); ++r) {
        if (self.classes > 0 && !(y.data()[r] >= 0.0 && y.data()[r] < self.classes))
            throw nb::value_error("y needs to be the number of a class");
    }
}

void learn_labels(ReplayedBaseline& self, const Column<double>& y, const Column<double>& weight, Target<1> losses) {
    const auto rows = static_cast<std::int64_t>(y.size());
    check_length("weight", weight.size(), rows);
    check_length("losses", losses.size(), rows);
    check_labels(self, y);
    for (std::int64_t r = 0; r < rows; ++r) losses.data()[r] = self.baseline.learn(y.data()[r], weight.data()[r]);
}

// The loss and the least loss of each row.
void predict_labels(const ReplayedBaseline& self, const Column<double>& y, Target<2> losses) {
    check_pairs(losses, static_cast<std::int64_t>(y.size()));
    check_labels(self, y);
    for (std::size_t r = 0; r < y.size(); ++r) {
        losses.data()[2 * r] = self.baseline.predict(y.data()[r]);
        losses.data()[2 * r + 1] = self.baseline.least_of(y.data()[r]);
    }
}

void add_rows(Intervals& self, const Column<double>& losses, const Column<double>& baselines,
              const Column<double>& predictions, const Column<double>& y, const Column<double>& weight) {
    const auto rows = static_cast<std::int64_t>(losses.size());
    check_length("baselines", baselines.size(), rows);
    check_length("predictions", predictions.size(), rows);
    check_length("y", y.size(), rows);
    check_length("weight", weight.size(), rows);
    for (std::int64_t r = 0; r < rows; ++r)
        self.add(losses.data()[r], baselines.data()[r], predictions.data()[r], y.data()[r], weight.data()[r]);
}

nb::dict as_stated(const Interval& own) {
    nb::dict out;
    out["mean"] = own.mean;
    out["lower"] = own.lower;
    out["upper"] = own.upper;
    out["level"] = ftprl::replay::CONFIDENCE;
    out["rows"] = own.rows;
    out["bound"] = own.bound;
    out["cut_rows"] = own.cut_rows;
    out["cut_off"] = own.cut_off;
    return out;
}

nb::object to_dict(const Intervals& self) {
    if (self.loss().is_empty()) return nb::none();
    nb::dict out, drift;
    const auto add = [&](const char* name, const MeanSequence& sequence) {
        if (!sequence.is_empty()) out[name] = as_stated(sequence.interval());
    };
    add("loss", self.loss());
    add("improvement", self.improvement());
    add("calibration", self.calibration());
    add("error_rate", self.errors());
    drift["row"] = self.drift_row() < 0 ? nb::none() : nb::object(nb::int_(self.drift_row()));
    drift["false_alarm"] = ftprl::replay::FALSE_ALARM;
    out["drift"] = drift;
    return out;
}

}  // namespace

void ftprl::bindings::bind_replay_intervals(nb::module_& m) {
    nb::class_<ReplayedBaseline>(m, "ReplayedBaseline", "Labels predicted from those before them alone, for verify.")
        .def(
            "__init__",
            [](ReplayedBaseline* self, const std::string& kind, const std::string& loss, double tau, int classes) {
                new (self)
                    ReplayedBaseline{classes, ftprl::replay::Baseline(kind, loss_of(loss, classes), tau, classes)};
            },
            nb::arg("kind"), nb::arg("loss"), nb::arg("tau") = 0.5, nb::arg("classes") = 0)
        .def("learn", &learn_labels, nb::arg("y").noconvert(), nb::arg("weight").noconvert(),
             nb::arg("losses").noconvert(),
             "Predict and learn labels, all of them with a weight; the losses are written.")
        .def("predict", &predict_labels, nb::arg("y").noconvert(), nb::arg("losses").noconvert(),
             "Predict labels; the loss and the least possible loss of each row are written.")
        .def_prop_ro("total", [](const ReplayedBaseline& self) { return self.baseline.total(); })
        .def_prop_ro("least", [](const ReplayedBaseline& self) { return self.baseline.least(); });
    nb::class_<Intervals>(m, "ReplayedIntervals", "What to expect of rows to come, computed once more for verify.")
        .def(
            "__init__",
            [](Intervals* self, const std::string& loss, int classes) { new (self) Intervals(loss_of(loss, classes)); },
            nb::arg("loss"), nb::arg("classes") = 0)
        .def("add", &add_rows, nb::arg("losses").noconvert(), nb::arg("baselines").noconvert(),
             nb::arg("predictions").noconvert(), nb::arg("y").noconvert(), nb::arg("weight").noconvert(),
             "Rows that were learned; predictions are scores, or numbers of classes, and not read with the log loss.")
        .def("to_dict", &to_dict, "As a receipt states it; None before the first row.");
}
