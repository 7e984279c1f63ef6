// A learner: its constants, its table of cells, its tallies, and the kernels of this processor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learners/kernel.hpp"
#include "learners/ledger.hpp"
#include "support/memory.hpp"

namespace ftprl {

class Learner {
public:
    Learner(std::uint64_t dim, bool wide_cells, bool receipt, const Constants& constants);
    Learner(const Learner& other);
    Learner& operator=(const Learner&) = delete;

    // Have the memory of a learner made ready, which is made soon.
    static void expect(std::uint64_t dim, bool wide_cells);

    // What is wrong with the rows, named by their number from `first_row` on; empty when nothing is.
    // `size` is the number of entries that really stand in indices and values.
    std::string fault(const Rows& rows, bool wide_values, std::int64_t size, bool labels, std::int64_t first_row) const;

    // The rows must be without fault; they are taken as they are.
    Totals learn(const Rows& rows, bool wide_values, const Out& out);
    void score(const Rows& rows, bool wide_values, double* scores) const;
    void weights(double* out) const;
    void touch(const Rows& rows);
    // The cells with a bit that is set, in order, into room for all of them; returns how many there are.
    std::size_t touched(std::uint32_t* out) const;
    LedgerGroups groups() const;
    LedgerSums ledger(const std::int64_t* slots, std::int64_t count) const;  // all cells when null

    std::uint64_t dim() const { return dim_; }
    bool wide_cells() const { return wide_; }
    bool receipt() const { return receipt_; }
    void* cells() const { return memory_.data(); }
    double* intercept() { return intercept_; }
    double* tallies() { return tallies_; }
    Calibration& calibration() { return calibration_; }

private:
    State state() const;
    Table table() const;

    std::uint64_t dim_;
    bool wide_;
    bool receipt_;
    bool plain_;  // no l1, no l2, no bound
    Constants constants_;
    const Kernels* kernels_;
    Memory memory_;
    std::unique_ptr<Memory> room_;  // grows with the longest row
    double intercept_[4] = {0.0, 0.0, 1.0, 0.0};
    double tallies_[TALLIES] = {};
    Calibration calibration_;
    std::vector<double> losses_;  // of a batch, for the calibration
};

// What is wrong with rows for a table of `dim` cells and a loss; as Learner::fault.
std::string fault_of(const Rows& rows, bool wide_values, std::int64_t size, bool labels, std::int64_t first_row,
                     std::uint64_t dim, Loss loss, const Kernels& kernels);

// What is asked for, and the loss of each row besides.
Out with_losses(const Out& out, std::int64_t count, std::vector<double>& room);

// Whether there is no l1, no l2 and no bound.
bool is_plain(const Constants& constants);

// The kernels that learners made from now on use.
const Kernels* kernels_chosen();

// The kernels of an instruction set: "avx2", "sse2" or "portable"; "" is the best this processor has. Null when
// it is not there.
const Kernels* kernels_named(const std::string& name);

// Learners made from now on use these kernels; for tests and benchmarks. False when they are not there.
bool use_kernels(const std::string& name);

}  // namespace ftprl
