// Columns: frequent features as inputs of a Newton expert, in deviations from their means (docs/scales.md). They depend
// on the rows alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "learn/kernel.hpp"

namespace ftprl {

constexpr int MOST_WATCHED = 1024;  // features that are counted at a time

// The slot of a column's feature, plus one, or 0 where there is none; the mean and deviation its values are counted in.
enum ColumnFact { COLUMN_SLOT, CENTRE, DEVIATION, COLUMN_FACTS };
// A feature of the rows since the last power of two: its slot, the rows that had it, the sums of the distances from its
// first value and of their squares, and that value.
enum WatchedFact { WATCHED_SLOT, MET, DISTANCES, SQUARES, FIRST_VALUE, WATCHED_FACTS };

// What a review of the columns changes in the expert that sees them.
struct ColumnChange {
    enum Kind { leaves, moves, joins } kind;
    int column;
    double shift, ratio;  // moves: of the mean, in old deviations, and of the deviations
    double variance;      // of the weight from now on
};

class Columns {
public:
    // The values of a row that is only predicted.
    class Reader {
    public:
        explicit Reader(const Columns& columns);
        void read(const Rows& rows, const std::uint32_t* slots, std::int64_t r, double* to) const;

    private:
        const Columns& columns_;
        static constexpr int BITS = 11;
        std::uint32_t slots_[MOST_COLUMNS + 1];
        std::uint32_t multiplier_ = 0x9E3779B1u;
        std::uint8_t place_[1 << BITS];
    };

    // The values of a row that has one for each of the first `width` slots.
    void read_dense(const double* row, std::int64_t width, double* to) const;
    // The values of a row that is then counted.
    void learn(const Rows& rows, const std::uint32_t* slots, std::int64_t r, double* to);
    // After row t, which was learned: nothing unless t is a power of two from 8 on.
    void review(std::int64_t t, std::vector<ColumnChange>& changes);
    static bool is_review(std::int64_t t) { return t >= 8 && (t & (t - 1)) == 0; }

    int used() const { return used_; }
    // Before numbers are put: how many there will be.
    void expect(int used, int watched);
    double (*facts()) [COLUMN_FACTS] { return facts_; }
    // What was counted may be changed by the caller.
    double (*watched()) [WATCHED_FACTS] {
        is_indexed_ = false;
        return watched_;
    } int watched_count() const {
        return count_;
    }
    double& rows() { return rows_; }

private:
    static constexpr int INDEX_BITS = 12, COLUMN_BITS = 8;
    int find(std::uint32_t slot, double value);
    int add(std::uint32_t slot, double value);
    void forget();
    void index();
    void index_watched();
    int column_of(std::uint32_t slot) const;
    void standardise(const double* values, double* to) const;
    void place(std::uint32_t slot, int number);
    void settle(int row, std::vector<ColumnChange>& changes, std::vector<int>& joined);

    int used_ = 0, count_ = 0;
    double rows_ = 0.0;
    double facts_[MOST_COLUMNS][COLUMN_FACTS] = {};
    double watched_[MOST_WATCHED][WATCHED_FACTS] = {};
    bool is_indexed_ = false;
    std::uint8_t columns_[std::size_t{1} << COLUMN_BITS];  // 1 + the number of a column, by a hash of its slot
    std::int16_t column_[MOST_WATCHED] = {};               // of each feature that is counted; -1 for none
    std::uint16_t index_[std::size_t{1} << INDEX_BITS];    // 1 + the number of a feature, by a hash of its slot
};

}  // namespace ftprl
