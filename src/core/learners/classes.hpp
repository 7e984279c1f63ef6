// What the kernels for several classes work on (docs/classes.md). Plain data only, as in kernel.hpp.
//
// Each class has its own weights in every feature and scale. The classes that were seen have a column each; those that
// may come have one column together, since nothing tells them apart: a class that is seen for the first time starts
// with a copy of it. A lane is a scale of a column, lane c K + k that of scale k and column c. A cell is float32 or
// float64: z and R of all lanes, and s and N, which all lanes share, as in scales.hpp.
#pragma once

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

struct ClassState {
    void* cells;
    double* z;  // of the intercept, whose unit is 1
    double* R;
    double* tallies;
    Mixture* mixture;
};

// Doubles of scratch for one row, besides the plays, which take a number for each lane and entry.
constexpr int LANE_NUMBERS = 4;    // for each lane
constexpr int COLUMN_NUMBERS = 2;  // for each lane again: there are no more columns than lanes

// Kernels for cells of one type. `buffer` holds LANE_NUMBERS + COLUMN_NUMBERS doubles for each lane, for `learn` also a
// number for each lane and entry of the longest row, and is aligned to 32 bytes. The index is 1 when there is no l1, no
// l2 and no bound. The score of a learned row is the number of the most probable class; `score` writes logarithms of
// probabilities, one for each class that was seen.
struct ClassSet {
    Totals (*learn[2])(const Rows&, bool wide, const ClassConstants&, const ClassState&, const RowOutputs&,
                       double* buffer);
    void (*score[2])(const Rows&, bool wide, const ClassConstants&, const ClassState&, double* scores, double* buffer);
    void (*weights)(const ClassConstants&, const ClassState&, std::uint64_t cells, int lane, double* out);
};

struct ClassKernels {
    ClassSet of[2];  // 1 for float64
};

extern const ClassKernels classes_portable;
#if defined(FTPRL_X86)
extern const ClassKernels classes_sse2;
extern const ClassKernels classes_avx2;
#endif

}  // namespace ftprl
