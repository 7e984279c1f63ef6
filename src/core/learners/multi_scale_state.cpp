// What is saved of several scales, by name, and what stays of it when some of them are dropped.
#include "learners/multi_scale.hpp"

#include <algorithm>
#include <cstring>

#include "learners/mixture_state.hpp"

namespace ftprl {
namespace {

constexpr std::size_t LONGEST_CELL = 512;

// The lanes [first, first + count) of all `cells` cells, put where cells of fewer lanes go: from the front on, since
// cells only get shorter.
template <class T>
void move_lanes(unsigned char* table, CellLayout from, CellLayout to, std::uint64_t cells, int first, int count) {
    alignas(64) unsigned char made[LONGEST_CELL];
    for (std::uint64_t i = 0; i < cells; ++i) {
        const T* a = reinterpret_cast<const T*>(table + i * from.bytes);
        std::memset(made, 0, to.bytes);
        T* b = reinterpret_cast<T*>(made);
        for (int k = 0; k < count; ++k) {
            b[k] = a[first + k];
            b[to.lanes + k] = a[from.lanes + first + k];
        }
        b[2 * to.lanes] = a[2 * from.lanes];
        b[2 * to.lanes + 1] = a[2 * from.lanes + 1];
        if (from.kappa) b[2 * to.lanes + 2] = a[2 * from.lanes + 2];
        std::memcpy(table + i * to.bytes, made, to.bytes);
    }
}

}  // namespace

// ---- what is saved ----

std::vector<Columns> MultiScaleLearner::columns() const {
    const int P = lanes(), K = scales();
    std::vector<Columns> all = {{"z", 0, K}, {"R", P, K}, {"unit", 2 * P, 0}, {"count", 2 * P + 1, 0}};
    if (loss().has_kink()) all.push_back({"kappa", 2 * P + 2, 0});
    const int size = static_cast<int>(wide_cells() ? sizeof(double) : sizeof(float));
    if (coin_ != nullptr) all.push_back({"coin", static_cast<int>(own_bytes()) / size, COIN_FACTS});
    return all;
}

void MultiScaleLearner::expect_columns(int columns, int inputs) {
    if (dense_ == nullptr) return;
    dense_->inputs = inputs > 0 ? scales() + 1 : 0;
    dense_->active = inputs > 0 ? inputs - dense_->inputs : 0;
    dense_->watched = columns - dense_->active;
}

std::vector<NamedArray> MultiScaleLearner::mixture() {
    const int K = scales(), windows = K > WINDOW ? K - WINDOW + 2 : 0;
    Mixture& m = mixture_;
    const int most = K + 1 + (labelled() ? 1 : 0) + (coin_ != nullptr ? 1 : 0);
    return {{"P", &m.P[0][0], K, K, MOST_COLUMNS},
            {"u", m.u, 0, K, 0},
            {"w", m.w, 0, most, 0},
            {"totals", m.totals, 0, most, 0},
            {"facts", m.facts, 0, 3, 0},
            {"hedge", m.hedge, 0, HEDGE_FACTS, 0},
            {"first", m.first, 0, most, 0},
            {"weighed", m.weighed, 0, most, 0},
            {"first_part", &m.first_part, 0, 1, 0},
            {"labels", reinterpret_cast<double*>(&m.labels), 0, static_cast<int>(LABEL_NUMBERS), 0},
            {"block", m.block, 0, K, 0},
            {"windows", &m.windows[0][0], 3, windows, MOST_WINDOWS},
            {"sums", &m.sums[0][0], 3, K, MOST_SCALES}};
}

std::vector<Columns> MultiScaleLearner::saved_columns() const {
    std::vector<Columns> saved = columns();
    saved[2].name = "s";
    saved[3].name = "N";
    return saved;
}

std::vector<NamedArray> MultiScaleLearner::saved_arrays() {
    const int K = scales();
    Mixture& m = mixture_;
    std::vector<NamedArray> arrays = common_arrays();
    arrays.insert(arrays.end(), {{"intercept", intercept_, 3, K, MOST_SCALES},
                                 {"mixture.w", m.w, 0, experts(), 0},
                                 {"mixture.totals", m.totals, 0, experts(), 0}});
    if (labelled()) {
        arrays.push_back({"mixture.hedge", m.hedge, 0, HEDGE_FACTS, 0});
        arrays.push_back({"labels", reinterpret_cast<double*>(&m.labels), 0, static_cast<int>(LABEL_NUMBERS), 0});
        arrays.push_back({"intercept.kappa", intercept_ + 3 * MOST_SCALES, 0, 1, 0});
    } else {
        arrays.push_back({"mixture.facts", m.facts, 0, 3, 0});
    }
    add_mixture_arrays(arrays, m, options_.constants, receipt());
    add_expert_arrays(arrays);
    return arrays;
}

void MultiScaleLearner::add_expert_arrays(std::vector<NamedArray>& arrays) {
    const int numbers = labelled() ? COIN_BOUND + 1 : COIN_NUMBERS;  // the others count no labels
    if (coin_ != nullptr) arrays.push_back({"coin.intercept", coin_intercept_, 0, numbers, 0});
    if (dense_ == nullptr) return;
    DenseBlock& b = *dense_;
    add_column_arrays(arrays, b);
    if (b.inputs == 0) return;
    const int inputs = b.inputs + b.active;
    arrays.push_back({"dense.u", b.u, 0, inputs, 0});
    arrays.push_back({"dense.P", &b.P[0][0], inputs, inputs, DENSE_INPUTS});
}

// ---- scales that are dropped ----

void MultiScaleLearner::keep_scales(int first, int count) {
    keep_experts(first, count);
    keep_lanes(first, count);
}

// The coin is the last of the experts.
void MultiScaleLearner::drop_coin() {
    if (coin_ == nullptr) return;
    const int last = experts() - 1;
    Mixture& m = mixture_;
    for (double* array : {m.w, m.totals}) array[last] = 0.0;
    options_.constants.coin = false;
    coin_.reset();
    divide_by_total(m.w, last);
}

// The state of the mixture for the experts that stay; what they weigh together becomes 1 again.
void MultiScaleLearner::keep_experts(int first, int count) {
    const int K = scales(), others = experts() - K;  // the stack, the offset, the coin
    if (dense_ != nullptr) keep_inputs(*dense_, K, first, count);
    keep_mixture(mixture_, K, first, count, others);
    for (auto& sums : rounding_) keep_numbers(sums, MOST_SCALES, first, count);
    for (auto& sums : row_sums_) keep_numbers(sums, MOST_SCALES, first, count);
}

void MultiScaleLearner::keep_lanes(int first, int count) {
    const CellLayout old = layout();
    keep_constants(options_.constants, first, count);
    for (int part = 0; part < 3; ++part) keep_numbers(intercept_ + part * MOST_SCALES, MOST_SCALES, first, count);
    const CellLayout now = layout();
    const std::uint64_t cells = slot_map_.count();
    const auto move = wide_cells() ? move_lanes<double> : move_lanes<float>;
    move(static_cast<unsigned char*>(memory_.data()), old, now, cells, first, count);
    memory_.clear(cells * now.bytes, cells * old.bytes);
    if (receipt()) keep_gradients(old.lanes, first, count);
}

// As move_lanes does for the cells.
void MultiScaleLearner::keep_gradients(int old_lanes, int first, int count) {
    auto* S = static_cast<double*>(gradients_->data());
    const auto cells = slot_map_.count(), from = static_cast<std::uint64_t>(old_lanes),
               to = static_cast<std::uint64_t>(lanes());
    for (std::uint64_t i = 0; i < cells; ++i) {
        double made[MOST_SCALES] = {};
        std::copy(S + i * from + first, S + i * from + first + count, made);
        std::copy(made, made + to, S + i * to);
    }
    gradients_->clear(cells * to * sizeof(double), cells * from * sizeof(double));
}

}  // namespace ftprl
