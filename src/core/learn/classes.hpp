// What the loops for several classes work on (docs/classes.md). Plain data only, as in kernel.hpp.
//
// Each class has its own weights in every feature and scale. The classes that were seen have a column each; those that
// may come have one column together, since nothing tells them apart: a class that is seen for the first time starts
// with a copy of it. A lane is a scale of a column, lane c K + k that of scale k and column c. A cell is float32 or
// float64: z and R of all lanes, and s and N, which all lanes share, as with several scales.
#pragma once

#include "learn/kernel.hpp"
#include "learn/mixture.hpp"

namespace ftprl {

constexpr int MOST_CLASSES = 10000;
constexpr int MOST_COLUMN_CLASSES = 256;  // with more, the inverse Hessians would take too much memory and time

struct ClassConstants {
    const Constants* base;
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

// What Newton experts learn of each column of classes: weights of a constant and of the columns, with an inverse
// Hessian; and the constant that drifts, with its variance.
struct ClassNewtons {
    double *W, *Q;  // null where no expert sees columns
    double *bias, *variance;
};
constexpr int CLASS_STRIDE = MOST_COLUMNS + 8;  // from one row of W and of Q to the next
constexpr int CLASS_INPUTS = MOST_COLUMNS + 4;  // rows of Q of a class, filled up to a multiple of four

// Doubles of scratch for one row, besides the plays, which take a number for each lane and entry: scores, slopes and
// the six sums of a receipt.
constexpr int LANE_NUMBERS = 8;

// As MixPass, whose scores are the logarithms of the probabilities, and whose tails are these. `opinions` has space for
// two numbers for each Newton expert and column.
struct ClassPass {
    const MixPass* rows;
    const ClassConstants* classes;
    const ClassNewtons* newtons;
    double* opinions;
    double* scores;  // of rows that are only predicted: the logarithm of the probability of each class seen; or null
};

}  // namespace ftprl
