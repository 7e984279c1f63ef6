// Where the bytes stand that end a token. Plain data only: this header is compiled for several instruction sets,
// and a function defined here could end up in the program compiled for the wrong one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ftprl {

// Room behind the positions themselves: they are written several at a time.
constexpr std::size_t DELIMITER_SLACK = 16;

// Writes first + i for every i below `size` where p[i] is one of `bytes`, in order, and returns how many there are.
// `out` has space for `size` numbers and DELIMITER_SLACK more. No byte at or after p + size is read.
using FindDelimiters = std::size_t (*)(const unsigned char* p, std::size_t size, const unsigned char* bytes,
                                       std::uint32_t first, std::uint32_t* out);

// One set for an instruction set.
struct DelimiterSearch {
    FindDelimiters two;   // of two bytes
    FindDelimiters five;  // of five
};

extern const DelimiterSearch delimiter_search_portable;
#if defined(FTPRL_X86)
extern const DelimiterSearch delimiter_search_sse2;
extern const DelimiterSearch delimiter_search_avx2;
#endif

// The search that parsers made from now on use.
const DelimiterSearch& delimiter_search() noexcept;

}  // namespace ftprl
