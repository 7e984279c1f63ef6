// What to expect of rows to come, once more: intervals of means and the drift alarm, from docs/evaluate.md, row by row.
//
// For numbers x within a range of width c, weights w <= W and guesses made before x, the mixture over bets of
//
//     exp(bet s / (c W) - psi(bet) v / (c W)^2),   s = sum w (x - mean),   v = sum (w (x - guess))^2
//
// is a supermartingale; the interval has the means for which it stays below 2 / error, on either side. Where W is
// doubled for a larger weight, each bet of the grid takes the place and the prior of the next smaller one.
#pragma once

#include <cstdint>
#include <limits>

#include "replay/losses.hpp"

namespace ftprl::replay {

constexpr double CONFIDENCE = 0.95, FALSE_ALARM = 0.01;

struct Interval {
    double mean, lower, upper, bound, cut_off;
    std::int64_t rows, cut_rows;
};

// Rows with the same cut, and weights up to `heaviest`, which was doubled so many times.
struct Epoch {
    int number = 0, doublings = 0;
    std::int64_t rows = 0, cuts = 0;
    double heaviest = 0.0, weight = 0.0, sum = 0.0, squares = 0.0;
};

// The confidence sequence of one mean: numbers from 0, or if they have signs from -bound, up to the bound.
class MeanSequence {
public:
    MeanSequence(double bound, bool has_signs, bool grows) : bound_(bound), has_signs_(has_signs), grows_(grows) {}

    void add(double x, double weight);
    void set_bound(double bound) { bound_ = bound; }

    bool is_empty() const { return !(before_weight_ + now_.weight > 0.0); }
    Interval interval() const;

    const Epoch& now() const { return now_; }
    std::int64_t rows() const { return rows_; }
    double unit() const { return (has_signs_ ? 1.25 : 1.0) * bound_ * now_.heaviest; }
    // ln(1 / error) for one side, of the part of the error that this epoch has.
    double threshold(double error) const;
    // How far the sum may be from its expectation before the mixture is above e^threshold.
    double reach(double threshold) const;

private:
    double low() const { return has_signs_ ? -bound_ : 0.0; }
    void allow(double weight);
    void start(double bound, double heaviest);
    void ends(double& lower, double& upper) const;

    double bound_;
    bool has_signs_, grows_;
    Epoch now_;
    double guess_ = 0.0, cut_off_ = 0.0;
    std::int64_t rows_ = 0, cut_rows_ = 0;
    double before_weight_ = 0.0, before_sum_ = 0.0, before_lower_ = 0.0,
           before_upper_ = 0.0;  // of epochs that are over
};

// The alarm: rows since the last power of two against an upper bound of the mean before them.
class DriftAlarm {
public:
    void look(const MeanSequence& losses);
    std::int64_t row() const { return row_; }  // -1 before there is one

private:
    bool has_risen(const MeanSequence& losses) const;

    std::int64_t row_ = -1;
    int segments_ = 0, epoch_ = 0;
    bool started_ = false;
    double reference_ = 0.0, weight_ = 0.0, sum_ = 0.0, squares_ = 0.0;
};

class Intervals {
public:
    explicit Intervals(const Loss* loss);  // null with several classes

    // A row that was learned: its loss, the baseline's, and what was predicted: a score, or the number of a class.
    void add(double loss, double baseline, double prediction, double y, double weight);

    const MeanSequence& loss() const { return losses_; }
    const MeanSequence& improvement() const { return improvement_; }
    const MeanSequence& calibration() const { return calibration_; }
    const MeanSequence& errors() const { return errors_; }
    std::int64_t drift_row() const { return drift_.row(); }

private:
    bool is_settled(double loss, double residual);

    const Loss* loss_;
    bool settled_;  // whether the unit of the losses is known
    MeanSequence losses_, improvement_, calibration_, errors_;
    DriftAlarm drift_;
    std::int64_t first_rows_ = 0;
    double first_losses_ = 0.0, first_residuals_ = 0.0;
};

}  // namespace ftprl::replay
