#include "learners/experts.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "learners/scales.hpp"

namespace ftprl {
namespace {

constexpr double LEAST_DEVIATION = 0x1p-20;  // of the mean: values that differ less are a constant

// Remove input `at` of `count` from u and P.
void drop_input(DenseBlock& b, int at, int count) {
    for (int k = at; k + 1 < count; ++k) {
        b.u[k] = b.u[k + 1];
        std::copy(b.P[k + 1], b.P[k + 1] + DENSE_INPUTS, b.P[k]);
    }
    b.u[count - 1] = 0.0;
    std::fill(b.P[count - 1], b.P[count - 1] + DENSE_INPUTS, 0.0);
    for (int k = 0; k < count; ++k) {
        std::copy(b.P[k] + at + 1, b.P[k] + count, b.P[k] + at);
        b.P[k][count - 1] = 0.0;
    }
}

void move_column(DenseBlock& b, int from, int to) {
    std::copy(b.columns[from], b.columns[from] + COLUMN_FACTS, b.columns[to]);
    b.cells[to] = b.cells[from];
}

void drop_rare(DenseBlock& b, double rows, ColumnChanges& changes) {
    for (int j = b.active - 1; j >= 0; --j) {
        if (b.columns[j][MET] >= 0.5 * DENSE_PART * rows) continue;
        for (int i = j; i + 1 < b.active + b.watched; ++i) move_column(b, i + 1, i);
        --b.active;
        changes.left[changes.leaving++] = j;
    }
}

// The stack goes on from where it is, with a constant of weight 0.
void begin(DenseBlock& b, const Mixture& m, int stack_inputs) {
    std::copy(m.u, m.u + stack_inputs, b.u);
    for (int k = 0; k < stack_inputs; ++k) std::copy(m.P[k], m.P[k] + stack_inputs, b.P[k]);
    b.P[stack_inputs][stack_inputs] = 1.0 / STACK_RIDGE;
    b.inputs = stack_inputs + 1;
}

// Whether this multiplier gives every column its own place.
bool fill_index(ColumnIndex& index, int count) {
    std::fill(std::begin(index.column), std::end(index.column), static_cast<std::uint8_t>(MOST_DENSE));
    for (int j = 0; j < count; ++j) {
        std::uint8_t& column = index.column[(index.cell[j] * index.multiplier) >> (32 - INDEX_BITS)];
        if (column != MOST_DENSE) return index.cell[column] == index.cell[j];  // twice the same cell: not of learning
        column = static_cast<std::uint8_t>(j);
    }
    return true;
}

// Whether all columns have low numbers of their own, and a table by these.
bool fill_directly(ColumnIndex& index, int count) {
    std::fill(std::begin(index.column), std::end(index.column), static_cast<std::uint8_t>(MOST_DENSE));
    for (int j = 0; j < count; ++j) {
        const std::uint32_t cell = index.cell[j];
        if (cell == 0 || cell >= std::size(index.column) || index.column[cell] != MOST_DENSE) return false;
        index.column[cell] = static_cast<std::uint8_t>(j);
    }
    return true;
}

// Whether a watched column is one of numbers that most rows have.
bool is_dense(const double* column, double rows) {
    const double deviation = std::sqrt(column[SQUARES] / rows);
    return column[MET] >= DENSE_PART * rows && column[DIFFERS] == 1.0 &&
           deviation > LEAST_DEVIATION * std::fabs(column[MEAN]);
}

Logarithms make_logarithms() {
    Logarithms made = {};
    for (int n = 1; n <= MOST_EXPERTS; ++n) {
        const volatile double number = n;  // a compiler may round a logarithm that it knows in another way
        made.of[n] = std::log(number);
    }
    return made;
}

}  // namespace

const Logarithms LOGARITHMS = make_logarithms();

void index_columns(const DenseBlock& b, ColumnIndex& index) {
    const int count = b.active + b.watched;
    std::copy(b.cells, b.cells + count, index.cell);
    std::fill(index.cell + count, std::end(index.cell), 0u);
    for (int j = 0; j < (b.active + 3) / 4 * 4; ++j) {
        index.centre[j] = j < b.active ? b.columns[j][CENTRE] : 0.0;
        index.deviation[j] = j < b.active ? b.columns[j][DEVIATION] : 1.0;
    }
    index.multiplier = 0;
    if (fill_directly(index, count)) return;
    index.multiplier = 0x9E3779B1u;
    while (!fill_index(index, count)) index.multiplier += 2;
}

ColumnChanges change_columns(DenseBlock& b) {
    const double rows = b.rows;
    ColumnChanges changes = {};
    drop_rare(b, rows, changes);
    const int first = b.active, watched = b.watched;
    b.watched = 0;
    for (int j = first; j < first + watched; ++j) {
        double* column = b.columns[j];
        if (!is_dense(column, rows)) continue;
        column[CENTRE] = column[MEAN];
        column[DEVIATION] = std::sqrt(column[SQUARES] / rows);
        move_column(b, j, b.active++);
        ++changes.joining;
    }
    for (int j = 0; j < b.active; ++j) b.columns[j][MET] = 0.0;
    b.rows = 0.0;
    return changes;
}

void settle_columns(DenseBlock& b, const Mixture& m, int stack_inputs) {
    int active = b.active;
    const ColumnChanges changes = change_columns(b);
    for (int i = 0; i < changes.leaving; ++i, --active) drop_input(b, b.inputs + changes.left[i], b.inputs + active);
    if (changes.joining > 0 && b.inputs == 0) begin(b, m, stack_inputs);
    for (int i = 0; i < changes.joining; ++i, ++active) b.P[b.inputs + active][b.inputs + active] = 1.0 / STACK_RIDGE;
}

void watch_column(DenseBlock& b, std::uint32_t slot, std::uint32_t cell) {
    if (b.active + b.watched == MOST_DENSE) return;
    const int j = b.active + b.watched++;
    std::fill(b.columns[j], b.columns[j] + COLUMN_FACTS, 0.0);
    b.columns[j][COLUMN_SLOT] = slot;
    b.cells[j] = cell;
}

void keep_inputs(DenseBlock& b, int before, int first, int count) {
    if (b.inputs == 0) return;
    for (int k = before - 1; k >= 0; --k) {
        if (k >= first && k < first + count) continue;
        drop_input(b, k, b.inputs + b.active);
        --b.inputs;
    }
}

}  // namespace ftprl
