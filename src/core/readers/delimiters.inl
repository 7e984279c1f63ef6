// The search for delimiters, included once for each instruction set with FTPRL_ISA (a namespace) and
// FTPRL_DELIMITER_SEARCH (the table) defined. No template or inline function of the standard library may be used here.
#if defined(__SSE2__) && !defined(FTPRL_PORTABLE)
#include <immintrin.h>
#endif

#include "readers/delimiters.hpp"

namespace ftprl {
namespace FTPRL_ISA {
namespace {

#if defined(__SSE2__) && !defined(FTPRL_PORTABLE)

#if defined(__AVX2__)
using Word = __m256i;
inline Word copies(unsigned char byte) { return _mm256_set1_epi8(static_cast<char>(byte)); }
inline Word load(const unsigned char* p) { return _mm256_loadu_si256(reinterpret_cast<const Word*>(p)); }
inline Word either(Word a, Word b) { return _mm256_or_si256(a, b); }
inline Word equal(Word a, Word b) { return _mm256_cmpeq_epi8(a, b); }
inline std::uint64_t bits(Word a) { return static_cast<std::uint32_t>(_mm256_movemask_epi8(a)); }
#else
using Word = __m128i;
inline Word copies(unsigned char byte) { return _mm_set1_epi8(static_cast<char>(byte)); }
inline Word load(const unsigned char* p) { return _mm_loadu_si128(reinterpret_cast<const Word*>(p)); }
inline Word either(Word a, Word b) { return _mm_or_si128(a, b); }
inline Word equal(Word a, Word b) { return _mm_cmpeq_epi8(a, b); }
inline std::uint64_t bits(Word a) { return static_cast<std::uint32_t>(_mm_movemask_epi8(a)); }
#endif

// A bit for each of 64 bytes.
template <int N>
inline std::uint64_t matches(const unsigned char* p, const Word* wanted) {
    std::uint64_t mask = 0;
    for (unsigned i = 0; i < 64; i += sizeof(Word)) {
        const Word word = load(p + i);
        Word hit = equal(word, wanted[0]);
        for (int k = 1; k < N; ++k) hit = either(hit, equal(word, wanted[k]));
        mask |= bits(hit) << i;
    }
    return mask;
}

#if defined(__BMI__)
inline std::uint32_t lowest(std::uint64_t mask) { return static_cast<std::uint32_t>(_tzcnt_u64(mask)); }
#else
inline std::uint32_t lowest(std::uint64_t mask) {
    return static_cast<std::uint32_t>(__builtin_ctzll(mask | std::uint64_t{1} << 63));  // of 0 it is not defined
}
#endif

// Eight positions at a time, wanted or not: how many there are differs from word to word, and a branch on each would
// often be wrong. Those too many are overwritten by the next ones.
inline std::uint32_t* write(std::uint64_t mask, std::uint32_t first, std::uint32_t* out) {
    std::uint32_t* const end = out + __builtin_popcountll(mask);
    do {
        for (int k = 0; k < 8; ++k) {
            out[k] = first + lowest(mask);
            mask &= mask - 1;
        }
        out += 8;
    } while (mask != 0);
    return end;
}

template <int N>
std::size_t find_delimiters(const unsigned char* p, std::size_t size, const unsigned char* bytes, std::uint32_t first,
                            std::uint32_t* out) {
    Word wanted[N];
    for (int k = 0; k < N; ++k) wanted[k] = copies(bytes[k]);
    const std::uint32_t* const begin = out;
    for (; size >= 64; size -= 64, p += 64, first += 64) out = write(matches<N>(p, wanted), first, out);
    if (size != 0) {
        unsigned char rest[64] = {};
        for (std::size_t i = 0; i < size; ++i) rest[i] = p[i];
        out = write(matches<N>(rest, wanted) & ((std::uint64_t{1} << size) - 1), first, out);
    }
    return static_cast<std::size_t>(out - begin);
}

#else

template <int N>
std::size_t find_delimiters(const unsigned char* p, std::size_t size, const unsigned char* bytes, std::uint32_t first,
                            std::uint32_t* out) {
    bool wanted[256] = {};
    for (int k = 0; k < N; ++k) wanted[bytes[k]] = true;
    std::size_t count = 0;
    for (std::size_t i = 0; i < size; ++i) {
        out[count] = first + static_cast<std::uint32_t>(i);
        count += wanted[p[i]];
    }
    return count;
}

#endif

}  // namespace
}  // namespace FTPRL_ISA

extern const DelimiterSearch FTPRL_DELIMITER_SEARCH = {FTPRL_ISA::find_delimiters<2>, FTPRL_ISA::find_delimiters<5>};

}  // namespace ftprl
