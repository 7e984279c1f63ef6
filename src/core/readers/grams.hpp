// N-grams: neighbouring features of a text column or a namespace, such as "free ^ prize", and character n-grams of
// their words.
//
// As in Vowpal Wabbit, words = n makes all grams of 2 to n features in their order, with up to `skips` features left
// out within each; every gram has the value 1. The hash is made of those of its features,
//
//   g = h_1;  g = mix(g + K1) + h_k for k = 2, ..., n;  mix(g + n K0)
//
// and depends on their order. A character n-gram is a run of characters of a word between two blanks, " free ": a name
// of the namespace "column~". No text is built for either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "readers/scan.hpp"
#include "support/hash.hpp"

namespace ftprl {

struct GramRule {
    std::size_t words = 0;                  // the longest gram
    std::size_t skips = 0;                  // features left out within a gram, at most
    std::size_t shortest = 0, longest = 0;  // characters of one of a word; 0 for none
    // The offsets of a gram's features after the first, for each kind of gram.
    std::vector<std::vector<std::uint32_t>> masks;
};

class Grams {
public:
    static constexpr std::size_t MOST = std::size_t{1} << 20;  // of a row
    static constexpr std::size_t MOST_WORDS = 8, MOST_SKIPS = 8, LONGEST_PIECE = 16;

    // The rule for a column or a namespace; the rule "*" is for every namespace without its own.
    bool add(const std::string& name, GramRule rule) {
        const bool is_good = rule.words <= MOST_WORDS && rule.skips <= MOST_SKIPS && rule.longest <= LONGEST_PIECE &&
                             rule.shortest <= rule.longest;
        if (!is_good) return false;
        std::vector<std::uint32_t> mask;
        for (std::size_t n = 2; n <= rule.words; ++n) add_masks(rule, n - 1, rule.skips, mask);
        rules_[name] = std::move(rule);
        return true;
    }
    bool any() const noexcept { return !rules_.empty(); }

    // The rule for a group of features: a column by its name, a namespace also by its first letter; null for none.
    const GramRule* rule_of(const Byte* name, std::size_t size, bool is_namespace) const {
        const std::string own(name, name + size);
        auto match = rules_.find(own);
        if (is_namespace && match == rules_.end() && size > 1) match = rules_.find(own.substr(0, 1));
        if (is_namespace && match == rules_.end()) match = rules_.find("*");
        return match == rules_.end() ? nullptr : &match->second;
    }

    static std::uint64_t joined(std::uint64_t gram, std::uint64_t next) noexcept {
        return detail::mix(gram + detail::K1) + next;
    }
    static std::uint64_t finished(std::uint64_t gram, std::size_t count) noexcept {
        return detail::mix(gram + count * detail::K0);
    }

private:
    // Returns all masks with this many further features, which leave out up to `skips`.
    static void add_masks(GramRule& rule, std::size_t more, std::size_t skips, std::vector<std::uint32_t>& mask) {
        if (more == 0) {
            rule.masks.push_back(mask);
            return;
        }
        const std::uint32_t last = mask.empty() ? 0 : mask.back();
        for (std::size_t skipped = 0; skipped <= skips; ++skipped) {
            mask.push_back(last + 1 + static_cast<std::uint32_t>(skipped));
            add_masks(rule, more - 1, skips - skipped, mask);
            mask.pop_back();
        }
    }

    std::unordered_map<std::string, GramRule> rules_;
};

// Calls make(first, end) for every character n-gram of the word [p, end), which has a blank on either side: `shortest`
// to `longest` characters each, or the whole word if it has fewer than `shortest`. Bytes that are not UTF-8 count as
// one character each.
template <class Make>
void each_char_gram(const Byte* p, const Byte* end, const GramRule& rule, std::vector<const Byte*>& starts,
                    const Make& make) {
    starts.clear();
    for (const Byte* q = p; q != end; ++q) {
        if ((*q & 0xc0) != 0x80 || q == p) starts.push_back(q);
    }
    const std::size_t count = starts.size();
    starts.push_back(end);
    if (count < rule.shortest) return make(p, end);
    for (std::size_t size = rule.shortest; size <= rule.longest && size <= count; ++size) {
        for (std::size_t i = 0; i + size <= count; ++i) make(starts[i], starts[i + size]);
    }
}

}  // namespace ftprl
