#include "replay/columns.hpp"

#include <algorithm>
#include <cmath>

namespace ftprl::replay {
namespace {

constexpr double DEVIATIONS = 8.0, FARTHEST_DEVIATIONS = 16.0, LEAST_DEVIATION = 0x1p-20, MOVING_PART = 0.25;
constexpr double JOINING_PART = 0.125, LEAST_JOINING = 5.0, LEAVING_PART = 0.0625;
constexpr double SPREAD = 10.0;
constexpr int MOST_ENTRIES = 1024, KEPT_ENTRIES = 512;
constexpr std::int64_t FIRST_CHANGE = 8;

}  // namespace

double Regression::project(const double* x, int n, double* Px) const {
    double terms[MOST_INPUTS];
    for (int i = 0; i < n; ++i) {
        const int own = std::min(i / 4 * 4 + 4, n);  // added up one by one, the others in fours
        Px[i] = 0.0;
        for (int j = 0; j < own; ++j) Px[i] += entry(j, i) * x[j];
        for (int j = own; j < n; ++j) terms[j - own] = entry(i, j) * x[j];
        Px[i] += in_fours(terms, n - own);
    }
    for (int i = 0; i < n; ++i) terms[i] = x[i] * Px[i];
    return std::max(in_fours(terms, n), 0.0);
}

void Regression::step(const double* Px, int n, double pull, double b, double q) const {
    const double d = 1.0 + b * q, along = pull / d, shrink = b / d;
    for (int i = 0; i < n; ++i) {
        u[i] -= along * Px[i];
        for (int j = 0; j < n; ++j) entry(i, j) -= (shrink * Px[std::min(i, j)]) * Px[std::max(i, j)];
    }
}

void Regression::keep_sound(int n) const {
    bool sound = true;
    for (int i = 0; i < n; ++i) sound = sound && entry(i, i) > 0.0;
    if (sound) return;
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) entry(i, j) = i == j ? FIRST_VARIANCE : 0.0;
    }
}

void Regression::reset_input(int j, double variance) const {
    for (int i = 0; i < stride; ++i) entry(i, j) = entry(j, i) = 0.0;
    entry(j, j) = variance;
}

// The column has another mean and deviation from now on; the score of a row stays as it was.
void Regression::move_column(int j, double shift, double ratio) const {
    u[constant] += u[j] * shift;
    u[j] *= ratio;
    for (int i = 0; i < stride; ++i) entry(constant, i) += shift * entry(j, i);
    for (int i = 0; i < stride; ++i) entry(i, constant) += shift * entry(i, j);
    reset_input(j, FIRST_VARIANCE);
}

Columns::Columns(const Arrays& arrays)
    : facts_(arrays.numbers("columns.facts", 3 * MOST_COLUMNS)),
      table_(arrays.numbers("columns.table", 5 * MOST_ENTRIES)),
      rows_(arrays.numbers("columns.rows", 1)),
      sizes_(arrays.numbers("columns.sizes", 2)) {
    for (int j = 0; j < used(); ++j) {
        if (facts_of(j)[0] > 0.0) column_of_[static_cast<std::int32_t>(facts_of(j)[0]) - 1] = j;
    }
    for (int i = 0; i < entries(); ++i) entry_at_[static_cast<std::int32_t>(entry_of(i)[0])] = i;
}

void Columns::read(const Row& row, double* x) const {
    std::fill(x, x + used(), 0.0);
    for (std::int64_t i = 0; i < row.size; ++i) {
        const auto own = column_of_.find(row.cell[i]);
        if (own != column_of_.end()) x[own->second] = row.value[i];
    }
    for (int j = 0; j < used(); ++j) {
        const double *own = facts_of(j), mean = own[1], deviation = own[2];
        x[j] = own[0] > 0.0 ? cut((x[j] - mean) / deviation, -DEVIATIONS, DEVIATIONS) : 0.0;
    }
}

// Forget features that are no columns, the rarest first, until there is room again.
void Columns::forget() {
    for (double limit = 1.0; entries() > KEPT_ENTRIES; limit *= 2.0) {
        int kept = 0;
        for (int i = 0; i < entries(); ++i) {
            const double* own = entry_of(i);
            if (column_of_.count(static_cast<std::int32_t>(own[0])) == 0 && own[1] <= limit) continue;
            std::copy(own, own + 5, entry_of(kept++));
        }
        sizes_[1] = kept;
    }
    entry_at_.clear();
    for (int i = 0; i < entries(); ++i) entry_at_[static_cast<std::int32_t>(entry_of(i)[0])] = i;
}

void Columns::count(std::int32_t feature, double value) {
    const auto column = column_of_.find(feature);
    const double* facts = column == column_of_.end() ? nullptr : facts_of(column->second);
    if (facts != nullptr) {
        const double far = FARTHEST_DEVIATIONS * facts[2];
        value = cut(value, facts[1] - far, facts[1] + far);
    }
    auto found = entry_at_.find(feature);
    if (found == entry_at_.end()) {
        if (entries() == MOST_ENTRIES) forget();
        double* entry = entry_of(entries());
        entry[0] = static_cast<double>(feature);
        entry[1] = entry[2] = entry[3] = 0.0;
        entry[4] = facts != nullptr ? facts[1] : value;
        found = entry_at_.emplace(feature, entries()).first;
        sizes_[1] += 1.0;
    }
    double* entry = entry_of(found->second);
    const double d = value - entry[4];
    entry[1] += 1.0;
    entry[2] += d;
    entry[3] += d * d;
}

void Columns::leave(const std::vector<Regression>& followers) {
    for (int j = 0; j < used(); ++j) {
        double* own = facts_of(j);
        if (!(own[0] > 0.0)) continue;
        const auto feature = static_cast<std::int32_t>(own[0]) - 1;
        const auto found = entry_at_.find(feature);
        const double count = found == entry_at_.end() ? 0.0 : entry_of(found->second)[1];
        if (!(count < LEAVING_PART * rows_[0])) continue;
        column_of_.erase(feature);
        std::fill(own, own + 3, 0.0);
        for (const Regression& follower : followers) {
            follower.u[follower.constant + 1 + j] = 0.0;
            follower.reset_input(follower.constant + 1 + j, FIRST_VARIANCE);
        }
    }
}

void Columns::join(const std::vector<Regression>& followers) {
    const double r = rows_[0];
    std::vector<int> order(static_cast<std::size_t>(entries())), joined;
    for (int i = 0; i < entries(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return entry_of(a)[1] > entry_of(b)[1]; });
    for (const int i : order) {
        const double n = entry_of(i)[1], a = entry_of(i)[2], b = entry_of(i)[3], first = entry_of(i)[4];
        if (n < std::max(JOINING_PART * r, LEAST_JOINING)) break;
        const double mean = (a + n * first) / r;
        const double variance =
            n == r ? b / r - a / r * (a / r) : (b + 2.0 * first * a + n * first * first) / r - mean * mean;
        const double deviation = std::sqrt(std::max(variance, 0.0));
        if (deviation <= LEAST_DEVIATION * std::fabs(mean)) continue;
        const auto feature = static_cast<std::int32_t>(entry_of(i)[0]);
        const auto column = column_of_.find(feature);
        int j = column == column_of_.end() ? -1 : column->second;
        if (j >= 0) {  // an outlier had been in its statistics
            if (!(deviation < MOVING_PART * facts_of(j)[2])) continue;
            const double shift = (mean - facts_of(j)[1]) / facts_of(j)[2], ratio = deviation / facts_of(j)[2];
            for (const Regression& one : followers) one.move_column(one.constant + 1 + j, shift, ratio);
        } else {
            for (j = 0; j < used() && facts_of(j)[0] > 0.0;) ++j;
            if (j == MOST_COLUMNS) continue;
            sizes_[0] = std::max(sizes_[0], j + 1.0);
            column_of_[feature] = j;
            joined.push_back(j);
        }
        facts_of(j)[0] = feature + 1.0;
        facts_of(j)[1] = mean;
        facts_of(j)[2] = deviation;
    }
    const double variance = std::min(FIRST_VARIANCE, SPREAD / static_cast<double>(column_of_.size()));
    for (const int j : joined) {
        for (const Regression& follower : followers) follower.reset_input(follower.constant + 1 + j, variance);
    }
}

void Columns::learn(const Row& row, std::int64_t t, const std::vector<Regression>& followers) {
    rows_[0] += 1.0;
    for (std::int64_t i = 0; i < row.size; ++i) count(row.cell[i], row.value[i]);
    if (t < FIRST_CHANGE || !is_power_of_two(t)) return;
    leave(followers);
    if (t > FIRST_CHANGE) join(followers);
    entry_at_.clear();
    sizes_[1] = rows_[0] = 0.0;
}

}  // namespace ftprl::replay
