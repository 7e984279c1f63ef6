// The pages of a column in a row group, one after the other: read from the file, decompressed, taken apart.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "readers/buffer.hpp"
#include "readers/parquet/metadata.hpp"
#include "readers/parquet/runs.hpp"
#include "readers/parquet/snappy.hpp"
#include "readers/parquet/stream.hpp"
#include "readers/parquet/zstd.hpp"

namespace ftprl::parquet {

// Decompresses [p, end) to exactly `size` bytes: for codecs that are not known here.
using Decompress = std::function<void(const Byte* p, const Byte* end, Byte* out, std::size_t size)>;

// The distinct values of a column: texts one behind the other, or numbers.
struct Dictionary {
    explicit Dictionary(Buffer<Byte>&& content) noexcept : bytes(std::move(content)) {}
    std::size_t size = 0;
    Buffer<std::int32_t> ends;  // of texts: one more than there are, from 0
    Buffer<Byte> bytes;
};

inline std::size_t width_of(Physical type) noexcept {
    return type == Physical::int32 || type == Physical::float32   ? 4
           : type == Physical::int64 || type == Physical::float64 ? 8
                                                                  : 0;
}

// The length of the text at p, which is within [p, end) with its four bytes of length.
inline std::size_t text_size(const Byte* p, const Byte* end) {
    if (end - p < 4) throw Damaged("a page that ends too early");
    const auto size = static_cast<std::size_t>(ftprl::detail::load4(p));
    if (size > static_cast<std::size_t>(end - p - 4)) throw Damaged("a text that is not within its page");
    return size;
}

// Copies a text; up to SLACK bytes behind both may be read and written.
inline void copy_text(Byte* out, const Byte* text, std::size_t size) noexcept {
    if (size > 32) {
        std::memcpy(out, text, size);
        return;
    }
    std::memcpy(out, text, 16);
    if (size > 16) std::memcpy(out + 16, text + 16, 16);
}

// The current page: which rows have a value, and the values.
class Pages {
public:
    Pages(std::shared_ptr<const File> file, const Chunk& chunk, bool is_optional, Decompress decompress,
          std::shared_ptr<Unzstd> unzstd)
        : stream_(std::move(file), chunk.offset(), static_cast<std::size_t>(chunk.size)),
          decompress_(std::move(decompress)),
          unzstd_(std::move(unzstd)),
          type_(static_cast<Physical>(chunk.type)),
          codec_(static_cast<Codec>(chunk.codec)),
          is_optional_(is_optional) {}
    Pages(const Pages&) = delete;  // its parts point to each other
    Pages& operator=(const Pages&) = delete;

    std::size_t rows = 0;  // that are left in the page; see `skip`
    bool is_coded = false;
    bool has_runs = false;  // of booleans: they are in `codes`
    Runs codes;             // numbers of entries of the dictionary
    const Byte* values = nullptr;
    const Byte* values_end = nullptr;
    std::size_t bit = 0;  // of booleans
    std::shared_ptr<const Dictionary> dictionary;

    Physical type() const noexcept { return type_; }

    // Goes to the next page with rows. There has to be one.
    void advance() {
        while (rows == 0) {
            if (has_open_dictionary_) {
                set_dictionary();
            } else {
                look();
            }
        }
    }

    // Looks at what comes next, unless there are rows; whether it is a dictionary, which `advance` decompresses.
    bool looks_at_dictionary() {
        if (rows == 0 && !has_open_dictionary_) look();
        return has_open_dictionary_;
    }

    // Counts rows as read. The end of a page has to be what it should be, and its memory may be used again.
    void skip(std::size_t count) {
        rows -= count;
        if (rows != 0) return;
        if (is_partial_) unsnapper_.finish();
        is_partial_ = false;
        pass_over(in_window_);
        in_window_ = 0;
    }

    // Has the next bytes of the values ready, as many as there are: up to `ready`.
    void prepare(std::size_t size) {
        if (is_partial_) unsnapper_.run(values + std::min(size, static_cast<std::size_t>(values_end - values)));
    }
    const Byte* ready() const noexcept { return is_partial_ ? unsnapper_.at() : values_end; }

    // Whether the page is decompressed as far as it was needed.
    bool is_partial() const noexcept { return is_partial_; }

    // Has about as many bytes of two pages ready as the next rows of each need.
    static void prepare_both(Pages& one, std::size_t count, Pages& other, std::size_t other_count) {
        if (!one.is_partial_ || !other.is_partial_) return;
        Unsnapper::run_both(one.unsnapper_, one.expected_end(count), other.unsnapper_, other.expected_end(other_count));
    }

    // Which of the next `count` rows have a value, as numbers 0 and 1; null when all of them have.
    const std::uint32_t* levels(std::size_t count) {
        if (!is_optional_ || levels_.take_run(1, count)) return nullptr;
        flags_.resize(0);
        flags_.reserve(count);
        levels_.read(flags_.data(), count);
        return flags_.data();
    }

private:
    static constexpr std::size_t HEAD = std::size_t{1} << 12;  // bytes in which the head of a page is looked for

    // Up to where `count` rows reach, if all rows of the page take as many bytes.
    const Byte* expected_end(std::size_t count) const noexcept {
        const auto left = static_cast<std::size_t>(values_end - unsnapper_.at());
        return unsnapper_.at() +
               (count >= rows ? left
                              : static_cast<std::size_t>(static_cast<double>(left) * static_cast<double>(count) /
                                                         static_cast<double>(rows)));
    }

    void look() {
        const PageHead head = next_head();
        if (head.kind == PageHead::DICTIONARY) {
            open_dictionary(head);
        } else if (head.kind == PageHead::DATA || head.kind == PageHead::DATA_V2) {
            set_page(head);
            skip(0);
        } else {
            pass_over(static_cast<std::size_t>(head.size));
        }
    }

    // What stands before the next page, which is within its column.
    PageHead next_head() {
        for (std::size_t wanted = HEAD;; wanted *= 8) {
            stream_.fill(wanted);
            const Byte* const p = stream_.data();
            PageHead head;
            try {
                stream_.consume(static_cast<std::size_t>(read_page_head(p, p + stream_.there(), head) - p));
            } catch (const Damaged&) {
                if (stream_.there() == stream_.left()) throw;  // all there is was looked at
                continue;
            }
            const bool has_sizes = head.size >= 0 && head.full_size >= 0 && head.full_size <= INT32_MAX;
            if (!has_sizes || static_cast<std::uint64_t>(head.size) > stream_.left()) {
                throw Damaged("a page that is not within its column");
            }
            return head;
        }
    }

    void pass_over(std::size_t size) {
        while (size > 0) {
            stream_.fill(1);
            const std::size_t part = std::min(size, stream_.there());
            stream_.consume(part);
            size -= part;
        }
    }

    // The next `size` bytes of the column, `full` of them decompressed. Those of Snappy are decompressed as far as they
    // are needed, and others than these may stay in the window: see `skip`.
    void open(std::size_t size, bool is_compressed, std::int64_t full_size) {
        const auto full = static_cast<std::size_t>(full_size);
        const bool is_plain = !is_compressed || codec_ == Codec::none;
        if (full_size < 0 || (is_plain && full != size)) throw Damaged("a page of another size");
        if (is_plain) {
            stream_.fill(size);
            in_window_ = size;
            values = stream_.data();
            values_end = values + full;
            return;
        }
        if (codec_ == Codec::snappy && full > 24 * size + 64) throw Damaged("a page that Snappy cannot decompress");
        content_.resize(0);
        content_.reserve(full + SLACK);
        values = content_.data();
        values_end = values + full;
        if (codec_ == Codec::snappy) {
            is_partial_ = true;
            unsnapper_.begin(stream_, size, content_.data(), full);
        } else {
            stream_.fill(size);
            const Byte* const page = stream_.data();
            if (codec_ == Codec::zstd && Unzstd::library().is_there()) {
                (*unzstd_)(page, page + size, content_.data(), full);
            } else {
                decompress_(page, page + size, content_.data(), full);
            }
            stream_.consume(size);
        }
    }

    void open_dictionary(const PageHead& head) {
        if (head.encoding != PLAIN && head.encoding != PLAIN_DICTIONARY) throw Damaged("a dictionary in another form");
        if (head.values < 0) throw Damaged("a dictionary without a size");
        open(static_cast<std::size_t>(head.size), true, head.full_size);
        has_open_dictionary_ = true;
        dictionary_size_ = static_cast<std::size_t>(head.values);
    }

    void set_dictionary() {
        has_open_dictionary_ = false;
        prepare(static_cast<std::size_t>(values_end - values));
        const auto there = static_cast<std::size_t>(values_end - values);
        const std::size_t width = width_of(type_);
        const std::size_t size = dictionary_size_;
        if (there / (width == 0 ? 4 : width) < size) throw Damaged("a dictionary that ends too early");
        if (in_window_ != 0 || there == 0) {
            content_.resize(0);
            content_.reserve(there + SLACK);
            if (there != 0) std::memcpy(content_.data(), values, there);
        }
        auto made =
            std::make_shared<Dictionary>(std::move(content_));  // memory that is new costs more than reading does
        made->size = size;
        if (width == 0) {
            made->bytes.resize(set_ends(*made, made->bytes.data() + there));
        } else {
            made->bytes.resize(size * width);
        }
        dictionary = std::move(made);
        rows = 0;
        skip(0);
    }

    // Removes the lengths that stand before the texts, up to `end`. Returns how many bytes stay.
    static std::size_t set_ends(Dictionary& made, const Byte* end) {
        made.ends.reserve(made.size + 1);
        std::int32_t* const ends = made.ends.data();
        Byte* const first = made.bytes.data();
        Byte* out = first;
        const Byte* p = first;
        ends[0] = 0;
        for (std::size_t i = 0; i < made.size; ++i) {
            const std::size_t size = text_size(p, end);
            if (size <= 16 && p + 4 + size - out >= 16) {  // nothing that is still to be read is overwritten
                Byte text[16];
                std::memcpy(text, p + 4, 16);
                std::memcpy(out, text, 16);
            } else {
                std::memmove(out, p + 4, size);
            }
            out += size;
            ends[i + 1] = static_cast<std::int32_t>(out - first);
            p += 4 + size;
        }
        made.ends.resize(made.size + 1);
        return static_cast<std::size_t>(out - first);
    }

    void set_page(const PageHead& head) {
        if (head.values < 0) throw Damaged("a page without a number of rows");
        const bool is_second = head.kind == PageHead::DATA_V2;
        const std::int64_t in_front = is_second ? head.level_size : 0;  // never compressed
        if (in_front < 0 || in_front > head.size || head.repetition_size != 0) throw Damaged("levels that do not fit");
        if (is_second) read_levels(static_cast<std::size_t>(in_front));
        open(static_cast<std::size_t>(head.size - in_front), !is_second || head.is_compressed,
             head.full_size - in_front);
        if (!is_second && is_optional_) {
            if (head.level_encoding != RLE) throw Damaged("levels in another form");
            prepare(4);
            const std::size_t size = text_size(values, values_end);
            levels_ = Runs(values + 4, values + 4 + size, 1, source());
            values += 4 + size;
        }
        prepare(4);
        bit = 0;
        is_coded = has_runs = false;
        if (head.encoding == RLE_DICTIONARY || head.encoding == PLAIN_DICTIONARY) {
            if (dictionary == nullptr) throw Damaged("a page without its dictionary");
            is_coded = true;
            // Without a value there may be no width either.
            if (values != values_end) codes = Runs(values + 1, values_end, *values, source());
            if (values == values_end) codes = Runs(values, values_end, 0, nullptr);
        } else if (head.encoding == RLE && type_ == Physical::boolean) {
            has_runs = true;
            const std::size_t size = text_size(values, values_end);
            codes = Runs(values + 4, values + 4 + size, 1, source());
        } else if (head.encoding != PLAIN) {
            throw Damaged("a page in another form than the end of the file says");
        }
        rows = static_cast<std::size_t>(head.values);
    }

    // The levels of a page of version 2, in memory of their own.
    void read_levels(std::size_t size) {
        levels_content_.resize(0);
        levels_content_.reserve(size + SLACK);
        stream_.fill(size);
        if (size != 0) std::memcpy(levels_content_.data(), stream_.data(), size);
        stream_.consume(size);
        levels_ = Runs(levels_content_.data(), levels_content_.data() + size, 1, nullptr);
    }

    Unsnapper* source() noexcept { return is_partial_ ? &unsnapper_ : nullptr; }

    Stream stream_;
    Unsnapper unsnapper_;
    bool is_partial_ = false;           // the page is decompressed as far as it was needed
    bool has_open_dictionary_ = false;  // a dictionary is next, and not yet decompressed
    std::size_t dictionary_size_ = 0;   // entries
    std::size_t in_window_ = 0;         // bytes of a page that is not compressed: its values stand there
    Decompress decompress_;
    std::shared_ptr<Unzstd> unzstd_;  // that of all columns
    Physical type_;
    Codec codec_;
    bool is_optional_;
    Buffer<Byte> content_, levels_content_;
    Buffer<std::uint32_t> flags_;
    Runs levels_;
};

}  // namespace ftprl::parquet
