// Coordinates that occur twice in a row: found in one pass over its slots, and summed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ftprl {

class Repeats {
public:
    // True if a coordinate may occur twice; a false alarm is possible, a miss is not.
    bool may_repeat(const std::uint32_t* slots, std::size_t size) noexcept {
        std::size_t rising = 1;
        while (rising < size && slots[rising - 1] < slots[rising]) ++rising;
        if (rising >= size) return false;
        if (++stamp_ == 0) {
            seen_.fill(0);
            stamp_ = 1;
        }
        // Local copies: a byte that is written could alias anything, also this object.
        std::uint8_t* const seen = seen_.data();
        const std::uint8_t stamp = stamp_;
        std::array<std::uint32_t, MOST_DOUBTS> doubts;  // where slots are that perhaps occur before, too
        std::size_t count = 0;
        for (std::size_t i = 0; i < size; ++i) {
            std::uint8_t& cell = seen[slots[i] % SEEN_CELLS];
            doubts[count % MOST_DOUBTS] = static_cast<std::uint32_t>(i);
            count += cell == stamp ? 1 : 0;
            cell = stamp;
        }
        // In a long row some coordinates share an entry of the filter.
        if (count >= MOST_DOUBTS) return true;  // not all of them are known
        for (std::size_t i = 0; i < count; ++i) {
            if (is_among(slots, doubts[i], slots[doubts[i]])) return true;
        }
        return false;
    }

    // Sums repeated coordinates, in order, into the first of them. Slots chosen to collide would make this quadratic:
    // after too many steps the rest is sorted instead, with equal sums in equal order.
    std::size_t combine(std::uint32_t* slots, double* values, std::size_t size) {
        std::size_t wanted = 64;
        while (wanted < 2 * size) wanted *= 2;
        if (slot_map_.size() < wanted) slot_map_.assign(wanted, MapEntry{});
        const std::size_t mask = slot_map_.size() - 1;
        ++round_;
        const std::size_t most_steps = 64 + 4 * size;
        std::size_t kept = 0, steps = 0;
        for (std::size_t i = 0; i < size; ++i) {
            std::size_t at = (slots[i] * std::size_t{0x9e3779b1u} >> 8) & mask;
            while (slot_map_[at].round == round_ && slots[slot_map_[at].entry] != slots[i]) {
                at = (at + 1) & mask;
                ++steps;
            }
            if (steps > most_steps) return combine_sorted(slots, values, size, kept, i);
            if (slot_map_[at].round == round_) {
                values[slot_map_[at].entry] += values[i];
            } else {
                slot_map_[at] = MapEntry{round_, kept};
                slots[kept] = slots[i];
                values[kept++] = values[i];
            }
        }
        return kept;
    }

private:
    static constexpr std::size_t MOST_DOUBTS = 16;
    struct MapEntry {
        std::uint64_t round = 0;
        std::size_t entry = 0;  // of the current row
    };
    static constexpr std::size_t SEEN_CELLS = 1 << 14;  // more cells doubt less, and leave less of the nearest cache

    static bool is_among(const std::uint32_t* slots, std::size_t count, std::uint32_t slot) noexcept {
        unsigned met = 0;
        for (std::size_t i = 0; i < count; ++i) met |= slots[i] == slot ? 1u : 0u;
        return met != 0;
    }

    // Sums entries [0, kept), which are distinct, followed by entries [from, size).
    static std::size_t combine_sorted(std::uint32_t* slots, double* values, std::size_t size, std::size_t kept,
                                      std::size_t from) {
        for (; from < size; ++from, ++kept) {
            slots[kept] = slots[from];
            values[kept] = values[from];
        }
        std::vector<std::pair<std::uint32_t, std::size_t>> by_slot(kept);
        for (std::size_t i = 0; i < kept; ++i) by_slot[i] = {slots[i], i};
        std::sort(by_slot.begin(), by_slot.end());
        std::vector<bool> repeats(kept);
        for (std::size_t i = 1, first = 0; i < kept; ++i) {
            if (by_slot[i].first != by_slot[first].first) {
                first = i;
                continue;
            }
            values[by_slot[first].second] += values[by_slot[i].second];
            repeats[by_slot[i].second] = true;
        }
        std::size_t out = 0;
        for (std::size_t i = 0; i < kept; ++i) {
            slots[out] = slots[i];
            values[out] = values[i];
            out += repeats[i] ? 0 : 1;
        }
        return out;
    }

    std::array<std::uint8_t, SEEN_CELLS> seen_{};  // `stamp_` where a slot of this row landed
    std::uint8_t stamp_ = 0;
    std::vector<MapEntry> slot_map_;
    std::uint64_t round_ = 0;
};

}  // namespace ftprl
