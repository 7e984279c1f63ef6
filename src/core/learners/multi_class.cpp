#include "learners/multi_class.hpp"

#include <algorithm>
#include <cstring>

#include "learners/mixture_state.hpp"

namespace ftprl {
namespace {

constexpr int INTERCEPT_PARTS = 3;  // z, R and S
constexpr int FIRST_COLUMNS = 4;    // that a cell has space for, if there may be so many; then twice as many
constexpr std::size_t AHEAD = 16;   // cells fetched ahead

// Numbers [first, first + count) of `columns` rows of K numbers as rows of `count`, the last of them again and again up
// to `wanted` rows.
template <class T>
void copy_columns(const T* from, T* to, int K, int columns, int first, int count, int wanted) {
    for (int column = 0; column < wanted; ++column) {
        const T* own = from + std::min(column, columns - 1) * K + first;
        std::copy(own, own + count, to + column * count);
    }
}

}  // namespace

MultiClassLearner::MultiClassLearner(const LearnerOptions& options)
    : Learner(options, options.dim + 1), slot_map_(options.dim) {
    const int K = scales();
    cell_lanes_ = lanes_of(space_for(columns_in_use()), K);
    memory_ = std::make_unique<Memory>((dim() + 1) * cell_bytes());
    if (receipt()) gradients_ = std::make_unique<Memory>((dim() + 1) * gradient_bytes(cell_lanes_));
    if (options_.constants.dense) dense_.reset(make_class_dense(columns_in_use()));
    intercept_.assign(INTERCEPT_PARTS * static_cast<std::size_t>(lanes_of(columns_in_use(), K)), 0.0);
    fill_lanes();
    mixture_.facts[LARGEST_WEIGHT] = 1.0;
    for (int j = 0; j < experts(); ++j) mixture_.w[j] = 1.0 / experts();
    if (!options_.constants.stack) return;
    for (int k = 0; k < K; ++k) {
        mixture_.u[k] = 1.0 / K;
        mixture_.P[k][k] = 1.0 / STACK_RIDGE;
    }
}

MultiClassLearner::MultiClassLearner(const MultiClassLearner& other)
    : Learner(other),
      slot_map_(dim()),
      cell_lanes_(other.cell_lanes_),
      memory_(std::make_unique<Memory>(other.memory_->size())),
      intercept_(other.intercept_),
      h_(other.h_),
      inverse_(other.inverse_),
      mixture_(other.mixture_) {
    slot_map_.copy_from(other.slot_map_);
    memory_->copy_from(*other.memory_, slot_map_.count() * cell_bytes());
    if (other.gradients_ != nullptr) {
        gradients_ = std::make_unique<Memory>(other.gradients_->size());
        gradients_->copy_from(*other.gradients_, slot_map_.count() * gradient_bytes(cell_lanes_));
    }
    if (other.dense_ != nullptr) dense_.reset(copy_class_dense(*other.dense_));
}

std::unique_ptr<Learner> MultiClassLearner::copy() const {
    return std::unique_ptr<Learner>(new MultiClassLearner(*this));
}

// The scale of each lane.
void MultiClassLearner::fill_lanes() {
    const int K = scales(), used = columns_in_use() * K;
    h_.assign(static_cast<std::size_t>(lanes_of(columns_in_use(), K)), 1.0);
    inverse_ = h_;
    for (int i = 0; i < used; ++i) {
        const double h = options_.constants.h[i % K];
        h_[static_cast<std::size_t>(i)] = h;
        inverse_[static_cast<std::size_t>(i)] = 1.0 / h;
    }
}

ClassConstants MultiClassLearner::constants() const {
    ClassConstants c{};
    c.scales = &options_.constants;
    c.columns = columns_in_use();
    c.seen = outputs();
    c.to_come = most_classes() - outputs();
    c.lanes = lanes_of(c.columns, scales());
    c.cell_lanes = cell_lanes_;
    c.one_vs_rest = loss().one_vs_rest;
    c.h = h_.data();
    c.inverse = inverse_.data();
    return c;
}

ClassState MultiClassLearner::state(const std::uint32_t* slots) const {
    // The kernels that do not learn leave the state alone.
    auto* z = const_cast<double*>(intercept_.data());
    return {memory_->data(),
            z,
            z + h_.size(),
            z + 2 * h_.size(),
            const_cast<double*>(tallies_),
            const_cast<Mixture*>(&mixture_),
            receipt_state(),
            dense_.get(),
            slots};
}

std::size_t MultiClassLearner::scratch() const { return (LANE_NUMBERS + COLUMN_NUMBERS) * h_.size() * sizeof(double); }

// Up to the next row that is learned with a class that is not known yet; all rows when there is none.
std::int64_t MultiClassLearner::rows_until_new_class(const Rows& rows, std::int64_t from) const {
    if (options_.constants.weighs) return rows.count;
    for (std::int64_t r = from; r < rows.count; ++r) {
        if (rows.y[r] >= outputs() && rows.weight[r] > 0.0) return r;
    }
    return rows.count;
}

Totals MultiClassLearner::learn_rows(const Rows& rows, bool wide_values, const RowOutputs& out) {
    const auto longest = static_cast<std::size_t>(std::max<std::int64_t>(longest_row(rows), 1));
    const std::int64_t size = rows.indptr[rows.count];
    if (cell_numbers_.size() < static_cast<std::size_t>(size)) cell_numbers_.resize(static_cast<std::size_t>(size));
    slot_map_.claim(rows.indices, size, cell_numbers_.data());
    Totals totals = {0.0, 0.0, 0};
    for (std::int64_t from = 0, to = 0; from < rows.count; from = to) {
        to = rows_until_new_class(rows, from);
        const int before = outputs();
        if (to == from) {  // the next row has a new class
            know_classes(static_cast<int>(rows.y[from]) + 1);
            to = rows_until_new_class(rows, from);
        }
        const std::size_t bytes = scratch() + longest * h_.size() * sizeof(double);
        if (buffer_ == nullptr || buffer_->size() < bytes) buffer_ = std::make_unique<Memory>(bytes);
        Rows part = rows;  // indptr still counts from the first row of all
        part.count = to - from;
        part.indptr += from;
        part.indices = cell_numbers_.data();
        part.y += from;
        part.weight += from;
        RowOutputs targets{};
        targets.scores = out.scores == nullptr ? nullptr : out.scores + from;
        targets.losses = out.losses == nullptr ? nullptr : out.losses + from;
        targets.arrivals = out.arrivals;
        targets.arrival_of = out.arrival_of == nullptr ? nullptr : out.arrival_of + from;
        ClassConstants c = constants();
        c.seen_before = before;
        const Totals learned = set().learn[unconstrained_][receipt()](part, wide_values, c, state(rows.indices),
                                                                      targets, static_cast<double*>(buffer_->data()));
        totals = {totals.loss + learned.loss, totals.weight + learned.weight, totals.rows + learned.rows};
    }
    return totals;
}

void MultiClassLearner::score_rows(const Rows& rows, bool wide_values, double* scores) const {
    // Several threads may score at once: each has its own.
    std::vector<std::uint32_t> cell_numbers(static_cast<std::size_t>(rows.indptr[rows.count]));
    slot_map_.find(rows.indices, rows.indptr[rows.count], cell_numbers.data());
    Rows of_cells = rows;
    of_cells.indices = cell_numbers.data();
    Memory buffer(scratch());
    set().score[unconstrained_](of_cells, wide_values, constants(), state(rows.indices), scores,
                                static_cast<double*>(buffer.data()));
}

void MultiClassLearner::intercept(double* out) const {
    const int K = scales();
    for (int column = 0; column < outputs(); ++column, out += 4 * K) {
        const double* z = intercept_.data() + column * K;
        std::copy(z, z + K, out);
        std::copy(z + h_.size(), z + h_.size() + K, out + K);
        std::copy(z + 2 * h_.size(), z + 2 * h_.size() + K, out + 2 * K);
        std::fill_n(out + 3 * K, K, 1.0);
    }
}

void MultiClassLearner::take(const std::uint32_t* slots, std::size_t count, void* out) const {
    const std::size_t bytes = cell_bytes();
    const auto* cells = static_cast<const unsigned char*>(memory_->data());
    auto* to = static_cast<unsigned char*>(out);
    for (std::size_t i = 0; i < count; ++i, to += bytes) {
        if (i + AHEAD < count) fetch(cells + slot_map_[slots[i + AHEAD]] * bytes, bytes);
        std::memcpy(to, cells + slot_map_[slots[i]] * bytes, bytes);
    }
}

void MultiClassLearner::put(const std::uint32_t* slots, std::size_t count, const void* from) {
    const std::size_t bytes = cell_bytes();
    const auto* cell = static_cast<const unsigned char*>(from);
    if (cell_numbers_.size() < count) cell_numbers_.resize(count);
    slot_map_.claim(slots, static_cast<std::int64_t>(count), cell_numbers_.data());
    auto* cells = static_cast<unsigned char*>(memory_->data());
    for (std::size_t i = 0; i < count; ++i, cell += bytes) std::memcpy(cells + cell_numbers_[i] * bytes, cell, bytes);
    if (dense_ != nullptr) link_columns(dense_->block, slot_map_);
}

void MultiClassLearner::expect_columns(int columns, int inputs) {
    if (dense_ == nullptr) return;
    set_class_inputs(*dense_, inputs);
    dense_->block.watched = columns - dense_->block.active;
}

std::vector<Columns> MultiClassLearner::columns() const {
    const int used = columns_in_use() * scales();
    return {{"z", 0, used}, {"R", cell_lanes_, used}, {"unit", 2 * cell_lanes_, 0}, {"count", 2 * cell_lanes_ + 1, 0}};
}

CellTable MultiClassLearner::table() const {
    CellTable table{};
    table.cells = memory_->data();
    table.slot_map = slot_map_.data();
    table.dim = dim();
    table.bytes = cell_bytes();
    table.wide = wide_cells();
    table.R = cell_lanes_;
    table.unit = 2 * cell_lanes_;
    table.met = 2 * cell_lanes_ + 1;
    table.counts = true;
    table.kappa = -1;
    table.columns = columns_in_use();
    table.copies = outputs() < most_classes() ? most_classes() - outputs() : 1.0;
    table.missing = outputs() > 0 && outputs() < most_classes() ? table.copies / outputs() : 0.0;
    if (receipt()) table.S = gradient_sums();
    return table;
}

std::vector<NamedArray> MultiClassLearner::mixture() {
    const int K = scales(), windows = K > WINDOW ? K - WINDOW + 2 : 0;
    Mixture& m = mixture_;
    return {{"P", &m.P[0][0], K, K, MOST_COLUMNS},
            {"u", m.u, 0, K, 0},
            {"w", m.w, 0, K + 1, 0},
            {"totals", m.totals, 0, K + 1, 0},
            {"facts", m.facts, 0, 3, 0},
            {"first", m.first, 0, K + 1, 0},
            {"weighed", m.weighed, 0, K + 1, 0},
            {"first_part", &m.first_part, 0, 1, 0},
            {"block", m.block, 0, K, 0},
            {"windows", &m.windows[0][0], 3, windows, MOST_WINDOWS},
            {"sums", &m.sums[0][0], 3, K, MOST_SCALES}};
}

std::vector<Columns> MultiClassLearner::saved_columns() const {
    std::vector<Columns> saved = columns();
    saved[2].name = "s";
    saved[3].name = "N";
    return saved;
}

std::vector<NamedArray> MultiClassLearner::saved_arrays() {
    const int K = scales();
    Mixture& m = mixture_;
    std::vector<NamedArray> arrays = common_arrays();
    const int parts = receipt() ? INTERCEPT_PARTS : INTERCEPT_PARTS - 1, stride = static_cast<int>(h_.size());
    arrays.insert(arrays.end(), {{"intercept", intercept_.data(), parts, columns_in_use() * K, stride},
                                 {"mixture.w", m.w, 0, experts(), 0},
                                 {"mixture.totals", m.totals, 0, experts(), 0},
                                 {"mixture.facts", m.facts, 0, 3, 0}});
    add_mixture_arrays(arrays, m, options_.constants, receipt());
    add_dense_arrays(arrays);
    return arrays;
}

void MultiClassLearner::add_dense_arrays(std::vector<NamedArray>& arrays) {
    if (dense_ == nullptr) return;
    DenseBlock& b = dense_->block;
    add_column_arrays(arrays, b);
    if (b.inputs == 0) return;
    const int inputs = b.inputs + b.active;
    arrays.push_back({"dense.class_u", dense_->u, dense_->columns, inputs, dense_->stride});
    arrays.push_back({"dense.class_P", dense_->P, dense_->columns * inputs, inputs, dense_->stride});
}

// How many columns a cell has space for: it depends on those in use alone, so that two learners have equal cells.
int MultiClassLearner::space_for(int columns) const {
    int space = FIRST_COLUMNS;
    while (space < columns) space *= 2;
    return std::min(space, most_classes());
}

// Cells and intercepts for scales [first, first + count) of `columns` columns, the new ones copies of the last one.
void MultiClassLearner::lay_out(int first, int count, int columns, int cell_lanes) {
    const int K = scales(), before = columns_in_use();
    auto memory = std::make_unique<Memory>((dim() + 1) * bytes_of(cell_lanes));
    std::vector<double> intercept(INTERCEPT_PARTS * static_cast<std::size_t>(lanes_of(columns, count)));
    if (wide_cells()) {
        move_cells<double>(*memory, first, count, columns, cell_lanes);
    } else {
        move_cells<float>(*memory, first, count, columns, cell_lanes);
    }
    for (std::size_t part = 0; part < INTERCEPT_PARTS; ++part) {
        copy_columns(intercept_.data() + part * h_.size(),
                     intercept.data() + part * (intercept.size() / INTERCEPT_PARTS), K, before, first, count, columns);
    }
    if (receipt()) move_gradients(first, count, columns, cell_lanes);
    if (dense_ != nullptr) set_class_columns(*dense_, columns);
    memory_ = std::move(memory);
    intercept_ = std::move(intercept);
    cell_lanes_ = cell_lanes;
}

template <class T>
void MultiClassLearner::move_cells(Memory& to, int first, int count, int columns, int cell_lanes) const {
    const auto old_width = cell_bytes() / sizeof(T), new_width = bytes_of(cell_lanes) / sizeof(T);
    const int K = scales(), before = columns_in_use();
    for (std::uint64_t i = 1; i < slot_map_.count(); ++i) {
        const T* a = static_cast<const T*>(memory_->data()) + i * old_width;
        T* b = static_cast<T*>(to.data()) + i * new_width;
        copy_columns(a, b, K, before, first, count, columns);
        copy_columns(a + cell_lanes_, b + cell_lanes, K, before, first, count, columns);
        b[2 * cell_lanes] = a[2 * cell_lanes_];
        b[2 * cell_lanes + 1] = a[2 * cell_lanes_ + 1];
    }
}

void MultiClassLearner::move_gradients(int first, int count, int columns, int cell_lanes) {
    auto moved = std::make_unique<Memory>((dim() + 1) * gradient_bytes(cell_lanes));
    const auto* from = static_cast<const double*>(gradients_->data());
    auto* to = static_cast<double*>(moved->data());
    for (std::uint64_t i = 1; i < slot_map_.count(); ++i) {
        copy_columns(from + i * static_cast<std::uint64_t>(cell_lanes_),
                     to + i * static_cast<std::uint64_t>(cell_lanes), scales(), columns_in_use(), first, count,
                     columns);
    }
    gradients_ = std::move(moved);
}

void MultiClassLearner::know_classes(int classes) {
    if (classes == outputs()) return;
    const int K = scales(), columns = classes + (classes < most_classes() ? 1 : 0);
    lay_out(0, K, columns, lanes_of(space_for(columns), K));
    options_.outputs = classes;
    fill_lanes();
}

void MultiClassLearner::keep_scales(int first, int count) {
    const int K = scales(), others = experts() - K;
    lay_out(first, count, columns_in_use(), lanes_of(space_for(columns_in_use()), count));
    keep_mixture(mixture_, K, first, count, others);
    for (auto& sums : rounding_) keep_numbers(sums, MOST_SCALES, first, count);
    keep_constants(options_.constants, first, count);
    fill_lanes();
}

}  // namespace ftprl
