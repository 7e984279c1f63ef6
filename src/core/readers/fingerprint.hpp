// A fingerprint of a text that does not depend on how the text is cut: fingerprints of parts add up modulo 2^64. The
// text is cut into words of four bytes, little-endian, and blocks of 256 words. Word i of block b counts word * KEYS[i]
// * R^-b modulo 2^64 with 32-bit keys and an odd R. A part that begins or ends inside a word counts the bytes it has.
// So threads can read parts and add their fingerprints in any order, and one instruction multiplies several words. The
// purpose is to notice a file that has changed. The keys are public, so a text with a given fingerprint can be
// constructed; receipts therefore have a SHA-256.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ftprl {

// The fingerprint of [p, p + n), which begins at byte `offset` of the text.
std::uint64_t text_fingerprint(const unsigned char* p, std::size_t n, std::uint64_t offset) noexcept;

}  // namespace ftprl
