// Features of a row whose names are a known beginning and a text. They are collected and hashed in one loop, which
// takes half the time of adding each one separately.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "readers/features.hpp"
#include "readers/names.hpp"
#include "readers/rows.hpp"
#include "readers/scan.hpp"

namespace ftprl {

class JoinedFeatures {
public:
    explicit JoinedFeatures(RowBuilder& rows) : rows_(rows) {}

    // Starts a row of at most `most` of them, with all texts within a line that ends here; bytes up to `limit` may be
    // read.
    void begin(std::size_t most, const Byte* line_end, const Byte* limit) {
        if (waiting_.size() < most) waiting_.resize(most);
        next_ = waiting_.data();
        are_alone_ = true;
        limit_ = limit;
        is_inside_ = limit - line_end >= 8;
    }

    // Adds a text that is not empty; the text and the beginning stay in memory until the row is over.
    void add(const Prefix& beginning, std::uint32_t group, const Byte* text, std::size_t size) {
        *next_++ = Waiting{&beginning, text, static_cast<std::uint32_t>(size), group};
    }

    // Adds the collected features, because other features follow.
    void flush() {
        are_alone_ = false;
        if (next_ == waiting_.data()) return;
        double* const values = rows_.row_values();
        const std::size_t before = rows_.size();
        write();
        for (std::size_t i = before; i < rows_.size(); ++i) values[i] = 1.0;
    }

    // Ends the row.
    void finish() {
        if (!are_alone_) return flush();
        write();
        rows_.set_unit_values();
    }

private:
    struct Waiting {
        const Prefix* beginning;
        const Byte* text;
        std::uint32_t size;
        std::uint32_t group;
    };
    struct Masked {
        std::uint32_t mask;
        std::uint32_t operator()(std::uint64_t hash) const noexcept { return static_cast<std::uint32_t>(hash) & mask; }
    };

    void write() {
        const Slots slots = rows_.slots();
        if (slots.masked()) {
            write(Masked{static_cast<std::uint32_t>(slots.mask())});
        } else {
            write(slots);
        }
        rows_.set_size(rows_.size() + static_cast<std::size_t>(next_ - waiting_.data()));
        next_ = waiting_.data();
    }
    template <class Slot>
    void write(const Slot slot) {
        FeatureLog& log = rows_.log;
        if (!log.is_on()) return write(slot, NoFeatures{});
        write(slot, AllFeatures{log.features() + rows_.size()});
    }
    template <class Slot, class Log>
    void write(const Slot slot, Log log) {
        std::uint32_t* const out = rows_.row_slots() + rows_.size();
        const Waiting* const waiting = waiting_.data();
        const auto size = static_cast<std::size_t>(next_ - waiting);
        for (std::size_t i = 0; i < size; ++i) {
            const Waiting& one = waiting[i];
            const std::uint64_t hash =
                is_inside_ ? one.beginning->inside(one.text, one.size) : (*one.beginning)(one.text, one.size, limit_);
            out[i] = slot(hash);
            log.add(Feature{hash, one.text, one.size, one.group});
        }
    }

    RowBuilder& rows_;
    std::vector<Waiting> waiting_;
    Waiting* next_ = nullptr;  // behind the last of them
    const Byte* limit_ = nullptr;
    bool is_inside_ = false;  // eight bytes behind any text may be read
    bool are_alone_ = true;   // no other features were added
};

}  // namespace ftprl
