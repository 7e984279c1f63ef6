#include "learn/single_scale.hpp"

#include <algorithm>
#include <iterator>

namespace ftprl {
namespace {

std::size_t bytes_of_cell(const LearnerOptions& options) { return options.wide_cells ? 32 : 16; }

// Whether S is the last number of a cell, in float64: otherwise that is rounded, or another number.
bool holds_S(const LearnerOptions& options) {
    return options.wide_cells && options.constants.loss->rule == LabelRule::none;
}

// From one cell to the next.
std::size_t stride_of(const LearnerOptions& options) {
    return bytes_of_cell(options) * (options.receipt && !holds_S(options) ? 2 : 1);
}

}  // namespace

SingleScaleLearner::SingleScaleLearner(const LearnerOptions& options)
    : Learner(options, options.dim, 0), memory_(options.dim * stride_of(options)) {}

SingleScaleLearner::SingleScaleLearner(const SingleScaleLearner& other)
    : Learner(other), memory_(other.memory_.size()) {
    memory_.copy_from(other.memory_, memory_.size());
    std::copy(std::begin(other.intercept_), std::end(other.intercept_), intercept_);
}

std::unique_ptr<Learner> SingleScaleLearner::copy() const {
    return std::unique_ptr<Learner>(new SingleScaleLearner(*this));
}

void SingleScaleLearner::run_scales(const BasePass& pass, double* buffer) const {
    // Passes that do not learn leave the state alone.
    const TableState state = {memory_.data(), const_cast<double*>(intercept_), receipt_state()};
    kernels_->one[wide_cells()][labelled()][receipt()](pass, options_.constants, state, buffer);
}

void SingleScaleLearner::intercept(double* out) const {
    out[0] = intercept_[0];
    out[1] = intercept_[1];
    out[2] = intercept_[labelled() ? 4 : 3];
    out[3] = labelled() ? intercept_[3] : 1.0;
}

std::size_t SingleScaleLearner::touched(std::uint32_t* out) const {
    const auto* words = static_cast<const std::uint64_t*>(memory_.data());
    const bool wide = wide_cells();
    const std::uint64_t each = stride_of(options_) / sizeof *words;
    std::size_t count = 0;
    for (std::uint64_t i = 0; i < dim(); ++i, words += each) {
        const std::uint64_t bits = wide ? (words[0] | words[1]) | (words[2] | words[3]) : words[0] | words[1];
        out[count] = static_cast<std::uint32_t>(i);  // overwritten by the next if it does not count
        count += bits != 0 ? 1 : 0;
    }
    return count;
}

std::size_t SingleScaleLearner::own_bytes() const { return bytes_of_cell(options_); }

std::size_t SingleScaleLearner::slot_bytes() const { return stride_of(options_) + box_bytes(); }

unsigned char* SingleScaleLearner::cell(std::uint64_t slot) const {
    return static_cast<unsigned char*>(memory_.data()) + slot * stride_of(options_);
}

GradientSums SingleScaleLearner::gradient_sums() const {
    const std::size_t offset = cell_bytes() - (holds_S(options_) ? sizeof(double) : 0);
    return {reinterpret_cast<double*>(cell(0) + offset), stride_of(options_) / sizeof(double)};
}

std::vector<Part> SingleScaleLearner::parts() const {
    if (labelled()) return {{"z", 0, 1}, {"R", 1, 1}, {"unit", 2, 0}, {"kappa", 3, 0}};
    return {{"z", 0, 1}, {"R", 1, 1}, {"unit", 2, 0}, {"rounded_S", 3, 1}};
}

CellTable SingleScaleLearner::table() const {
    CellTable table{};
    table.columns = 1;
    table.copies = 1.0;
    table.cells = memory_.data();
    table.dim = dim();
    table.bytes = stride_of(options_);
    table.wide = wide_cells();
    table.z = 0;
    table.R = 1;
    table.unit = table.met = 2;
    table.kappa = labelled() ? 3 : -1;
    if (receipt()) table.S = gradient_sums();
    return table;
}

void SingleScaleLearner::add_own_arrays(std::vector<NamedArray>& arrays) {
    arrays.push_back({"intercept", intercept_, 0, labelled() ? 5 : 4, 0});
}

}  // namespace ftprl
