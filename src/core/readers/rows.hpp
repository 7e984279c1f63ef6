// RowBuilder under construction: repeated coordinates are summed, zeros left out, the intercept added.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "readers/scan.hpp"
#include "support/blocks.hpp"
#include "support/hash.hpp"

namespace ftprl {

// The largest |number| that a learner takes.
inline constexpr double LARGEST = 1e30;

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
    // Whether a slot is the low bits of a hash and nothing else; then `mask` has them.
    bool masked() const noexcept { return power_ && !intercept(); }
    std::uint64_t mask() const noexcept { return dim_ - 1; }
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
    ~Buffer() { Blocks::shared().give(data_); }

    T* data() noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    void resize(std::size_t size) noexcept { size_ = size; }  // within what was reserved
    void reserve(std::size_t more) {
        if (capacity_ - size_ >= more) return;
        std::size_t wanted = capacity_ == 0 ? usual_ : capacity_ + capacity_ / 2;
        if (wanted < size_ + more) wanted = size_ + more;
        if (wanted > ~std::size_t{0} / sizeof(T)) throw std::bad_alloc();
        auto* grown = static_cast<T*>(Blocks::shared().take(wanted * sizeof(T)));
        if (size_ != 0) std::memcpy(grown, data_, size_ * sizeof(T));
        Blocks::shared().give(std::exchange(data_, grown));
        capacity_ = Blocks::size_of(grown) / sizeof(T);
    }
    void push(T value) {
        reserve(1);
        data_[size_++] = value;
    }
    // The memory, to be given back to Blocks; the buffer is empty afterwards.
    T* release() noexcept {
        usual_ = size_ + size_ / 8 + 1024;
        size_ = capacity_ = 0;
        return std::exchange(data_, nullptr);
    }

private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
    std::size_t usual_ = 1024;  // as much as last time, and some: growing copies, and asks the system for new pages
};

class RowBuilder {
public:
    RowBuilder(const Slots& slots, bool wide) : slots_(slots), wide_(wide) { indptr.push(0); }

    Buffer<std::int64_t> indptr;
    Buffer<std::uint32_t> indices;
    Buffer<float> narrow_values;  // one of the two is used; neither as long as every value is 1
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
        row_is_plain_ = false;
        more(room);
    }
    // Every value of the row at hand is 1, and none was written.
    void set_plain() noexcept { row_is_plain_ = true; }
    // Whether every value of every row is 1: they are not written then, and one array of ones serves all batches.
    bool is_plain() const noexcept { return is_plain_; }
    // Writes the values that were left out.
    void spread() {
        if (!std::exchange(is_plain_, false)) return;
        if (wide_) {
            spread(wide_values);
        } else {
            spread(narrow_values);
        }
    }
    // Within the room that was asked for.
    void add(std::uint32_t slot, double value) noexcept {
        row_slots()[size_] = slot;
        row_values()[size_++] = value;
    }
    // The same in the caller's hands: it writes up to as many features as there is room for and says how many.
    std::uint32_t* row_slots() noexcept { return indices.data() + indices.size(); }
    double* row_values() noexcept { return row_values_.data(); }
    std::size_t size() const noexcept { return size_; }
    void set_size(std::size_t size) noexcept { size_ = size; }
    // Makes room for more features of the row at hand.
    void more(std::size_t room) {
        const std::size_t before = indices.size();
        indices.resize(before + size_);  // what moves when there is no room
        indices.reserve(room + 1);       // and the intercept
        indices.resize(before);
        row_values_.resize(size_);
        row_values_.reserve(room + LANES);
    }
    // Ends a row. False, and no row, when a value is too large for the batch.
    bool finish(double label, double importance) {
        const bool doubtful = is_doubtful();
        if (row_is_plain_ && (doubtful || !is_plain_)) fill_row();
        const std::size_t n = doubtful ? combine() : size_;
        bool fits = true;
        if (is_plain_ && (row_is_plain_ || has_ones(n))) {
            write_slots(n);
        } else if (wide_) {
            spread();
            wide_values.reserve(n + LANES);
            fits = write(n, wide_values);
        } else {
            spread();
            narrow_values.reserve(n + LANES);
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
        is_plain_ = true;
        indptr.push(0);
        tags.clear();
    }

private:
    // Whether a coordinate may occur twice: true when it does, and now and then when it does not.
    bool is_doubtful() noexcept {
        const std::uint32_t* const slots = row_slots();
        std::size_t rising = 1;
        while (rising < size_ && slots[rising - 1] < slots[rising]) ++rising;
        if (rising >= size_) return false;
        if (++mark_ == 0) {
            seen_.fill(0);
            mark_ = 1;
        }
        // Copies: a byte that is written could be part of anything, also of this object.
        std::uint8_t* const seen = seen_.data();
        const std::uint8_t mark = mark_;
        const std::size_t size = size_;
        unsigned met = 0;
        for (std::size_t i = 0; i < size; ++i) {
            std::uint8_t& cell = seen[slots[i] % SEEN];
            met |= cell == mark ? 1u : 0u;
            cell = mark;
        }
        return met != 0;
    }

    // Sums repeated coordinates, in order, into the place of the first.
    std::size_t combine() {
        std::size_t wanted = 64;
        while (wanted < 2 * size_) wanted *= 2;
        if (places_.size() < wanted) places_.assign(wanted, Place{});
        const std::size_t mask = places_.size() - 1;
        ++round_;
        std::uint32_t* const slots = row_slots();
        double* const values = row_values();
        std::size_t kept = 0;
        for (std::size_t i = 0; i < size_; ++i) {
            std::size_t at = (slots[i] * std::size_t{0x9e3779b1u} >> 8) & mask;
            while (places_[at].round == round_ && slots[places_[at].row] != slots[i]) at = (at + 1) & mask;
            if (places_[at].round == round_) {
                values[places_[at].row] += values[i];
            } else {
                places_[at] = Place{round_, kept};
                slots[kept] = slots[i];
                values[kept++] = values[i];
            }
        }
        return kept;
    }

    template <class T>
    void spread(Buffer<T>& values) {
        const std::size_t n = indices.size();
        values.reserve(n + LANES);
        for (std::size_t i = 0; i < n; ++i) values.data()[i] = T{1};
        values.resize(n);
    }

    void fill_row() noexcept {
        row_is_plain_ = false;
        for (std::size_t i = 0; i < size_; ++i) row_values()[i] = 1.0;
    }

    bool has_ones(std::size_t n) noexcept {
        const double* const row = row_values();
        unsigned odd = 0;
        for (std::size_t i = 0; i < n; ++i) odd |= row[i] != 1.0 ? 1u : 0u;
        return odd == 0;
    }

    void write_slots(std::size_t n) noexcept {
        if (slots_.intercept()) row_slots()[n++] = static_cast<std::uint32_t>(slots_.dim() - 1);
        indices.resize(indices.size() + n);
    }

    template <class T>
    bool write(std::size_t n, Buffer<T>& values) noexcept {
        std::uint32_t* slot = row_slots();
        T* value = values.data() + values.size();
        std::size_t out = n;
        if (!copy_plain(n, value)) {
            const double* row = row_values();
            bool fits = true;
            out = 0;
            for (std::size_t i = 0; i < n; ++i) {
                const bool good = std::fabs(row[i]) <= LARGEST;
                const T rounded = good ? static_cast<T>(row[i]) : T{0};
                fits = fits && good;
                slot[out] = slot[i];
                value[out] = rounded;
                out += rounded != T{0} ? 1 : 0;
            }
            if (!fits) return false;
        }
        if (slots_.intercept()) {
            slot[out] = static_cast<std::uint32_t>(slots_.dim() - 1);
            value[out++] = T{1};
        }
        indices.resize(indices.size() + out);
        values.resize(values.size() + out);
        return true;
    }

    // Writes the values if none is zero and none near the end of the range; false when one is, or there is no short
    // cut for the type.
    bool copy_plain(std::size_t, double*) noexcept { return false; }
#if defined(FTPRL_SSE2)
    bool copy_plain(std::size_t n, float* out) noexcept {
        double* row = row_values();
        for (std::size_t i = n; i % LANES != 0; ++i) row[i] = 1.0;
        const __m128i size = _mm_set1_epi32(0x7fffffff), below_most = _mm_set1_epi32(0x7149f2c9);  // just under 1e30
        __m128i odd = _mm_setzero_si128();
        for (std::size_t i = 0; i < n; i += LANES) {
            const __m128 low = _mm_cvtpd_ps(_mm_loadu_pd(row + i)), high = _mm_cvtpd_ps(_mm_loadu_pd(row + i + 2));
            const __m128 word = _mm_movelh_ps(low, high);
            const __m128i bits = _mm_and_si128(_mm_castps_si128(word), size);
            odd = _mm_or_si128(odd, _mm_cmpeq_epi32(bits, _mm_setzero_si128()));
            odd = _mm_or_si128(odd, _mm_cmpgt_epi32(bits, below_most));
            _mm_storeu_ps(out + i, word);
        }
        return _mm_movemask_epi8(odd) == 0;
    }
#else
    bool copy_plain(std::size_t, float*) noexcept { return false; }
#endif

    struct Place {
        std::uint64_t round = 0;
        std::size_t row = 0;
    };

    static constexpr std::size_t LANES = 4;       // values are written so many at a time
    static constexpr std::size_t SEEN = 1 << 14;  // more cells doubt less, and leave less of the nearest cache

    Slots slots_;
    bool wide_;
    // The row at hand: its slots stand behind those of the rows before, its values here until they are summed.
    Buffer<double> row_values_;
    std::size_t size_ = 0;
    bool row_is_plain_ = false;
    bool is_plain_ = true;
    std::array<std::uint8_t, SEEN> seen_{};  // `mark_` where a slot of this row landed
    std::uint8_t mark_ = 0;
    std::vector<Place> places_;
    std::uint64_t round_ = 0;
};

}  // namespace ftprl
