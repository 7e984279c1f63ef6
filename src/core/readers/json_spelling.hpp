// Numbers, true and false of JSON as texts of categories.
#pragma once

#include <cstring>

#include "readers/number.hpp"
#include "readers/split.hpp"
#include "readers/values.hpp"

namespace ftprl {

// A number as other readers of JSON would spell it as a category: whole numbers as they are, others as Python does.
inline Field spelled(const Field& number, char (&scratch)[LONGEST_VALUE]) {
    for (const Byte* p = number.data; p != number.end; ++p) {
        if (*p != '.' && *p != 'e' && *p != 'E') continue;
        double value = 0.0;
        if (parse_number(number.data, number.end, value) != Parsed::ok) break;
        const auto* const end = reinterpret_cast<const Byte*>(write_value(scratch, value));
        return Field{reinterpret_cast<const Byte*>(scratch), end, end};
    }
    const bool is_minus_zero = number.end - number.data == 2 && number.data[0] == '-' && number.data[1] == '0';
    return is_minus_zero ? Field{number.data + 1, number.end, number.limit} : number;
}

inline Field spelled(bool value) {
    const char* const word = value ? "true" : "false";
    const auto* const first = reinterpret_cast<const Byte*>(word);
    return Field{first, first + std::strlen(word), first + std::strlen(word)};
}

}  // namespace ftprl
