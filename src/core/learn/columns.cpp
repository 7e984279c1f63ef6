#include "learn/columns.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace ftprl {
namespace {

constexpr double CUT = 8.0;                  // values are cut to this many deviations from their mean
constexpr double FAR_VALUE = 16.0;           // and counted as no further than this
constexpr double OFTEN = 0.125;              // part of the rows that a new column's feature needs
constexpr double LEAST_ROWS = 5.0;           // but at least so many
constexpr double LEAST_DEVIATION = 0x1p-20;  // of the mean: values that differ less are a constant
constexpr double OUTLIER = 0.25;             // a deviation that falls below this part had an outlier in it
constexpr double SPREAD = 10.0, LARGEST_VARIANCE = 1.0 / 4.0;  // of new weights
constexpr std::int64_t FIRST_JOINING = 16;

double value_at(const Rows& rows, std::int64_t p) {
    return rows.wide ? static_cast<const double*>(rows.values)[p] : static_cast<const float*>(rows.values)[p];
}

std::uint32_t hash_of(std::uint32_t slot, int bits) { return (slot * 0x9E3779B1u) >> (32 - bits); }

double cut(double v, double low, double high) { return v < low ? low : (high < v ? high : v); }

}  // namespace

// ---- values of a row ----

// A column without a feature has the deviation 0 and says nothing.
void Columns::standardise(const double* values, double* to) const {
    to[0] = 1.0;
    for (int j = 0; j < used_; ++j) {
        const double deviation = facts_[j][DEVIATION];
        to[1 + j] = deviation > 0.0 ? cut((values[j] - facts_[j][CENTRE]) / deviation, -CUT, CUT) : 0.0;
    }
    for (int j = used_ + 1; j % 4 != 0; ++j) to[j] = 0.0;
}

// A hash in which no two columns meet: it decides nothing but the time that a look takes.
Columns::Reader::Reader(const Columns& columns) : columns_(columns) {
    for (bool fits = false; !fits; multiplier_ += 2) {
        std::fill(std::begin(place_), std::end(place_), static_cast<std::uint8_t>(MOST_COLUMNS));
        fits = true;
        for (int j = 0; j < columns.used_ && fits; ++j) {
            if (columns.facts_[j][COLUMN_SLOT] == 0.0) continue;
            slots_[j] = static_cast<std::uint32_t>(columns.facts_[j][COLUMN_SLOT] - 1.0);
            std::uint8_t& place = place_[(slots_[j] * multiplier_) >> (32 - BITS)];
            fits = place == MOST_COLUMNS || slots_[place] == slots_[j];
            place = static_cast<std::uint8_t>(j);
        }
    }
    multiplier_ -= 2;
}

void Columns::Reader::read(const Rows& rows, const std::uint32_t* slots, std::int64_t r, double* to) const {
    double values[MOST_COLUMNS + 1] = {};
    for (std::int64_t p = rows.indptr[r]; p < rows.indptr[r + 1]; ++p) {
        const int j = place_[(slots[p] * multiplier_) >> (32 - BITS)];
        if (j != MOST_COLUMNS && slots_[j] == slots[p]) values[j] = value_at(rows, p);
    }
    columns_.standardise(values, to);
}

void Columns::read_dense(const double* row, std::int64_t width, double* to) const {
    double values[MOST_COLUMNS];
    for (int j = 0; j < used_; ++j) {
        const auto slot = static_cast<std::int64_t>(facts_[j][COLUMN_SLOT]) - 1;
        values[j] = slot >= 0 && slot < width ? row[slot] : 0.0;
    }
    standardise(values, to);
}

void Columns::learn(const Rows& rows, const std::uint32_t* slots, std::int64_t r, double* to) {
    if (!is_indexed_) index();
    double values[MOST_COLUMNS] = {};
    rows_ += 1.0;
    for (std::int64_t p = rows.indptr[r]; p < rows.indptr[r + 1]; ++p) {
        double v = value_at(rows, p);
        const int i = find(slots[p], v), j = column_[i];
        if (j >= 0) {
            values[j] = v;
            const double far = FAR_VALUE * facts_[j][DEVIATION];
            v = cut(v, facts_[j][CENTRE] - far, facts_[j][CENTRE] + far);
        }
        double* const own = watched_[i];
        const double distance = v - own[FIRST_VALUE];
        own[MET] += 1.0;
        own[DISTANCES] += distance;
        own[SQUARES] += distance * distance;
    }
    standardise(values, to);
}

// ---- the features that are counted ----

int Columns::column_of(std::uint32_t slot) const {
    for (std::uint32_t at = hash_of(slot, COLUMN_BITS); columns_[at] != 0; at = (at + 1) % std::size(columns_)) {
        if (facts_[columns_[at] - 1][COLUMN_SLOT] == static_cast<double>(slot) + 1.0) return columns_[at] - 1;
    }
    return -1;
}

int Columns::find(std::uint32_t slot, double value) {
    for (std::uint32_t at = hash_of(slot, INDEX_BITS);; at = (at + 1) % std::size(index_)) {
        const int i = index_[at] - 1;
        if (i < 0) return add(slot, value);
        if (watched_[i][WATCHED_SLOT] == static_cast<double>(slot)) return i;
    }
}

void Columns::place(std::uint32_t slot, int number) {
    std::uint32_t at = hash_of(slot, INDEX_BITS);
    while (index_[at] != 0) at = (at + 1) % std::size(index_);
    index_[at] = static_cast<std::uint16_t>(number + 1);
}

int Columns::add(std::uint32_t slot, double value) {
    if (count_ == MOST_WATCHED) forget();
    const int i = count_++, j = column_of(slot);
    column_[i] = static_cast<std::int16_t>(j);
    double* const own = watched_[i];
    std::fill(own, own + WATCHED_FACTS, 0.0);
    own[WATCHED_SLOT] = slot;
    own[FIRST_VALUE] = j >= 0 ? facts_[j][CENTRE] : value;
    place(slot, i);
    return i;
}

// Rare features make space; the others keep their order.
void Columns::forget() {
    for (double limit = 1.0; count_ > MOST_WATCHED / 2; limit *= 2.0) {
        int kept = 0;
        for (int i = 0; i < count_; ++i) {
            if (column_[i] < 0 && watched_[i][MET] <= limit) continue;
            std::copy(watched_[i], watched_[i] + WATCHED_FACTS, watched_[kept]);
            column_[kept++] = column_[i];
        }
        count_ = kept;
    }
    index_watched();
}

void Columns::index_watched() {
    std::fill(std::begin(index_), std::end(index_), static_cast<std::uint16_t>(0));
    for (int i = 0; i < count_; ++i) place(static_cast<std::uint32_t>(watched_[i][WATCHED_SLOT]), i);
}

// After a review, and where the numbers were put by somebody else.
void Columns::index() {
    std::fill(std::begin(columns_), std::end(columns_), static_cast<std::uint8_t>(0));
    for (int j = 0; j < used_; ++j) {
        if (facts_[j][COLUMN_SLOT] == 0.0) continue;
        std::uint32_t at = hash_of(static_cast<std::uint32_t>(facts_[j][COLUMN_SLOT] - 1.0), COLUMN_BITS);
        while (columns_[at] != 0) at = (at + 1) % std::size(columns_);
        columns_[at] = static_cast<std::uint8_t>(j + 1);
    }
    for (int i = 0; i < count_; ++i)
        column_[i] = static_cast<std::int16_t>(column_of(static_cast<std::uint32_t>(watched_[i][WATCHED_SLOT])));
    index_watched();
    is_indexed_ = true;
}

void Columns::expect(int used, int watched) {
    used_ = used;
    count_ = watched;
    is_indexed_ = false;
}

// ---- columns come, move and leave ----

// A frequent feature: its column is standardised anew if an outlier was in its statistics, or it gets a column.
void Columns::settle(int i, std::vector<ColumnChange>& changes, std::vector<int>& joined) {
    const double n = watched_[i][MET], a = watched_[i][DISTANCES], b = watched_[i][SQUARES],
                 first = watched_[i][FIRST_VALUE], r = rows_;
    const double mean = (a + n * first) / r;
    const double variance =
        n == r ? b / r - (a / r) * (a / r) : (b + (2.0 * first) * a + (n * first) * first) / r - mean * mean;
    const double deviation = std::sqrt(std::max(variance, 0.0));
    if (!(deviation > LEAST_DEVIATION * std::fabs(mean))) return;
    int j = column_[i];
    if (j >= 0) {
        if (!(deviation < OUTLIER * facts_[j][DEVIATION])) return;
        changes.push_back({ColumnChange::moves, j, (mean - facts_[j][CENTRE]) / facts_[j][DEVIATION],
                           deviation / facts_[j][DEVIATION], LARGEST_VARIANCE});
    } else {
        for (j = 0; j < used_ && facts_[j][COLUMN_SLOT] != 0.0;) ++j;
        if (j == MOST_COLUMNS) return;
        used_ = std::max(used_, j + 1);
        facts_[j][COLUMN_SLOT] = watched_[i][WATCHED_SLOT] + 1.0;
        joined.push_back(j);
    }
    facts_[j][CENTRE] = mean;
    facts_[j][DEVIATION] = deviation;
}

void Columns::review(std::int64_t t, std::vector<ColumnChange>& changes) {
    if (!is_review(t)) return;
    if (!is_indexed_) index();
    double met[MOST_COLUMNS] = {};
    for (int i = 0; i < count_; ++i) {
        if (column_[i] >= 0) met[column_[i]] = watched_[i][MET];
    }
    for (int j = 0; j < used_; ++j) {
        if (facts_[j][COLUMN_SLOT] == 0.0 || !(met[j] < 0.5 * OFTEN * rows_)) continue;
        std::fill(facts_[j], facts_[j] + COLUMN_FACTS, 0.0);
        changes.push_back({ColumnChange::leaves, j, 0.0, 0.0, LARGEST_VARIANCE});
    }
    if (t >= FIRST_JOINING) {
        std::vector<int> order(static_cast<std::size_t>(count_)), joined;
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return watched_[a][MET] > watched_[b][MET]; });
        for (const int i : order) {
            if (watched_[i][MET] < std::max(OFTEN * rows_, LEAST_ROWS)) break;
            settle(i, changes, joined);
        }
        int active = 0;
        for (int j = 0; j < used_; ++j) active += facts_[j][COLUMN_SLOT] != 0.0 ? 1 : 0;
        for (const int j : joined)
            changes.push_back({ColumnChange::joins, j, 0.0, 0.0, std::min(LARGEST_VARIANCE, SPREAD / active)});
    }
    count_ = 0;
    rows_ = 0.0;
    index();
}

}  // namespace ftprl
