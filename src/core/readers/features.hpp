// The features of the row under construction with hashes and names, which a slot alone does not contain. They are kept
// only if names or interactions need them. A feature has a group (its column or namespace) and a text: "column=text",
// "namespace^text". A name is built when it is recorded for the first time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "readers/buffer.hpp"
#include "readers/feature.hpp"
#include "readers/grams.hpp"
#include "readers/interactions.hpp"
#include "readers/named_cells.hpp"
#include "readers/new_names.hpp"
#include "readers/scan.hpp"
#include "readers/slots.hpp"
#include "support/memory.hpp"

namespace ftprl {

// What becomes of a feature besides its slot and its value: nothing, or it is written down.
struct NoFeatures {
    void add(const Feature& /*feature*/) noexcept {}
};
struct AllFeatures {
    Feature* next;
    void add(const Feature& feature) noexcept { *next++ = feature; }
};

class FeatureLog {
public:
    // Without names and interactions nothing is kept, and `features` must not be used.
    bool is_on() const noexcept { return is_on_; }
    // Of each cell the name that is met first is recorded; with `all` those of every row, also when no more are wanted.
    void keep_names(bool all, const Slots& slots) {
        is_complete_ = all;
        slots_ = slots;
        if (!all) named_.allocate(slots.dim());
        is_on_ = true;
    }
    bool keeps_names() const noexcept { return is_complete_ || named_.is_allocated(); }
    void set_texts(FeatureTexts& texts) noexcept { texts_ = &texts; }
    // `in_namespaces` is true if group names may begin with a namespace and ^, as in user^age.
    void set_interactions(const Interactions& interactions, bool in_namespaces = false) {
        interactions_ = interactions;
        in_namespaces_ = in_namespaces;
        is_on_ = is_on_ || interactions_.any();
        if (interactions_.any() && named_.is_allocated()) named_products_.allocate(slots_.dim());
    }
    bool has_interactions() const noexcept { return interactions_.any(); }
    // `start` is that of the hash of a name.
    void set_grams(const Grams& grams, std::uint64_t start) {
        grams_ = grams;
        hash_start_ = start;
        is_on_ = is_on_ || grams_.any();
    }
    bool has_grams() const noexcept { return grams_.any(); }

    // The entry of the feature with this number in the row; products have none.
    Feature* features() noexcept { return features_.data(); }
    void reserve(std::size_t size, std::size_t more) {
        features_.resize(size);
        features_.reserve(more);
    }
    // Whether somebody will ask for the text of a feature: not if only its name is of interest, and its cell has one.
    bool wants_text(std::uint32_t cell) const noexcept {
        return interactions_.any() || grams_.any() || (keeps_names() && !has_name(cell));
    }

    std::uint32_t add_group(const FeatureGroup& group) {
        if (interactions_.any() || grams_.any()) {
            groups_.push_back(with_rules(group));
        } else {
            groups_.push_back(group);
        }
        return static_cast<std::uint32_t>(groups_.size() - 1);
    }
    // A group that only the current row has.
    std::uint32_t add_passing_group(const FeatureGroup& group) {
        passing_.push_back(with_rules(group));
        return PASSING | static_cast<std::uint32_t>(passing_.size() - 1);
    }
    // Drops all but the first `kept`.
    void clear_groups(std::size_t kept = 0) {
        if (groups_.size() > kept) groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(kept), groups_.end());
    }

    // Keeps a text until the end of the row.
    const Byte* lasting(const Byte* text, std::size_t size) {
        Byte* const copy = space_for(size);
        std::memcpy(copy, text, size);
        return copy;
    }
    void begin_row() noexcept {
        if (pages_.size() > 1) pages_.resize(1);
        passing_.clear();
        products_.clear();
        page_ = used_ = 0;
        page_size_ = PAGE;
    }

    // Returns an upper bound on the number of grams of the first `size` features, then calls add(feature) for each.
    std::size_t begin_grams(std::size_t size) {
        sequences_ = 0;
        made_.clear();
        for (std::size_t i = 0; i < size; ++i) {
            Feature& feature = features_.data()[i];
            if (group_at(feature.group).grams == nullptr) continue;
            if (feature.text == TEXT_LATER) feature = texts_->with_text(feature);
            sequence_of(feature.group).members.push_back(static_cast<std::uint32_t>(i));
        }
        std::size_t most = 0;
        for (std::size_t s = 0; s < sequences_; ++s) {
            const Sequence& sequence = all_sequences_[s];
            const GramRule& rule = *group_at(sequence.group).grams;
            const std::size_t parts = rule.longest == 0 ? 0 : rule.longest - rule.shortest + 1;
            most += rule.masks.size() * sequence.members.size();
            for (const std::uint32_t i : sequence.members) most += parts * (features_.data()[i].size + 2);
            if (most > Grams::MOST) break;
        }
        return most;
    }
    template <class Add>
    void each_gram(const Add& add) {
        for (std::uint32_t s = 0; s < sequences_; ++s) {
            const Sequence& sequence = all_sequences_[s];
            const GramRule& rule = *group_at(sequence.group).grams;
            for (std::uint32_t m = 0; m < rule.masks.size(); ++m) add_words(s, m, rule.masks[m], add);
            if (rule.longest != 0) add_pieces(sequence, rule, add);
        }
    }

    // Returns an upper bound on the number of products of the first `size` features, then calls add(hash, factors, how
    // many), or add_pairs(one, others, how many) for several pairs.
    std::size_t begin_products(std::size_t size) {
        return interactions_.begin(size, [this](std::size_t i) { return own_group(features_.data()[i]).terms; });
    }
    template <class Add, class AddPairs>
    void each_product(const Add& add, const AddPairs& add_pairs) {
        const auto add_one = [&](const Interactions::Factors& factors, std::size_t count) {
            std::uint64_t sum = 0;
            for (std::size_t k = 0; k < count; ++k) sum += features_.data()[factors[k]].hash;
            add(Interactions::hash(sum, count), factors, count);
        };
        interactions_.each(add_one, add_pairs);
    }
    // Adds a product, whose name is put together of those of its factors, if it is new.
    void add_product(std::uint64_t hash, std::uint32_t cell, const Interactions::Factors& factors, std::size_t count) {
        const bool is_known = !is_complete_ && (named_.has(cell) || named_products_.has(cell));
        if (!is_known) products_.push_back(Product{hash, factors, count});
    }

    // True if names are recorded now, and true if names of products are, too.
    bool is_recording() const noexcept { return keeps_names() && (is_complete_ || names_.are_wanted()); }
    bool is_recording_products() const noexcept {
        return is_recording() && (is_complete_ || names_.are_products_wanted());
    }

    // Finds the features of the row whose names will be recorded, among the first `size`, which have these cells.
    void find_unnamed(const std::uint32_t* cells, std::size_t size) {
        unnamed_.resize(0);
        unnamed_.reserve(size + 1);
        std::uint32_t* const unnamed = unnamed_.data();
        std::size_t count = 0;
        if (is_complete_) {
            for (; count < size; ++count) unnamed[count] = static_cast<std::uint32_t>(count);
        } else {
            const NamedCells::View named = named_.view();
            for (std::size_t i = 0; i < size; ++i) {
                unnamed[count] = static_cast<std::uint32_t>(i);
                count += named.has(cells[i]) ? 0 : 1;
            }
        }
        unnamed_.resize(count);
    }
    // Records the names of the row: of the features that were found, and of its products.
    void record(std::size_t row) {
        for (std::size_t i = 0; i < unnamed_.size(); ++i) {
            const Feature& feature = features_.data()[unnamed_.data()[i]];
            if (is_named(named_, feature.hash)) continue;  // an earlier one of the row has the same cell
            append(feature);
            names_.end(row, feature.hash, false);
        }
        for (const Product& product : products_) {
            if (is_named(named_products_, product.hash)) continue;
            append(product);
            names_.end(row, product.hash, true);
        }
    }

    // Stops recording when another parser of the same data does.
    void join(const FeatureLog& other) noexcept { names_.join(other.names_); }

    bool has_new() const noexcept { return names_.size() != 0; }

    // Forgets recorded names: the next rows do not follow the rows read before.
    void forget() {
        if (named_.is_allocated()) named_.allocate(slots_.dim());
        if (named_products_.is_allocated()) named_products_.allocate(slots_.dim());
    }

    // The names since the last call. If no more are wanted, recording ends, unless every name must be recorded.
    NewNames take() {
        if (is_complete_) {
            names_.set_complete();
        } else if (keeps_names() && !names_.are_wanted()) {
            named_.release();
            named_products_.release();
            is_on_ = interactions_.any() || grams_.any();
        }
        return std::move(names_);
    }

private:
    static constexpr std::size_t PAGE = 1 << 16;

    struct Product {
        std::uint64_t hash;
        Interactions::Factors factors;
        std::size_t count;  // of the factors
    };

    bool has_name(std::uint32_t cell) const noexcept { return !is_complete_ && named_.has(cell); }
    // True if the cell of a hash has a name that was recorded; from now on it has one.
    bool is_named(NamedCells& named, std::uint64_t hash) const noexcept {
        return !is_complete_ && named.add(slots_(hash));
    }

    Byte* space_for(std::size_t size) {
        if (page_ == pages_.size() || page_size_ - used_ < size) next_page(size);
        Byte* const space = pages_[page_].get() + used_;
        used_ += size;
        return space;
    }

    // Starts a page for a text of this size; the first page is kept from row to row.
    void next_page(std::size_t size) {
        page_ = pages_.size();
        page_size_ = page_ == 0 && size < PAGE ? PAGE : size + PAGE;
        pages_.emplace_back(new Byte[page_size_]);
        used_ = 0;
    }

    static constexpr std::uint32_t PASSING = 0x80000000u;
    static constexpr std::uint32_t GRAM = 0xffffffffu;

    // The features of one column or namespace, in their order.
    struct Sequence {
        std::uint32_t group = 0;
        std::vector<std::uint32_t> members;
    };
    // A gram: its sequence, the position of its first feature, and the mask of the others.
    struct Gram {
        std::uint32_t sequence;
        std::uint32_t at;
        std::uint32_t mask;
    };

    FeatureGroup with_rules(FeatureGroup group) const {
        const bool is_namespace = group.joint == '^';  // one without a name has no letter
        if (interactions_.any() && in_namespaces_) {
            const Byte* const caret = std::find(group.name, group.name + group.size, Byte{'^'});
            const bool has_one = caret != group.name + group.size;
            const auto size = has_one ? static_cast<std::size_t>(caret - group.name) : 0;
            group.terms = interactions_.terms_of(group.name, size, has_one);
        } else if (interactions_.any()) {
            group.terms = interactions_.terms_of(group.name, group.size, is_namespace);
        }
        const bool may_have_grams = is_namespace || group.joint == '=' || (group.joint == 0 && group.size == 0);
        if (grams_.any() && may_have_grams) {
            group.grams = grams_.rule_of(group.name, group.size, group.joint != '=');
        }
        return group;
    }

    // A namespace that occurs twice in a row is one sequence of features.
    Sequence& sequence_of(std::uint32_t number) {
        const FeatureGroup& group = group_at(number);
        for (std::size_t s = sequences_; s-- > 0;) {
            Sequence& known = all_sequences_[s];
            if (known.group == number) return known;
            const FeatureGroup& other = group_at(known.group);
            if (other.size == group.size && std::memcmp(other.name, group.name, group.size) == 0) return known;
        }
        if (sequences_ == all_sequences_.size()) all_sequences_.emplace_back();
        Sequence& fresh = all_sequences_[sequences_++];
        fresh.group = number;
        fresh.members.clear();
        return fresh;
    }

    template <class Add>
    void add_words(std::uint32_t s, std::uint32_t m, const std::vector<std::uint32_t>& mask, const Add& add) {
        const std::vector<std::uint32_t>& members = all_sequences_[s].members;
        for (std::uint32_t at = 0; at + mask.back() < members.size(); ++at) {
            std::uint64_t hash = features_.data()[members[at]].hash;
            for (const std::uint32_t offset : mask) {
                hash = Grams::joined(hash, features_.data()[members[at + offset]].hash);
            }
            made_.push_back(Gram{s, at, m});
            const auto number = static_cast<std::uint32_t>(made_.size() - 1);
            add(Feature{Grams::finished(hash, mask.size() + 1), nullptr, number, GRAM});
        }
    }

    template <class Add>
    void add_pieces(const Sequence& sequence, const GramRule& rule, const Add& add) {
        const FeatureGroup group = group_at(sequence.group);  // a copy: another one is added
        std::string inside(group.name, group.name + group.size);
        inside.push_back('~');
        const auto* const name = reinterpret_cast<const Byte*>(inside.data());
        const std::uint64_t start = ::ftprl::hash_start(hash_from(hash_start_, name, inside.size()));
        const std::uint32_t number = add_passing_group(FeatureGroup{group.name, group.size, Byte{'~'}});
        for (const std::uint32_t i : sequence.members) {
            const Feature word = features_.data()[i];
            if (word.text == nullptr) continue;
            const std::size_t size = std::size_t{word.size} + 2;
            Byte* const blanked = space_for(size);
            blanked[0] = blanked[size - 1] = Byte{' '};
            std::memcpy(blanked + 1, word.text, word.size);
            each_char_gram(blanked, blanked + size, rule, starts_, [&](const Byte* p, const Byte* end) {
                const auto bytes = static_cast<std::size_t>(end - p);
                add(Feature{hash_from(start, p, bytes), p, static_cast<std::uint32_t>(bytes), number});
            });
        }
    }

    // The group of a feature, or of the features of a gram.
    const FeatureGroup& own_group(const Feature& feature) const noexcept {
        return group_at(feature.group != GRAM ? feature.group : all_sequences_[made_[feature.size].sequence].group);
    }

    void append(const Product& product) {
        for (std::size_t k = 0; k < product.count; ++k) {
            if (k != 0) names_.append(Byte{'*'});
            append(features_.data()[product.factors[k]]);
        }
    }
    void append(const Feature& feature) {
        if (feature.group == GRAM) {
            append_gram(made_[feature.size]);
        } else {
            append_one(feature);
        }
    }

    // "column=one ^ two".
    void append_gram(const Gram& gram) {
        const Sequence& sequence = all_sequences_[gram.sequence];
        const FeatureGroup& group = group_at(sequence.group);
        names_.append(features_.data()[sequence.members[gram.at]], group);
        for (const std::uint32_t offset : group.grams->masks[gram.mask]) {
            static constexpr Byte between[] = {' ', '^', ' '};
            const Feature& next = features_.data()[sequence.members[gram.at + offset]];
            names_.append(between, sizeof between);
            if (next.text != nullptr) names_.append(next.text, next.size);
        }
    }
    void append_one(const Feature& feature) {
        if (feature.text != TEXT_LATER) return names_.append(feature, group_at(feature.group));
        const Feature whole = texts_->with_text(feature);
        names_.append(whole, group_at(whole.group));
    }

    const FeatureGroup& group_at(std::uint32_t number) const noexcept {
        return (number & PASSING) != 0 ? passing_[number & ~PASSING] : groups_[number];
    }

    bool is_on_ = false;
    bool is_complete_ = false;
    FeatureTexts* texts_ = nullptr;
    Interactions interactions_;
    bool in_namespaces_ = false;
    std::vector<Product> products_;  // those of the row that are not known
    Grams grams_;
    std::uint64_t hash_start_ = 0;
    std::vector<Sequence> all_sequences_;  // of which the row has `sequences_`
    std::size_t sequences_ = 0;
    std::vector<Gram> made_;           // the grams of the row
    std::vector<const Byte*> starts_;  // of the characters of a word
    Buffer<Feature> features_;
    std::vector<FeatureGroup> groups_;
    std::vector<FeatureGroup> passing_;
    std::vector<std::unique_ptr<Byte[]>> pages_;
    std::size_t page_ = 0, page_size_ = PAGE, used_ = 0;  // of the page in use
    Slots slots_{1, false};
    NamedCells named_;               // of features whose names were recorded; not with those of every row
    NamedCells named_products_;      // the same of products, for which there may be no space: they hide no features
    Buffer<std::uint32_t> unnamed_;  // features of the row whose names are to be recorded
    NewNames names_;
};

}  // namespace ftprl
