// The table of losses as Python sees it.
#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>

#include "bindings/bindings.hpp"
#include "learn/learner.hpp"
#include "measure/baseline.hpp"

namespace nb = nanobind;

namespace {

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

}  // namespace

void ftprl::bindings::bind_losses(nb::module_& m) {
    m.def("losses", &losses,
          "Each loss by name: its labels, how scales are mixed, within which scores, and its baseline.");
    m.def("loss_at", &loss_at, nb::arg("name"), nb::arg("score"), nb::arg("y"), nb::arg("tau") = 0.5,
          "The loss of a score and its slope.");
}
