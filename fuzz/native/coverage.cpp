// Which branches of the program an execution takes, by the callback that the compiler puts into every basic block.
// This file is compiled without that option, and without sanitizers: it works more often than all others.
#include <array>
#include <cstddef>
#include <cstdint>

#include "engine.hpp"

namespace {

constexpr std::size_t PLACES = std::size_t{1} << 14;
std::array<std::uint8_t, PLACES> counts{};  // of this execution
std::array<std::uint8_t, PLACES> known{};   // the sizes of counts met so far, a bit each
std::uintptr_t before = 0;
const char anchor = 0;

// 1, 2, 3, 4-7, 8-15, 16-31, 32-127, 128 and more: how often a loop runs matters, but not exactly.
std::uint8_t size_bit(std::uint8_t count) {
    const int size = count >= 128 ? 7 : count >= 32 ? 6 : count >= 16 ? 5 : count >= 8 ? 4 : count >= 4 ? 3 : count - 1;
    return static_cast<std::uint8_t>(1u << size);
}

}  // namespace

extern "C" void __sanitizer_cov_trace_pc() {
    // Relative to the program: where it is loaded differs from run to run.
    const auto here =
        reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) - reinterpret_cast<std::uintptr_t>(&anchor);
    const std::uintptr_t mixed = here * std::uintptr_t{0x9e3779b97f4a7c15u} >> 40;
    std::uint8_t& count = counts[(mixed ^ before) % PLACES];
    if (count != 255) ++count;
    before = mixed >> 1;
}

namespace fuzz {

void forget_path() {
    counts.fill(0);
    before = 0;
}

bool is_new_path() {
    bool is_new = false;
    for (std::size_t from = 0; from < PLACES; from += 8) {
        std::uint64_t eight = 0;  // most branches are not taken, and this is done after every execution
        std::memcpy(&eight, &counts[from], sizeof eight);
        if (eight == 0) continue;
        for (std::size_t i = from; i < from + 8; ++i) {
            if (counts[i] == 0) continue;
            const std::uint8_t bit = size_bit(counts[i]);
            is_new = is_new || (known[i] & bit) == 0;
            known[i] = static_cast<std::uint8_t>(known[i] | bit);
        }
    }
    return is_new;
}

std::size_t branches_seen() {
    std::size_t seen = 0;
    for (const std::uint8_t sizes : known) seen += sizes != 0 ? 1 : 0;
    return seen;
}

}  // namespace fuzz
