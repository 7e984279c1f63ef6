#include "readers/block_reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "readers/fingerprint.hpp"
#include "readers/packed_names.hpp"
#include "readers/window.hpp"

namespace ftprl {
namespace {

// Each is read in much less time than it takes to learn it: more of them would only use more memory for the first time.
constexpr std::size_t BLOCKS_IN_ADVANCE = 1;  // for each thread, besides the one that it reads

constexpr std::chrono::microseconds SHORT_WAIT{200};  // less than it takes to read most blocks

// Reads bytes and makes their fingerprint, of each part while it is in the cache; fewer when the file ends before.
std::uint64_t read_bytes(int file, const BlockPlace& place, std::uint64_t largest, ReadBlock& to) {
    std::uint64_t fingerprint = 0;
    Buffer<Byte>& bytes = to.bytes;
    bytes.reserve(largest / 2 <= place.size ? largest : place.size);  // the memory then serves other blocks, too
    while (bytes.size() < place.size) {
        const std::size_t wanted = std::min(static_cast<std::size_t>(place.size) - bytes.size(), Window::USUAL);
        Byte* const at = bytes.data() + bytes.size();
        const ssize_t got = pread(file, at, wanted, static_cast<off_t>(place.offset + bytes.size()));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) to.error = errno;
        if (got <= 0) break;
        fingerprint += text_fingerprint(at, static_cast<std::size_t>(got), bytes.size());
        bytes.resize(bytes.size() + static_cast<std::size_t>(got));
    }
    return fingerprint;
}

std::uint64_t largest_of(const std::vector<BlockPlace>& places) {
    std::uint64_t largest = 0;
    for (const BlockPlace& place : places) largest = std::max(largest, place.size);
    return largest;
}

std::int64_t row_end(const Byte* indptr, std::uint64_t row) {
    std::int64_t end;
    std::memcpy(&end, indptr + row * sizeof(end), sizeof(end));
    return end;
}

// Whether the rows are behind one another and end with the last entry.
bool are_rows(const Byte* indptr, std::uint64_t rows, std::uint64_t entries) {
    bool falls = false;
    for (std::uint64_t r = 0; r < rows; ++r) falls |= row_end(indptr, r + 1) < row_end(indptr, r);
    return !falls && row_end(indptr, 0) == 0 && row_end(indptr, rows) == static_cast<std::int64_t>(entries);
}

// Names behind the arrays and the tags; false when these do not fit.
bool read_names(const BlockPlace& place, std::uint64_t at, ReadBlock& block) {
    std::uint64_t tags = 0;
    const std::uint64_t left = place.size - at;
    if (left < sizeof(tags)) return left == 0;
    std::memcpy(&tags, block.bytes.data() + at, sizeof(tags));
    if (tags > left - sizeof(tags)) return false;
    const std::uint64_t size = left - sizeof(tags) - tags;
    if (size == 0) return true;
    std::optional<NewNames> names =
        unpack_names(block.bytes.data() + place.size - size, static_cast<std::size_t>(size));
    if (names) block.names.emplace(std::move(*names));
    return names.has_value();
}

}  // namespace

std::optional<std::uint64_t> BlockPlace::array_bytes(std::size_t value_bytes) const noexcept {
    if (rows > size / 16 || entries > size / 4) return {};  // then nothing below is too large for its type
    const std::uint64_t per_row = has_weights ? 24 : 16, per_entry = 4 + (has_values ? value_bytes : 0);
    const std::uint64_t bytes = 8 + rows * per_row + entries * per_entry;
    if (bytes > size) return {};
    return bytes;
}

BlockReader::BlockReader(int file, std::vector<BlockPlace> places, std::size_t first, std::size_t value_bytes,
                         bool wants_names, int threads)
    : file_(file),
      places_(std::move(places)),
      largest_(largest_of(places_)),
      value_bytes_(value_bytes),
      wants_names_(wants_names),
      begun_(first),
      taken_(first),
      results_(std::max<std::size_t>(1, static_cast<std::size_t>(threads) * (1 + BLOCKS_IN_ADVANCE))),
      wanted_threads_(threads),
      process_(static_cast<long>(getpid())) {}

void BlockReader::start_threads() {
    try {
        threads_.reserve(static_cast<std::size_t>(wanted_threads_));
        for (; wanted_threads_ > 0; --wanted_threads_) threads_.emplace_back([this] { serve(); });
    } catch (const std::exception&) {  // no more threads, or no memory for one: the caller does their work
        wanted_threads_ = 0;
    }
}

BlockReader::~BlockReader() {
    {
        const std::lock_guard<std::mutex> guard(mutex_);
        is_closed_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

bool BlockReader::is_here() const noexcept { return process_ == static_cast<long>(getpid()); }

std::optional<ReadBlock> BlockReader::take() {
    const std::lock_guard<std::mutex> alone(taking_);
    std::unique_lock<std::mutex> guard(mutex_);
    if (taken_ >= places_.size()) return {};
    std::optional<ReadBlock>& result = results_[taken_ % results_.size()];
    if (wanted_threads_ > 0) {
        ++begun_;  // the first block, which is wanted at once: the caller reads it
        guard.unlock();
        start_threads();
        guard.lock();
        read_block(taken_, guard);
    }
    const auto is_read = [&result] { return result.has_value(); };
    while (!is_read()) {
        // Rather than wait long for a thread it reads the next block itself.
        if (begun_ > taken_ && changed_.wait_for(guard, SHORT_WAIT, is_read)) break;
        if (may_begin()) {
            read_block(begun_++, guard);
        } else {
            changed_.wait(guard, is_read);
        }
    }
    std::optional<ReadBlock> block;
    block.emplace(std::move(*result));
    result.reset();
    ++taken_;
    guard.unlock();
    changed_.notify_all();
    if (block->failure != nullptr) std::rethrow_exception(block->failure);
    return block;
}

void BlockReader::serve() noexcept {
    std::unique_lock<std::mutex> guard(mutex_);
    while (true) {
        changed_.wait(guard, [this] { return may_begin() || is_closed_ || begun_ >= places_.size(); });
        if (!may_begin() || is_closed_) return;
        read_block(begun_++, guard);
        changed_.notify_all();
    }
}

// The lock is given back meanwhile.
void BlockReader::read_block(std::size_t number, std::unique_lock<std::mutex>& guard) noexcept {
    guard.unlock();
    ReadBlock block = read(places_[number]);
    guard.lock();
    results_[number % results_.size()].emplace(std::move(block));
}

ReadBlock BlockReader::read(const BlockPlace& place) const noexcept {
    ReadBlock block;
    try {
        const std::optional<std::uint64_t> arrays = place.array_bytes(value_bytes_);
        if (!arrays) return block;
        const std::uint64_t fingerprint = read_bytes(file_, place, largest_, block);
        block.is_whole = block.error == 0 && block.bytes.size() == place.size && fingerprint == place.fingerprint &&
                         are_rows(block.bytes.data(), place.rows, place.entries) &&
                         (!wants_names_ || read_names(place, *arrays, block));
    } catch (...) {
        block.failure = std::current_exception();
    }
    return block;
}

}  // namespace ftprl
