// The losses of a score: one entry each, the same formulas in the same order as src/ftprl/losses/table.py.
#pragma once

#include <cstddef>

namespace ftprl {

constexpr double LARGEST_LOG_SCORE = 60.0;  // scores with a log link, whose mean is e^score, are cut to this

// The loss of a row and its slope in the score, without the tail below.
struct LossAtScore {
    double value;
    double slope;
};

// The loss is value + log(1 + tail). No step waits for the logarithm, which is slow: take it later, with `total_loss`.
using LossFunction = LossAtScore (*)(double score, double y, double tau, double& tail);

double total_loss(double value, double tail);

// The value, without the tail, of each of several scores with one label.
using LossValues = void (*)(const double* scores, int count, double y, double tau, double* values);

// -1 and 1; y >= 0; y > 0; any y; the number of a class, from 0 on
enum class Labels { signs, nonnegative, positive, numbers, classes };

// What predicts a label from those before it alone, for a yardstick: baseline.hpp.
enum class BaselineKind { base_rate, mean, log_mean, median, quantile, majority, class_rates };
const char* name_of(BaselineKind kind);

// Which offset, unit and range of the scores follow from the labels so far (labels.hpp): none with the log loss, whose
// scores have no unit; -1 to 1 for the other losses of two classes.
enum class LabelRule { none, classes, mean, quantile, median_of_unit, log_mean, log_ratio };

// The slope of a row of weight 1 after a step that moves the score by `reach` times it; `unit` is that of the labels.
using ImplicitSlope = double (*)(double score, double y, double reach, double unit, double tau);

// Where a Newton expert stands: its score, the label, and its unit. `mean_loss` is that of the expert so far, psi that
// of LabelState.
struct StackPoint {
    double f, y, unit, psi, mean_loss, tau;
};
// The slope and the curvature of a Newton expert's loss in units.
struct StackSlope {
    double slope, curvature;
};
using StackFunction = StackSlope (*)(const StackPoint& at);

// What a row adds to a regret besides what its gradients do, with the slope that it was learned with: loss(s) - loss(p)
// - slope (s - p), where p is the score at which the loss has that slope. Never below 0. `size` is what rounding is
// relative to. As above for a row of weight 1, and a loss of counts is divided by `unit`.
struct RowTerm {
    double value, size;
};
using RowTermFunction = RowTerm (*)(double score, double y, double slope, double unit, double tau);

struct Loss {
    const char* name;
    LossFunction at;
    LossValues values;
    Labels labels;
    BaselineKind baseline;
    LabelRule rule;
    ImplicitSlope implicit;  // null with the log loss, as are the next two
    RowTermFunction row_term;
    StackFunction stack;
    double stack_gain;         // the stack predicts its score times this
    bool one_vs_rest = false;  // of several classes: each is learned against all others

    bool has_kink() const { return rule == LabelRule::quantile || rule == LabelRule::median_of_unit; }
    // Whether scores are in the unit of the labels.
    bool predicts_labels() const { return rule == LabelRule::mean || has_kink(); }
    bool has_log_link() const { return rule == LabelRule::log_mean || rule == LabelRule::log_ratio; }
};

extern const Loss LOSSES[];
extern const std::size_t LOSS_COUNT;

// The losses of several classes, which have a score each: classes.hpp. Their `at` is that of the logarithm of the
// probability of the label.
extern const Loss CLASS_LOSSES[];
extern const std::size_t CLASS_LOSS_COUNT;

// Nothing (nullptr) for a name that is not known.
const Loss* loss_named(const char* name);

}  // namespace ftprl
