// Values of typed columns as text, spelled as in CSV files: 7, 1.5, 1.0, true. A missing value, which for
// floating-point numbers is NaN, is empty.
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ftprl {

inline constexpr std::size_t LONGEST_VALUE = 48;

inline char* write_value(char* out, bool value) noexcept {
    const char* const word = value ? "true" : "false";
    const std::size_t size = std::strlen(word);
    std::memcpy(out, word, size);
    return out + size;
}

inline char* write_value(char* out, std::int64_t value) noexcept {
    return std::to_chars(out, out + LONGEST_VALUE, value).ptr;
}

inline char* write_value(char* out, std::uint64_t value) noexcept {
    return std::to_chars(out, out + LONGEST_VALUE, value).ptr;
}

namespace detail {

#if defined(__cpp_lib_to_chars)
template <class T>
char* write_shortest(char* out, T value, bool scientific) noexcept {
    const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
    return std::to_chars(out, out + LONGEST_VALUE, value, format).ptr;
}
#else
// For standard libraries without floating to_chars: as many digits as are needed to read back an equal number.
template <class T>
char* write_shortest(char* out, T value, bool scientific) noexcept {
    int digits = 0;
    do {
        std::snprintf(out, LONGEST_VALUE, "%.*e", digits, static_cast<double>(value));
    } while (static_cast<T>(std::strtod(out, nullptr)) != value && ++digits < 17);
    if (scientific) return out + std::strlen(out);
    const int exponent = std::atoi(std::strchr(out, 'e') + 1);
    const int decimals = digits > exponent ? digits - exponent : 0;
    return out + std::snprintf(out, LONGEST_VALUE, "%.*f", decimals, static_cast<double>(value));
}
#endif

}  // namespace detail

// Spells a number as Python, pandas and Polars do: the shortest digits that read back as an equal number, with a point
// or an exponent.
template <class T>
char* write_value(char* out, T value) noexcept {
    if (std::isnan(value)) return out;
    if (std::isinf(value)) {
        const char* const word = value > 0 ? "inf" : "-inf";
        std::memcpy(out, word, std::strlen(word));
        return out + std::strlen(word);
    }
    const double size = std::fabs(static_cast<double>(value));
    const bool scientific = size != 0.0 && (size < 1e-4 || size >= 1e16);
    char* end = detail::write_shortest(out, value, scientific);
    for (const char* p = out; p != end; ++p) {
        if (*p == '.' || *p == 'e') return end;
    }
    *end++ = '.';
    *end++ = '0';
    return end;
}

}  // namespace ftprl
