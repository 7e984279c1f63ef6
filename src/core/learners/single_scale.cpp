#include "learners/single_scale.hpp"

#include <algorithm>
#include <cstring>

namespace ftprl {
namespace {

std::size_t bytes_of_cell(const LearnerOptions& options) { return options.wide_cells ? 32 : 16; }

// Whether S is the last number of a cell, in float64: otherwise that is rounded, or another number.
bool holds_S(const LearnerOptions& options) {
    return options.wide_cells && options.constants.base.loss->rule == LabelRule::none;
}

// From one cell to the next.
std::size_t stride_of(const LearnerOptions& options) {
    return bytes_of_cell(options) * (options.receipt && !holds_S(options) ? 2 : 1);
}

}  // namespace

SingleScaleLearner::SingleScaleLearner(const LearnerOptions& options)
    : Learner(options, options.dim),
      memory_(options.dim * stride_of(options)),
      labels_(no_labels(*options.constants.base.loss)) {}

SingleScaleLearner::SingleScaleLearner(const SingleScaleLearner& other)
    : Learner(other), memory_(other.memory_.size()), labels_(other.labels_) {
    memory_.copy_from(other.memory_, memory_.size());
    std::copy(std::begin(other.intercept_), std::end(other.intercept_), intercept_);
}

std::unique_ptr<Learner> SingleScaleLearner::copy() const {
    return std::unique_ptr<Learner>(new SingleScaleLearner(*this));
}

State SingleScaleLearner::state() const {
    // The kernels that do not learn leave the state alone.
    return {memory_.data(),
            stride_of(options_),
            const_cast<double*>(intercept_),
            const_cast<double*>(tallies_),
            receipt_state(),
            const_cast<LabelState*>(&labels_)};
}

Totals SingleScaleLearner::learn_rows(const Rows& rows, bool wide_values, const RowOutputs& out) {
    const std::size_t size = static_cast<std::size_t>(longest_row(rows) + 3) * SCRATCH * sizeof(double);
    if (buffer_ == nullptr || buffer_->size() < size) buffer_ = std::make_unique<Memory>(size);
    const Pair& pair = kernels_->of[wide_cells()][wide_values];
    const auto learn = labelled() ? pair.learn_labelled[unconstrained_][receipt()][loss().has_kink()]
                                  : pair.learn[unconstrained_][receipt()];
    Rows own = rows;
    if (options_.constants.weighs) {  // with one scale there are no weights of experts, and held-out rows move nothing
        if (no_weights_.size() < static_cast<std::size_t>(rows.count)) {
            no_weights_.resize(static_cast<std::size_t>(rows.count));
        }
        own.weight = no_weights_.data();
    }
    return learn(own, options_.constants.base, state(), out, static_cast<double*>(buffer_->data()));
}

void SingleScaleLearner::score_rows(const Rows& rows, bool wide_values, double* scores) const {
    const Pair& pair = kernels_->of[wide_cells()][wide_values];
    const auto score = (labelled() ? pair.score_labelled : pair.score)[unconstrained_][receipt()];
    score(rows, options_.constants.base, state(), scores);
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

std::size_t SingleScaleLearner::cell_bytes() const { return bytes_of_cell(options_); }

std::size_t SingleScaleLearner::slot_bytes() const { return stride_of(options_) + box_bytes(); }

void SingleScaleLearner::use_small_pages() { memory_.use_small_pages(); }

unsigned char* SingleScaleLearner::cell(std::uint64_t slot) const {
    return static_cast<unsigned char*>(memory_.data()) + slot * stride_of(options_);
}

GradientSums SingleScaleLearner::gradient_sums() const {
    const std::size_t offset = cell_bytes() - (holds_S(options_) ? sizeof(double) : 0);
    return {reinterpret_cast<double*>(cell(0) + offset), stride_of(options_) / sizeof(double)};
}

void SingleScaleLearner::take(const std::uint32_t* slots, std::size_t count, void* out) const {
    const std::size_t bytes = cell_bytes();
    auto* to = static_cast<unsigned char*>(out);
    for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * bytes, cell(slots[i]), bytes);
}

void SingleScaleLearner::put(const std::uint32_t* slots, std::size_t count, const void* from) {
    const std::size_t bytes = cell_bytes();
    const auto* cells = static_cast<const unsigned char*>(from);
    for (std::size_t i = 0; i < count; ++i) std::memcpy(cell(slots[i]), cells + i * bytes, bytes);
}

std::vector<Columns> SingleScaleLearner::columns() const {
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

std::vector<NamedArray> SingleScaleLearner::mixture() {
    return {
        {"w", &mixture_weight_, 0, 1, 0}, {"totals", tallies_ + LOSS, 0, 1, 0}, {"sums", tallies_ + LINEAR, 3, 1, 1}};
}

std::vector<Columns> SingleScaleLearner::saved_columns() const { return {{"cells", 0, 4}}; }

std::vector<NamedArray> SingleScaleLearner::saved_arrays() {
    std::vector<NamedArray> arrays = common_arrays();
    arrays.push_back({"intercept", intercept_, 0, labelled() ? 5 : 4, 0});
    if (labelled()) {
        arrays.push_back({"labels", reinterpret_cast<double*>(&labels_), 0, static_cast<int>(LABEL_NUMBERS), 0});
    }
    return arrays;
}

void SingleScaleLearner::keep_scales(int, int) {}

}  // namespace ftprl
