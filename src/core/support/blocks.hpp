// Memory that is handed away and comes back. A batch follows a batch of much the same size: one that was given back
// serves the next, where new pages from the system would cost as much as a good part of the reading.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <new>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace ftprl {

class Blocks {
public:
    // Never destroyed: arrays may come back after everything else is gone.
    static Blocks& shared() {
        static Blocks& blocks = *new Blocks;
        return blocks;
    }

    // At least `size` bytes; size_of says how many.
    void* take(std::size_t size) {
        if (size >= SMALL) {
            const std::lock_guard<std::mutex> lock(mutex_);
            std::size_t best = count_;
            for (std::size_t i = 0; i < count_; ++i) {
                const std::size_t found = kept_[i]->size;
                if (found >= size && found / 4 <= size && (best == count_ || found < kept_[best]->size)) best = i;
            }
            if (best != count_) return remove(best) + 1;
        }
        if (size > ~std::size_t{0} - sizeof(Head)) throw std::bad_alloc();
        auto* head = static_cast<Head*>(std::malloc(sizeof(Head) + size));
        if (head == nullptr) throw std::bad_alloc();
        head->size = size;
        return head + 1;
    }

    static std::size_t size_of(const void* data) noexcept { return (static_cast<const Head*>(data) - 1)->size; }

    void give(void* data) noexcept {
        if (data == nullptr) return;
        Head* head = static_cast<Head*>(data) - 1;
        if (head->size >= SMALL && head->size <= MOST) {
            const std::lock_guard<std::mutex> lock(mutex_);
            while (count_ == kept_.size() || (count_ > 0 && bytes_ + head->size > MOST)) std::free(remove(0));
            kept_[count_++] = head;
            bytes_ += head->size;
            return;
        }
        std::free(head);
    }

    // Give everything back to the system: nothing is read for a while.
    void trim() noexcept {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            while (count_ > 0) std::free(remove(count_ - 1));
        }
#if defined(__GLIBC__)
        malloc_trim(0);
#endif
    }

private:
    static constexpr std::size_t SMALL = std::size_t{1} << 14;  // below this malloc does as well
    static constexpr std::size_t MOST = std::size_t{1} << 26;   // bytes kept at most

    struct alignas(std::max_align_t) Head {
        std::size_t size;
    };

    Head* remove(std::size_t place) noexcept {
        Head* head = kept_[place];
        for (std::size_t i = place + 1; i < count_; ++i) kept_[i - 1] = kept_[i];
        --count_;
        bytes_ -= head->size;
        return head;
    }

    std::mutex mutex_;
    std::array<Head*, 128> kept_{};  // the oldest first
    std::size_t count_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace ftprl
