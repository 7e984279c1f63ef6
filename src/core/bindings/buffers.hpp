// A buffer of the core as an array of NumPy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>

#include "readers/buffer.hpp"
#include "support/blocks.hpp"

namespace ftprl::bindings {

// The array takes over the memory, which goes back to Blocks when Python drops it; the buffer is empty afterwards.
template <class T>
nanobind::object array_of(Buffer<T>& buffer) {
    const std::size_t size = buffer.size();
    buffer.reserve(1);  // an empty array has an address, too
    T* data = buffer.release();
    const nanobind::capsule owner(data, [](void* p) noexcept { Blocks::shared().give(p); });
    return nanobind::cast(nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>(data, {size}, owner));
}

}  // namespace ftprl::bindings
