// The libsvm format:   [label] [qid:n] id:value ...  # comment
//
// An id is the cell of the table, as it stands: files that count from 0 and from 1 are both read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "readers/number.hpp"
#include "readers/parser.hpp"

namespace ftprl {

class LibsvmParser final : public LineParser {
public:
    LibsvmParser(const Options& options, Labels labels)
        : LineParser(options, std::move(labels), DelimiterIndex(std::array<Byte, 5>{' ', '\t', ':', '\n', '#'})) {}

protected:
    void parse(const Byte* p, const Byte* eol, const Byte* end) override {
        eol = find(p, eol, '#');
        while (eol != p && is_blank(eol[-1])) --eol;
        if (p == eol) return;
        double y = MISSING;
        const Byte* stop = token(p, eol, end);
        if (stop == eol || *stop != ':') {
            Fault fault;
            if (!labels_.read(p, stop, y, fault)) return refuse(std::move(fault));
            p = stop;
        }
        const std::size_t capacity = static_cast<std::size_t>(eol - p) / 3 + 1;
        rows.begin(capacity);
        if (parse_fast(p, eol, end)) return finish(y, 1.0);
        rows.begin(capacity);
        for (p = skip_blanks(p, eol); p != eol; p = skip_blanks(p, eol)) {
            p = parse_pair(p, eol, end);
            if (p == nullptr) return;
        }
        finish(y, 1.0);
    }

private:
    // Reads pairs `id:1` of up to eight digits, each followed by a blank, which most rows consist of. Returns their
    // number; `from` is then the start of the next pair, and `delimiter` the delimiter after its id. A separate
    // function, because inlining it would take registers from the rest.
#if defined(__GNUC__)
    __attribute__((noinline))
#endif
    static std::size_t unit_pairs(const Byte* base, std::size_t& from, std::uint32_t*& delimiter, std::size_t last,
                                  std::uint64_t cells, std::uint32_t* out) noexcept {
        constexpr std::uint64_t one = ':' | '1' << 8 | ' ' << 16;
        const std::uint32_t* const first = out;
        std::uint32_t* next = delimiter;
        std::size_t at = from;
        for (;;) {
            const std::size_t colon = *next;
            std::uint32_t id = 0;
            // The delimiter after the colon is then the blank.
            if (colon + 2 >= last || (detail::load4(base + colon) & 0xffffff) != one) break;
            if (!parse_whole(base + at, colon - at, id) || id >= cells) break;
            *out++ = id;
            next += 2;
            at = colon + 3;
        }
        from = at;
        delimiter = next;
        return static_cast<std::size_t>(out - first);
    }

    // Reads all pairs of a row without a fault, from delimiter to delimiter; false if `parse_pair` must read them. No
    // byte at or after eol is a colon.
    bool parse_fast(const Byte* p, const Byte* eol, const Byte* end) {
        if (!index_.cover(p, eol, end)) return false;
        const Byte* const base = index_.base();
        DelimiterWalk walk{index_.positions(), static_cast<std::size_t>(eol - base)};
        const std::uint64_t cells = rows.slots().feature_cells();
        std::uint32_t* const row_slots = rows.row_slots();
        double* const row_values = rows.row_values();
        std::size_t size = 0;
        bool all_ones = true;  // every value so far is 1, and none was written
        std::size_t from = static_cast<std::size_t>(p - base);
        while (from < walk.last) {
            if (all_ones) {
                std::uint32_t* delimiter = walk.next_delimiter;
                size += unit_pairs(base, from, delimiter, walk.last, cells, row_slots + size);
                walk.next_delimiter = delimiter;
            }
            const std::size_t colon = walk.next();
            if (colon == from) {
                if (base[colon] == ':' || base[colon] == '#') return false;
                from = colon + 1;
                continue;
            }
            if (base[colon] != ':') return false;
            const std::size_t stop = walk.next();
            if (base[stop] == ':' || (base[stop] == '#' && stop != walk.last)) return false;
            std::uint32_t id = 0;
            if (parse_whole(base + from, colon - from, id)) {
                double value = 1.0;
                if (id >= cells) return false;
                if (stop != colon + 2 || base[colon + 1] != '1') {
                    if (!read_number(base + colon + 1, base + stop, value)) return false;
                    for (std::size_t i = 0; all_ones && i < size; ++i) row_values[i] = 1.0;
                    all_ones = false;
                }
                if (!all_ones) row_values[size] = value;
                row_slots[size++] = id;
            } else if (!is_query(base + from, base + colon)) {
                return false;
            }
            from = stop + 1;
        }
        rows.set_size(size);
        if (all_ones) rows.set_unit_values();
        index_.done(walk.next_delimiter);
        return true;
    }

    static bool is_query(const Byte* p, const Byte* colon) noexcept {
        return colon - p == 3 && p[0] == 'q' && p[1] == 'i' && p[2] == 'd';
    }

    // Reads one id:value; returns its end, or null if it is bad.
    const Byte* parse_pair(const Byte* p, const Byte* eol, const Byte* end) {
        const Byte* colon = token(p, eol, end);
        const Byte* stop = colon;
        while (stop != eol && !is_blank(*stop)) ++stop;
        if (colon == eol || *colon != ':') return refuse_null(Fault{"expected id:value, got " + quoted(p, stop)});
        if (is_query(p, colon)) return stop;
        std::uint64_t id = 0;
        const Byte* q = p;
        for (; q != colon && detail::is_digit(*q); ++q) {
            if (id < rows.slots().dim()) id = 10 * id + static_cast<std::uint64_t>(*q - '0');
        }
        if (q != colon || q == p) {
            return refuse_null(
                Fault{"expected a whole number before ':', got " + quoted(p, colon) + " in " + quoted(p, stop)});
        }
        if (id >= rows.slots().feature_cells()) return refuse_null(too_high(p, colon));
        double value = 0.0;
        const Parsed parsed = parse_number(colon + 1, stop, value);
        if (parsed != Parsed::ok) {
            const char* rule = parsed == Parsed::malformed ? "expected a number after ':', got "
                                                           : "expected a finite number after ':', got ";
            return refuse_null(Fault{rule + quoted(colon + 1, stop) + " in " + quoted(p, stop)});
        }
        rows.add(static_cast<std::uint32_t>(id), value);
        return stop;
    }

    Fault too_high(const Byte* p, const Byte* colon) const {
        const Slots& slots = rows.slots();
        return Fault{"expected an id below " + std::to_string(slots.feature_cells()) + ", the number of cells" +
                         (slots.intercept() ? " but for the intercept's" : "") + ", got " + quoted(p, colon),
                     "raise", "dim"};
    }

    const Byte* token(const Byte* p, const Byte* eol, const Byte* end) const {
        const Byte* stop = name_(p, end);
        return stop < eol ? stop : eol;
    }

    const Byte* refuse_null(Fault fault) {
        refuse(std::move(fault));
        return nullptr;
    }

    Finder<4> name_{{' ', '\t', ':', '\n'}};
};

}  // namespace ftprl
