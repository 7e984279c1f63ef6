// Online calibration (docs/calibration.md): a non-decreasing function of the log-odds that is learned from predictions
// made before their rows were learned. It is the identity at first, and stays near it where nothing speaks against it.
//
//   platt     a score s becomes b + a s + c |s|: three numbers, learned by Newton steps as those of the stack
//   isotonic  rows are counted in bins of their scores; the rate of positives in each, together with a prior at the
//             identity, is made non-decreasing by pooling neighbours, and log-odds between two bins are interpolated
#pragma once

#include <memory>

#include "learn/losses.hpp"

namespace ftprl {

enum class CalibrationKind { none, platt, isotonic };

constexpr int PLATT_NUMBERS = 3;
constexpr int SCORE_BINS = 33;  // around -8, -7.5, ..., 8

enum BinSum { BIN_WEIGHT, BIN_POSITIVE, BIN_SCORES, BIN_SUMS };

// A calibrator as it is at one row. Outside of its knots it adds a constant.
struct CalibrationMap {
    bool linear;
    double shift, above, below;              // linear: what is added, and the slopes for scores above and below 0
    double x[SCORE_BINS], odds[SCORE_BINS];  // otherwise: log-odds before and after calibration, both in order

    double operator()(double score) const;
};

struct Calibrator {
    explicit Calibrator(CalibrationKind kind);

    CalibrationKind kind;
    double u[PLATT_NUMBERS];                 // a, b, c
    double P[PLATT_NUMBERS][PLATT_NUMBERS];  // the inverse Hessian
    double bins[SCORE_BINS][BIN_SUMS];       // of the rows learned, without the prior

    CalibrationMap map() const;
    void learn(double score, double y, double weight);
};

}  // namespace ftprl
