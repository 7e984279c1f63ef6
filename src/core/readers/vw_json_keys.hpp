// What the keys of VW's JSON stand for, and the bytes that may not be part of a name in VW text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "readers/names.hpp"
#include "readers/scan.hpp"
#include "readers/split.hpp"

namespace ftprl {

// `nothing` is left out; `several` is for formats with several examples a line, which are refused.
enum class VwJsonRole : std::uint8_t {
    feature,
    label,
    label_value,
    label_weight,
    label_other,
    tag,
    text,
    nothing,
    several
};

namespace detail {

// What becomes of the bytes of a text in the name of a feature: those that separate names become '_'.
struct VwNameBytes {
    std::array<Byte, 256> of{};
    constexpr VwNameBytes() {
        for (std::size_t i = 0; i < of.size(); ++i) {
            const bool separates = i == ' ' || i == '\t' || i == '|' || i == ':';
            of[i] = static_cast<Byte>(separates ? '_' : i);
        }
    }
};
inline constexpr VwNameBytes VW_NAME_BYTES{};

inline bool is_ignoring_case(const std::string& key, const char* lower) {
    std::size_t i = 0;
    for (; i < key.size() && lower[i] != '\0'; ++i) {
        const char c = key[i] >= 'A' && key[i] <= 'Z' ? static_cast<char>(key[i] - 'A' + 'a') : key[i];
        if (c != lower[i]) return false;
    }
    return i == key.size() && lower[i] == '\0';
}

}  // namespace detail

// What a key within the label stands for.
inline VwJsonRole vw_label_part(const std::string& key) {
    return detail::is_ignoring_case(key, "label")    ? VwJsonRole::label_value
           : detail::is_ignoring_case(key, "weight") ? VwJsonRole::label_weight
                                                     : VwJsonRole::label_other;
}

// What a key outside of the label stands for.
inline VwJsonRole vw_role_of(const Field& field) {
    if (field.data == field.end || *field.data != '_') return VwJsonRole::feature;
    const std::string key(field.data, field.end);
    if (key == "_label") return VwJsonRole::label;
    if (key.compare(0, 7, "_label_") == 0) return vw_label_part(key.substr(7));
    if (key == "_text") return VwJsonRole::text;
    if (detail::is_ignoring_case(key, "_tag")) return VwJsonRole::tag;
    const bool is_several = key == "_multi" || key == "_slots" || key.compare(0, 6, "_label") == 0;
    return is_several ? VwJsonRole::several : VwJsonRole::nothing;
}

// Whether a text has bytes that separate names in VW text.
inline bool has_vw_separator(const Field& text) noexcept {
    const Byte* p = text.data;
#if defined(FTPRL_SSE2)
    if (text.end - p <= 16 && text.limit - p >= 16) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        const __m128i blank =
            _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(' ')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t')));
        const __m128i mark =
            _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('|')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8(':')));
        const auto match = static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(blank, mark)));
        return (match & ((1u << (text.end - p)) - 1)) != 0;
    }
#endif
    for (; p != text.end; ++p) {
        if (detail::VW_NAME_BYTES.of[*p] != *p) return true;
    }
    return false;
}

}  // namespace ftprl
