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
    const Settings& s_;
    Stored cells_;  // theta, A, omega, M of each
    double* base_;  // theta, A, omega of the intercept, 1, the largest weighted slope
    std::vector<double> bets_;
};

}  // namespace ftprl::replay
