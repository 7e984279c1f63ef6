// The numbers of some slots in a list: few of the cells of a large table, which lie side by side in a small one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ftprl {

class SlotIndex {
public:
    // The slots, each once.
    SlotIndex(const std::uint32_t* slots, std::size_t count) : count_(static_cast<std::uint32_t>(count)) {
        int bits = 1;
        while ((std::size_t{1} << bits) < 2 * count) ++bits;
        shift_ = 32 - bits;
        entries_.resize(std::size_t{1} << bits, Entry{0, NONE});
        for (std::uint32_t i = 0; i < count_; ++i) {
            std::size_t at = home(slots[i]);
            while (entries_[at].number != NONE) at = (at + 1) & (entries_.size() - 1);
            entries_[at] = {slots[i], i};
        }
    }

    // The number of a slot; one more than the last for all that are not in the list.
    std::uint32_t operator[](std::uint32_t slot) const noexcept {
        for (std::size_t at = home(slot);; at = (at + 1) & (entries_.size() - 1)) {
            const Entry entry = entries_[at];
            if (entry.number == NONE) return count_;
            if (entry.slot == slot) return entry.number;
        }
    }

private:
    struct Entry {
        std::uint32_t slot, number;
    };
    static constexpr std::uint32_t NONE = 0xffffffff;

    std::size_t home(std::uint32_t slot) const noexcept {
        return static_cast<std::uint32_t>(slot * 2654435769u) >> shift_;  // by the golden ratio
    }

    std::uint32_t count_;
    int shift_;
    std::vector<Entry> entries_;
};

}  // namespace ftprl
