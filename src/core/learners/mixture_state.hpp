// The state of a mixture: its arrays by the names they are saved under, and what of it stays when scales are dropped.
// Learners of one class and of several share it.
#pragma once

#include <vector>

#include "learners/experts.hpp"
#include "learners/learner.hpp"
#include "learners/scales.hpp"
#include "learners/slot_map.hpp"

namespace ftprl {

// Move `count` of an array's numbers to its front, then `more` from number `next` on, and set the other ones to 0.
void keep_numbers(double* array, int size, int first, int count, int next = 0, int more = 0);

// The weights of experts that stay. They may have had none at all: then they begin anew with equal weights.
void divide_by_total(double* w, int count);

// Only the scales [first, first + count), which `others` more experts follow.
void keep_mixture(Mixture& mixture, int scales, int first, int count, int others);
void keep_constants(ScaleConstants& constants, int first, int count);

// The arrays of the stack, if there is one, of the windows and of the sums of a receipt.
void add_mixture_arrays(std::vector<NamedArray>& arrays, Mixture& mixture, const ScaleConstants& constants,
                        bool receipt);
// Those of the dense columns, but for what the stack makes of them.
void add_column_arrays(std::vector<NamedArray>& arrays, DenseBlock& block);

// The cells of the dense columns, of which a file knows the slots.
void link_columns(DenseBlock& block, const SlotMap& slot_map);

}  // namespace ftprl
