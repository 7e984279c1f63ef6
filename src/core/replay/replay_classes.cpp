// The mixture of several classes: docs/classes.md, in the same order.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "replay/replay.hpp"

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

// What each expert gives each class: numbers of the experts one after the other for each column.
struct Softmax {
    int columns, experts;
    std::vector<double> logs, chances;

    Softmax(int C, int n) : columns(C), experts(n), logs(std::size_t(C) * n), chances(std::size_t(C) * n) {}

    double& log_of(int c, int j) { return logs[std::size_t(c) * experts + j]; }
    double& chance_of(int c, int j) { return chances[std::size_t(c) * experts + j]; }

    // One expert from its scores, which are `stride` apart; a column counts for as many classes as it stands for.
    void set(int j, const double* scores, int stride, const std::vector<double>& copies) {
        double largest = scores[0], total = 0.0;
        for (int c = 1; c < columns; ++c) largest = std::max(largest, scores[std::size_t(c) * stride]);
        for (int c = 0; c < columns; ++c) {
            log_of(c, j) = scores[std::size_t(c) * stride] - largest;
            chance_of(c, j) = exp_below(log_of(c, j));
            total += copies[c] * chance_of(c, j);
        }
        const double log_total = std::log(total);
        for (int c = 0; c < columns; ++c) {
            log_of(c, j) -= log_total;
            chance_of(c, j) /= total;
        }
    }

    double mixed(int c, const double* w) {
        double sum = 0.0;
        for (int j = 0; j < experts; ++j) sum += w[j] * chance_of(c, j);
        return sum;
    }
};

// The most probable of the classes that are known, the first of equals; NaN before there is one.
double predicted(Softmax& own, const double* w, int known) {
    if (known == 0) return std::numeric_limits<double>::quiet_NaN();
    int best = 0;
    double most = own.mixed(0, w);
    for (int c = 1; c < known; ++c) {
        const double chance = own.mixed(c, w);
        if (!(chance > most)) continue;
        best = c;
        most = chance;
    }
    return best;
}

void step_columns(RowExperts& x, Softmax& own, int y, double weight) {
    for (int c = 0; c < own.columns; ++c) {
        const double p = own.chance_of(c, own.experts - 1);
        const double b = weight * std::max(p * (1.0 - p), FLATTEST);
        columns_step(x.columns.of_stack(c), x.inputs, c == y ? p - 1.0 : p, b, weight);
    }
}

// A Newton step for the coefficients of the scales, with the curvature of one class after the other.
void learn_stack(const Settings& s, const MixtureState& m, const std::vector<double>& seen, Softmax& own, int y,
                 double weight) {
    const int K = s.count();
    double mean[MOST] = {}, d[MOST], Pd[MOST];
    const auto times = [&](const double* v) {
        for (int j = 0; j < K; ++j) {
            Pd[j] = 0.0;
            for (int i = 0; i < K; ++i) Pd[j] += m.P[i * K + j] * v[i];
        }
    };
    for (int c = 0; c < own.columns; ++c) {
        const double p = s.copies[c] * own.chance_of(c, K);
        for (int k = 0; k < K; ++k) mean[k] += p * seen[std::size_t(c) * K + k];
    }
    for (int c = 0; c < own.columns; ++c) {
        for (int k = 0; k < K; ++k) d[k] = seen[std::size_t(c) * K + k] - mean[k];
        times(d);
        double q = 0.0;
        for (int k = 0; k < K; ++k) q += d[k] * Pd[k];
        const double b = weight * std::max(s.copies[c] * own.chance_of(c, K), FLATTEST);
        const double shrink = b / (1.0 + b * std::max(q, 0.0));
        for (int i = 0; i < K; ++i) {
            for (int j = 0; j < K; ++j) m.P[i * K + j] -= shrink * (Pd[i] * Pd[j]);
        }
    }
    for (int k = 0; k < K; ++k) d[k] = mean[k] - seen[std::size_t(y) * K + k];
    times(d);
    bool sound = true;
    for (int k = 0; k < K; ++k) {
        m.u[k] -= weight * Pd[k];
        sound = sound && m.P[k * K + k] > 0.0;
    }
    for (int i = 0; !sound && i < K * K; ++i) m.P[i] = i % (K + 1) == 0 ? 1.0 / RIDGE : 0.0;
}

// The scores of the stack of each column, from the logarithms that the scales give it.
std::vector<double> stacked_scores(const Settings& s, const MixtureState& m, const RowExperts& x,
                                   const std::vector<double>& seen) {
    std::vector<double> scores(s.copies.size());
    for (int c = 0; c < s.columns(); ++c) {
        double& f = scores[c];
        for (int k = 0; k < s.count(); ++k) f += m.u[k] * seen[std::size_t(c) * s.count() + k];
        if (x.columns.started()) f = f + columns_score(x.columns.of_stack(c), x.inputs);
    }
    return scores;
}

// What the scales and the stack make of a row.
struct ClassOpinions {
    Softmax own;
    std::vector<double> seen;  // by the stack

    ClassOpinions(const Settings& s, const MixtureState& m, const double* scores, const RowExperts& x)
        : own(s.columns(), s.count() + (s.stacked ? 1 : 0)), seen(s.copies.size() * s.count()) {
        const int K = s.count();
        for (int k = 0; k < K; ++k) own.set(k, scores + k, K, s.copies);
        for (int c = 0; c < s.columns(); ++c) {
            for (int k = 0; k < K; ++k) seen[std::size_t(c) * K + k] = std::max(own.log_of(c, k), -STACK_CUT);
        }
        if (s.stacked) own.set(K, stacked_scores(s, m, x, seen).data(), 1, s.copies);
    }

    // The loss of the mixture for class y, and of each expert.
    double loss(const MixtureState& m, int y, double* losses, bool& is_direct) {
        for (int j = 0; j < own.experts; ++j) losses[j] = -own.log_of(y, j);
        const double chance = own.mixed(y, m.w);
        is_direct = chance >= LEAST_CHANCE;
        return is_direct ? -std::log(chance) : mixed_loss(m, losses, own.experts);
    }
};

}  // namespace

double score_classes(const Settings& s, const MixtureState& m, const double* scores, const RowExperts& x, double y,
                     double& prediction) {
    ClassOpinions o(s, m, scores, x);
    prediction = predicted(o.own, m.w, s.known_before);
    double losses[MOST + 1];
    bool is_direct = false;
    return o.loss(m, static_cast<int>(y), losses, is_direct);
}

double learn_classes(const Settings& s, const MixtureState& m, const double* scores, RowExperts& x, const Row& row,
                     std::int64_t t, double* slopes, double& prediction) {
    const int K = s.count(), C = s.columns(), n = K + (s.stacked ? 1 : 0), y = static_cast<int>(row.y);
    ClassOpinions opinions(s, m, scores, x);
    Softmax& own = opinions.own;
    prediction = predicted(own, m.w, s.known_before);
    admit(m, row.weight, n);
    double losses[MOST + 1];
    bool directly = false;
    const double loss = opinions.loss(m, y, losses, directly);
    for (int j = 0; j < n; ++j) m.totals[j] += row.weight * losses[j];
    if (n > 1) weigh(m, losses, directly ? &own.chance_of(y, 0) : nullptr, row.weight, static_cast<double>(t), n);
    if (s.stacked) {
        const double weight = std::min(row.weight, HEAVIEST);
        learn_stack(s, m, opinions.seen, own, y, weight);
        if (x.columns.started()) step_columns(x, own, y, weight);
    }
    add_block(m, losses, row.weight, K, t);
    for (int c = 0; c < C; ++c) {
        for (int k = 0; k < K; ++k) slopes[c * K + k] = own.chance_of(c, k) - (c == y ? 1.0 : 0.0);
    }
    return loss;
}

}  // namespace ftprl::replay
