// What a kernel works on. Plain data only: this header is compiled for several instruction sets, and a
// function defined here could end up in the program compiled for the wrong one.
//
// A cell is four numbers, float32 (16 bytes) or float64 (32 bytes), zero until its coordinate is seen:
//
//   z   g_{1:t} minus the sum of sigma x: with Q, all that the play needs
//   R   sqrt G, the root of the sum of g^2
//   M   the largest |value| so far
//   S   log loss: g_{1:t}, which the play never reads. Other losses: kappa, the unit of the weight (labels.hpp)
//
// A receipt needs g_{1:t} in float64, since a float32 would lose small gradients: where a cell does not hold it, it
// stands behind the cell, which with it fills twice the bytes.
//
// Q = M (beta M + R) / h is a function of the cell and is not stored. R stands there instead of G because a
// step then takes one root and a play one fraction, and because g^2 leaves the range of a float32 long before g
// does. Several scales a coordinate: scales.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "learners/labels.hpp"
#include "learners/losses.hpp"

namespace ftprl {

// No value, label, weight or option is larger than this, so no product of them leaves the range of a double.
constexpr double LIMIT = 1e30;
// Hardly any is larger than this; gradients of such rows need not be cut to the range of a float.
constexpr double SMALL_VALUE = 0x1p48;

// What a learner adds up from its first row on, one double each. The first three are the weighted loss, the
// weight and the number of the rows learned; the others are kept with a receipt (the certificate that
// holds on all of R^n): the sum of g.x, of sigma x^2, and of g^2 / (Q + l2).
enum Tally { LOSS, WEIGHT, ROWS, LINEAR, PROXIMAL, STABILITY, TALLIES };

// What bounds the rounding of a receipt, added up over all rows for each scale (docs/receipt.md): what rounding z to a
// cell's type cost, and the sizes that float64 roundings are relative to: |g x|, |z x| of a step, and |slope|.
enum RoundingSum { DRIFT, LINEAR_SIZE, STEP_SIZE, SLOPES, ROUNDING_SUMS };

constexpr int MOST_SCALES = 16;

// What a receipt adds up over the rows for each scale when labels are in any unit (docs/receipt.md): the row terms, the
// loss of the scale's own scores cut to the range of the labels this one included, the loss of the predictions, the
// weight, and the sizes that roundings are relative to. Counts: a row is divided by the unit.
enum RowSum { ROW_TERMS, SCALE_LOSS, PREDICTION_LOSS, ROW_WEIGHT, ROW_SIZES, ROW_SUMS };

// What is kept for a receipt besides cells and tallies; null without one.
struct ReceiptState {
    double* S;                        // several scales: g_{1:t} of each cell in float64, a number for each lane
    double (*rounding)[MOST_SCALES];  // a row for each RoundingSum
    double (*rows)[MOST_SCALES];      // a row for each RowSum
};

// Bounds of single weights: the kind of each cell, and the lower and the upper end of each kind. Kind 0 has the bounds
// of all weights.
struct BoxTable {
    const std::uint16_t* kinds;  // null when no weight has bounds of its own
    const double (*ends)[2];
};

struct Constants {
    double h;  // the scale
    double beta;
    double l1;
    double l2;
    double lower;
    double upper;
    double tau;
    const Loss* loss;
    bool intercept;
    double least_kappa;  // the smallest unit of weights that cells can hold
    BoxTable boxes;
};

// Rows of a batch; `values` holds float or double, as the kernel that is chosen expects.
struct Rows {
    std::int64_t count;
    const std::int64_t* indptr;
    const std::uint32_t* indices;
    const void* values;
    const double* y;         // unused when scoring
    const double* weight;    // unused when scoring
    double largest = LIMIT;  // no |value| is above it; find_fault knows better where all are small
};

// Where the state lives: the cells, the intercept's own float64 cell {z, R, M, S} (labels in any unit: {z, R, M, kappa,
// S}), the tallies.
struct State {
    void* cells;
    std::size_t stride;  // bytes from one cell to the next
    double* intercept;
    double* tallies;
    ReceiptState receipt;
    LabelState* labels;  // not with the log loss
};

// Where the numbers of each row go; null when they are not asked for. A score for each output of a row.
struct RowOutputs {
    double* scores;
    double* losses;
    // Labels that arrive late: row r has the numbers of `arrivals` behind arrival_of[r] times their count. A row that
    // is only predicted writes what its experts say there; when it is learned, the mixture judges them by that.
    double* arrivals;
    const std::int64_t* arrival_of;
};

// What was learned of one batch.
struct Totals {
    double loss;
    double weight;
    std::int64_t rows;
};

// Doubles that a kernel needs to remember of each coordinate of a row while it learns it.
constexpr int SCRATCH = 6;

// What a pass over the entries of a batch found.
struct Scan {
    bool indices_fit;   // all are below dim
    bool values_fit;    // all |value| <= LIMIT, hence none NaN
    bool values_small;  // all |value| <= SMALL_VALUE
};

// Learning and scoring for one type of cells and one of values. The first index is 1 when there is no l1, no l2
// and no bound, the second 1 when a receipt is kept. `buffer` holds SCRATCH doubles for each coordinate of the
// longest row, filled up to a multiple of four, and is aligned to 32 bytes.
struct Pair {
    Totals (*learn[2][2])(const Rows&, const Constants&, const State&, const RowOutputs&, double* buffer);
    void (*score[2][2])(const Rows&, const Constants&, const State&, double* scores);
    // The same for labels in any unit: every loss but the log loss. The last index is 1 for a loss with a kink.
    Totals (*learn_labelled[2][2][2])(const Rows&, const Constants&, const State&, const RowOutputs&, double* buffer);
    void (*score_labelled[2][2])(const Rows&, const Constants&, const State&, double* scores);
};

struct ScaleKernels;  // scales.hpp
struct ClassKernels;  // classes.hpp

// One set of kernels for an instruction set. Indices are 1 for float64: of the cells, then of the values.
struct Kernels {
    Pair of[2][2];
    Scan (*scan[2])(const Rows&, std::uint64_t dim);
    const ScaleKernels* scales;   // for several scales a coordinate
    const ClassKernels* classes;  // for several classes
};

extern const Kernels kernels_portable;
#if defined(FTPRL_X86)
extern const Kernels kernels_avx2;
#endif

}  // namespace ftprl
