// What the loops over rows work on. Plain data only: this header is compiled for several instruction sets, and a
// function defined here could end up in the program compiled for the wrong one.
//
// A cell holds what a model knows of one feature. With one scale it is four numbers, float32 or float64, zero until the
// feature is seen:
//
//   z   g_{1:t} minus the sum of sigma x: with Q, all that the play needs
//   R   sqrt G, the root of the sum of g^2
//   M   the largest |value| so far
//   S   log loss: g_{1:t}, which the play never reads. Other losses: kappa, the unit of the weight (labels.hpp)
//
// The K scales of several fill P lanes, P the next of 4, 8 and 16. Their cell is z[P], R[P], and what all scales share:
//
//   s      the unit of the feature: it follows the root of the mean square of the values, upwards only
//   N      the rows that had this feature
//   kappa  with labels in a unit only
//
// With several classes a lane is a scale of a column of classes, lane c K + k that of scale k and column c
// (classes.hpp).
//
// A receipt needs g_{1:t} in float64, since a float32 would lose small gradients: with one scale it stands behind a
// cell that does not hold it, which with it fills twice the bytes; with several in an array of its own.
//
// Q = M (beta M + R) / h is a function of the cell and is not stored. R stands there instead of G because a
// step then takes one root and a play one fraction, and because g^2 leaves the range of a float32 long before g
// does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "learn/labels.hpp"
#include "learn/losses.hpp"

namespace ftprl {

// No value, label, weight or option is larger than this, so no product of them leaves the range of a double.
constexpr double LIMIT = 1e30;
// Hardly any is larger than this; gradients of such rows need not be cut to the range of a float.
constexpr double SMALL_VALUE = 0x1p48;

constexpr int MOST_SCALES = 16;
constexpr int MOST_COLUMNS = 64;                 // that a Newton expert sees
constexpr int COLUMN_STRIDE = MOST_COLUMNS + 4;  // of a row: a 1, the columns, and zeros

// What a learner adds up from its first row on, one double each. The first three are the weighted loss, the
// weight and the number of the rows learned; the others are kept with a receipt of one scale (the certificate that
// holds on all of R^n): the sum of g.x, of sigma x^2, and of g^2 / (Q + l2).
enum Tally { LOSS, WEIGHT, ROWS, LINEAR, PROXIMAL, STABILITY, TALLIES };

// What bounds the rounding of a receipt, added up over all rows for each scale (docs/receipt.md): what rounding z to a
// cell's type cost, and the sizes that float64 roundings are relative to: |g x|, |z x| of a step, and |slope|.
enum RoundingSum { DRIFT, LINEAR_SIZE, STEP_SIZE, SLOPES, ROUNDING_SUMS };

// What a receipt adds up over the rows for each scale when labels are in any unit (docs/receipt.md): the row terms, the
// loss of the scale's own scores cut to the range of the labels this one included, the loss of the predictions, the
// weight, and the sizes that roundings are relative to. Counts: a row is divided by the unit.
enum RowSum { ROW_TERMS, SCALE_LOSS, PREDICTION_LOSS, ROW_WEIGHT, ROW_SIZES, ROW_SUMS };

// What is kept for a receipt besides cells; null without one.
struct ReceiptState {
    double* S;                        // several scales: g_{1:t} of each cell in float64, a number for each lane
    double* sums[3];                  // LINEAR, PROXIMAL and STABILITY of each scale
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
    int count;              // K
    double h[MOST_SCALES];  // 1 in the lanes that are not used
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
    bool
        unconstrained;  // no l1, no l2 and no bound: the numbers are those of the general case, from fewer instructions
};

// Rows of a batch; `values` holds float or double.
struct Rows {
    std::int64_t count;
    const std::int64_t* indptr;
    const std::uint32_t* indices;
    const void* values;
    const double* y;         // unused when scoring
    const double* weight;    // unused when scoring
    double largest = LIMIT;  // no |value| is above it; find_fault knows better where all are small
    bool wide = false;       // whether values are doubles
};

// Where the numbers of a table of cells live.
struct TableState {
    void* cells;
    // One scale: {z, R, M, S} (labels in a unit: {z, R, M, kappa, S}). Several: z, R and S, MOST_SCALES doubles each,
    // and kappa; the unit is 1. Classes: z of all lanes in use, then R, then S.
    double* intercept;
    ReceiptState receipt;
};

// Rows [from, to) of a batch as a base expert reads them, and where it writes what it says of them: a row of `stride`
// numbers for each. `tails` gets e^-|score| where the log loss is learned, `slopes` the slopes where they are asked
// for.
struct BasePass {
    const Rows* rows;
    std::int64_t from, to;
    const RowFacts* facts;  // of row `from` first
    bool learns;            // otherwise all rows are predicted with the state as it is
    double *scores, *tails, *slopes;
    std::int64_t stride;
};

// Doubles that a loop needs to remember of each coordinate of a row of one scale while it learns it.
constexpr int SCRATCH = 6;

// What a pass over the entries of a batch found.
struct Scan {
    bool indices_fit;   // all are below dim
    bool values_fit;    // all |value| <= LIMIT, hence none NaN
    bool values_small;  // all |value| <= SMALL_VALUE
};

struct ClassConstants;  // classes.hpp
struct CoinState;       // coin.hpp
struct MixPass;         // mixture.hpp
struct ClassPass;       // classes.hpp

// `buffer` is aligned to 32 bytes and has the doubles of `scratch_of` for each coordinate of the longest row.
using BaseLoop = void (*)(const BasePass&, const Constants&, const TableState&, double* buffer);
using ClassLoop = void (*)(const BasePass&, const ClassConstants&, const TableState&, double* buffer);

// The loops over rows for one instruction set. Indices: 1 for cells of float64, 1 for labels in a unit, 1 with a
// receipt.
struct Kernels {
    BaseLoop one[2][2][2];
    BaseLoop several[2][2][2][3];  // of 4, 8 and 16 lanes
    ClassLoop classes[2][2];       // float64, receipt
    void (*coin[2])(const BasePass&, const Constants&, const CoinState&, double* buffer);
    void (*mix)(const MixPass&);
    void (*mix_classes)(const ClassPass&);
    Scan (*scan[2])(const Rows&, std::uint64_t dim);
};

extern const Kernels kernels_portable;
#if defined(FTPRL_X86)
extern const Kernels kernels_avx2;
#endif

// Lanes that K scales fill: the next of 4, 8 and 16; and the number of that width among the three.
constexpr int lanes_of(int scales) { return scales <= 4 ? 4 : (scales <= 8 ? 8 : 16); }
constexpr int width_number(int scales) { return scales <= 4 ? 0 : (scales <= 8 ? 1 : 2); }

}  // namespace ftprl
