#include "learn/calibrator.hpp"

#include <algorithm>
#include <cmath>

namespace ftprl {
namespace {

constexpr double CUT = 8.0;  // larger scores are learned from as if they were this
constexpr double BIN_WIDTH = 0.5;
constexpr double PRIOR = 4.0;         // what each bin knows of its log-odds at first: as much as from 16 even rows
constexpr double SLOPE_RIDGE = 64.0;  // the Hessian of a and c begins at this
constexpr double SHIFT_RIDGE = 16.0;  // and that of b
constexpr double LEAST_CURVE = 0x1p-13;
constexpr double LARGEST_WEIGHT = 0x1p10;  // of one row in a Newton step

double within(double v, double size) { return std::min(std::max(v, -size), size); }

// 1 / (1 + e^-v)
double chance(double v) {
    const double e = std::exp(-std::fabs(v));
    return (v < 0.0 ? e : 1.0) / (1.0 + e);
}

// The bin of a score within the cut.
int bin_of(double s) { return static_cast<int>(std::floor((s + CUT) / BIN_WIDTH + 0.5)); }

double centre(int bin) { return BIN_WIDTH * bin - CUT; }

// Rows that count before any is seen, with positives at the probability in the middle of the bin: as many as have the
// information PRIOR about the log-odds.
struct Prior {
    double weight[SCORE_BINS], positive[SCORE_BINS];
    Prior() {
        for (int b = 0; b < SCORE_BINS; ++b) {
            positive[b] = PRIOR / chance(-centre(b));
            weight[b] = positive[b] + PRIOR / chance(centre(b));
        }
    }
};

const Prior& prior() {
    static const Prior made;
    return made;
}

// Neighbouring bins with the same rate of positives.
struct Pool {
    double weight, positive;
    int last;
};

// Pool adjacent violators; returns how many pools there are.
int pools_of(const double (*bins)[BIN_SUMS], Pool* pools) {
    int count = 0;
    for (int b = 0; b < SCORE_BINS; ++b) {
        pools[count++] = {prior().weight[b] + bins[b][BIN_WEIGHT], prior().positive[b] + bins[b][BIN_POSITIVE], b};
        while (count > 1) {
            Pool& left = pools[count - 2];
            const Pool& right = pools[count - 1];
            if (left.positive * right.weight < right.positive * left.weight) break;
            left = {left.weight + right.weight, left.positive + right.positive, right.last};
            --count;
        }
    }
    return count;
}

double mean_score(const double (*bins)[BIN_SUMS], int b) {
    const double before = prior().weight[b];
    return (before * centre(b) + bins[b][BIN_SCORES]) / (before + bins[b][BIN_WEIGHT]);
}

// A huge weight of positives rounds the negatives of the prior away.
double log_odds(const Pool& pool) {
    return std::log(pool.positive / std::max(pool.weight - pool.positive, pool.weight * 0x1p-53));
}

}  // namespace

double CalibrationMap::operator()(double score) const {
    if (linear) return shift + score * (score >= 0.0 ? above : below);
    constexpr int last = SCORE_BINS - 1;
    if (score < x[0]) return score + (odds[0] - x[0]);
    if (score >= x[last]) return score + (odds[last] - x[last]);
    const auto next = std::upper_bound(x, x + SCORE_BINS, score) - x;
    return odds[next - 1] + (odds[next] - odds[next - 1]) * ((score - x[next - 1]) / (x[next] - x[next - 1]));
}

Calibrator::Calibrator(CalibrationKind kind) : kind(kind), u{1.0, 0.0, 0.0}, P{}, bins{} {
    for (int i = 0; i < PLATT_NUMBERS; ++i) P[i][i] = 1.0 / (i == 1 ? SHIFT_RIDGE : SLOPE_RIDGE);
}

CalibrationMap Calibrator::map() const {
    CalibrationMap made{};
    made.linear = kind != CalibrationKind::isotonic;
    made.shift = u[1];
    made.above = std::max(u[0] + u[2], 0.0);
    made.below = std::max(u[0] - u[2], 0.0);
    if (made.linear) return made;
    Pool pools[SCORE_BINS];
    const int count = pools_of(bins, pools);
    for (int j = 0, b = 0; j < count; ++j) {
        const double odds = log_odds(pools[j]);
        for (; b <= pools[j].last; ++b) {
            made.x[b] = mean_score(bins, b);
            made.odds[b] = odds;
        }
    }
    return made;
}

void Calibrator::learn(double score, double y, double weight) {
    const double s = within(score, CUT);
    if (kind == CalibrationKind::isotonic) {
        double* bin = bins[bin_of(s)];
        bin[BIN_WEIGHT] += weight;
        bin[BIN_POSITIVE] += y > 0.0 ? weight : 0.0;
        bin[BIN_SCORES] += weight * s;
        return;
    }
    const double v[PLATT_NUMBERS] = {s, 1.0, std::fabs(s)};
    const double c = std::min(weight, LARGEST_WEIGHT), f = (u[0] * v[0] + u[1] * v[1]) + u[2] * v[2];
    const double p = chance(f), b = c * std::max(p * (1.0 - p), LEAST_CURVE);
    double Pv[PLATT_NUMBERS], q = 0.0;
    for (int i = 0; i < PLATT_NUMBERS; ++i) Pv[i] = (P[i][0] * v[0] + P[i][1] * v[1]) + P[i][2] * v[2];
    for (int i = 0; i < PLATT_NUMBERS; ++i) q += v[i] * Pv[i];
    const double d = 1.0 + b * std::max(q, 0.0), step = c * (-y * chance(-y * f)) / d, shrink = b / d;
    bool positive = true;
    for (int i = 0; i < PLATT_NUMBERS; ++i) {
        u[i] -= step * Pv[i];
        for (int j = 0; j < PLATT_NUMBERS; ++j) P[i][j] -= shrink * (Pv[i] * Pv[j]);
        positive = positive && P[i][i] > 0.0;
    }
    if (positive) return;
    // Rounding left a matrix that is not positive: the Hessian is learned anew.
    const Calibrator fresh(kind);
    std::copy(&fresh.P[0][0], &fresh.P[0][0] + PLATT_NUMBERS * PLATT_NUMBERS, &P[0][0]);
}

}  // namespace ftprl
