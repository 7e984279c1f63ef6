// What the files that know Python share: module.cpp has the module, the others a part of it each. No other file of
// the core knows Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace ftprl {
struct Column;
struct ColumnSample;
}  // namespace ftprl

namespace ftprl::bindings {

void bind_admission(nanobind::module_& m);
void bind_baseline(nanobind::module_& m);
void bind_confidence(nanobind::module_& m);
void bind_replay(nanobind::module_& m);
void bind_frames(nanobind::module_& m);
void bind_readers(nanobind::module_& m);
void bind_learner(nanobind::module_& m);
void bind_lock(nanobind::module_& m);
void bind_names(nanobind::module_& m);

// A seed as Python gives it; anything else is refused by name.
std::uint64_t seed_of(nanobind::handle value);

// A column from its kind and name, and what the first rows say of one as Python's ColumnSample has it.
ftprl::Column column_of(nanobind::handle pair);
nanobind::tuple tuple_of(const ftprl::ColumnSample& sample);

}  // namespace ftprl::bindings
