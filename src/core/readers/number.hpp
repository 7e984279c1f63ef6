// A decimal number from text, correctly rounded, whatever the locale.
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <system_error>

#include "readers/scan.hpp"
#include "support/hash.hpp"

#if !defined(__cpp_lib_to_chars)
// For standard libraries without floating from_chars: strtod in the "C" locale, on a zero-terminated copy.
#include <locale.h>
#include <stdlib.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#include <cerrno>
#include <string>
#endif

namespace ftprl {

enum class Parsed { ok, malformed, not_finite };

namespace detail {

inline constexpr double TENS[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

inline bool is_digit(Byte byte) noexcept { return static_cast<unsigned>(byte) - '0' < 10u; }

// True if a number outside the range of a double is too large, and not too near to zero: the sign of the decimal
// exponent of its first nonzero digit. `p` is after the sign.
inline bool is_too_large(const Byte* p, const Byte* end) noexcept {
    long long magnitude = 0;
    bool point = false, has_digit = false;
    for (; p != end && (*p == '.' || is_digit(*p)); ++p) {
        if (*p == '.') {
            point = true;
        } else if (has_digit || *p != '0') {
            has_digit = true;
            magnitude += point ? 0 : 1;
        } else {
            magnitude -= point ? 1 : 0;
        }
    }
    if (p == end) return magnitude > 0;
    ++p;  // the e
    const bool minus = p != end && *p == '-';
    if (p != end && (*p == '-' || *p == '+')) ++p;
    long long exponent = 0;
    for (; p != end; ++p) {
        if (exponent < 1000000000000LL) exponent = 10 * exponent + (*p - '0');
    }
    return magnitude + (minus ? -exponent : exponent) > 0;
}

#if defined(__cpp_lib_to_chars)
inline Parsed parse_long(const Byte* p, const Byte* end, double& out) noexcept {
    const auto* last = reinterpret_cast<const char*>(end);
    double value = 0.0;
    const auto [stop, error] = std::from_chars(reinterpret_cast<const char*>(p), last, value);
    if (error == std::errc::invalid_argument || stop != last) return Parsed::malformed;
    if (error == std::errc::result_out_of_range) {
        if (is_too_large(p, end)) return Parsed::not_finite;
        value = 0.0;
    }
    if (!std::isfinite(value)) return Parsed::not_finite;
    out = value;
    return Parsed::ok;
}
#else
inline Parsed parse_long(const Byte* p, const Byte* end, double& out) {
    static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
    const std::string text(p, end);
    if (text.find_first_of("xX \t\n\v\f\r+(") == 0 || text.find_first_of("xX(") != std::string::npos) {
        return Parsed::malformed;  // what strtod takes and from_chars does not
    }
    char* stop = nullptr;
    const double value = strtod_l(text.c_str(), &stop, c_locale);
    if (stop == text.c_str() || stop != text.c_str() + text.size()) return Parsed::malformed;
    if (!std::isfinite(value)) return Parsed::not_finite;
    out = value;
    return Parsed::ok;
}
#endif

}  // namespace detail

namespace detail {

// Eight digits as a number, the first in the lowest byte. Neighbours are combined: 1 and 2 digits, 2 and 4, 4 and 8.
inline std::uint32_t join_digits(std::uint64_t digits) noexcept {
    digits = 10 * digits + (digits >> 8);
    const std::uint64_t even = (digits & 0x000000ff000000ffu) * 0x000f424000000064u;
    const std::uint64_t odd = (digits >> 16 & 0x000000ff000000ffu) * 0x0000271000000001u;
    return static_cast<std::uint32_t>((even + odd) >> 32);
}

// The high bit of each byte that is not 0..9. The lowest such byte is marked correctly; marks above it may be wrong for
// bytes from 0x8a on.
inline std::uint64_t not_digits(std::uint64_t bytes) noexcept {
    return ((bytes + 0x7676767676767676u) | bytes) & 0x8080808080808080u;
}

}  // namespace detail

// The whole number in [p, p + n) if it is up to eight digits, else false. Eight bytes may be read.
inline bool parse_whole(const Byte* p, std::size_t n, std::uint32_t& out) noexcept {
    if (n - 1 > 7) return false;
    const std::uint64_t bytes = (detail::load8(p) ^ 0x3030303030303030u) << (64 - 8 * n);
    out = detail::join_digits(bytes);
    return detail::not_digits(bytes) == 0;
}

// parse_number for [p, p + n) of up to eight digits with an optional sign and point; false, and `out` unchanged, for
// any other text. Nine bytes may be read.
inline bool parse_short(const Byte* p, std::size_t n, double& out) noexcept {
    const bool minus = *p == '-';
    p += minus;
    n -= minus;
    if (n - 1 > 7) return false;
    std::uint64_t bytes = (detail::load8(p) ^ 0x3030303030303030u) << (64 - 8 * n);
    std::uint64_t other = detail::not_digits(bytes);
    double value = 0.0;
    if (other == 0) {
        value = static_cast<double>(detail::join_digits(bytes));
    } else {
        const unsigned at = detail::lowest_bit(other) & ~7u;
        if (n == 1 || (bytes >> at & 0xff) != ('.' ^ '0')) return false;
        bytes = (bytes & ((std::uint64_t{1} << at) - 1)) << 8 | (bytes >> at >> 8 << at << 8);
        if (detail::not_digits(bytes) != 0) return false;
        value = static_cast<double>(detail::join_digits(bytes)) / detail::TENS[7 - at / 8];
    }
    out = minus ? -value : value;
    return true;
}

// The whole of [p, end) as a number. A number too near to zero for a double is 0.
inline Parsed parse_number(const Byte* p, const Byte* end, double& out) {
    const bool minus = p != end && *p == '-';
    if (p != end && (*p == '-' || *p == '+')) ++p;
    if (p == end || *p == '-' || *p == '+') return Parsed::malformed;

    // Up to 15 digits: the digits and the power of ten are both exact, so one division rounds correctly.
    if (end - p <= 16) {
        std::uint64_t digits = 0;
        const Byte* q = p;
        for (; q != end && detail::is_digit(*q); ++q) digits = 10 * digits + static_cast<std::uint64_t>(*q - '0');
        std::ptrdiff_t fraction = 0;
        std::ptrdiff_t count = q - p;
        if (q != end && *q == '.') {
            const Byte* first = ++q;
            for (; q != end && detail::is_digit(*q); ++q) digits = 10 * digits + static_cast<std::uint64_t>(*q - '0');
            fraction = q - first;
            count += fraction;
        }
        if (q == end && count >= 1 && count <= 15) {
            const double value = static_cast<double>(digits) / detail::TENS[fraction];
            out = minus ? -value : value;
            return Parsed::ok;
        }
        // After digits or a point comes an exponent or the end, which rejects most other text.
        if (q != p && q != end && *q != 'e' && *q != 'E') return Parsed::malformed;
    }
    double value = 0.0;
    const Parsed parsed = detail::parse_long(p, end, value);
    if (parsed == Parsed::ok) out = minus ? -value : value;
    return parsed;
}

// True if [p, end) is a number; short ones are recognised directly. Nine bytes may be read from p on.
inline bool read_number(const Byte* p, const Byte* end, double& out) {
    return parse_short(p, static_cast<std::size_t>(end - p), out) || parse_number(p, end, out) == Parsed::ok;
}

}  // namespace ftprl
