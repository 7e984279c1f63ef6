// Which features of a stream have been seen often enough to be learned: a byte for each cell of the table.
#pragma once

#include <cstdint>

namespace ftprl {

constexpr std::uint8_t ADMITTED = 255;

// `after` rows that had a feature come before the first that learns it; 0 for a coin that is thrown for each row
// instead and says yes when its 64 random bits are below `chance`.
struct AdmissionRule {
    std::uint8_t after;
    std::uint64_t chance;
    std::uint64_t seed;
};

// Random bits that depend on the seed, the cell and the number of the row alone.
inline std::uint64_t coin(std::uint64_t seed, std::uint64_t slot, std::uint64_t row) noexcept {
    std::uint64_t x = seed * 0x9e3779b97f4a7c15u + slot * 0xbf58476d1ce4e5b9u + row * 0x94d049bb133111ebu;
    for (int round = 0; round < 2; ++round) {
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        x ^= x >> 31;
    }
    return x;
}

// Whether a feature is admitted, now that it is met; only rows that are learned bring it nearer to that. A number other
// than 1 is admitted at once: columns of numbers are few.
inline bool is_admitted(std::uint8_t& state, const AdmissionRule& rule, bool learns, bool is_number, std::uint64_t slot,
                        std::uint64_t row) noexcept {
    if (state == ADMITTED || !learns) return state == ADMITTED;
    const bool yes = is_number || (rule.after != 0 ? state >= rule.after : coin(rule.seed, slot, row) < rule.chance);
    state = yes ? ADMITTED : static_cast<std::uint8_t>(state + (rule.after != 0 ? 1 : 0));
    return yes;
}

// The same with counts in a filter of few bytes, for many cells: each cell has COUNTERS_PER_CELL counters, which
// it shares with others, and its count is the least of them. A row adds 1 to those that are the least, and to none from
// `after` on. So no count is too small; one that is too large admits a feature too early.
constexpr int COUNTERS_PER_CELL = 4;

inline bool is_admitted_by_sketch(std::uint8_t* counters, std::uint64_t size, const AdmissionRule& rule, bool learns,
                                  bool is_number, std::uint64_t slot) noexcept {
    const std::uint64_t bits = coin(rule.seed, slot, 0), step = coin(rule.seed, slot, 1) | 1;
    std::uint8_t* own[COUNTERS_PER_CELL];
    std::uint8_t least = ADMITTED;
    for (int k = 0; k < COUNTERS_PER_CELL; ++k) {
        own[k] = counters + (bits + static_cast<std::uint64_t>(k) * step) % size;
        least = *own[k] < least ? *own[k] : least;
    }
    if (least >= rule.after || !learns) return least >= rule.after;
    for (std::uint8_t* const counter : own) {
        if (is_number) {
            *counter = *counter < rule.after ? rule.after : *counter;
        } else if (*counter == least) {
            *counter = static_cast<std::uint8_t>(least + 1);
        }
    }
    return is_number;
}

}  // namespace ftprl
