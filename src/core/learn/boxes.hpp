// Bounds of single weights: a kind for each cell, and the ends of each kind.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "learn/kernel.hpp"
#include "support/memory.hpp"

namespace ftprl {

class Boxes {
public:
    // For so many cells, which have the bounds of all weights at first.
    Boxes(std::uint64_t cells, double lower, double upper) : kinds_(cells * sizeof(std::uint16_t)) {
        add(lower, upper);
    }
    Boxes(const Boxes& other) : kinds_(other.kinds_.size()), ends_(other.ends_), numbers_(other.numbers_) {
        kinds_.copy_from(other.kinds_, kinds_.size());
    }
    Boxes& operator=(const Boxes&) = delete;

    BoxTable table() const noexcept {
        return {static_cast<const std::uint16_t*>(kinds_.data()),
                reinterpret_cast<const double (*)[2]>(ends_.data()->data())};
    }
    const double* ends_of(std::uint64_t cell) const noexcept { return ends_[kinds()[cell]].data(); }

    // The number of a kind; false when there are too many.
    bool add(double lower, double upper, std::uint16_t* number = nullptr) {
        const std::array<double, 2> ends{lower, upper};
        const auto match = numbers_.find(ends);
        if (match == numbers_.end() && ends_.size() > std::numeric_limits<std::uint16_t>::max()) return false;
        const std::uint16_t own = match != numbers_.end() ? match->second : static_cast<std::uint16_t>(ends_.size());
        if (match == numbers_.end()) {
            ends_.push_back(ends);
            numbers_.emplace(ends, own);
        }
        if (number != nullptr) *number = own;
        return true;
    }
    void set(std::uint64_t cell, std::uint16_t kind) noexcept { kinds()[cell] = kind; }

private:
    std::uint16_t* kinds() const noexcept { return static_cast<std::uint16_t*>(kinds_.data()); }

    Memory kinds_;  // zeros, kind 0, until they are set
    std::vector<std::array<double, 2>> ends_;
    std::map<std::array<double, 2>, std::uint16_t> numbers_;
};

}  // namespace ftprl
