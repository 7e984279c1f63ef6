// One scale a coordinate: cells of four numbers, 16 or 32 bytes, in the order of their slots. With a receipt a cell has
// its S behind it and twice the bytes, unless it holds S in float64 itself.
#pragma once

#include <memory>
#include <vector>

#include "learners/learner.hpp"
#include "support/memory.hpp"

namespace ftprl {

class SingleScaleLearner final : public Learner {
public:
    explicit SingleScaleLearner(const LearnerOptions& options);
    std::unique_ptr<Learner> copy() const override;

    void intercept(double* out) const override;
    std::size_t touched(std::uint32_t* out) const override;
    void take(const std::uint32_t* slots, std::size_t count, void* out) const override;
    void put(const std::uint32_t* slots, std::size_t count, const void* from) override;
    std::size_t cell_bytes() const override;
    std::size_t slot_bytes() const override;
    void use_small_pages() override;
    std::vector<Columns> columns() const override;
    std::vector<NamedArray> mixture() override;
    std::vector<Columns> saved_columns() const override;
    std::vector<NamedArray> saved_arrays() override;
    void keep_scales(int first, int count) override;

private:
    SingleScaleLearner(const SingleScaleLearner& other);
    Totals learn_rows(const Rows& rows, bool wide_values, const RowOutputs& out) override;
    void score_rows(const Rows& rows, bool wide_values, double* scores) const override;
    const LabelState* labels() const override { return labelled() ? &labels_ : nullptr; }
    CellTable table() const override;
    std::uint64_t cell_of(std::uint32_t slot) const override { return slot; }
    std::uint64_t claim_cell(std::uint32_t slot) override { return slot; }
    GradientSums gradient_sums() const override;
    State state() const;
    unsigned char* cell(std::uint64_t slot) const;

    Memory memory_;
    std::unique_ptr<Memory> buffer_;                   // grows with the longest row
    double intercept_[5] = {0.0, 0.0, 1.0, 0.0, 0.0};  // z, R, the unit, S; labelled: kappa and S
    std::vector<double> no_weights_;                   // of rows that are not learned
    double mixture_weight_ = 1.0;
    LabelState labels_;
};

}  // namespace ftprl
