#include "measure/confidence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ftprl {
namespace {

constexpr int GRID = 24;   // bets: 0.8, 0.4, 0.2, ...
constexpr int LIKELY = 8;  // the first of them are the best for 100 to 10 million rows and share most of the prior
constexpr double LARGEST_BET = 0.8;
constexpr double FIRST_EPOCH = 0.75;  // its part of the error probability; each later one has half of what is left
constexpr double GROWTH = 4.0;        // of the bound
constexpr double CUTS_ALLOWED = 2.0, CUT_PART = 1e-3;
constexpr double GUESSED_PART = 0.25;  // of the bound: a guess near 0 keeps deviations of signed numbers small
constexpr int NEWTON_STEPS = 100;
constexpr double DOUBLING = 1.0 / 64.0;  // of the largest weight, in the number of epochs
constexpr int MOST_DOUBLINGS = LIKELY;   // in one epoch: enough bets are left then for 10 billion rows
constexpr std::int64_t STOP_ROWS = 256, FIRST_SEGMENT = 1024;
constexpr double LEAST_UNIT = 0x1p-440;

struct Bets {
    double size[GRID], cost[GRID], log_prior[GRID];
};

Bets make_bets() {
    Bets bets{};
    double total = 0.0, prior[GRID];
    for (int j = 0; j < GRID; ++j) {
        const double bet = std::ldexp(LARGEST_BET, -j), late = 1.0 + std::max(j - LIKELY, 0);
        bets.size[j] = bet;
        bets.cost[j] = -std::log1p(-bet) - bet;
        total += prior[j] = 1.0 / (late * late);
    }
    for (int j = 0; j < GRID; ++j) bets.log_prior[j] = std::log(prior[j] / total);
    return bets;
}

const Bets& bets() {
    static const Bets made = make_bets();
    return made;
}

// A count as a whole number; a saved state may hold anything.
std::int64_t whole(double count) { return count >= 0.0 && count < 0x1p53 ? static_cast<std::int64_t>(count) : 0; }

bool is_power_of_two(std::int64_t n) { return (n & (n - 1)) == 0; }

bool is_stop(double epoch_rows) {
    const std::int64_t n = whole(epoch_rows);
    return n > 0 && (n % STOP_ROWS == 0 || (n < STOP_ROWS && is_power_of_two(n)));
}

// A sum of squared deviations in units of c. Where squares of so small numbers are lost (losses of labels below 1e-70)
// it is the most that so many rows can make, which is 1 each: intervals are then wider, and hold as well.
double in_units(double squares, double c, double rows) { return c >= LEAST_UNIT ? squares / (c * c) : rows; }

double cut(double x, double low, double high) { return x < low ? low : (x > high ? high : x); }

// The logarithm of the mixture and its slope in s.
struct Wealth {
    double log, slope;
};

Wealth wealth_at(double s, double v, int doublings) {
    const Bets& b = bets();
    const int left = GRID - doublings;
    double terms[GRID], largest = -std::numeric_limits<double>::infinity(), sum = 0.0, moment = 0.0;
    for (int j = 0; j < left; ++j) {
        terms[j] = b.log_prior[j + doublings] + b.size[j] * s - b.cost[j] * v;
        largest = std::max(largest, terms[j]);
    }
    for (int j = 0; j < left; ++j) {
        const double part = std::exp(terms[j] - largest);
        sum += part;
        moment += b.size[j] * part;
    }
    return {largest + std::log(sum), moment / sum};
}

// Sums of whole numbers below are exact in any order.
bool is_whole(double weight) {
    constexpr double most = 0x1p52;
    return weight >= 0.0 && weight < most && weight == std::floor(weight);
}

}  // namespace

double log_wealth(double s, double v, int doublings) { return wealth_at(s, v, doublings).log; }

double largest_deviation(double v, double threshold, int doublings) {
    const Bets& b = bets();
    double s = std::numeric_limits<double>::infinity();  // where the first bet alone has won enough
    for (int j = 0; j + doublings < GRID; ++j) {
        s = std::min(s, (threshold - b.log_prior[j + doublings] + b.cost[j] * v) / b.size[j]);
    }
    for (int i = 0; i < NEWTON_STEPS; ++i) {  // convex and rising: Newton's method comes down to the root
        const Wealth wealth = wealth_at(s, v, doublings);
        const double next = s - (wealth.log - threshold) / wealth.slope;
        if (!(next < s)) break;
        s = next;
    }
    return s;
}

MeanSequence::MeanSequence(double bound, bool is_signed, bool grows, double error_probability)
    : is_signed_(is_signed),
      grows_(grows),
      error_probability_(error_probability),
      reach_(is_signed ? GUESSED_PART : 1.0) {
    state_.bound = bound;
}

void MeanSequence::set_bound(double bound) { state_.bound = bound; }

double MeanSequence::unit() const {
    const double c = is_signed_ ? (1.0 + GUESSED_PART) * state_.bound : state_.bound;
    return c * state_.heaviest;
}

double MeanSequence::threshold(double error_probability) const {
    const double before = epochs();
    const double part = before == 0.0 ? FIRST_EPOCH : (1.0 - FIRST_EPOCH) * std::exp2(-before);
    return -std::log(error_probability * part);
}

double MeanSequence::epochs() const { return std::floor(state_.epoch); }

int MeanSequence::doublings() const {
    const double count = (state_.epoch - epochs()) / DOUBLING;
    return count > 0.0 && count <= MOST_DOUBLINGS ? static_cast<int>(count) : 0;
}

// The next row number at which something depends on the rows so far: a power of two at first, then every 256 rows.
std::int64_t MeanSequence::next_stop() const {
    const std::int64_t n = whole(state_.epoch_rows);
    if (n >= STOP_ROWS) return n - n % STOP_ROWS + STOP_ROWS;
    std::int64_t stop = 1;
    while (stop <= n) stop *= 2;
    return stop;
}

std::int64_t MeanSequence::add(const double* x, const double* weight, std::int64_t count) {
    const double low = lowest(), high = state_.bound, guess = state_.guess;
    const std::int64_t rows = std::min(count, next_stop() - whole(state_.epoch_rows));
    double sum = state_.sum, squares = state_.squares, total = state_.epoch_weight;
    std::int64_t r = 0;
    for (; r < rows && weight[r] <= state_.heaviest && x[r] >= low && x[r] <= high; ++r) {
        const double product = weight[r] * x[r], deviation = weight[r] * (x[r] - guess);
        sum += product;
        squares += deviation * deviation;
        total += weight[r];
    }
    state_.sum = sum;
    state_.squares = squares;
    state_.epoch_weight = total;
    state_.epoch_rows += static_cast<double>(r);
    state_.rows += static_cast<double>(r);
    if (r < rows) {
        add_unusual(x[r], weight[r]);
        ++r;
    }
    look_back();
    return r;
}

// A row that is cut, or heavier than all before; one without a number is passed over.
void MeanSequence::add_unusual(double x, double weight) {
    MeanState& s = state_;
    if (x != x) return;
    if (weight > s.heaviest) allow_weight(weight);
    const double rest = cut(x, lowest(), s.bound), deviation = weight * (rest - s.guess);
    if (rest != x) {
        s.cut_rows += 1.0;
        s.epoch_cuts += 1.0;
        s.cut_off += weight * (x - rest);
    }
    s.sum += weight * rest;
    s.squares += deviation * deviation;
    s.epoch_weight += weight;
    s.epoch_rows += 1.0;
    s.rows += 1.0;
}

void MeanSequence::allow_weight(double weight) {
    MeanState& s = state_;
    double heaviest = s.heaviest;
    int more = 0;
    const int most = MOST_DOUBLINGS - doublings();
    for (; heaviest < weight && more < most; ++more) heaviest *= 2.0;
    if (!(s.epoch_rows > 0.0) || heaviest < weight) {
        start_epoch(s.bound, weight);
    } else {
        s.heaviest = heaviest;
        s.epoch += more * DOUBLING;
    }
}

void MeanSequence::look_back() {
    MeanState& s = state_;
    if (is_stop(s.epoch_rows)) {
        s.guess = cut(s.sum / s.epoch_weight, is_signed_ ? -reach_ * s.bound : 0.0, reach_ * s.bound);
    }
    if (grows_ && s.epoch_cuts > CUTS_ALLOWED + CUT_PART * s.epoch_rows) start_epoch(GROWTH * s.bound, s.heaviest);
}

void MeanSequence::start_epoch(double bound, double heaviest) {
    MeanState& s = state_;
    if (s.epoch_rows > 0.0) {
        const Range now = sums();
        s.lower += now.lower;
        s.upper += now.upper;
        s.total += s.sum;
        s.weight += s.epoch_weight;
        s.epoch = epochs() + 1.0;
        s.epoch_rows = s.epoch_cuts = s.epoch_weight = s.sum = s.squares = 0.0;
    }
    s.epoch = epochs();
    s.bound = bound;
    s.heaviest = heaviest;
}

Range MeanSequence::sums() const {
    const MeanState& s = state_;
    const double c = unit();
    if (!(c > 0.0)) return {s.sum, s.sum};
    const double v = in_units(s.squares, c, s.epoch_rows);
    const double far = c * largest_deviation(v, threshold(0.5 * error_probability_), doublings());
    return {std::max(s.sum - far, lowest() * s.epoch_weight), std::min(s.sum + far, s.bound * s.epoch_weight)};
}

Range MeanSequence::interval() const {
    const double all = state_.weight + state_.epoch_weight;
    const Range now = sums();
    return {(state_.lower + now.lower) / all, (state_.upper + now.upper) / all};
}

bool MeanSequence::is_decided() const {
    const MeanState& s = state_;
    const double c = unit(), enough = threshold(0.5 * error_probability_);
    if (!(c > 0.0)) return false;
    const double above = (s.sum + s.lower) / c, below = -(s.sum + s.upper) / c;
    const double v = in_units(s.squares, c, s.epoch_rows);
    const double far = std::max(above, below);
    if (!(far > 0.0) || far * far < 2.0 * v * enough) return false;  // no bet can have won enough
    return log_wealth(far, v, doublings()) > enough;
}

DriftAlarm::DriftAlarm(double error_probability) : error_probability_(error_probability) {}

void DriftAlarm::look(const MeanSequence& losses) {
    const MeanState& now = losses.state();
    const std::int64_t n = whole(now.epoch_rows);
    if (state_.alarm_row > 0.0 || n % STOP_ROWS != 0) return;
    if (losses.epochs() != state_.epoch) {  // the cut changed: begin anew
        state_.epoch = losses.epochs();
        state_.is_testing = 0.0;
    }
    if (state_.is_testing > 0.0) test(losses);
    if (n >= FIRST_SEGMENT && is_power_of_two(n) && !(state_.alarm_row > 0.0)) start_segment(losses);
}

void DriftAlarm::start_segment(const MeanSequence& losses) {
    const MeanState& now = losses.state();
    const double c = losses.unit(), enough = losses.threshold(0.5 * error_probability_);
    const double v = in_units(now.squares, c, now.epoch_rows);
    const double far = c > 0.0 ? c * largest_deviation(v, enough, losses.doublings()) : 0.0;
    state_.reference = (now.sum + far) / now.epoch_weight;
    state_.segments += 1.0;
    state_.is_testing = 1.0;
    state_.weight = now.epoch_weight;
    state_.sum = now.sum;
    state_.squares = now.squares;
}

void DriftAlarm::test(const MeanSequence& losses) {
    const MeanState& now = losses.state();
    const double c = losses.unit();
    if (!(c > 0.0)) return;
    const double excess = (now.sum - state_.sum - state_.reference * (now.epoch_weight - state_.weight)) / c;
    if (!(excess > 0.0)) return;
    const double needed =
        -std::log(0.5 * error_probability_) + std::log(state_.segments) + std::log(state_.segments + 1.0);
    const double v = in_units(now.squares - state_.squares, c, now.epoch_rows);
    if (excess * excess < 2.0 * v * needed) return;  // no bet can have won enough
    if (log_wealth(excess, v, losses.doublings()) >= needed) state_.alarm_row = now.rows;
}

}  // namespace ftprl
