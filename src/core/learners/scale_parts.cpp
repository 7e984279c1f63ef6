// The cells of scales in parts: split from one table and joined into one. Their rows are in scale_parts_rows.cpp.
#include "learners/scale_parts.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace ftprl {
namespace {

constexpr int LANES = 4;
// z and R of some lanes of one cell, four at a time; the first lanes of both are multiples of four.
template <class T>
void copy_lanes(const T* from, int from_lanes, int first, T* to, int to_lanes, int start, int count) {
    for (int k = 0; k < count; k += LANES) {
        std::memcpy(to + start + k, from + first + k, LANES * sizeof(T));
        std::memcpy(to + to_lanes + start + k, from + from_lanes + first + k, LANES * sizeof(T));
    }
}

template <class T>
void copy_units(const T* from, int from_lanes, T* to, int to_lanes, bool kappa) {
    std::memcpy(to + 2 * to_lanes, from + 2 * from_lanes, 2 * sizeof(T));
    if (kappa) to[2 * to_lanes + 2] = from[2 * from_lanes + 2];
}

template <class T>
T* cell_at(void* cells, std::uint64_t cell, std::size_t bytes) {
    return reinterpret_cast<T*>(static_cast<unsigned char*>(cells) + cell * bytes);
}

}  // namespace

int ScaleParts::count_for(int scales, int threads) { return std::min((scales + LANES - 1) / LANES, threads); }

ScaleParts::Part::Part(int first_scale, int scales, const PartSet& part_set, CellLayout part_layout, std::uint64_t size,
                       bool receipt)
    : first(first_scale),
      count(scales),
      lanes(part_layout.lanes),
      layout(part_layout),
      set(&part_set),
      cells(size * part_layout.bytes),
      sums{} {
    if (receipt) S = std::make_unique<Memory>(size * static_cast<std::uint64_t>(lanes) * sizeof(double));
}

const PartSet& ScaleParts::set_of(const PartKernels& kernels, const Loss& loss, int lanes) const {
    const int eight = lanes / LANES - 1;
    if (loss.rule == LabelRule::none) return kernels.of[wide_cells_][receipt_][eight];
    return kernels.labelled[loss.has_kink()][wide_cells_][receipt_][eight];
}

ScaleParts::ScaleParts(const PartKernels& kernels, const ScaleConstants& constants, bool wide_cells, bool receipt,
                       int count, std::uint64_t cells)
    : kernels_(&kernels), wide_cells_(wide_cells), receipt_(receipt) {
    const int groups = (constants.count + LANES - 1) / LANES;
    const Loss& loss = *constants.base.loss;
    count = std::max(count, (groups * LANES + MOST_PART_LANES - 1) / MOST_PART_LANES);
    for (int i = 0, first = 0; i < count; ++i) {
        const int lanes = LANES * (groups / count + (i < groups % count ? 1 : 0));
        const int scales = std::min(lanes, constants.count - first);
        const PartSet& set = set_of(kernels, loss, lanes);
        const CellLayout layout = {set.cell_bytes, lanes, loss.has_kink()};
        parts_.push_back(std::make_unique<Part>(first, scales, set, layout, cells, receipt));
        first += scales;
    }
}

// ---- from one table and into one ----

void ScaleParts::split(const WholeCells& from, std::uint64_t cells) {
    for (const auto& part : parts_) {
        const auto copy = [&](auto* kind) {
            using T = std::remove_pointer_t<decltype(kind)>;
            for (std::uint64_t i = 0; i < cells; ++i) {
                const T* whole = cell_at<T>(from.cells, i, from.layout.bytes);
                T* own = cell_at<T>(part->cells.data(), i, part->layout.bytes);
                copy_lanes(whole, from.layout.lanes, part->first, own, part->lanes, 0, part->lanes);
                copy_units(whole, from.layout.lanes, own, part->lanes, part->layout.kappa);
            }
        };
        wide_cells_ ? copy(static_cast<double*>(nullptr)) : copy(static_cast<float*>(nullptr));
        if (!receipt_) continue;
        const auto lanes = static_cast<std::uint64_t>(part->lanes), all = static_cast<std::uint64_t>(from.layout.lanes);
        auto* S = static_cast<double*>(part->S->data());
        for (std::uint64_t i = 0; i < cells; ++i) {
            std::copy_n(from.S + i * all + part->first, part->count, S + i * lanes);
        }
    }
}

template <class T>
void ScaleParts::copy_cell(std::uint64_t cell, T* to, const CellLayout& layout) const {
    const int used = 2 * layout.lanes + (layout.kappa ? 3 : 2);
    for (auto k = static_cast<std::size_t>(used); k < layout.bytes / sizeof(T); ++k) to[k] = T(0);  // what fills it up
    for (const auto& part : parts_) {
        const T* own = cell_at<T>(part->cells.data(), cell, part->layout.bytes);
        copy_lanes(own, part->lanes, 0, to, layout.lanes, part->first, part->lanes);
    }
    const Part& first = *parts_[0];
    copy_units(cell_at<T>(first.cells.data(), cell, first.layout.bytes), first.lanes, to, layout.lanes, layout.kappa);
}

void ScaleParts::join_cell(std::uint64_t cell, void* to, const CellLayout& layout) const {
    if (wide_cells_) return copy_cell(cell, static_cast<double*>(to), layout);
    copy_cell(cell, static_cast<float*>(to), layout);
}

void ScaleParts::join_range(const WholeCells& to, std::uint64_t first, std::uint64_t last) const {
    for (std::uint64_t i = first; i < last; ++i) {
        join_cell(i, static_cast<unsigned char*>(to.cells) + i * to.layout.bytes, to.layout);
    }
    if (!receipt_) return;
    const auto all = static_cast<std::uint64_t>(to.layout.lanes);
    for (const auto& part : parts_) {
        const auto lanes = static_cast<std::uint64_t>(part->lanes);
        const auto* S = static_cast<const double*>(part->S->data());
        for (std::uint64_t i = first; i < last; ++i) {
            std::copy_n(S + i * lanes, part->count, to.S + i * all + part->first);
        }
    }
}

// Most of the time goes into memory that is used for the first time, so all threads do it.
void ScaleParts::join_and_end(const WholeCells& to, std::uint64_t cells) {
    if (workers_ == nullptr || !workers_->are_here()) return join_range(to, 0, cells);
    struct Job {
        const ScaleParts* parts;
        const WholeCells* to;
        std::uint64_t cells, share;
    } job = {this, &to, cells, cells / parts_.size() + 1};
    workers_->run(
        [](void* context, int number) {
            const Job& own = *static_cast<const Job*>(context);
            const std::uint64_t first = std::min(own.cells, static_cast<std::uint64_t>(number) * own.share);
            own.parts->join_range(*own.to, first, std::min(own.cells, first + own.share));
        },
        &job);
    workers_.reset();
}

double ScaleParts::rows_of(std::uint64_t cell) const {
    const Part& part = *parts_[0];
    const int N = 2 * part.lanes + 1;
    if (wide_cells_) return cell_at<double>(part.cells.data(), cell, part.layout.bytes)[N];
    return static_cast<double>(cell_at<float>(part.cells.data(), cell, part.layout.bytes)[N]);
}

}  // namespace ftprl
