// All names of a model with their hashes, in the order of their first rows, within a budget of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "readers/named_cells.hpp"
#include "readers/new_names.hpp"
#include "readers/scan.hpp"
#include "readers/slots.hpp"
#include "support/memory.hpp"

namespace ftprl {

// A growing array of numbers. A large block grows by moving its pages, without a copy; a block with a view stays in
// place.
template <class T>
class GrowingList {
public:
    // `most` is the expected maximum.
    explicit GrowingList(std::size_t most) : most_(most) {}

    // The current content, for the lifetime of the view.
    class View {
    public:
        const T* data() const noexcept { return block_ == nullptr ? nullptr : static_cast<const T*>(block_->data()); }
        std::size_t size() const noexcept { return size_; }

    private:
        friend class GrowingList;
        std::shared_ptr<GrowingMemory> block_;
        std::size_t size_ = 0;
    };

    View view() const { return view_; }
    const T* data() const noexcept { return view_.data(); }
    std::size_t size() const noexcept { return view_.size_; }
    T operator[](std::size_t i) const noexcept { return data_[i]; }
    void push(T value) {
        reserve(1);
        data_[view_.size_++] = value;
    }
    // Appends this many entries, which the caller must write.
    T* extend(std::size_t count) {
        reserve(count);
        T* const added = data_ + view_.size_;
        view_.size_ += count;
        return added;
    }

private:
    void reserve(std::size_t more) {
        if (capacity_ - view_.size_ < more) grow(more);
    }
    void grow(std::size_t more) {
        const bool is_own = view_.block_.use_count() == 1;
        auto grown = is_own ? view_.block_ : std::make_shared<GrowingMemory>(most_ * sizeof(T));
        std::size_t wanted = capacity_ + capacity_ / 2 + 1024;
        if (wanted < view_.size_ + more) wanted = view_.size_ + more;
        grown->grow(wanted * sizeof(T));
        data_ = static_cast<T*>(grown->data());
        if (!is_own && view_.size_ != 0) std::memcpy(data_, view_.data(), view_.size_ * sizeof(T));
        capacity_ = grown->size() / sizeof(T);
        view_.block_ = std::move(grown);
    }

    std::size_t most_;
    View view_;
    T* data_ = nullptr;  // that of the view
    std::size_t capacity_ = 0;
};

// Each cell of a table has the name that is added first; with 0 cells every name is kept.
class NameTable {
public:
    static constexpr std::size_t OVERHEAD = 12;  // bytes that a name counts for besides its own

    NameTable(std::uint64_t budget, std::uint64_t cells)
        : hashes(most_of(budget, OVERHEAD)),
          sizes(most_of(budget, OVERHEAD)),
          text(most_of(budget, 1)),
          budget_(budget),
          slots_(cells, false) {
        if (cells != 0) named_.allocate(cells);
    }

    GrowingList<std::uint64_t> hashes;
    GrowingList<std::uint32_t> sizes;  // of the texts
    GrowingList<Byte> text;

    std::uint64_t budget() const noexcept { return budget_; }
    std::uint64_t bytes() const noexcept { return text.size() + OVERHEAD * hashes.size(); }
    // The part of the budget that names of products may use, because there may be very many of them.
    std::uint64_t product_budget() const noexcept { return budget_ / 4; }
    std::uint64_t product_bytes() const noexcept { return product_bytes_; }
    // True if a name did not fit. No name is added after it, and no product after the first product that did not fit.
    bool is_full() const noexcept { return is_full_; }
    bool are_products_full() const noexcept { return are_products_full_; }
    void set_full() noexcept { is_full_ = true; }
    // Restores the size of the product names of a saved table; false if it is not valid.
    bool set_products(std::uint64_t bytes, bool are_full) noexcept {
        product_bytes_ = bytes;
        are_products_full_ = are_full;
        return bytes <= this->bytes() && bytes <= product_budget();
    }

    // The rows of the first name that does not fit, and of the first product that does not.
    struct FullRows {
        std::size_t any;
        std::size_t product;
    };

    // Adds the names first seen in rows [from, to) of a batch, and returns the row at which they do not fit, or `to`.
    FullRows add(const NewNames& names, std::size_t from, std::size_t to) {
        FullRows full{to, to};
        const std::size_t end = names.first_of(to);
        for (std::size_t i = names.first_of(from); i < end && !is_full_; ++i) {
            const NewNames::Entry& name = names[i];
            const Byte* const text = names.text_of(name);
            if (name.is_product == 0) {
                if (!add(name.hash, text, name.size)) full.any = name.row;
            } else if (!are_products_full_ && !add_product(name.hash, text, name.size)) {
                full.product = name.row;
            }
        }
        return full;
    }

    // Adds one name, unless its cell has one; false when it does not fit.
    bool add(std::uint64_t hash, const Byte* name, std::size_t size) {
        if (has_name(hash)) return true;
        is_full_ = is_full_ || !has_space_for(size);
        if (!is_full_) push(hash, name, size);
        return !is_full_;
    }
    // Adds the name of a product, unless it is known; false if it does not fit.
    bool add_product(std::uint64_t hash, const Byte* name, std::size_t size) {
        if (has_name(hash)) return true;
        const std::uint64_t bytes = product_bytes_ + OVERHEAD + size;
        are_products_full_ = are_products_full_ || bytes > product_budget() || !has_space_for(size);
        if (are_products_full_) return false;
        product_bytes_ = bytes;
        push(hash, name, size);
        return true;
    }
    // Adds a name that was saved, whatever its cell; false when it does not fit.
    bool load(std::uint64_t hash, const Byte* name, std::size_t size) {
        if (!has_space_for(size)) return false;
        push(hash, name, size);
        return true;
    }

    // The end of the text of each name, computed on demand because few callers need it.
    const std::vector<std::uint64_t>& ends() const {
        std::uint64_t end = ends_.empty() ? 0 : ends_.back();
        for (std::size_t i = ends_.size(); i < sizes.size(); ++i) ends_.push_back(end += sizes[i]);
        return ends_;
    }

private:
    bool has_space_for(std::size_t size) const noexcept {
        return bytes() + OVERHEAD + size <= budget_ && hashes.size() != LOW;
    }
    bool has_name(std::uint64_t hash) const noexcept { return named_.is_allocated() && named_.has(slots_(hash)); }
    void push(std::uint64_t hash, const Byte* name, std::size_t size) {
        hashes.push(hash);
        sizes.push(static_cast<std::uint32_t>(size));
        if (size != 0) std::memcpy(text.extend(size), name, size);
        if (named_.is_allocated()) named_.add(slots_(hash));
    }

    // The number of entries of this size that fit into a budget, limited to addressable memory.
    static std::size_t most_of(std::uint64_t budget, std::size_t bytes) noexcept {
        constexpr std::uint64_t MOST = std::uint64_t{1} << 26;
        return static_cast<std::size_t>((budget < MOST ? budget : MOST) / bytes);
    }

    static constexpr std::uint64_t LOW = 0xffffffffu;

    std::uint64_t budget_;
    std::uint64_t product_bytes_ = 0;
    bool is_full_ = false;
    bool are_products_full_ = false;
    Slots slots_;
    NamedCells named_;  // none where every name is kept
    mutable std::vector<std::uint64_t> ends_;
};

}  // namespace ftprl
