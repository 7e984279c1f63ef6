// Vowpal Wabbit's text format:   [label [importance]] ['tag]|namespace[:weight] name[:value] ... |...
//
//   - A tag begins with a quote, or is the last word before the first bar and touches it.
//   - A bar followed by a blank opens the default namespace. A name of the default namespace is hashed with the
//     seed, one of namespace s with hash(s, seed) as its seed: the same name in two namespaces differs.
//   - A feature without a name (":0.5") is named by its place among those: 0, 1, ...
//   - A value is the number after the colon times the namespace's weight; without a colon it is 1.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "readers/names.hpp"
#include "readers/number.hpp"
#include "readers/parser.hpp"
#include "support/hash.hpp"

namespace ftprl {

class VwParser final : public LineParser {
public:
    VwParser(const Options& options, Labels labels)
        : LineParser(options, std::move(labels), DelimiterIndex(std::array<Byte, 5>{' ', '\t', ':', '|', '\n'})),
          seed_start_(hash_start(options.seed)) {
        static constexpr Byte no_name[] = {0};
        rows.log.add_group(group_of(no_name, no_name));
    }

protected:
    void parse(const Byte* p, const Byte* eol, const Byte* end) override {
        const Byte* bar = find(p, eol, '|');
        if (bar == eol) return refuse("expected '|' after the label, got " + quoted(p, eol));
        double y = MISSING, weight = 1.0;
        const Byte* tag = bar;
        const Byte* tag_end = bar;
        if (!parse_head(p, bar, y, weight, tag, tag_end)) return;
        const std::size_t capacity = static_cast<std::size_t>(eol - bar) / 2 + 1;
        rows.begin(capacity);
        if (!parse_fast(bar, eol, end)) {
            rows.begin(capacity);
            rows.log.clear_groups(1);
            while (bar != eol) {
                bar = parse_names(bar + 1, eol, end);
                if (bar == nullptr) return;
            }
        }
        const std::size_t place = rows.count();
        finish(y, weight);
        if (tag != tag_end && rows.count() != place) rows.tags.emplace_back(place, std::string(tag, tag_end));
    }

private:
    static constexpr std::uint32_t DEFAULT_GROUP = 0;  // the default namespace, which has no name; it stays in the log

    // Before the first bar. False when it is bad.
    bool parse_head(const Byte* p, const Byte* bar, double& y, double& weight, const Byte*& tag, const Byte*& tag_end) {
        std::array<const Byte*, 6> ends{};  // first and last of up to three words
        std::size_t words = 0;
        for (const Byte* q = skip_blanks(p, bar); q != bar; q = skip_blanks(q, bar)) {
            const Byte* first = q;
            while (q != bar && !is_blank(*q)) ++q;
            if (*first == '\'' || q == bar) {
                if (skip_blanks(q, bar) != bar) {
                    refuse("expected the tag last before '|', got " + quoted(first, q));
                    return false;
                }
                tag = *first == '\'' ? first + 1 : first;
                tag_end = q;
                break;
            }
            if (words == 2) {
                refuse("expected at most a label, an importance and a tag before '|', got " + quoted(p, bar));
                return false;
            }
            ends[2 * words] = first;
            ends[2 * words + 1] = q;
            ++words;
        }
        if (words >= 1) {
            Fault fault;
            if (!labels_.read(ends[0], ends[1], y, fault)) {
                refuse(std::move(fault));
                return false;
            }
        }
        if (words == 2 && (parse_number(ends[2], ends[3], weight) != Parsed::ok || weight < 0.0)) {
            refuse("expected an importance of at least 0 after the label, got " + quoted(ends[2], ends[3]));
            return false;
        }
        return true;
    }

    // Reads all features of a row without a fault, from delimiter to delimiter; false if `parse_names` must read them.
    bool parse_fast(const Byte* bar, const Byte* eol, const Byte* end) {
        if (!index_.cover(bar, eol, end)) return false;
        if (!rows.log.is_on()) return read_features(bar, eol, NoFeatures{});
        rows.log.clear_groups(1);
        return read_features(bar, eol, AllFeatures{rows.log.features()});
    }

    template <class Log>
    bool read_features(const Byte* bar, const Byte* eol, Log&& log) {
        const Slots slots = rows.slots();
        if (!slots.masked()) return features(bar, eol, slots, log);
        return features(bar, eol, Masked{static_cast<std::uint32_t>(slots.mask())}, log);
    }

    struct Masked {
        std::uint32_t mask;
        std::uint32_t operator()(std::uint64_t hash) const noexcept { return static_cast<std::uint32_t>(hash) & mask; }
    };

    // Reads names of up to 16 bytes without a value, each followed by a blank, which most rows consist of. Returns
    // their number; `from` is then the start of the next name, and `delimiter` the delimiter after it. A separate
    // function, because inlining it would take registers from the rest.
    template <class Slot, class Log>
#if defined(__GNUC__)
    __attribute__((noinline))
#endif
    static std::size_t unit_names(const Byte* base, std::size_t& from, std::uint32_t*& delimiter, std::size_t last,
                                  std::uint64_t start, Slot slot, std::uint32_t* out, std::uint32_t group,
                                  Log& log) noexcept {
        Log own = log;  // in registers
        const std::uint32_t* const first = out;
        std::uint32_t* next = delimiter;
        std::size_t at = from;
        for (;;) {
            const std::size_t to = *next;
            const std::size_t n = to - at;
            if (to >= last || n - 1 > 15 || base[to] != ' ') break;
            const std::uint64_t hash = hash_short(start, base + at, n);
            *out++ = slot(hash);
            own.add(Feature{hash, base + at, static_cast<std::uint32_t>(n), group});
            ++next;
            at = to + 1;
        }
        from = at;
        delimiter = next;
        log = own;
        return static_cast<std::size_t>(out - first);
    }

    // No byte at or after eol is a bar or a colon. Values are written from the first that is not 1; most rows have
    // none.
    template <class Slot, class Log>
    bool features(const Byte* bar, const Byte* eol, const Slot slot, Log& log) {
        const Byte* const base = index_.base();
        DelimiterWalk walk{index_.positions() + 1,
                           static_cast<std::size_t>(eol - base)};  // the first delimiter is the bar
        std::uint32_t* const row_slots = rows.row_slots();
        double* const row_values = rows.row_values();
        std::size_t size = 0;
        bool all_ones = true;
        const auto write_ones = [&all_ones, row_values](std::size_t n) {
            for (std::size_t i = 0; all_ones && i < n; ++i) row_values[i] = 1.0;
            all_ones = false;
        };
        auto at = static_cast<std::size_t>(bar - base);
        while (at != walk.last) {
            std::size_t from = at + 1;
            at = walk.next();
            std::uint64_t start = seed_start_;
            double scale = 1.0;
            std::uint32_t group = DEFAULT_GROUP;
            if (at != from) {  // a namespace
                if constexpr (!std::is_same_v<Log, NoFeatures>)
                    group = rows.log.add_group(group_of(base + from, base + at));
                start = hash_start(hash_inside(seed_start_, base + from, at - from));
                if (base[at] == ':') {
                    from = at + 1;
                    at = walk.next();
                    if (!read_number(base + from, base + at, scale)) return false;
                    if (all_ones) write_ones(size);
                }
            }
            if (base[at] == ':') return false;
            while (at != walk.last && base[at] != '|') {
                from = at + 1;
                if (all_ones) {
                    std::uint32_t* delimiter = walk.next_delimiter;
                    size += unit_names(base, from, delimiter, walk.last, start, slot, row_slots + size, group, log);
                    walk.next_delimiter = delimiter;
                }
                at = walk.next();
                if (at == from) {
                    if (base[at] == ':') return false;  // it has no name
                    continue;
                }
                const std::uint64_t hash = hash_inside(start, base + from, at - from);
                row_slots[size] = slot(hash);
                log.add(Feature{hash, base + from, static_cast<std::uint32_t>(at - from), group});
                if (base[at] == ':') {
                    if (all_ones) write_ones(size);
                    from = at + 1;
                    at = walk.next();
                    double value = 0.0;
                    if (base[at] == ':' || !read_number(base + from, base + at, value)) return false;
                    row_values[size] = value * scale;
                } else if (!all_ones) {
                    row_values[size] = scale;
                }
                ++size;
            }
        }
        rows.set_size(size);
        if (all_ones) rows.set_unit_values();
        index_.done(walk.next_delimiter);
        return true;
    }

    // Reads the features after a bar, up to the next bar or the end of the line; null if one is bad.
    const Byte* parse_names(const Byte* p, const Byte* eol, const Byte* end) {
        std::uint64_t start = seed_start_;
        double scale = 1.0;
        FeatureGroup group = group_of(p, p);
        if (p != eol && !is_blank(*p) && *p != '|') {
            const Byte* stop = token(p, eol, end);
            group = group_of(p, stop);
            if (stop == p) return refuse_null("expected a namespace or a blank after '|', got ", p, eol);
            start = hash_start(hash_from(seed_start_, p, static_cast<std::size_t>(stop - p)));
            if (stop != eol && *stop == ':') {
                stop = parse_value(p, stop, eol, end, scale);
                if (stop == nullptr) return nullptr;
            }
            p = stop;
        }
        std::uint64_t unnamed = 0;
        const std::uint32_t number = rows.log.is_on() && group.size != 0 ? rows.log.add_group(group) : DEFAULT_GROUP;
        for (;;) {
            p = skip_blanks(p, eol);
            if (p == eol || *p == '|') return p;
            const Byte* stop = token(p, eol, end);
            const Byte* next = stop;
            double v = 1.0;
            if (stop != eol && *stop == ':') {
                next = parse_value(p, stop, eol, end, v);
                if (next == nullptr) return nullptr;
            }
            if (stop != p) {
                const auto size = static_cast<std::size_t>(stop - p);
                rows.add(hash_name(start, p, size, end), v * scale, number, p, size);
            } else {
                const std::string name = std::to_string(unnamed++);
                const auto* text = reinterpret_cast<const Byte*>(name.data());
                if (rows.log.is_on()) text = rows.log.lasting(text, name.size());
                rows.add(hash_from(start, text, name.size()), v * scale, number, text, name.size());
            }
            p = next;
        }
    }

    // A namespace; the default one has no name.
    static FeatureGroup group_of(const Byte* p, const Byte* end) noexcept {
        return FeatureGroup{p, static_cast<std::uint32_t>(end - p), static_cast<Byte>(end == p ? 0 : '^')};
    }

    // Reads the number after the colon of the token at p; returns the token's end, or null if it is bad.
    const Byte* parse_value(const Byte* p, const Byte* colon, const Byte* eol, const Byte* end, double& out) {
        const Byte* first = colon + 1;
        const Byte* stop = clip(word_(first, end), eol);
        const Parsed parsed = parse_number(first, stop, out);
        if (parsed == Parsed::ok) return stop;
        refuse((parsed == Parsed::malformed ? "expected a number after ':', got "
                                            : "expected a finite number after ':', got ") +
               quoted(first, stop) + " in " + quoted(p, stop));
        return nullptr;
    }

    const Byte* token(const Byte* p, const Byte* eol, const Byte* end) const { return clip(name_(p, end), eol); }
    static const Byte* clip(const Byte* p, const Byte* eol) { return p < eol ? p : eol; }

    const Byte* refuse_null(const char* rule, const Byte* p, const Byte* eol) {
        refuse(rule + quoted(p, eol));
        return nullptr;
    }

    std::uint64_t seed_start_;
    Finder<5> name_{{' ', '\t', ':', '|', '\n'}};
    Finder<4> word_{{' ', '\t', '|', '\n'}};
};

}  // namespace ftprl
