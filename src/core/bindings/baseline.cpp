// The baseline as Python sees it.
#include "measure/baseline.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"

namespace nb = nanobind;

namespace {

using namespace ftprl::bindings;

std::unique_ptr<ftprl::Baseline> make_baseline(const char* loss, double tau, int classes) {
    const ftprl::Loss* chosen = ftprl::loss_named(loss);
    if (chosen == nullptr) throw nb::value_error((std::string("loss is not known: ") + loss).c_str());
    if ((classes > 0) != (chosen->labels == ftprl::Labels::classes))
        throw nb::value_error("classes are for their losses");
    return std::make_unique<ftprl::Baseline>(chosen, tau, classes);
}

void learn_labels(ftprl::Baseline& baseline, const Column<double>& y, const Column<double>& weight,
                  const std::optional<Target<2>>& losses) {
    const auto count = static_cast<std::int64_t>(y.size());
    check_length("weight", weight.size(), count);
    if (losses) check_pairs(*losses, count);
    const nb::gil_scoped_release free;
    baseline.learn(y.data(), weight.data(), count, losses ? losses->data() : nullptr);
}

nb::object numbers_of(nb::handle self) {
    double* numbers = nb::cast<ftprl::Baseline&>(self).numbers();
    return nb::cast(nb::ndarray<nb::numpy, double>(numbers, {ftprl::BASELINE_NUMBERS}, self));
}

nb::object class_weights_of(nb::handle self) {
    std::vector<double>& weights = nb::cast<ftprl::Baseline&>(self).class_weights();
    return nb::cast(nb::ndarray<nb::numpy, double>(weights.data(), {weights.size()}, self));
}

}  // namespace

void ftprl::bindings::bind_baseline(nb::module_& m) {
    nb::class_<ftprl::Baseline>(m, "Baseline", "The loss of predicting each label from those before it alone.")
        .def(nb::new_(&make_baseline), nb::arg("loss"), nb::arg("tau"), nb::arg("classes") = 0)
        .def("learn", &learn_labels, nb::arg("y").noconvert(), nb::arg("weight").noconvert(),
             nb::arg("losses").noconvert().none() = nb::none(),
             "Predict and learn the labels; `losses` gets the loss and the least loss of each row.")
        .def("copy", [](const ftprl::Baseline& self) { return std::make_unique<ftprl::Baseline>(self); })
        .def_prop_ro(
            "kind", [](const ftprl::Baseline& self) { return ftprl::name_of(self.kind()); },
            "What the prediction is: base_rate, mean, log_mean, median, quantile, majority or class_rates.")
        .def_prop_ro(
            "total", [](const ftprl::Baseline& self) { return self.total(); }, "The loss of all rows learned.")
        .def_prop_ro(
            "loss_totals", [](const ftprl::Baseline& self) { return nb::make_tuple(self.total(), self.least()); },
            "The loss of all rows learned, and the least that it could be.")
        .def_prop_ro("numbers", &numbers_of, "All that it remembers but the weights of classes; a view.")
        .def_prop_ro("class_weights", &class_weights_of, "The weight of each class that there may be; a view.");
}
