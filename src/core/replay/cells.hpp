// What is stored in cells of the features: the scales, which are FTRL-Proximal with the sums of a receipt, and the
// coin.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/settings.hpp"

namespace ftprl::replay {

constexpr int SUMS = 6;  // g x, sigma x^2, g^2 / Q, drift, sizes of the first, sizes of a step

class Scales {
public:
    Scales(const Settings& settings, const Arrays& arrays);

    // Compute the score of each lane, counted from `offset`, and how far a slope of 1 moves the score. A row that is
    // predicted and not learned (`learns` is false) does not change the units of features.
    void play(const Row& row, double offset, bool learns);
    // By slopes times weights, counted in psi, with weights in kappa.
    void step(const Row& row, const double* slopes, double psi, double kappa);
    // Undo what `play` did to the units of a row.
    void forget_units(const Row& row);

    const double* scores() const { return scores_.data(); }
    double reach(int lane) const { return reach_[lane]; }

private:
    bool counts_rows() const { return s_.is_mixed(); }  // units are running means, and otherwise maxima
    double together(const double* terms, std::int64_t count) const;
    void look_up(const Row& row, bool learns);
    void play_cells(const Row& row);
    void step_cells(const Row& row, const double* slopes, double psi, double kappa);
    double rate(double h, double R, double unit) const;
    double rate_with(double rate, double h, double kappa, double unit, bool free) const;
    double rise(double R, double now, double unit, double kappa, double new_kappa) const;
    void step_base(const double* slopes, double psi, double kappa);
    void add_terms(int lane, std::int64_t entry, double h, double held, double rate, double g, double x, double sigma,
                   double z, double moved, double kept, bool narrow, bool met);
    void sum_up(int lane, std::int64_t entries);
    void add_lanes(const double* slopes);

    const Settings& s_;
    bool unconstrained_;
    Stored z_, R_, units_, rows_, kappas_;  // of the cells
    double *S_, *base_, *sums_, *slopes_;
    const double *lower_, *upper_;  // of each weight; null where all have the same
    std::vector<double> unit_, before_, x_, kappa_, terms_;
    std::vector<double> scores_, reach_, own_x_;  // of each lane; weights of the intercept
    std::vector<double> own_, lane_sums_;         // SUMS of each lane: of the intercept, of the row
};

// The coin-betting expert.
class Coin {
public:
    Coin(const Settings& settings, const Arrays& arrays);

    // The sum of the row's bets, and that of the intercept.
    double bet(const Row& row, bool learns);
    double own_bet() const;
    // From its slope, weighted.
    void learn(const Row& row, double slope);

private:
    const Settings& s_;
    Stored cells_;  // theta, A, omega, M of each
    double* base_;  // theta, A, omega of the intercept, 1, the largest weighted slope
    std::vector<double> bets_;
};

}  // namespace ftprl::replay
