// The cells of a table that have a name, a bit each.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "support/memory.hpp"

namespace ftprl {

class NamedCells {
public:
    // The bits as loops look at them.
    struct View {
        const std::uint64_t* words;

        bool has(std::uint32_t cell) const noexcept { return (words[cell >> 6] >> (cell & 63) & 1) != 0; }
    };

    // Makes space for the cells of a table, none of which has a name.
    void allocate(std::uint64_t cells) {
        words_ = std::make_unique<Memory>((cells + 63) / 64 * sizeof(std::uint64_t));
        if (words_->size() > LARGE) words_->use_small_pages();
    }
    bool is_allocated() const noexcept { return words_ != nullptr; }
    void release() noexcept { words_.reset(); }

    View view() const noexcept { return View{words()}; }
    bool has(std::uint32_t cell) const noexcept { return view().has(cell); }
    // True if the cell has a name already; from now on it has one.
    bool add(std::uint32_t cell) noexcept {
        std::uint64_t& word = words()[cell >> 6];
        const std::uint64_t bit = std::uint64_t{1} << (cell & 63);
        return (std::exchange(word, word | bit) & bit) != 0;
    }

private:
    static constexpr std::size_t LARGE = std::size_t{1} << 24;  // bytes, of which few will be touched

    std::uint64_t* words() const noexcept { return static_cast<std::uint64_t*>(words_->data()); }

    std::unique_ptr<Memory> words_;
};

}  // namespace ftprl
