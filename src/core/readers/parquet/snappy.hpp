// Decompression of Snappy (https://github.com/google/snappy/blob/main/format_description.txt).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "readers/parquet/thrift.hpp"
#include "readers/scan.hpp"

namespace ftprl::parquet {

inline constexpr std::size_t SLACK = 32;  // bytes behind the end of a page that may be read and written

namespace detail {

// Copies `size` bytes that stand `distance` before `out`, and may overlap it; up to 15 bytes more are written.
inline void copy_back(Byte* out, std::size_t distance, std::size_t size) noexcept {
    const Byte* from = out - distance;
    if (distance >= 16) {
        for (std::size_t i = 0; i < size; i += 16) std::memcpy(out + i, from + i, 16);
    } else if (distance >= 8) {
        for (std::size_t i = 0; i < size; i += 8) std::memcpy(out + i, from + i, 8);
    } else {
        for (std::size_t i = 0; i < size; ++i) out[i] = from[i];
    }
}

}  // namespace detail

// Exactly `size` bytes, with SLACK behind them, from [p, end).
inline void unsnap(const Byte* p, const Byte* end, Byte* out, std::size_t size) {
    const auto broken = [] { return Damaged("a page that Snappy cannot decompress"); };
    std::uint64_t promised = 0;
    for (unsigned shift = 0;; shift += 7) {
        if (p == end || shift > 28) throw broken();
        promised |= std::uint64_t{*p & 0x7fu} << shift;
        if (*p++ < 0x80) break;
    }
    if (promised != size) throw broken();
    Byte* const first = out;
    Byte* const stop = out + size;
    while (p != end) {
        const Byte tag = *p++;
        const auto left = static_cast<std::size_t>(end - p), room = static_cast<std::size_t>(stop - out);
        if ((tag & 3) == 0) {
            std::size_t count = (tag >> 2) + std::size_t{1};
            if (count <= 16 && left >= 16 && room >= count) {
                std::memcpy(out, p, 16);
                out += count;
                p += count;
                continue;
            }
            if (count > 60) {
                const std::size_t width = count - 60;
                if (left < width) throw broken();
                count = 0;
                for (std::size_t i = 0; i < width; ++i) count |= std::size_t{*p++} << (8 * i);
                ++count;
            }
            if (count > static_cast<std::size_t>(end - p) || count > room) throw broken();
            std::memcpy(out, p, count);
            out += count;
            p += count;
            continue;
        }
        static constexpr std::size_t WIDTHS[] = {0, 1, 2, 4};
        const std::size_t width = WIDTHS[tag & 3];
        if (left < width) throw broken();
        std::size_t distance = 0;
        for (std::size_t i = 0; i < width; ++i) distance |= std::size_t{p[i]} << (8 * i);
        p += width;
        std::size_t count = (tag >> 2) + std::size_t{1};
        if ((tag & 3) == 1) {
            distance |= std::size_t{tag & 0xe0u} << 3;
            count = (tag >> 2 & 7) + std::size_t{4};
        }
        if (distance == 0 || distance > static_cast<std::size_t>(out - first) || count > room) throw broken();
        detail::copy_back(out, distance, count);
        out += count;
    }
    if (out != stop) throw broken();
}

}  // namespace ftprl::parquet
