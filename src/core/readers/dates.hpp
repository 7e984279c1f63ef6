// Dates and times: ISO 8601 text to seconds since 1970, and from there to the day of the week and the minute of the
// day.
//
//   2024-05-31   20240531   2024-05-31T17:04   2024-05-31 17:04:09.25+02:00   2024-05-31T17Z
//
// With a zone the time is that of UTC, without one it is taken as written. Fractions of a second are read and dropped.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "readers/number.hpp"
#include "readers/scan.hpp"

namespace ftprl {

inline constexpr std::int64_t DAY_SECONDS = 86400;
inline constexpr double YEAR_SECONDS = 365.25 * 86400.0;
// The years 1 to 9999, as Python has them.
inline constexpr std::int64_t FIRST_SECOND = -62135596800, LAST_SECOND = 253402300799;

enum class DateParsed { ok, malformed, invalid };  // invalid: written as a date, but there is no such day or time

namespace detail {

// Days since 1970-01-01 in the Gregorian calendar. Years begin in March here, so that a leap day is the last day of its
// year.
inline std::int64_t days_of(std::int64_t year, unsigned month, unsigned day) noexcept {
    year -= month <= 2 ? 1 : 0;
    const std::int64_t century = year / 100;
    const std::int64_t before = 365 * year + year / 4 - century + century / 4;
    const unsigned since_march = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5;
    return before + since_march + day - 1 - 719468;
}

inline unsigned days_in(unsigned year, unsigned month) noexcept {
    constexpr std::array<unsigned char, 13> days{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leaps = month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month] + (leaps ? 1 : 0);
}

// Reads text from the left; the position does not change if the text does not match.
struct DateCursor {
    const Byte* p;
    const Byte* end;

    bool number(std::size_t digits, unsigned& out) noexcept {
        if (static_cast<std::size_t>(end - p) < digits) return false;
        unsigned value = 0;
        for (std::size_t i = 0; i < digits; ++i) {
            if (!is_digit(p[i])) return false;
            value = 10 * value + static_cast<unsigned>(p[i] - '0');
        }
        p += digits;
        out = value;
        return true;
    }
    bool take(char c) noexcept {
        const bool is_there = p != end && *p == static_cast<Byte>(c);
        p += is_there ? 1 : 0;
        return is_there;
    }
    bool at_end() const noexcept { return p == end; }
};

struct TimeOfDay {
    unsigned hour = 0, minute = 0, second = 0;
};

// HH, HH:MM, HH:MM:SS, HH:MM:SS.fraction, or without the colons.
inline bool read_time(DateCursor& text, TimeOfDay& time) noexcept {
    if (!text.number(2, time.hour)) return false;
    const bool has_colons = text.take(':');
    if (!text.number(2, time.minute)) return !has_colons;
    if (has_colons ? !text.take(':') : text.at_end() || !is_digit(*text.p)) return true;
    if (!text.number(2, time.second)) return false;
    if (!text.take('.') && !text.take(',')) return true;
    unsigned digit = 0;
    if (!text.number(1, digit)) return false;
    while (text.number(1, digit)) continue;
    return true;
}

// Reads nothing, Z, +HH, +HHMM or +HH:MM; `east` is the zone's offset from UTC in seconds.
inline bool read_zone(DateCursor& text, std::int64_t& east, bool& is_valid) noexcept {
    east = 0;
    if (text.at_end() || text.take('Z') || text.take('z')) return true;
    const bool minus = text.take('-');
    if (!minus && !text.take('+')) return false;
    unsigned hours = 0, minutes = 0;
    if (!text.number(2, hours)) return false;
    const bool has_colon = text.take(':');
    if (!text.number(2, minutes) && has_colon) return false;
    is_valid = hours < 24 && minutes < 60;
    east = (minus ? -60 : 60) * (60 * static_cast<std::int64_t>(hours) + minutes);
    return true;
}

}  // namespace detail

// Reads the whole of [p, end) as a date or a time.
inline DateParsed parse_date(const Byte* p, const Byte* end, std::int64_t& out) noexcept {
    detail::DateCursor text{p, end};
    unsigned year = 0, month = 0, day = 0;
    if (!text.number(4, year)) return DateParsed::malformed;
    const bool has_dashes = text.take('-');
    if (!text.number(2, month) || text.take('-') != has_dashes || !text.number(2, day)) return DateParsed::malformed;
    detail::TimeOfDay time;
    std::int64_t east = 0;
    bool is_valid = true;
    if (!text.at_end()) {
        if (!text.take('T') && !text.take(' ') && !text.take('t')) return DateParsed::malformed;
        if (!detail::read_time(text, time) || !detail::read_zone(text, east, is_valid)) return DateParsed::malformed;
        if (!text.at_end()) return DateParsed::malformed;
    }
    is_valid = is_valid && year >= 1 && month >= 1 && month <= 12 && day >= 1 && time.hour < 24 && time.minute < 60 &&
               time.second < 60;
    if (!is_valid || day > detail::days_in(year, month)) return DateParsed::invalid;
    const std::int64_t seconds = DAY_SECONDS * detail::days_of(year, month, day) + 3600 * std::int64_t{time.hour} +
                                 60 * std::int64_t{time.minute} + time.second - east;
    if (seconds < FIRST_SECOND || seconds > LAST_SECOND) return DateParsed::invalid;
    out = seconds;
    return DateParsed::ok;
}

// A quotient rounded down, for instants before 1970.
inline std::int64_t floor_divide(std::int64_t a, std::int64_t b) noexcept { return a / b - (a % b < 0 ? 1 : 0); }

// Monday is 0.
inline std::size_t weekday_of(std::int64_t seconds) noexcept {
    const std::int64_t days = floor_divide(seconds, DAY_SECONDS) + 3;  // 1970-01-01 was a Thursday
    return static_cast<std::size_t>(days - 7 * floor_divide(days, 7));
}

inline std::size_t minute_of(std::int64_t seconds) noexcept {
    return static_cast<std::size_t>((seconds - DAY_SECONDS * floor_divide(seconds, DAY_SECONDS)) / 60);
}

// The points of a circle divided into so many parts, rounded to nine decimals: exact zeros are 0, and the numbers do
// not depend on the C library.
template <std::size_t Parts>
struct Circle {
    std::array<double, Parts> sine;
    std::array<double, Parts> cosine;
    Circle() : sine(), cosine() {
        constexpr double TURN = 6.283185307179586;
        for (std::size_t i = 0; i < Parts; ++i) {
            const double angle = TURN * static_cast<double>(i) / static_cast<double>(Parts);
            sine[i] = std::nearbyint(std::sin(angle) * 1e9) / 1e9 + 0.0;
            cosine[i] = std::nearbyint(std::cos(angle) * 1e9) / 1e9 + 0.0;
        }
    }
    static const Circle& shared() {
        static const Circle circle;
        return circle;
    }
};

}  // namespace ftprl
