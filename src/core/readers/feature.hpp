// A feature of a row and its group, from which its name is built.
#pragma once

#include <cstdint>

#include "readers/grams.hpp"
#include "readers/scan.hpp"

namespace ftprl {

// A column or a namespace: its name, and the separator between it and the text of a feature (0 for none). The caller
// owns the name. Features of a namespace with a common beginning `key` also form a group.
struct FeatureGroup {
    const Byte* name;
    std::uint32_t size;
    Byte joint;
    std::uint64_t terms = 0;          // of interactions that mean it, a bit each
    const GramRule* grams = nullptr;  // of its features, if there are any
    const Byte* key = nullptr;
    std::uint32_t key_size = 0;
};

// The text of the feature, null if its name is the group's name, as for a column of numbers.
struct Feature {
    std::uint64_t hash;
    const Byte* text;
    std::uint32_t size;
    std::uint32_t group;
};

// A source of texts for features whose `text` is TEXT_LATER: it is asked when such a name is recorded, before the row
// is over. The source defines the meaning of `size`.
inline constexpr Byte TEXT_LATER[] = {0};
class FeatureTexts {
public:
    virtual Feature with_text(const Feature& feature) = 0;

protected:
    ~FeatureTexts() = default;
};

}  // namespace ftprl
