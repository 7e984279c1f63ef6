#include "replay/coin.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace ftprl::replay {
namespace {

constexpr double WEALTH = 0.3;

}  // namespace

Coin::Coin(const Settings& settings, const Arrays& arrays)
    : s_(settings), cells_(arrays.cells("coin", 4)), base_(arrays.numbers("coin.intercept", 5)) {}

double Coin::own_bet() const {
    return s_.intercept ? (WEALTH + base_[2]) * base_[0] / (base_[4] * (base_[4] + base_[1])) : 0.0;
}

double Coin::bet(const Row& row, bool learns) {
    bets_.resize(static_cast<std::size_t>(row.size));
    std::vector<double> terms(static_cast<std::size_t>(row.size));
    for (std::int64_t i = 0; i < row.size; ++i) {
        const std::int64_t at = 4 * static_cast<std::int64_t>(row.cell[i]);
        if (learns) cells_.put(at + 3, std::max(cells_[at + 3], cells_.rounded(std::fabs(row.value[i]))));
        const double most_lost = cells_[at + 3] * base_[4], held = most_lost * (most_lost + cells_[at + 1]);
        bets_[i] = held > 0.0 ? (WEALTH + cells_[at + 2]) * cells_[at] / held : 0.0;
        terms[i] = bets_[i] * row.value[i];
    }
    return in_fours(terms.data(), row.size);
}

void Coin::learn(const Row& row, double row_slope) {
    const double slope = cut(row_slope, -base_[4], base_[4]), top = cells_.cut_gradient();
    for (std::int64_t i = 0; i < row.size; ++i) {
        const std::int64_t at = 4 * static_cast<std::int64_t>(row.cell[i]);
        const double g = cut(slope * row.value[i], -top, top);
        cells_.put(at, cells_[at] - g);
        cells_.put(at + 1, cells_[at + 1] + std::fabs(g));
        cells_.put(at + 2, cut(cells_[at + 2] - g * bets_[i], -top, top));
    }
    if (s_.intercept) {
        const double bet = own_bet();
        base_[2] = cut(base_[2] - slope * bet, -WIDE_CUT, WIDE_CUT);
        base_[0] -= slope;
        base_[1] += std::fabs(slope);
    }
    base_[4] = std::max(base_[4], std::fabs(row_slope));
}

}  // namespace ftprl::replay
