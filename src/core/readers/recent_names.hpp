// Names that a parser met before, known by bits of their hashes, so that each is mostly recorded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "support/memory.hpp"

namespace ftprl {

// A name is known by these bits of its hash, the lowest: two names that agree in them count as one. In a table of 2^22
// cells they then share their cell, too, and of those that do one in 256 is not counted.
inline constexpr std::uint64_t NAME_BITS = (std::uint64_t{1} << 30) - 1;

inline void prefetch(const void* address) noexcept {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#else
    (void)address;
#endif
}

// Names that were met before, four in a set of 64 bits: a new one takes the place of the one that came longest ago.
class NameFilter {
public:
    // So many sets, a power of two of at least 2^15; and none of them has a name.
    void allocate(std::size_t sets) {
        sets_ = std::make_unique<Memory>(sets * sizeof(std::uint64_t));
        mask_ = sets - 1;
    }
    void release() noexcept { sets_.reset(); }
    bool is_allocated() const noexcept { return sets_ != nullptr; }

    bool has(std::uint64_t hash) const noexcept { return has_tag(set_of(hash), tag_of(hash)); }
    void add(std::uint64_t hash) noexcept { set_of(hash) = set_of(hash) << 16 | tag_of(hash); }
    void fetch(std::uint64_t hash) const noexcept { prefetch(&set_of(hash)); }

private:
    static constexpr std::uint64_t TAG_BITS = NAME_BITS >> 15;
    static_assert(TAG_BITS == 0x7fff, "a tag has 16 bits, one of which says that it is there");

    std::uint64_t& set_of(std::uint64_t hash) const noexcept {
        return static_cast<std::uint64_t*>(sets_->data())[hash & mask_];
    }
    static std::uint64_t tag_of(std::uint64_t hash) noexcept { return (hash >> 15 & TAG_BITS) | 0x8000; }
    // Whether one of four tags of 16 bits is this one; where there is no tag it is 0.
    static bool has_tag(std::uint64_t set, std::uint64_t tag) noexcept {
        constexpr std::uint64_t ones = 0x0001000100010001u;
        const std::uint64_t differs = set ^ (tag * ones);
        return ((differs - ones) & ~differs & (ones << 15)) != 0;
    }

    std::unique_ptr<Memory> sets_;  // on a huge page, if it is that large: sets are met in any order
    std::size_t mask_ = 0;
};

// Names met lately, one at a bucket of 16 bits. A bucket and what stands there are all bits that a name is known by.
// Most features of most rows are found here, in the second-nearest cache, and then nothing is written.
class RecentNames {
public:
    static constexpr unsigned BITS = 18;
    static constexpr std::uint64_t BUCKETS = std::uint64_t{1} << BITS;

    void allocate() {
        buckets_ = std::make_unique<Memory>(BUCKETS * sizeof(std::uint16_t));
        for (std::uint64_t i = 0; i < BUCKETS; ++i) view().drop(i);
    }
    void release() noexcept { buckets_.reset(); }
    bool is_allocated() const noexcept { return buckets_ != nullptr; }

    struct View {
        std::uint16_t* buckets;

        bool has(std::uint64_t hash) const noexcept { return buckets[hash & (BUCKETS - 1)] == tag_of(hash); }
        void add(std::uint64_t hash) const noexcept { buckets[hash & (BUCKETS - 1)] = tag_of(hash); }
        // Leaves nothing at the bucket of a name: what no name with this bucket has there.
        void drop(std::uint64_t hash) const noexcept {
            buckets[hash & (BUCKETS - 1)] = static_cast<std::uint16_t>(~tag_of(hash));
        }
        void fetch(std::uint64_t hash) const noexcept { prefetch(buckets + (hash & (BUCKETS - 1))); }
    };
    View view() const noexcept { return View{static_cast<std::uint16_t*>(buckets_->data())}; }

private:
    // The highest bits that a name is known by, some of which say no more than the bucket does: no name has all of
    // them the other way round.
    static constexpr unsigned SHIFT = 14;
    static_assert(NAME_BITS >> SHIFT == 0xffff && SHIFT < BITS,
                  "bucket and tag are all bits of a name, and share some");
    static std::uint16_t tag_of(std::uint64_t hash) noexcept { return static_cast<std::uint16_t>(hash >> SHIFT); }

    std::unique_ptr<Memory> buckets_;
};

}  // namespace ftprl
