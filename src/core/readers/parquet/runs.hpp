// Small whole numbers as Parquet packs them: runs of one number, and groups of eight with as many bits as they need.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "readers/parquet/snappy.hpp"
#include "readers/parquet/thrift.hpp"
#include "readers/scan.hpp"
#include "support/hash.hpp"

namespace ftprl::parquet {

namespace detail {

// Groups of eight numbers of WIDTH bits each; seven bytes behind them may be read.
template <unsigned WIDTH>
inline void unpack_groups(const Byte* p, std::size_t groups, std::uint32_t* out) noexcept {
    constexpr std::uint64_t MASK = (std::uint64_t{1} << WIDTH) - 1;
    for (; groups > 0; --groups, p += WIDTH, out += 8) {
        for (unsigned i = 0; i < 8; ++i) {
            out[i] = static_cast<std::uint32_t>(ftprl::detail::load8(p + i * WIDTH / 8) >> (i * WIDTH % 8) & MASK);
        }
    }
}

using UnpackGroups = void (*)(const Byte*, std::size_t, std::uint32_t*) noexcept;

template <unsigned... WIDTHS>
constexpr std::array<UnpackGroups, sizeof...(WIDTHS)> unpackers(
    std::integer_sequence<unsigned, WIDTHS...> /*widths*/) noexcept {
    return {&unpack_groups<WIDTHS>...};
}

inline constexpr std::array<UnpackGroups, 33> UNPACK_GROUPS = unpackers(std::make_integer_sequence<unsigned, 33>{});

}  // namespace detail

// Numbers below 2^width in [p, end); eight bytes behind the end may be read. `source` decompresses up to the end, as
// far as it is needed; without one, all of it is there.
class Runs {
public:
    Runs() = default;
    Runs(const Byte* p, const Byte* end, unsigned width, Unsnapper* source)
        : p_(p), end_(end), width_(width), source_(source) {
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

    static constexpr std::size_t HEAD = 14;  // bytes at most: a length, and the number of a run

    void need(std::size_t size) {
        if (source_ == nullptr) return;
        const Byte* const until = p_ + std::min(size, static_cast<std::size_t>(end_ - p_));
        if (until > source_->at()) source_->run(until);
    }

    void begin() {
        need(HEAD);
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
            need(static_cast<std::size_t>(bytes));
            packed_ = p_;
            next_ = 0;
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
        for (; count > 0 && next_ % 8 != 0; --count) *out++ = one();
        const std::size_t groups = count / 8;
        detail::UNPACK_GROUPS[width_](packed_ + next_ / 8 * width_, groups, out);
        next_ += 8 * groups;
        out += 8 * groups;
        for (count %= 8; count > 0; --count) *out++ = one();
    }
    std::uint32_t one() noexcept {
        const std::size_t bit = next_++ * width_;
        const std::uint64_t mask = (std::uint64_t{1} << width_) - 1;
        return static_cast<std::uint32_t>(ftprl::detail::load8(packed_ + bit / 8) >> (bit % 8) & mask);
    }

    const Byte* p_ = nullptr;
    const Byte* end_ = nullptr;
    unsigned width_ = 0;
    bool is_packed_ = false;
    std::size_t left_ = 0;  // numbers of the current run
    std::uint32_t value_ = 0;
    const Byte* packed_ = nullptr;
    std::size_t next_ = 0;  // number of those that are packed
    Unsnapper* source_ = nullptr;
};

}  // namespace ftprl::parquet
