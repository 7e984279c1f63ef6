// Rows under construction: repeated coordinates are summed, zeros left out, the intercept added.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "readers/buffer.hpp"
#include "readers/features.hpp"
#include "readers/repeats.hpp"
#include "readers/scan.hpp"
#include "readers/slots.hpp"

namespace ftprl {

// The largest |number| that a learner takes.
inline constexpr double LARGEST = 1e30;

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
    FeatureLog log;                                         // names, if they are kept

    const Slots& slots() const noexcept { return slots_; }
    bool wide() const noexcept { return wide_; }
    std::size_t count() const noexcept { return y.size(); }

    // Starts a row of at most `capacity` features, or forgets the one that was started.
    void begin(std::size_t capacity) {
        size_ = 0;
        named_ = 0;
        row_has_unit_values_ = false;
        if (log.is_on()) log.begin_row();
        reserve(capacity);
    }
    // Declares that every value of the current row is 1, and that no values were written.
    void set_unit_values() noexcept { row_has_unit_values_ = true; }
    // True if every value of every row is 1: they are not written then, and one array of ones serves all batches.
    bool has_unit_values() const noexcept { return has_unit_values_; }
    // Writes the values that were left out so far.
    void write_unit_values() {
        if (!std::exchange(has_unit_values_, false)) return;
        if (wide_) {
            write_unit_values(wide_values);
        } else {
            write_unit_values(narrow_values);
        }
    }
    // Adds a feature, within the announced capacity.
    void add(std::uint32_t slot, double value) noexcept {
        row_slots()[size_] = slot;
        row_values()[size_++] = value;
    }
    // Adds a feature by its hash, with its group and its text (see features.hpp). The text must last as long as the
    // row.
    void add(std::uint64_t hash, double value, std::uint32_t group, const Byte* text, std::size_t size) noexcept {
        if (log.is_on()) log.features()[size_] = Feature{hash, text, static_cast<std::uint32_t>(size), group};
        add(slots_(hash), value);
    }
    // Adds a feature with a temporary text, which is copied if names need it.
    void add_copied(std::uint64_t hash, double value, std::uint32_t group, const Byte* text, std::size_t size) {
        const bool is_asked_for = log.is_on() && log.wants_text(slots_(hash));
        add(hash, value, group, is_asked_for ? log.lasting(text, size) : text, size);
    }
    // Lets the caller write up to `capacity` features itself and set the size.
    std::uint32_t* row_slots() noexcept { return indices.data() + indices.size(); }
    double* row_values() noexcept { return row_values_.data(); }
    std::size_t size() const noexcept { return size_; }
    void set_size(std::size_t size) noexcept { size_ = size; }
    // Makes space for `capacity` more features of the current row.
    void reserve(std::size_t capacity) {
        const std::size_t before = indices.size();
        indices.resize(before + size_);  // what moves when there is no space
        indices.reserve(capacity + 1);   // and the intercept
        indices.resize(before);
        row_values_.resize(size_);
        row_values_.reserve(capacity + LANES);
        if (log.is_on()) log.reserve(size_, capacity);
    }
    // Adds the n-grams of words. False if there are too many.
    bool add_grams() {
        if (!log.has_grams()) return true;
        const std::size_t most = log.begin_grams(size_);
        if (most > Grams::MOST) return false;
        reserve(most);
        const bool are_ones = row_has_unit_values_;
        log.each_gram([&](const Feature& gram) {
            log.features()[size_] = gram;
            row_slots()[size_] = slots_(gram.hash);
            if (!are_ones) row_values()[size_] = 1.0;
            ++size_;
        });
        return true;
    }
    // Adds the products of interacting features. False if there are too many.
    bool add_products() {
        if (!log.has_interactions()) return true;
        const std::size_t most = log.begin_products(size_);
        if (most > Interactions::MOST_PRODUCTS) return false;
        reserve(most);
        double* const values = row_values();
        const bool are_ones = row_has_unit_values_, has_names = log.is_recording_products();
        const Slots slots = slots_;
        named_ = size_;
        const auto make = [&](std::uint64_t hash, const Interactions::Factors& factors, std::size_t count) {
            double value = 1.0;
            for (std::size_t k = 0; !are_ones && k < count; ++k) value *= values[factors[k]];
            row_slots()[size_] = slots(hash);
            if (has_names) log.add_product(hash, row_slots()[size_], factors, count);
            if (!are_ones) values[size_] = value;
            ++size_;
        };
        const auto make_pairs = [&](std::uint32_t one, const std::uint32_t* others, std::size_t count) {
            const Feature* const features = log.features();
            std::uint32_t* const out = row_slots() + size_;
            const std::uint64_t own = features[one].hash;
            for (std::size_t k = 0; k < count; ++k) {
                const std::uint64_t hash = Interactions::hash(own + features[others[k]].hash, 2);
                out[k] = slots(hash);
                if (has_names) log.add_product(hash, out[k], {one, others[k]}, 2);
            }
            for (std::size_t k = 0; !are_ones && k < count; ++k) values[size_ + k] = values[one] * values[others[k]];
            size_ += count;
        };
        log.each_product(make, make_pairs);
        return true;
    }
    // Finishes the row; false, and no row, if a value is too large for the batch.
    bool finish(double label, double importance) {
        const std::size_t named = named_ == 0 ? size_ : named_;
        const bool has_names = log.is_recording();
        if (has_names) log.find_unnamed(row_slots(), named);
        const bool may_have_repeats = repeats_.may_repeat(row_slots(), size_);
        if (row_has_unit_values_ && (may_have_repeats || !has_unit_values_)) write_row_unit_values();
        const std::size_t n = may_have_repeats ? repeats_.combine(row_slots(), row_values(), size_) : size_;
        bool fits = true;
        if (has_unit_values_ && (row_has_unit_values_ || are_ones(n))) {
            write_slots(n);
        } else if (wide_) {
            write_unit_values();
            wide_values.reserve(n + LANES);
            fits = write(n, wide_values);
        } else {
            write_unit_values();
            narrow_values.reserve(n + LANES);
            fits = write(n, narrow_values);
        }
        if (!fits) return false;
        indptr.push(static_cast<std::int64_t>(indices.size()));
        y.push(label);
        weight.push(importance);
        if (has_names) log.record(count() - 1);
        return true;
    }
    // Removes all rows and keeps their memory.
    void forget() noexcept {
        indices.resize(0);
        narrow_values.resize(0);
        wide_values.resize(0);
        y.resize(0);
        weight.resize(0);
        tags.clear();
        indptr.resize(1);
        has_unit_values_ = true;
    }
    // Resets after the arrays were released.
    void clear() {
        has_unit_values_ = true;
        indptr.push(0);
        tags.clear();
    }

private:
    template <class T>
    void write_unit_values(Buffer<T>& values) {
        const std::size_t n = indices.size();
        values.reserve(n + LANES);
        for (std::size_t i = 0; i < n; ++i) values.data()[i] = T{1};
        values.resize(n);
    }

    void write_row_unit_values() noexcept {
        row_has_unit_values_ = false;
        for (std::size_t i = 0; i < size_; ++i) row_values()[i] = 1.0;
    }

    bool are_ones(std::size_t n) noexcept {
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
        if (!copy_nonzero(n, value)) {
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

    // Writes the values if none is zero or near the end of the range; false if one is, or if the type has no fast path.
    bool copy_nonzero(std::size_t, double*) noexcept { return false; }
#if defined(FTPRL_SSE2)
    bool copy_nonzero(std::size_t n, float* out) noexcept {
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
    bool copy_nonzero(std::size_t, float*) noexcept { return false; }
#endif

    static constexpr std::size_t LANES = 4;  // values are written so many at a time

    Slots slots_;
    bool wide_;
    // The current row: its slots follow the slots of the previous rows; its values stay here until repeats are summed.
    Buffer<double> row_values_;
    std::size_t size_ = 0;
    std::size_t named_ = 0;  // features before its products, which have no names of their own; 0 without products
    bool row_has_unit_values_ = false;
    bool has_unit_values_ = true;
    Repeats repeats_;
};

}  // namespace ftprl
