// The losses as the replay knows them: one entry each in losses.cpp.
#pragma once

#include <string>

namespace ftprl::replay {

// Offset, unit and range of the labels, and what they follow from; in the order of the array `labels`.
struct LabelState {
    double rows, weight, mean, squares, least, most, quantile, since, pinball, deviation;
    double offset, unit, low, high, psi, kappa, outliers;
};

// loss(s) - loss(p) - a (s - p), where the loss has the slope a at p; and the size it is the difference of.
struct Term {
    double value, size;
};

// Slope and curvature of the loss of a Newton expert's score, in units of the labels.
struct NewtonSlope {
    double slope, curvature;
};

// How labels and scores belong together: two classes without units (log loss), several of them, and two with units;
// scores that are in the unit of the labels; their logarithms, of labels that may be 0 (counts) and of those that are
// above it.
enum class Kind { log_odds, classes, margins, labels, log_counts, log_amounts };

struct Loss {
    const char* name;
    Kind kind;
    bool kinked;        // weights have a unit of their own, kappa
    bool jumps;         // the slope does, at the label
    bool has_quantile;  // tau is its quantile; 0.5 for the others
    double gain;        // of what the Newton experts predict
    double (*value)(double score, double y, double tau);
    // What follows is null for classes, and but for `newton` for the log loss. `learn_numbers`: offset, unit and range
    // from one more label of weight c, whose moments are in the state already.
    void (*learn_numbers)(LabelState& state, double y, double c, double tau);
    // The slope of a row of weight 1 after a step that moves the score by A times the slope.
    double (*slope_after_step)(const LabelState& state, double score, double y, double A, double tau);
    Term (*row_term)(const LabelState& state, double score, double y, double a, double tau);
    // At the score f of a Newton expert, or of the coin; `mean` is the mean loss of an expert so far.
    NewtonSlope (*newton)(const LabelState& state, double f, double y, double mean, double tau);

    double coin_slope(const LabelState& state, double score, double y, double tau) const;
    double least(double y) const;                      // the least loss that any score has
    double linear_part(double score, double y) const;  // what the loss is the difference of something else and
    bool has_classes() const { return kind == Kind::classes; }
    bool labelled() const { return kind != Kind::log_odds && kind != Kind::classes; }
    bool has_offset() const { return labelled() && kind != Kind::margins; }
    bool predicts_labels() const { return kind == Kind::labels; }
    bool has_log_link() const { return kind == Kind::log_counts || kind == Kind::log_amounts; }
    bool divides_rows() const { return kind == Kind::log_counts; }
};

double log_slope(double score, double y);  // of the log loss
double chance_of(double v);                // of a label at log-odds v
const Loss& loss_named(const std::string& name);

}  // namespace ftprl::replay
