// Residuals of a regression run in a fixed number of bins: by prediction, and by size.
//
// Neither the unit nor the range of the numbers is known beforehand, so both kinds of bins follow the data, in a way
// that the rows' order cannot be seen in which bin a number ends up in. Predictions have bins of equal width, a power
// of two, which is doubled (two bins become one) when they no longer fit. Residuals have bins of equal ratio, 16 to
// each factor of two: the largest residual moves the window up, and what falls out at its end is as good as 0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ftprl {

constexpr int PREDICTION_BINS = 128, BINS_PER_OCTAVE = 16, OCTAVES = 20;
constexpr int RESIDUAL_BINS = BINS_PER_OCTAVE * OCTAVES;

struct PredictionBin {
    double weight, prediction, residual, squares;  // sums of the weight, and of it times the others; residual²
};

// All that is saved; every member consists of doubles. A residual is label - prediction.
struct ResidualState {
    double rows, weight;
    double absolute;  // weight times |residual|
    double label;     // mean of the labels, and the sum of their squared distances from it
    double label_squares;
    double width;                                // of the bins of predictions, which are scores with a log link
    double first, last;                          // of those that were met: their number in multiples of the width
    double top;                                  // the number of the bin of the largest |residual|
    double near_zero;                            // weight of residuals too small for a bin
    PredictionBin predictions[PREDICTION_BINS];  // from `first` on
    double below[RESIDUAL_BINS], above[RESIDUAL_BINS];  // weight of residuals below and above 0, from `top` downwards
};

constexpr std::size_t RESIDUAL_NUMBERS = sizeof(ResidualState) / sizeof(double);

class Residuals {
public:
    // Rows with a label and a weight; `score` is the prediction, or with a log link its logarithm.
    void add(const double* score, const double* prediction, const double* y, const double* weight, std::int64_t count);

    ResidualState& state() { return state_; }
    const ResidualState& state() const { return state_; }

private:
    PredictionBin& bin_of(double score);
    void make_room(double number);
    void double_width();
    void add_residual(double residual, double weight);
    void raise_top(double number);

    ResidualState state_ = {};
};

}  // namespace ftprl
