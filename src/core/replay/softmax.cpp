#include "replay/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ftprl::replay {
namespace {

constexpr double LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33, LOG2E = 1.4426950408889634;
constexpr double FARTHEST = -700.0, SHIFT = 0x1.8p52;
constexpr double TERMS[] = {1.0 / 6227020800.0,
                            1.0 / 479001600.0,
                            1.0 / 39916800.0,
                            1.0 / 3628800.0,
                            1.0 / 362880.0,
                            1.0 / 40320.0,
                            1.0 / 5040.0,
                            1.0 / 720.0,
                            1.0 / 120.0,
                            1.0 / 24.0,
                            1.0 / 6.0,
                            0.5,
                            1.0,
                            1.0};

// e^x of a number of at most 0, and e^-700 below that.
double exp_below(double x) {
    const double t = std::max(x, FARTHEST), whole = (t * LOG2E + SHIFT) - SHIFT;
    const double r = (t - whole * LN2_HIGH) - whole * LN2_LOW;
    double p = TERMS[0];
    for (std::size_t i = 1; i < sizeof TERMS / sizeof *TERMS; ++i) p = p * r + TERMS[i];
    return std::ldexp(p, static_cast<int>(whole));
}

}  // namespace

void Softmax::set(int j, const double* scores, const std::vector<double>& copies) {
    double total = 0.0;
    const double largest = *std::max_element(scores, scores + columns);
    for (int c = 0; c < columns; ++c) {
        log_of(c, j) = scores[c] - largest;
        chance_of(c, j) = exp_below(log_of(c, j));
        total += copies[c] * chance_of(c, j);
    }
    const double log_total = std::log(total);
    for (int c = 0; c < columns; ++c) {
        log_of(c, j) -= log_total;
        chance_of(c, j) /= total;
    }
}

double Softmax::predicted(const double* w, int known) {
    double most = -1.0, best = std::numeric_limits<double>::quiet_NaN();
    for (int c = 0; c < known; ++c) {
        double chance = 0.0;
        for (int j = 0; j < experts; ++j) chance += w[j] * chance_of(c, j);
        if (!(chance > most)) continue;
        best = c;
        most = chance;
    }
    return best;
}

}  // namespace ftprl::replay
