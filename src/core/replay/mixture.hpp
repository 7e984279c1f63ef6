// The mixture of the experts: Bayes' rule for probabilities, AdaHedge for scores; docs/scales.md and docs/labels.md.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/labels.hpp"
#include "replay/settings.hpp"

namespace ftprl::replay {

// What the experts say of a row: scores, or the chances of its label; and what they lose.
struct Opinions {
    double scores[MOST_EXPERTS] = {}, chances[MOST_EXPERTS] = {}, losses[MOST_EXPERTS] = {};
};

class Mixture {
public:
    Mixture(const Settings& settings, const Arrays& arrays);

    int count() const { return count_; }
    // The weights that predict a row which is learned, or without the constant that drifts.
    std::vector<double> weights(bool learns) const;
    // Of probabilities: the loss of weights w, and that of row t, counted from 1, which then moves the weights.
    double loss(const double* w, const Opinions& o) const;
    double learn_chances(const Opinions& o, double weight, double t);
    // Of scores: the prediction, and the same. `o` has the losses for the label as it is.
    double predict(const double* w, const Opinions& o) const;
    void learn_scores(const LabelState& labels, const Opinions& o, double prediction, double y, double weight,
                      double t);

private:
    void admit(double weight);
    void weigh(const Opinions& o, bool is_direct, double weight, double t);
    void charge(const LabelState& labels, const Opinions& o, double mean, double* own, double y, double weight,
                double t);
    void charge_classes(const LabelState& labels, const Opinions& o, double y, double weight, double t);
    double lead_rate() const;
    double trusted_part() const;
    // Sums by which it is decided who stays: losses above the least that any score has.
    void add_octave(const double* losses, double loss, const double* without, double weight, std::int64_t t);
    void add_block(const double* losses, double weight, std::int64_t t);
    double least_other(const double* losses, int j) const;

    const Settings& s_;
    int count_, offset_;
    std::vector<int> droppable_;
    double *w_, *totals_, *facts_, *octave_, *without_, *octave_loss_, *block_, *windows_;
};

// ln(1 + e^(-y score)), as the mixture computes it.
double log_loss(double score, double y);

}  // namespace ftprl::replay
