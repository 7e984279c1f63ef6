// A learner of several scales a coordinate and their mixture: as Learner, which learns one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learners/ledger.hpp"
#include "learners/places.hpp"
#include "learners/scales.hpp"
#include "support/memory.hpp"

namespace ftprl {

class ScaleLearner {
public:
    // `constants.mixing` and `constants.clip` follow from the loss and are set here.
    ScaleLearner(std::uint64_t dim, bool wide_cells, bool receipt, const ScaleConstants& constants);
    ScaleLearner(const ScaleLearner& other);
    ScaleLearner& operator=(const ScaleLearner&) = delete;

    // Have the memory of a learner made ready, which is made soon: where the cells are, and the first of them.
    static void expect(std::uint64_t dim, bool wide_cells, bool receipt, int count);

    std::string fault(const Rows& rows, bool wide_values, std::int64_t size, bool labels, std::int64_t first_row) const;

    // The rows must be without fault; they are taken as they are.
    Totals learn(const Rows& rows, bool wide_values, const Out& out);
    void score(const Rows& rows, bool wide_values, double* scores) const;
    void weights(int scale, double* out) const;
    LedgerGroups groups(int leader, int scale) const;
    LedgerSums ledger(int leader, const std::int64_t* slots, std::int64_t count) const;  // all cells when null

    // The coordinates that have been met, in order, into room for all of them; returns how many there are.
    std::size_t touched(std::uint32_t* out) const;
    // Whole cells, of coordinates below dim.
    void take(const std::uint32_t* slots, std::size_t count, void* out) const;
    void put(const std::uint32_t* slots, std::size_t count, const void* from);

    // Take over `count` scales from number `first` on of a learner that has them and more: their lanes of every cell.
    // In place, the other's memory is taken over with them, and the other is of no use any more. This one must be
    // fresh.
    void take_lanes(const ScaleLearner& from, int first, bool in_place);

    bool is_fresh() const { return places_->count() == 1; }  // no cell is in use
    std::uint64_t dim() const { return dim_; }
    bool wide_cells() const { return wide_; }
    int count() const { return constants_.count; }
    int lanes() const { return (constants_.count + 3) / 4 * 4; }
    std::size_t cell_bytes() const { return set().cell_bytes; }
    bool receipt() const { return receipt_; }
    double* intercept() { return intercept_; }
    double* tallies() { return tallies_; }
    Mixture& mixture() { return mixture_; }
    Calibration& calibration() { return calibration_; }

private:
    template <class T>
    std::size_t touched(std::uint32_t* out) const;
    ScaleState state() const;
    Table table() const;
    const ScaleSet& set() const;

    std::uint64_t dim_;
    bool wide_;
    bool receipt_;
    ScaleConstants constants_;
    const Kernels* kernels_;
    std::shared_ptr<Places> places_;
    std::shared_ptr<Memory> memory_;    // cells by number; both are handed on when scales retire in place
    std::vector<std::uint32_t> found_;  // the cells of a batch
    std::unique_ptr<Memory> room_;      // grows with the longest row
    double intercept_[3 * MOST_SCALES] = {};
    double tallies_[TALLIES] = {};
    Mixture mixture_ = {};
    Calibration calibration_;
    std::vector<double> losses_;  // of a batch, for the calibration
};

}  // namespace ftprl
