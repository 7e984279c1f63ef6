#include "learn/rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "support/bits.hpp"

namespace ftprl {
namespace {

std::string shown(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    return text;
}

double value_at(const Rows& rows, std::int64_t p) {
    return rows.wide ? static_cast<const double*>(rows.values)[p] : static_cast<const float*>(rows.values)[p];
}

RowFault fault_of_shape(const Rows& rows, std::int64_t size) {
    if (rows.indptr[0] != 0 || rows.indptr[rows.count] != size) {
        return {-1, "indptr needs to run from 0 to the number of entries (" + std::to_string(size) + "), got " +
                        std::to_string(rows.indptr[0]) + " to " + std::to_string(rows.indptr[rows.count]) +
                        "; cut indices and values to the rows"};
    }
    for (std::int64_t r = 0; r < rows.count; ++r) {
        if (rows.indptr[r] > rows.indptr[r + 1]) {
            return {-1, "indptr needs to be nondecreasing, got " + std::to_string(rows.indptr[r]) + " before " +
                            std::to_string(rows.indptr[r + 1]) + "; sort the rows"};
        }
    }
    return {};
}

RowFault fault_of_entries(const Rows& rows, std::uint64_t dim) {
    const double limit = rows.wide ? LIMIT : static_cast<double>(static_cast<float>(LIMIT));  // as in a scan
    for (std::int64_t r = 0; r < rows.count; ++r) {
        for (std::int64_t p = rows.indptr[r]; p < rows.indptr[r + 1]; ++p) {
            if (rows.indices[p] >= dim) {
                return {r, "an index needs to be below " + std::to_string(dim) + ", got " +
                               std::to_string(rows.indices[p]) + "; make the table larger or hash the names"};
            }
            const double v = value_at(rows, p);
            if (!(std::fabs(v) <= limit)) {
                return {
                    r, "a value needs to be finite and within 1e30, got " + shown(v) + "; drop or rescale the feature"};
            }
        }
    }
    return {};
}

bool label_fits(double y, Labels labels, int classes) {
    if (y != y) return true;  // it is missing
    switch (labels) {
        case Labels::signs:
            return std::fabs(y) == 1.0;
        case Labels::nonnegative:
            return y >= 0.0 && y <= LIMIT;
        case Labels::positive:
            return y > 0.0 && y <= LIMIT;
        case Labels::classes:
            return y >= 0.0 && y < classes && y == std::floor(y);
        default:
            return std::fabs(y) <= LIMIT;
    }
}

bool weight_fits(double weight) { return weight >= 0.0 && weight <= LIMIT; }

constexpr std::uint64_t SIGN = std::uint64_t{1} << 63;

// Whether all numbers are 1, but for the bits in `ignored`. By bits, which a compiler works on several at a time.
bool are_ones(const double* numbers, std::int64_t count, std::uint64_t ignored) {
    std::uint64_t others = 0;
    for (std::int64_t i = 0; i < count; ++i) others |= bits_of(numbers[i]) ^ bits_of(1.0);
    return (others & ~ignored) == 0;
}

// What nearly every batch of two classes has: labels of -1 and 1, and no weights but 1.
bool are_plain_labels(const Rows& rows, Labels labels) {
    return labels == Labels::signs && are_ones(rows.y, rows.count, SIGN) && are_ones(rows.weight, rows.count, 0);
}

std::string message_of_label(double y, Labels labels, int classes) {
    switch (labels) {
        case Labels::signs:
            return "a label needs to be -1 or 1 (or NaN when it is missing), got " + shown(y) +
                   "; map the labels first";
        case Labels::nonnegative:
            return "a label needs to be from 0 to 1e30 for this loss, got " + shown(y) + "; fix it or drop the row";
        case Labels::positive:
            return "a label needs to be above 0 and at most 1e30 for this loss, got " + shown(y) +
                   "; fix it or drop the row";
        case Labels::classes:
            return "a label needs to be the number of a class, from 0 to " + std::to_string(classes - 1) + ", got " +
                   shown(y) + "; allow more classes or fix it";
        default:
            return "a label needs to be within 1e30, got " + shown(y) + "; rescale the labels";
    }
}

double largest_of(const Rows& rows, std::int64_t r) {
    double largest = 1.0;  // of the intercept
    for (std::int64_t p = rows.indptr[r]; p < rows.indptr[r + 1]; ++p)
        largest = std::max(largest, std::fabs(value_at(rows, p)));
    return largest;
}

RowFault fault_of_labels(const Rows& rows, std::int64_t end, const Loss& loss, int classes, double largest) {
    for (std::int64_t r = 0; r < end; ++r) {
        if (!label_fits(rows.y[r], loss.labels, classes)) {
            return {r, message_of_label(rows.y[r], loss.labels, classes)};
        }
        if (!weight_fits(rows.weight[r])) {
            return {r,
                    "a weight needs to be from 0 to 1e30, got " + shown(rows.weight[r]) + "; drop or rescale the row"};
        }
        const double weight = rows.weight[r];
        if (weight * largest > LIMIT && rows.y[r] == rows.y[r]) {  // hardly ever
            const double product = weight * largest_of(rows, r);
            if (product > static_cast<double>(static_cast<float>(LIMIT))) {
                return {r, "weight times value needs to be within 1e30, got " + shown(product) +
                               "; rescale one of them or drop the row"};
            }
        }
    }
    return {};
}

}  // namespace

RowFault find_fault(const Rows& rows, std::int64_t size, std::uint64_t dim, const Loss* loss, int classes,
                    const Kernels& kernels, double* largest) {
    RowFault fault = fault_of_shape(rows, size);
    if (fault) return fault;
    const Scan scan = size > 0 ? kernels.scan[rows.wide](rows, dim) : Scan{true, true, true};
    const double bound = scan.values_small ? SMALL_VALUE : 2.0 * LIMIT;  // as a float LIMIT is a little larger
    if (largest != nullptr) *largest = scan.values_small ? SMALL_VALUE : LIMIT;
    if (!scan.indices_fit || !scan.values_fit) fault = fault_of_entries(rows, dim);
    if (loss == nullptr || are_plain_labels(rows, loss->labels)) return fault;
    // A row before the first with a bad entry may have a bad label: the first bad row of all is the one to name.
    const RowFault earlier = fault_of_labels(rows, fault ? fault.row : rows.count, *loss, classes, bound);
    return earlier ? earlier : fault;
}

}  // namespace ftprl
