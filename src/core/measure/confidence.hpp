// Confidence sequences: intervals of a running mean that hold for all rows at once, with a stated probability, and an
// alarm for a loss that rises.
//
// For numbers x in [low, high], guesses g made before x is seen, and c at least as large as every |x - g| can be,
//
//   exp( lambda w (x - mean) / (c W) - psi(lambda) (w (x - g) / (c W))^2 ),   psi(l) = -ln(1 - l) - l,  0 < l < 1,
//
// multiplied over the rows, is a supermartingale, where `mean` is the expectation of x given all before it and w <= W
// its weight, known before it (Howard, Ramdas, McAuliffe, Sekhon 2021). So is a mixture over lambda, here over a grid.
// By Ville's inequality it exceeds 1/a at any row with probability at most a: no independence is assumed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ftprl {

// When a larger weight comes, W is doubled until it is large enough. A bet on the sum of w (x - mean) is then twice as
// large a lambda, so that the bets of the grid move up by one place each and the largest is given up; the others keep
// their prior and all rows so far, whose squares cost no less with the new W since psi(l) / l^2 rises.

// The logarithm of the mixture, for a sum of deviations s and a sum of squares v, both of deviations divided by c W,
// where W was doubled so many times since the first row.
double log_wealth(double s, double v, int doublings);

// The largest sum of deviations whose mixture is at most e^threshold.
double largest_deviation(double v, double threshold, int doublings);

// All numbers are doubles, so that they can be saved as one array.
struct MeanState {
    double rows;    // of all epochs
    double weight;  // of the epochs before this one, as the next three
    double total;   // sum of weight times number
    double lower;   // bounds of the sum of weight times expectation
    double upper;
    double epoch;     // how many epochs are over: one ends where the cut has to grow, or the largest weight very much;
                      // and 1/64 for each doubling of the largest weight in this one
    double bound;     // numbers are cut to [-bound, bound] or [0, bound]
    double heaviest;  // no weight of this epoch is larger
    double epoch_rows;
    double epoch_cuts;
    double epoch_weight;
    double sum;       // of weight times number in this epoch
    double squares;   // of weight times (number - guess)
    double guess;     // the mean of this epoch, as it was a while ago
    double cut_rows;  // of all epochs
    double cut_off;   // weight times what was cut off
};

constexpr std::size_t MEAN_NUMBERS = sizeof(MeanState) / sizeof(double);

struct Range {
    double lower, upper;
};

// An interval for the mean of numbers whose expectations may change from row to row.
class MeanSequence {
public:
    // `is_signed`: numbers may be negative. `grows`: the bound is raised when more than two rows and one in 1000 are
    // cut.
    MeanSequence(double bound, bool is_signed, bool grows, double error_probability);

    // Adds rows up to the next one at which something depends on the rows so far; returns how many.
    std::int64_t add(const double* x, const double* weight, std::int64_t count);
    void set_bound(double bound);                      // before the first row
    Range interval() const;                            // of the mean, NaN before the first row
    bool is_decided() const;                           // whether 0 lies outside
    double unit() const;                               // c W: deviations are divided by it
    double threshold(double error_probability) const;  // ln(1/a) for one side in this epoch
    double epochs() const;                             // that are over
    int doublings() const;                             // of the largest weight in this epoch

    MeanState& state() { return state_; }
    const MeanState& state() const { return state_; }

private:
    void add_unusual(double x, double weight);
    void start_epoch(double bound, double heaviest);
    void allow_weight(double weight);
    void look_back();
    std::int64_t next_stop() const;
    double lowest() const { return is_signed_ ? -state_.bound : 0.0; }
    Range sums() const;  // of weight times expectation in this epoch

    bool is_signed_, grows_;
    double error_probability_;  // of both sides together
    double reach_;              // guesses are cut to this part of the bound
    MeanState state_ = {};
};

// Saved as one array, too.
struct DriftState {
    double segments;    // how many have begun
    double epoch;       // of the losses that they are about
    double is_testing;  // whether one goes on: 1 or 0
    double reference;   // an upper bound of the mean of the rows before the segment
    double weight;      // of the losses where the segment began, as the next two
    double sum;
    double squares;
    double alarm_row;  // 0 without an alarm
};

constexpr std::size_t DRIFT_NUMBERS = sizeof(DriftState) / sizeof(double);

// An alarm for losses that rise: a test of each segment of rows, from one power of two to the next, against an upper
// bound of the mean of all rows before it.
class DriftAlarm {
public:
    explicit DriftAlarm(double error_probability);

    void look(const MeanSequence& losses);  // after each call of `losses.add`

    DriftState& state() { return state_; }
    const DriftState& state() const { return state_; }

private:
    void start_segment(const MeanSequence& losses);
    void test(const MeanSequence& losses);

    double error_probability_;
    DriftState state_ = {};
};

}  // namespace ftprl
