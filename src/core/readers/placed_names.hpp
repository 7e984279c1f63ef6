// The places of the features of some rows in their text, from which names are read once it is known which are new.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "readers/buffer.hpp"
#include "readers/name_table.hpp"
#include "readers/new_names.hpp"
#include "readers/scan.hpp"

namespace ftprl {

// Reads the name of a feature at a place in the text of a row.
class PlaceReader {
public:
    virtual ~PlaceReader() = default;
    // Appends the name to `out` and returns its hash.
    virtual std::uint64_t read(const Byte* row, const Byte* end, std::uint32_t place, std::string& out) const = 0;
};

// A place has the offset of a feature in the low half, and what the format needs to know of its group in the high half.
class PlacedNames {
public:
    static constexpr std::uint32_t NO_PLACE = 0xffffffffu;  // of the intercept, which has no name
    static constexpr std::size_t LONGEST_ROW = 0xfffe;      // bytes of a row with places
    static constexpr std::uint32_t NO_OFFSET = 0xffffu;     // of a feature that is not in the text

    PlacedNames() = default;
    PlacedNames(PlacedNames&&) noexcept = default;

    Buffer<std::uint32_t> places;  // of each entry of the batch: in its row, or the number of a whole name
    std::shared_ptr<const PlaceReader> reader;

    // The names of rows without places.
    NewNames whole;

    std::size_t size() const noexcept { return places.size(); }

    // Begins a row: its text is copied, or there is none if its names are whole.
    void add_row(std::size_t first_entry, const Byte* from, const Byte* to) {
        rows_.push(Row{static_cast<std::uint32_t>(first_entry),
                       static_cast<std::uint32_t>(text_.size()) | (from == nullptr ? WHOLE : 0)});
        const auto size = static_cast<std::size_t>(to - from);
        if (size == 0) return;
        text_.reserve(size);
        std::memcpy(text_.data() + text_.size(), from, size);
        text_.resize(text_.size() + size);
    }

    // Adds the names of some entries, counted from row `first`, to a table. Returns the row, counted from there, of the
    // first name that does not fit, or `to - first`.
    std::size_t add_to(NameTable& table, std::size_t first, std::size_t to, std::vector<std::int64_t> entries) const {
        if (first >= to || to > rows_.size()) return 0;
        if (!std::is_sorted(entries.begin(), entries.end())) std::sort(entries.begin(), entries.end());
        std::string name;
        std::array<Found, AHEAD> found;
        std::size_t row = first, count = 0;
        for (std::size_t i = 0; i < entries.size(); ++i) {
            const std::size_t entry = rows_.data()[first].entry + static_cast<std::size_t>(entries[i]);
            if (entry >= places.size()) break;
            while (row + 1 < rows_.size() && rows_.data()[row + 1].entry <= entry) ++row;
            const std::uint32_t place = places.data()[entry];
            if (place != NO_PLACE) {
                found[count++] = Found{row, place};
                fetch(text_.data() + (rows_.data()[row].text & ~WHOLE) + (place & 0xffffu));
            }
            if (count < AHEAD && i + 1 < entries.size()) continue;
            for (std::size_t k = 0; k < count; ++k) {
                if (!add_one(table, found[k].row, found[k].place, name)) return found[k].row - first;
            }
            count = 0;
        }
        return to - first;
    }

private:
    static constexpr std::uint32_t WHOLE = 0x80000000u;

    static constexpr std::size_t AHEAD = 32;  // texts that are fetched together: they left the nearest caches long ago

    struct Found {
        std::size_t row;
        std::uint32_t place;
    };
    struct Row {
        std::uint32_t entry;  // its first
        std::uint32_t text;   // where its text begins; with WHOLE it has none
    };

    static void fetch(const Byte* text) noexcept {
#if defined(__GNUC__)
        __builtin_prefetch(text);
#else
        static_cast<void>(text);
#endif
    }

    bool add_one(NameTable& table, std::size_t row, std::uint32_t place, std::string& name) const {
        const std::uint32_t begin = rows_.data()[row].text;
        if ((begin & WHOLE) != 0) {
            const NewNames::Entry& known = whole[place];
            return table.add(known.hash, whole.text_of(known), known.size);
        }
        const std::size_t end = row + 1 < rows_.size() ? rows_.data()[row + 1].text & ~WHOLE : text_.size();
        name.clear();
        const std::uint64_t hash = reader->read(text_.data() + begin, text_.data() + end, place, name);
        return table.add(hash, reinterpret_cast<const Byte*>(name.data()), name.size());
    }

    Buffer<Row> rows_;
    Buffer<Byte> text_;
};

}  // namespace ftprl
