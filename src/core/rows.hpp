// RowBuilder under construction: repeated coordinates are summed, zeros left out, the intercept added.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "hash.hpp"
#include "scan.hpp"

namespace ftprl {

// Where a hash lands in a table of `dim` cells: its low bits when dim is a power of two, else the high half of
// hash * dim. With an intercept the last cell is the intercept's alone; a name that lands there takes the cell
// before it.
class Slots {
public:
    Slots(std::uint64_t dim, bool intercept) noexcept
        : dim_(dim), power_((dim & (dim - 1)) == 0), kept_(intercept ? dim - 1 : ~std::uint64_t{0}) {}

    std::uint32_t operator()(std::uint64_t hash) const noexcept {
        std::uint64_t slot = hash & (dim_ - 1);
        if (!power_) slot = detail::fold(hash, dim_) ^ (hash * dim_);
        return static_cast<std::uint32_t>(slot - (slot == kept_ ? 1 : 0));
    }
    std::uint64_t dim() const noexcept { return dim_; }
    bool intercept() const noexcept { return kept_ == dim_ - 1; }
    std::uint64_t room() const noexcept { return dim_ - (intercept() ? 1 : 0); }  // cells open to features

private:
    std::uint64_t dim_;
    bool power_;
    std::uint64_t kept_;
};

// A growing array of plain numbers that are not set to zero first and can be handed away.
template <class T>
class Buffer {
public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { std::free(data_); }

    T* data() noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    void resize(std::size_t size) noexcept { size_ = size; }  // within what was reserved
    void reserve(std::size_t more) {
        if (capacity_ - size_ >= more) return;
        std::size_t wanted = capacity_ + capacity_ / 2 + 1024;
        if (wanted < size_ + more) wanted = size_ + more;
        void* grown = std::realloc(data_, wanted * sizeof(T));
        if (grown == nullptr) throw std::bad_alloc();
        data_ = static_cast<T*>(grown);
        capacity_ = wanted;
    }
    void push(T value) {
        reserve(1);
        data_[size_++] = value;
    }
    // The memory, to be given to std::free; the buffer is empty afterwards.
    T* release() noexcept {
        size_ = capacity_ = 0;
        return std::exchange(data_, nullptr);
    }

private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

class RowBuilder {
public:
    RowBuilder(const Slots& slots, bool wide) : slots_(slots), wide_(wide) { indptr.push(0); }

    Buffer<std::int64_t> indptr;
    Buffer<std::uint32_t> indices;
    Buffer<float> narrow_values;  // one of the two is used
    Buffer<double> wide_values;
    Buffer<double> y;
    Buffer<double> weight;
    std::vector<std::pair<std::size_t, std::string>> tags;  // row and tag, where there is one

    const Slots& slots() const noexcept { return slots_; }
    bool wide() const noexcept { return wide_; }
    std::size_t count() const noexcept { return y.size(); }

    // Starts a row of at most `room` features, or forgets the one that was started.
    void begin(std::size_t room) {
        size_ = 0;
        more(room);
    }
    // Within the room that was asked for.
    void add(std::uint32_t slot, double value) noexcept { row_.data()[size_++] = Feature{value, slot}; }
    // Makes room for more features of the row at hand.
    void more(std::size_t room) {
        row_.resize(size_);
        row_.reserve(room);
    }
    // Ends a row. False, and no row, when a value is too large for the batch.
    bool finish(double label, double importance) {
        const std::size_t n = is_doubtful() ? combine() : size_;
        indices.reserve(n + 1);
        bool fits = false;
        if (wide_) {
            wide_values.reserve(n + 1);
            fits = write(n, wide_values);
        } else {
            narrow_values.reserve(n + 1);
            fits = write(n, narrow_values);
        }
        if (!fits) return false;
        indptr.push(static_cast<std::int64_t>(indices.size()));
        y.push(label);
        weight.push(importance);
        return true;
    }
    // After the arrays were released.
    void clear() {
        indptr.push(0);
        tags.clear();
    }

private:
    // Whether a coordinate may occur twice: true when it does, and now and then when it does not.
    bool is_doubtful() noexcept {
        const Feature* row = row_.data();
        std::uint64_t met = 0;
        for (std::size_t i = 0; i < size_; ++i) {
            std::uint64_t& word = seen_[(row[i].slot >> 6) % seen_.size()];
            const std::uint64_t bit = std::uint64_t{1} << (row[i].slot & 63);
            met |= word & bit;
            word |= bit;
        }
        for (std::size_t i = 0; i < size_; ++i) seen_[(row[i].slot >> 6) % seen_.size()] = 0;
        return met != 0;
    }

    // Sums repeated coordinates, in order, into the place of the first.
    std::size_t combine() {
        std::size_t wanted = 64;
        while (wanted < 2 * size_) wanted *= 2;
        if (places_.size() < wanted) places_.assign(wanted, Place{});
        const std::size_t mask = places_.size() - 1;
        ++round_;
        Feature* row = row_.data();
        std::size_t kept = 0;
        for (std::size_t i = 0; i < size_; ++i) {
            std::size_t at = (row[i].slot * std::size_t{0x9e3779b1u} >> 8) & mask;
            while (places_[at].round == round_ && row[places_[at].row].slot != row[i].slot) at = (at + 1) & mask;
            if (places_[at].round == round_) {
                row[places_[at].row].value += row[i].value;
            } else {
                places_[at] = Place{round_, kept};
                row[kept++] = row[i];
            }
        }
        return kept;
    }

    template <class T>
    bool write(std::size_t n, Buffer<T>& values) noexcept {
        constexpr double most = static_cast<double>(std::numeric_limits<T>::max());
        const Feature* row = row_.data();
        std::uint32_t* slot = indices.data() + indices.size();
        T* value = values.data() + values.size();
        std::size_t out = 0;
        bool fits = true;
        for (std::size_t i = 0; i < n; ++i) {
            const bool good = std::fabs(row[i].value) <= most;
            const T rounded = good ? static_cast<T>(row[i].value) : T{0};
            fits = fits && good;
            slot[out] = row[i].slot;
            value[out] = rounded;
            out += rounded != T{0} ? 1 : 0;
        }
        if (slots_.intercept()) {
            slot[out] = static_cast<std::uint32_t>(slots_.dim() - 1);
            value[out++] = T{1};
        }
        if (!fits) return false;
        indices.resize(indices.size() + out);
        values.resize(values.size() + out);
        return true;
    }

    struct Feature {
        double value;
        std::uint32_t slot;
    };
    struct Place {
        std::uint64_t round = 0;
        std::size_t row = 0;
    };

    Slots slots_;
    bool wide_;
    Buffer<Feature> row_;  // the row at hand
    std::size_t size_ = 0;
    std::array<std::uint64_t, 1024> seen_{};
    std::vector<Place> places_;
    std::uint64_t round_ = 0;
};

}  // namespace ftprl
