// The cells of a table that hashes map to.
#pragma once

#include <cstdint>

#include "support/hash.hpp"

namespace ftprl {

// The cell of a hash in a table of `dim` cells: the low bits if dim is a power of two, else the high half of hash *
// dim. With an intercept the last cell is reserved for it; a name that maps there takes the cell before it.
class Slots {
public:
    Slots(std::uint64_t dim, bool intercept) noexcept
        : dim_(dim), power_((dim & (dim - 1)) == 0), kept_(intercept ? dim - 1 : ~std::uint64_t{0}) {}

    std::uint32_t operator()(std::uint64_t hash) const noexcept {
        std::uint64_t slot = hash & (dim_ - 1);
        if (!power_) slot = detail::fold(hash, dim_) ^ (hash * dim_);
        return static_cast<std::uint32_t>(slot - (slot == kept_ ? 1 : 0));
    }
    // True if a slot is just the low bits of a hash; then `mask` selects them.
    bool masked() const noexcept { return power_ && !intercept(); }
    std::uint64_t mask() const noexcept { return dim_ - 1; }
    std::uint64_t dim() const noexcept { return dim_; }
    bool intercept() const noexcept { return kept_ == dim_ - 1; }
    std::uint64_t feature_cells() const noexcept { return dim_ - (intercept() ? 1 : 0); }  // cells open to features

private:
    std::uint64_t dim_;
    bool power_;
    std::uint64_t kept_;
};

}  // namespace ftprl
