// Hashes of names that a parser has recorded, so that most names are recorded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "readers/scan.hpp"
#include "support/memory.hpp"

namespace ftprl {

// One whole hash per entry, so that no name is mistaken for another; a new name replaces the old one. The hash 0 means
// empty, and counts as unknown.
class KnownNames {
public:
    static constexpr std::size_t FEW = std::size_t{1} << 17, MANY = std::size_t{1} << 20;

    // The lookup table, which loops keep in registers.
    struct View {
        std::uint64_t* hashes;
        std::uint64_t mask;

        bool has(std::uint64_t hash) const noexcept { return hashes[hash & mask] == hash && hash != 0; }
        void fetch(std::uint64_t hash) const noexcept { prefetch(hashes + (hash & mask)); }
    };

    bool is_allocated() const noexcept { return hashes_ != nullptr; }
    // Makes space for few names, and forgets all.
    void allocate() { allocate(FEW); }
    void release() noexcept { hashes_.reset(); }
    // Makes space for many names, and keeps the known ones.
    void grow() {
        if (mask_ + 1 == MANY) return;
        const std::unique_ptr<Memory> before = std::move(hashes_);
        const auto* const old = static_cast<const std::uint64_t*>(before->data());
        allocate(MANY);
        for (std::size_t i = 0; i < FEW; ++i) add(old[i]);
    }

    View view() const noexcept { return View{static_cast<std::uint64_t*>(hashes_->data()), mask_}; }
    bool has(std::uint64_t hash) const noexcept { return view().has(hash); }
    // True if the name was known; it is known from now on.
    bool add(std::uint64_t hash) const noexcept {
        const View view = this->view();
        return std::exchange(view.hashes[hash & view.mask], hash) == hash && hash != 0;
    }

private:
    void allocate(std::size_t places) {
        hashes_ = std::make_unique<Memory>(places * sizeof(std::uint64_t));
        mask_ = places - 1;
    }

    std::unique_ptr<Memory> hashes_;  // on a huge page, if it is that large: hashes are met in any order
    std::uint64_t mask_ = 0;
};

}  // namespace ftprl
