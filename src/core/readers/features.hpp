// The features of the row under construction by their hashes and names, which a slot alone does not know.
//
// They are kept only where somebody asks for names. A feature has a group, its column or its namespace, and a text
// behind that: "column=text", "namespace^text". A name is put together when it is recorded for the first time.
#pragma once

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
#include "readers/new_names.hpp"
#include "readers/recent_names.hpp"
#include "readers/scan.hpp"
#include "support/memory.hpp"

namespace ftprl {

// What becomes of a feature besides its slot and its value: nothing, or it is written down, perhaps with a look for
// its name ahead.
struct NoFeatures {
    void add(const Feature& /*feature*/) noexcept {}
};
struct AllFeatures {
    Feature* next;
    void add(const Feature& feature) noexcept { *next++ = feature; }
};
struct FetchedFeatures : AllFeatures {
    RecentNames::View recent;
    void add(const Feature& feature) noexcept {
        recent.fetch(feature.hash);
        AllFeatures::add(feature);
    }
};

class FeatureLog {
public:
    // Without names and interactions nothing is kept, and `features` is not to be used.
    bool is_on() const noexcept { return is_on_; }
    // `all`: none may be missed because its hash is like that of another, which takes somewhat longer.
    void keep_names(bool all) {
        is_complete_ = all;
        begin_names();
        is_on_ = true;
    }
    bool keeps_names() const noexcept { return recent_.is_allocated(); }
    void set_texts(FeatureTexts& texts) noexcept { texts_ = &texts; }
    void set_interactions(const Interactions& interactions) {
        interactions_ = interactions;
        is_on_ = is_on_ || interactions_.any();
        if (keeps_names() && interactions_.any()) begin_names();
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
    // Whether somebody will ask for the text of a feature: not if only its name is of interest, and recent.
    bool wants_text(std::uint64_t hash) const noexcept {
        return interactions_.any() || grams_.any() || (keeps_names() && !is_recent(hash));
    }

    std::uint32_t add_group(const FeatureGroup& group) {
        if (interactions_.any() || grams_.any()) {
            groups_.push_back(with_rules(group));
        } else {
            groups_.push_back(group);
        }
        return static_cast<std::uint32_t>(groups_.size() - 1);
    }
    // A group that only the present row has.
    std::uint32_t add_passing_group(const FeatureGroup& group) {
        passing_.push_back(with_rules(group));
        return PASSING | static_cast<std::uint32_t>(passing_.size() - 1);
    }
    // All but the first `kept`.
    void clear_groups(std::size_t kept = 0) {
        if (groups_.size() > kept) groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(kept), groups_.end());
    }

    // A text that lasts as long as the row.
    const Byte* lasting(const Byte* text, std::size_t size) {
        Byte* const copy = space_for(size);
        std::memcpy(copy, text, size);
        return copy;
    }
    void begin_row() noexcept {
        if (pages_.size() > 1) pages_.resize(1);
        passing_.clear();
        factors_.clear();
        page_ = used_ = 0;
        page_size_ = PAGE;
        texts_stay_ = has_met_ = false;
        unknown_.resize(0);
        products_.resize(0);
    }

    // How many grams of the first `size` features there may be; then each of them: add(feature).
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

    // How many products of the first `size` features there may be; then each of them: add(hash, factors, how many), or
    // add_pairs(one, others, how many).
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
    // Adds a product, whose name is put together of those of its factors, if it may be new.
    void add_product(std::uint64_t hash, const Interactions::Factors& factors, std::size_t count) {
        if (is_recent_product(hash)) return;
        factors_.emplace_back(factors, count);
        products_.push(Feature{hash, nullptr, static_cast<std::uint32_t>(factors_.size() - 1), PRODUCT});
    }
    // The same for the products of one feature and each of some others: use(number, hash) gets the hash of each. Which
    // are new is hard to guess, so there is no branch on it.
    template <class Use>
    void add_pairs(std::uint32_t one, const std::uint32_t* others, std::size_t count, const Use& use) {
        products_.reserve(count);
        const Feature* const features = features_.data();
        const std::uint64_t own = features[one].hash;
        Feature* next = products_.data() + products_.size();
        for (std::size_t k = 0; k < count; ++k) {
            const std::uint32_t other = others[k];
            const std::uint64_t hash = Interactions::hash(own + features[other].hash, 2);
            use(k, hash);
            if ((one | other) > 0xffffu) {  // its numbers need more space
                products_.resize(static_cast<std::size_t>(next - products_.data()));
                add_product(hash, Interactions::Factors{one, other}, 2);
                products_.reserve(count);
                next = products_.data() + products_.size();
                continue;
            }
            *next = Feature{hash, nullptr, one << 16 | other, PAIR};
            next += is_recent_product(hash) ? 0 : 1;
        }
        products_.resize(static_cast<std::size_t>(next - products_.data()));
    }

    // Whether names are recorded now, and whether those of products are, too.
    bool is_recording() const noexcept { return keeps_names() && (is_complete_ || names_.are_wanted()); }
    bool is_recording_products() const noexcept {
        return is_recording() && (is_complete_ || (recent_products_.is_allocated() && names_.are_products_wanted()));
    }

    // Where the names of a row are looked for, which goes better if the buckets are fetched before.
    RecentNames::View recent() const noexcept { return recent_.view(); }
    // Fetches the bucket of one name, if names are kept.
    void fetch(std::uint64_t hash) const noexcept {
        if (recent_.is_allocated()) recent_.view().fetch(hash);
    }

    // Looks for those of the first `size` features of the row whose names may have to be recorded, once in a row. Which
    // are not recent is hard to guess, so there is no branch on it.
    void meet(std::size_t size) {
        if (std::exchange(has_met_, true)) return;
        unknown_.reserve(size);
        const Feature* const features = features_.data();
        std::uint32_t* const unknown = unknown_.data();
        std::size_t count = 0;
        if (is_complete_) {
            for (std::size_t i = 0; i < size; ++i) {
                unknown[count] = static_cast<std::uint32_t>(i);
                count += is_whole(features[i].hash) ? 0 : 1;
            }
        } else {
            const RecentNames::View recent = recent_.view();
            for (std::size_t i = 0; i < size; ++i) {
                unknown[count] = static_cast<std::uint32_t>(i);
                count += recent.has(features[i].hash) ? 0 : 1;
            }
        }
        unknown_.resize(count);
    }
    // Records the names of the row that was met. If their texts stay where they are until `settle`, it is found out
    // later which of them were recorded before: nothing waits for the memory then.
    void record(std::size_t row) {
        part_of_.clear();
        for (std::size_t i = 0; i < unknown_.size(); ++i) {
            const Feature& feature = features_.data()[unknown_.data()[i]];
            if (is_repeated(feature.hash, recent_)) continue;
            if (texts_stay_ && feature.group < PASSING) {
                put_off(feature, row);
            } else {
                settle();
                record(feature, row);
            }
        }
        if (!texts_stay_ || products_.size() != 0) settle();
        const Feature* const products = products_.data();
        const std::size_t count = products_.size();
        for (std::size_t i = 0; i < count; ++i) {
            if (known_products_.is_allocated() && i + AHEAD < count) known_products_.fetch(products[i + AHEAD].hash);
            if (!is_repeated(products[i].hash, recent_products_)) record(products[i], row);
        }
        end_met();
    }
    void end_met() {
        if (names_.size() > FEW) know_names();
    }
    // Finds names again that are not recent any more.
    void know_names() {
        if (keeps_names() && !known_.is_allocated() && !is_complete_) know_all();
    }
    // The texts of the present row, and the names of its groups, stay where they are until `settle`.
    void set_texts_stay() noexcept { texts_stay_ = true; }
    // The same, unless some of them lie in memory of the row.
    void set_texts_stay_unless_copied() noexcept { texts_stay_ = page_ == 0 && used_ == 0; }
    void settle() {
        for (; first_put_off_ != end_put_off_; ++first_put_off_) settle(put_off_[first_put_off_ % put_off_.size()]);
    }

    // Stops recording together with another parser of the same data.
    void join(const FeatureLog& other) noexcept { names_.join(other.names_); }

    bool has_new() const noexcept { return names_.size() != 0; }

    // Records everything anew: what comes is not behind what was read before.
    void forget() {
        if (keeps_names()) begin_names();
    }

    // The names since the last call. When no more are wanted, that ends the recording, unless none may be missed.
    NewNames take() {
        settle();
        if (is_complete_) {
            names_.set_complete();
        } else if (keeps_names() && !names_.are_wanted()) {
            recent_.release();
            known_.release();
            release_products();
            is_on_ = interactions_.any() || grams_.any();
        } else if (!names_.are_products_wanted()) {
            release_products();
        }
        return std::move(names_);
    }

private:
    static constexpr std::size_t PAGE = 1 << 16;

    // A name of which it is not yet known whether it was recorded before.
    struct PutOff {
        Feature feature;  // its `group` is the row
        const Byte* group;
        const Byte* key;
        std::uint32_t group_size;
        std::uint32_t key_size;
        Byte joint;
    };

    void put_off(const Feature& feature, std::size_t row) {
        if (known_.is_allocated()) known_.fetch(feature.hash);
        if (end_put_off_ - first_put_off_ == put_off_.size()) settle(put_off_[first_put_off_++ % put_off_.size()]);
        const FeatureGroup& group = groups_[feature.group];
        const Feature with_row{feature.hash, feature.text, feature.size, static_cast<std::uint32_t>(row)};
        put_off_[end_put_off_++ % put_off_.size()] =
            PutOff{with_row, group.name, group.key, group.size, group.key_size, group.joint};
    }
    void settle(const PutOff& name) {
        if (is_known(name.feature.hash, known_)) return;
        names_.append(name.feature,
                      FeatureGroup{name.group, name.group_size, name.joint, 0, nullptr, name.key, name.key_size});
        names_.end(name.feature.group, name.feature.hash, false);
    }
    void record(const Feature& feature, std::size_t row) {
        const bool is_product = feature.group == PRODUCT || feature.group == PAIR;
        if (is_known(feature.hash, is_product ? known_products_ : known_)) return;
        if (feature.group == PAIR && names_.has_space_for_parts()) {
            const std::uint32_t one = part_of(feature.size >> 16), other = part_of(feature.size & 0xffffu);
            return names_.add_pair(row, feature.hash, one, other);
        }
        append(feature);
        names_.end(row, feature.hash, is_product);
    }

    // The name of a feature of the row as a part of the names of its products.
    std::uint32_t part_of(std::size_t number) {
        if (part_of_.size() <= number) part_of_.resize(number + 1, NO_PART);
        if (part_of_[number] == NO_PART) {
            append(features_.data()[number]);
            part_of_[number] = names_.end_part();
        }
        return part_of_[number];
    }

    // 2 MB, for names that are not recent any more, once there are many in a batch.
    static constexpr std::size_t KNOWN_SETS = std::size_t{1} << 18, FEW = 4096, AHEAD = 8;

    void know_all() {
        known_.allocate(KNOWN_SETS);
        if (recent_products_.is_allocated()) known_products_.allocate(KNOWN_SETS);
        for (std::size_t i = 0; i < names_.size(); ++i) {
            if (names_[i].is_product == 0) {
                known_.add(names_[i].hash);
            } else if (known_products_.is_allocated()) {
                known_products_.add(names_[i].hash);
            }
        }
    }

    void begin_names() {
        whole_.assign(is_complete_ ? KNOWN : 0, 0);
        recent_.allocate();
        known_.release();
        release_products();
        if (interactions_.any() && !is_complete_) recent_products_.allocate();
    }
    void release_products() noexcept {
        recent_products_.release();
        known_products_.release();
    }

    Byte* space_for(std::size_t size) {
        if (page_ == pages_.size() || page_size_ - used_ < size) next_page(size);
        Byte* const space = pages_[page_].get() + used_;
        used_ += size;
        return space;
    }

    // A page for a text of this size: the first one is kept from row to row.
    void next_page(std::size_t size) {
        page_ = pages_.size();
        page_size_ = page_ == 0 && size < PAGE ? PAGE : size + PAGE;
        pages_.emplace_back(new Byte[page_size_]);
        used_ = 0;
    }

    static constexpr std::uint32_t PASSING = 0x80000000u;
    static constexpr std::uint32_t NO_PART = 0xffffffffu;
    static constexpr std::uint32_t PRODUCT = 0xffffffffu;
    static constexpr std::uint32_t GRAM = 0xfffffffeu;
    static constexpr std::uint32_t PAIR = 0xfffffffdu;  // a product of the features size / 2^16 and size % 2^16

    // The features of one column or namespace, in their order.
    struct Sequence {
        std::uint32_t group = 0;
        std::vector<std::uint32_t> members;
    };
    // A gram: the sequence, where in it the first feature is, and the mask of the others.
    struct Gram {
        std::uint32_t sequence;
        std::uint32_t at;
        std::uint32_t mask;
    };

    FeatureGroup with_rules(FeatureGroup group) const {
        const bool is_namespace = group.joint == '^';  // one without a name has no letter
        if (interactions_.any()) group.terms = interactions_.terms_of(group.name, group.size, is_namespace);
        const bool may_have_grams = is_namespace || group.joint == '=' || (group.joint == 0 && group.size == 0);
        if (grams_.any() && may_have_grams) {
            group.grams = grams_.rule_of(group.name, group.size, group.joint != '=');
        }
        return group;
    }

    // A namespace may come twice in a row: its features are one sequence.
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

    // The group of a feature, or of those that a gram is made of.
    const FeatureGroup& own_group(const Feature& feature) const noexcept {
        return group_at(feature.group != GRAM ? feature.group : all_sequences_[made_[feature.size].sequence].group);
    }

    void append(const Feature& feature) {
        if (feature.group == PRODUCT) {
            const auto& [factors, count] = factors_[feature.size];
            for (std::size_t k = 0; k < count; ++k) {
                if (k != 0) names_.append(Byte{'*'});
                append(features_.data()[factors[k]]);
            }
        } else if (feature.group == PAIR) {
            append(features_.data()[feature.size >> 16]);
            names_.append(Byte{'*'});
            append(features_.data()[feature.size & 0xffffu]);
        } else if (feature.group == GRAM) {
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

    // Whether a name that is not recent was recorded and is still known; from now on it is.
    bool is_known(std::uint64_t hash, NameFilter& known) noexcept {
        if (is_complete_) return std::exchange(whole_[hash & (KNOWN - 1)], hash) == hash && hash != 0;
        if (!known.is_allocated()) return false;
        if (known.has(hash)) return true;
        known.add(hash);
        return false;
    }
    // Whether a name was met lately. Where none may be missed, it is found by its whole hash.
    bool is_recent(std::uint64_t hash) const noexcept {
        return is_complete_ ? is_whole(hash) : recent_.view().has(hash);
    }
    bool is_recent_product(std::uint64_t hash) const noexcept {
        return is_complete_ ? is_whole(hash) : recent_products_.view().has(hash);
    }
    bool is_whole(std::uint64_t hash) const noexcept { return whole_[hash & (KNOWN - 1)] == hash && hash != 0; }
    // Whether an earlier feature of the row that is recorded has the same name; from now on one has.
    bool is_repeated(std::uint64_t hash, const RecentNames& recent) const noexcept {
        if (is_complete_) return false;  // that is found out when it is recorded
        if (recent.view().has(hash)) return true;
        recent.view().add(hash);
        return false;
    }

    static constexpr std::uint64_t KNOWN = 1 << 17;  // whole hashes, 1 MB

    bool is_on_ = false;
    bool is_complete_ = false;
    FeatureTexts* texts_ = nullptr;
    Interactions interactions_;
    std::vector<std::pair<Interactions::Factors, std::size_t>> factors_;  // of the products of the row, and how many
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
    RecentNames recent_;                                  // names that were recorded
    NameFilter known_;                                    // more of them
    // Products have their own: there may be no space for a product that was recorded, and a feature whose name is known
    // by the same bits is not to be missed for that.
    RecentNames recent_products_;
    NameFilter known_products_;
    std::vector<std::uint64_t> whole_;    // their hashes, where none may be missed
    std::vector<std::uint32_t> part_of_;  // of features of the row, NO_PART if there is none yet
    Buffer<std::uint32_t> unknown_;       // numbers of features of the row that are not recent
    Buffer<Feature> products_;            // those of the row that are not recent
    bool has_met_ = false;
    bool texts_stay_ = false;
    std::array<PutOff, 32> put_off_;
    std::size_t first_put_off_ = 0, end_put_off_ = 0;
    NewNames names_;
};

}  // namespace ftprl
