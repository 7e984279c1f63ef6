// What is watched of each row, and the sums of it over rows, those of four confidence sequences at once: compiled for
// each instruction set, with the same bits for all. Plain data only, as in kernel.hpp.
#pragma once

#include <cstdint>

namespace ftprl {

constexpr int TOGETHER = 4;               // sequences that are added up at once
constexpr std::int64_t BLOCK_ROWS = 256;  // at a time: what is derived from them stays near the processor

enum Watched { LOSS, IMPROVEMENT, RESIDUAL, MISS };

// At most BLOCK_ROWS rows, one number a row each.
struct WatchedBlock {
    const double* losses;       // before the row was learned
    const double* baselines;    // two numbers a row, of which the first is the loss of the baseline
    const double* scores;       // not with the log loss
    const double* predictions;  // of them: the same with a linear link, e^score with a log link
    const double* y;
    const double* weight;
    std::int64_t count;
};

// A usual row has a label, a weight above 0 and at most `heaviest`, and numbers that lie within the limits of their
// sequences. Such a row only adds to sums.
struct UsualLimits {
    double low[TOGETHER], high[TOGETHER];
    double heaviest;
};

// What is watched besides the loss.
struct DerivedRows {
    double improvement[BLOCK_ROWS], residual[BLOCK_ROWS], miss[BLOCK_ROWS];
};

// Of the four sequences.
struct SequenceSums {
    double guess[TOGETHER];    // not changed
    double sum[TOGETHER];      // of weight times number
    double squares[TOGETHER];  // of weight times (number - guess)
    double weight[TOGETHER];
};

// One way to derive what is watched.
struct WatchKernel {
    // Adds rows to the sums if all of them are usual; otherwise nothing is changed and false returned. The first is for
    // rows whose weights are all 1, which are no usual ones otherwise; it does not add up the weights.
    bool (*add_usual[2])(const WatchedBlock&, const UsualLimits&, SequenceSums&);
    void (*derive)(const WatchedBlock&, DerivedRows&);
};

struct MonitorKernels {
    WatchKernel from_losses;  // the log loss: the probability of the label follows from the loss
    WatchKernel from_scores;
    WatchKernel from_classes;  // a score is the number of the class that was predicted; NaN before any is known
};

extern const MonitorKernels monitor_portable;
#if defined(FTPRL_X86)
extern const MonitorKernels monitor_sse2;
extern const MonitorKernels monitor_avx2;
#endif

const MonitorKernels& monitor_kernels() noexcept;  // those of the chosen instruction set

}  // namespace ftprl
