// Two additions for several scales, each an option: a coin-betting expert for streams with many features that do not
// matter, and a stack that also sees the dense columns. docs/scales.md. Plain data only, as in kernel.hpp.
#pragma once

#include <cstdint>

namespace ftprl {

// ---- where a row's inputs to the mixture lie in one array ----

constexpr int DENSE_AT = 20;    // after the scores of the scales, and of the coin behind the last of them
constexpr int MOST_DENSE = 64;  // columns
constexpr int ROW_INPUTS = DENSE_AT + 4 + MOST_DENSE;  // a 1, the values of the dense columns, and space

// ---- the coin: four numbers a coordinate, float32 or float64 as its cell ----

// theta, minus the sum of the gradients; the sum of their sizes; what was won so far; the largest |value|. The weight
// is (COIN_WEALTH + won) theta / (L (L + sizes)), L the largest |value| times the largest weighted slope.
enum CoinFact { THETA, SIZES, WON, LARGEST_VALUE, COIN_FACTS };
// Of the intercept also the largest weighted slope and, with the log loss, the weights of the labels of each class.
enum CoinTotal { COIN_BOUND = COIN_FACTS, NEGATIVE_WEIGHT, POSITIVE_WEIGHT, COIN_NUMBERS };
constexpr double COIN_WEALTH = 0.3;

// ---- the stack with dense columns ----

constexpr int DENSE_INPUTS = ROW_INPUTS;  // space for the scales, a constant and the columns; a multiple of 4
constexpr double DENSE_CUT = 8.0;         // values are cut to this many deviations from their mean
constexpr double DENSE_PART = 0.625;      // of the rows that need to have a column's feature
constexpr std::int64_t FIRST_WATCH = 8;   // rows before columns are watched

// Of a column: the slot of its feature; the mean and deviation that its values are counted in; the rows since the last
// power of two that had its feature. While it is watched: the running mean and sum of squares of its values, 0 where a
// row lacks it; one of its values, and whether there was another.
enum ColumnFact { COLUMN_SLOT, CENTRE, DEVIATION, MET, MEAN, SQUARES, ONE_VALUE, DIFFERS, COLUMN_FACTS };

// Columns are watched from one power of two of the rows to the next, and become active if most rows had them,
// with different values: a name that is there or not is no number. The first `active` columns are; the others are
// watched. With the first active column, u and P take the place of the mixture's.
struct DenseBlock {
    int active;
    int watched;
    int inputs;  // of u and P that come before the columns: those of the stack, and the constant; 0 before the first
    std::uint32_t cells[MOST_DENSE];
    double columns[MOST_DENSE][COLUMN_FACTS];
    double rows;  // learned since the last power of two
    alignas(64) double u[DENSE_INPUTS];
    alignas(64) double P[DENSE_INPUTS][DENSE_INPUTS];  // a row has whole lines of memory: no vector lies in two
};

// Which column a cell is: a table by its number where all columns have low ones, as features of the first rows have, or
// else by a hash of it in which no two columns meet. Made anew when columns come or go; it decides nothing but the time
// that a look takes.
constexpr int INDEX_BITS = 11;
struct ColumnIndex {
    std::uint32_t multiplier;            // of the hash; 0 where the table is by number
    std::uint32_t cell[MOST_DENSE + 1];  // of each column; the last is that of none
    std::uint8_t column[1 << INDEX_BITS];
    alignas(32) double centre[MOST_DENSE];  // as the active columns have them, filled up to a multiple of four
    double deviation[MOST_DENSE];
};

// What the kernels get of the two additions; null where they are off.
struct ExpertState {
    void* coin;              // four numbers for each cell
    double* coin_intercept;  // the same of the intercept, in float64, and the totals behind them
    double* coin_scratch;    // SCRATCH doubles for each coordinate of the longest row, as for one scale
    DenseBlock* dense;
    const std::uint32_t* slots;  // of the entries of the batch, whose indices are cells
};

struct Mixture;

void index_columns(const DenseBlock& block, ColumnIndex& index);

// What a review did to the active columns: the numbers of those that left, from the last to the first, and how many
// joined behind the others.
struct ColumnChanges {
    int left[MOST_DENSE];
    int leaving, joining;
};

// After a row whose number is a power of two: watched columns become active or are forgotten, active ones that have
// become rare leave.
ColumnChanges change_columns(DenseBlock& block);

// The same with the inputs of the stack. With the first active column it goes on from its u and P in the mixture,
// `stack_inputs` each.
void settle_columns(DenseBlock& block, const Mixture& mixture, int stack_inputs);

void watch_column(DenseBlock& block, std::uint32_t slot, std::uint32_t cell);

// Of the first `before` inputs keep `count` from number `first` on, and all behind them.
void keep_inputs(DenseBlock& block, int before, int first, int count);

}  // namespace ftprl
