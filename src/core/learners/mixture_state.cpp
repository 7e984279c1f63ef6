#include "learners/mixture_state.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace ftprl {

void keep_numbers(double* array, int size, int first, int count, int next, int more) {
    std::copy(array + first, array + first + count, array);
    std::copy(array + next, array + next + more, array + count);
    std::fill(array + count + more, array + size, 0.0);
}

void divide_by_total(double* w, int count) {
    double total = 0.0;
    for (int j = 0; j < count; ++j) total += w[j];
    for (int j = 0; j < count; ++j) w[j] = total > 0.0 ? w[j] / total : 1.0 / count;
}

void keep_mixture(Mixture& m, int scales, int first, int count, int others) {
    for (int k = 0; k < count; ++k) std::copy(m.P[first + k], m.P[first + k] + MOST_COLUMNS, m.P[k]);
    for (int k = 0; k < count; ++k) keep_numbers(m.P[k], MOST_COLUMNS, first, count);
    for (int k = count; k < MOST_COLUMNS; ++k) std::fill(std::begin(m.P[k]), std::end(m.P[k]), 0.0);
    keep_numbers(m.u, MOST_COLUMNS, first, count);
    for (double* array : {m.w, m.totals}) keep_numbers(array, MOST_EXPERTS, first, count, scales, others);
    divide_by_total(m.w, count + others);
    for (auto& sums : m.sums) keep_numbers(sums, MOST_SCALES, first, count);
    std::fill(std::begin(m.block), std::end(m.block), 0.0);
    for (auto& windows : m.windows) std::fill(std::begin(windows), std::end(windows), 0.0);
}

void keep_constants(ScaleConstants& constants, int first, int count) {
    double* const h = constants.h;
    std::copy(h + first, h + first + count, h);
    std::fill(h + count, h + MOST_SCALES, 1.0);
    constants.count = count;
}

void add_mixture_arrays(std::vector<NamedArray>& arrays, Mixture& m, const ScaleConstants& constants, bool receipt) {
    const int K = constants.count;
    if (constants.stack) {
        arrays.push_back({"mixture.P", &m.P[0][0], K, K, MOST_COLUMNS});
        arrays.push_back({"mixture.u", m.u, 0, K, 0});
    }
    if (K > WINDOW) {
        arrays.push_back({"mixture.block", m.block, 0, K, 0});
        arrays.push_back({"mixture.windows", &m.windows[0][0], 3, K - WINDOW + 2, MOST_WINDOWS});
    }
    if (receipt) arrays.push_back({"mixture.sums", &m.sums[0][0], 3, K, MOST_SCALES});
}

void add_column_arrays(std::vector<NamedArray>& arrays, DenseBlock& b) {
    arrays.push_back({"dense.rows", &b.rows, 0, 1, 0});
    if (b.active + b.watched == 0) return;
    arrays.push_back({"dense.columns", &b.columns[0][0], b.active + b.watched, COLUMN_FACTS, COLUMN_FACTS});
}

void link_columns(DenseBlock& b, const SlotMap& slot_map) {
    for (int j = 0; j < b.active + b.watched; ++j) {
        b.cells[j] = slot_map[static_cast<std::uint64_t>(b.columns[j][COLUMN_SLOT])];
    }
}

}  // namespace ftprl
