// Which cell of a sparse table a slot has: a slot gets the next free cell when it is first learned. Memory is then used
// for the slots that occur and not for the whole table, and frequent features, which occur early, lie close together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

#include "support/memory.hpp"

namespace ftprl {

// Have the lines of a cell fetched that will soon be asked for.
inline void fetch(const void* p, std::size_t bytes = 1) noexcept {
#if defined(__GNUC__)
    const auto* line = static_cast<const char*>(p);
    __builtin_prefetch(line, 0, 3);
    if (bytes > 64) __builtin_prefetch(line + 64, 0, 3);
#else
    (void)p, (void)bytes;
#endif
}

class SlotMap {
public:
    explicit SlotMap(std::uint64_t dim) : memory_(dim * sizeof(std::uint32_t)) {}

    // The cell of a coordinate; 0, a cell of zeros that is nobody's, when it has none.
    std::uint32_t operator[](std::uint64_t slot) const noexcept { return cells()[slot]; }
    const std::uint32_t* data() const noexcept { return cells(); }
    // Cells in use, number 0 included.
    std::uint64_t count() const noexcept { return std::uint64_t{last_} + 1; }

    void find(const std::uint32_t* slots, std::int64_t size, std::uint32_t* out) const noexcept {
        const std::uint32_t* const cell = cells();
        std::int64_t i = 0;
        for (; i + AHEAD < size; ++i) {
            fetch(cell + slots[i + AHEAD]);
            out[i] = cell[slots[i]];
        }
        for (; i < size; ++i) out[i] = cell[slots[i]];
    }

    // The same, with a cell for each that has none.
    void claim(const std::uint32_t* slots, std::int64_t size, std::uint32_t* out) {
        std::uint32_t* const cell = cells();
        for (std::int64_t i = 0; i < size; ++i) {
            if (i + AHEAD < size) fetch(cell + slots[i + AHEAD]);
            std::uint32_t& own = cell[slots[i]];
            if (own == 0) {
                if (last_ == std::numeric_limits<std::uint32_t>::max()) throw std::bad_alloc();
                own = ++last_;
            }
            out[i] = own;
        }
    }

    void use_small_pages() { memory_.use_small_pages(); }

    void copy_from(const SlotMap& other) {
        memory_.copy_from(other.memory_, memory_.size());
        last_ = other.last_;
    }

private:
    static constexpr std::int64_t AHEAD = 192;

    std::uint32_t* cells() const noexcept { return static_cast<std::uint32_t*>(memory_.data()); }

    Memory memory_;
    std::uint32_t last_ = 0;
};

}  // namespace ftprl
