// Rounds of several rows (docs/rounds.md): all rows of a round are scored with the plays of its start, and a coordinate
// then takes one step with the sum of its gradients. Coordinates that most rows have, the hot ones, and the intercept
// step row by row. Plain data only, as in kernel.hpp.
//
// A round is done in five phases, in this order, each of which depends on its arguments alone: units and plays of
// the coordinates, scores of rows by these plays, the chain of rows (hot coordinates, intercept, losses, mixture), the
// sums of the gradients, and the steps. Whoever holds part of a table does the first and the last for its part.
#pragma once

#include "learners/scales.hpp"

namespace ftprl {

constexpr std::int64_t ROUND_GROWTH = 64;   // no round is longer than this part of the rows learned so far
constexpr std::int64_t ROUND_BLOCK = 4096;  // rows whose gradients are added up together
constexpr int SHARDS = 64;                  // of the coordinates, for the order of the sums of a receipt

// Which of the shards a coordinate belongs to.
constexpr std::uint32_t shard_of(std::uint32_t slot) { return (slot * 0x9E3779B1u) >> 26; }

// What a receipt adds up over the coordinates of a round: the three sums of the regret, then DRIFT to STEP_SIZE.
constexpr int STEP_SUMS = 6;
struct ShardSums {
    double of[SHARDS][STEP_SUMS][MOST_SCALES];
};

// Some coordinates of a round. Numbers stand by coordinate; those of several scales by coordinate and lane.
struct RoundCoordinates {
    std::int64_t count;
    const std::uint32_t* slots;
    const std::uint32_t* cells;  // the numbers of their cells
    const double* rows;          // the entries of learned rows that have it; 0: not learned, only scored
    const double* largest;       // of the |values| in these rows
    const double* squares;       // the sum of the squares of these values
    double heaviest;             // the largest weight of the learned rows of the round
    const std::uint32_t* local_slots =
        nullptr;  // where a table has them, if not by their slots: part of a larger table
};

// Some rows by their coordinates in the round.
struct RoundRows {
    std::int64_t count;
    const std::int64_t* indptr;
    const std::uint32_t* coordinates;
    const double* values;
    const double* y;
    const double* weight;
};

// Hot entries of the same rows.
struct HotEntries {
    const std::int64_t* indptr;
    const std::uint32_t* cells;
    const double* values;
};

// Kernels for cells of one type, number of lanes and so on. Arrays by lane have four numbers for each four scales, and
// with one scale one.
struct RoundSet {
    // Raise the units of the coordinates, and write their plays.
    void (*play)(const RoundCoordinates&, const ScaleConstants&, const ScaleState&, double* x);
    // The products of rows with the plays.
    void (*score)(const RoundRows&, const double* x, double* scores);
    // From these scores to the slopes of the rows, with all that goes row by row. `kept` has space for the plays of the
    // longest row's hot entries.
    Totals (*chain)(const RoundRows&, const HotEntries&, const double* scores, const ScaleConstants&, const ScaleState&,
                    const RowOutputs&, double* kept, double* slopes);
    // Add the gradients of rows to the sums of their coordinates.
    void (*sum)(const RoundRows&, const double* slopes, double* sums);
    // One step for each coordinate that was learned.
    void (*step)(const RoundCoordinates&, const double* x, const double* g, const ScaleConstants&, const ScaleState&,
                 ShardSums&);
};

// The indices are those of Pair and ScaleKernels: 1 for float64, 1 with a receipt, 1 unconstrained, then the lanes.
struct RoundKernels {
    RoundSet one[2][2][2];
    RoundSet several[2][2][2][4];
};

extern const RoundKernels rounds_portable;
#if defined(FTPRL_X86)
extern const RoundKernels rounds_sse2;
extern const RoundKernels rounds_avx2;
#endif

}  // namespace ftprl
