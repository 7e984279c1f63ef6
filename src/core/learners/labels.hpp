// What is known of the labels so far, for every loss but the log loss: an offset from which scores are counted, a unit
// in which gradients are counted, and a range to which scores are cut. What is learned then follows the label's unit
// and origin: docs/labels.md. Plain data only, as in kernel.hpp.
#pragma once

#include <cstddef>

#include "learners/losses.hpp"

namespace ftprl {

// All numbers are doubles, so that they can be saved as one array; LABEL_NUMBERS of them.
struct LabelState {
    double rows;  // labels learned, and their weight
    double weight;
    double mean;
    double squares;  // the weighted sum of squared distances from the mean
    double least;    // the range of the labels
    double most;
    double quantile;   // a running quantile, as the baseline's; and of the labels since the first
    double since;      // the weight,
    double pinball;    // the mean pinball loss,
    double deviation;  // and the mean distance from the quantile
    // What follows from these:
    double offset;  // scores are counted from here
    double unit;
    double lowest;  // scores are cut to this range
    double highest;
    double psi;       // R counts g / psi
    double kappa;     // weights are in this unit: 1 but for losses with a kink
    double outliers;  // how many labels in a row, up to the last, were cut before they were learned
};

constexpr std::size_t LABEL_NUMBERS = sizeof(LabelState) / sizeof(double);

LabelState no_labels(const Loss& loss);

}  // namespace ftprl
