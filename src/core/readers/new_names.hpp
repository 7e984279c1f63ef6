// The names that first occur in the rows of a batch.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "readers/buffer.hpp"
#include "readers/feature.hpp"
#include "readers/scan.hpp"

namespace ftprl {

// Names in the order of their first rows, as a parser found them.
class NewNames {
public:
    NewNames() = default;
    NewNames(NewNames&& other) noexcept
        : names_(std::move(other.names_)),
          text_(std::move(other.text_)),
          begin_(std::exchange(other.begin_, 0)),
          is_complete_(other.is_complete_),
          are_wanted_(other.are_wanted_) {}

    // Tells the parsers of these names that no more names, or no more names of interactions, are needed, because there
    // is no space.
    void stop() noexcept { are_wanted_->all.store(false, std::memory_order_relaxed); }
    void stop_products() noexcept { are_wanted_->products.store(false, std::memory_order_relaxed); }
    bool are_wanted() const noexcept { return are_wanted_->all.load(std::memory_order_relaxed); }
    bool are_products_wanted() const noexcept { return are_wanted_->products.load(std::memory_order_relaxed); }
    // Shares the request for names with another parser.
    void join(const NewNames& other) noexcept { are_wanted_ = other.are_wanted_; }

    struct Entry {
        std::uint64_t hash;
        std::uint32_t row;             // within the batch
        std::uint32_t size : 31;       // of its text
        std::uint32_t is_product : 1;  // of an interaction
        std::uint64_t begin;           // of its text
    };

    // True if every new name of the rows is present, even if there was a limit.
    bool is_complete() const noexcept { return is_complete_; }
    void set_complete() noexcept { is_complete_ = true; }

    std::size_t size() const noexcept { return names_.size(); }
    const Entry& operator[](std::size_t i) const noexcept { return names_.data()[i]; }
    // The text of a name, `size` bytes.
    const Byte* text_of(const Entry& name) const noexcept { return text_.data() + name.begin; }

    // Appends the name of a feature, its group and its text, to the current name.
    void append(const Feature& feature, const FeatureGroup& group) {
        const std::size_t before = text_.size();
        text_.reserve(std::size_t{group.size} + group.key_size + feature.size + 1);
        Byte* to = copy(group.name, group.size, text_.data() + before);
        if (feature.text != nullptr) {
            *to = group.joint;
            to = copy(group.key, group.key_size, to + (group.joint != 0 ? 1 : 0));
            to = copy(feature.text, feature.size, to);
        }
        text_.resize(static_cast<std::size_t>(to - text_.data()));
    }
    void append(Byte mark) { text_.push(mark); }
    void append(const Byte* text, std::size_t size) {
        const std::size_t before = text_.size();
        text_.reserve(size + 1);
        copy(text, size, text_.data() + before);
        text_.resize(before + size);
    }
    // Ends a name.
    void end(std::size_t row, std::uint64_t hash, bool is_product) {
        const std::size_t size = text_.size() - begin_;
        names_.push(Entry{hash, static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(size), is_product, begin_});
        begin_ = text_.size();
    }
    // Adds a name recorded by another object; rows must not decrease.
    void add(std::uint64_t hash, std::uint32_t row, const Byte* name, std::uint32_t size, bool is_product) {
        const std::size_t begin = text_.size();
        text_.reserve(std::size_t{size} + 1);
        copy(name, size, text_.data() + begin);
        text_.resize(begin + size);
        names_.push(Entry{hash, row, size, is_product, begin});
        begin_ = text_.size();
    }

    // The first name of a row or of a later one.
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
    // Most texts are short and of different sizes: two overlapping reads and writes are faster than a call.
    static Byte* copy(const Byte* from, std::size_t size, Byte* to) noexcept {
        if (size >= 8 && size <= 16) {
            std::uint64_t first = 0, last = 0;
            std::memcpy(&first, from, 8);
            std::memcpy(&last, from + size - 8, 8);
            std::memcpy(to, &first, 8);
            std::memcpy(to + size - 8, &last, 8);
        } else if (size != 0) {
            std::memcpy(to, from, size);
        }
        return to + size;
    }

    Buffer<Entry> names_;
    Buffer<Byte> text_;
    // Shared by all parsers of the same data.
    struct Wanted {
        std::atomic<bool> all{true};
        std::atomic<bool> products{true};
    };

    std::size_t begin_ = 0;  // of the name that is written
    bool is_complete_ = false;
    std::shared_ptr<Wanted> are_wanted_ = std::make_shared<Wanted>();
};

}  // namespace ftprl
