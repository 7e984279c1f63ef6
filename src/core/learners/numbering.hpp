// The coordinates of a round, numbered in the order in which its learned rows first have them; those that only other
// rows have come last.
#pragma once

#include <cstdint>
#include <vector>

#include "learners/kernel.hpp"
#include "support/memory.hpp"

namespace ftprl {

// Numbers for slots, in the order in which they are first met: those of a part of a table, or of the coordinates that
// several blocks of a round have.
class SlotNumbers {
public:
    explicit SlotNumbers(std::uint64_t dim) : memory_(dim * sizeof(std::uint32_t)) {}

    std::uint64_t dim() const { return memory_.size() / sizeof(std::uint32_t); }
    // The slots that have a number, by it.
    const std::vector<std::uint32_t>& slots() const { return slots_; }
    // The numbers of slots; one that has none gets the next.
    void number(const std::uint32_t* slots, std::size_t count, std::uint32_t* out);
    // Forget all numbers.
    void clear();

private:
    Memory memory_;  // by slot, its number and 1; 0 for none
    std::vector<std::uint32_t> slots_;
};

class Numbering {
public:
    explicit Numbering(std::uint64_t dim) : memory_(dim * sizeof(std::uint32_t)) {}

    // Forget all rows.
    void clear();
    // Add rows, of which `block` learned ones at a time are a block of the round. Statistics of a block are added up
    // before those of the next.
    void add(const Rows& rows, bool wide_values, std::int64_t block);

    std::uint64_t dim() const { return memory_.size() / sizeof(std::uint32_t); }
    std::size_t count() const { return slots_.size(); }

    // By coordinate: its slot, how many entries of learned rows have it, their largest |value|, the sum of its squares.
    const std::vector<std::uint32_t>& slots() const { return slots_; }
    const std::vector<double>& rows() const { return rows_; }
    const std::vector<double>& largest() const { return largest_; }
    const std::vector<double>& squares() const { return squares_; }
    // By entry of the rows: the number of its coordinate, and its value.
    const std::vector<std::uint32_t>& coordinates() const { return coordinates_; }
    const std::vector<double>& values() const { return values_; }
    // The slots that at least half of the learned rows have, in order: the hot ones of the round to come.
    std::vector<std::uint32_t> next_hot() const;
    // The coordinates among these slots, with their numbers.
    std::vector<std::uint32_t> numbers_of(const std::vector<std::uint32_t>& slots) const;

private:
    std::uint32_t* numbers() const { return static_cast<std::uint32_t*>(memory_.data()); }
    std::uint32_t number_of(std::uint32_t slot);
    void end_block();

    Memory memory_;  // by slot, its number in the round and 1; 0 for none
    std::vector<std::uint32_t> slots_, coordinates_;
    std::vector<double> rows_, largest_, squares_, values_, of_block_;
    std::int64_t learned_ = 0;
};

}  // namespace ftprl
