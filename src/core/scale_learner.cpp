#include "scale_learner.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "learner.hpp"

namespace ftprl {
namespace {

constexpr double POISSON_CLAMP = 60.0;  // scores of the Poisson loss are cut to this

ScaleConstants settled(ScaleConstants c) {
    c.mixing = c.base.loss == loss_named("logistic")  ? Mixing::log_loss
               : c.base.loss == loss_named("squared") ? Mixing::squared
                                                      : Mixing::hedge;
    c.clip = c.base.loss == loss_named("poisson") ? POISSON_CLAMP : std::numeric_limits<double>::infinity();
    c.stack = c.stack && c.mixing == Mixing::log_loss;
    for (int k = c.count; k < MOST_SCALES; ++k) c.h[k] = 1.0;
    return c;
}

const ScaleSet& set_of(const Kernels& kernels, bool wide, bool receipt, int count) {
    return kernels.scales->of[wide][receipt][(count + 3) / 4 - 1];
}

// How cells lie in memory.
struct Layout {
    std::size_t bytes;
    int lanes;
};

constexpr std::size_t LONGEST_CELL = 512;

// The lanes [first, first + count) of every cell, put where cells of fewer lanes go: in another table, or in the same
// one, from the front on, since cells only get shorter. What was never touched stays untouched, if it can.
template <class T>
void move_lanes(const unsigned char* source, Layout from, unsigned char* target, Layout to, std::uint64_t dim, int first,
                int count, bool receipt) {
    alignas(64) unsigned char made[LONGEST_CELL];
    static const unsigned char zeros[LONGEST_CELL] = {};
    for (std::uint64_t i = 0; i < dim; ++i) {
        const T* a = reinterpret_cast<const T*>(source + i * from.bytes);
        unsigned char* at = target + i * to.bytes;
        if (a[2 * from.lanes + 1] == T(0)) {  // N
            if (std::memcmp(at, zeros, to.bytes) != 0) std::memset(at, 0, to.bytes);
            continue;
        }
        std::memset(made, 0, to.bytes);
        T* b = reinterpret_cast<T*>(made);
        for (int k = 0; k < count; ++k) {
            b[k] = a[first + k];
            b[to.lanes + k] = a[from.lanes + first + k];
            if (receipt) b[2 * to.lanes + 2 + k] = a[2 * from.lanes + 2 + first + k];
        }
        b[2 * to.lanes] = a[2 * from.lanes];
        b[2 * to.lanes + 1] = a[2 * from.lanes + 1];
        std::memcpy(at, made, to.bytes);
    }
}

}  // namespace

ScaleLearner::ScaleLearner(std::uint64_t dim, bool wide_cells, bool receipt, const ScaleConstants& constants)
    : dim_(dim),
      wide_(wide_cells),
      receipt_(receipt),
      constants_(settled(constants)),
      kernels_(kernels_chosen()),
      memory_(std::make_shared<Memory>(dim * set_of(*kernels_, wide_cells, receipt, constants.count).cell_bytes)) {
    const int K = constants_.count, experts = K + (constants_.stack ? 1 : 0);
    mixture_.facts[LARGEST_WEIGHT] = 1.0;
    for (int j = 0; j < experts; ++j) mixture_.w[j] = 1.0 / experts;
    if (!constants_.stack) return;
    for (int k = 0; k < K; ++k) {
        mixture_.u[k] = 1.0 / K;
        mixture_.P[k][k] = 1.0 / STACK_RIDGE;
    }
}

ScaleLearner::ScaleLearner(const ScaleLearner& other)
    : ScaleLearner(other.dim_, other.wide_, other.receipt_, other.constants_) {
    kernels_ = other.kernels_;
    memory_->copy_from(*other.memory_);
    std::copy(std::begin(other.intercept_), std::end(other.intercept_), intercept_);
    std::copy(std::begin(other.tallies_), std::end(other.tallies_), tallies_);
    mixture_ = other.mixture_;
    calibration_ = other.calibration_;
}

const ScaleSet& ScaleLearner::set() const { return set_of(*kernels_, wide_, receipt_, constants_.count); }

ScaleState ScaleLearner::state() const {
    // The kernels that do not learn leave the state alone.
    return {memory_->data(), const_cast<double*>(intercept_), const_cast<double*>(tallies_),
            const_cast<Mixture*>(&mixture_)};
}

std::string ScaleLearner::fault(const Rows& rows, bool wide_values, std::int64_t size, bool labels,
                                std::int64_t first_row) const {
    return fault_of(rows, wide_values, size, labels, first_row, dim_, constants_.base.loss, *kernels_);
}

Totals ScaleLearner::learn(const Rows& rows, bool wide_values, const Out& out) {
    std::int64_t longest = 1;
    for (std::int64_t r = 0; r < rows.count; ++r) longest = std::max(longest, rows.indptr[r + 1] - rows.indptr[r]);
    const std::size_t room = static_cast<std::size_t>(longest) * static_cast<std::size_t>(lanes()) * sizeof(double);
    if (room_ == nullptr || room_->size() < room) room_ = std::make_unique<Memory>(room);
    auto* kept = static_cast<double*>(room_->data());
    const auto learn = set().learn[is_plain(constants_.base)];
    if (!receipt_ || constants_.mixing != Mixing::log_loss) return learn(rows, wide_values, constants_, state(), out, kept);
    const Out asked = with_losses(out, rows.count, losses_);
    const Totals totals = learn(rows, wide_values, constants_, state(), asked, kept);
    calibration_.add(rows, asked.losses);
    return totals;
}

void ScaleLearner::score(const Rows& rows, bool wide_values, double* scores) const {
    set().score[is_plain(constants_.base)](rows, wide_values, constants_, state(), scores);
}

void ScaleLearner::weights(int scale, double* out) const { set().weights(constants_, state(), dim_, scale, out); }

Table ScaleLearner::table() const {
    const int P = lanes();
    return {memory_->data(), cell_bytes(), wide_, constants_.count, 0, P, 2 * P + 2, 2 * P, 2 * P + 1, true};
}

LedgerGroups ScaleLearner::groups(int leader, int scale) const {
    return groups_of(table(), constants_.base, constants_.h, leader, scale, static_cast<std::int64_t>(dim_));
}

LedgerSums ScaleLearner::ledger(int leader, const std::int64_t* slots, std::int64_t count) const {
    return ledger_of(table(), constants_.base, constants_.h, leader, slots,
                     slots == nullptr ? static_cast<std::int64_t>(dim_) : count);
}

void ScaleLearner::take_lanes(const ScaleLearner& from, int first, bool in_place) {
    const Layout theirs{from.cell_bytes(), from.lanes()}, ours{cell_bytes(), lanes()};
    if (in_place) memory_ = from.memory_;
    const auto move = wide_ ? move_lanes<double> : move_lanes<float>;
    const auto* source = static_cast<const unsigned char*>(from.cells());
    move(source, theirs, static_cast<unsigned char*>(cells()), ours, dim_, first, count(), receipt_);
    if (in_place) memory_->shrink(dim_ * ours.bytes);
}

}  // namespace ftprl
