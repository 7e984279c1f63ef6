// The feature hash of names inside a longer text: the numbers of hash.hpp, with fewer branches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "readers/scan.hpp"
#include "support/dispatch.hpp"
#include "support/hash.hpp"

namespace ftprl {

namespace detail {

// fold(a, K1) with both halves in registers; GCC would store a 128-bit product in memory and load it again.
inline std::uint64_t fold_k1(std::uint64_t a) noexcept {
#if defined(__GNUC__) && defined(__x86_64__)
    std::uint64_t low = 0, high = 0;
    __asm__("mulq %3" : "=a"(low), "=d"(high) : "0"(a), "r"(K1) : "cc");
    return high ^ low;
#else
    return fold(a, K1);
#endif
}

// The last 0..7 bytes of a name as a zero-filled block. Unless the text ends nearby, eight bytes are read and the
// surplus is cleared: lengths vary from name to name, and a branch on them is often mispredicted.
inline std::uint64_t load_rest(const Byte* p, std::size_t rest, const Byte* end) noexcept {
    if (end - p >= 8) return load8(p) & ((std::uint64_t{1} << (8 * rest)) - 1);
    return rest == 0 ? 0 : load_tail(p, rest);
}

}  // namespace detail

// hash_from(start, p, n); bytes up to `end` may be read.
inline std::uint64_t hash_name(std::uint64_t start, const Byte* p, std::size_t n, const Byte* end) noexcept {
    std::uint64_t h = start;
    std::size_t rest = n;
    for (; rest >= 8; rest -= 8, p += 8) h = detail::fold_k1(h ^ detail::load8(p));
    const std::uint64_t block = detail::load_rest(p, rest, end);
    return detail::mix((rest != 0 ? detail::fold_k1(h ^ block) : h) ^ n);
}

namespace detail {

// The low n bytes of a word, for n up to 8.
inline constexpr std::uint64_t LOW_BYTES[] = {
    0, 0xffu, 0xffffu, 0xffffffu, 0xffffffffu, 0xffffffffffu, 0xffffffffffffu, 0xffffffffffffffu, 0xffffffffffffffffu};

}  // namespace detail

namespace detail {

// Masks for the first and the second eight bytes of a name of n bytes, for n up to 16.
struct Blocks16 {
    std::uint64_t first[17] = {};
    std::uint64_t second[17] = {};
    constexpr Blocks16() {
        for (std::size_t n = 0; n <= 16; ++n) {
            first[n] = LOW_BYTES[n < 8 ? n : 8];
            second[n] = LOW_BYTES[n < 8 ? 0 : n - 8];
        }
    }
};
inline constexpr Blocks16 BLOCKS16{};

}  // namespace detail

// hash_from(start, p, n) for n from 1 to 16; 16 bytes may be read. Both blocks are hashed, and the right one is
// selected.
inline std::uint64_t hash_short(std::uint64_t start, const Byte* p, std::size_t n) noexcept {
    const std::uint64_t one = detail::fold_k1(start ^ (detail::load8(p) & detail::BLOCKS16.first[n]));
    const std::uint64_t two = detail::fold_k1(one ^ (detail::load8(p + 8) & detail::BLOCKS16.second[n]));
    return detail::mix((n > 8 ? two : one) ^ n);
}

// hash_from(start, p, n) for n from 1 on; 16 bytes may be read, and all n.
inline std::uint64_t hash_inside(std::uint64_t start, const Byte* p, std::size_t n) noexcept {
    return n > 16 ? hash_name(start, p, n, p + n + 8) : hash_short(start, p, n);
}

// Names with a common beginning: "column=" is hashed once, each value from there.
class Prefix {
public:
    Prefix(std::uint64_t start, const std::string& text) : hash_(start), size_(text.size()) {
        const auto* p = reinterpret_cast<const Byte*>(text.data());
        std::size_t rest = size_;
        for (; rest >= 8; rest -= 8, p += 8) hash_ = detail::fold_k1(hash_ ^ detail::load8(p));
        if (rest != 0) pending_ = detail::load_tail(p, rest);
        shift_ = static_cast<unsigned>(8 * rest);
    }

    // The hash of the beginning followed by [p, p + n); bytes up to `end` may be read.
    std::uint64_t operator()(const Byte* p, std::size_t n, const Byte* end) const noexcept {
        std::uint64_t h = hash_, pending = pending_;
        std::size_t rest = n;
        for (; rest >= 8; rest -= 8, p += 8) {
            const std::uint64_t word = detail::load8(p);
            h = detail::fold_k1(h ^ (pending | word << shift_));
            pending = above(word);
        }
        const std::uint64_t word = detail::load_rest(p, rest, end);
        const std::size_t left = rest + shift_ / 8;  // bytes not hashed yet
        if (left != 0) h = detail::fold_k1(h ^ (pending | word << shift_));
        if (left > 8) h = detail::fold_k1(h ^ above(word));
        return detail::mix(h ^ (size_ + n));
    }

    // The hash of the beginning followed by [p, p + n), n >= 1; faster, as bytes behind the text may be read.
    std::uint64_t quick(const Byte* p, std::size_t n, const Byte* end) const noexcept {
        return static_cast<std::size_t>(end - p) >= n + 8 ? inside(p, n) : (*this)(p, n, end);
    }

    // The hash of the beginning followed by [p, p + n), n >= 1; n + 8 bytes may be read.
    FTPRL_INSIDE std::uint64_t inside(const Byte* p, std::size_t n) const noexcept {
        if (n > 8) return (*this)(p, n, p + n + 8);
        const std::uint64_t word = detail::load8(p) & detail::LOW_BYTES[n];
        const std::uint64_t one = detail::fold_k1(hash_ ^ (pending_ | word << shift_));
        const std::uint64_t two = detail::fold_k1(one ^ above(word));
        return detail::mix((8 * n + shift_ > 64 ? two : one) ^ (size_ + n));
    }

private:
    // The part of a word that does not fit behind the pending bytes.
    std::uint64_t above(std::uint64_t word) const noexcept { return word >> 1 >> (63 - shift_); }

    std::uint64_t hash_;
    std::size_t size_;
    std::uint64_t pending_ = 0;
    unsigned shift_ = 0;  // bits of pending_ in use
};

}  // namespace ftprl
