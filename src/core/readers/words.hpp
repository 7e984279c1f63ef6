// The words of a text: runs of letters, digits and '_', lower-cased character by character. The tables belong to one
// version of Unicode, so that a model reads a text identically on every machine. Bytes that are not UTF-8 separate
// words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "readers/scan.hpp"
#include "readers/unicode.hpp"

namespace ftprl {

namespace detail {

// The character at p, moving p behind it; 0 for an invalid byte.
inline std::uint32_t decode(const Byte*& p, const Byte* end) noexcept {
    const std::uint32_t lead = *p++;
    if (lead < 0x80) return lead;
    const std::ptrdiff_t more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4 || end - p < more) return 0;
    std::uint32_t c = lead & (0x3fu >> more);
    for (std::ptrdiff_t i = 0; i < more; ++i) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (p[i] & 0x3fu);
    }
    constexpr std::uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0;
    p += more;
    return c;
}

inline void encode(std::uint32_t c, std::string& out) {
    const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (c < 0x80) {
        put(c);
    } else if (c < 0x800) {
        put(0xc0 | c >> 6);
        put(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        put(0xe0 | c >> 12);
        put(0x80 | (c >> 6 & 0x3f));
        put(0x80 | (c & 0x3f));
    } else {
        put(0xf0 | c >> 18);
        put(0x80 | (c >> 12 & 0x3f));
        put(0x80 | (c >> 6 & 0x3f));
        put(0x80 | (c & 0x3f));
    }
}

// The last range that begins at or before c, or null.
template <class Range, std::size_t N>
const Range* range_of(const Range (&ranges)[N], std::uint32_t c) noexcept {
    std::size_t low = 0, high = N;
    while (low < high) {
        const std::size_t middle = (low + high) / 2;
        if (ranges[middle].first <= c) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 || ranges[low - 1].last < c ? nullptr : &ranges[low - 1];
}

// The lower case of a word's character; 0 for any other character.
inline std::uint32_t word_character(std::uint32_t c) noexcept {
    if (c < 0x80) {
        if (c >= 'A' && c <= 'Z') return c - 'A' + 'a';
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ? c : 0;
    }
    if (range_of(WORDS, c) == nullptr) return 0;
    const LowerRange* lower = range_of(LOWERS, c);
    if (lower == nullptr || (c - lower->first) % lower->step != 0) return c;
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(c) + lower->shift);
}

}  // namespace detail

class Words {
public:
    // Calls callback(first, end) for every word, in order.
    template <class Callback>
    void operator()(const Byte* p, const Byte* end, Callback&& callback) {
        word_.clear();
        while (p != end) {
            const std::uint32_t c = detail::word_character(detail::decode(p, end));
            if (c != 0) {
                detail::encode(c, word_);
            } else {
                flush(callback);
            }
        }
        flush(callback);
    }

private:
    template <class Callback>
    void flush(Callback& callback) {
        if (word_.empty()) return;
        const auto* first = reinterpret_cast<const Byte*>(word_.data());
        callback(first, first + word_.size());
        word_.clear();
    }

    std::string word_;
};

}  // namespace ftprl
