// The feature hash: a seeded 64-bit hash of a byte string.
//
// A model file names this hash by its version, so the function below may never change: another
// algorithm is another version. All sums and products are modulo 2^64 unless stated otherwise.
//
//   fold(a, b)  the 128-bit product a * b, its high half XOR its low half
//   mix(x)      x ^= x >> 30;  x *= M0;  x ^= x >> 27;  x *= M1;  x ^= x >> 31     (a bijection)
//
//   hash(bytes, seed):
//     h = mix(seed + K0)
//     cut the bytes into blocks of eight, the last one filled with zero bytes (no bytes: no block)
//     for each block, read as a little-endian number w:   h = fold(h ^ w, K1)
//     return mix(h ^ n)                                   n is the number of bytes
//
// K0 and K1 are the first 64 fractional bits of sqrt(2) and sqrt(3). M0, M1 and the shifts of `mix` are
// the "Mix13" set that David Stafford published and SplitMix64 uses.
//
// Why each part is there:
//   - `mix(seed + K0)`: without it, seed ^ d would hash w as seed hashes w ^ d.
//   - `fold` by a constant: a product moves low bits up, its high half moves them down again. The
//     multiplier is never made of data, so no input can make it zero and wipe out what came before.
//   - `^ n`: "a" and "a\0" have the same blocks. `mix` is a bijection, so here they must differ.
//   - the last `mix`: every output bit depends on every bit of h, so a table may keep any bits.
//
// This is not a cryptographic hash: someone who knows the seed can build collisions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ftprl {

inline constexpr std::uint32_t HASH_VERSION = 1;

namespace detail {

inline constexpr std::uint64_t K0 = 0x6a09e667f3bcc908u;
inline constexpr std::uint64_t K1 = 0xbb67ae8584caa73bu;
inline constexpr std::uint64_t M0 = 0xbf58476d1ce4e5b9u;
inline constexpr std::uint64_t M1 = 0x94d049bb133111ebu;

// The product by schoolbook halves, for compilers without a 128-bit integer.
constexpr std::uint64_t fold_portable(std::uint64_t a, std::uint64_t b) noexcept {
    constexpr std::uint64_t low = 0xffffffffu;
    const std::uint64_t ll = (a & low) * (b & low);
    const std::uint64_t lh = (a & low) * (b >> 32);
    const std::uint64_t hl = (a >> 32) * (b & low);
    const std::uint64_t hh = (a >> 32) * (b >> 32);
    const std::uint64_t middle = (ll >> 32) + (lh & low) + (hl & low);  // at most 3 (2^32 - 1)
    return (hh + (lh >> 32) + (hl >> 32) + (middle >> 32)) ^ (a * b);
}

constexpr std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
#if defined(__SIZEOF_INT128__)
    __extension__ using wide = unsigned __int128;
    const wide product = static_cast<wide>(a) * b;
    return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
#else
    return fold_portable(a, b);
#endif
}

static_assert(fold(K0, K1) == fold_portable(K0, K1));
static_assert(fold(~std::uint64_t{0}, ~std::uint64_t{0}) == fold_portable(~std::uint64_t{0}, ~std::uint64_t{0}));
static_assert(fold(0xffffffffu, ~std::uint64_t{0}) == fold_portable(0xffffffffu, ~std::uint64_t{0}));

constexpr std::uint64_t mix(std::uint64_t x) noexcept {
    x ^= x >> 30;
    x *= M0;
    x ^= x >> 27;
    x *= M1;
    x ^= x >> 31;
    return x;
}

// Shifts instead of a cast: the same number on every byte order, and compilers make one load of it.
constexpr std::uint64_t load4(const unsigned char* p) noexcept {
    return static_cast<std::uint64_t>(p[0]) | static_cast<std::uint64_t>(p[1]) << 8 |
           static_cast<std::uint64_t>(p[2]) << 16 | static_cast<std::uint64_t>(p[3]) << 24;
}

constexpr std::uint64_t load8(const unsigned char* p) noexcept { return load4(p) | load4(p + 4) << 32; }

// The last 1..7 bytes as a zero-filled block. Two overlapping reads replace a loop: where they overlap
// they hold the same bits, so OR joins them.
constexpr std::uint64_t load_tail(const unsigned char* p, std::size_t rest) noexcept {
    if (rest >= 4) return load4(p) | load4(p + rest - 4) << (8 * (rest - 4));
    const std::size_t half = rest / 2;
    return static_cast<std::uint64_t>(p[0]) | static_cast<std::uint64_t>(p[half]) << (8 * half) |
           static_cast<std::uint64_t>(p[rest - 1]) << (8 * (rest - 1));
}

}  // namespace detail

// The part of the hash that depends on the seed alone: a reader computes it once.
constexpr std::uint64_t hash_start(std::uint64_t seed) noexcept { return detail::mix(seed + detail::K0); }

constexpr std::uint64_t hash_from(std::uint64_t start, const unsigned char* p, std::size_t n) noexcept {
    std::uint64_t h = start;
    std::size_t rest = n;
    for (; rest >= 8; rest -= 8, p += 8) h = detail::fold(h ^ detail::load8(p), detail::K1);
    if (rest != 0) h = detail::fold(h ^ detail::load_tail(p, rest), detail::K1);
    return detail::mix(h ^ n);
}

constexpr std::uint64_t hash_bytes(const unsigned char* p, std::size_t n, std::uint64_t seed) noexcept {
    return hash_from(hash_start(seed), p, n);
}

}  // namespace ftprl
