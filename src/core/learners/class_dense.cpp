#include <algorithm>
#include <cstddef>

#include "learners/classes.hpp"

namespace ftprl {
namespace {

std::size_t size_of_u(const ClassDense& d) { return static_cast<std::size_t>(d.columns) * d.stride; }

int inputs_of(const ClassDense& d) { return d.block.inputs == 0 ? 0 : d.block.inputs + d.block.active; }

std::size_t size_of_P(const ClassDense& d) { return size_of_u(d) * static_cast<std::size_t>(inputs_of(d)); }

double* array_of(std::size_t size) { return size == 0 ? nullptr : new double[size]{}; }

// u and P for `columns` columns of classes and the inputs `from`: the number that each had, -1 for a new one. `before`
// is how many there were. A new column of classes is a copy of the last one.
void lay_out(ClassDense& d, int columns, int before, const int* from, int inputs) {
    const ClassDense old = d;  // its arrays, too
    d.columns = columns;
    d.stride = (inputs + 3) / 4 * 4;
    const auto size = static_cast<std::size_t>(columns) * static_cast<std::size_t>(d.stride);
    d.u = array_of(size);
    d.P = array_of(size * static_cast<std::size_t>(inputs));
    for (int c = 0; c < columns; ++c) {
        const int own = std::min(c, old.columns - 1);
        double* u = d.u + c * d.stride;
        double* P = d.P + static_cast<std::size_t>(c) * inputs * d.stride;
        const double* old_u = old.u + own * old.stride;
        const double* old_P = old.P + static_cast<std::size_t>(own) * before * old.stride;
        for (int i = 0; i < inputs; ++i) {
            if (from[i] < 0) {
                P[i * d.stride + i] = 1.0 / STACK_RIDGE;
                continue;
            }
            u[i] = old_u[from[i]];
            for (int j = 0; j < inputs; ++j) {
                if (from[j] >= 0) P[i * d.stride + j] = old_P[from[i] * old.stride + from[j]];
            }
        }
    }
    delete[] old.u;
    delete[] old.P;
}

}  // namespace

ClassDense* make_class_dense(int columns) {
    auto* d = new ClassDense{};
    d->columns = columns;
    return d;
}

ClassDense* copy_class_dense(const ClassDense& dense) {
    auto* d = new ClassDense(dense);
    d->u = array_of(size_of_u(dense));
    d->P = array_of(size_of_P(dense));
    std::copy(dense.u, dense.u + size_of_u(dense), d->u);
    std::copy(dense.P, dense.P + size_of_P(dense), d->P);
    return d;
}

void free_class_dense(ClassDense* dense) {
    if (dense == nullptr) return;
    delete[] dense->u;
    delete[] dense->P;
    delete dense;
}

void set_class_columns(ClassDense& d, int columns) {
    const int inputs = inputs_of(d);
    int from[MOST_DENSE + 1];
    for (int i = 0; i < inputs; ++i) from[i] = i;
    lay_out(d, columns, inputs, from, inputs);
}

void set_class_inputs(ClassDense& d, int inputs) {
    int from[MOST_DENSE + 1];
    std::fill_n(from, inputs, -1);
    d.block.inputs = inputs > 0 ? 1 : 0;
    d.block.active = inputs > 0 ? inputs - 1 : 0;
    lay_out(d, d.columns, 0, from, inputs);
}

void settle_class_columns(ClassDense& d) {
    const int before = inputs_of(d), active = d.block.active;
    const ColumnChanges changes = change_columns(d.block);
    if (changes.leaving + changes.joining == 0) return;
    int from[MOST_DENSE + 1], inputs = 1;
    from[0] = before > 0 ? 0 : -1;
    for (int j = 0; j < active; ++j) {
        const int* end = changes.left + changes.leaving;
        if (std::find(changes.left, end, j) == end) from[inputs++] = 1 + j;
    }
    for (int j = 0; j < changes.joining; ++j) from[inputs++] = -1;
    d.block.inputs = 1;
    lay_out(d, d.columns, before, from, inputs);
}

}  // namespace ftprl
