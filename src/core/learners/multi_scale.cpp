// The rows and cells of several scales. What is saved of them, and what stays when some are dropped, is in
// multi_scale_state.cpp.
#include "learners/multi_scale.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "learners/mixture_state.hpp"

namespace ftprl {
namespace {

const ScaleSet& set_of(const Kernels& kernels, const LearnerOptions& options) {
    const Loss& loss = *options.constants.base.loss;
    const int lanes = (options.constants.count + 3) / 4 - 1;
    if (loss.rule == LabelRule::none) return kernels.scales->of[options.wide_cells][options.receipt][lanes];
    return kernels.scales->labelled[loss.has_kink()][options.wide_cells][options.receipt][lanes];
}

constexpr std::size_t AHEAD = 64;                       // cells fetched ahead
constexpr double USUAL_SCALE = 0.2, USUAL_WIDTH = 1.5;  // of the weights at the start, in the logarithm of the scale

}  // namespace

MultiScaleLearner::MultiScaleLearner(const LearnerOptions& options)
    : Learner(options, options.dim + 1), slot_map_(options.dim), memory_((options.dim + 1) * set().cell_bytes) {
    if (receipt()) {
        gradients_ = std::make_unique<Memory>((dim() + 1) * static_cast<std::uint64_t>(lanes()) * sizeof(double));
    }
    make_experts();
    const int K = scales();
    mixture_.facts[LARGEST_WEIGHT] = 1.0;
    mixture_.labels = no_labels(loss());
    const bool classes = loss().rule == LabelRule::classes;
    const double part = classes ? 1.0 / (1.0 + CAUTION) : 1.0;
    for (int j = 0; j < experts(); ++j) mixture_.w[j] = part * (1.0 / experts());
    favour_usual_scales();
    if (classes) mixture_.w[K + (options_.constants.stack ? 1 : 0)] += 1.0 - part;
    if (!options_.constants.stack) return;
    for (int k = 0; k < K; ++k) {
        mixture_.u[k] = 1.0 / K;
        mixture_.P[k][k] = 1.0 / STACK_RIDGE;
    }
}

// With the log loss and the coin the scales that are best on most streams begin with more of the weights:
// docs/scales.md.
void MultiScaleLearner::favour_usual_scales() {
    const ScaleConstants& c = options_.constants;
    if (labelled() || !c.coin) return;
    double total = 0.0;
    for (int j = 0; j < experts(); ++j) {
        const double away = j < scales() ? std::log(c.h[j] / USUAL_SCALE) / USUAL_WIDTH : 0.0;
        mixture_.w[j] = j < scales() ? 2.0 / (1.0 + away * away) : 1.0;
        total += mixture_.w[j];
    }
    for (int j = 0; j < experts(); ++j) mixture_.w[j] /= total;
}

MultiScaleLearner::MultiScaleLearner(const MultiScaleLearner& other)
    : Learner(other), slot_map_(dim()), memory_((dim() + 1) * set().cell_bytes), mixture_(other.mixture_) {
    slot_map_.copy_from(other.slot_map_);
    if (other.gradients_ != nullptr) gradients_ = std::make_unique<Memory>(other.gradients_->size());
    memory_.copy_from(other.memory_, slot_map_.count() * own_bytes());
    if (gradients_ != nullptr) gradients_->copy_from(*other.gradients_, gradients_->size());
    std::copy(std::begin(other.intercept_), std::end(other.intercept_), intercept_);
    make_experts();
    if (coin_ != nullptr) coin_->copy_from(*other.coin_, slot_map_.count() * coin_bytes());
    std::copy(std::begin(other.coin_intercept_), std::end(other.coin_intercept_), coin_intercept_);
    if (dense_ != nullptr) *dense_ = *other.dense_;
}

void MultiScaleLearner::make_experts() {
    coin_intercept_[COIN_BOUND] = 1.0;
    if (options_.constants.coin) coin_ = std::make_unique<Memory>((dim() + 1) * coin_bytes());
    if (options_.constants.dense) dense_ = std::make_unique<DenseBlock>();
    mixture_.dense = dense_.get();
}

std::unique_ptr<Learner> MultiScaleLearner::copy() const {
    return std::unique_ptr<Learner>(new MultiScaleLearner(*this));
}

const ScaleSet& MultiScaleLearner::set() const { return set_of(*kernels_, options_); }

ScaleState MultiScaleLearner::state(const std::uint32_t* slots) const {
    const ExpertState experts = {coin_ == nullptr ? nullptr : coin_->data(), const_cast<double*>(coin_intercept_),
                                 coin_scratch_ == nullptr ? nullptr : static_cast<double*>(coin_scratch_->data()),
                                 dense_.get(), slots};
    // The kernels that do not learn leave the state alone.
    return {memory_.data(),
            const_cast<double*>(intercept_),
            const_cast<double*>(tallies_),
            const_cast<Mixture*>(&mixture_),
            receipt_state(),
            experts};
}

// ---- rows ----

Totals MultiScaleLearner::learn_rows(const Rows& rows, bool wide_values, const RowOutputs& out) {
    const auto longest = static_cast<std::size_t>(std::max<std::int64_t>(longest_row(rows), 1));
    const std::size_t bytes = longest * static_cast<std::size_t>(lanes()) * sizeof(double);
    if (buffer_ == nullptr || buffer_->size() < bytes) buffer_ = std::make_unique<Memory>(bytes);
    if (coin_ != nullptr) {
        const std::size_t scratch = (longest + 3) / 4 * 4 * SCRATCH * sizeof(double);
        if (coin_scratch_ == nullptr || coin_scratch_->size() < scratch)
            coin_scratch_ = std::make_unique<Memory>(scratch);
    }
    const std::int64_t size = rows.indptr[rows.count];
    if (cell_numbers_.size() < static_cast<std::size_t>(size)) cell_numbers_.resize(static_cast<std::size_t>(size));
    slot_map_.claim(rows.indices, size, cell_numbers_.data());
    Rows of_cells = rows;
    of_cells.indices = cell_numbers_.data();
    return set().learn[unconstrained_](of_cells, wide_values, options_.constants, state(rows.indices), out,
                                       static_cast<double*>(buffer_->data()));
}

void MultiScaleLearner::score_rows(const Rows& rows, bool wide_values, double* scores) const {
    // Several threads may score at once: each has its own.
    std::vector<std::uint32_t> cell_numbers(static_cast<std::size_t>(rows.indptr[rows.count]));
    slot_map_.find(rows.indices, rows.indptr[rows.count], cell_numbers.data());
    Rows of_cells = rows;
    of_cells.indices = cell_numbers.data();
    set().score[unconstrained_](of_cells, wide_values, options_.constants, state(rows.indices), scores);
}

void MultiScaleLearner::intercept(double* out) const {
    for (int part = 0; part < 3; ++part) {
        const double* from = intercept_ + part * MOST_SCALES;
        std::copy(from, from + scales(), out + part * scales());
    }
    std::fill_n(out + 3 * scales(), scales(), labelled() ? intercept_[3 * MOST_SCALES] : 1.0);
}

void MultiScaleLearner::take(const std::uint32_t* slots, std::size_t count, void* out) const {
    const std::size_t bytes = own_bytes(), more = coin_bytes();
    const auto* cells = static_cast<const unsigned char*>(memory_.data());
    const auto* coins = coin_ == nullptr ? nullptr : static_cast<const unsigned char*>(coin_->data());
    auto* to = static_cast<unsigned char*>(out);
    for (std::size_t i = 0; i < count; ++i, to += bytes + more) {
        if (i + AHEAD < count) fetch(cells + slot_map_[slots[i + AHEAD]] * bytes, bytes);
        std::memcpy(to, cells + slot_map_[slots[i]] * bytes, bytes);
        if (more != 0) std::memcpy(to + bytes, coins + slot_map_[slots[i]] * more, more);
    }
}

void MultiScaleLearner::put(const std::uint32_t* slots, std::size_t count, const void* from) {
    const std::size_t bytes = own_bytes(), more = coin_bytes();
    auto* cells = static_cast<unsigned char*>(memory_.data());
    auto* coins = coin_ == nullptr ? nullptr : static_cast<unsigned char*>(coin_->data());
    const auto* cell = static_cast<const unsigned char*>(from);
    if (cell_numbers_.size() < count) cell_numbers_.resize(count);
    slot_map_.claim(slots, static_cast<std::int64_t>(count), cell_numbers_.data());
    for (std::size_t i = 0; i < count; ++i, cell += bytes + more) {
        std::memcpy(cells + cell_numbers_[i] * bytes, cell, bytes);
        if (more != 0) std::memcpy(coins + cell_numbers_[i] * more, cell + bytes, more);
    }
    if (dense_ != nullptr) link_columns(*dense_, slot_map_);
}

int MultiScaleLearner::experts() const {
    return scales() + (options_.constants.stack ? 1 : 0) + (labelled() ? 1 : 0) + (options_.constants.coin ? 1 : 0);
}

CellTable MultiScaleLearner::table() const {
    const int P = lanes();
    CellTable table{};
    table.columns = 1;
    table.copies = 1.0;
    table.cells = memory_.data();
    table.slot_map = slot_map_.data();
    table.dim = dim();
    table.bytes = own_bytes();
    table.wide = wide_cells();
    table.z = 0;
    table.R = P;
    table.unit = 2 * P;
    table.met = 2 * P + 1;
    table.counts = true;
    table.kappa = loss().has_kink() ? 2 * P + 2 : -1;
    if (receipt()) table.S = gradient_sums();
    return table;
}

GradientSums MultiScaleLearner::gradient_sums() const {
    return {static_cast<double*>(gradients_->data()), static_cast<std::uint64_t>(lanes())};
}

}  // namespace ftprl
