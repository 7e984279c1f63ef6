// Interactions: products of features of two or more groups (columns or namespaces), such as user:ad.
//
// A term is the name of a group, the first letter of a namespace, or * for any. All combinations of features are made
// in which each term has one, distinct ones, and no set of features twice. The value is the product of the values; the
// hash is mix(sum of the hashes + n K0) for n features, so that their order does not matter and no text is built.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "readers/scan.hpp"
#include "support/hash.hpp"

namespace ftprl {

class Interactions {
public:
    static constexpr std::size_t MOST_FACTORS = 4;
    static constexpr std::size_t MOST_TERMS = 64;                       // distinct ones
    static constexpr std::size_t MOST_PRODUCTS = std::size_t{1} << 20;  // of a row
    using Factors = std::array<std::uint32_t, MOST_FACTORS>;            // numbers of features

    // Adds the terms of one interaction. False if there are too many interactions or terms.
    bool add(const std::vector<std::string>& terms) {
        if (terms.size() < 2 || terms.size() > MOST_FACTORS) return false;
        Product product;
        product.size = terms.size();
        for (std::size_t i = 0; i < terms.size(); ++i) product.terms[i] = number_of(terms[i]);
        products_.push_back(product);
        return terms_.size() <= MOST_TERMS;
    }
    bool any() const noexcept { return !products_.empty(); }

    // Returns a bit mask of the terms that match a group.
    std::uint64_t terms_of(const Byte* name, std::size_t size, bool is_namespace) const noexcept {
        std::uint64_t bits = 0;
        for (std::size_t i = 0; i < terms_.size(); ++i) {
            const std::string& term = terms_[i];
            const bool is_letter =
                is_namespace && term.size() == 1 && size > 0 && term[0] == static_cast<char>(name[0]);
            const bool is_name =
                term.size() == size && term.compare(0, size, reinterpret_cast<const char*>(name), size) == 0;
            if (term == "*" || is_letter || is_name) bits |= std::uint64_t{1} << i;
        }
        return bits;
    }

    // Prepares the products of a row whose feature i matches terms(i); returns an upper bound on their number.
    template <class Terms>
    std::size_t begin(std::size_t size, const Terms& terms) {
        members_.resize(terms_.size());
        for (auto& members : members_) members.clear();
        bits_.resize(size);
        for (std::size_t i = 0; i < size; ++i) {
            bits_[i] = terms(i);
            for (std::uint64_t rest = bits_[i], t = 0; rest != 0; rest >>= 1, ++t) {
                if ((rest & 1) != 0) members_[t].push_back(static_cast<std::uint32_t>(i));
            }
        }
        std::size_t total = 0;
        for (const Product& product : products_) {
            std::size_t count = 1;
            for (std::size_t i = 0; i < product.size; ++i) {
                count *= members_[product.terms[i]].size();
                if (count > MOST_PRODUCTS) return count;
            }
            total += count;
        }
        return total;
    }

    // Calls make(factors, count) for each product, or make_pairs(one, others, how many) for several of two factors.
    template <class Make, class MakePairs>
    void each(const Make& make, const MakePairs& make_pairs) {
        for (const Product& product : products_) {
            Factors factors{};
            if (product.size == 2 && are_apart(product.terms[0], product.terms[1])) {
                const std::vector<std::uint32_t>& others = members_[product.terms[1]];
                for (const std::uint32_t i : members_[product.terms[0]]) make_pairs(i, others.data(), others.size());
            } else {
                choose(product, 0, factors, make);
            }
        }
    }

    static std::uint64_t hash(std::uint64_t sum, std::size_t count) noexcept {
        return detail::mix(sum + count * detail::K0);
    }

private:
    struct Product {
        std::size_t size = 0;
        std::array<std::uint32_t, MOST_FACTORS> terms{};
    };

    std::uint32_t number_of(const std::string& term) {
        for (std::size_t i = 0; i < terms_.size(); ++i) {
            if (terms_[i] == term) return static_cast<std::uint32_t>(i);
        }
        terms_.push_back(term);
        return static_cast<std::uint32_t>(terms_.size() - 1);
    }

    // True if no feature matches both terms; then all pairs are made, each once.
    bool are_apart(std::uint32_t a, std::uint32_t b) const noexcept {
        for (const std::uint32_t i : members_[a]) {
            if ((bits_[i] >> b & 1) != 0) return false;
        }
        return true;
    }

    template <class Make>
    void choose(const Product& product, std::size_t depth, Factors& factors, const Make& make) {
        if (depth >= MOST_FACTORS || depth == product.size) {
            make(factors, product.size);
            return;
        }
        for (const std::uint32_t i : members_[product.terms[depth]]) {
            if (!is_first(product, depth, factors, i)) continue;
            factors[depth] = i;
            choose(product, depth + 1, factors, make);
        }
    }

    // True if feature i may be the next factor. It must differ from all earlier factors; where two factors could swap
    // places, the one with the smaller number comes first, so that no set is made twice.
    bool is_first(const Product& product, std::size_t depth, const Factors& factors, std::uint32_t i) const noexcept {
        const std::uint64_t own = std::uint64_t{1} << product.terms[depth];
        for (std::size_t k = 0; k < depth; ++k) {
            const std::uint64_t other = std::uint64_t{1} << product.terms[k];
            const bool could_change = (bits_[factors[k]] & own) != 0 && (bits_[i] & other) != 0;
            if (factors[k] == i || (could_change && i < factors[k])) return false;
        }
        return true;
    }

    std::vector<std::string> terms_;
    std::vector<Product> products_;
    std::vector<std::vector<std::uint32_t>> members_;  // of each term, in the present row
    std::vector<std::uint64_t> bits_;                  // the terms of each feature
};

}  // namespace ftprl
