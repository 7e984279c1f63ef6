// What is read of a whole table: the weights, and what a receipt needs, sums over the cells against the weights of one
// scale. And what it needs of every row: how often a predicted probability came true.
#pragma once

#include <cstdint>

#include "learn/kernel.hpp"

namespace ftprl {

constexpr int BINS = 20;

// Of the predictions in each twentieth of [0, 1]: the weight, the sum of the probabilities, and that of the positives.
struct Calibration {
    double bins[BINS][3] = {};

    // Rows with labels of -1 and 1, and what each cost before it was learned in log loss: p = e^-loss for its label.
    void add(const Rows& rows, const double* losses);
};

// Where S = g_{1:t} of the cells stands, in float64; a number for each scale.
struct GradientSums {
    double* first;         // of cell 0
    std::uint64_t stride;  // numbers from one cell to the next
};

// A table of cells as the ledger reads it: where z, R and the unit stand in a cell, and S beside it.
struct CellTable {
    const void* cells;
    const std::uint32_t* slot_map;  // the cell of each slot; null when cells stand in the order of the slots
    std::uint64_t dim;
    std::size_t bytes;  // of a cell
    GradientSums S;
    bool wide;
    int z, R, unit;  // the first number of each in a cell
    int kappa;       // the unit of the weights; -1 where there is none
    int columns;     // of classes, each with z and R of every scale; otherwise 1
    double copies;   // classes that the last of them stands for; otherwise 1
    double missing;  // classes to come, which the last of them stands for, for each class that came; otherwise 0
    int met;         // a number that is above 0 in a cell that was learned
    bool counts;     // whether that is the number of rows; otherwise G / unit^2 stands for it
};

// S.u, the penalty, the lead of the next play, D.R, G, D^2, the sizes of all terms, |u| unit, how many cells, and
// (S / unit)^2, where S of the classes to come is added to those that came: as in src/ftprl/receipt/ledger.py.
constexpr int LEDGER_SUMS = 10;
struct LedgerSums {
    double sums[LEDGER_SUMS][MOST_SCALES] = {};
};

// The `count` cells at `slots`, which rise, or all of them when null; with u the play of scale number `leader` in the
// same column of classes.
LedgerSums ledger_of(const CellTable& table, const Constants& constants, int leader, const std::int64_t* slots,
                     std::int64_t count);

// The weight of every slot in one lane, scale k of column c being lane c K + k, as predictions play it.
void weights_of(const CellTable& table, const Constants& constants, int lane, double* out);

// The slots whose cells were learned, in order, into space for all of them; returns how many there are.
std::size_t touched_of(const CellTable& table, std::uint32_t* out);

// The cells by how often they were seen, a group a power of two from 2^RAREST on: their number, and the shares -S.u,
// penalty and D.R of scale number `scale`, with u as above.
constexpr int RAREST = -20;
constexpr int GROUPS = 128;

struct LedgerGroups {
    double sums[GROUPS][4] = {};
};

LedgerGroups groups_of(const CellTable& table, const Constants& constants, int leader, int scale);

}  // namespace ftprl
