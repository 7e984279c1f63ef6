// Numbers as text.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <string>

namespace ftprl {

inline constexpr std::size_t LONGEST_NUMBER = 32;

// Writes the shortest text that reads back as an equal number to `out`, which has space for LONGEST_NUMBER bytes;
// returns its end.
inline char* write_number(char* out, double value) noexcept {
#if defined(__cpp_lib_to_chars)
    return std::to_chars(out, out + LONGEST_NUMBER, value).ptr;
#else
    return out + std::snprintf(out, LONGEST_NUMBER, "%.17g", value);
#endif
}

// Writes one number per line.
inline std::string number_lines(const double* values, std::size_t count) {
    std::string text(count * LONGEST_NUMBER, '\0');
    char* out = text.data();
    for (std::size_t i = 0; i < count; ++i) {
        out = write_number(out, values[i]);
        *out++ = '\n';
    }
    text.resize(static_cast<std::size_t>(out - text.data()));
    return text;
}

}  // namespace ftprl
