// How far one more row could move each score: the uncertainty of a prediction (docs/calibration.md).
#pragma once

#include <cstdint>

#include "learn/ledger.hpp"

namespace ftprl {

struct MoveTable {
    CellTable cells;
    const Constants* constants;
    const double* intercept_R;  // of each lane
    const LabelState* labels;   // not with the log loss
    int lanes;                  // scales times outputs; lane c K + k is scale k of output c
};

// A row of `lanes` numbers for each row: the largest step of its score in each lane, whatever its label. With other
// losses than the log loss the label is one within the range so far, and the row's prediction is `scores`.
void moves_of(const MoveTable& table, const Rows& rows, const double* scores, double* out);

}  // namespace ftprl
