// Where the delimiters of a text are, a window at a time: a fast path goes from one to the next and never searches.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "readers/delimiters.hpp"
#include "readers/scan.hpp"

namespace ftprl {

class DelimiterIndex {
public:
    // A fast path may read so many bytes from the beginning of any token of a row on.
    static constexpr std::ptrdiff_t SLACK = 24;
    // Longer rows are left to the careful path: a window then has few delimiters.
    static constexpr std::ptrdiff_t LONGEST = 1 << 18;

    explicit DelimiterIndex(const std::array<Byte, 2>& bytes)
        : bytes_{bytes[0], bytes[1]}, find_(delimiter_search().two) {}
    explicit DelimiterIndex(const std::array<Byte, 5>& bytes) : bytes_(bytes), find_(delimiter_search().five) {}

    // Other bytes may stand in the same place: nothing is known of them.
    void forget() noexcept { from_ = to_ = nullptr; }

    // Whether a row that begins at p and ends at eol can take a fast path; if so, its delimiters are known.
    bool cover(const Byte* p, const Byte* eol, const Byte* end) {
        if (end - eol < SLACK || eol - p > LONGEST) return false;
        if (p < from_ || eol > to_ || from_ == nullptr) make(p, eol, end);
        const auto position = static_cast<std::uint32_t>(p - from_);
        while (*next_ < position) ++next_;
        return true;
    }

    // Positions are relative to this.
    const Byte* base() const noexcept { return from_; }
    // That of the first delimiter of the row that was covered. Behind the last one is a number larger than any
    // position.
    std::uint32_t* positions() noexcept { return next_; }
    // How many delimiters there are from positions() on.
    std::size_t count() const noexcept { return static_cast<std::size_t>(last_ - next_); }
    // Those before `next` are done with.
    void done(std::uint32_t* next) noexcept { next_ = next; }

private:
    static constexpr std::ptrdiff_t WINDOW = 1 << 13;  // with its positions it fits into the nearest cache

    void make(const Byte* p, const Byte* eol, const Byte* end) {
        std::ptrdiff_t size = eol - p > WINDOW ? eol - p : WINDOW;
        if (size > end - p) size = end - p;
        const auto capacity = static_cast<std::size_t>(size) + DELIMITER_SLACK;
        if (capacity > positions_.size()) positions_.resize(capacity);
        from_ = p;
        to_ = p + size;
        const std::size_t count = find_(p, static_cast<std::size_t>(size), bytes_.data(), 0, positions_.data());
        positions_[count] = ~std::uint32_t{0};
        next_ = positions_.data();
        last_ = next_ + count;
    }

    std::array<Byte, 5> bytes_{};
    FindDelimiters find_;
    const Byte* from_ = nullptr;
    const Byte* to_ = nullptr;
    std::vector<std::uint32_t> positions_;
    std::uint32_t* next_ = nullptr;
    std::uint32_t* last_ = nullptr;
};

// Goes from delimiter to delimiter of a row that ends at `last`. It stays in registers as long as no reference to it is
// taken.
struct DelimiterWalk {
    std::uint32_t* next_delimiter;
    std::size_t last;

    // The position of the next delimiter or `last`; not to be called again behind that. What is passed over at `last`
    // may be the number behind all positions: the row after it then begins beyond the window.
    std::size_t next() noexcept {
        const std::size_t position = *next_delimiter++;
        return position < last ? position : last;
    }
};

}  // namespace ftprl
