// The loss of predicting each label from those before it alone, which a certificate is compared with: docs/events.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/losses.hpp"

namespace ftprl::replay {

class Baseline {
public:
    // `kind` names what is predicted; a loss of several classes has no entry among the losses, and `loss` is null.
    Baseline(const std::string& kind, const Loss* loss, double tau, int classes);

    // Predicts and then learns a label with a weight above 0; returns its loss.
    double learn(double y, double weight);
    // The loss that `learn` would return, and the least loss that any prediction has; nothing is learned.
    double predict(double y) const { return Baseline(*this).learn(y, 1.0); }
    double least_of(double y) const;

    double total() const { return total_; }
    double least() const { return least_; }  // the least loss that any predictions have, where that is not 0

private:
    enum class Kind { base_rate, majority, mean, log_mean, quantile, class_rates };
    static Kind kind_named(const std::string& name);
    double score(double y, double weight);
    double follow_quantile(double y, double weight);
    double log_share(std::size_t y, double weight);

    Kind kind_;
    const Loss* loss_;
    double tau_, follows_;
    double total_ = 0.0, least_ = 0.0;
    double rows_ = 0.0, weight_ = 0.0, positive_ = 0.0, sum_ = 0.0;
    double quantile_ = 0.0, since_ = 0.0, pinball_ = 0.0, low_ = 0.0, high_ = 0.0;
    std::vector<double> classes_;  // the weight of each
};

}  // namespace ftprl::replay
