// Columns of the Arrow C data interface (https://arrow.apache.org/docs/format/CDataInterface.html), read in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "readers/dates.hpp"
#include "readers/scan.hpp"
#include "readers/split.hpp"
#include "readers/utf8.hpp"
#include "readers/values.hpp"

// The structures as the interface defines them; other headers may have defined them before.
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
extern "C" {
struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema** children;
    struct ArrowSchema* dictionary;
    void (*release)(struct ArrowSchema*);
    void* private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void** buffers;
    struct ArrowArray** children;
    struct ArrowArray* dictionary;
    void (*release)(struct ArrowArray*);
    void* private_data;
};
}
#endif

namespace ftprl {

// One column: which of its cells are missing, and the other cells as numbers, as text, or as lists of these. A map, and
// a list of structures with a name and a value, is a list whose elements have names. The caller owns the buffers and
// keeps them as long as the column is used.
class ArrowColumn {
public:
    enum class Type { nothing, boolean, i32, i64, u64, f32, f64, text, large_text, list, large_list };

    // Reads cells from `offset` on. Throws std::invalid_argument for an unsupported type; pyarrow converts such types
    // before.
    ArrowColumn(const ArrowSchema& schema, const ArrowArray& array, std::int64_t offset)
        : type_(type_of(schema.format)),
          ticks_(ticks_of(schema.format)),
          size_(array.length),
          offset_(array.offset + offset) {
        is_utf8_ = std::strcmp(schema.format, "u") == 0 || std::strcmp(schema.format, "U") == 0;
        if (type_ != Type::nothing) {
            const std::int64_t needed = is_text() ? 3 : 2;
            if (array.n_buffers < needed) throw std::invalid_argument("an Arrow array without its buffers");
            valid_ = array.null_count == 0 ? nullptr : static_cast<const Byte*>(array.buffers[0]);
            data_ = static_cast<const Byte*>(array.buffers[1]);
            bytes_ = is_text() ? array.buffers + 2 : nullptr;
        }
        if (schema.dictionary != nullptr && array.dictionary != nullptr) {
            if (is_text() || type_ == Type::nothing) throw std::invalid_argument("a dictionary without numbers");
            dictionary_ = std::make_unique<ArrowColumn>(*schema.dictionary, *array.dictionary, 0);
        }
        if (is_list()) set_elements(schema, array);
        if (is_text() && size_ > 0) {
            limit_ = field(static_cast<std::size_t>(array.length - offset) - 1).end;
        }
    }

    Type type() const noexcept { return type_; }
    bool is_text() const noexcept { return type_ == Type::text || type_ == Type::large_text; }
    bool is_list() const noexcept { return type_ == Type::list || type_ == Type::large_list; }
    // True if the type guarantees that texts are UTF-8.
    bool is_utf8() const noexcept { return is_utf8_; }
    std::size_t size() const noexcept { return static_cast<std::size_t>(size_); }
    const ArrowColumn* dictionary() const noexcept { return dictionary_.get(); }

    // True if a cell may be missing.
    bool has_missing() const noexcept { return type_ == Type::nothing || valid_ != nullptr; }
    bool is_missing(std::size_t i) const noexcept {
        return type_ == Type::nothing || (valid_ != nullptr && !bit(valid_, i));
    }

    // The numbers of a column from cell `from` on, as they are stored.
    template <class T>
    const T* numbers(std::size_t from) const noexcept {
        return reinterpret_cast<const T*>(data_) + offset_ + static_cast<std::int64_t>(from);
    }
    bool boolean(std::size_t i) const noexcept { return bit(data_, i); }

    // True if the cells are dates or times. seconds() gives such a cell in seconds since 1970, rounded down.
    bool is_temporal() const noexcept { return ticks_ != 0; }
    std::int64_t seconds(std::size_t i) const noexcept {
        if (type_ == Type::i32) return DAY_SECONDS * *numbers<std::int32_t>(i);
        return floor_divide(*numbers<std::int64_t>(i), ticks_);
    }

    // A cell of numbers or booleans as a number.
    double number(std::size_t i) const noexcept {
        double value = 0.0;
        if (type_ == Type::boolean) return boolean(i) ? 1.0 : 0.0;
        by_type([&](auto* type) { value = static_cast<double>(*numbers<std::decay_t<decltype(*type)>>(i)); });
        return value;
    }

    // The elements of a list are those numbered [first, second) of `elements`; they have names if `names` is not null.
    std::pair<std::size_t, std::size_t> range(std::size_t i) const noexcept {
        if (type_ == Type::large_list) {
            const auto* const ends = numbers<std::int64_t>(i);
            return {static_cast<std::size_t>(ends[0]), static_cast<std::size_t>(ends[1])};
        }
        const auto* const ends = numbers<std::int32_t>(i);
        return {static_cast<std::size_t>(ends[0]), static_cast<std::size_t>(ends[1])};
    }
    const ArrowColumn* elements() const noexcept { return elements_.get(); }
    const ArrowColumn* names() const noexcept { return names_.get(); }
    bool has_element(std::size_t i) const noexcept {
        return !elements_->is_missing(i) && (entries_ == nullptr || !entries_->is_missing(i));
    }

    // Calls work with a null pointer to the type of a column of numbers.
    template <class Work>
    void by_type(Work&& work) const {
        switch (type_) {
            case Type::i32:
                return work(static_cast<const std::int32_t*>(nullptr));
            case Type::i64:
                return work(static_cast<const std::int64_t*>(nullptr));
            case Type::u64:
                return work(static_cast<const std::uint64_t*>(nullptr));
            case Type::f32:
                return work(static_cast<const float*>(nullptr));
            case Type::f64:
                return work(static_cast<const double*>(nullptr));
            default:
                return;
        }
    }

    // The bytes of a cell of text.
    Field field(std::size_t i) const noexcept {
        const auto* const bytes = static_cast<const Byte*>(bytes_[0]);
        if (type_ == Type::large_text) {
            const auto* const ends = numbers<std::int64_t>(i);
            return Field{bytes + ends[0], bytes + ends[1], limit_};
        }
        const auto* const ends = numbers<std::int32_t>(i);
        return Field{bytes + ends[0], bytes + ends[1], limit_};
    }

    // True for texts whose offsets have eight bytes each; the next function is the origin of these offsets.
    bool is_large_text() const noexcept { return type_ == Type::large_text; }
    const Byte* bytes() const noexcept { return static_cast<const Byte*>(bytes_[0]); }

    const Byte* limit() const noexcept { return limit_; }  // bytes up to here may be read

    // True if the texts of cells [from, from + count) are guaranteed to be UTF-8 but are not all ASCII.
    bool may_break_utf8(std::size_t from, std::size_t count) const noexcept {
        return is_utf8_ && count != 0 && !is_ascii(field(from).data, field(from + count - 1).end);
    }
    // True if this begins with the texts of another column, as the dictionaries of a file's batches often do.
    bool begins_with(const ArrowColumn& other) const noexcept {
        if (type_ != other.type_ || size_ < other.size_ || valid_ != nullptr || other.valid_ != nullptr) return false;
        if (type_ != Type::text || other.size_ == 0) return false;
        const auto* const ends = numbers<std::int32_t>(0);
        const auto* const others = other.numbers<std::int32_t>(0);
        if (ends == others && bytes_[0] == other.bytes_[0]) return true;  // both are there: it is the same memory
        const auto count = static_cast<std::size_t>(other.size_);
        if (std::memcmp(ends, others, (count + 1) * sizeof(std::int32_t)) != 0) return false;
        const auto* const bytes = static_cast<const Byte*>(bytes_[0]);
        const auto* const other_bytes = static_cast<const Byte*>(other.bytes_[0]);
        return std::memcmp(bytes + ends[0], other_bytes + ends[0], static_cast<std::size_t>(ends[count] - ends[0])) ==
               0;
    }

    // Writes any cell as a CSV file would have it; a missing one is empty. `scratch` holds text that is not in the
    // column.
    Field written(std::size_t i, char (&scratch)[LONGEST_VALUE]) const noexcept {
        if (is_missing(i)) return Field{nullptr, nullptr, nullptr};
        if (is_text()) return field(i);
        const auto* const first = reinterpret_cast<const Byte*>(scratch);
        if (type_ == Type::i64 && static_cast<std::uint64_t>(*numbers<std::int64_t>(i)) <= 9) {  // most labels
            scratch[0] = static_cast<char>('0' + *numbers<std::int64_t>(i));
            return Field{first, first + 1, first + 1};
        }
        const auto* const end = reinterpret_cast<const Byte*>(write(i, scratch));
        return Field{first, end, end};
    }

    // The number of the dictionary's entry in a cell that is not missing.
    std::size_t entry(std::size_t i) const noexcept {
        std::size_t number = 0;
        by_type([&](auto* type) { number = static_cast<std::size_t>(*numbers<std::decay_t<decltype(*type)>>(i)); });
        return number;
    }

    // The same of the value that a cell stands for, where it is the number of a dictionary's entry.
    Field spelled(std::size_t i, char (&scratch)[LONGEST_VALUE]) const noexcept {
        return dictionary_ == nullptr ? written(i, scratch) : dictionary_->written(entry(i), scratch);
    }

private:
    static Type type_of(const char* format) {
        static constexpr struct {
            const char* format;
            Type type;
        } types[] = {{"n", Type::nothing},     {"b", Type::boolean},    {"i", Type::i32},        {"l", Type::i64},
                     {"L", Type::u64},         {"f", Type::f32},        {"g", Type::f64},        {"u", Type::text},
                     {"z", Type::text},        {"U", Type::large_text}, {"Z", Type::large_text}, {"+l", Type::list},
                     {"+L", Type::large_list}, {"+m", Type::list}};
        for (const auto& known : types) {
            if (std::strcmp(known.format, format) == 0) return known.type;
        }
        if (ticks_of(format) != 0) return format[1] == 'd' && format[2] == 'D' ? Type::i32 : Type::i64;
        throw std::invalid_argument(std::string("an Arrow type that is not read: ") + format);
    }

    // The kind of elements: those of the list, or the fields of its structures.
    void set_elements(const ArrowSchema& schema, const ArrowArray& array) {
        if (schema.n_children != 1 || array.n_children != 1) throw std::invalid_argument("a list without elements");
        const ArrowSchema& type = *schema.children[0];
        const ArrowArray& child = *array.children[0];
        if (std::strcmp(type.format, "+s") != 0) {
            elements_ = std::make_unique<ArrowColumn>(type, child, 0);
        } else {
            if (type.n_children != 2 || child.n_children != 2) throw std::invalid_argument("an entry of two fields");
            const int name = std::strcmp(type.children[0]->name, "value") == 0 ? 1 : 0;
            names_ = std::make_unique<ArrowColumn>(*type.children[name], *child.children[name], child.offset);
            elements_ =
                std::make_unique<ArrowColumn>(*type.children[1 - name], *child.children[1 - name], child.offset);
            if (child.n_buffers > 0 && child.buffers[0] != nullptr) entries_.reset(new ArrowColumn(child));
        }
        if (elements_->is_list() || elements_->dictionary() != nullptr) throw std::invalid_argument("a list of lists");
    }

    // The kind of structures.
    explicit ArrowColumn(const ArrowArray& structures)
        : type_(Type::boolean),
          size_(structures.length),
          offset_(structures.offset),
          valid_(static_cast<const Byte*>(structures.buffers[0])) {}

    // The ticks per second of a date or a time: "tdD" counts days, "tdm" milliseconds, "tsu:" and a zone microseconds.
    static std::int64_t ticks_of(const char* format) noexcept {
        const bool is_date = std::strcmp(format, "tdD") == 0 || std::strcmp(format, "tdm") == 0;
        const bool is_time = std::strncmp(format, "ts", 2) == 0 && format[2] != 0 && format[3] == ':';
        if (!is_date && !is_time) return 0;
        return format[2] == 'm' ? 1000 : format[2] == 'u' ? 1000000 : format[2] == 'n' ? 1000000000 : 1;
    }

    bool bit(const Byte* bits, std::size_t i) const noexcept {
        const std::size_t at = static_cast<std::size_t>(offset_) + i;
        return (bits[at / 8] >> (at % 8) & 1) != 0;
    }

    char* write(std::size_t i, char* out) const noexcept {
        switch (type_) {
            case Type::boolean:
                return write_value(out, boolean(i));
            case Type::i32:
                return write_value(out, std::int64_t{*numbers<std::int32_t>(i)});
            case Type::i64:
                return write_value(out, *numbers<std::int64_t>(i));
            case Type::u64:
                return write_value(out, *numbers<std::uint64_t>(i));
            case Type::f32:
                return write_value(out, *numbers<float>(i));
            case Type::f64:
                return write_value(out, *numbers<double>(i));
            default:
                return out;
        }
    }

    Type type_;
    std::int64_t ticks_ = 0;
    std::int64_t size_;
    std::int64_t offset_;
    const Byte* valid_ = nullptr;  // null when no cell is missing
    const Byte* data_ = nullptr;
    const void* const* bytes_ = nullptr;  // of text
    std::unique_ptr<ArrowColumn> dictionary_;
    std::unique_ptr<ArrowColumn> elements_;  // of lists
    std::unique_ptr<ArrowColumn> names_;     // of the elements
    std::unique_ptr<ArrowColumn> entries_;   // which of them are there, where a structure may be missing
    bool is_utf8_ = false;
    const Byte* limit_ = nullptr;  // where the bytes of all texts end
};

}  // namespace ftprl
