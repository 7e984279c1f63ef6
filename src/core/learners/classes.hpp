// What the kernels for several classes work on (docs/classes.md). Plain data only, as in kernel.hpp.
//
// Each class has its own weights in every feature and scale. The classes that were seen have a column each; those that
// may come have one column together, since nothing tells them apart: a class that is seen for the first time starts
// with a copy of it. A lane is a scale of a column, lane c K + k that of scale k and column c. A cell is float32 or
// float64: z and R of all lanes, and s and N, which all lanes share, as in scales.hpp.
#pragma once

#include "learners/experts.hpp"
#include "learners/kernel.hpp"
#include "learners/scales.hpp"

namespace ftprl {

constexpr int MOST_CLASSES = 10000;

struct ClassConstants {
    const ScaleConstants* scales;
    int columns;      // in use
    int seen;         // of them, those of one class; the others stand for all classes to come
    int seen_before;  // the first row: it may have a class that no prediction could have named
    double to_come;   // how many classes the last column stands for, if it is no class of its own
    int lanes;        // in use: a scale of each column, filled up to a multiple of four
    int cell_lanes;   // that a cell has space for
    bool one_vs_rest;
    const double* h;  // of each lane; 1 in those that fill up
    const double* inverse;
};

// The stack with dense columns (experts.hpp): every column of classes has weights of its own for a constant and for the
// dense columns, and an inverse Hessian of its own.
struct ClassDense {
    DenseBlock block;  // which dense columns there are; `inputs` is 1 from the first on, its u and P are not used
    int columns;       // of classes
    int stride;        // the inputs, filled up to a multiple of four
    double* u;         // a row of inputs for each column
    double* P;         // as many rows as there are inputs for each column
};

constexpr int MOST_DENSE_CLASSES = 256;  // with more, the inverse Hessians would take too much memory and time

ClassDense* make_class_dense(int columns);
ClassDense* copy_class_dense(const ClassDense& dense);
void free_class_dense(ClassDense* dense);
// New columns of classes are copies of the last one.
void set_class_columns(ClassDense& dense, int columns);
// So many inputs, or none, before they are read from a file.
void set_class_inputs(ClassDense& dense, int inputs);
// As settle_columns, for the inputs of every column of classes.
void settle_class_columns(ClassDense& dense);

struct ClassState {
    void* cells;
    double* z;  // of the intercept, whose unit is 1
    double* R;
    double* S;
    double* tallies;
    Mixture* mixture;
    ReceiptState receipt;        // its S has a number for each lane of a cell
    ClassDense* dense;           // null without
    const std::uint32_t* slots;  // of the entries of the batch, whose indices are cells
};

// Doubles of scratch for one row, besides the plays, which take a number for each lane and entry.
constexpr int LANE_NUMBERS = 10;   // for each lane: four, and the six sums of a receipt
constexpr int COLUMN_NUMBERS = 2;  // for each lane again: there are no more columns than lanes

// Kernels for cells of one type. `buffer` holds LANE_NUMBERS + COLUMN_NUMBERS doubles for each lane, for `learn` also a
// number for each lane and entry of the longest row, and is aligned to 32 bytes. The index is 1 when there is no l1, no
// l2 and no bound, and then for `learn` 1 with a receipt. The score of a learned row is the number of the most probable
// class; `score` writes logarithms of probabilities, one for each class that was seen.
struct ClassSet {
    Totals (*learn[2][2])(const Rows&, bool wide, const ClassConstants&, const ClassState&, const RowOutputs&,
                          double* buffer);
    void (*score[2])(const Rows&, bool wide, const ClassConstants&, const ClassState&, double* scores, double* buffer);
};

struct ClassKernels {
    ClassSet of[2];  // 1 for float64
};

extern const ClassKernels classes_portable;
#if defined(FTPRL_X86)
extern const ClassKernels classes_avx2;
#endif

}  // namespace ftprl
