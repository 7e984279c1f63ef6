// Bounds of weights by the names of their features, assigned to cells as names are first seen. A pattern is a name, or
// a glob with * (any text), ? (a character) and [abc], [a-z], [!abc] (one of some characters). A pattern without these
// characters also matches all features of a column or a namespace, "pattern=..." and "pattern^...", but not
// interactions. A cell that several names share has the intersection of their bounds.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "readers/new_names.hpp"
#include "readers/rows.hpp"

namespace ftprl {

struct Ends {
    double lower, upper;
    bool is_empty() const noexcept { return lower > upper; }
    bool operator!=(const Ends& other) const noexcept { return lower != other.lower || upper != other.upper; }
    Ends meet(const Ends& other) const noexcept { return {std::max(lower, other.lower), std::min(upper, other.upper)}; }
};

class NamePattern {
public:
    NamePattern(std::string text, Ends ends) : ends(ends), text_(std::move(text)) {
        is_plain_ = text_.find_first_of("*?[") == std::string::npos;
    }

    Ends ends;

    bool fits(const char* name, std::size_t size, bool is_product) const noexcept {
        const char* const end = name + size;
        if (!is_plain_) return glob(text_.data(), text_.data() + text_.size(), name, end);
        if (size < text_.size() || !std::equal(text_.begin(), text_.end(), name)) return false;
        if (size == text_.size()) return true;
        return !is_product && (name[text_.size()] == '=' || name[text_.size()] == '^');
    }

private:
    // The end of the character that begins here.
    static const char* next(const char* at, const char* end) noexcept {
        for (++at; at != end && (static_cast<unsigned char>(*at) & 0xc0u) == 0x80u; ++at) {
        }
        return at;
    }

    // True if the character [at, stop) is in the set after "["; moves `p` behind the "]". Without a "]" the bracket is
    // an ordinary character.
    static bool in_set(const char*& p, const char* end, const char* at, const char* stop) noexcept {
        const char* from = p + 1;
        const bool negated = from != end && *from == '!';
        if (negated) ++from;
        const char* close = from == end ? end : next(from, end);  // a "]" that comes first is one of the set
        while (close != end && *close != ']') close = next(close, end);
        if (close == end) {
            const bool same = *at == '[';
            ++p;
            return same;
        }
        const std::string own(at, stop);
        bool match = false;
        while (from != close) {
            const char* const low_end = next(from, close);
            const std::string low(from, low_end);
            from = low_end;
            if (from != close && *from == '-' && from + 1 != close) {
                const char* const high_end = next(from + 1, close);
                const std::string high(from + 1, high_end);
                match = match || (low <= own && own <= high);  // UTF-8 is in the order of the characters
                from = high_end;
            } else {
                match = match || own == low;
            }
        }
        p = close + 1;
        return match != negated;
    }

    // The last star matches one more character whenever the rest does not match.
    static bool glob(const char* p, const char* p_end, const char* at, const char* end) noexcept {
        const char *star = nullptr, *retry = nullptr;
        while (true) {
            if (p != p_end && *p == '*') {
                star = ++p;
                retry = at;
                continue;
            }
            if (at == end && p == p_end) return true;
            if (at != end && p != p_end) {
                const char* const stop = next(at, end);
                const char* after = p;
                bool fits = false;
                if (*p == '?') {
                    fits = true;
                    after = p + 1;
                } else if (*p == '[') {
                    fits = in_set(after, p_end, at, stop);
                } else {
                    const auto size = static_cast<std::size_t>(stop - at);
                    fits = static_cast<std::size_t>(p_end - p) >= size && std::equal(at, stop, p);
                    after = fits ? p + size : p;
                }
                if (fits) {
                    p = after;
                    at = stop;
                    continue;
                }
            }
            if (star == nullptr || retry == end) return false;
            retry = next(retry, end);
            p = star;
            at = retry;
        }
    }

    std::string text_;
    bool is_plain_;
};

class BoundTable {
public:
    // `all` are the bounds of every weight.
    BoundTable(std::uint64_t dim, Ends all) : slots_(dim, false), all_(all), seen_((dim + 63) / 64) {}

    // Bounds of a cell that hold from a row on. If the cell was in use before that row, earlier rows have no bounds.
    struct Change {
        std::size_t row;
        std::uint32_t slot;
        Ends ends;
        bool was_seen;
    };

    std::vector<Change> changes;
    // A name whose bounds have an empty intersection: its text, its cell, and the ranges of the cell and of the
    // patterns.
    std::string refused;
    std::uint32_t refused_slot = 0;
    Ends refused_cell{}, refused_own{};

    void add_pattern(std::string text, Ends ends) {
        patterns_.emplace_back(std::move(text), ends);
        matches_.push_back(0);
    }

    // Records the names first seen in rows [from, to); false at a name whose bounds have an empty intersection.
    bool add(const NewNames& names, std::size_t from, std::size_t to) {
        changes.clear();
        const std::size_t end = names.first_of(to);
        for (std::size_t i = names.first_of(from); i < end; ++i) {
            const auto& name = names[i];
            const auto* const text = reinterpret_cast<const char*>(names.text_of(name));
            if (std::exchange(met_[name.hash % met_.size()], name.hash) == name.hash && name.hash != 0) continue;
            if (!add(name.row - from, slots_(name.hash), name.hash, text, name.size, name.is_product != 0))
                return false;
        }
        return true;
    }

    // Records features that are named by the numbers of their cells.
    bool add_numbers(const std::uint32_t* numbers, std::size_t size) {
        changes.clear();
        char text[16];
        for (std::size_t i = 0; i < size; ++i) {
            if (numbers[i] >= slots_.dim() || is_seen(numbers[i])) continue;
            const auto* end = std::to_chars(text, text + sizeof text, numbers[i]).ptr;
            if (!add(0, numbers[i], 0, text, static_cast<std::size_t>(end - text), false)) return false;
        }
        return true;
    }

    // The number of names that each pattern matched; a name that is seen again may count again.
    const std::vector<std::uint64_t>& matches() const noexcept { return matches_; }
    // Bounds as they were saved.
    void load(std::uint32_t slot, Ends ends) {
        bounded_[slot] = {ends, 0, false};
        is_loaded_ = true;
    }
    // How many cells with bounds of their own several names share; -1 when bounds were saved and loaded.
    std::int64_t shared() const noexcept {
        std::int64_t count = 0;
        for (const auto& one : bounded_) count += one.second.is_shared ? 1 : 0;
        return is_loaded_ ? -1 : count;
    }
    // The cells that have bounds of their own, in order.
    std::vector<std::pair<std::uint32_t, Ends>> bounded() const {
        std::vector<std::pair<std::uint32_t, Ends>> all;
        for (const auto& [slot, own] : bounded_) all.emplace_back(slot, own.ends);
        std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        return all;
    }

private:
    bool is_seen(std::uint32_t slot) const noexcept { return (seen_[slot / 64] >> (slot % 64) & 1) != 0; }

    // A cell with bounds of its own: the hash of the first name that had some, and whether another name is there.
    struct Bounded {
        Ends ends;
        std::uint64_t hash;
        bool is_shared;
    };

    bool add(std::size_t row, std::uint32_t slot, std::uint64_t hash, const char* text, std::size_t size,
             bool is_product) {
        const bool was_seen = is_seen(slot);
        seen_[slot / 64] |= std::uint64_t{1} << (slot % 64);
        Ends own = all_;
        for (std::size_t i = 0; i < patterns_.size(); ++i) {
            if (!patterns_[i].fits(text, size, is_product)) continue;
            own = own.meet(patterns_[i].ends);
            ++matches_[i];
        }
        const auto match = bounded_.find(slot);
        if (match != bounded_.end() && match->second.hash != hash) match->second.is_shared = true;
        if (!(own != all_)) return true;
        const Ends before = match == bounded_.end() ? all_ : match->second.ends, now = before.meet(own);
        if (now.is_empty()) {
            refused.assign(text, size);
            refused_slot = slot;
            refused_cell = before;
            refused_own = own;
            return false;
        }
        if (!(now != before)) return true;
        if (match == bounded_.end()) {
            bounded_[slot] = {now, hash, was_seen};
        } else {
            match->second.ends = now;
        }
        changes.push_back({row, slot, now, was_seen});
        return true;
    }

    Slots slots_;
    Ends all_;
    std::vector<NamePattern> patterns_;
    std::vector<std::uint64_t> matches_;
    std::vector<std::uint64_t> seen_;  // a bit for each cell that a name was met of
    std::unordered_map<std::uint32_t, Bounded> bounded_;
    std::vector<std::uint64_t> met_ = std::vector<std::uint64_t>(std::size_t{1} << 14);  // hashes of some recent names
    bool is_loaded_ = false;
};

}  // namespace ftprl
