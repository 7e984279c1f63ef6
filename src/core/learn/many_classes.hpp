// Several classes: one long cell for a feature, of which only those that occur take up memory, and only as much as the
// classes that were seen need.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "learn/classes.hpp"
#include "learn/learner.hpp"
#include "support/memory.hpp"

namespace ftprl {

class ManyClassesLearner final : public Learner {
public:
    explicit ManyClassesLearner(const LearnerOptions& options);
    std::unique_ptr<Learner> copy() const override;

    void intercept(double* out) const override;
    std::size_t slot_bytes() const override {
        return cell_bytes() + sizeof(std::uint32_t) + (receipt() ? gradient_bytes(cell_lanes_) : 0) + box_bytes();
    }
    std::vector<Part> parts() const override;
    int gradient_width() const override { return columns_in_use() * scales(); }
    void know_classes(int classes) override;
    void keep_scales(int first, int count) override;

private:
    ManyClassesLearner(const ManyClassesLearner& other);
    Totals learn_rows(const Batch& batch, const RowOutputs& out) override;
    void run_scales(const BasePass& pass, double* buffer) const override;
    std::size_t scratch_numbers(std::int64_t longest) const override;
    int said_numbers() const override { return static_cast<int>(h_.size()); }
    void mix(const MixPass& pass, double* class_scores) const override;
    CellTable table() const override;
    unsigned char* cell(std::uint64_t number) const override {
        return static_cast<unsigned char*>(memory_->data()) + number * own_bytes();
    }
    std::size_t own_bytes() const override { return bytes_of(cell_lanes_); }
    void add_own_arrays(std::vector<NamedArray>& arrays) override;
    GradientSums gradient_sums() const override {
        return {static_cast<double*>(gradients_->data()), static_cast<std::uint64_t>(cell_lanes_)};
    }

    // The scales of some columns, in lanes filled up to a multiple of four.
    static int lanes_in(int columns, int scales) { return (columns * scales + 3) / 4 * 4; }
    int columns_in_use() const { return outputs() + (outputs() < most_classes() ? 1 : 0); }
    std::size_t number_bytes() const { return wide_cells() ? sizeof(double) : sizeof(float); }
    std::size_t bytes_of(int lanes) const { return (2 * static_cast<std::size_t>(lanes) + 2) * number_bytes(); }
    static std::size_t gradient_bytes(int lanes) { return static_cast<std::size_t>(lanes) * sizeof(double); }
    ClassConstants constants() const;
    int space_for(int columns) const;
    void fill_lanes();
    std::int64_t rows_until_new_class(const Rows& rows, std::int64_t from) const;
    void lay_out(int first, int count, int columns, int cell_lanes);
    template <class T>
    void move_cells(Memory& to, int first, int count, int columns, int cell_lanes) const;
    void move_gradients(int first, int count, int columns, int cell_lanes);

    int cell_lanes_;                     // that a cell has space for
    std::unique_ptr<Memory> memory_;     // cells by their number
    std::unique_ptr<Memory> gradients_;  // with a receipt: S of all lanes that a cell has space for
    std::vector<double> intercept_;      // z of all lanes in use, then R, then S
    std::vector<double> h_, inverse_;    // of all lanes in use
    int seen_before_ = 0;                // classes that were known before the first row of the rows that are learned
};

}  // namespace ftprl
