// The coin-betting expert: docs/scales.md.
#pragma once

#include <vector>

#include "replay/settings.hpp"

namespace ftprl::replay {

class Coin {
public:
    Coin(const Settings& settings, const Arrays& arrays);

    // The sum of the row's bets, and that of the intercept.
    double bet(const Row& row, bool learns);
    double own_bet() const;
    // From its slope, weighted.
    void learn(const Row& row, double slope);

private:
    template <class T>
    double bet_cells(const Row& row, bool learns);
    template <class T>
    void learn_cells(const Row& row, double slope);

    const Settings& s_;
    void* cells_;   // theta, A, omega, M of each
    double* base_;  // theta, A, omega of the intercept, 1, the largest weighted slope
    std::vector<double> bets_;
};

}  // namespace ftprl::replay
