#include "replay/mixture.hpp"

#include <algorithm>
#include <cmath>

namespace ftprl::replay {
namespace {

constexpr double LARGEST_SHARE = 0x1p-10;
constexpr double LEAST_CHANCE = 0x1p-900;   // a mixture that gave the label less works with logarithms
constexpr double LEAST_REST = 0x1p-20;      // weight of all other experts, to say what they would have lost
constexpr double LEAST_WEIGHT = 0x1p-1000;  // the majority may have all the weight but that of the mixture
constexpr double LEAST_GAP = 0x1p-30;       // part of the loss so far below which a gap is rounding
constexpr double CAUTION = 24.0, SURE_GAP = 4.0, LARGEST_POWER = 32.0;  // of the lead over the majority
constexpr int WINDOW = 4, BLOCK = 1024;
constexpr std::int64_t FIRST_OCTAVE = 16;  // of PAID
enum Fact { GAP, LARGEST_GAP, PAID, LARGEST_ROW, LEAD, LEAD_GAP, FACTS };
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

double least_of(const double* a, int n) { return *std::min_element(a, a + n); }

double dot(const double* a, const double* b, int n) {
    double sum = 0.0;
    for (int j = 0; j < n; ++j) sum += a[j] * b[j];
    return sum;
}

// The part of the weights that is shared out after row t.
double share_after(double t) { return std::min(LARGEST_SHARE, 1.0 / (t + 1.0)); }

}  // namespace

double log_loss(double score, double y) {
    const double v = -y * score;
    return std::max(v, 0.0) + log_of_one_plus(std::exp(-std::fabs(v)));
}

Mixture::Mixture(const Settings& settings, const Arrays& arrays)
    : s_(settings), count_(static_cast<int>(s_.experts.size())) {
    const std::size_t n = s_.experts.size(), K = s_.scales.size();
    w_ = arrays.numbers("mixture.w", n);
    totals_ = arrays.numbers("mixture.totals", n);
    facts_ = arrays.numbers("mixture.facts", FACTS);
    octave_ = arrays.numbers("mixture.octave", 2 * n);
    without_ = arrays.numbers("mixture.without", 2 * n);
    octave_loss_ = arrays.numbers("mixture.octave_loss", 2);
    block_ = arrays.numbers("mixture.block", K);
    windows_ = arrays.numbers("mixture.windows", K > WINDOW ? 3 * (K - 2) : 0);
    offset_ = std::max(s_.expert("offset"), s_.expert("majority"));
    for (const char* name : {"columns", "drift", "coin"}) {
        if (s_.has(name)) droppable_.push_back(s_.expert(name));
    }
}

std::vector<double> Mixture::weights(bool learns) const {
    std::vector<double> w(w_, w_ + count_);
    const int drift = s_.expert("drift");
    if (learns || drift < 0) return w;
    w[drift] = 0.0;
    double whole = 0.0;
    for (const double one : w) whole += one;
    for (double& one : w) one /= whole;
    return w;
}

double Mixture::least_other(const double* losses, int j) const {
    double least = LARGEST;
    for (int i = 0; i < count_; ++i) {
        if (i != j) least = std::min(least, losses[i]);
    }
    return least;
}

void Mixture::add_octave(const double* losses, double loss, const double* without, double weight, std::int64_t t) {
    for (int j = 0; j < count_; ++j) {
        octave_[j] += weight * losses[j];
        without_[j] += weight * without[j];
    }
    octave_loss_[0] += weight * loss;
    if (!is_power_of_two(t)) return;
    for (double* sums : {octave_, without_}) {
        std::copy(sums, sums + count_, sums + count_);
        std::fill(sums, sums + count_, 0.0);
    }
    octave_loss_[1] = octave_loss_[0];
    octave_loss_[0] = 0.0;
}

void Mixture::add_block(const double* losses, double weight, std::int64_t t) {
    const int K = s_.count();
    if (K <= WINDOW) return;
    for (int k = 0; k < K; ++k) block_[k] += weight * losses[k];
    if (t % BLOCK != 0) return;
    const int width = K - WINDOW + 2;
    double *before = windows_, *current = before + width, *latest = current + width;
    if (is_power_of_two(t - BLOCK)) {
        std::copy(current, current + width, before);
        std::fill(current, current + width, 0.0);
    }
    for (int i = 0; i <= K - WINDOW; ++i) current[i] += least_of(block_ + i, WINDOW);
    current[width - 1] += least_of(block_, K);
    for (int i = 0; is_power_of_two(t) && i < width; ++i) latest[i] = before[i] + current[i];
    std::fill(block_, block_ + K, 0.0);
}

// ---- probabilities: the log loss, and several classes ----

double Mixture::loss(const double* w, const Opinions& o) const {
    const double total = dot(w, o.chances, count_);
    if (total >= LEAST_CHANCE) return -std::log(total);
    double low = LARGEST, sum = 0.0;  // an expert that is left out may have a loss far below all others
    for (int j = 0; j < count_; ++j) low = w[j] > 0.0 ? std::min(low, o.losses[j]) : low;
    for (int j = 0; j < count_; ++j) sum += w[j] > 0.0 ? w[j] * std::exp(low - o.losses[j]) : 0.0;
    return low - std::log(sum);
}

// Rescale the weights for a new largest weight of a row.
void Mixture::admit(double weight) {
    if (!(weight > facts_[LARGEST_ROW])) return;
    const double ratio = facts_[LARGEST_ROW] / weight;
    facts_[LARGEST_ROW] = weight;
    double whole = 0.0;
    for (int j = 0; j < count_; ++j) {
        w_[j] = std::pow(w_[j], ratio);
        whole += w_[j];
    }
    for (int j = 0; j < count_; ++j) w_[j] = w_[j] / whole;
}

void Mixture::weigh(const Opinions& o, bool is_direct, double weight, double t) {
    const double heat = facts_[LARGEST_ROW], low = least_of(o.losses, count_);
    const double rate = heat > 0.0 ? std::min(weight / heat, LARGEST) : 0.0;
    double w[MOST_EXPERTS], whole = 0.0;
    for (int j = 0; j < count_; ++j) {
        w[j] = w_[j] * (is_direct && rate == 1.0 ? o.chances[j] : std::exp(rate * (low - o.losses[j])));
        whole += w[j];
    }
    const double a = share_after(t);
    for (int j = 0; j < count_; ++j) w_[j] = (1.0 - a) * (w[j] / whole) + a / count_;
}

double Mixture::learn_chances(const Opinions& o, double weight, double t) {
    admit(weight);
    const double total = dot(w_, o.chances, count_), own = loss(w_, o);
    double without[MOST_EXPERTS] = {};
    for (const int j : droppable_) {
        const double rest = 1.0 - w_[j], left = (total - w_[j] * o.chances[j]) / rest;
        const bool is_sound = total >= LEAST_CHANCE && rest >= LEAST_REST && left > LEAST_CHANCE;
        without[j] = is_sound ? -std::log(left) : least_other(o.losses, j);
    }
    for (int j = 0; j < count_; ++j) totals_[j] += weight * o.losses[j];
    add_octave(o.losses, own, without, weight, static_cast<std::int64_t>(t));
    add_block(o.losses, weight, static_cast<std::int64_t>(t));
    if (count_ > 1) weigh(o, total >= LEAST_CHANCE, weight, t);
    return own;
}

// ---- scores ----

double Mixture::predict(const double* w, const Opinions& o) const { return dot(w, o.scores, count_); }

// AdaHedge: the weights after a row, and the rate, which falls as the mixture loses more than its best expert.
void Mixture::charge(const LabelState& labels, const Opinions& o, double mean, double* own, double y, double weight,
                     double t) {
    const int n = count_;
    const double label = known_label(s_, labels, y), ln = std::log(static_cast<double>(n)), tau = s_.quantile();
    double losses[MOST_EXPERTS] = {}, powers[MOST_EXPERTS] = {}, w[MOST_EXPERTS] = {}, whole = 0.0;
    for (int j = 0; j < n; ++j) losses[j] = weight * s_.loss->value(o.scores[j], label, tau);
    const double mixture_loss = weight * s_.loss->value(mean, label, tau), low = least_of(losses, n);
    const double D = facts_[LARGEST_GAP];
    facts_[PAID] += weight * std::fabs(s_.loss->value(mean, y, tau));
    if (D == 0.0) {
        if (mixture_loss - low > LEAST_GAP * facts_[PAID]) facts_[GAP] = facts_[LARGEST_GAP] = mixture_loss - low;
        return;
    }
    for (int j = 0; j < n; ++j) {
        powers[j] = (low - losses[j]) / D * ln;
        w[j] = own[j] * std::exp(powers[j]);
        whole += w[j];
    }
    const double gap = std::max(facts_[GAP] + (mixture_loss - (low - std::log(whole) * D / ln)), 0.0);
    facts_[GAP] = gap;
    if (gap > D) {  // from the weights before the row: at the rate that turned out too large, those after may be 0
        const double ratio = D / gap;
        whole = 0.0;
        for (int j = 0; j < n; ++j) {
            w[j] = std::pow(own[j], ratio) * std::exp(ratio * powers[j]);
            whole += w[j];
        }
        facts_[LARGEST_GAP] = gap;
    }
    const double a = share_after(t);
    for (int j = 0; j < n; ++j) own[j] = (1.0 - a) * (w[j] / whole) + a / n;
}

double Mixture::lead_rate() const { return 1.0 / std::max(1.0, facts_[LEAD_GAP] / SURE_GAP); }
double Mixture::trusted_part() const { return 1.0 / (1.0 + CAUTION * std::exp(-lead_rate() * facts_[LEAD])); }

// Two classes: the majority is predicted as well as the mixture, which counts by its lead.
void Mixture::charge_classes(const LabelState& labels, const Opinions& o, double y, double weight, double t) {
    const int n = count_;
    const double part = trusted_part(), tau = s_.quantile();
    double own[MOST_EXPERTS], whole = 0.0, mean = 0.0;
    for (int j = 0; j < n; ++j) {
        own[j] = std::max(j == offset_ ? w_[j] - (1.0 - part) : w_[j], LEAST_WEIGHT);
        whole += own[j];
    }
    for (int j = 0; j < n; ++j) {
        own[j] /= whole;
        mean += own[j] * o.scores[j];
    }
    charge(labels, o, mean, own, y, weight, t);
    const double advantage = weight * (s_.loss->value(o.scores[offset_], y, tau) - s_.loss->value(mean, y, tau));
    const double rate = lead_rate(), power = cut(rate * advantage, -LARGEST_POWER, LARGEST_POWER);
    const double gap = (std::log((1.0 - part) + part * std::exp(power)) - part * power) / rate;
    facts_[LEAD_GAP] += std::max(gap, 0.0);
    facts_[LEAD] = std::max(facts_[LEAD] + advantage, 0.0);
    const double now = trusted_part();
    for (int j = 0; j < n; ++j) w_[j] = now * own[j];
    w_[offset_] += 1.0 - now;
}

void Mixture::learn_scores(const LabelState& labels, const Opinions& o, double prediction, double y, double weight,
                           double t) {
    const double least = s_.loss->least(y), tau = s_.quantile();
    const auto number = static_cast<std::int64_t>(t);
    double losses[MOST_EXPERTS] = {}, without[MOST_EXPERTS] = {};
    for (int j = 0; j < count_; ++j) {
        totals_[j] += weight * o.losses[j];
        losses[j] = o.losses[j] - least;
    }
    for (const int j : droppable_) {
        const double rest = 1.0 - w_[j], left = (prediction - w_[j] * o.scores[j]) / rest;
        without[j] = rest >= LEAST_REST ? s_.loss->value(left, y, tau) - least : least_other(losses, j);
    }
    add_octave(losses, s_.loss->value(prediction, y, tau) - least, without, weight, number);
    add_block(losses, weight, number);
    facts_[LARGEST_ROW] = std::max(facts_[LARGEST_ROW], weight);
    if (t > 1.0 && s_.loss->has_offset()) charge(labels, o, prediction, w_, y, weight, t);
    if (t > 1.0 && !s_.loss->has_offset()) charge_classes(labels, o, y, weight, t);
    if (number >= FIRST_OCTAVE && is_power_of_two(number)) facts_[PAID] = 0.0;
}

}  // namespace ftprl::replay
