// What is known of the labels: docs/labels.md, and the label odds of the log loss.
#pragma once

#include <limits>

#include "replay/settings.hpp"

namespace ftprl::replay {

constexpr double LEAST_UNIT = std::numeric_limits<double>::min();  // nothing can be learned in smaller units

// The weights of negative and positive labels, and the largest weight of a row, from 1: the array `labels.odds`.
struct LabelOdds {
    double negative, positive, largest;

    double base_rate() const;
    void learn(double y, double weight);
};

// The label of a row: what is known after it, and the range it is learned with.
struct LabelledRow {
    double learned;       // the label, cut if it is far from all before it
    double offset, unit;  // before it
    double low, high;
    bool teaches;  // more than the label
};
LabelledRow learn_label(const Settings& s, LabelState& state, double y, double weight);
// A label within the range that was known before it.
double known_label(const Settings& s, const LabelState& labels, double y);
// The score at which a slope is taken: what is more than the width of the range beyond it counts.
double start_of(const Settings& s, const LabelledRow& row, double score);
void add_row_sums(const Settings& s, const LabelState& state, const LabelledRow& row, double y, double weight,
                  double score, double slope, double prediction, double prediction_loss, double* sums, int stride);

}  // namespace ftprl::replay
