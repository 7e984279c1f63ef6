// The table of losses as Python sees it, and whether values are units.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "learners/baseline.hpp"
#include "learners/learner.hpp"

namespace nb = nanobind;

namespace {

using ftprl::bindings::Values;

constexpr const char* LABELS[] = {"signs", "nonnegative", "positive", "numbers", "classes"};
// As in the order of LabelRule.
constexpr const char* RULES[] = {"none", "classes", "mean", "quantile", "median_of_unit", "log_mean", "log_ratio"};

nb::dict losses() {
    nb::dict all;
    for (std::size_t i = 0; i < ftprl::LOSS_COUNT; ++i) {
        const ftprl::Loss& loss = ftprl::LOSSES[i];
        all[loss.name] = nb::make_tuple(LABELS[static_cast<int>(loss.labels)], RULES[static_cast<int>(loss.rule)],
                                        ftprl::name_of(loss.baseline));
    }
    return all;
}

nb::tuple loss_at(const char* name, double score, double y, double tau) {
    const ftprl::Loss* loss = ftprl::loss_named(name);
    if (loss == nullptr) throw nb::value_error((std::string("loss is not known: ") + name).c_str());
    double tail = 0.0;
    const ftprl::LossAtScore at = loss->at(score, y, tau, tail);
    return nb::make_tuple(ftprl::total_loss(at.value, tail), at.slope);
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

}  // namespace

void ftprl::bindings::bind_losses(nb::module_& m) {
    m.def("losses", &losses,
          "Each loss by name: its labels, how scales are mixed, within which scores, and its baseline.");
    m.def("loss_at", &loss_at, nb::arg("name"), nb::arg("score"), nb::arg("y"), nb::arg("tau") = 0.5,
          "The loss of a score and its slope.");
    m.def("has_units", &has_units, nb::arg("values").noconvert(), "Whether every value is 1, -1 or 0.");
}
