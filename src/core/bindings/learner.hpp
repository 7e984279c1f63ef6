// What the files that bind the learner share: learner.cpp has its rows, learner_cells.cpp its cells, and
// learner_state.cpp its sums and its mixture.
#pragma once

#include <nanobind/nanobind.h>

#include "learn/learner.hpp"

namespace ftprl::bindings {

void bind_learner_cells(nanobind::class_<Learner>& learner);
void bind_learner_state(nanobind::class_<Learner>& learner);

inline void check_scale(const Learner& learner, int scale) {
    if (scale < 0 || scale >= learner.scales())
        throw nanobind::value_error("a scale needs a number below that of the scales");
}

}  // namespace ftprl::bindings
