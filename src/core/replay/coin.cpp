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
    return s_.wide ? bet_cells<double>(row, learns) : bet_cells<float>(row, learns);
}

template <class T>
double Coin::bet_cells(const Row& row, bool learns) {
    const double bound = base_[4];
    std::vector<double> terms(static_cast<std::size_t>(row.size));
    for (std::int64_t i = 0; i < row.size; ++i) {
        T* own = static_cast<T*>(cells_) + 4 * static_cast<std::int64_t>(row.cell[i]);
        if (learns) own[3] = std::max(own[3], static_cast<T>(std::fabs(row.value[i])));
        const double theta = own[0], sizes = own[1], won = own[2], most_lost = static_cast<double>(own[3]) * bound;
        const double held = most_lost * (most_lost + sizes);
        bets_[i] = held > 0.0 ? (WEALTH + won) * theta / held : 0.0;
        terms[i] = bets_[i] * row.value[i];
    }
    return in_fours(terms.data(), row.size);
}

template <class T>
void Coin::learn_cells(const Row& row, double slope) {
    const double top = sizeof(T) == sizeof(float) ? NARROW_CUT : WIDE_CUT;
    for (std::int64_t i = 0; i < row.size; ++i) {
        T* own = static_cast<T*>(cells_) + 4 * static_cast<std::int64_t>(row.cell[i]);
        const double g = cut(slope * row.value[i], -top, top);
        own[0] = static_cast<T>(static_cast<double>(own[0]) - g);
        own[1] = static_cast<T>(static_cast<double>(own[1]) + std::fabs(g));
        own[2] = static_cast<T>(cut(static_cast<double>(own[2]) - g * bets_[i], -top, top));
    }
}

void Coin::learn(const Row& row, double row_slope) {
    const double slope = cut(row_slope, -base_[4], base_[4]);
    s_.wide ? learn_cells<double>(row, slope) : learn_cells<float>(row, slope);
    if (s_.intercept) {
        const double bet = own_bet();
        base_[2] = cut(base_[2] - slope * bet, -WIDE_CUT, WIDE_CUT);
        base_[0] -= slope;
        base_[1] += std::fabs(slope);
    }
    base_[4] = std::max(base_[4], std::fabs(row_slope));
}

}  // namespace ftprl::replay
