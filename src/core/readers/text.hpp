// Numbers as text.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace ftprl {

inline constexpr std::size_t LONGEST_NUMBER = 32;

// The shortest text that reads back as the same number, at `out`, which has space for LONGEST_NUMBER bytes; returns its
// end.
inline char* write_number(char* out, double value) noexcept {
#if defined(__cpp_lib_to_chars)
    return std::to_chars(out, out + LONGEST_NUMBER, value).ptr;
#else
    return out + std::snprintf(out, LONGEST_NUMBER, "%.17g", value);
#endif
}

// One number a line.
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

// The shortest text that reads back as the same number of single precision.
inline char* write_number(char* out, float value) noexcept {
#if defined(__cpp_lib_to_chars)
    return std::to_chars(out, out + LONGEST_NUMBER, value).ptr;
#else
    return out + std::snprintf(out, LONGEST_NUMBER, "%.9g", static_cast<double>(value));
#endif
}

// Rows of numbered features, " id:value" for each, one row a line; `begin` has the text before the features of each
// row.
template <class T>
std::string feature_lines(const std::vector<std::string>& begin, const std::int64_t* indptr,
                          const std::uint32_t* indices, const T* values) {
    std::string text;
    char scratch[2 * LONGEST_NUMBER];
    for (std::size_t row = 0; row < begin.size(); ++row) {
        text += begin[row];
        for (std::int64_t i = indptr[row]; i < indptr[row + 1]; ++i) {
            char* out = scratch;
            *out++ = ' ';
            out = std::to_chars(out, scratch + sizeof(scratch), indices[i]).ptr;
            *out++ = ':';
            out = write_number(out, values[i]);
            text.append(scratch, out);
        }
        text += '\n';
    }
    return text;
}

}  // namespace ftprl
