#include "learn/many_scales.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace ftprl {
namespace {

constexpr std::size_t LONGEST_CELL = 512;

// As the loops lay out their cells: several_scales.inl.
CellLayout layout_of(const LearnerOptions& options) {
    const int lanes = lanes_of(options.constants.count);
    const bool labelled = options.constants.loss->rule != LabelRule::none;
    const std::size_t number = options.wide_cells ? sizeof(double) : sizeof(float);
    const std::size_t used = (2 * static_cast<std::size_t>(lanes) + (labelled ? 3 : 2)) * number;
    const std::size_t unit = used <= 64 ? 64 : 8;
    return {(used + unit - 1) / unit * unit, lanes, labelled};
}

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

ManyScalesLearner::ManyScalesLearner(const LearnerOptions& options)
    : Learner(options, options.dim + 1, 0), memory_((options.dim + 1) * layout_of(options).bytes) {
    slot_map_ = std::make_unique<SlotMap>(dim());
    if (receipt()) {
        gradients_ = std::make_unique<Memory>((dim() + 1) * static_cast<std::uint64_t>(lanes()) * sizeof(double));
    }
}

ManyScalesLearner::ManyScalesLearner(const ManyScalesLearner& other)
    : Learner(other), memory_((dim() + 1) * other.layout().bytes) {
    memory_.copy_from(other.memory_, slot_map_->count() * own_bytes());
    if (other.gradients_ != nullptr) {
        gradients_ = std::make_unique<Memory>(other.gradients_->size());
        gradients_->copy_from(*other.gradients_, gradients_->size());
    }
    std::copy(std::begin(other.intercept_), std::end(other.intercept_), intercept_);
}

std::unique_ptr<Learner> ManyScalesLearner::copy() const {
    return std::unique_ptr<Learner>(new ManyScalesLearner(*this));
}

CellLayout ManyScalesLearner::layout() const { return layout_of(options_); }

std::size_t ManyScalesLearner::slot_bytes() const {
    const std::size_t S = receipt() ? static_cast<std::size_t>(lanes()) * sizeof(double) : 0;
    return cell_bytes() + S + sizeof(std::uint32_t) + box_bytes();  // and the number of the cell
}

void ManyScalesLearner::run_scales(const BasePass& pass, double* buffer) const {
    // Passes that do not learn leave the state alone.
    const TableState state = {memory_.data(), const_cast<double*>(intercept_), receipt_state()};
    kernels_->several[wide_cells()][labelled()][receipt()][width_number(scales())](pass, options_.constants, state,
                                                                                   buffer);
}

void ManyScalesLearner::intercept(double* out) const {
    for (int part = 0; part < 3; ++part) {
        const double* from = intercept_ + part * MOST_SCALES;
        std::copy(from, from + scales(), out + part * scales());
    }
    std::fill_n(out + 3 * scales(), scales(), labelled() ? intercept_[3 * MOST_SCALES] : 1.0);
}

CellTable ManyScalesLearner::table() const {
    const int P = lanes();
    CellTable table{};
    table.columns = 1;
    table.copies = 1.0;
    table.cells = memory_.data();
    table.slot_map = slot_map_->data();
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

std::vector<Part> ManyScalesLearner::parts() const {
    const int P = lanes(), K = scales();
    std::vector<Part> all = {{"z", 0, K}, {"R", P, K}, {"unit", 2 * P, 0}, {"count", 2 * P + 1, 0}};
    if (loss().has_kink()) all.push_back({"kappa", 2 * P + 2, 0});
    const int size = static_cast<int>(wide_cells() ? sizeof(double) : sizeof(float));
    if (coin_ != nullptr) all.push_back({"coin", static_cast<int>(own_bytes()) / size, COIN_FACTS});
    return all;
}

void ManyScalesLearner::add_own_arrays(std::vector<NamedArray>& arrays) {
    arrays.push_back({"intercept", intercept_, 3, scales(), MOST_SCALES});
    if (labelled()) arrays.push_back({"intercept.kappa", intercept_ + 3 * MOST_SCALES, 0, 1, 0});
}

// ---- scales that are dropped ----

void ManyScalesLearner::keep_scales(int first, int count) {
    const CellLayout old = layout();
    keep_experts(first, count);
    for (int part = 0; part < 3; ++part) keep_numbers(intercept_ + part * MOST_SCALES, MOST_SCALES, first, count);
    const CellLayout now = layout();
    const std::uint64_t cells = slot_map_->count();
    const auto move = wide_cells() ? move_lanes<double> : move_lanes<float>;
    move(static_cast<unsigned char*>(memory_.data()), old, now, cells, first, count);
    memory_.clear(cells * now.bytes, cells * old.bytes);
    if (receipt()) keep_gradients(old.lanes, first, count);
}

// As move_lanes does for the cells.
void ManyScalesLearner::keep_gradients(int old_lanes, int first, int count) {
    auto* S = static_cast<double*>(gradients_->data());
    const auto cells = slot_map_->count(), from = static_cast<std::uint64_t>(old_lanes),
               to = static_cast<std::uint64_t>(lanes());
    for (std::uint64_t i = 0; i < cells; ++i) {
        double made[MOST_SCALES] = {};
        std::copy(S + i * from + first, S + i * from + first + count, made);
        std::copy(made, made + to, S + i * to);
    }
    gradients_->clear(cells * to * sizeof(double), cells * from * sizeof(double));
}

}  // namespace ftprl
