#include "learn/many_classes.hpp"

#include <algorithm>
#include <cstring>

namespace ftprl {
namespace {

constexpr int INTERCEPT_PARTS = 3;  // z, R and S
constexpr int FIRST_COLUMNS = 4;    // that a cell has space for, if there may be so many; then twice as many

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

ManyClassesLearner::ManyClassesLearner(const LearnerOptions& options)
    : Learner(options, options.dim + 1, options.outputs + (options.outputs < options.most_classes ? 1 : 0)) {
    slot_map_ = std::make_unique<SlotMap>(dim());
    const int K = scales();
    cell_lanes_ = lanes_in(space_for(columns_in_use()), K);
    memory_ = std::make_unique<Memory>((dim() + 1) * own_bytes());
    if (receipt()) gradients_ = std::make_unique<Memory>((dim() + 1) * gradient_bytes(cell_lanes_));
    intercept_.assign(INTERCEPT_PARTS * static_cast<std::size_t>(lanes_in(columns_in_use(), K)), 0.0);
    fill_lanes();
}

ManyClassesLearner::ManyClassesLearner(const ManyClassesLearner& other)
    : Learner(other),
      cell_lanes_(other.cell_lanes_),
      memory_(std::make_unique<Memory>(other.memory_->size())),
      intercept_(other.intercept_),
      h_(other.h_),
      inverse_(other.inverse_) {
    memory_->copy_from(*other.memory_, slot_map_->count() * own_bytes());
    if (other.gradients_ != nullptr) {
        gradients_ = std::make_unique<Memory>(other.gradients_->size());
        gradients_->copy_from(*other.gradients_, slot_map_->count() * gradient_bytes(cell_lanes_));
    }
}

std::unique_ptr<Learner> ManyClassesLearner::copy() const {
    return std::unique_ptr<Learner>(new ManyClassesLearner(*this));
}

// The scale of each lane.
void ManyClassesLearner::fill_lanes() {
    const int K = scales(), used = columns_in_use() * K;
    h_.assign(static_cast<std::size_t>(lanes_in(columns_in_use(), K)), 1.0);
    inverse_ = h_;
    for (int i = 0; i < used; ++i) {
        const double h = options_.constants.h[i % K];
        h_[static_cast<std::size_t>(i)] = h;
        inverse_[static_cast<std::size_t>(i)] = 1.0 / h;
    }
}

ClassConstants ManyClassesLearner::constants() const {
    ClassConstants c{};
    c.base = &options_.constants;
    c.columns = columns_in_use();
    c.seen = outputs();
    c.seen_before = seen_before_;
    c.to_come = most_classes() - outputs();
    c.lanes = lanes_in(c.columns, scales());
    c.cell_lanes = cell_lanes_;
    c.one_vs_rest = loss().one_vs_rest;
    c.h = h_.data();
    c.inverse = inverse_.data();
    return c;
}

std::size_t ManyClassesLearner::scratch_numbers(std::int64_t longest) const {
    return (LANE_NUMBERS + static_cast<std::size_t>(longest)) * h_.size();
}

void ManyClassesLearner::run_scales(const BasePass& pass, double* buffer) const {
    // Passes that do not learn leave the state alone.
    const TableState state = {memory_->data(), const_cast<double*>(intercept_.data()), receipt_state()};
    kernels_->classes[wide_cells()][receipt()](pass, constants(), state, buffer);
}

void ManyClassesLearner::mix(const MixPass& pass, double* class_scores) const {
    const ClassConstants c = constants();
    const ClassNewtons none = {};
    std::vector<double> opinions(static_cast<std::size_t>(2 * pass.roster->newtons * c.columns) + 4);
    kernels_->mix_classes(
        {&pass, &c, newtons_ == nullptr ? &none : newtons_->of_classes(), opinions.data(), class_scores});
}

// Up to the next row that is learned with a class that is not known yet; all rows when there is none.
std::int64_t ManyClassesLearner::rows_until_new_class(const Rows& rows, std::int64_t from) const {
    if (weighs_) return rows.count;
    for (std::int64_t r = from; r < rows.count; ++r) {
        if (rows.y[r] >= outputs() && rows.weight[r] > 0.0) return r;
    }
    return rows.count;
}

Totals ManyClassesLearner::learn_rows(const Batch& batch, const RowOutputs& out) {
    const Rows& rows = batch.rows;
    Totals totals = {0.0, 0.0, 0};
    for (std::int64_t from = 0, to = 0; from < rows.count; from = to) {
        to = rows_until_new_class(rows, from);
        seen_before_ = outputs();
        if (to == from) {  // the next row has a new class
            know_classes(static_cast<int>(rows.y[from]) + 1);
            to = rows_until_new_class(rows, from);
        }
        Batch part = batch;  // indptr still counts from the first row of all
        part.rows.count = to - from;
        part.rows.indptr += from;
        part.rows.y += from;
        part.rows.weight += from;
        RowOutputs targets = out;
        targets.scores = out.scores == nullptr ? nullptr : out.scores + from;
        targets.losses = out.losses == nullptr ? nullptr : out.losses + from;
        targets.arrival_of = out.arrival_of == nullptr ? nullptr : out.arrival_of + from;
        const Totals learned = learn_blocks(part, targets);
        totals = {totals.loss + learned.loss, totals.weight + learned.weight, totals.rows + learned.rows};
    }
    return totals;
}

void ManyClassesLearner::intercept(double* out) const {
    const int K = scales();
    for (int column = 0; column < outputs(); ++column, out += 4 * K) {
        const double* z = intercept_.data() + column * K;
        std::copy(z, z + K, out);
        std::copy(z + h_.size(), z + h_.size() + K, out + K);
        std::copy(z + 2 * h_.size(), z + 2 * h_.size() + K, out + 2 * K);
        std::fill_n(out + 3 * K, K, 1.0);
    }
}

std::vector<Part> ManyClassesLearner::parts() const {
    const int used = columns_in_use() * scales();
    return {{"z", 0, used}, {"R", cell_lanes_, used}, {"unit", 2 * cell_lanes_, 0}, {"count", 2 * cell_lanes_ + 1, 0}};
}

CellTable ManyClassesLearner::table() const {
    CellTable table{};
    table.cells = memory_->data();
    table.slot_map = slot_map_->data();
    table.dim = dim();
    table.bytes = own_bytes();
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

void ManyClassesLearner::add_own_arrays(std::vector<NamedArray>& arrays) {
    const int parts = receipt() ? INTERCEPT_PARTS : INTERCEPT_PARTS - 1, stride = static_cast<int>(h_.size());
    arrays.push_back({"intercept", intercept_.data(), parts, columns_in_use() * scales(), stride});
}

// How many columns a cell has space for: it depends on those in use alone, so that two learners have equal cells.
int ManyClassesLearner::space_for(int columns) const {
    int space = FIRST_COLUMNS;
    while (space < columns) space *= 2;
    return std::min(space, most_classes());
}

// Cells and intercepts for scales [first, first + count) of `columns` columns, the new ones copies of the last one.
void ManyClassesLearner::lay_out(int first, int count, int columns, int cell_lanes) {
    const int K = scales(), before = columns_in_use();
    auto memory = std::make_unique<Memory>((dim() + 1) * bytes_of(cell_lanes));
    std::vector<double> intercept(INTERCEPT_PARTS * static_cast<std::size_t>(lanes_in(columns, count)));
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
    memory_ = std::move(memory);
    intercept_ = std::move(intercept);
    cell_lanes_ = cell_lanes;
}

template <class T>
void ManyClassesLearner::move_cells(Memory& to, int first, int count, int columns, int cell_lanes) const {
    const auto old_width = own_bytes() / sizeof(T), new_width = bytes_of(cell_lanes) / sizeof(T);
    const int K = scales(), before = columns_in_use();
    for (std::uint64_t i = 1; i < slot_map_->count(); ++i) {
        const T* a = static_cast<const T*>(memory_->data()) + i * old_width;
        T* b = static_cast<T*>(to.data()) + i * new_width;
        copy_columns(a, b, K, before, first, count, columns);
        copy_columns(a + cell_lanes_, b + cell_lanes, K, before, first, count, columns);
        b[2 * cell_lanes] = a[2 * cell_lanes_];
        b[2 * cell_lanes + 1] = a[2 * cell_lanes_ + 1];
    }
}

void ManyClassesLearner::move_gradients(int first, int count, int columns, int cell_lanes) {
    auto moved = std::make_unique<Memory>((dim() + 1) * gradient_bytes(cell_lanes));
    const auto* from = static_cast<const double*>(gradients_->data());
    auto* to = static_cast<double*>(moved->data());
    for (std::uint64_t i = 1; i < slot_map_->count(); ++i) {
        copy_columns(from + i * static_cast<std::uint64_t>(cell_lanes_),
                     to + i * static_cast<std::uint64_t>(cell_lanes), scales(), columns_in_use(), first, count,
                     columns);
    }
    gradients_ = std::move(moved);
}

void ManyClassesLearner::know_classes(int classes) {
    if (classes == outputs()) return;
    const int K = scales(), columns = classes + (classes < most_classes() ? 1 : 0);
    lay_out(0, K, columns, lanes_in(space_for(columns), K));
    options_.outputs = classes;
    if (newtons_ != nullptr) newtons_->know_classes(columns);
    fill_lanes();
}

void ManyClassesLearner::keep_scales(int first, int count) {
    lay_out(first, count, columns_in_use(), lanes_in(space_for(columns_in_use()), count));
    keep_experts(first, count);
    fill_lanes();
}

}  // namespace ftprl
