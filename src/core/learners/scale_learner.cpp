#include "learners/scale_learner.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "learners/learner.hpp"

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
constexpr std::size_t AHEAD = 64;  // cells fetched ahead

// The lanes [first, first + count) of all `cells` cells, put where cells of fewer lanes go: in another table, or in the
// same one, from the front on, since cells only get shorter.
template <class T>
void move_lanes(const unsigned char* source, Layout from, unsigned char* target, Layout to, std::uint64_t cells,
                int first, int count, bool receipt) {
    alignas(64) unsigned char made[LONGEST_CELL];
    for (std::uint64_t i = 0; i < cells; ++i) {
        const T* a = reinterpret_cast<const T*>(source + i * from.bytes);
        std::memset(made, 0, to.bytes);
        T* b = reinterpret_cast<T*>(made);
        for (int k = 0; k < count; ++k) {
            b[k] = a[first + k];
            b[to.lanes + k] = a[from.lanes + first + k];
            if (receipt) b[2 * to.lanes + 2 + k] = a[2 * from.lanes + 2 + first + k];
        }
        b[2 * to.lanes] = a[2 * from.lanes];
        b[2 * to.lanes + 1] = a[2 * from.lanes + 1];
        std::memcpy(target + i * to.bytes, made, to.bytes);
    }
}

}  // namespace

ScaleLearner::ScaleLearner(std::uint64_t dim, bool wide_cells, bool receipt, const ScaleConstants& constants)
    : dim_(dim),
      wide_(wide_cells),
      receipt_(receipt),
      constants_(settled(constants)),
      kernels_(kernels_chosen()),
      places_(std::make_shared<Places>(dim)),
      memory_(std::make_shared<Memory>((dim + 1) * set().cell_bytes)) {
    const int K = constants_.count, experts = K + (constants_.stack ? 1 : 0);
    mixture_.facts[LARGEST_WEIGHT] = 1.0;
    for (int j = 0; j < experts; ++j) mixture_.w[j] = 1.0 / experts;
    if (!constants_.stack) return;
    for (int k = 0; k < K; ++k) {
        mixture_.u[k] = 1.0 / K;
        mixture_.P[k][k] = 1.0 / STACK_RIDGE;
    }
}

void ScaleLearner::expect(std::uint64_t dim, bool wide_cells, bool receipt, int count) {
    const std::size_t cell = set_of(*kernels_chosen(), wide_cells, receipt, count).cell_bytes;
    Memory::expect({{Places::bytes(dim), MOST_EXPECTED / 2}, {(dim + 1) * cell, MOST_EXPECTED / 2}});
}

ScaleLearner::ScaleLearner(const ScaleLearner& other)
    : ScaleLearner(other.dim_, other.wide_, other.receipt_, other.constants_) {
    kernels_ = other.kernels_;
    places_->copy_from(*other.places_);
    memory_->copy_from(*other.memory_, places_->count() * cell_bytes());
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
    const std::int64_t size = rows.indptr[rows.count];
    if (found_.size() < static_cast<std::size_t>(size)) found_.resize(static_cast<std::size_t>(size));
    places_->claim(rows.indices, size, found_.data());
    Rows placed = rows;
    placed.indices = found_.data();
    if (!receipt_ || constants_.mixing != Mixing::log_loss)
        return learn(placed, wide_values, constants_, state(), out, kept);
    const Out asked = with_losses(out, rows.count, losses_);
    const Totals totals = learn(placed, wide_values, constants_, state(), asked, kept);
    calibration_.add(rows, asked.losses);
    return totals;
}

void ScaleLearner::score(const Rows& rows, bool wide_values, double* scores) const {
    std::vector<std::uint32_t> found(static_cast<std::size_t>(rows.indptr[rows.count]));  // several threads may score
    places_->find(rows.indices, rows.indptr[rows.count], found.data());
    Rows placed = rows;
    placed.indices = found.data();
    set().score[is_plain(constants_.base)](placed, wide_values, constants_, state(), scores);
}

void ScaleLearner::weights(int scale, double* out) const {
    std::vector<double> met(places_->count());
    set().weights(constants_, state(), places_->count(), scale, met.data());
    for (std::uint64_t i = 0; i < dim_; ++i) out[i] = met[(*places_)[i]];
}

template <class T>
std::size_t ScaleLearner::touched(std::uint32_t* out) const {
    const auto* cells = static_cast<const T*>(memory_->data());
    const std::size_t stride = cell_bytes() / sizeof(T), N = 2 * static_cast<std::size_t>(lanes()) + 1;
    std::size_t count = 0;
    for (std::uint64_t i = 0; i < dim_; ++i) {
        if (i + AHEAD < dim_) fetch(cells + (*places_)[i + AHEAD] * stride + N);
        const std::uint32_t cell = (*places_)[i];
        if (cell == 0 || !(cells[cell * stride + N] > T(0))) continue;
        out[count++] = static_cast<std::uint32_t>(i);
    }
    return count;
}

std::size_t ScaleLearner::touched(std::uint32_t* out) const {
    return wide_ ? touched<double>(out) : touched<float>(out);
}

void ScaleLearner::take(const std::uint32_t* slots, std::size_t count, void* out) const {
    const std::size_t bytes = cell_bytes();
    const auto* cells = static_cast<const unsigned char*>(memory_->data());
    for (std::size_t i = 0; i < count; ++i) {
        if (i + AHEAD < count) fetch(cells + (*places_)[slots[i + AHEAD]] * bytes, bytes);
        std::memcpy(static_cast<unsigned char*>(out) + i * bytes, cells + (*places_)[slots[i]] * bytes, bytes);
    }
}

void ScaleLearner::put(const std::uint32_t* slots, std::size_t count, const void* from) {
    const std::size_t bytes = cell_bytes();
    auto* cells = static_cast<unsigned char*>(memory_->data());
    if (found_.size() < count) found_.resize(count);
    places_->claim(slots, static_cast<std::int64_t>(count), found_.data());
    for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(cells + found_[i] * bytes, static_cast<const unsigned char*>(from) + i * bytes, bytes);
    }
}

Table ScaleLearner::table() const {
    const int P = lanes();
    return {memory_->data(), places_->data(), dim_,      cell_bytes(), wide_, constants_.count, 0, P,
            2 * P + 2,       2 * P,           2 * P + 1, true};
}

LedgerGroups ScaleLearner::groups(int leader, int scale) const {
    return groups_of(table(), constants_.base, constants_.h, leader, scale);
}

LedgerSums ScaleLearner::ledger(int leader, const std::int64_t* slots, std::int64_t count) const {
    return ledger_of(*kernels_, table(), constants_, leader, slots, count);
}

void ScaleLearner::take_lanes(const ScaleLearner& from, int first, bool in_place) {
    const Layout theirs{from.cell_bytes(), from.lanes()}, ours{cell_bytes(), lanes()};
    if (in_place) {
        memory_ = from.memory_;
        places_ = from.places_;
    } else {
        places_->copy_from(*from.places_);
    }
    const auto move = wide_ ? move_lanes<double> : move_lanes<float>;
    const auto* source = static_cast<const unsigned char*>(from.memory_->data());
    const std::uint64_t cells = places_->count();
    move(source, theirs, static_cast<unsigned char*>(memory_->data()), ours, cells, first, count(), receipt_);
    if (in_place) memory_->clear(cells * ours.bytes, cells * theirs.bytes);
}

}  // namespace ftprl
