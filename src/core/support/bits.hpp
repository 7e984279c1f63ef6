// The bits of a number.
#pragma once

#include <cstdint>
#include <cstring>

namespace ftprl {

inline std::uint64_t bits_of(double v) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &v, sizeof v);
    return bits;
}

}  // namespace ftprl
