// The feature hash of names that stand inside a longer text: the same numbers as in hash.hpp, with fewer branches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "hash.hpp"
#include "scan.hpp"

namespace ftprl {

namespace detail {

// The last 0..7 bytes of a name as a zero-filled block. Away from the end of the text, eight bytes are read and
// those that follow the name are cleared: lengths differ from name to name, and a branch on them is often wrong.
inline std::uint64_t load_rest(const Byte* p, std::size_t rest, const Byte* end) noexcept {
    if (end - p >= 8) return load8(p) & ((std::uint64_t{1} << (8 * rest)) - 1);
    return rest == 0 ? 0 : load_tail(p, rest);
}

}  // namespace detail

// hash_from(start, p, n); bytes up to `end` may be read.
inline std::uint64_t hash_name(std::uint64_t start, const Byte* p, std::size_t n, const Byte* end) noexcept {
    std::uint64_t h = start;
    std::size_t rest = n;
    for (; rest >= 8; rest -= 8, p += 8) h = detail::fold(h ^ detail::load8(p), detail::K1);
    const std::uint64_t block = detail::load_rest(p, rest, end);
    return detail::mix((rest != 0 ? detail::fold(h ^ block, detail::K1) : h) ^ n);
}

namespace detail {

// The low n bytes of a word, for n up to 8.
inline constexpr std::uint64_t LOW_BYTES[] = {0,
                                              0xffu,
                                              0xffffu,
                                              0xffffffu,
                                              0xffffffffu,
                                              0xffffffffffu,
                                              0xffffffffffffu,
                                              0xffffffffffffffu,
                                              0xffffffffffffffffu};

}  // namespace detail

// hash_from(start, p, n) for n from 1 on; 16 bytes may be read, and all n. Both blocks of a name of up to 16 bytes
// are hashed, and the one that counts is chosen.
inline std::uint64_t hash_inside(std::uint64_t start, const Byte* p, std::size_t n) noexcept {
    if (n > 16) return hash_name(start, p, n, p + n + 8);
    const std::size_t first = n < 8 ? n : 8;
    const std::uint64_t one = detail::fold(start ^ (detail::load8(p) & detail::LOW_BYTES[first]), detail::K1);
    const std::uint64_t two = detail::fold(one ^ (detail::load8(p + 8) & detail::LOW_BYTES[n - first]), detail::K1);
    return detail::mix((n > 8 ? two : one) ^ n);
}

// Names with a common beginning: "column=" is hashed once, each value from there.
class Prefix {
public:
    Prefix(std::uint64_t start, const std::string& text) : hash_(start), size_(text.size()) {
        const auto* p = reinterpret_cast<const Byte*>(text.data());
        std::size_t rest = size_;
        for (; rest >= 8; rest -= 8, p += 8) hash_ = detail::fold(hash_ ^ detail::load8(p), detail::K1);
        if (rest != 0) pending_ = detail::load_tail(p, rest);
        shift_ = static_cast<unsigned>(8 * rest);
    }

    // The hash of the beginning followed by [p, p + n); bytes up to `end` may be read.
    std::uint64_t operator()(const Byte* p, std::size_t n, const Byte* end) const noexcept {
        std::uint64_t h = hash_, pending = pending_;
        std::size_t rest = n;
        for (; rest >= 8; rest -= 8, p += 8) {
            const std::uint64_t word = detail::load8(p);
            h = detail::fold(h ^ (pending | word << shift_), detail::K1);
            pending = above(word);
        }
        const std::uint64_t word = detail::load_rest(p, rest, end);
        const std::size_t left = rest + shift_ / 8;  // bytes not hashed yet
        if (left != 0) h = detail::fold(h ^ (pending | word << shift_), detail::K1);
        if (left > 8) h = detail::fold(h ^ above(word), detail::K1);
        return detail::mix(h ^ (size_ + n));
    }

    // The same for n from 1 on; 8 bytes may be read, and all n and 8 more.
    std::uint64_t inside(const Byte* p, std::size_t n) const noexcept {
        if (n > 8) return (*this)(p, n, p + n + 8);
        const std::uint64_t word = detail::load8(p) & detail::LOW_BYTES[n];
        const std::uint64_t one = detail::fold(hash_ ^ (pending_ | word << shift_), detail::K1);
        const std::uint64_t two = detail::fold(one ^ above(word), detail::K1);
        return detail::mix((8 * n + shift_ > 64 ? two : one) ^ (size_ + n));
    }

private:
    // What of a word does not fit behind the pending bytes.
    std::uint64_t above(std::uint64_t word) const noexcept { return word >> 1 >> (63 - shift_); }

    std::uint64_t hash_;
    std::size_t size_;
    std::uint64_t pending_ = 0;
    unsigned shift_ = 0;  // bits of pending_ in use
};

}  // namespace ftprl
