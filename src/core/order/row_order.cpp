#include "order/row_order.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace ftprl {
namespace {

constexpr std::size_t CHECKED_PART = 10, LEAST_ROWS = 1000;
constexpr std::size_t MOST_BYTES = std::size_t{1} << 24;  // that leave together
constexpr std::size_t AHEAD = 8;                          // how many rows ahead of the copy entries are prefetched
constexpr std::size_t LEAST_DEAD = std::size_t{1} << 20;  // entries that are kept for nobody before memory is tidied

}  // namespace

std::uint64_t order_key(std::uint64_t seed, std::uint64_t t) {
    std::uint64_t z = (t + 1) * 0x9E3779B97F4A7C15u + seed * 0xD1342543DE82EF95u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

RowOrder::RowOrder(std::uint64_t seed, std::size_t rows, std::size_t bytes, bool wide)
    : seed_(seed),
      most_rows_(rows),
      most_bytes_(bytes),
      width_(wide ? sizeof(double) : sizeof(float)),
      recent_rows_(rows / CHECKED_PART),
      recent_bytes_most_(bytes / CHECKED_PART) {}

void RowOrder::add(const ArrivingRows& rows) {
    compact();
    const std::size_t before = indices_.size();
    const auto entries = static_cast<std::size_t>(rows.indptr[rows.count] - rows.indptr[0]);
    indices_.insert(indices_.end(), rows.indices + rows.indptr[0], rows.indices + rows.indptr[rows.count]);
    const auto* values = static_cast<const unsigned char*>(rows.values) + width_ * rows.indptr[0];
    values_.insert(values_.end(), values, values + width_ * entries);
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const auto start = before + static_cast<std::size_t>(rows.indptr[r] - rows.indptr[0]);
        const auto size = static_cast<std::size_t>(rows.indptr[r + 1] - rows.indptr[r]);
        Row row{0, rows.first_row + r, start, size, rows.y[r], rows.weight[r]};
        if (!(row.weight > 0.0) || row.y != row.y) {  // nothing can be learned from it
            due_.push_back(row);
            continue;
        }
        row.key = order_key(seed_, learnable_++);
        recent_.push_back(row);
        recent_bytes_ += bytes_of(row);
        while (recent_.size() > recent_rows_ || (recent_bytes_ > recent_bytes_most_ && !recent_.empty())) {
            const Row oldest = recent_.front();
            recent_.pop_front();
            recent_bytes_ -= bytes_of(oldest);
            settle(oldest);
        }
    }
}

// Let a row wait, or have it learned now.
void RowOrder::settle(const Row& row) {
    if (!waits(row)) {
        due_.push_back(row);
        return;
    }
    waiting_.push_back(row);
    waiting_bytes_ += bytes_of(row);
    while ((waiting_.size() > most_rows_ - recent_rows_ || waiting_bytes_ > most_bytes_ - recent_bytes_most_) &&
           doublings_ < 63)
        halve();
}

// Half of the rows leave, in the order of their keys.
void RowOrder::halve() {
    ++doublings_;
    const auto middle =
        std::stable_partition(waiting_.begin(), waiting_.end(), [this](const Row& row) { return waits(row); });
    const auto from = static_cast<std::ptrdiff_t>(due_.size());
    due_.insert(due_.end(), middle, waiting_.end());
    waiting_.erase(middle, waiting_.end());
    std::sort(due_.begin() + from, due_.end(),
              [](const Row& a, const Row& b) { return a.key != b.key ? a.key < b.key : a.number < b.number; });
    waiting_bytes_ = 0;
    for (const Row& row : waiting_) waiting_bytes_ += bytes_of(row);
}

void RowOrder::finish() {
    if (is_over_) return;
    is_over_ = true;
    const std::size_t rows = std::min(static_cast<std::size_t>(learnable_), most_rows_);
    std::size_t checked = learnable_ < LEAST_ROWS ? 0 : std::min(rows / CHECKED_PART, recent_.size());
    while (recent_.size() > checked) {
        const Row oldest = recent_.front();
        recent_.pop_front();
        settle(oldest);
    }
    checked_.assign(recent_.begin(), recent_.end());
    last_ = std::move(waiting_);
    waiting_.clear();
    // Keys of the last phase are below 2 * half. A row that is checked must not be learned before: its turn comes in
    // the third quarter, unless its key puts it there or behind.
    const std::uint64_t half = std::uint64_t{1} << (63 - doublings_), three_quarters = half + half / 2;
    for (Row row : recent_) {
        if (!waits(row) || row.key < half) row.key = half + ((row.key & (half - 1)) >> 1);
        last_.push_back(row);
    }
    recent_.clear();
    std::sort(last_.begin(), last_.end(),
              [](const Row& a, const Row& b) { return a.key != b.key ? a.key < b.key : a.number < b.number; });
    const auto below = [this](std::uint64_t key) {
        const auto at = std::lower_bound(last_.begin(), last_.end(), key,
                                         [](const Row& row, std::uint64_t limit) { return row.key < limit; });
        return static_cast<std::size_t>(at - last_.begin());
    };
    last_at_ = below(three_quarters);
    check_at_ = checked_.empty() ? last_at_ : below(half);
    compared_at_ = checked_.empty() ? last_at_ : check_at_ - std::min(check_at_, checked_.size());
}

// How many of some rows are copied at once: at least one.
std::size_t RowOrder::at_once(const Row* rows, std::size_t most) const {
    std::size_t count = 0, bytes = 0;
    while (count < most && (count == 0 || bytes + bytes_of(rows[count]) <= MOST_BYTES))
        bytes += bytes_of(rows[count++]);
    return count;
}

OrderedRows RowOrder::take(std::size_t most, Stage& stage) {
    stage = Stage::passing;
    if (due_head_ < due_.size()) {
        const std::size_t count = at_once(due_.data() + due_head_, std::min(most, due_.size() - due_head_));
        OrderedRows rows = gather(due_.data() + due_head_, count);
        due_head_ += count;
        return rows;
    }
    if (last_head_ == last_.size()) return {};
    const std::size_t ends[] = {compared_at_, check_at_, last_at_, last_.size()};
    int part = 0;
    while (last_head_ >= ends[part]) ++part;
    stage = static_cast<Stage>(part + 1);
    const std::size_t count = at_once(last_.data() + last_head_, std::min(most, ends[part] - last_head_));
    OrderedRows rows = gather(last_.data() + last_head_, count);
    last_head_ += count;
    return rows;
}

OrderedRows RowOrder::checked(std::size_t from, std::size_t most) const {
    if (from >= checked_.size()) return {};
    return gather(checked_.data() + from, at_once(checked_.data() + from, std::min(most, checked_.size() - from)));
}

OrderedRows RowOrder::gather(const Row* rows, std::size_t count) const {
    OrderedRows out;
    out.indptr.resize(count + 1);
    std::size_t entries = 0;
    for (std::size_t i = 0; i < count; ++i) {
        entries += rows[i].size;
        out.indptr[i + 1] = static_cast<std::int64_t>(entries);
    }
    out.indices.resize(entries);
    out.values.resize(entries * width_);
    out.y.resize(count);
    out.weight.resize(count);
    out.number.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        const Row& row = rows[i];
        if (i + AHEAD < count) {
            const Row& next = rows[i + AHEAD];
            for (std::size_t at = 0; at < next.size; at += 16) {
                __builtin_prefetch(indices_.data() + next.start + at);
                __builtin_prefetch(values_.data() + width_ * (next.start + at));
            }
        }
        const auto at = static_cast<std::size_t>(out.indptr[i]);
        if (row.size > 0) {
            std::memcpy(out.indices.data() + at, indices_.data() + row.start, row.size * sizeof(std::uint32_t));
            std::memcpy(out.values.data() + width_ * at, values_.data() + width_ * row.start, row.size * width_);
        }
        out.y[i] = row.y;
        out.weight[i] = row.weight;
        out.number[i] = row.number;
    }
    return out;
}

// Forget the entries of rows that were learned, once they are most of the memory.
void RowOrder::compact() {
    if (due_head_ < due_.size()) return;
    due_.clear();
    due_head_ = 0;
    std::size_t kept = 0;
    for (const Row& row : waiting_) kept += row.size;
    for (const Row& row : recent_) kept += row.size;
    if (indices_.size() - kept < std::max(kept, LEAST_DEAD)) return;
    std::vector<std::uint32_t> indices;
    std::vector<unsigned char> values;
    indices.reserve(kept);
    values.reserve(kept * width_);
    const auto move = [&](Row& row) {
        const auto from = static_cast<std::ptrdiff_t>(row.start), size = static_cast<std::ptrdiff_t>(row.size);
        const auto width = static_cast<std::ptrdiff_t>(width_);
        row.start = indices.size();
        indices.insert(indices.end(), indices_.begin() + from, indices_.begin() + from + size);
        values.insert(values.end(), values_.begin() + width * from, values_.begin() + width * (from + size));
    };
    for (Row& row : waiting_) move(row);
    for (Row& row : recent_) move(row);
    indices_ = std::move(indices);
    values_ = std::move(values);
}

}  // namespace ftprl
