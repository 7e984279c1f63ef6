// Decompression of Snappy (https://github.com/google/snappy/blob/main/format_description.txt), as far as it is needed:
// a page of Parquet has many more rows than are read at a time, and what was just decompressed is still in the cache.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "readers/parquet/stream.hpp"
#include "readers/parquet/thrift.hpp"
#include "readers/scan.hpp"
#include "support/dispatch.hpp"
#include "support/hash.hpp"

namespace ftprl::parquet {

namespace detail {

// What a tag of a copy says: how many bytes are copied, how many bytes of the distance follow, its highest bits.
struct CopyTag {
    std::uint8_t count = 0;
    std::uint8_t width = 0;
    std::uint16_t high = 0;
};

constexpr std::array<CopyTag, 256> copy_tags() noexcept {
    std::array<CopyTag, 256> tags{};
    for (unsigned tag = 0; tag < 256; ++tag) {
        if ((tag & 3) == 1) {
            tags[tag] = {static_cast<std::uint8_t>((tag >> 2 & 7) + 4), 1,
                         static_cast<std::uint16_t>((tag & 0xe0) << 3)};
        } else if ((tag & 3) != 0) {
            tags[tag] = {static_cast<std::uint8_t>((tag >> 2) + 1), static_cast<std::uint8_t>((tag & 3) == 2 ? 2 : 4),
                         0};
        }
    }
    return tags;
}

inline constexpr std::array<CopyTag, 256> COPY_TAGS = copy_tags();
// The bytes of a literal with its tag, none for a copy; of a long one, whose length follows the tag, more than 61.
constexpr std::array<std::uint8_t, 256> literal_bytes() noexcept {
    std::array<std::uint8_t, 256> bytes{};
    for (unsigned tag = 0; tag < 256; tag += 4) bytes[tag] = static_cast<std::uint8_t>((tag >> 2) + 2);
    return bytes;
}

inline constexpr std::array<std::uint8_t, 256> LITERAL_BYTES = literal_bytes();
inline constexpr std::uint64_t DISTANCE_BITS[] = {0, 0xff, 0xffff, 0, 0xffffffff};  // by width

// Copies up to 64 bytes that stand `distance` before `out`, and may overlap it; 64 bytes may be written.
inline void copy_back(Byte* out, std::size_t distance, std::size_t count) noexcept {
    const Byte* const from = out - distance;
    if (distance >= 16) {
        std::memcpy(out, from, 16);
        for (std::size_t i = 16; i < count; i += 16) std::memcpy(out + i, from + i, 16);
        return;
    }
    Byte* const stop = out + count;
    // The bytes repeat: each step doubles what is there, until it is eight bytes or more.
    while (out - from < 8 && out < stop) {
        const std::size_t there = static_cast<std::size_t>(out - from);
        Byte eight[8];
        std::memcpy(eight, from, 8);
        std::memcpy(out, eight, 8);
        out += there;
    }
    for (const Byte* p = from; out < stop; out += 8, p += 8) {
        Byte eight[8];
        std::memcpy(eight, p, 8);
        std::memcpy(out, eight, 8);
    }
}

}  // namespace detail

class Unsnapper {
public:
    // The next `size` bytes of a stream, to exactly `full` bytes at `out`, with SLACK behind them.
    void begin(Stream& in, std::size_t size, Byte* out, std::size_t full) {
        in_ = &in;
        left_ = size;
        first_ = out_ = out;
        stop_ = out + full;
        std::uint64_t promised = 0;
        in.fill(std::min(size, FILL));
        for (unsigned shift = 0;; shift += 7) {
            if (left_ == 0 || in.there() == 0 || shift > 28) throw broken();
            const Byte part = *in.data();
            take(1);
            promised |= std::uint64_t{part & 0x7fu} << shift;
            if (part < 0x80) break;
        }
        if (promised != full) throw broken();
    }

    // Up to where it is decompressed.
    const Byte* at() const noexcept { return out_; }

    // Decompresses at least up to `until`, which is not behind the end.
    void run(const Byte* until) {
        while (out_ < until) {
            Quick quick = begin_quickly(until);
            while (quick.fits() && quick.step()) {
            }
            end_quickly(quick);
            if (out_ < until) step();
        }
    }

    // The same for two at once, until one of them is there. Where the next element begins is known only when this one
    // was looked at: the processor has time for another page meanwhile, and two take little longer than one.
    static void run_both(Unsnapper& one, const Byte* until, Unsnapper& other, const Byte* other_until) {
        while (one.out_ < until && other.out_ < other_until) {
            Quick quick = one.begin_quickly(until), other_quick = other.begin_quickly(other_until);
            bool goes_on = true, other_goes_on = true;
            while (goes_on && other_goes_on && quick.fits() && other_quick.fits()) {
                goes_on = quick.step();
                other_goes_on = other_quick.step();
            }
            goes_on = goes_on && quick.fits();
            other_goes_on = other_goes_on && other_quick.fits();
            one.end_quickly(quick);
            other.end_quickly(other_quick);
            if (!goes_on && one.out_ < until) one.step();
            if (!other_goes_on && other.out_ < other_until) other.step();
        }
    }

    // Decompresses the rest, behind which nothing may stand.
    void finish() {
        run(stop_);
        if (left_ != 0) throw broken();
    }

private:
    static constexpr std::size_t FILL = 256, LONGEST = 64;  // bytes of an element, but for long literals
    static Damaged broken() { return Damaged("a page that Snappy cannot decompress"); }

    void take(std::size_t size) noexcept {
        in_->consume(size);
        left_ -= size;
    }

    // Elements that fit what is there on both sides: in each step a literal, if one comes next, and the copy behind it.
    // Where a copy follows a copy, an empty literal is before it: a branch that depends on the data would be
    // mispredicted so often that its cost is that of both.
    struct Quick {
        Quick(const Unsnapper& of, const Byte* until) noexcept
            : p(of.in_->data()),
              out(of.out_),
              first(of.first_),
              p_end(p + std::min(of.left_, of.in_->there())),
              out_end(of.stop_) {
            const auto most = static_cast<std::ptrdiff_t>(2 * LONGEST);
            p_end -= std::min(most, p_end - p);
            out_end -= std::min(most - 1, out_end - out);
            if (until < out_end) out_end = until;
        }

        bool fits() const noexcept { return p < p_end && out < out_end; }

        // False where an element needs every check.
        FTPRL_INSIDE bool step() noexcept {
            const std::size_t skipped = detail::LITERAL_BYTES[*p];
            std::memcpy(out, p + 1, 16);
            if (skipped > 17) {
                if (skipped > 61) return false;
                std::memcpy(out + 16, p + 17, 16);
                std::memcpy(out + 32, p + 33, 16);
                std::memcpy(out + 48, p + 49, 16);
            }
            p += skipped;
            out += skipped - (skipped != 0 ? 1 : 0);
            const Byte tag = *p;
            const std::size_t width = tag & 3u;
            if (width == 0) return true;
            const detail::CopyTag copy = detail::COPY_TAGS[tag];
            const std::size_t distance =
                copy.high | static_cast<std::size_t>(ftprl::detail::load4(p + 1) & detail::DISTANCE_BITS[copy.width]);
            if (distance - 1 >= static_cast<std::size_t>(out - first)) return false;  // none, or too far
            if (distance >= 16 && copy.count <= 16) {
                std::memcpy(out, out - distance, 16);
            } else {
                detail::copy_back(out, distance, copy.count);
            }
            p += width == 3 ? 5 : width + 1;
            out += copy.count;
            return true;
        }

        const Byte* p;
        Byte* out;
        const Byte* first;
        const Byte* p_end;
        const Byte* out_end;
    };

    Quick begin_quickly(const Byte* until) {
        in_->fill(std::min(left_, FILL));
        return Quick(*this, until);
    }
    void end_quickly(const Quick& quick) noexcept {
        take(static_cast<std::size_t>(quick.p - in_->data()));
        out_ = quick.out;
    }

    // One element, with every check.
    void step() {
        if (left_ == 0) throw broken();
        const Byte tag = *in_->data();
        take(1);
        const auto scratch = static_cast<std::size_t>(stop_ - out_);
        if ((tag & 3) == 0) {
            std::size_t count = (tag >> 2) + std::size_t{1};
            if (count > 60) count = number(count - 60) + 1;
            if (count > left_ || count > scratch) throw broken();
            while (count > 0) {
                in_->fill(1);
                const std::size_t part = std::min(count, in_->there());
                std::memcpy(out_, in_->data(), part);
                out_ += part;
                count -= part;
                take(part);
            }
            return;
        }
        const detail::CopyTag copy = detail::COPY_TAGS[tag];
        const std::size_t distance = copy.high | number(copy.width);
        if (distance == 0 || distance > static_cast<std::size_t>(out_ - first_) || copy.count > scratch) throw broken();
        for (std::size_t i = 0; i < copy.count; ++i) out_[i] = (out_ - distance)[i];
        out_ += copy.count;
    }

    std::size_t number(std::size_t width) {
        if (left_ < width) throw broken();
        std::size_t value = 0;
        for (std::size_t i = 0; i < width; ++i) value |= std::size_t{in_->data()[i]} << (8 * i);
        take(width);
        return value;
    }

    Stream* in_ = nullptr;
    std::size_t left_ = 0;  // compressed bytes
    const Byte* first_ = nullptr;
    Byte* out_ = nullptr;
    const Byte* stop_ = nullptr;
};

}  // namespace ftprl::parquet
