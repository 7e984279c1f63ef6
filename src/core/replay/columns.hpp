// The columns of a Newton expert: at most 64 features that many rows have, in deviations from their means.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "replay/settings.hpp"

namespace ftprl::replay {

constexpr int MOST_COLUMNS = 64, MOST_INPUTS = MOST_SCALES + 2 + MOST_COLUMNS;
constexpr double FIRST_VARIANCE = 0.25;  // of each coefficient

// Coefficients u of inputs and a matrix P, which is near the inverse of the Hessian; `stride` numbers in a row of P.
// The columns follow the input `constant`, which is a 1.
struct Regression {
    double *u, *P;
    int stride, constant;

    double& entry(int i, int j) const { return P[i * stride + j]; }
    // P x of n inputs, and x.Px.
    double project(const double* x, int n, double* Px) const;
    // One step along Px; `pull` is slope times weight, `b` curvature times weight, q = x.Px.
    void step(const double* Px, int n, double pull, double b, double q) const;
    void reset_input(int j, double variance) const;  // no covariance with the others
    // P as at the start, if rounding has made a variance 0 or less.
    void keep_sound(int n) const;
    void move_column(int j, double shift, double ratio) const;
};

class Columns {
public:
    explicit Columns(const Arrays& arrays);

    int used() const { return static_cast<int>(sizes_[0]); }
    // The values of all columns in a row; 0 for a slot without one.
    void read(const Row& row, double* x) const;
    // Count the features of row t; at powers of two columns leave, move and join.
    void learn(const Row& row, std::int64_t t, const std::vector<Regression>& followers);

private:
    double* facts_of(int j) const { return facts_ + 3 * j; }  // number of the feature + 1, mean, deviation
    double* entry_of(int i) const { return table_ + 5 * i; }  // number of the feature, count, a, b, first
    int entries() const { return static_cast<int>(sizes_[1]); }
    void count(std::int32_t feature, double value);
    void forget();
    void leave(const std::vector<Regression>& followers);
    void join(const std::vector<Regression>& followers);

    double *facts_, *table_, *rows_, *sizes_;
    std::unordered_map<std::int32_t, int> column_of_, entry_at_;
};

}  // namespace ftprl::replay
