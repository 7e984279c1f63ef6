// The baseline: the progressive loss of predicting each row from the labels before it alone. What a learner's loss is
// compared with.
//
//   base_rate  p = (n1 + 1/2) / (n + 1), n1 and n the weight of the positive and of all labels before the row
//   mean       the weighted mean of the labels; 0 before the first
//   log_mean   its logarithm; -log(t + 1) after t labels that are all 0
//   median     quantile with tau = 1/2
//   quantile   a running quantile: the first label, then by steps q <- cut(q + 2 pin (c / W) (1 / (1 - tau) if the
//              label lies above q, -1 / tau below); lowest, highest label), pin the mean pinball loss of q itself
//   majority   +1 or -1, the class with more weight; 0 where neither has
//   class_rates  p = (n_c + 1/2) / (n + (k + 1)/2) for each of the k classes met, n_c and n as for base_rate; what is
//                left goes to the C - k that may come in equal parts; once all are met p = (n_c + 1/2) / (n + C/2)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "learn/losses.hpp"

namespace ftprl {

// All numbers are doubles, so that they can be saved as one array; `BASELINE_NUMBERS` of them.
struct BaselineState {
    double loss;      // the total; base_rate: of all rows but those in `product`
    double product;   // base_rate: the probabilities of labels whose logarithm is still to be taken
    double least;     // log_mean: the least total loss that any scores could have; 0 for every other loss
    double rows;      // labels learned
    double weight;    // of them
    double negative;  // base_rate, majority: the weight of each class
    double positive;
    double sum;       // mean, log_mean: of weight times label
    double quantile;  // quantile, median: the prediction
    double pinball;   // its mean pinball loss, and the weight behind it: that of all labels but the first
    double since;
    double lowest;  // the range of the labels
    double highest;
};

constexpr std::size_t BASELINE_NUMBERS = sizeof(BaselineState) / sizeof(double);

constexpr int SMALL_COUNTS = 1024;

class Baseline {
public:
    // At most `classes` of them with a loss of classes, otherwise 0.
    Baseline(const Loss* loss, double tau, int classes);

    // Predict each label from those before it, then learn it: rows with a label and a weight above 0, which must be
    // without fault. The others are only predicted. When `losses` is not null it gets two numbers a row, the loss of
    // the prediction and the least loss any score could have; NaN for rows without a label. The state depends on the
    // rows alone and not on how they are cut into batches.
    void learn(const double* y, const double* weight, std::int64_t count, double* losses);

    BaselineKind kind() const { return loss_->baseline; }
    double total() const;  // the loss of all rows learned
    double least() const { return state_.least; }
    // All of it, to go back to.
    struct Saved {
        BaselineState state;
        std::vector<double> class_weights;
    };
    Saved saved() const { return {state_, class_weights_}; }
    void restore(const Saved& saved) {
        state_ = saved.state;
        class_weights_ = saved.class_weights;
    }
    double* numbers() { return reinterpret_cast<double*>(&state_); }
    std::vector<double>& class_weights() { return class_weights_; }

private:
    const Loss* loss_;
    double tau_;
    BaselineState state_ = {0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    std::vector<double> class_weights_;  // class_rates: that of each class
    double counts_[SMALL_COUNTS];        // log_mean: two logarithms a row less, for labels that occur again and again
};

}  // namespace ftprl
