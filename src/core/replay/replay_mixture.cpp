// The mixture of several scales with the log loss: docs/scales.md, in the same order.
#include <algorithm>
#include <cmath>

#include "replay/replay.hpp"

namespace ftprl::replay {
namespace {

constexpr double LARGEST_SHARE = 0x1p-10;
constexpr int WINDOW = 4, BLOCK = 1024;
constexpr double ATANH[] = {0x1.5555555555555p-1, 0x1.9999999999944p-2, 0x1.2492492499d46p-2, 0x1.c71c71bedea97p-3,
                            0x1.745d19937b1fcp-3, 0x1.3b13515f6f9efp-3, 0x1.111abdc8abe16p-3, 0x1.e0a2d581ab68fp-4,
                            0x1.bc37f0140c19ep-4, 0x1.32e0d25c9c761p-4, 0x1.401d3e65cdc48p-3};

// log(1 + e) for e from 0 to 1: 2 atanh(s), s = e / (2 + e).
double log_of_one_plus(double e) {
    const double s = e / (2.0 + e), w = s * s;
    double q = ATANH[10];
    for (int i = 9; i >= 0; --i) q = q * w + ATANH[i];
    return s * (2.0 + w * q);
}

double log_loss(double score, double y) {
    const double v = -y * score;
    return std::max(v, 0.0) + log_of_one_plus(std::exp(-std::fabs(v)));
}

double chance_of(double v) {
    const double e = std::exp(-std::fabs(v));
    return (v < 0.0 ? e : 1.0) / (1.0 + e);
}

double least_of(const double* a, int n) { return *std::min_element(a, a + n); }

void normalise(double* w, int n) {
    double whole = 0.0;
    for (int j = 0; j < n; ++j) whole += w[j];
    for (int j = 0; j < n; ++j) w[j] = w[j] / whole;
}

void learn_stack(const Settings& s, const MixtureState& m, const double* scores, const RowExperts& x, double f,
                 double y, double row_weight) {
    const double weight = std::min(row_weight, HEAVIEST);
    double v[STACK_INPUTS];
    for (int k = 0; k < s.count(); ++k) v[k] = cut(scores[k], -STACK_CUT, STACK_CUT);
    const double e = std::exp(-std::fabs(f)), p = (f >= 0.0 ? 1.0 : e) / (1.0 + e);
    stack_step(m, x, v, s.count(), 1.0, log_slope(f, y), weight * std::max(p * (1.0 - p), FLATTEST), weight);
}

// The losses of all experts for a row, and the chances they give its label.
struct Opinions {
    double losses[MOST + 2] = {}, chances[MOST + 2] = {}, stack = 0.0;
    int count;

    Opinions(const Settings& s, const MixtureState& m, const double* scores, const RowExperts& x, double y)
        : count(s.count() + (s.stacked ? 1 : 0) + (s.coin ? 1 : 0)) {
        const int K = s.count();
        double experts[MOST + 2] = {};
        const double* u = x.columns.started() ? x.columns.u : m.u;
        for (int k = 0; k < K; ++k) experts[k] = scores[k];
        for (int k = 0; s.stacked && k < K; ++k) stack += u[k] * cut(scores[k], -STACK_CUT, STACK_CUT);
        if (x.columns.started()) stack = stack + columns_score(x.columns, x.inputs);
        if (s.stacked) experts[K] = stack;
        if (s.coin) experts[count - 1] = x.bet;
        for (int j = 0; j < count; ++j) {
            losses[j] = log_loss(experts[j], y);
            chances[j] = chance_of(y * experts[j]);
        }
    }
};

// The loss of the mixture, from the chance that it gives the label unless that is too small.
struct MixedLoss {
    bool is_direct;
    double value;

    MixedLoss(const Opinions& o, const MixtureState& m) {
        double total = 0.0;
        for (int j = 0; j < o.count; ++j) total += m.w[j] * o.chances[j];
        is_direct = total >= LEAST_CHANCE;
        value = is_direct ? -std::log(total) : mixed_loss(m, o.losses, o.count);
    }
};

}  // namespace

double share_after(double t) { return std::min(LARGEST_SHARE, 1.0 / (t + 1.0)); }

void admit(const MixtureState& m, double weight, int n) {
    if (!(weight > m.facts[0])) return;
    const double ratio = m.facts[0] / weight;
    m.facts[0] = weight;
    for (int j = 0; j < n; ++j) m.w[j] = std::pow(m.w[j], ratio);
    normalise(m.w, n);
}

double mixed_loss(const MixtureState& m, const double* losses, int n) {
    const double low = least_of(losses, n);
    double sum = 0.0;
    for (int j = 0; j < n; ++j) sum += m.w[j] * std::exp(low - losses[j]);
    return low - std::log(sum);
}

void weigh(const MixtureState& m, const double* losses, const double* chances, double weight, double t, int n) {
    const double heat = m.facts[0], low = least_of(losses, n);
    const double rate = heat > 0.0 ? std::min(weight / heat, LARGEST) : 0.0;
    double w[MOST + 2], whole = 0.0;
    for (int j = 0; j < n; ++j) {
        const double power = chances == nullptr || rate != 1.0 ? std::exp(rate * (low - losses[j])) : chances[j];
        w[j] = m.w[j] * power;
        whole += w[j];
    }
    const double a = share_after(t);
    for (int j = 0; j < n; ++j) m.w[j] = (1.0 - a) * (w[j] / whole) + a / n;
}

void newton_step(const MixtureState& m, const double* v, int size, double slope, double curvature, double weight) {
    double Pv[MOST + 2], q = 0.0;
    for (int i = 0; i < size; ++i) {
        double sum = 0.0;
        for (int j = 0; j < size; ++j) sum += m.P[i * size + j] * v[j];
        Pv[i] = sum;
    }
    for (int i = 0; i < size; ++i) q += v[i] * Pv[i];
    const double d = 1.0 + curvature * std::max(q, 0.0), along = weight * slope / d;
    bool sound = true;
    for (int i = 0; i < size; ++i) {
        m.u[i] -= along * Pv[i];
        for (int j = 0; j < size; ++j) m.P[i * size + j] -= curvature / d * (Pv[i] * Pv[j]);
        sound = sound && m.P[i * size + i] > 0.0;
    }
    for (int i = 0; !sound && i < size * size; ++i) m.P[i] = i % (size + 1) == 0 ? 1.0 / RIDGE : 0.0;
}

void add_block(const MixtureState& m, const double* losses, double weight, int K, std::int64_t t) {
    if (K <= WINDOW) return;
    for (int k = 0; k < K; ++k) m.block[k] += weight * losses[k];
    if (t % BLOCK != 0) return;
    const int width = K - WINDOW + 2;
    double *before = m.windows, *current = before + width, *latest = current + width;
    if (is_power_of_two(t - BLOCK)) {
        std::copy(current, current + width, before);
        std::fill(current, current + width, 0.0);
    }
    for (int i = 0; i <= K - WINDOW; ++i) current[i] += least_of(m.block + i, WINDOW);
    current[width - 1] += least_of(m.block, K);
    for (int i = 0; is_power_of_two(t) && i < width; ++i) latest[i] = before[i] + current[i];
    std::fill(m.block, m.block + K, 0.0);
}

void stack_step(const MixtureState& m, const RowExperts& x, double* v, int size, double ratio, double slope,
                double curvature, double weight) {
    if (!x.columns.started()) return newton_step(m, v, size, slope, curvature, weight);
    for (int j = 0; j <= x.columns.active(); ++j) v[size + j] = ratio * x.inputs[j];
    columns_step(x.columns, v, slope, curvature, weight);
}

double score_mixture(const Settings& s, const MixtureState& m, const double* scores, const RowExperts& x, double y) {
    return MixedLoss(Opinions(s, m, scores, x, y), m).value;
}

double learn_mixture(const Settings& s, const MixtureState& m, const double* scores, RowExperts& x, double y,
                     double weight, double t) {
    const Opinions o(s, m, scores, x, y);
    admit(m, weight, o.count);
    const MixedLoss mixed(o, m);
    weigh(m, o.losses, mixed.is_direct ? o.chances : nullptr, weight, t, o.count);
    if (s.stacked) learn_stack(s, m, scores, x, o.stack, y, weight);
    if (s.coin) x.slope = weight * log_slope(x.bet, y);
    for (int j = 0; j < o.count; ++j) m.totals[j] += weight * o.losses[j];
    add_block(m, o.losses, weight, s.count(), static_cast<std::int64_t>(t));
    return mixed.value;
}

}  // namespace ftprl::replay
