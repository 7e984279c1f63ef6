#include "readers/fingerprint.hpp"

#include "support/dispatch.hpp"
#include "support/hash.hpp"

#if defined(FTPRL_X86)
#include <immintrin.h>
#endif

namespace ftprl {
namespace {

constexpr std::size_t WORD = 4;
constexpr std::size_t WORDS = 256;  // of a block
constexpr std::size_t BLOCK = WORD * WORDS;

struct Keys {
    alignas(32) std::uint32_t of[WORDS] = {};
    constexpr Keys() {
        for (std::size_t i = 0; i < WORDS; ++i) of[i] = static_cast<std::uint32_t>(detail::mix(i + detail::K0) >> 32);
    }
};
constexpr Keys KEYS{};

constexpr std::uint64_t R = detail::K1 | 1;

constexpr std::uint64_t inverse(std::uint64_t odd) noexcept {
    std::uint64_t result = odd;  // right in its lowest 3 bits; each step doubles their number
    for (int i = 0; i < 5; ++i) result *= 2 - odd * result;
    return result;
}
constexpr std::uint64_t R_INVERSE = inverse(R);
static_assert(R * R_INVERSE == 1);

constexpr std::uint64_t power(std::uint64_t base, std::uint64_t exponent) noexcept {
    std::uint64_t result = 1;
    for (; exponent != 0; exponent >>= 1, base *= base) result *= (exponent & 1) != 0 ? base : 1;
    return result;
}

// The sum of S_b R^(count - 1 - b) over whole blocks, where S_b is the sum of words times keys.
std::uint64_t blocks_portable(const unsigned char* p, std::size_t count) noexcept {
    std::uint64_t sum = 0;
    for (; count != 0; --count, p += BLOCK) {
        std::uint64_t block = 0;
        for (std::size_t i = 0; i < WORDS; ++i) block += detail::load4(p + WORD * i) * KEYS.of[i];
        sum = sum * R + block;
    }
    return sum;
}

#if defined(FTPRL_X86)

std::uint64_t blocks_sse2(const unsigned char* p, std::size_t count) noexcept {
    std::uint64_t sum = 0;
    for (; count != 0; --count, p += BLOCK) {
        __m128i even = _mm_setzero_si128(), odd = even;
        for (std::size_t i = 0; i < WORDS; i += 4) {
            const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + WORD * i));
            const __m128i keys = _mm_load_si128(reinterpret_cast<const __m128i*>(KEYS.of + i));
            even = _mm_add_epi64(even, _mm_mul_epu32(words, keys));
            odd = _mm_add_epi64(odd, _mm_mul_epu32(_mm_srli_epi64(words, 32), _mm_srli_epi64(keys, 32)));
        }
        alignas(16) std::uint64_t lanes[2];
        _mm_store_si128(reinterpret_cast<__m128i*>(lanes), _mm_add_epi64(even, odd));
        sum = sum * R + lanes[0] + lanes[1];
    }
    return sum;
}

__attribute__((target("avx2"))) std::uint64_t blocks_avx2(const unsigned char* p, std::size_t count) noexcept {
    std::uint64_t sum = 0;
    for (; count != 0; --count, p += BLOCK) {
        __m256i even = _mm256_setzero_si256(), odd = even;
        for (std::size_t i = 0; i < WORDS; i += 8) {
            const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + WORD * i));
            const __m256i keys = _mm256_load_si256(reinterpret_cast<const __m256i*>(KEYS.of + i));
            even = _mm256_add_epi64(even, _mm256_mul_epu32(words, keys));
            odd = _mm256_add_epi64(odd, _mm256_mul_epu32(_mm256_srli_epi64(words, 32), _mm256_srli_epi64(keys, 32)));
        }
        alignas(32) std::uint64_t lanes[4];
        _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), _mm256_add_epi64(even, odd));
        sum = sum * R + lanes[0] + lanes[1] + lanes[2] + lanes[3];
    }
    return sum;
}

#endif

std::uint64_t blocks(const unsigned char* p, std::size_t count) noexcept {
    switch (instruction_set()) {
#if defined(FTPRL_X86)
        case InstructionSet::avx2:
            return blocks_avx2(p, count);
        case InstructionSet::sse2:
            return blocks_sse2(p, count);
#endif
        default:
            return blocks_portable(p, count);
    }
}

// The sum of words times keys of n bytes that begin at byte `at` of a block and end in it.
std::uint64_t part_of_block(const unsigned char* p, std::size_t n, std::size_t at) noexcept {
    std::uint64_t sum = 0;
    const auto add = [&sum, &p, &n, &at] {
        sum += (std::uint64_t{*p++} << (8 * (at % WORD))) * KEYS.of[at / WORD];
        ++at, --n;
    };
    while (n != 0 && at % WORD != 0) add();
    for (; n >= WORD; n -= WORD, p += WORD, at += WORD) sum += detail::load4(p) * KEYS.of[at / WORD];
    while (n != 0) add();
    return sum;
}

}  // namespace

std::uint64_t text_fingerprint(const unsigned char* p, std::size_t n, std::uint64_t offset) noexcept {
    std::uint64_t weight = power(R_INVERSE, offset / BLOCK), sum = 0;
    if (const std::size_t at = offset % BLOCK; at != 0) {
        const std::size_t size = n < BLOCK - at ? n : BLOCK - at;
        sum = part_of_block(p, size, at) * weight;
        weight *= R_INVERSE;
        p += size;
        n -= size;
    }
    if (const std::size_t count = n / BLOCK; count != 0) {
        weight *= power(R_INVERSE, count - 1);
        sum += blocks(p, count) * weight;
        weight *= R_INVERSE;
        p += count * BLOCK;
        n -= count * BLOCK;
    }
    return sum + part_of_block(p, n, 0) * weight;
}

}  // namespace ftprl
