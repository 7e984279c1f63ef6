// Rows of a row group, as columns of numbers, of texts, and of numbers of dictionary entries.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "readers/parquet/pages.hpp"

namespace ftprl::parquet {

// The cells of a column; places are within the memory of its rows.
struct Cells {
    enum class Form : std::uint8_t { numbers, booleans, texts, codes };
    Form form = Form::numbers;
    std::size_t leaf = 0;
    std::size_t missing = 0;
    std::size_t data = 0;          // the first number; of texts, where each begins, and where the last ends
    std::size_t valid = 0;         // a bit for each row, where some are missing
    std::size_t lane = 0;          // which of the memories of texts has those of the column
    std::size_t texts = 0;         // the first byte of its texts there
    Buffer<std::int64_t> offsets;  // in place of those at `data`, for texts that begin as numbers of entries
    std::shared_ptr<const Dictionary> dictionary;
};

struct Rows {
    std::size_t count = 0;
    std::vector<Cells> columns;
    Buffer<Byte> fixed;                 // what has a size that is known before
    std::array<Buffer<Byte>, 2> texts;  // of columns that are read at the same time

    const Byte* data(const Cells& cells) const noexcept {
        const auto* const own = reinterpret_cast<const Byte*>(cells.offsets.data());
        return own != nullptr ? own : fixed.data() + cells.data;
    }
    const Byte* valid(const Cells& cells) const noexcept {
        return cells.missing == 0 ? nullptr : fixed.data() + cells.valid;
    }
    bool is_missing(const Cells& cells, std::size_t row) const noexcept {
        return cells.missing != 0 && (valid(cells)[row / 8] >> (row % 8) & 1) == 0;
    }
};

// A column that is read: which one, and whether its texts may come as numbers of dictionary entries.
struct Wanted {
    std::size_t leaf;
    bool as_codes;
};

class GroupReader {
public:
    GroupReader(const std::shared_ptr<const File>& file, const Metadata& metadata, std::size_t group,
                const std::vector<Wanted>& wanted, const Decompress& decompress)
        : left_(static_cast<std::size_t>(metadata.groups.at(group).rows)) {
        const auto unzstd = std::make_shared<Unzstd>();
        for (const Wanted& one : wanted) {
            const Leaf& leaf = metadata.leaves.at(one.leaf);
            const Chunk& chunk = metadata.groups[group].chunks.at(one.leaf);
            columns_.push_back(
                Column{std::make_unique<Pages>(file, chunk, leaf.repetition == 1, decompress, unzstd), one});
        }
    }

    // The next rows, at most `most`; none at the end.
    std::shared_ptr<Rows> read(std::size_t most) {
        auto rows = std::make_shared<Rows>();
        rows->count = std::min(most, left_);
        if (rows->count == 0) return rows;
        rows->columns.resize(columns_.size());
        read_dictionaries();
        std::size_t size = 0;
        for (std::size_t i = 0; i < columns_.size(); ++i) size = arrange(columns_[i], *rows, rows->columns[i], size);
        rows->fixed.reserve(size + SLACK);
        rows->fixed.resize(size);
        std::size_t read_before = 0;  // a column that was read together with one in front of it
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            if (i != 0 && i == read_before) continue;
            const std::size_t partner = partner_of(i, read_before);
            read_columns(*rows, i, partner);
            if (partner < columns_.size()) read_before = partner;
        }
        left_ -= rows->count;
        return rows;
    }

private:
    using Form = Cells::Form;

    struct Column {
        std::unique_ptr<Pages> pages;
        Wanted wanted;
    };

    static constexpr std::size_t GUESS = std::size_t{1} << 16;  // bytes of text for which space is made at a time
    static constexpr std::size_t AHEAD = std::size_t{1} << 12;  // bytes that are decompressed at a time

    // Dictionaries that come next are decompressed two at a time.
    void read_dictionaries() {
        Pages* waiting = nullptr;
        for (Column& column : columns_) {
            Pages& pages = *column.pages;
            if (!pages.looks_at_dictionary()) continue;
            if (waiting == nullptr) {
                waiting = &pages;
                continue;
            }
            Pages::prepare_both(*waiting, left_, pages, left_);
            waiting->advance();
            pages.advance();
            waiting = nullptr;
        }
    }

    // The next column that has something to decompress, as column i has; there may be none.
    std::size_t partner_of(std::size_t i, std::size_t read_before) const noexcept {
        const bool has_partner = columns_[i].pages->is_partial();
        std::size_t k = std::max(i, read_before) + 1;
        while (has_partner && k < columns_.size() && !columns_[k].pages->is_partial()) ++k;
        return has_partner ? k : columns_.size();
    }

    static std::size_t aligned(std::size_t size) noexcept { return (size + 63) / 64 * 64; }

    // Which form a column has, and its places behind `at`; returns where the next one may begin.
    static std::size_t arrange(Column& column, const Rows& rows, Cells& cells, std::size_t at) {
        Pages& pages = *column.pages;
        pages.advance();
        const std::size_t count = rows.count, width = width_of(pages.type());
        cells.leaf = column.wanted.leaf;
        cells.form = width != 0                                 ? Form::numbers
                     : pages.type() == Physical::boolean        ? Form::booleans
                     : pages.is_coded && column.wanted.as_codes ? Form::codes
                                                                : Form::texts;
        if (cells.form == Form::codes) cells.dictionary = pages.dictionary;
        cells.valid = at;
        cells.data = at + aligned((count + 7) / 8);
        const std::size_t size = cells.form == Form::numbers    ? count * width
                                 : cells.form == Form::booleans ? (count + 7) / 8
                                 : cells.form == Form::codes    ? count * 4
                                                                : (count + 1) * 8;
        return cells.data + aligned(size);
    }

    // How far the cells of a column are read.
    struct Progress {
        Pages& pages;
        Cells& cells;
        std::size_t row = 0;
    };

    // Reads column i, and a second one with it, if there is one: page by page, two pages of which are decompressed at a
    // time.
    void read_columns(Rows& rows, std::size_t i, std::size_t partner) {
        Progress one = begin(rows, i, 0);
        if (partner >= columns_.size()) {
            while (one.row < rows.count) read_page(rows, one);
            return end(rows, one.cells);
        }
        Progress other = begin(rows, partner, 1);
        while (one.row < rows.count || other.row < rows.count) {
            if (one.row < rows.count && other.row < rows.count) {
                one.pages.advance();
                other.pages.advance();
                Pages::prepare_both(one.pages, rows.count - one.row, other.pages, rows.count - other.row);
            }
            if (one.row < rows.count) read_page(rows, one);
            if (other.row < rows.count) read_page(rows, other);
        }
        end(rows, one.cells);
        end(rows, other.cells);
    }

    Progress begin(Rows& rows, std::size_t i, std::size_t lane) {
        Cells& cells = rows.columns[i];
        std::memset(rows.fixed.data() + cells.valid, 0xff, (rows.count + 7) / 8);
        if (cells.form == Form::booleans) std::memset(rows.fixed.data() + cells.data, 0, (rows.count + 7) / 8);
        cells.lane = lane;
        cells.texts = rows.texts[lane].size();
        return {*columns_[i].pages, cells};
    }

    static void end(Rows& rows, Cells& cells) noexcept {
        if (cells.form == Form::texts) offsets_of(rows, cells)[rows.count] = text_end(rows, cells);
    }

    // The next rows, as far as they are in one page.
    void read_page(Rows& rows, Progress& progress) {
        Pages& pages = progress.pages;
        Cells& cells = progress.cells;
        pages.advance();
        const std::size_t row = progress.row, part = std::min(rows.count - row, pages.rows);
        const std::uint32_t* const levels = pages.levels(part);
        std::size_t present = part;
        if (levels != nullptr) {
            present = mark_present(rows.fixed.data() + cells.valid, row, levels, part);
            cells.missing += part - present;
        }
        if (cells.form == Form::codes && (!pages.is_coded || pages.dictionary != cells.dictionary)) {
            spell_out(rows, cells, row);
        }
        read_part(pages, rows, cells, row, part, present == part ? nullptr : levels, present);
        pages.skip(part);
        progress.row += part;
    }

    void read_part(Pages& pages, Rows& rows, Cells& cells, std::size_t row, std::size_t part,
                   const std::uint32_t* levels, std::size_t present) {
        switch (cells.form) {
            case Form::codes: {
                auto* const out = reinterpret_cast<std::uint32_t*>(rows.fixed.data() + cells.data) + row;
                read_codes(pages, out, present);
                return spread(out, part, levels, present);
            }
            case Form::numbers:
                return width_of(pages.type()) == 4
                           ? read_numbers<std::uint32_t>(pages, rows, cells, row, part, levels, present)
                           : read_numbers<std::uint64_t>(pages, rows, cells, row, part, levels, present);
            case Form::booleans:
                return read_booleans(pages, rows.fixed.data() + cells.data, row, part, levels, present);
            case Form::texts:
                return read_texts(pages, rows, cells, row, part, levels, present);
        }
    }

    // The numbers of `count` entries, all of them within the dictionary.
    static void read_codes(Pages& pages, std::uint32_t* out, std::size_t count) {
        pages.codes.read(out, count);
        std::uint32_t largest = 0;
        for (std::size_t i = 0; i < count; ++i) largest = out[i] > largest ? out[i] : largest;
        if (count > 0 && largest >= pages.dictionary->size) throw Damaged("a value that its dictionary does not have");
    }

    // Clears the bits of rows [row, row + part) that have no value, all of which were set; returns how many have one.
    // Which of them have is as good as random: no step may depend on it.
    static std::size_t mark_present(Byte* valid, std::size_t row, const std::uint32_t* levels,
                                    std::size_t part) noexcept {
        std::size_t present = 0, i = 0;
        const auto one = [&] {
            present += levels[i];
            valid[(row + i) / 8] &= static_cast<Byte>(~((levels[i] ^ 1u) << ((row + i) % 8)));
            ++i;
        };
        while (i < part && (row + i) % 8 != 0) one();
        for (; part - i >= 8; i += 8) {
            unsigned bits = 0;
            for (unsigned k = 0; k < 8; ++k) bits |= levels[i + k] << k;
            for (unsigned k = 0; k < 8; ++k) present += levels[i + k];
            valid[(row + i) / 8] = static_cast<Byte>(bits);
        }
        while (i < part) one();
        return present;
    }

    // Puts values to the rows that have one; the others become 0.
    template <class T>
    static void spread(T* out, std::size_t part, const std::uint32_t* levels, std::size_t present) noexcept {
        if (levels == nullptr) return;
        for (std::size_t i = part; i-- > 0;) {
            present -= levels[i];
            out[i] = out[present] & (T{0} - T{levels[i]});
        }
    }

    template <class T>
    void read_numbers(Pages& pages, Rows& rows, Cells& cells, std::size_t row, std::size_t part,
                      const std::uint32_t* levels, std::size_t present) {
        auto* const out = reinterpret_cast<T*>(rows.fixed.data() + cells.data) + row;
        if (pages.is_coded) {
            read_codes(pages, codes(present), present);
            const auto* const known = reinterpret_cast<const T*>(pages.dictionary->bytes.data());
            for (std::size_t i = 0; i < present; ++i) out[i] = known[codes_.data()[i]];
        } else {
            const std::size_t size = present * sizeof(T);
            pages.prepare(size);
            if (size > static_cast<std::size_t>(pages.values_end - pages.values)) throw too_short();
            if (size != 0) std::memcpy(out, pages.values, size);
            pages.values += size;
        }
        spread(out, part, levels, present);
    }

    void read_booleans(Pages& pages, Byte* out, std::size_t row, std::size_t part, const std::uint32_t* levels,
                       std::size_t present) {
        std::uint32_t* const match = codes(present);
        if (pages.has_runs) {
            pages.codes.read(match, present);
        } else {
            if (pages.is_coded) throw Damaged("a page in another form than the end of the file says");
            if (present > 8 * static_cast<std::size_t>(pages.values_end - pages.values) - pages.bit) throw too_short();
            pages.prepare((pages.bit + present + 7) / 8);
            for (std::size_t i = 0; i < present; ++i, ++pages.bit) {
                match[i] = pages.values[pages.bit / 8] >> (pages.bit % 8) & 1u;
            }
        }
        for (std::size_t i = 0, next = 0; i < part; ++i) {
            if (levels != nullptr && levels[i] == 0) continue;
            if (match[next++] != 0) out[(row + i) / 8] |= static_cast<Byte>(1u << ((row + i) % 8));
        }
    }

    void read_texts(Pages& pages, Rows& rows, Cells& cells, std::size_t row, std::size_t part,
                    const std::uint32_t* levels, std::size_t present) {
        if (pages.is_coded) {
            std::int64_t* const offsets = offsets_of(rows, cells);
            read_codes(pages, codes(present), present);
            for (std::size_t i = 0, next = 0; i < part; ++i) {
                offsets[row + i] = text_end(rows, cells);
                if (levels == nullptr || levels[i] != 0)
                    add_entry(rows.texts[cells.lane], *pages.dictionary, codes_.data()[next++]);
            }
            return;
        }
        read_plain_texts(pages, rows, cells, row, part, levels);
    }

    void read_plain_texts(Pages& pages, Rows& rows, Cells& cells, std::size_t row, std::size_t part,
                          const std::uint32_t* levels) {
        std::int64_t* const offsets = offsets_of(rows, cells);
        Byte* out = nullptr;
        const Byte* room_end = nullptr;
        Buffer<Byte>& texts = rows.texts[cells.lane];
        const auto keep = [&] { texts.resize(static_cast<std::size_t>(out - texts.data())); };
        const auto make_room = [&](std::size_t size) {
            if (out != nullptr) keep();
            texts.reserve(size + GUESS + SLACK);
            out = texts.data() + texts.size();
            room_end = out + size + GUESS;
        };
        make_room(0);
        for (std::size_t i = 0; i < part; ++i) {
            offsets[row + i] = out - texts.data() - static_cast<std::int64_t>(cells.texts);
            if (levels != nullptr && levels[i] == 0) continue;
            if (pages.ready() - pages.values < 4) pages.prepare(AHEAD);
            const std::size_t size = text_size(pages.values, pages.values_end);
            if (static_cast<std::size_t>(pages.ready() - pages.values) < 4 + size) pages.prepare(4 + size + AHEAD);
            if (static_cast<std::size_t>(room_end - out) < size) make_room(size);
            copy_text(out, pages.values + 4, size);
            out += size;
            pages.values += 4 + size;
        }
        keep();
    }

    // Cells that were numbers of entries, up to a row, become texts.
    static void spell_out(Rows& rows, Cells& cells, std::size_t row) {
        cells.offsets.reserve(rows.count + 1);
        cells.offsets.resize(rows.count + 1);
        const auto* const numbers = reinterpret_cast<const std::uint32_t*>(rows.fixed.data() + cells.data);
        const Byte* const valid = rows.fixed.data() + cells.valid;
        for (std::size_t i = 0; i < row; ++i) {
            cells.offsets.data()[i] = text_end(rows, cells);
            if ((valid[i / 8] >> (i % 8) & 1) != 0) add_entry(rows.texts[cells.lane], *cells.dictionary, numbers[i]);
        }
        cells.form = Form::texts;
        cells.dictionary.reset();
    }

    static void add_entry(Buffer<Byte>& texts, const Dictionary& dictionary, std::uint32_t entry) {
        const std::int32_t* const ends = dictionary.ends.data() + entry;
        const auto size = static_cast<std::size_t>(ends[1] - ends[0]);
        texts.reserve(size + SLACK);
        copy_text(texts.data() + texts.size(), dictionary.bytes.data() + ends[0], size);
        texts.resize(texts.size() + size);
    }

    static std::int64_t* offsets_of(Rows& rows, Cells& cells) noexcept {
        if (cells.offsets.data() != nullptr) return cells.offsets.data();
        return reinterpret_cast<std::int64_t*>(rows.fixed.data() + cells.data);
    }
    static std::int64_t text_end(const Rows& rows, const Cells& cells) noexcept {
        return static_cast<std::int64_t>(rows.texts[cells.lane].size() - cells.texts);
    }
    static Damaged too_short() { return Damaged("a page that ends too early"); }

    std::uint32_t* codes(std::size_t count) {
        codes_.resize(0);
        codes_.reserve(count + 1);
        return codes_.data();
    }

    std::size_t left_;
    std::vector<Column> columns_;
    Buffer<std::uint32_t> codes_;
};

}  // namespace ftprl::parquet
