// What the files that know Python share: module.cpp has the module, the others a part of it each. No other file of
// the core knows Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ftprl {
class Baseline;
class Learner;
struct Column;
struct ColumnSample;
}  // namespace ftprl

namespace ftprl::bindings {

void bind_baseline(nanobind::module_& m);
void bind_confidence(nanobind::module_& m);
void bind_replay(nanobind::module_& m);
void bind_replay_intervals(nanobind::module_& m);
void bind_frames(nanobind::module_& m);
void bind_readers(nanobind::module_& m);
void bind_learner(nanobind::module_& m);
void bind_losses(nanobind::module_& m);
void bind_lock(nanobind::module_& m);
void bind_matrix(nanobind::module_& m);
void bind_order(nanobind::module_& m);
void bind_names(nanobind::module_& m);
void bind_one_row(nanobind::module_& m);
void bind_slot_index(nanobind::module_& m);
void bind_texts(nanobind::module_& m);

// One row in the memory of a parser. Files that know parsers do not know learners, whose names they share.
struct OneRowView {
    const std::int64_t* indptr;  // two numbers
    const std::uint32_t* indices;
    const void* values;
    bool wide;  // float64 values, else float32
    const double* y;
    const double* weight;
};
// How many rows a learner has learned, after it has learned this one; a bad one is raised as RowError.
double learn_row(Learner& learner, Baseline& baseline, const OneRowView& row);
double score_row(const Learner& learner, const OneRowView& row);
// With several classes: a number for each class that is known.
std::vector<double> score_classes(const Learner& learner, const OneRowView& row);
// Raises RowError for a row that cannot be learned.
void check_row(const Learner& learner, const OneRowView& row);
// Sets the bounds of the weights of some cells, a pair each; false when too many pairs differ.
bool bound_cells(Learner& learner, const std::uint32_t* slots, std::size_t count, const double* ends);
Learner& learner_of(nanobind::handle learner);
Baseline& baseline_of(nanobind::handle baseline);

// A seed as Python gives it; anything else is refused by name.
std::uint64_t seed_of(nanobind::handle value);

// A column from its kind and name, and what the first rows say of one as Python's ColumnSample has it.
ftprl::Column column_of(nanobind::handle pair);
nanobind::tuple tuple_of(const ftprl::ColumnSample& sample);

}  // namespace ftprl::bindings
