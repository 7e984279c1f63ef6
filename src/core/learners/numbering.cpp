#include "learners/numbering.hpp"

#include <algorithm>
#include <cmath>

#include "learners/slot_map.hpp"

namespace ftprl {
namespace {

bool is_learned(const Rows& rows, std::int64_t r) { return rows.y[r] == rows.y[r] && rows.weight[r] > 0.0; }

}  // namespace

void SlotNumbers::number(const std::uint32_t* slots, std::size_t count, std::uint32_t* out) {
    constexpr std::size_t AHEAD = 32;
    auto* numbers = static_cast<std::uint32_t*>(memory_.data());
    for (std::size_t i = 0; i < count; ++i) {
        if (i + AHEAD < count) fetch(numbers + slots[i + AHEAD]);
        std::uint32_t& own = numbers[slots[i]];
        if (own == 0) {
            slots_.push_back(slots[i]);
            own = static_cast<std::uint32_t>(slots_.size());
        }
        out[i] = own - 1;
    }
}

void SlotNumbers::clear() {
    auto* numbers = static_cast<std::uint32_t*>(memory_.data());
    for (const std::uint32_t slot : slots_) numbers[slot] = 0;
    slots_.clear();
}

void Numbering::clear() {
    for (const std::uint32_t slot : slots_) numbers()[slot] = 0;
    for (auto* list : {&slots_, &coordinates_}) list->clear();
    for (auto* list : {&rows_, &largest_, &squares_, &values_, &of_block_}) list->clear();
    learned_ = 0;
}

std::uint32_t Numbering::number_of(std::uint32_t slot) {
    std::uint32_t& own = numbers()[slot];
    if (own == 0) {
        slots_.push_back(slot);
        for (auto* list : {&rows_, &largest_, &squares_, &of_block_}) list->push_back(0.0);
        own = static_cast<std::uint32_t>(slots_.size());
    }
    return own - 1;
}

void Numbering::end_block() {
    for (std::size_t i = 0; i < of_block_.size(); ++i) {
        squares_[i] += of_block_[i];
        of_block_[i] = 0.0;
    }
}

void Numbering::add(const Rows& rows, bool wide_values, std::int64_t block) {
    const std::int64_t first = rows.indptr[0], size = rows.indptr[rows.count] - first;
    const std::size_t before = coordinates_.size();
    coordinates_.resize(before + static_cast<std::size_t>(size));
    values_.resize(before + static_cast<std::size_t>(size));
    double* values = values_.data() + before;
    for (std::int64_t p = 0; p < size; ++p) {
        values[p] = wide_values ? static_cast<const double*>(rows.values)[first + p]
                                : static_cast<double>(static_cast<const float*>(rows.values)[first + p]);
    }
    std::uint32_t* own = coordinates_.data() + before;
    std::int64_t in_block = 0;
    for (std::int64_t r = 0; r < rows.count; ++r) {
        if (!is_learned(rows, r)) continue;
        for (std::int64_t p = rows.indptr[r] - first; p < rows.indptr[r + 1] - first; ++p) {
            const std::uint32_t i = own[p] = number_of(rows.indices[first + p]);
            const double v = values[p];
            rows_[i] += 1.0;
            largest_[i] = std::max(largest_[i], std::fabs(v));
            of_block_[i] += v * v;
        }
        ++learned_;
        if (++in_block == block) {
            end_block();
            in_block = 0;
        }
    }
    if (in_block > 0) end_block();
    for (std::int64_t r = 0; r < rows.count; ++r) {
        if (is_learned(rows, r)) continue;
        for (std::int64_t p = rows.indptr[r] - first; p < rows.indptr[r + 1] - first; ++p) {
            own[p] = number_of(rows.indices[first + p]);
        }
    }
}

std::vector<std::uint32_t> Numbering::next_hot() const {
    std::vector<std::uint32_t> hot;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (rows_[i] > 0.0 && 2.0 * rows_[i] >= static_cast<double>(learned_)) hot.push_back(slots_[i]);
    }
    std::sort(hot.begin(), hot.end());
    return hot;
}

std::vector<std::uint32_t> Numbering::numbers_of(const std::vector<std::uint32_t>& slots) const {
    std::vector<std::uint32_t> match;
    for (const std::uint32_t slot : slots) {
        if (numbers()[slot] != 0) match.push_back(numbers()[slot] - 1);
    }
    return match;
}

}  // namespace ftprl
