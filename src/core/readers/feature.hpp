// A feature of a row and the group that it belongs to, by which its name is put together.
#pragma once

#include <cstdint>

#include "readers/grams.hpp"
#include "readers/scan.hpp"

namespace ftprl {

// A column or a namespace: its name, and what stands between that and the text of a feature (0 for nothing). The name
// belongs to somebody else. Some features of a namespace may have a common beginning, `key`: they are a group, too.
struct FeatureGroup {
    const Byte* name;
    std::uint32_t size;
    Byte joint;
    std::uint64_t terms = 0;          // of interactions that mean it, a bit each
    const GramRule* grams = nullptr;  // of its features, if there are any
    const Byte* key = nullptr;
    std::uint32_t key_size = 0;
};

// The text of a feature that is called like its group, such as a column of numbers, is null.
struct Feature {
    std::uint64_t hash;
    const Byte* text;
    std::uint32_t size;
    std::uint32_t group;
};

// Knows the text of features whose `text` is TEXT_LATER: it is asked for when such a name is recorded, before the row
// is over. What `size` means is up to the source.
inline constexpr Byte TEXT_LATER[] = {0};
class FeatureTexts {
public:
    virtual Feature with_text(const Feature& feature) = 0;

protected:
    ~FeatureTexts() = default;
};

}  // namespace ftprl
