// What the kernels for several scales a coordinate work on (docs/scales.md). Plain data only, as in kernel.hpp.
//
// The K scales of a coordinate fill P lanes, P the next multiple of four. A cell is float32 or float64: z[P] and R[P]
// as for one scale, and s and N, which all scales share:
//
//   s   the unit of the feature: it follows the root of the mean square of the values, upwards only
//   N   the rows that had this feature
#pragma once

#include "learners/experts.hpp"
#include "learners/kernel.hpp"
#include "learners/labels.hpp"

namespace ftprl {

constexpr int MOST_EXPERTS = MOST_SCALES + 4;  // scales, stack, offset and coin, filled up to a multiple of four

// The logarithms of the numbers up to that of experts, as the library works them out.
struct Logarithms {
    double of[MOST_EXPERTS + 1];
};
extern const Logarithms LOGARITHMS;

constexpr int MOST_COLUMNS = MOST_SCALES;               // of the stack
constexpr int WINDOW = 4;                               // neighbouring scales that a retirement keeps
constexpr int MOST_WINDOWS = MOST_SCALES - WINDOW + 2;  // and, last, all scales
constexpr int BLOCK_ROWS = 1024;
constexpr double STACK_RIDGE = 4.0;  // the Hessian of the stack begins at this times the identity

struct ScaleConstants {
    Constants base;         // its h is not used
    int count;              // K
    double h[MOST_SCALES];  // 1 in the lanes that are not used
    bool stack;             // with several scales and no bounds of single weights
    bool coin;              // whether there is a coin-betting expert: experts.hpp
    bool dense;             // whether the stack sees the dense columns
    bool frozen;            // whether the rows were learned in an earlier pass, so that the mixture stays as it is
    bool weighs;            // whether the rows are held out: only the weights of the experts learn from them
};

// Losses but the log loss.
enum HedgeFact {
    GAP_NOW,  // that is left, and the largest there was
    LARGEST_GAP,
    RECENT_LOSS,  // the loss since the last power of two of the rows
    STACK_LOSS,   // the mean loss of the stack, and its weight
    STACK_WEIGHT_SO_FAR,
    STRETCH_LOSS,  // of the offset in the present stretch of rows, how many rows these are, and the longest stretch
    STRETCH_ROWS,
    LONGEST_STRETCH,
    LEAD,  // classes: how much less than the majority the mixture lost since it last had no lead, and the sum of gaps
    LEAD_GAP,
    HEDGE_FACTS
};

// The rows after which the past of the labels is reviewed: multiples of 16, from row 2048 on of the 64th part of the
// last power of two. They are known in advance, so that rows between them can be learned before they are mixed.
constexpr std::int64_t FIRST_REVIEW = 16, REVIEWS_PER_OCTAVE = 64;
inline bool is_review(std::int64_t row) {
    std::int64_t step = FIRST_REVIEW;
    while (step * 2 * REVIEWS_PER_OCTAVE <= row) step *= 2;
    return row >= FIRST_REVIEW && row % step == 0;
}

constexpr double CAUTION = 24.0;  // classes: the odds of the majority while the mixture has no lead

// All that the mixture remembers, besides the tallies. Experts are the K scales and then, where there are such, the
// stack, the offset and the coin.
struct Mixture {
    alignas(32) double P[MOST_COLUMNS][MOST_COLUMNS];  // the inverse Hessian of the stack
    double u[MOST_COLUMNS];                            // its weights
    double w[MOST_EXPERTS];                            // the mixture's weights
    double totals[MOST_EXPERTS];                       // the weighted loss of each expert
    double facts[3];                                   // log loss: Fact
    double hedge[HEDGE_FACTS];                         // other losses: HedgeFact
    double first[MOST_EXPERTS];                        // while held-out rows are weighed: w as the first pass left it,
    double weighed[MOST_EXPERTS];                      // the weight of each expert by itself,
    double first_part;                                 // and that of `first` as one expert more; together 1
    LabelState labels;                                 // other losses
    DenseBlock* dense;                                 // null unless the stack sees dense columns
    double block[MOST_SCALES];                         // the loss of each scale in the block that is under way
    double windows[3][MOST_WINDOWS];                   // Span
    double sums[3][MOST_SCALES];                       // of a receipt, a scale each: LINEAR, PROXIMAL, STABILITY
};

// The largest weight so far (at least 1), the largest |y| so far (squared loss), the gap of AdaHedge.
enum Fact { LARGEST_WEIGHT, LARGEST_LABEL, GAP };

// Sums of the least block loss in each window: over the octave before this one, over this octave, and over both as
// they were when the number of rows was last a power of two.
enum Span { BEFORE, CURRENT, LATEST };

// What is kept of the experts of a row whose label arrives late: the scores of the scales, and the coin's.
constexpr int arrival_numbers(int scales) { return scales + 1; }

struct ScaleState {
    void* cells;
    double* intercept;  // z, R and S, MOST_SCALES doubles each, and kappa; the unit is 1
    double* tallies;
    Mixture* mixture;
    ReceiptState receipt;  // its S has P numbers for each cell
    ExpertState experts;
};

// Kernels for cells of one type and number of lanes, with a receipt or without. `buffer` holds P doubles for each
// coordinate of the longest row and is aligned to 32 bytes. The index is 1 when there is no l1, no l2 and no bound.
struct ScaleSet {
    Totals (*learn[2])(const Rows&, bool wide, const ScaleConstants&, const ScaleState&, const RowOutputs&,
                       double* buffer);
    void (*score[2])(const Rows&, bool wide, const ScaleConstants&, const ScaleState&, double* scores);
    std::size_t cell_bytes;
};

struct ScaleKernels {
    ScaleSet of[2][2][4];           // 1 for float64; 1 with a receipt; the number of lanes over four, less one
    ScaleSet labelled[2][2][2][4];  // losses but the log loss: 1 with a kink; then as above
};

extern const ScaleKernels scales_portable;
#if defined(FTPRL_X86)
extern const ScaleKernels scales_avx2;
#endif

}  // namespace ftprl
