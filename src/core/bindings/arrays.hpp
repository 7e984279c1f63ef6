// Arrays of NumPy that come in, and their lengths.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ftprl::bindings {

template <class T>
using Column = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using Values = nanobind::ndarray<nanobind::ro, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
template <int dimensions>
using Target = nanobind::ndarray<double, nanobind::ndim<dimensions>, nanobind::c_contig, nanobind::device::cpu>;

inline void check_length(const char* name, std::size_t got, std::int64_t rows) {
    if (static_cast<std::int64_t>(got) == rows) return;
    throw nanobind::value_error((std::string(name) + " needs a number for each of the " + std::to_string(rows) +
                                 " rows, got " + std::to_string(got))
                                    .c_str());
}

// The two numbers that a baseline gives for each row.
inline void check_pairs(const Target<2>& losses, std::int64_t rows) {
    check_length("losses", losses.shape(0), rows);
    if (losses.shape(1) != 2) throw nanobind::value_error("losses needs two numbers for each row");
}

// An array of NumPy that takes over some numbers.
template <class T>
nanobind::object owned_array(std::vector<T> numbers) {
    auto* const owned = new std::vector<T>(std::move(numbers));
    const nanobind::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nanobind::cast(
        nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>(owned->data(), {owned->size()}, owner));
}

}  // namespace ftprl::bindings
