// Memory for rows, which grows and changes its owner without a copy.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include "support/blocks.hpp"

namespace ftprl {

// A growing array of numbers that are not initialised; its memory can be released to a new owner.
template <class T>
class Buffer {
public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    Buffer(Buffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          capacity_(std::exchange(other.capacity_, 0)),
          expected_(other.expected_) {
        other.expected_ = size_ + size_ / 8 + 1024;
    }
    ~Buffer() { Blocks::shared().give(data_); }

    T* data() noexcept { return data_; }
    const T* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    void resize(std::size_t size) noexcept { size_ = size; }  // within what was reserved
    void reserve(std::size_t more) {
        if (capacity_ - size_ >= more) return;
        std::size_t wanted = capacity_ == 0 ? expected_ : capacity_ + capacity_ / 2;
        if (wanted < size_ + more) wanted = size_ + more;
        if (wanted > ~std::size_t{0} / sizeof(T)) throw std::bad_alloc();
        auto* grown = static_cast<T*>(Blocks::shared().take(wanted * sizeof(T)));
        if (size_ != 0) std::memcpy(grown, data_, size_ * sizeof(T));
        Blocks::shared().give(std::exchange(data_, grown));
        capacity_ = Blocks::size_of(grown) / sizeof(T);
    }
    void push(T value) {
        reserve(1);
        data_[size_++] = value;
    }
    // Releases the memory, which must be returned to Blocks; the buffer is empty afterwards.
    T* release() noexcept {
        expected_ = size_ + size_ / 8 + 1024;
        size_ = capacity_ = 0;
        return std::exchange(data_, nullptr);
    }

private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
    std::size_t expected_ = 1024;  // as much as last time, and some: growing copies, and asks the system for new pages
};

}  // namespace ftprl
