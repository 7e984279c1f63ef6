// What the kernels work on when several threads learn the scales of a model, some each. Plain data only, as in
// kernel.hpp.
//
// A part is four or eight neighbouring scales with a table of their own, whose cells are those of scales.hpp with fewer
// lanes: no two threads ever write to one line of memory. The units s and N do not depend on the scale, so every part
// has them, computed by the same operations. A scale needs nothing of the others to learn: its slope follows from its
// own score, and what labels teach from the labels alone. Only the mixture needs the scores of all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "learners/experts.hpp"
#include "learners/kernel.hpp"
#include "learners/labels.hpp"
#include "learners/scales.hpp"

namespace ftprl {

constexpr int MOST_PARTS = MOST_SCALES / 4;
constexpr int MOST_PART_LANES = 8;

// What a part keeps besides its cells while a batch is learned; for its own scales, from number 0 on.
struct alignas(64) PartSums {
    double intercept[3 * MOST_SCALES + 1];  // as in ScaleState
    double regret[3][MOST_SCALES];          // as Mixture::sums
    double rounding[ROUNDING_SUMS][MOST_SCALES];
    LabelState labels;  // not with the log loss
};

// Rows of a batch for one part: [first_row, last_row). Its cells of entries before `end` may be fetched.
struct PartRows {
    Rows rows;  // whose indices are cells
    bool wide;
    bool only_scores;  // nothing is learned, and there are no labels
    std::int64_t first_row, last_row, end;
};

struct PartState {
    void* cells;
    double* S;  // with a receipt: g_{1:t}, a number for each lane of a cell
    PartSums* sums;
    double* plays;  // a number for each lane of each coordinate of the longest row, aligned to 32 bytes
};

// For each row its scores and then, for a row that is learned, what the mixture needs to know of it: with the log loss
// the tails e^-|score|, otherwise the slopes for weight 1. A number for each lane of the part.
using PartRowNumbers = double;

struct PartSet {
    // `constants` are those of the scales of the part. The index is 1 when there is no l1, no l2 and no bound.
    void (*learn[2])(const PartRows&, const ScaleConstants& constants, const PartState&, PartRowNumbers* to);
    std::size_t cell_bytes;
};

// Where the mixture of some rows finds the numbers of the parts.
struct MixedRows {
    PartRows rows;
    int parts;
    int first[MOST_PARTS + 1];                  // scale of each part; and how many scales there are
    int lanes[MOST_PARTS];                      // of each part
    const PartRowNumbers* numbers[MOST_PARTS];  // of the first of the rows
    // The units in the cells of the first part.
    const unsigned char* units;
    std::size_t cell_bytes;
    ColumnIndex* index;  // of dense columns
    Totals* totals;
};

struct PartKernels {
    PartSet of[2][2][2];           // 1 for float64; 1 with a receipt; 1 for eight lanes
    PartSet labelled[2][2][2][2];  // losses but the log loss: 1 with a kink; then as above
    // The mixture of rows that all parts have learned, in their order; 1 for float64 cells, which the coin has too.
    // Only predictions: scores go to `out`. With a receipt the sums over rows are added up as well.
    void (*mix[2])(const MixedRows&, const ScaleConstants&, const ScaleState&, const RowOutputs&, bool receipt);
};

extern const PartKernels parts_portable;
#if defined(FTPRL_X86)
extern const PartKernels parts_sse2;
extern const PartKernels parts_avx2;
#endif

}  // namespace ftprl
