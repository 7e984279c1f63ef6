// Checks whether bytes are valid UTF-8; eight bytes of ASCII, the most frequent case, are checked at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "readers/scan.hpp"
#include "readers/words.hpp"
#include "support/hash.hpp"

namespace ftprl {

inline bool is_ascii(const Byte* p, const Byte* end) noexcept {
    std::uint64_t high = 0;
    for (; end - p >= 8; p += 8) high |= detail::load8(p);
    for (; p != end; ++p) high |= *p;
    return (high & 0x8080808080808080u) == 0;
}

inline bool is_utf8(const Byte* p, const Byte* end) noexcept {
    if (is_ascii(p, end)) return true;
    while (p != end) {
        if (*p < 0x80) {
            ++p;
        } else if (detail::decode(p, end) == 0) {
            return false;
        }
    }
    return true;
}

}  // namespace ftprl
