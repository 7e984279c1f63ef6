// A coin-betting expert for streams with many features that do not matter: docs/scales.md. Plain data only, as in
// kernel.hpp.
#pragma once

namespace ftprl {

// theta, minus the sum of the gradients; the sum of their sizes; what was won so far; the largest |value|. The weight
// is (COIN_WEALTH + won) theta / (L (L + sizes)), L the largest |value| times the largest weighted slope. Four numbers
// a coordinate, float32 or float64 as its cell.
enum CoinFact { THETA, SIZES, WON, LARGEST_VALUE, COIN_FACTS };
// Of the intercept also the largest weighted slope.
enum CoinTotal { COIN_BOUND = COIN_FACTS, COIN_NUMBERS };
constexpr double COIN_WEALTH = 0.3;

struct CoinState {
    void* cells;
    double* intercept;  // the four numbers, in float64, and the largest slope
};

}  // namespace ftprl
