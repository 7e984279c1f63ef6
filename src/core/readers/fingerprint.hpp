// A fingerprint of a text that does not depend on how it is cut: those of its parts add up modulo 2^64.
//
// The text is cut into words of four bytes, the lowest first, and blocks of 256 words. Word i of block b counts
//
//     word * KEYS[i] * R^-b   modulo 2^64
//
// with 32-bit keys and an odd R. A part that begins or ends inside a word counts for the bytes it has. So parts may be
// read by several threads and added up in any order, and a product is one instruction for several words.
//
// It is there to notice a file that has changed. The keys are known: someone who wants to can build two texts with one
// fingerprint, and receipts therefore have a SHA-256.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ftprl {

// The fingerprint of [p, p + n), which begins at byte `offset` of the text.
std::uint64_t text_fingerprint(const unsigned char* p, std::size_t n, std::uint64_t offset) noexcept;

}  // namespace ftprl
