// Where the cells of a sparse table are: a coordinate gets the next cell when it is first met. Memory is then taken up
// for what was met and not for the whole table, and what is met often, which is met early, lies close together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

#include "memory.hpp"

namespace ftprl {

class Places {
public:
    explicit Places(std::uint64_t dim) : memory_(dim * sizeof(std::uint32_t)), dim_(dim) {}

    // The cell of a coordinate; 0, a cell of zeros that is nobody's, when it has none.
    std::uint32_t operator[](std::uint64_t slot) const noexcept { return cells()[slot]; }
    std::uint64_t dim() const noexcept { return dim_; }
    // Cells in use, number 0 included.
    std::uint64_t count() const noexcept { return std::uint64_t{last_} + 1; }

    void find(const std::uint32_t* slots, std::int64_t size, std::uint32_t* out) const noexcept {
        const std::uint32_t* const cell = cells();
        for (std::int64_t i = 0; i < size; ++i) {
            fetch(cell + slots[i + AHEAD < size ? i + AHEAD : i]);
            out[i] = cell[slots[i]];
        }
    }

    // The same, with a cell for each that has none.
    void claim(const std::uint32_t* slots, std::int64_t size, std::uint32_t* out) {
        std::uint32_t* const cell = cells();
        std::uint32_t last = last_;
        for (std::int64_t i = 0; i < size; ++i) {
            fetch(cell + slots[i + AHEAD < size ? i + AHEAD : i]);
            std::uint32_t& own = cell[slots[i]];
            if (own == 0) {
                if (last == std::numeric_limits<std::uint32_t>::max()) throw std::bad_alloc();
                own = ++last;
                last_ = last;
            }
            out[i] = own;
        }
    }

    void copy_from(const Places& other) {
        memory_.copy_from(other.memory_, memory_.size());
        last_ = other.last_;
    }

private:
    static constexpr std::int64_t AHEAD = 32;

    static void fetch(const void* p) noexcept {
#if defined(__GNUC__)
        __builtin_prefetch(p, 1, 3);
#else
        (void)p;
#endif
    }
    std::uint32_t* cells() const noexcept { return static_cast<std::uint32_t*>(memory_.data()); }

    Memory memory_;
    std::uint64_t dim_;
    std::uint32_t last_ = 0;
};

}  // namespace ftprl
