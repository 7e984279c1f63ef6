// What a receipt needs of a whole table, and of every row: sums over the cells against the weights of one scale, and
// how often a predicted probability came true.
#pragma once

#include <cstdint>

#include "kernel.hpp"
#include "places.hpp"

namespace ftprl {

constexpr int BINS = 20;

// Of the predictions in each twentieth of [0, 1]: the weight, the sum of the probabilities, and that of the positives.
struct Calibration {
    double bins[BINS][3] = {};

    // Rows with labels of -1 and 1, and what each cost before it was learned in log loss: p = e^-loss for its label.
    void add(const Rows& rows, const double* losses);
};

// A table of cells as the ledger sees it: where z, R, S and the unit stand in a cell.
struct Table {
    const void* cells;
    const Places* places;  // null when the cells stand in the order of their coordinates
    std::uint64_t dim;
    std::size_t bytes;  // of a cell
    bool wide;
    int count;              // scales
    int z, R, S, unit, met;  // places in a cell; `met` is above 0 in a cell that was learned
    bool counts;             // whether `met` is the number of rows; otherwise G / unit^2 says how often
};

// S.u, the penalty, the lead of the next play, D.R, G, D^2 and |S.u| + the quadratic, as in src/ftprl/linear/ledger.py.
constexpr int LEDGER_SUMS = 7;
constexpr int MOST_LANES = 16;

struct LedgerSums {
    double sums[LEDGER_SUMS][MOST_LANES] = {};
};

// Over the `count` cells `slots`, or all of them when null, with u the play of scale number `leader` in each cell.
LedgerSums ledger_of(const Table& table, const Constants& constants, const double* h, int leader,
                     const std::int64_t* slots, std::int64_t count);

// The cells by how often they were seen, a group a power of two from 2^RAREST on: their number, and the shares -S.u,
// penalty and D.R of scale number `scale`, with u as above.
constexpr int RAREST = -20;
constexpr int GROUPS = 128;

struct LedgerGroups {
    double sums[GROUPS][4] = {};
};

LedgerGroups groups_of(const Table& table, const Constants& constants, const double* h, int leader, int scale);

}  // namespace ftprl
