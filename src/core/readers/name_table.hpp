// All names of a model by their hashes, in the order of their first rows, as long as they fit into a budget of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "readers/features.hpp"
#include "readers/scan.hpp"

namespace ftprl {

class NameTable {
public:
    static constexpr std::size_t OVERHEAD = 12;  // bytes that a name counts for besides its own

    explicit NameTable(std::uint64_t budget) : budget_(budget), places_(FIRST_PLACES) {}

    std::vector<std::uint64_t> hashes;
    std::vector<std::uint64_t> ends;  // of the texts
    std::vector<Byte> text;

    std::uint64_t budget() const noexcept { return budget_; }
    std::uint64_t bytes() const noexcept { return text.size() + OVERHEAD * hashes.size(); }
    // Whether a name did not fit: none is added after it.
    bool is_full() const noexcept { return is_full_; }
    void set_full() noexcept { is_full_ = true; }

    // Adds the names first met in rows [from, to) of a batch, and returns the row of the first that does not fit, or
    // `to`.
    std::size_t add(const NewNames& names, std::size_t from, std::size_t to) {
        const std::size_t end = names.first_of(to);
        for (std::size_t i = names.first_of(from); i < end && !is_full_; ++i) {
            if (i + AHEAD < end) fetch(names[i + AHEAD].hash);
            if (!add(names[i].hash, names.text(names[i]), names[i].size)) return names[i].row;
        }
        return to;
    }

    // Adds one name, unless it is known; false when it does not fit.
    bool add(std::uint64_t hash, const Byte* name, std::size_t size) {
        const std::size_t place = place_of(hash);
        if (places_[place] != 0) return true;
        if (is_full_ || bytes() + OVERHEAD + size > budget_ || hashes.size() == LOW) {
            is_full_ = true;
            return false;
        }
        hashes.push_back(hash);
        places_[place] = entry_of(hash, hashes.size());
        text.insert(text.end(), name, name + size);
        ends.push_back(text.size());
        if (2 * hashes.size() > places_.size()) grow();
        return true;
    }

private:
    static constexpr std::size_t FIRST_PLACES = 4096;
    static constexpr std::size_t AHEAD = 16;
    static constexpr std::uint64_t LOW = 0xffffffffu;

    // What a name is known by, and 1 + its number.
    static std::uint64_t entry_of(std::uint64_t hash, std::size_t number) noexcept {
        return (hash & NAME_BITS) << 32 | number;
    }

    void fetch(std::uint64_t hash) const noexcept {
#if defined(__GNUC__)
        __builtin_prefetch(&places_[hash & (places_.size() - 1)]);
#endif
    }

    // The place of a hash, or where it would go.
    std::size_t place_of(std::uint64_t hash) const noexcept {
        const std::size_t mask = places_.size() - 1;
        std::size_t at = hash & mask;
        while (places_[at] != 0 && !is_at(places_[at], hash)) at = (at + 1) & mask;
        return at;
    }
    static bool is_at(std::uint64_t entry, std::uint64_t hash) noexcept { return (entry >> 32) == (hash & NAME_BITS); }

    void grow() {
        places_.assign(4 * places_.size(), 0);
        for (std::size_t i = 0; i < hashes.size(); ++i) {
            if (i + AHEAD < hashes.size()) fetch(hashes[i + AHEAD]);
            places_[place_of(hashes[i])] = entry_of(hashes[i], i + 1);
        }
    }

    std::uint64_t budget_;
    bool is_full_ = false;
    std::vector<std::uint64_t> places_;  // by the low bits of a hash; 0 where there is none
};

}  // namespace ftprl
