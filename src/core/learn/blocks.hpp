// A block of rows on its way through a learner.
#pragma once

#include <cstdint>
#include <vector>

#include "learn/columns.hpp"
#include "learn/labels.hpp"

namespace ftprl {

struct Block {
    std::int64_t from, to;
    std::int64_t first_number;  // of the rows learned before it, those of a first pass
    std::vector<RowFacts> facts;
    std::vector<double> scores, tails, slopes;  // of the scales, a row of `stride` numbers each
    std::int64_t stride;
    std::vector<double> coin;
    std::vector<double> columns;        // a row of COLUMN_STRIDE each
    int used;                           // columns
    std::vector<ColumnChange> changes;  // of the columns, after the last row
};

// The steps of a block, in the order in which a single thread does them.
enum Step { LABELS, SCALES, COIN, COLUMNS, MIX, STEPS };

}  // namespace ftprl
