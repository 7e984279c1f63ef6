// Whole rows of a part of a file, read and parsed through a window that stays in the cache; a large block would be
// copied to memory and back.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "readers/parser.hpp"

namespace ftprl {

class Window {
public:
    static constexpr int SHORTER = -1;  // an error: the file ends before the part does
    static constexpr std::size_t USUAL = std::size_t{1} << 17;

    // The window grows for a row that does not fit.
    explicit Window(std::size_t size = USUAL) : bytes_(size) {}

    // The part [from, to) of an open file; its rows are whole.
    void open(int file, std::uint64_t from, std::uint64_t to) {
        file_ = file;
        at_ = from;
        to_ = to;
        begin_ = size_ = 0;
        error = 0;
    }

    // Feeds the parser until its batch is full, or it stops; false if no bytes are left or reading failed.
    bool feed(Parser& parser) {
        for (;;) {
            const bool last = at_ == to_;
            if (begin_ != size_) begin_ = parser.feed(bytes_.data(), size_, begin_, last);
            if (parser.full() || parser.problem.line != 0) return true;
            if (last || !refill()) return false;
        }
    }

    int error = 0;  // of the system, or SHORTER

private:
    // Keeps the unparsed bytes and reads more after them.
    bool refill() {
        size_ -= begin_;
        std::memmove(bytes_.data(), bytes_.data() + begin_, size_);
        begin_ = 0;
        if (size_ > bytes_.size() / 2) bytes_.resize(2 * bytes_.size());
        std::size_t wanted = bytes_.size() - size_;
        if (wanted > to_ - at_) wanted = static_cast<std::size_t>(to_ - at_);
        ssize_t got = 0;
        do {
            got = pread(file_, bytes_.data() + size_, wanted, static_cast<off_t>(at_));
        } while (got < 0 && errno == EINTR);
        if (got <= 0) {
            error = got < 0 ? errno : SHORTER;
            return false;
        }
        const auto count = static_cast<std::size_t>(got);
        size_ += count;
        at_ += static_cast<std::uint64_t>(got);
        return true;
    }

    int file_ = -1;
    std::uint64_t at_ = 0;  // where the next byte is read
    std::uint64_t to_ = 0;
    std::vector<Byte> bytes_;
    std::size_t begin_ = 0;  // of what was read and not parsed, up to size_
    std::size_t size_ = 0;
};

}  // namespace ftprl
