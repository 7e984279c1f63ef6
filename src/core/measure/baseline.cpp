#include "measure/baseline.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "support/bits.hpp"

namespace ftprl {
namespace {

constexpr double SMALL_PRODUCT = 0x1p-500;  // far above the smallest double divided by the smallest probability
constexpr double LARGEST_STEP = 1e300;      // 1 / tau may be infinite, and infinity times 0 is no number

// A row's loss, and the least that any score could have had.
struct RowLoss {
    double loss;
    double least;
};

double value_of(const Loss* loss, double score, double y, double tau) {
    double tail = 0.0;
    const double value = loss->at(score, y, tau, tail).value;
    return total_loss(value, tail);
}

// Each rule predicts a label, then learns it. No branch depends on a label where that can be helped: many would be
// guessed wrong, and the baseline must cost next to nothing beside the learner.

struct Mean {
    const Loss* loss;
    double tau;

    static double mean(const BaselineState& s) { return s.weight > 0.0 ? s.sum / s.weight : 0.0; }
    RowLoss predict(const BaselineState& s, double y) const { return {value_of(loss, mean(s), y, tau), 0.0}; }
    static void learn(BaselineState& s, double y, double c) { s.sum += c * y; }
};

struct LogMean {
    const Loss* loss;
    double tau;
    double* counts;  // the least loss of labels 0, 1, 2, ..., NaN where it is not known yet

    static double score(const BaselineState& s) {
        return s.sum > 0.0 ? std::log(Mean::mean(s)) : -std::log(s.rows + 1.0);
    }
    RowLoss predict(const BaselineState& s, double y) const { return {value_of(loss, score(s), y, tau), least(y)}; }
    double least(double y) const {
        const int count = y < SMALL_COUNTS ? static_cast<int>(y) : -1;
        if (count < 0 || count != y) return exact(y);
        if (counts[count] != counts[count]) counts[count] = exact(y);
        return counts[count];
    }
    double exact(double y) const { return y > 0.0 ? value_of(loss, std::log(y), y, tau) : 0.0; }
    static void learn(BaselineState& s, double y, double c) { Mean::learn(s, y, c); }
};

struct Quantile {
    double tau;
    double times;     // the row's loss in pinball losses: the absolute loss is two of tau = 1/2
    double up, down;  // the steps for a label above and below

    explicit Quantile(double tau, double times)
        : tau(tau), times(times), up(2.0 / (1.0 - tau)), down(-std::min(2.0 / tau, LARGEST_STEP)) {}

    double pinball(const BaselineState& s, double y) const {
        const double d = y - s.quantile;
        return (d > 0.0 ? tau : tau - 1.0) * d;
    }
    RowLoss predict(const BaselineState& s, double y) const { return {times * pinball(s, y), 0.0}; }
    void learn(BaselineState& s, double y, double c) const {
        if (s.rows == 0.0) {
            s.quantile = s.lowest = s.highest = y;
            return;
        }
        s.lowest = y < s.lowest ? y : s.lowest;
        s.highest = y > s.highest ? y : s.highest;
        const double part = c / (s.weight + c);
        const double rate = y > s.quantile ? part * up : (y < s.quantile ? part * down : 0.0);
        s.since += c;
        s.pinball += (c / s.since) * (pinball(s, y) - s.pinball);
        const double q = s.quantile + s.pinball * rate;
        s.quantile = q < s.lowest ? s.lowest : (q > s.highest ? s.highest : q);
    }
};

// Two classes, y = -1 or 1: their weights.
void learn_class(BaselineState& s, double y, double c) {
    s.positive += c * (0.5 + 0.5 * y);
    s.negative += c * (0.5 - 0.5 * y);
}

struct Majority {
    double losses[3];  // of a wrong class, of none, of the right one

    explicit Majority(const Loss* loss, double tau)
        : losses{value_of(loss, -1.0, 1.0, tau), value_of(loss, 0.0, 1.0, tau), value_of(loss, 1.0, 1.0, tau)} {}

    RowLoss predict(const BaselineState& s, double y) const {
        const double lead = (s.positive - s.negative) * y;
        return {losses[1 + (lead > 0.0) - (lead < 0.0)], 0.0};
    }
    static void learn(BaselineState& s, double y, double c) { learn_class(s, y, c); }
};

struct BaseRate {
    static double probability(const BaselineState& s, double y) {
        const double same = (0.5 + 0.5 * y) * s.positive + (0.5 - 0.5 * y) * s.negative;
        return (same + 0.5) / (s.positive + s.negative + 1.0);
    }
    static RowLoss predict(const BaselineState& s, double y) { return {-std::log(probability(s, y)), 0.0}; }
    static void learn(BaselineState& s, double y, double c) { learn_class(s, y, c); }
};

struct ClassRates {
    std::vector<double>& weights;
    double* met;  // how many classes have a weight

    double probability(const BaselineState& s, double y) const {
        const auto most = static_cast<double>(weights.size());
        const double own = weights[static_cast<std::size_t>(y)];
        const double total = s.weight + 0.5 * (*met + (*met < most ? 1.0 : 0.0));
        return own > 0.0 ? (own + 0.5) / total : 0.5 / total / (most - *met);
    }
    RowLoss predict(const BaselineState& s, double y) const { return {-std::log(probability(s, y)), 0.0}; }
    void learn(BaselineState&, double y, double c) const {
        double& own = weights[static_cast<std::size_t>(y)];
        if (own == 0.0) *met += 1.0;
        own += c;
    }
};

template <class Rule>
void add_loss(BaselineState& s, const Rule& rule, double y, double c) {
    const RowLoss row = rule.predict(s, y);
    s.loss += c * row.loss;
    s.least += c * row.least;
}

// A logarithm is slow: of rows with weight 1 the probabilities are multiplied, and one is taken now and then.
inline void multiply_by(BaselineState& s, double probability) {
    s.product *= probability;
    if (s.product < SMALL_PRODUCT) {
        s.loss -= std::log(s.product);
        s.product = 1.0;
    }
}

void add_loss(BaselineState& s, const BaseRate& rule, double y, double c) {
    if (c != 1.0) {
        s.loss += c * rule.predict(s, y).loss;
        return;
    }
    multiply_by(s, BaseRate::probability(s, y));
}

void add_loss(BaselineState& s, const ClassRates& rule, double y, double c) {
    if (c != 1.0) {
        s.loss += c * rule.predict(s, y).loss;
        return;
    }
    multiply_by(s, rule.probability(s, y));
}

constexpr std::int64_t UNIT_ROWS = 4;  // learned at once

// Whether the next rows all have a label, -1 or 1, and weight 1, as almost all rows of two classes have.
bool are_unit_rows(const double* y, const double* weight) {
    std::uint64_t others = 0;
    for (int j = 0; j < UNIT_ROWS; ++j) {
        others |= (bits_of(y[j]) << 1) ^ (bits_of(1.0) << 1);  // without the sign
        others |= bits_of(weight[j]) ^ bits_of(1.0);
    }
    return others == 0;
}

// The classes while all weights were whole numbers, which can be counted: sums of such numbers are exact in any order.
struct Counts {
    std::int64_t negative, positive;
};

bool are_whole(const BaselineState& s) {
    constexpr double most = 0x1p52;
    const bool counts = s.positive >= 0.0 && s.negative >= 0.0 && s.weight < most;
    return counts && s.positive == std::floor(s.positive) && s.negative == std::floor(s.negative) &&
           s.weight == s.positive + s.negative;
}

// The same numbers as one by one; only the divisions are done side by side, and no sum waits for the one before it.
void learn_unit_rows(BaselineState& s, Counts& n, const double* y, double* losses) {
    double chance[UNIT_ROWS], total[UNIT_ROWS];
    const double before = static_cast<double>(n.positive + n.negative);
    for (int j = 0; j < UNIT_ROWS; ++j) {
        const auto no = static_cast<std::int64_t>(bits_of(y[j]) >> 63);  // arithmetic, where `?` may become a branch
        const std::int64_t same = n.positive ^ ((n.positive ^ n.negative) & -no);
        chance[j] = static_cast<double>(same) + 0.5;
        total[j] = before + (j + 1.0);
        n.positive += 1 - no;
        n.negative += no;
    }
    for (int j = 0; j < UNIT_ROWS; ++j) chance[j] /= total[j];
    for (int j = 0; losses != nullptr && j < UNIT_ROWS; ++j) {
        losses[2 * j] = -std::log(chance[j]);
        losses[2 * j + 1] = 0.0;
    }
    double product = s.product;
    for (const double one : chance) product *= one;
    if (product >= SMALL_PRODUCT) {  // then it was so before each row as well: no probability is above 1
        s.product = product;
        return;
    }
    for (const double one : chance) multiply_by(s, one);
}

template <class Rule>
std::int64_t learn_quickly(BaselineState&, const Rule&, const double*, const double*, std::int64_t, double*) {
    return 0;
}

// Learns the first rows as long as they are unit rows; returns how many that were.
std::int64_t learn_quickly(BaselineState& s, const BaseRate&, const double* y, const double* weight, std::int64_t count,
                           double* losses) {
    if (!are_whole(s)) return 0;
    Counts n = {static_cast<std::int64_t>(s.negative), static_cast<std::int64_t>(s.positive)};
    std::int64_t r = 0;
    for (; r + UNIT_ROWS <= count && are_unit_rows(y + r, weight + r); r += UNIT_ROWS) {
        learn_unit_rows(s, n, y + r, losses == nullptr ? nullptr : losses + 2 * r);
    }
    s.negative = static_cast<double>(n.negative);
    s.positive = static_cast<double>(n.positive);
    s.weight += static_cast<double>(r);
    s.rows += static_cast<double>(r);
    return r;
}

template <class Rule>
void learn_row(BaselineState& s, const Rule& rule, double y, double c, double* losses) {
    const bool labelled = y == y;
    if (losses != nullptr) {
        constexpr double NONE = std::numeric_limits<double>::quiet_NaN();
        const RowLoss row = labelled ? rule.predict(s, y) : RowLoss{NONE, NONE};
        losses[0] = row.loss;
        losses[1] = row.least;
    }
    if (!labelled || !(c > 0.0)) return;
    add_loss(s, rule, y, c);
    rule.learn(s, y, c);
    s.weight += c;
    s.rows += 1.0;
}

template <class Rule>
BaselineState learned(BaselineState s, const Rule& rule, const double* y, const double* weight, std::int64_t count,
                      double* losses) {
    const auto of_row = [losses](std::int64_t r) { return losses == nullptr ? nullptr : losses + 2 * r; };
    for (std::int64_t r = 0; r < count; ++r) {
        r += learn_quickly(s, rule, y + r, weight + r, count - r, of_row(r));
        if (r < count) learn_row(s, rule, y[r], weight[r], of_row(r));
    }
    return s;
}

}  // namespace

Baseline::Baseline(const Loss* loss, double tau, int classes)
    : loss_(loss), tau_(tau), class_weights_(static_cast<std::size_t>(classes)) {
    std::fill(std::begin(counts_), std::end(counts_), std::numeric_limits<double>::quiet_NaN());
}

void Baseline::learn(const double* y, const double* weight, std::int64_t count, double* losses) {
    switch (kind()) {
        case BaselineKind::base_rate:
            state_ = learned(state_, BaseRate{}, y, weight, count, losses);
            break;
        case BaselineKind::mean:
            state_ = learned(state_, Mean{loss_, tau_}, y, weight, count, losses);
            break;
        case BaselineKind::log_mean:
            state_ = learned(state_, LogMean{loss_, tau_, counts_}, y, weight, count, losses);
            break;
        case BaselineKind::median:
            state_ = learned(state_, Quantile(0.5, 2.0), y, weight, count, losses);
            break;
        case BaselineKind::quantile:
            state_ = learned(state_, Quantile(tau_, 1.0), y, weight, count, losses);
            break;
        case BaselineKind::class_rates: {
            const auto met = [](double c) { return c > 0.0; };
            auto classes = static_cast<double>(std::count_if(class_weights_.begin(), class_weights_.end(), met));
            const ClassRates rates{class_weights_, &classes};
            state_ = learned(state_, rates, y, weight, count, losses);
            break;
        }
        case BaselineKind::majority:
            state_ = learned(state_, Majority(loss_, tau_), y, weight, count, losses);
            break;
    }
}

double Baseline::total() const { return state_.loss - std::log(state_.product); }

}  // namespace ftprl
