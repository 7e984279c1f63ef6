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

const ScaleSet& set_of(const Kernels& kernels, bool wide, int count) {
    return kernels.scales->of[wide][(count + 3) / 4 - 1];
}

// The lanes [first, first + count) of every cell; a cell that was never touched stays untouched.
template <class T>
void copy_lanes(const void* from, std::size_t from_bytes, int from_lanes, void* to, std::size_t to_bytes, int to_lanes,
                std::uint64_t dim, int first, int count) {
    const auto* source = static_cast<const unsigned char*>(from);
    auto* target = static_cast<unsigned char*>(to);
    for (std::uint64_t i = 0; i < dim; ++i) {
        const T* a = reinterpret_cast<const T*>(source + i * from_bytes);
        if (a[3 * from_lanes + 1] == T(0)) continue;  // N
        T* b = reinterpret_cast<T*>(target + i * to_bytes);
        for (int part = 0; part < 3; ++part) {
            for (int k = 0; k < count; ++k) b[part * to_lanes + k] = a[part * from_lanes + first + k];
        }
        b[3 * to_lanes] = a[3 * from_lanes];
        b[3 * to_lanes + 1] = a[3 * from_lanes + 1];
    }
}

}  // namespace

ScaleLearner::ScaleLearner(std::uint64_t dim, bool wide_cells, bool receipt, const ScaleConstants& constants)
    : dim_(dim),
      wide_(wide_cells),
      receipt_(receipt),
      constants_(settled(constants)),
      kernels_(kernels_chosen()),
      memory_(dim * set_of(*kernels_, wide_cells, constants.count).cell_bytes) {
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
    memory_.copy_from(other.memory_);
    std::copy(std::begin(other.intercept_), std::end(other.intercept_), intercept_);
    std::copy(std::begin(other.tallies_), std::end(other.tallies_), tallies_);
    mixture_ = other.mixture_;
}

const ScaleSet& ScaleLearner::set() const { return set_of(*kernels_, wide_, constants_.count); }

ScaleState ScaleLearner::state() const {
    // The kernels that do not learn leave the state alone.
    return {memory_.data(), const_cast<double*>(intercept_), const_cast<double*>(tallies_),
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
    return set().learn[is_plain(constants_.base)][receipt_](rows, wide_values, constants_, state(), out, kept);
}

void ScaleLearner::score(const Rows& rows, bool wide_values, double* scores) const {
    set().score[is_plain(constants_.base)](rows, wide_values, constants_, state(), scores);
}

void ScaleLearner::weights(int scale, double* out) const { set().weights(constants_, state(), dim_, scale, out); }

void ScaleLearner::take_lanes(const ScaleLearner& from, int first) {
    const auto copy = wide_ ? copy_lanes<double> : copy_lanes<float>;
    copy(from.cells(), from.cell_bytes(), from.lanes(), cells(), cell_bytes(), lanes(), dim_, first, count());
}

}  // namespace ftprl
