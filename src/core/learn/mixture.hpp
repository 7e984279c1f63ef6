// The experts of a mixture and what it remembers: docs/scales.md. Plain data only, as in kernel.hpp.
//
// Experts stand in this order, those that are absent left out: the scales, the Newton experts, what the labels alone
// predict, and the coin. NEWTONS and the priors below are the only place of the learner that knows them by name.
#pragma once

#include "learn/kernel.hpp"

namespace ftprl {

// A Newton expert learns weights of the scores of the scales and of the coin, and where it has them of a constant and
// of the columns, by online Newton steps.
struct NewtonKind {
    const char* name;    // in messages and in Python
    const char* letter;  // in the names of its arrays
    double prior;
    bool columns;   // sees the coin, a constant and the columns
    bool coin;      // sees the coin
    bool constant;  // has a constant
    double drift;   // is added to the variance of the constant after each row
    bool droppable;
};

constexpr int MOST_NEWTONS = 3;
extern const NewtonKind NEWTONS[MOST_NEWTONS];

constexpr double OFFSET_PRIOR = 0.25, COIN_PRIOR = 1.0;
constexpr double USUAL_SCALE = 0.2, USUAL_WIDTH = 1.5;  // of the prior of scales, in the logarithm of the scale

constexpr int MOST_EXPERTS = MOST_SCALES + 8;                    // scales, Newton experts, offset and coin, filled up
constexpr int MOST_INPUTS = MOST_SCALES + 2 + MOST_COLUMNS + 6;  // of a Newton expert, filled up to a multiple of eight
static_assert(MOST_INPUTS % 8 == 0 && MOST_EXPERTS % 4 == 0, "vectors are worked on as a whole");

// The logarithms of the numbers up to that of experts, as the library works them out.
struct Logarithms {
    double of[MOST_EXPERTS + 1];
};
extern const Logarithms LOGARITHMS;

constexpr int WINDOW = 4;                               // neighbouring scales that a retirement keeps
constexpr int MOST_WINDOWS = MOST_SCALES - WINDOW + 2;  // and, last, all scales
constexpr int BLOCK_ROWS = 1024;
constexpr double RIDGE = 4.0;     // the Hessian of a Newton expert begins at this times the identity
constexpr double CAUTION = 24.0;  // classes with margins: the odds of the majority while the mixture has no lead

// A Newton expert as the loops see it.
struct Newton {
    const NewtonKind* kind;
    int scores;  // inputs that are scores: of the scales, and of the coin
    int stride;  // from one row of P to the next
    double *u, *P;
    double* loss;  // losses with a kink: the weight of its steps, and its mean loss
};

// Who is there.
struct Roster {
    int scales, newtons;
    Newton newton[MOST_NEWTONS];
    int offset, coin, drift;  // numbers of these experts; -1 where there is none
    int count;
    int droppable[MOST_NEWTONS + 1], droppables;  // numbers of experts that may be dropped
};

// The gap of AdaHedge that is left, and the largest there was; the loss since the last power of two of the rows; the
// largest weight of a row, at least 1; classes with margins: how much less than the majority the mixture lost since it
// last had no lead, and the sum of gaps.
enum MixtureFact { GAP_NOW, LARGEST_GAP, PAID, LARGEST_WEIGHT, LEAD, LEAD_GAP, MIXTURE_FACTS };

// Sums of the least block loss in each window: over the octave before this one, over this octave, and over both as
// they were when the number of rows was last a power of two.
enum Span { BEFORE, CURRENT, LATEST };

// What is added up from one power of two of the rows to the next: now, and over the last whole octave.
enum Octave { OCTAVE_NOW, OCTAVE_BEFORE, OCTAVES };

// All that the mixture remembers, besides the tallies.
struct Mixture {
    double w[MOST_EXPERTS];       // the weights
    double totals[MOST_EXPERTS];  // the weighted loss of each expert
    double facts[MIXTURE_FACTS];
    double first[MOST_EXPERTS];             // while held-out rows are weighed: w as the first pass left it,
    double weighed[MOST_EXPERTS];           // the weight of each expert by itself,
    double first_part;                      // and that of `first` as one expert more; together 1
    double block[MOST_SCALES];              // the loss of each scale in the block that is under way
    double windows[3][MOST_WINDOWS];        // Span
    double sums[3][MOST_SCALES];            // of a receipt, a scale each: LINEAR, PROXIMAL, STABILITY
    double octave[OCTAVES][MOST_EXPERTS];   // the loss of each expert
    double without[OCTAVES][MOST_EXPERTS];  // the loss of the mixture without an expert that may be dropped
    double octave_loss[OCTAVES];            // the loss of the mixture
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

// What is kept of the experts of a row whose label arrives late: the scores of the scales, and the coin's; of several
// classes the losses of the scales and of two Newton experts.
constexpr int arrival_numbers(int scales) { return scales + 2; }

// What was learned of one batch.
struct Totals {
    double loss;
    double weight;
    std::int64_t rows;
};

// Rows of a block for which the base experts have said what they predict. The columns of a row are a 1 and their
// values, filled up with zeros to a multiple of four.
struct MixPass {
    const Constants* constants;
    const Rows* rows;
    std::int64_t from, to;
    const RowFacts* facts;
    const double *scores, *tails, *slopes;
    std::int64_t stride;
    const double* coin;
    const double* columns;
    int used;  // columns
    const Roster* roster;
    Mixture* mixture;
    bool learns;  // otherwise rows are only predicted, and nothing changes
    bool frozen;  // whether the rows were learned in an earlier pass, so that the mixture stays as it is
    bool weighs;  // whether the rows are held out: only the weights of the experts learn from them
    RowOutputs out;
    double* tallies;
    Totals* totals;
    double (*row_sums)[MOST_SCALES];  // of a receipt with labels in a unit; otherwise null
};

// A prediction needs neither scores of one scale to be mixed nor experts: a roster of one expert.

}  // namespace ftprl
