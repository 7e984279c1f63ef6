// Small whole numbers as Parquet packs them: runs of one number, and groups of eight with as many bits as they need.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "readers/parquet/thrift.hpp"
#include "readers/scan.hpp"
#include "support/hash.hpp"

namespace ftprl::parquet {

// Numbers below 2^width in [p, end); eight bytes behind the end may be read.
class Runs {
public:
    Runs() = default;
    Runs(const Byte* p, const Byte* end, unsigned width) : p_(p), end_(end), width_(width) {
        if (width > 32) throw Damaged("numbers of more than 32 bits");
    }

    // The next `count` numbers; those that are not there are damage.
    void read(std::uint32_t* out, std::size_t count) {
        while (count > 0) {
            if (left_ == 0) begin();
            const std::size_t part = std::min(count, left_);
            if (is_packed_) {
                unpack(out, part);
            } else {
                std::fill(out, out + part, value_);
            }
            out += part;
            count -= part;
            left_ -= part;
        }
    }

    // Whether the next `count` numbers are one run of `value`; they are taken if so.
    bool take_run(std::uint32_t value, std::size_t count) {
        if (left_ == 0 && count > 0) begin();
        if (is_packed_ || value_ != value || left_ < count) return false;
        left_ -= count;
        return true;
    }

private:
    static constexpr std::uint64_t MOST = std::uint64_t{1} << 32;  // numbers of a run, and more than any page has

    void begin() {
        std::uint64_t head = 0;
        for (unsigned shift = 0;; shift += 7) {
            if (p_ == end_ || shift > 63) throw Damaged("a page that ends too early");
            head |= std::uint64_t{*p_ & 0x7fu} << shift;
            if (*p_++ < 0x80) break;
        }
        is_packed_ = (head & 1) != 0;
        const std::uint64_t there = static_cast<std::uint64_t>(end_ - p_);
        if (is_packed_) {
            const std::uint64_t groups = std::min(head >> 1, MOST);
            const std::uint64_t bytes = std::min(groups * width_, there);  // some leave out the end of the last group
            left_ = static_cast<std::size_t>(width_ == 0 ? 8 * groups : std::min(8 * groups, 8 * bytes / width_));
            if (left_ == 0) throw Damaged("a page that ends too early");
            packed_ = p_;
            bit_ = 0;
            p_ += bytes;
            return;
        }
        const std::size_t bytes = (width_ + 7) / 8;
        if (bytes > there || head >> 1 == 0) throw Damaged("a page that ends too early");
        left_ = static_cast<std::size_t>(std::min(head >> 1, MOST));
        value_ = 0;
        for (std::size_t i = 0; i < bytes; ++i) value_ |= std::uint32_t{p_[i]} << (8 * i);
        p_ += bytes;
        if (width_ < 32 && value_ >> width_ != 0) throw Damaged("a number of too many bits");
    }

    void unpack(std::uint32_t* out, std::size_t count) noexcept {
        const std::uint64_t mask = (std::uint64_t{1} << width_) - 1;
        const Byte* const packed = packed_;
        const std::size_t width = width_;
        std::size_t bit = bit_;
        for (std::size_t i = 0; i < count; ++i, bit += width) {
            out[i] = static_cast<std::uint32_t>(ftprl::detail::load8(packed + bit / 8) >> (bit % 8) & mask);
        }
        bit_ = bit;
    }

    const Byte* p_ = nullptr;
    const Byte* end_ = nullptr;
    unsigned width_ = 0;
    bool is_packed_ = false;
    std::size_t left_ = 0;  // numbers of the current run
    std::uint32_t value_ = 0;
    const Byte* packed_ = nullptr;
    std::size_t bit_ = 0;
};

}  // namespace ftprl::parquet
