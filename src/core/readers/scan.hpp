// Finds the end of a token: the next byte that is one of a few. A search is bounded by the end of the whole buffer, not
// of the line: sixteen bytes are then read at once for all but the last tokens. No byte at or after `end` is ever read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define FTPRL_SSE2 1
#endif

namespace ftprl {

using Byte = unsigned char;

namespace detail {

// The index of the lowest bit that is set; `mask` is not 0.
inline unsigned lowest_bit(std::uint64_t mask) noexcept {
#if defined(__GNUC__) || defined(__clang__)
    return static_cast<unsigned>(__builtin_ctzll(mask));
#else
    unsigned index = 0;
    for (; (mask & 1) == 0; mask >>= 1) ++index;
    return index;
#endif
}

}  // namespace detail

inline void prefetch(const void* address) noexcept {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#else
    (void)address;
#endif
}

// Finds the first byte that is one of N, or `end`.
template <std::size_t N>
class Finder {
public:
    explicit Finder(const std::array<Byte, N>& bytes) noexcept : bytes_(bytes) {
#if defined(FTPRL_SSE2)
        for (std::size_t i = 0; i < N; ++i) words_[i] = _mm_set1_epi8(static_cast<char>(bytes[i]));
#endif
    }

    const Byte* operator()(const Byte* p, const Byte* end) const noexcept {
#if defined(FTPRL_SSE2)
        for (; end - p >= 16; p += 16) {
            const __m128i word = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
            __m128i hit = _mm_setzero_si128();
            for (std::size_t i = 0; i < N; ++i) {
                hit = _mm_or_si128(hit, _mm_cmpeq_epi8(word, words_[i]));
            }
            const auto mask = static_cast<unsigned>(_mm_movemask_epi8(hit));
            if (mask != 0) return p + detail::lowest_bit(mask);
        }
#endif
        for (; p != end; ++p) {
            for (std::size_t i = 0; i < N; ++i) {
                if (*p == bytes_[i]) return p;
            }
        }
        return end;
    }

private:
    std::array<Byte, N> bytes_;
#if defined(FTPRL_SSE2)
    __m128i words_[N];
#endif
};

// The first `byte`, or `end`.
inline const Byte* find(const Byte* p, const Byte* end, Byte byte) noexcept {
    if (p == end) return end;
    const void* at = std::memchr(p, byte, static_cast<std::size_t>(end - p));
    return at == nullptr ? end : static_cast<const Byte*>(at);
}

inline bool is_blank(Byte byte) noexcept { return byte == ' ' || byte == '\t'; }

inline const Byte* skip_blanks(const Byte* p, const Byte* end) noexcept {
    while (p != end && is_blank(*p)) ++p;
    return p;
}

}  // namespace ftprl
