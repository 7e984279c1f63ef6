// Zeroed memory for a table: aligned, on huge pages if the system has them, and allocated only when touched.
#pragma once

#include <cstddef>

namespace ftprl {

class Memory {
public:
    explicit Memory(std::size_t bytes);  // throws std::bad_alloc
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    void* data() const { return data_; }
    std::size_t size() const { return size_; }

    // Uses small pages from now on: for a large table of which only a few scattered cells are needed, each of which
    // would occupy a whole huge page. A copy of this memory uses them too.
    void use_small_pages();

    // Sets the bytes from `from` to `to` to zero, and returns them to the system if it supports that.
    void clear(std::size_t from, std::size_t to);

    // Copies the first `size` bytes of another memory; zero bytes are not touched here.
    void copy_from(const Memory& other, std::size_t size);

private:
    void* block_ = nullptr;  // what the system gave
    std::size_t block_size_ = 0;
    void* data_ = nullptr;  // its aligned part
    std::size_t size_ = 0;
    bool has_small_pages_ = false;
};

// Memory that grows and keeps its content. If the system supports it, a large block reserves addresses for `most`
// bytes, on huge pages that are allocated only when touched, so that it stays in place; beyond that it is copied once,
// and then its pages are moved without a copy. New bytes are not set to zero.
class GrowingMemory {
public:
    explicit GrowingMemory(std::size_t most = 0) : most_(most) {}
    ~GrowingMemory();
    GrowingMemory(const GrowingMemory&) = delete;
    GrowingMemory& operator=(const GrowingMemory&) = delete;

    void* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    void grow(std::size_t bytes);  // to at least so many; throws std::bad_alloc

private:
    bool reserve(std::size_t bytes) noexcept;  // addresses for `most` bytes, if that is more
    void release() noexcept;

    std::size_t most_;
    void* data_ = nullptr;
    void* block_ = nullptr;   // what the system gave, with data_ in it; null for memory of the standard library
    std::size_t mapped_ = 0;  // bytes of it
    std::size_t size_ = 0;    // bytes from data_ on
    bool is_reserved_ = false;
};

}  // namespace ftprl
