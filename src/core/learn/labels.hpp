// What is known of the labels so far: an offset from which scores are counted, a unit in which gradients are counted,
// and a range to which scores are cut. What is learned then follows the label's unit and origin: docs/labels.md. It
// depends on the labels alone, so that it is worked out for a block of rows before any expert reads them. Plain data
// only, as in kernel.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "learn/losses.hpp"

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

// Labels of the log loss: the weight of those of each class, and the largest weight of a row (at least 1).
struct LabelRates {
    double negative, positive, largest;
};

constexpr std::size_t RATE_NUMBERS = sizeof(LabelRates) / sizeof(double);

LabelState no_labels(const Loss& loss);

// What a row needs to know of the labels, before and after its own. With the log loss and with classes scores have no
// unit: offset 0, unit, psi and kappa 1, no range.
struct RowFacts {
    double y, weight;
    double learned;              // the label as it is learned: one far from all before it is cut
    double offset, unit;         // before the row; the unit of the experts' scores, 1 where scores have none
    double low, high;            // before the row: experts say nothing beyond
    double alone;                // before the row: what the labels predict alone, which is the offset expert
    double hull_low, hull_high;  // the range this label included
    double unit_after, label_unit, psi, kappa;  // after the row; `label_unit` also where scores have no unit
    bool learns;                                // the row has a label and a weight, and is not held out
    bool teaches;                               // more than its label
};

struct Constants;
struct Rows;

// Learns the labels of rows [from, to), of which those that `learns` says are learned; without it states stay as they
// are.
void learn_labels(const Constants& c, const Rows& rows, std::int64_t from, std::int64_t to, bool learns,
                  LabelState& labels, LabelRates& rates, RowFacts* facts);

// The facts of a row that is only predicted.
RowFacts facts_of_labels(const Constants& c, const LabelState& labels, const LabelRates& rates);

}  // namespace ftprl
