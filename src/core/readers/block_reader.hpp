// The blocks of a file of batches, read and checked in advance by threads that know nothing of Python: a thread that
// needs the interpreter's lock, however briefly, makes the one that learns wait for it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "readers/buffer.hpp"
#include "readers/new_names.hpp"
#include "readers/scan.hpp"

namespace ftprl {

// Where a block is in its file and what it has. Its arrays follow one another: indptr, labels, weights and values where
// not all of these are 1, indices; then the size of the tags, the tags and the names where there are any.
struct BlockPlace {
    std::uint64_t offset, size, rows, entries;
    bool has_weights, has_values;
    std::uint64_t fingerprint;

    // The size of the arrays, with values of `value_bytes` each; nothing if a block of this size cannot hold them.
    std::optional<std::uint64_t> array_bytes(std::size_t value_bytes) const noexcept;
};

// A block that was read.
struct ReadBlock {
    Buffer<Byte> bytes;
    std::optional<NewNames> names;  // if they are wanted and there are any
    bool is_whole = false;          // the bytes are those that were written, and the arrays fit each other
    int error = 0;                  // of the system
    std::exception_ptr failure;     // no memory
};

class BlockReader {
public:
    // Blocks from number `first` on of an open file, which stays open as long as this does. Up to `threads` threads
    // read in advance; the caller reads what none of them has begun, all of it where there is no thread.
    BlockReader(int file, std::vector<BlockPlace> places, std::size_t first, std::size_t value_bytes, bool wants_names,
                int threads);
    BlockReader(const BlockReader&) = delete;
    BlockReader& operator=(const BlockReader&) = delete;

    // The next block, or nothing behind the last one.
    std::optional<ReadBlock> take();
    // Whether the threads are still there: a forked process has only the one that forked it. Nothing can be done with
    // a reader whose threads are gone, not even to destroy it.
    bool is_here() const noexcept;
    struct End {
        void operator()(BlockReader* reader) const {
            if (reader->is_here()) delete reader;
        }
    };

private:
    ~BlockReader();
    void serve() noexcept;
    void start_threads();
    void read_block(std::size_t number, std::unique_lock<std::mutex>& guard) noexcept;
    ReadBlock read(const BlockPlace& place) const noexcept;
    bool may_begin() const noexcept { return begun_ < places_.size() && begun_ < taken_ + results_.size(); }

    const int file_;
    const std::vector<BlockPlace> places_;
    const std::uint64_t largest_;  // of the sizes
    const std::size_t value_bytes_;
    const bool wants_names_;
    std::mutex taking_, mutex_;  // of `take` as a whole, and of what follows
    std::condition_variable changed_;
    std::size_t begun_, taken_;                      // the numbers of the next blocks to read and to take
    std::vector<std::optional<ReadBlock>> results_;  // block n at n modulo their number, once it is read
    bool is_closed_ = false;
    int wanted_threads_;  // that are still to be started
    std::vector<std::thread> threads_;
    long process_;
};

}  // namespace ftprl
