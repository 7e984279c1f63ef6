#include "support/memory.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#define FTPRL_MMAP 1
#endif

namespace ftprl {
namespace {

constexpr std::size_t HUGE_PAGE = std::size_t{1} << 21;  // a huge page
constexpr std::size_t PAGE = 4096;
constexpr std::size_t LINE = 64;

void* aligned(void* p, std::size_t to) {
    return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(p) + to - 1) / to * to);
}

}  // namespace

Memory::Memory(std::size_t bytes) : size_(bytes) {
    const std::size_t to = bytes >= HUGE_PAGE ? HUGE_PAGE : LINE;
    if (bytes > std::numeric_limits<std::size_t>::max() - to) throw std::bad_alloc();
    block_size_ = bytes + to;
#if defined(FTPRL_MMAP)
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#if defined(MAP_NORESERVE)
    flags |= MAP_NORESERVE;
#endif
    void* const block = mmap(nullptr, block_size_, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (block == MAP_FAILED) throw std::bad_alloc();
    block_ = block;
    data_ = aligned(block_, to);
#if defined(MADV_HUGEPAGE)
    if (to == HUGE_PAGE) madvise(data_, size_, MADV_HUGEPAGE);  // a wish: without it the table is only slower
#endif
#else
    block_ = std::calloc(block_size_, 1);
    if (block_ == nullptr) throw std::bad_alloc();
    data_ = aligned(block_, to);
#endif
}

Memory::~Memory() {
#if defined(FTPRL_MMAP)
    if (block_ != nullptr) munmap(block_, block_size_);
#else
    std::free(block_);
#endif
}

void Memory::use_small_pages() {
    has_small_pages_ = true;
#if defined(MADV_NOHUGEPAGE)
    if (block_size_ - size_ == HUGE_PAGE) madvise(data_, size_, MADV_NOHUGEPAGE);  // otherwise there are no others
#endif
}

void Memory::clear(std::size_t from, std::size_t to) {
    auto* const data = static_cast<unsigned char*>(data_);
#if defined(__linux__)
    // Pages that were returned are zero when they are used again.
    const std::size_t page = (from + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    if (size_ >= HUGE_PAGE && page < to && madvise(data + page, size_ - page, MADV_DONTNEED) == 0) to = page;
#endif
    if (from < to) std::memset(data + from, 0, to - from);
}

void Memory::copy_from(const Memory& other, std::size_t size) {
    static const unsigned char zeros[4096] = {};
    if (other.has_small_pages_) use_small_pages();
    const auto* from = static_cast<const unsigned char*>(other.data_);
    auto* to = static_cast<unsigned char*>(data_);
    for (std::size_t at = 0; at < size; at += sizeof zeros) {
        const std::size_t n = size - at < sizeof zeros ? size - at : sizeof zeros;
        if (std::memcmp(from + at, zeros, n) != 0) std::memcpy(to + at, from + at, n);
    }
}

#if defined(__linux__)

namespace {

void* mapping(std::size_t bytes) noexcept {
    void* const block =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return block == MAP_FAILED ? nullptr : block;
}

}  // namespace

bool GrowingMemory::reserve(std::size_t bytes) noexcept {
    if (block_ != nullptr || most_ < bytes || most_ < 2 * HUGE_PAGE) return false;
    const std::size_t whole = (most_ + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void* const block = mapping(whole + HUGE_PAGE);
    if (block == nullptr) return false;  // addresses are scarce here: it grows step by step
    void* const first = aligned(block, HUGE_PAGE);
#if defined(MADV_HUGEPAGE)
    // The first use of hundreds of small pages takes longer than that of a large one; small blocks stay on small pages.
    madvise(static_cast<unsigned char*>(first) + HUGE_PAGE, whole - HUGE_PAGE, MADV_HUGEPAGE);
#endif
    if (size_ != 0) std::memcpy(first, data_, size_);
    release();
    data_ = first;
    block_ = block;
    mapped_ = whole + HUGE_PAGE;
    size_ = whole;
    is_reserved_ = true;
    return true;
}

void GrowingMemory::grow(std::size_t bytes) {
    constexpr std::size_t SMALL = std::size_t{1} << 16;
    if (bytes <= size_) return;
    if (bytes <= SMALL && block_ == nullptr) {
        void* const grown = std::realloc(data_, bytes);
        if (grown == nullptr) throw std::bad_alloc();
        data_ = grown;
        size_ = bytes;
        return;
    }
    if (reserve(bytes)) return;
    const std::size_t wanted = (bytes + PAGE - 1) / PAGE * PAGE;
    if (wanted < bytes) throw std::bad_alloc();
    void* grown = nullptr;
    if (block_ != nullptr && !is_reserved_) grown = mremap(block_, mapped_, wanted, MREMAP_MAYMOVE);
    if (grown == MAP_FAILED) throw std::bad_alloc();
    if (grown == nullptr) {  // the first block: what was reserved has pages of two kinds, which do not move together
        grown = mapping(wanted);
        if (grown == nullptr) throw std::bad_alloc();
        if (size_ != 0) std::memcpy(grown, data_, size_);
        release();
    }
    data_ = block_ = grown;
    is_reserved_ = false;
    mapped_ = wanted;
    size_ = wanted;
#if defined(MADV_HUGEPAGE)
    if (wanted >= 2 * HUGE_PAGE) madvise(data_, wanted, MADV_HUGEPAGE);  // a wish: moving may leave it unaligned
#endif
}

void GrowingMemory::release() noexcept {
    if (block_ != nullptr) {
        munmap(block_, mapped_);
    } else {
        std::free(data_);
    }
}

#else

void GrowingMemory::grow(std::size_t bytes) {
    void* const grown = std::realloc(data_, bytes);
    if (grown == nullptr) throw std::bad_alloc();
    data_ = grown;
    size_ = bytes;
}

bool GrowingMemory::reserve(std::size_t) noexcept { return false; }

void GrowingMemory::release() noexcept { std::free(data_); }

#endif

GrowingMemory::~GrowingMemory() { release(); }

}  // namespace ftprl
