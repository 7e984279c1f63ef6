// The marks of a text, made a window at a time: a quick path goes from mark to mark and never looks for one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "readers/marks.hpp"
#include "readers/scan.hpp"

namespace ftprl {

class Index {
public:
    // A quick path may read so many bytes from the beginning of any token of a row on.
    static constexpr std::ptrdiff_t SLACK = 24;
    // Longer rows are left to the careful path: the marks of a window stay few.
    static constexpr std::ptrdiff_t LONGEST = 1 << 18;

    explicit Index(const std::array<Byte, 2>& bytes) : bytes_{bytes[0], bytes[1]}, mark_(markers().two) {}
    explicit Index(const std::array<Byte, 5>& bytes) : bytes_(bytes), mark_(markers().five) {}

    // Other bytes may stand in the same place: nothing is known of them.
    void forget() noexcept { from_ = to_ = nullptr; }

    // Whether a row that begins at p and ends at eol can take a quick path; if so, its marks are ready.
    bool cover(const Byte* p, const Byte* eol, const Byte* end) {
        if (end - eol < SLACK || eol - p > LONGEST) return false;
        if (p < from_ || eol > to_ || from_ == nullptr) make(p, eol, end);
        const auto place = static_cast<std::uint32_t>(p - from_);
        while (*next_ < place) ++next_;
        return true;
    }

    // Marks are places relative to this.
    const Byte* base() const noexcept { return from_; }
    // The first mark of the row that was covered. Behind the last mark stands one that is larger than any place.
    std::uint32_t* marks() noexcept { return next_; }
    // How many marks there are from marks() on.
    std::size_t count() const noexcept { return static_cast<std::size_t>(last_ - next_); }
    // Those before `mark` are done with.
    void done(std::uint32_t* mark) noexcept { next_ = mark; }

private:
    static constexpr std::ptrdiff_t WINDOW = 1 << 13;  // with its marks it fits into the nearest cache

    void make(const Byte* p, const Byte* eol, const Byte* end) {
        std::ptrdiff_t size = eol - p > WINDOW ? eol - p : WINDOW;
        if (size > end - p) size = end - p;
        const auto room = static_cast<std::size_t>(size) + MARKS_SLACK;
        if (room > places_.size()) places_.resize(room);
        from_ = p;
        to_ = p + size;
        const std::size_t count = mark_(p, static_cast<std::size_t>(size), bytes_.data(), 0, places_.data());
        places_[count] = ~std::uint32_t{0};
        next_ = places_.data();
        last_ = next_ + count;
    }

    std::array<Byte, 5> bytes_{};
    Marker mark_;
    const Byte* from_ = nullptr;
    const Byte* to_ = nullptr;
    std::vector<std::uint32_t> places_;
    std::uint32_t* next_ = nullptr;
    std::uint32_t* last_ = nullptr;
};

// Goes from mark to mark of a row that ends at `last`. It stays in registers as long as no reference to it is taken.
struct Walk {
    std::uint32_t* mark;
    std::size_t last;

    // The next mark or `last`; not to be asked again behind that. The mark that is passed over at `last` may be the
    // one behind all others: the row after it then begins beyond the window.
    std::size_t next() noexcept {
        const std::size_t place = *mark++;
        return place < last ? place : last;
    }
};

}  // namespace ftprl
