// A sample of the first rows of a column: how many of its cells are numbers, dates, words for true and false, or
// missing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "readers/cells.hpp"
#include "readers/split.hpp"
#include "support/hash.hpp"

namespace ftprl {

// A counter of different hashes.
class DistinctCounter {
public:
    void add(std::uint64_t hash) {
        hash += hash == 0 ? 1 : 0;  // 0 is a free entry
        if (4 * (count_ + 1) > 3 * hashes_.size()) grow();
        count_ += put(hash) ? 1 : 0;
    }
    std::size_t count() const noexcept { return count_; }

private:
    bool put(std::uint64_t hash) noexcept {
        const std::size_t mask = hashes_.size() - 1;
        std::size_t at = hash & mask;
        while (hashes_[at] != 0 && hashes_[at] != hash) at = (at + 1) & mask;
        const bool is_new = hashes_[at] == 0;
        hashes_[at] = hash;
        return is_new;
    }
    void grow() {
        std::vector<std::uint64_t> old(hashes_.empty() ? 16 : 2 * hashes_.size(), 0);
        old.swap(hashes_);
        for (const std::uint64_t hash : old) {
            if (hash != 0) put(hash);
        }
    }

    std::vector<std::uint64_t> hashes_;
    std::size_t count_ = 0;
};

struct ColumnSample {
    std::int64_t cells = 0;
    std::int64_t empty = 0;
    std::int64_t absent = 0;  // empty, or a spelling of "not available"
    std::int64_t numbers = 0;
    std::int64_t whole = 0;     // numbers without a fraction
    std::int64_t booleans = 0;  // true, false, 1 or 0
    std::int64_t dates = 0;
    std::int64_t times = 0;    // dates with another time than midnight
    std::int64_t commas = 0;   // numbers with a decimal comma
    std::int64_t spaced = 0;   // text with a blank inside
    std::int64_t signs = 0;    // numbers with a sign of a currency or of percent
    std::int64_t slashes = 0;  // dates with slashes or points, such as 31/12/2024
    std::int64_t points = 0;   // whole numbers with a decimal point, such as 1.0
    DistinctCounter distinct;
    double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
    std::int64_t first = LAST_SECOND, last = FIRST_SECOND;  // of the dates
    std::string example;                                    // the first cell that is not missing
    std::vector<double> values;                             // the numbers, if asked for
    std::vector<std::string> labels;                        // the first distinct cells, if asked for
    bool keeps_values = false;

    void add(const Field& cell) {
        ++cells;
        if (cell.data == cell.end) ++empty;
        const Field field = trimmed(cell);
        if (is_absent(field)) {
            ++absent;
            if (cell.data != cell.end) distinct.add(hash_of(cell));
            return;
        }
        distinct.add(hash_of(cell));
        if (example.empty()) set_example(field);
        double number = 0.0;
        const Parsed parsed = parse_number(field.data, field.end, number);
        if (parsed == Parsed::ok && number == std::floor(number) && find(field.data, field.end, '.') != field.end)
            ++points;
        if (parsed != Parsed::malformed) return add_number(parsed == Parsed::ok, number);
        add_word(field);
    }

    void set_example(const Field& field) {
        example.assign(field.data, field.end - field.data > 40 ? field.data + 40 : field.end);
    }

    // Adds a finite number that its text represents exactly; no cell of the column may also come as text.
    void add_exact(double number) {
        ++cells;
        std::uint64_t bits = 0;
        std::memcpy(&bits, &number, sizeof bits);
        distinct.add(detail::mix(bits));
        add_number(true, number);
    }

    // Adds one cell several times.
    void add(const Field& cell, std::int64_t times_met) {
        std::int64_t* const counts[] = {&cells, &empty,  &absent, &numbers, &whole,   &booleans, &dates,
                                        &times, &commas, &spaced, &signs,   &slashes, &points};
        std::int64_t before[std::size(counts)];
        for (std::size_t i = 0; i < std::size(counts); ++i) before[i] = *counts[i];
        const std::size_t kept = values.size();
        add(cell);
        for (std::size_t i = 0; i < std::size(counts); ++i) *counts[i] += (times_met - 1) * (*counts[i] - before[i]);
        for (std::int64_t i = 1; i < times_met && values.size() > kept; ++i) values.push_back(values[kept]);
    }

    // Adds a date or time that is not text.
    void add_instant(std::int64_t seconds) {
        ++cells;
        distinct.add(detail::mix(static_cast<std::uint64_t>(seconds)));
        if (seconds >= FIRST_SECOND && seconds <= LAST_SECOND) add_date(seconds);
    }

    void add_date(std::int64_t seconds) {
        ++dates;
        if (seconds % DAY_SECONDS != 0) ++times;
        first = std::min(first, seconds);
        last = std::max(last, seconds);
    }

    void add_label(const Field& cell, std::size_t most) {
        const Field field = trimmed(cell);
        if (field.data == field.end || labels.size() >= most) return;
        std::string text(field.data, field.end);
        if (std::find(labels.begin(), labels.end(), text) == labels.end()) labels.push_back(std::move(text));
    }

private:
    static std::uint64_t hash_of(const Field& field) {
        return hash_from(0, field.data, static_cast<std::size_t>(field.end - field.data));
    }

    void add_number(bool is_finite, double number) {
        ++numbers;
        if (!is_finite) return;
        low = std::min(low, number);
        high = std::max(high, number);
        if (number == std::floor(number)) ++whole;
        if (number == 0.0 || number == 1.0) ++booleans;
        if (keeps_values) values.push_back(number);
    }

    void add_word(const Field& field) {
        const auto size = static_cast<std::size_t>(field.end - field.data);
        bool truth = false;
        std::int64_t seconds = 0;
        if (size >= 4 && size <= 5 && parse_boolean(field, truth)) ++booleans;
        if (detail::is_digit(*field.data) && parse_date(field.data, field.end, seconds) == DateParsed::ok) {
            add_date(seconds);
        } else if (const Byte* comma = find(field.data, field.end, ','); comma != field.end) {
            std::string text(field.data, field.end);
            text[static_cast<std::size_t>(comma - field.data)] = '.';
            double number = 0.0;
            const auto* p = reinterpret_cast<const Byte*>(text.data());
            if (parse_number(p, p + size, number) == Parsed::ok) ++commas;
        }
        if (find(field.data, field.end, ' ') != field.end) ++spaced;
        if (is_slashed_date(field)) ++slashes;
        if (is_number_with_sign(field)) ++signs;
    }

    // 31/12/2024, 12/31/24, 31.12.2024: the month is ambiguous.
    static bool is_slashed_date(const Field& field) {
        std::size_t parts = 0, digits = 0;
        Byte mark = 0;
        for (const Byte* p = field.data; p != field.end && *p != ' '; ++p) {
            if (detail::is_digit(*p)) {
                if (++digits > 4) return false;
            } else if ((*p == '/' || *p == '.') && digits != 0 && digits <= 2 && (mark == 0 || *p == mark)) {
                mark = *p;
                ++parts;
                digits = 0;
            } else {
                return false;
            }
        }
        return parts == 2 && (digits == 2 || digits == 4);
    }

    // $1,200.50 or 3.5 %.
    static bool is_number_with_sign(const Field& field) {
        static constexpr const char* signs[] = {"$", "%", "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5"};
        std::string text(field.data, field.end);
        bool has_sign = false;
        for (const char* sign : signs) {
            const std::size_t at = text.find(sign);
            if (at == std::string::npos) continue;
            text.erase(at, std::strlen(sign));
            has_sign = true;
        }
        if (!has_sign) return false;
        text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == ' ' || c == ','; }), text.end());
        double number = 0.0;
        const auto* p = reinterpret_cast<const Byte*>(text.data());
        return !text.empty() && parse_number(p, p + text.size(), number) == Parsed::ok;
    }
};

// Reads up to `most` whole rows with as many fields as there are samples, and the first `distinct` labels of column
// number `label`. Returns the number of rows read.
inline std::int64_t sample_columns(const Byte* p, const Byte* end, bool last, const Dialect& dialect, std::int64_t most,
                                   std::size_t distinct, std::size_t label, std::vector<ColumnSample>& samples) {
    Splitter split(dialect);
    std::int64_t count = 0;
    while (p != end && count < most) {
        const Split result = split(p, end, last);
        if (result == Split::cut || result == Split::unclosed) break;
        p = split.next;
        if (result == Split::stray || split.fields.size() != samples.size() || split.is_empty()) continue;
        ++count;
        for (std::size_t i = 0; i < samples.size(); ++i) {
            samples[i].add(split.fields[i]);
            if (i == label) samples[i].add_label(split.fields[i], distinct);
        }
    }
    return count;
}

}  // namespace ftprl
