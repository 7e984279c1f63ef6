// Several scales a coordinate and their mixture: long cells, of which only those that occur take up memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "learners/learner.hpp"
#include "learners/scales.hpp"
#include "learners/slot_map.hpp"
#include "support/memory.hpp"

namespace ftprl {

// How the numbers of a cell lie: z and R of all lanes, s, N, and kappa where there is one.
struct CellLayout {
    std::size_t bytes;
    int lanes;
    bool kappa;
};

class MultiScaleLearner final : public Learner {
public:
    explicit MultiScaleLearner(const LearnerOptions& options);
    std::unique_ptr<Learner> copy() const override;

    void intercept(double* out) const override;
    void take(const std::uint32_t* slots, std::size_t count, void* out) const override;
    void put(const std::uint32_t* slots, std::size_t count, const void* from) override;
    // To others a cell is one with the numbers of its coin, which lie elsewhere.
    std::size_t cell_bytes() const override { return own_bytes() + coin_bytes(); }
    std::size_t slot_bytes() const override {
        const std::size_t S = receipt() ? static_cast<std::size_t>(lanes()) * sizeof(double) : 0;
        return cell_bytes() + S + sizeof(std::uint32_t) + box_bytes();  // and the number of the cell
    }
    void use_small_pages() override { slot_map_.use_small_pages(); }  // cells lie close together as it is
    std::vector<Columns> columns() const override;
    std::vector<NamedArray> mixture() override;
    std::vector<Columns> saved_columns() const override;
    std::vector<NamedArray> saved_arrays() override;
    void expect_columns(int columns, int inputs) override;
    void keep_scales(int first, int count) override;
    void drop_coin() override;

private:
    MultiScaleLearner(const MultiScaleLearner& other);
    Totals learn_rows(const Rows& rows, bool wide_values, const RowOutputs& out) override;
    void score_rows(const Rows& rows, bool wide_values, double* scores) const override;
    const LabelState* labels() const override { return labelled() ? &mixture_.labels : nullptr; }
    CellTable table() const override;
    std::uint64_t cell_of(std::uint32_t slot) const override { return slot_map_[slot]; }
    std::uint64_t claim_cell(std::uint32_t slot) override {
        std::uint32_t cell = 0;
        slot_map_.claim(&slot, 1, &cell);
        return cell;
    }
    GradientSums gradient_sums() const override;
    int lanes() const { return (scales() + 3) / 4 * 4; }
    ScaleState state(const std::uint32_t* slots) const;
    std::size_t own_bytes() const { return set().cell_bytes; }
    std::size_t coin_bytes() const {
        return options_.constants.coin ? COIN_FACTS * (wide_cells() ? sizeof(double) : sizeof(float)) : 0;
    }
    CellLayout layout() const { return {own_bytes(), lanes(), loss().has_kink()}; }
    void make_experts();
    void favour_usual_scales();
    void add_expert_arrays(std::vector<NamedArray>& arrays);
    const ScaleSet& set() const;
    int experts() const;
    void keep_lanes(int first, int count);
    void keep_gradients(int old_lanes, int first, int count);
    void keep_experts(int first, int count);

    SlotMap slot_map_;
    Memory memory_;                            // cells by their number
    std::vector<std::uint32_t> cell_numbers_;  // of the entries of a batch
    std::unique_ptr<Memory> gradients_;        // S of ReceiptState
    std::unique_ptr<Memory> buffer_;           // grows with the longest row
    double intercept_[3 * MOST_SCALES + 1] = {};
    Mixture mixture_ = {};
    std::unique_ptr<Memory> coin_;          // the numbers of the coin by the number of a cell
    std::unique_ptr<Memory> coin_scratch_;  // grows with the longest row
    double coin_intercept_[COIN_NUMBERS] = {};
    std::unique_ptr<DenseBlock> dense_;
};

}  // namespace ftprl
