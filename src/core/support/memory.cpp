#include "support/memory.hpp"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

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

// Touches the pages of memory that nobody uses yet, until it is stopped.
class Prefaulter {
public:
    explicit Prefaulter(std::vector<std::pair<void*, std::size_t>> parts)
        : thread_([this, parts = std::move(parts)] {
              for (const auto& [data, size] : parts) work(static_cast<unsigned char*>(data), size);
          }) {}
    ~Prefaulter() {
        is_wanted_ = false;
        thread_.join();
    }

private:
    void work(volatile unsigned char* data, std::size_t size) {
        for (std::size_t at = 0; at < size && is_wanted_; at += PAGE) data[at] = 0;
    }

    std::atomic<bool> is_wanted_{true};
    std::thread thread_;
};

struct Prefaulted {
    std::vector<std::unique_ptr<Memory>> memory;
    std::unique_ptr<Prefaulter> thread;  // gone before the memory is
};

std::mutex prefaulting;
Prefaulted* prefaulted = nullptr;  // never deleted at the end of a process: nobody waits for the thread then

}  // namespace

Memory::Memory() = default;

void Memory::prefault(const std::vector<Block>& blocks) {
    auto made = std::make_unique<Prefaulted>();
    std::vector<std::pair<void*, std::size_t>> parts;
    for (const Block& block : blocks) {
        made->memory.emplace_back(new Memory);
        made->memory.back()->map(block.bytes);
        parts.emplace_back(made->memory.back()->data_, block.most < block.bytes ? block.most : block.bytes);
    }
    made->thread = std::make_unique<Prefaulter>(std::move(parts));
    const std::lock_guard<std::mutex> lock(prefaulting);
    delete std::exchange(prefaulted, made.release());
}

bool Memory::take_prefaulted(std::size_t bytes) {
    const std::lock_guard<std::mutex> lock(prefaulting);
    if (prefaulted == nullptr) return false;
    for (auto memory = prefaulted->memory.begin(); memory != prefaulted->memory.end(); ++memory) {
        if ((*memory)->size_ != bytes) continue;
        prefaulted->thread.reset();
        std::swap(block_, (*memory)->block_);
        std::swap(block_size_, (*memory)->block_size_);
        std::swap(data_, (*memory)->data_);
        std::swap(size_, (*memory)->size_);
        prefaulted->memory.erase(memory);
        if (prefaulted->memory.empty()) delete std::exchange(prefaulted, nullptr);
        return true;
    }
    return false;
}

Memory::Memory(std::size_t bytes) {
    if (!take_prefaulted(bytes)) map(bytes);
}

void Memory::map(std::size_t bytes) {
    size_ = bytes;
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
    // Pages that are given back are zero when they are used again.
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

void GrowingMemory::grow(std::size_t bytes) {
    constexpr std::size_t SMALL = std::size_t{1} << 16;
    if (bytes <= SMALL && mapped_ == 0) {
        void* const grown = std::realloc(data_, bytes);
        if (grown == nullptr) throw std::bad_alloc();
        data_ = grown;
        size_ = bytes;
        return;
    }
    const std::size_t wanted = (bytes + PAGE - 1) / PAGE * PAGE;
    if (wanted < bytes) throw std::bad_alloc();
    void* grown = MAP_FAILED;
    if (mapped_ != 0) {
        grown = mremap(data_, mapped_, wanted, MREMAP_MAYMOVE);
    } else {
        grown = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (grown != MAP_FAILED && size_ != 0) std::memcpy(grown, data_, size_);
        if (grown != MAP_FAILED) std::free(data_);
    }
    if (grown == MAP_FAILED) throw std::bad_alloc();
    data_ = grown;
    mapped_ = size_ = wanted;
#if defined(MADV_HUGEPAGE)
    // Hundreds of small pages take longer to be there than a large one. A wish: moving may leave it unaligned.
    if (wanted >= 2 * HUGE_PAGE) madvise(data_, wanted, MADV_HUGEPAGE);
#endif
}

GrowingMemory::~GrowingMemory() {
    if (mapped_ != 0) {
        munmap(data_, mapped_);
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

GrowingMemory::~GrowingMemory() { std::free(data_); }

#endif

}  // namespace ftprl
