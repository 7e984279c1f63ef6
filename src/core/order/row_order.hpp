// The order in which rows are learned: docs/order.md. Rows are copied when they arrive and leave in a random order that
// depends on the seed and the rows alone, never on how they were cut into batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace ftprl {

// 64 random bits for row number `t`: splitmix64.
std::uint64_t order_key(std::uint64_t seed, std::uint64_t t);

// Rows in compressed form as they come from a reader; values have 4 or 8 bytes each.
struct ArrivingRows {
    std::int64_t count;
    const std::int64_t* indptr;
    const std::uint32_t* indices;
    const void* values;
    const double* y;
    const double* weight;
    std::int64_t first_row;
};

// Rows on their way to the learner, each with its number in the data.
struct OrderedRows {
    std::vector<std::int64_t> indptr{0};
    std::vector<std::uint32_t> indices;
    std::vector<unsigned char> values;
    std::vector<double> y, weight;
    std::vector<std::int64_t> number;
};

// What a row is learned for: rows that do not wait, and the parts of the last phase.
enum class Stage : int { passing, first_half, compared, third_quarter, last_quarter };

class RowOrder {
public:
    // At most `rows` rows and `bytes` bytes wait; a tenth of both is for the latest rows.
    RowOrder(std::uint64_t seed, std::size_t rows, std::size_t bytes, bool wide);

    void add(const ArrivingRows& rows);
    // The data is over: decide about the last rows.
    void finish();
    // The next rows to learn, at most `most` and all of one stage; none when more have to arrive.
    OrderedRows take(std::size_t most, Stage& stage);
    // Some of the latest rows, which are checked when half of the last phase is learned.
    OrderedRows checked(std::size_t from, std::size_t most) const;

    std::size_t waiting() const { return waiting_.size() + recent_.size() + last_.size() - last_head_; }
    std::size_t checked_rows() const { return checked_.size(); }
    bool overflowed() const { return doublings_ > 0; }

private:
    struct Row {
        std::uint64_t key;
        std::int64_t number;
        std::size_t start;
        std::size_t size;
        double y, weight;
    };

    std::size_t bytes_of(const Row& row) const { return 24 + (4 + width_) * row.size; }
    bool waits(const Row& row) const { return doublings_ == 0 || row.key >> (64 - doublings_) == 0; }
    void settle(const Row& row);
    void halve();
    void compact();
    std::size_t at_once(const Row* rows, std::size_t most) const;
    OrderedRows gather(const Row* rows, std::size_t count) const;

    std::uint64_t seed_;
    std::size_t most_rows_, most_bytes_, width_;
    std::size_t recent_rows_, recent_bytes_most_;
    std::uint64_t learnable_ = 0;  // rows with a label and a weight so far
    int doublings_ = 0;            // a row waits while its key has so many leading zeros
    std::deque<Row> recent_;       // the latest rows, about which nothing is decided
    std::size_t recent_bytes_ = 0;
    std::vector<Row> waiting_;
    std::size_t waiting_bytes_ = 0;
    std::vector<Row> due_;  // to be learned now
    std::size_t due_head_ = 0;
    bool is_over_ = false;
    std::vector<Row> last_;  // the last phase
    std::size_t last_head_ = 0, compared_at_ = 0, check_at_ = 0, last_at_ = 0;
    std::vector<Row> checked_;
    std::vector<std::uint32_t> indices_;
    std::vector<unsigned char> values_;
};

}  // namespace ftprl
