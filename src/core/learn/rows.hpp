// Whether rows may be learned or scored, before anything is done with them.
#pragma once

#include <cstdint>
#include <string>

#include "learn/kernel.hpp"

namespace ftprl {

// What is wrong with some rows: the number of the first bad row in its batch, or -1 when it is the shape of the batch,
// and a message without the number. No message means that nothing is wrong.
struct RowFault {
    std::int64_t row = -1;
    std::string message;

    explicit operator bool() const { return !message.empty(); }
};

// `size` is the number of entries that really stand in indices and values. Labels and weights are looked at when a loss
// is given, and the numbers of classes are below `classes`. `largest` gets what Rows has under that name.
RowFault find_fault(const Rows& rows, std::int64_t size, std::uint64_t dim, const Loss* loss, int classes,
                    const Kernels& kernels, double* largest = nullptr);

}  // namespace ftprl
