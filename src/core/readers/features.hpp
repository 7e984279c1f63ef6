// The features of the row under construction by their hashes and names, which a slot alone does not know.
//
// They are kept only where somebody asks for names. A feature has a group, its column or its namespace, and a text
// behind that: "column=text", "namespace^text". A name is put together when it is recorded for the first time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "readers/buffer.hpp"
#include "readers/interactions.hpp"
#include "readers/scan.hpp"
#include "support/memory.hpp"

namespace ftprl {

// A column or a namespace: its name, and what stands between that and the text of a feature (0 for nothing). The name
// belongs to somebody else.
struct FeatureGroup {
    const Byte* name;
    std::uint32_t size;
    Byte joint;
    std::uint64_t terms = 0;  // of interactions that mean it, a bit each
};

// The text of a feature that is called like its group, such as a column of numbers, is null.
struct Feature {
    std::uint64_t hash;
    const Byte* text;
    std::uint32_t size;
    std::uint32_t group;
};

// Knows the text of features whose `text` is TEXT_LATER: it is asked for when such a name is recorded, before the row
// is over. What `size` means is up to the source.
inline constexpr Byte TEXT_LATER[] = {0};
class FeatureTexts {
public:
    virtual Feature with_text(const Feature& feature) = 0;
    // False when the name was surely asked for before, since the last `forget`.
    virtual bool is_new(const Feature& feature) = 0;
    virtual void forget() = 0;

protected:
    ~FeatureTexts() = default;
};

// A name is known by these bits of its hash, the lowest: two names that agree in them count as one. In a table of 2^22
// cells they then share their cell, too, and of those that do one in 256 is not counted.
inline constexpr std::uint64_t NAME_BITS = (std::uint64_t{1} << 30) - 1;

// Names that were met before, four in a set of 64 bits: a new one takes the place of the one that came longest ago.
class NameFilter {
public:
    // So many sets, a power of two of at least 2^15; and none of them has a name.
    void allocate(std::size_t sets) {
        sets_ = std::make_unique<Memory>(sets * sizeof(std::uint64_t));
        mask_ = sets - 1;
    }
    void release() noexcept { sets_.reset(); }
    bool is_allocated() const noexcept { return sets_ != nullptr; }

    bool has(std::uint64_t hash) const noexcept { return has_tag(set_of(hash), tag_of(hash)); }
    void add(std::uint64_t hash) noexcept { set_of(hash) = set_of(hash) << 16 | tag_of(hash); }
    void fetch(std::uint64_t hash) const noexcept {
#if defined(__GNUC__)
        __builtin_prefetch(&set_of(hash));
#else
        (void)hash;
#endif
    }

private:
    static constexpr std::uint64_t TAG_BITS = NAME_BITS >> 15;
    static_assert(TAG_BITS == 0x7fff, "a tag has 16 bits, one of which says that it is there");

    std::uint64_t& set_of(std::uint64_t hash) const noexcept {
        return static_cast<std::uint64_t*>(sets_->data())[hash & mask_];
    }
    static std::uint64_t tag_of(std::uint64_t hash) noexcept { return (hash >> 15 & TAG_BITS) | 0x8000; }
    // Whether one of four tags of 16 bits is this one; where there is no tag it is 0.
    static bool has_tag(std::uint64_t set, std::uint64_t tag) noexcept {
        constexpr std::uint64_t ones = 0x0001000100010001u;
        const std::uint64_t differs = set ^ (tag * ones);
        return ((differs - ones) & ~differs & (ones << 15)) != 0;
    }

    std::unique_ptr<Memory> sets_;  // on a huge page, if it is that large: sets are met in any order
    std::size_t mask_ = 0;
};

// Names in the order of their first rows: those that a parser met for the first time.
class NewNames {
public:
    NewNames() = default;
    NewNames(NewNames&& other) noexcept
        : names_(std::move(other.names_)),
          text_(std::move(other.text_)),
          begin_(std::exchange(other.begin_, 0)),
          are_wanted_(other.are_wanted_) {}

    // No more names are wanted of the parsers that these come from: there is no room for them.
    void stop() noexcept { are_wanted_->store(false, std::memory_order_relaxed); }
    bool are_wanted() const noexcept { return are_wanted_->load(std::memory_order_relaxed); }
    // From now on they are wanted as long as those of another parser.
    void join(const NewNames& other) noexcept { are_wanted_ = other.are_wanted_; }

    struct Entry {
        std::uint64_t hash;
        std::uint32_t row;  // within the batch
        std::uint32_t size;
        std::uint64_t begin;  // of its text
    };

    std::size_t size() const noexcept { return names_.size(); }
    const Entry& operator[](std::size_t i) const noexcept { return names_.data()[i]; }
    const Byte* text(const Entry& name) const noexcept { return text_.data() + name.begin; }

    // Writes the name of a feature, that of its group and the text behind it, to the end of the one that is begun.
    void append(const Feature& feature, const FeatureGroup& group) {
        const std::size_t before = text_.size();
        text_.reserve(std::size_t{group.size} + feature.size + 1);
        Byte* to = copy(group.name, group.size, text_.data() + before);
        if (feature.text != nullptr) {
            *to = group.joint;
            to = copy(feature.text, feature.size, to + (group.joint != 0 ? 1 : 0));
        }
        text_.resize(static_cast<std::size_t>(to - text_.data()));
    }
    void append(Byte mark) { text_.push(mark); }
    // Ends a name.
    void end(std::size_t row, std::uint64_t hash) {
        const std::size_t size = text_.size() - begin_;
        names_.push(Entry{hash, static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(size), begin_});
        begin_ = text_.size();
    }

    // Adds a name as another object had it; rows must not fall.
    void add(std::uint64_t hash, std::uint32_t row, const Byte* name, std::uint32_t size) {
        const std::size_t begin = text_.size();
        text_.reserve(std::size_t{size} + 1);
        copy(name, size, text_.data() + begin);
        text_.resize(begin + size);
        names_.push(Entry{hash, row, size, begin});
    }

    // Leaves out names that a filter knows, and adds the others to it.
    void keep_new(NameFilter& known) noexcept {
        Entry* const entries = names_.data();
        const std::size_t count = size();
        std::size_t kept = 0;
        for (std::size_t i = 0; i < count; ++i) {
            if (i + AHEAD < count) known.fetch(entries[i + AHEAD].hash);
            const std::uint64_t hash = entries[i].hash;
            entries[kept] = entries[i];
            if (known.has(hash)) continue;
            known.add(hash);
            ++kept;
        }
        names_.resize(kept);
    }

    // The first name of a row or of one behind it.
    std::size_t first_of(std::size_t row) const noexcept {
        std::size_t low = 0, high = size();
        while (low < high) {
            const std::size_t middle = (low + high) / 2;
            if ((*this)[middle].row < row) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

private:
    static constexpr std::size_t AHEAD = 16;

    static Byte* copy(const Byte* from, std::size_t size, Byte* to) noexcept {
        std::memcpy(to, from, size);
        return to + size;
    }

    Buffer<Entry> names_;
    Buffer<Byte> text_;
    std::size_t begin_ = 0;  // of the name that is written
    std::shared_ptr<std::atomic<bool>> are_wanted_ = std::make_shared<std::atomic<bool>>(true);
};

class FeatureLog {
public:
    // Without names and interactions nothing is kept, and `features` is not to be used.
    bool is_on() const noexcept { return is_on_; }
    void keep_names() {
        begin_names();
        is_on_ = true;
    }
    bool keeps_names() const noexcept { return frequent_.is_allocated(); }
    void set_texts(FeatureTexts& texts) noexcept { texts_ = &texts; }
    void set_interactions(const Interactions& interactions) {
        interactions_ = interactions;
        is_on_ = is_on_ || interactions_.any();
    }
    bool has_interactions() const noexcept { return interactions_.any(); }

    // The entry of the feature with this number in the row.
    Feature* features() noexcept { return features_.data(); }
    void reserve(std::size_t size, std::size_t more) {
        features_.resize(size);
        features_.reserve(more);
    }

    std::uint32_t add_group(const FeatureGroup& group) {
        groups_.push_back(with_terms(group));
        return static_cast<std::uint32_t>(groups_.size() - 1);
    }
    // A group that only the present row has.
    std::uint32_t add_passing_group(const FeatureGroup& group) {
        passing_.push_back(with_terms(group));
        return PASSING | static_cast<std::uint32_t>(passing_.size() - 1);
    }
    void clear_groups() noexcept { groups_.clear(); }

    // A text that lasts as long as the row.
    const Byte* lasting(const Byte* text, std::size_t size) {
        if (page_ == pages_.size() || page_size_ - used_ < size) next_page(size);
        Byte* const copy = pages_[page_].get() + used_;
        std::memcpy(copy, text, size);
        used_ += size;
        return copy;
    }
    void begin_row() noexcept {
        pages_.resize(pages_.size() > 1 ? 1 : pages_.size());
        passing_.clear();
        factors_.clear();
        page_ = used_ = 0;
        page_size_ = PAGE;
    }

    // How many products of the first `size` features there may be; then each of them: add(hash, factors, how many).
    std::size_t begin_products(std::size_t size) {
        return interactions_.begin(size, [this](std::size_t i) { return group_at(features_.data()[i].group).terms; });
    }
    template <class Add>
    void each_product(const Add& add) {
        interactions_.each([&](const Interactions::Factors& factors, std::size_t count) {
            std::uint64_t sum = 0;
            for (std::size_t k = 0; k < count; ++k) sum += features_.data()[factors[k]].hash;
            add(Interactions::hash(sum, count), factors, count);
        });
    }
    // The entry of a product, whose name is put together of those of its factors.
    Feature product(std::uint64_t hash, const Interactions::Factors& factors, std::size_t count) {
        factors_.emplace_back(factors, count);
        return Feature{hash, nullptr, static_cast<std::uint32_t>(factors_.size() - 1), PRODUCT};
    }

    // Records the names of a finished row of `size` features, except those that were recorded before. Most are found in
    // the small filter; which are not is hard to guess, so it is found out without a branch first.
    void record(std::size_t row, std::size_t size) {
        if (!names_.are_wanted()) return;
        const Feature* const features = features_.data();
        if (unknown_.size() < size) unknown_.resize(2 * size);
        std::uint32_t* const unknown = unknown_.data();
        const NameFilter& frequent = frequent_;
        std::size_t count = 0;
        for (std::size_t i = 0; i < size; ++i) {
            unknown[count] = static_cast<std::uint32_t>(i);
            count += frequent.has(features[i].hash) ? 0 : 1;
        }
        for (std::size_t i = 0; i < count; ++i) {
            const Feature& feature = features[unknown[i]];
            frequent_.add(feature.hash);
            if (feature.text == TEXT_LATER && !texts_->is_new(feature)) continue;
            append(feature);
            names_.end(row, feature.hash);
        }
    }

    // Stops recording together with another parser of the same data.
    void join(const FeatureLog& other) noexcept { names_.join(other.names_); }

    // Records everything anew: what comes is not behind what was read before.
    void forget() {
        if (keeps_names()) begin_names();
        if (texts_ != nullptr) texts_->forget();
    }

    // The names since the last call. When no more are wanted, that ends the recording.
    NewNames take() {
        if (keeps_names() && !names_.are_wanted()) {
            frequent_.release();
            known_.release();
            is_on_ = interactions_.any();
        } else if (keeps_names()) {
            if (!known_.is_allocated() && names_.size() > FREQUENT_SETS / 8) known_.allocate(KNOWN_SETS);
            if (known_.is_allocated()) names_.keep_new(known_);
        }
        return std::move(names_);
    }

private:
    static constexpr std::size_t PAGE = 1 << 16;

    // 256 kB: with more the filter would be slower than the parser. And 2 MB, for names that it has forgotten; all
    // those of a batch are looked up there at once, once there are many, so that none waits for the memory.
    static constexpr std::size_t FREQUENT_SETS = std::size_t{1} << 15, KNOWN_SETS = std::size_t{1} << 18;

    void begin_names() {
        frequent_.allocate(FREQUENT_SETS);
        known_.release();
    }

    // A page for a text of this size: the first one is kept from row to row.
    void next_page(std::size_t size) {
        page_ = pages_.size();
        page_size_ = page_ == 0 && size < PAGE ? PAGE : size + PAGE;
        pages_.emplace_back(new Byte[page_size_]);
        used_ = 0;
    }

    static constexpr std::uint32_t PASSING = 0x80000000u;
    static constexpr std::uint32_t PRODUCT = 0xffffffffu;

    FeatureGroup with_terms(FeatureGroup group) const noexcept {
        const bool is_namespace = group.joint == '^';  // one without a name has no letter
        if (interactions_.any()) group.terms = interactions_.terms_of(group.name, group.size, is_namespace);
        return group;
    }

    void append(const Feature& feature) {
        if (feature.group != PRODUCT) return append_one(feature);
        const auto& [factors, count] = factors_[feature.size];
        for (std::size_t k = 0; k < count; ++k) {
            if (k != 0) names_.append(Byte{'*'});
            append_one(features_.data()[factors[k]]);
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
    FeatureTexts* texts_ = nullptr;
    Interactions interactions_;
    std::vector<std::pair<Interactions::Factors, std::size_t>> factors_;  // of the products of the row, and how many
    Buffer<Feature> features_;
    std::vector<FeatureGroup> groups_;
    std::vector<FeatureGroup> passing_;
    std::vector<std::unique_ptr<Byte[]>> pages_;
    std::size_t page_ = 0, page_size_ = PAGE, used_ = 0;  // of the page in use
    NameFilter frequent_, known_;                         // names that were recorded
    std::vector<std::uint32_t> unknown_;                  // numbers of features of the row that is recorded
    NewNames names_;
};

}  // namespace ftprl
