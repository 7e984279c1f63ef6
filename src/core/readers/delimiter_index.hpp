// The positions of the delimiters of a text, found one window at a time, so that a fast path can jump from one to the
// next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "readers/scan.hpp"
#include "support/hash.hpp"

namespace ftprl {

namespace detail {

// Marks each of eight bytes that equals one of N; each word of `wanted` repeats one of them eight times.
template <std::size_t N>
std::uint64_t matches8(std::uint64_t word, const std::array<std::uint64_t, N>& wanted) noexcept {
    constexpr std::uint64_t low = 0x7f7f7f7f7f7f7f7fu;
    std::uint64_t others = ~std::uint64_t{0};  // bytes whose highest bit is set are none of those before
    for (const std::uint64_t copies : wanted) {
        const std::uint64_t differs = word ^ copies;
        others &= ((differs & low) + low) | differs;
    }
    return ((~others & ~low) >> 7) * 0x0102040810204080u >> 56;
}

inline std::size_t count_bits(std::uint64_t bits) noexcept {
    bits -= bits >> 1 & 0x5555555555555555u;
    bits = (bits & 0x3333333333333333u) + (bits >> 2 & 0x3333333333333333u);
    return ((bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56;
}

}  // namespace detail

// Extra space behind the positions, because several are written at a time.
constexpr std::size_t DELIMITER_SLACK = 16;

// Writes every i below `size` where p[i] is one of N bytes, in order, and returns how many there are. `out` has space
// for `size` numbers and DELIMITER_SLACK more. No byte at or after p + size is read.
template <std::size_t N>
std::size_t find_delimiters(const Byte* p, std::size_t size, const Byte* bytes, std::uint32_t* out) noexcept {
    std::array<std::uint64_t, N> wanted;
    for (std::size_t k = 0; k < N; ++k) wanted[k] = bytes[k] * 0x0101010101010101u;
    const std::uint32_t* const begin = out;
    for (std::size_t at = 0; at < size; at += 64) {
        Byte rest[64] = {};
        const bool is_whole = size - at >= 64;
        if (!is_whole) std::memcpy(rest, p + at, size - at);
        const Byte* const block = is_whole ? p + at : rest;
        std::uint64_t mask = 0;
        for (unsigned i = 0; i < 64; i += 8) mask |= detail::matches8<N>(detail::load8(block + i), wanted) << i;
        if (!is_whole) mask &= (std::uint64_t{1} << (size - at)) - 1;
        // Writes eight positions at a time, needed or not: their number differs from block to block, and a branch on it
        // would often be mispredicted. Surplus positions are overwritten by the next block.
        std::uint32_t* const end = out + detail::count_bits(mask);
        do {
            for (int k = 0; k < 8; ++k) {
                out[k] = static_cast<std::uint32_t>(at) + detail::lowest_bit(mask | std::uint64_t{1} << 63);
                mask &= mask - 1;
            }
            out += 8;
        } while (mask != 0);
        out = end;
    }
    return static_cast<std::size_t>(out - begin);
}

class DelimiterIndex {
public:
    // The number of bytes that a fast path may read from the beginning of any token of a row. Longer rows are left to
    // the careful path: a window then has few delimiters.
    static constexpr std::ptrdiff_t SLACK = 24;
    // Longer rows are left to the careful path: a window then has few delimiters.
    static constexpr std::ptrdiff_t LONGEST = 1 << 18;

    explicit DelimiterIndex(const std::array<Byte, 2>& bytes)
        : bytes_{bytes[0], bytes[1]}, find_(&find_delimiters<2>) {}
    explicit DelimiterIndex(const std::array<Byte, 5>& bytes) : bytes_(bytes), find_(&find_delimiters<5>) {}

    // Forgets the window, because other bytes may now be at its address.
    void forget() noexcept { from_ = to_ = nullptr; }

    // True if the row from p to eol can take a fast path; its delimiters are then known.
    bool cover(const Byte* p, const Byte* eol, const Byte* end) {
        if (end - eol < SLACK || eol - p > LONGEST) return false;
        if (p < from_ || eol > to_ || from_ == nullptr) make(p, eol, end);
        const auto position = static_cast<std::uint32_t>(p - from_);
        while (*next_ < position) ++next_;
        return true;
    }

    // Positions are relative to this.
    const Byte* base() const noexcept { return from_; }
    // The position of the first delimiter of the covered row. After the last delimiter comes a number larger than any
    // position.
    std::uint32_t* positions() noexcept { return next_; }
    // The number of delimiters from positions() on.
    std::size_t count() const noexcept { return static_cast<std::size_t>(last_ - next_); }
    // Drops the delimiters before `next`.
    void done(std::uint32_t* next) noexcept { next_ = next; }

private:
    static constexpr std::ptrdiff_t WINDOW = 1 << 13;  // with its positions it fits into the nearest cache

    void make(const Byte* p, const Byte* eol, const Byte* end) {
        std::ptrdiff_t size = eol - p > WINDOW ? eol - p : WINDOW;
        if (size > end - p) size = end - p;
        const auto capacity = static_cast<std::size_t>(size) + DELIMITER_SLACK;
        if (capacity > positions_.size()) positions_.resize(capacity);
        from_ = p;
        to_ = p + size;
        const std::size_t count = find_(p, static_cast<std::size_t>(size), bytes_.data(), positions_.data());
        positions_[count] = ~std::uint32_t{0};
        next_ = positions_.data();
        last_ = next_ + count;
    }

    std::array<Byte, 5> bytes_{};
    std::size_t (*find_)(const Byte*, std::size_t, const Byte*, std::uint32_t*);
    const Byte* from_ = nullptr;
    const Byte* to_ = nullptr;
    std::vector<std::uint32_t> positions_;
    std::uint32_t* next_ = nullptr;
    std::uint32_t* last_ = nullptr;
};

// Moves from delimiter to delimiter of a row that ends at `last`. The object stays in registers as long as no reference
// to it is taken.
struct DelimiterWalk {
    std::uint32_t* next_delimiter;
    std::size_t last;

    // The position of the next delimiter, or `last`; must not be called again after `last`. The number dropped at
    // `last` may be the sentinel behind all positions: the next row then begins beyond the window.
    std::size_t next() noexcept {
        const std::size_t position = *next_delimiter++;
        return position < last ? position : last;
    }
};

}  // namespace ftprl
