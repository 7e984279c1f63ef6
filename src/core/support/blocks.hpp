// A pool of memory blocks. A batch follows a batch of similar size: reusing a returned block is much cheaper than new
// pages from the system, which cost a large part of the reading time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

// Under AddressSanitizer each block comes from malloc, so that reads beyond it are detected.
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
#include <sys/mman.h>
#if defined(MADV_HUGEPAGE)
#define FTPRL_SLABS 1
#endif
#endif

namespace ftprl {

class Blocks {
public:
    // Never destroyed: arrays may be returned after all other objects are gone.
    static Blocks& shared() {
        static Blocks& blocks = *new Blocks;
        return blocks;
    }

    // A block of at least `size` bytes; size_of returns its actual size.
    void* take(std::size_t size) {
        if (size >= SMALL) {
            const std::lock_guard<std::mutex> lock(mutex_);
            std::size_t best = count_;
            for (std::size_t i = 0; i < count_; ++i) {
                const std::size_t match = kept_[i]->size;
                // Among equal blocks the one returned last, because more of it is in the cache.
                if (match >= size && match / 4 <= size && (best == count_ || match <= kept_[best]->size)) best = i;
            }
            if (best != count_) return remove(best) + 1;
        }
        if (size > ~std::size_t{0} - sizeof(Head) - LINE) throw std::bad_alloc();
        Head* head = size >= LEAST_OF_SLAB && size <= MOST ? cut(size) : nullptr;
        if (head != nullptr) return head + 1;
        head = static_cast<Head*>(std::malloc(sizeof(Head) + size));
        if (head == nullptr) throw std::bad_alloc();
        head->size = size;
        head->slab = nullptr;
        return head + 1;
    }

    static std::size_t size_of(const void* data) noexcept { return (static_cast<const Head*>(data) - 1)->size; }

    void give(void* data) noexcept {
        if (data == nullptr) return;
        Head* head = static_cast<Head*>(data) - 1;
        if (head->size >= SMALL && head->size <= MOST) {
            const std::lock_guard<std::mutex> lock(mutex_);
            while (count_ == kept_.size() || (count_ > 0 && bytes_ + head->size > MOST)) let_go(remove(0));
            kept_[count_++] = head;
            bytes_ += head->size;
            return;
        }
        std::free(head);  // no block of a slab is as small, or as large
    }

    // Returns all blocks but the recently used ones to the system, because no reading will follow for a while.
    void trim() noexcept {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            while (bytes_ > MOST_AFTER_TRIM) let_go(remove(0));
        }
#if defined(__GLIBC__)
        malloc_trim(0);
#endif
    }

private:
    static constexpr std::size_t SMALL = std::size_t{1} << 14;  // below this malloc does as well
    static constexpr std::size_t MOST = std::size_t{1} << 26;   // bytes kept at most
    // A program that trains again needs a few blocks at once; their first use takes longer than reading them.
    static constexpr std::size_t MOST_AFTER_TRIM = std::size_t{1} << 24;

    // Blocks of some sizes are cut from slabs of huge pages: the first use of a small page takes the system as long as
    // parsing a few hundred cells, and a command that reads a million rows uses tens of thousands of such pages.
    static constexpr std::size_t SLAB = std::size_t{1} << 23;  // bytes, four huge pages
    static constexpr std::size_t HUGE_PAGE = std::size_t{1} << 21, SMALL_PAGE = 4096, LINE = 64;
    static constexpr std::size_t LEAST_OF_SLAB = std::size_t{1} << 16;  // what is smaller uses few pages
    static constexpr std::size_t MOST_OF_SLAB = SLAB / 2;               // what is larger has a slab of its own

    struct Slab {
        unsigned char* first;  // at the begin of a huge page
        void* mapped;          // what the system gave
        std::size_t size;      // bytes from `first` on, whole huge pages
        std::size_t used;      // bytes from `first` on
        std::size_t blocks;    // of it that were not let go
    };

    struct alignas(std::max_align_t) Head {
        std::size_t size;
        Slab* slab;  // null where malloc gave it
    };

    // A block of the current slab, or of a new one; null if there are none.
    Head* cut([[maybe_unused]] std::size_t size) {
#if defined(FTPRL_SLABS)
        const std::lock_guard<std::mutex> lock(mutex_);
        const std::size_t whole = (sizeof(Head) + size + LINE - 1) / LINE * LINE;
        Slab* slab = slab_;
        if (size > MOST_OF_SLAB) {
            slab = new_slab((whole + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
        } else if (slab == nullptr || slab->size - slab->used < whole) {
            slab = new_slab(SLAB);
            if (slab != nullptr && slab_ != nullptr && slab_->blocks == 0) unmap(slab_);
            if (slab != nullptr) slab_ = slab;
        }
        if (slab == nullptr) return nullptr;
        auto* const head = reinterpret_cast<Head*>(slab->first + slab->used);
        head->size = size;
        head->slab = slab;
        slab->used += whole;
        ++slab->blocks;
        return head;
#else
        return nullptr;
#endif
    }

    // Returns a block to the system: its pages at once, their addresses with the last block of the slab.
    void let_go(Head* head) noexcept {
        if (head->slab == nullptr) return std::free(head);
#if defined(FTPRL_SLABS)
        Slab* const slab = head->slab;
        if (--slab->blocks == 0 && slab != slab_) return unmap(slab);
        const auto begin = reinterpret_cast<std::uintptr_t>(head);
        const std::uintptr_t first = (begin + SMALL_PAGE - 1) / SMALL_PAGE * SMALL_PAGE;
        const std::uintptr_t end = (begin + sizeof(Head) + head->size) / SMALL_PAGE * SMALL_PAGE;
        if (slab->blocks == 0) {  // the current slab, which begins anew
            slab->used = 0;
            madvise(slab->first, slab->size, MADV_DONTNEED);
        } else if (end > first) {
            madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
        }
#endif
    }

#if defined(FTPRL_SLABS)
    static Slab* new_slab(std::size_t size) noexcept {
        auto* const slab = static_cast<Slab*>(std::malloc(sizeof(Slab)));
        if (slab == nullptr) return nullptr;
        void* const mapped =
            mmap(nullptr, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) {
            std::free(slab);
            return nullptr;
        }
        const auto address = reinterpret_cast<std::uintptr_t>(mapped);
        auto* const first =
            static_cast<unsigned char*>(mapped) + ((address + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE - address);
        madvise(first, size, MADV_HUGEPAGE);  // a wish: without it the first use of each page is slower
        *slab = Slab{first, mapped, size, 0, 0};
        return slab;
    }
    static void unmap(Slab* slab) noexcept {
        munmap(slab->mapped, slab->size + HUGE_PAGE);
        std::free(slab);
    }
#endif

    Head* remove(std::size_t index) noexcept {
        Head* head = kept_[index];
        for (std::size_t i = index + 1; i < count_; ++i) kept_[i - 1] = kept_[i];
        --count_;
        bytes_ -= head->size;
        return head;
    }

    std::mutex mutex_;
    std::array<Head*, 128> kept_{};  // the oldest first
    std::size_t count_ = 0;
    std::size_t bytes_ = 0;
    Slab* slab_ = nullptr;  // from which blocks are cut
};

}  // namespace ftprl
