// The bytes of a column in a file, read in pieces.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "readers/buffer.hpp"
#include "readers/parquet/thrift.hpp"

namespace ftprl::parquet {

inline constexpr std::size_t SLACK = 64;  // bytes behind the end of a page that may be read and written

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

// Its next bytes stand in a window, with SLACK behind them.
class Stream {
public:
    Stream(std::shared_ptr<const File> file, std::int64_t offset, std::size_t size) noexcept
        : file_(std::move(file)), offset_(offset), behind_(size) {}

    // Bytes that were not consumed: all of them, and those in the window.
    std::size_t left() const noexcept { return behind_ + there(); }
    std::size_t there() const noexcept { return window_.size() - at_; }
    const Byte* data() const noexcept { return window_.data() + at_; }

    // Has at least `size` bytes in the window, or all that are left.
    void fill(std::size_t size) {
        const std::size_t kept = there();
        if (kept >= size || behind_ == 0) return;
        const std::size_t more = std::min(behind_, std::max(size, PIECE) - kept);
        if (at_ != 0 && kept != 0) std::memmove(window_.data(), data(), kept);
        at_ = 0;
        window_.resize(kept);
        window_.reserve(more + SLACK);
        file_->read(offset_, window_.data() + kept, more);
        window_.resize(kept + more);
        offset_ += static_cast<std::int64_t>(more);
        behind_ -= more;
    }

    // Goes on behind `size` bytes of the window.
    void consume(std::size_t size) noexcept { at_ += size; }

private:
    static constexpr std::size_t PIECE = std::size_t{1}
                                         << 16;  // bytes: more of each column would not stay in the cache

    std::shared_ptr<const File> file_;
    std::int64_t offset_;  // of what stands behind the window
    std::size_t behind_;   // bytes of the column there
    Buffer<Byte> window_;
    std::size_t at_ = 0;
};

}  // namespace ftprl::parquet
