// The format of feature names in a file of batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "readers/new_names.hpp"

namespace ftprl {

// A name in a file of batches: its hash, its row and its size; all texts follow. The highest bit of the size marks an
// interaction, the highest bit of their number that none is missing.
struct PackedName {
    static constexpr std::uint32_t PRODUCT = 0x80000000u;
    static constexpr std::uint64_t COMPLETE = std::uint64_t{1} << 63;

    std::uint64_t hash;
    std::uint32_t row;
    std::uint32_t size;
};

// Packs the names of rows [from, to), with rows counted from `from`.
inline std::string pack_names(const NewNames& names, std::size_t from, std::size_t to) {
    const std::size_t first = names.first_of(from), end = names.first_of(to);
    const std::uint64_t head = (end - first) | (names.is_complete() ? PackedName::COMPLETE : 0);
    std::string text(reinterpret_cast<const char*>(&head), sizeof(head));
    for (std::size_t i = first; i < end; ++i) {
        const PackedName name{names[i].hash, names[i].row - static_cast<std::uint32_t>(from),
                              names[i].size | (names[i].is_product != 0 ? PackedName::PRODUCT : 0)};
        text.append(reinterpret_cast<const char*>(&name), sizeof(name));
    }
    for (std::size_t i = first; i < end; ++i) {
        text.append(reinterpret_cast<const char*>(names.text_of(names[i])), names[i].size);
    }
    return text;
}

// Reads the bytes of `pack_names`; no value if they are incomplete.
inline std::optional<NewNames> unpack_names(const Byte* data, std::size_t size) {
    std::uint64_t count = 0;
    if (size < sizeof(count)) return {};
    std::memcpy(&count, data, sizeof(count));
    const bool is_complete = (count & PackedName::COMPLETE) != 0;
    count &= ~PackedName::COMPLETE;
    if (count > (size - sizeof(count)) / sizeof(PackedName)) return {};
    std::size_t text = sizeof(count) + count * sizeof(PackedName);
    NewNames names;
    if (is_complete) names.set_complete();
    std::uint32_t row = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        PackedName name{};
        std::memcpy(&name, data + sizeof(count) + i * sizeof(name), sizeof(name));
        const bool is_product = (name.size & PackedName::PRODUCT) != 0;
        name.size &= ~PackedName::PRODUCT;
        if (name.row < row || name.size > size - text) return {};
        row = name.row;
        names.add(name.hash, name.row, data + text, name.size, is_product);
        text += name.size;
    }
    if (text != size) return {};
    return names;
}

}  // namespace ftprl
