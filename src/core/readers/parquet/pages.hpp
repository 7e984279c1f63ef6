// The pages of a column in a row group, one after the other: read from the file, decompressed, taken apart.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "readers/buffer.hpp"
#include "readers/parquet/metadata.hpp"
#include "readers/parquet/runs.hpp"
#include "readers/parquet/snappy.hpp"

namespace ftprl::parquet {

// Decompresses [p, end) to exactly `size` bytes: for codecs that are not known here.
using Decompress = std::function<void(const Byte* p, const Byte* end, Byte* out, std::size_t size)>;

class File {
public:
    explicit File(int descriptor) noexcept : descriptor_(descriptor) {}
    ~File() { ::close(descriptor_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    void read(std::int64_t offset, Byte* out, std::size_t size) const {
        while (size > 0) {
            const ssize_t got = ::pread(descriptor_, out, size, static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) throw Damaged(std::strerror(errno));
            if (got == 0) throw Damaged("a file that ends too early");
            offset += got;
            out += got;
            size -= static_cast<std::size_t>(got);
        }
    }

private:
    int descriptor_;
};

// The distinct values of a column: texts one behind the other, or numbers.
struct Dictionary {
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

// The current page: which rows have a value, and the values.
class Pages {
public:
    // `scratch` is used by all columns: memory that is new costs more than reading does.
    Pages(std::shared_ptr<const File> file, const Chunk& chunk, bool is_optional, Decompress decompress,
          Buffer<Byte>& scratch)
        : file_(std::move(file)),
          scratch_(scratch),
          decompress_(std::move(decompress)),
          type_(static_cast<Physical>(chunk.type)),
          codec_(static_cast<Codec>(chunk.codec)),
          is_optional_(is_optional),
          offset_(chunk.offset()),
          left_(static_cast<std::size_t>(chunk.size)) {}

    std::size_t rows = 0;  // that are left in the page
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
            PageHead head;
            const Byte* const page = page_of(head);
            if (head.kind == PageHead::DICTIONARY) {
                set_dictionary(head, page);
            } else if (head.kind == PageHead::DATA || head.kind == PageHead::DATA_V2) {
                set_page(head, page);
            }
            consume(static_cast<std::size_t>(head.size));
        }
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

    // The bytes of the next page, as they stand in the file.
    const Byte* page_of(PageHead& head) {
        std::size_t wanted = HEAD, size = 0;
        for (;;) {
            const std::size_t there = std::min(wanted, left_);
            fetch(there);
            try {
                head = PageHead{};
                size = static_cast<std::size_t>(read_page_head(scratch_.data(), scratch_.data() + there, head) -
                                                scratch_.data());
                break;
            } catch (const Damaged&) {
                if (wanted > left_) throw;  // all there is was looked at
                wanted *= 8;
            }
        }
        consume(size);
        const bool has_sizes = head.size >= 0 && head.full_size >= 0 && head.full_size <= INT32_MAX;
        if (!has_sizes || static_cast<std::uint64_t>(head.size) > left_) {
            throw Damaged("a page that is not within its column");
        }
        fetch(static_cast<std::size_t>(head.size));
        return scratch_.data();
    }

    // Has the next bytes of the column in the scratch memory.
    void fetch(std::size_t size) {
        scratch_.resize(0);
        scratch_.reserve(size + SLACK);
        file_->read(offset_, scratch_.data(), size);
    }

    void consume(std::size_t size) noexcept {
        left_ -= size;
        offset_ += static_cast<std::int64_t>(size);
    }

    // [p, end) decompressed, with SLACK behind it, in a buffer.
    void decompressed(const Byte* p, const Byte* end, bool is_compressed, std::int64_t size, Buffer<Byte>& out) {
        const auto there = static_cast<std::size_t>(end - p), full = static_cast<std::size_t>(size);
        const bool is_plain = !is_compressed || codec_ == Codec::none;
        if (size < 0 || (is_plain && full != there)) throw Damaged("a page of another size");
        if (codec_ == Codec::snappy && full > 24 * there + 64) throw Damaged("a page that Snappy cannot decompress");
        out.resize(0);
        out.reserve(full + SLACK);
        if (is_plain) {
            if (full != 0) std::memcpy(out.data(), p, full);
        } else if (codec_ == Codec::snappy) {
            unsnap(p, end, out.data(), full);
        } else {
            decompress_(p, end, out.data(), full);
        }
        out.resize(full);
    }

    void set_dictionary(const PageHead& head, const Byte* page) {
        if (head.encoding != PLAIN && head.encoding != PLAIN_DICTIONARY) throw Damaged("a dictionary in another form");
        if (head.values < 0) throw Damaged("a dictionary without a size");
        Buffer<Byte> content;
        decompressed(page, page + head.size, true, head.full_size, content);
        auto made = std::make_shared<Dictionary>();
        made->size = static_cast<std::size_t>(head.values);
        const std::size_t width = width_of(type_);
        if (width != 0) {
            if (content.size() / width < made->size) throw Damaged("a dictionary that ends too early");
            made->bytes.reserve(content.size());
            std::memcpy(made->bytes.data(), content.data(), made->size * width);
            made->bytes.resize(made->size * width);
        } else {
            if (content.size() / 4 < made->size) throw Damaged("a dictionary that ends too early");
            made->ends.reserve(made->size + 1);
            made->bytes.reserve(content.size() + SLACK);
            made->ends.push(0);
            const Byte* p = content.data();
            const Byte* const end = p + content.size();
            for (std::size_t i = 0; i < made->size; ++i) {
                const std::size_t size = text_size(p, end);
                std::memcpy(made->bytes.data() + made->bytes.size(), p + 4, size);
                made->bytes.resize(made->bytes.size() + size);
                made->ends.push(static_cast<std::int32_t>(made->bytes.size()));
                p += 4 + size;
            }
        }
        dictionary = std::move(made);
    }

    void set_page(const PageHead& head, const Byte* page) {
        const Byte* const end = page + head.size;
        if (head.values < 0) throw Damaged("a page without a number of rows");
        const bool is_second = head.kind == PageHead::DATA_V2;
        const std::int64_t in_front = is_second ? head.level_size : 0;  // never compressed
        if (in_front < 0 || in_front > head.size || head.repetition_size != 0) throw Damaged("levels that do not fit");
        decompressed(page + in_front, end, !is_second || head.is_compressed, head.full_size - in_front, content_);
        values = content_.data();
        values_end = values + content_.size();
        if (is_second && is_optional_) {
            levels_content_.resize(0);
            levels_content_.reserve(static_cast<std::size_t>(in_front) + SLACK);
            if (in_front != 0) std::memcpy(levels_content_.data(), page, static_cast<std::size_t>(in_front));
            levels_ = Runs(levels_content_.data(), levels_content_.data() + in_front, 1);
        } else if (is_optional_) {
            if (head.level_encoding != RLE) throw Damaged("levels in another form");
            const std::size_t size = text_size(values, values_end);
            levels_ = Runs(values + 4, values + 4 + size, 1);
            values += 4 + size;
        }
        bit = 0;
        is_coded = has_runs = false;
        if (head.encoding == RLE_DICTIONARY || head.encoding == PLAIN_DICTIONARY) {
            if (dictionary == nullptr) throw Damaged("a page without its dictionary");
            is_coded = true;
            // Without a value there may be no width either.
            if (values != values_end) codes = Runs(values + 1, values_end, *values);
            if (values == values_end) codes = Runs(values, values_end, 0);
        } else if (head.encoding == RLE && type_ == Physical::boolean) {
            has_runs = true;
            const std::size_t size = text_size(values, values_end);
            codes = Runs(values + 4, values + 4 + size, 1);
        } else if (head.encoding != PLAIN) {
            throw Damaged("a page in another form than the end of the file says");
        }
        rows = static_cast<std::size_t>(head.values);
    }

    std::shared_ptr<const File> file_;
    Buffer<Byte>& scratch_;
    Decompress decompress_;
    Physical type_;
    Codec codec_;
    bool is_optional_;
    std::int64_t offset_;  // of what comes next in the file
    std::size_t left_;     // bytes of the column from there on
    Buffer<Byte> content_, levels_content_;
    Buffer<std::uint32_t> flags_;
    Runs levels_;
};

}  // namespace ftprl::parquet
