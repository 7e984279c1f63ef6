// Several classes: one long cell for a feature, of which only those that occur take up memory, and only as much as the
// classes that were seen need.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "learners/classes.hpp"
#include "learners/learner.hpp"
#include "learners/slot_map.hpp"
#include "support/memory.hpp"

namespace ftprl {

class MultiClassLearner final : public Learner {
public:
    explicit MultiClassLearner(const LearnerOptions& options);
    std::unique_ptr<Learner> copy() const override;

    void intercept(double* out) const override;
    void take(const std::uint32_t* slots, std::size_t count, void* out) const override;
    void put(const std::uint32_t* slots, std::size_t count, const void* from) override;
    std::size_t cell_bytes() const override { return bytes_of(cell_lanes_); }
    std::size_t slot_bytes() const override {
        return cell_bytes() + sizeof(std::uint32_t) + (receipt() ? gradient_bytes(cell_lanes_) : 0) + box_bytes();
    }
    void use_small_pages() override { slot_map_.use_small_pages(); }  // cells lie close together as it is
    std::vector<Columns> columns() const override;
    int gradient_width() const override { return columns_in_use() * scales(); }
    std::vector<NamedArray> mixture() override;
    std::vector<Columns> saved_columns() const override;
    std::vector<NamedArray> saved_arrays() override;
    void expect_columns(int columns, int inputs) override;
    void know_classes(int classes) override;
    void keep_scales(int first, int count) override;

private:
    MultiClassLearner(const MultiClassLearner& other);
    Totals learn_rows(const Rows& rows, bool wide_values, const RowOutputs& out) override;
    void score_rows(const Rows& rows, bool wide_values, double* scores) const override;
    const LabelState* labels() const override { return nullptr; }
    CellTable table() const override;
    std::uint64_t cell_of(std::uint32_t slot) const override { return slot_map_[slot]; }
    std::uint64_t claim_cell(std::uint32_t slot) override {
        std::uint32_t cell = 0;
        slot_map_.claim(&slot, 1, &cell);
        return cell;
    }
    GradientSums gradient_sums() const override {
        return {static_cast<double*>(gradients_->data()), static_cast<std::uint64_t>(cell_lanes_)};
    }

    // The scales of some columns, in lanes filled up to a multiple of four.
    static int lanes_of(int columns, int scales) { return (columns * scales + 3) / 4 * 4; }
    int columns_in_use() const { return outputs() + (outputs() < most_classes() ? 1 : 0); }
    std::size_t number_bytes() const { return wide_cells() ? sizeof(double) : sizeof(float); }
    std::size_t bytes_of(int lanes) const { return (2 * static_cast<std::size_t>(lanes) + 2) * number_bytes(); }
    static std::size_t gradient_bytes(int lanes) { return static_cast<std::size_t>(lanes) * sizeof(double); }
    int experts() const { return scales() + (options_.constants.stack ? 1 : 0); }
    ClassConstants constants() const;
    ClassState state(const std::uint32_t* slots) const;
    const ClassSet& set() const { return kernels_->classes->of[wide_cells()]; }
    int space_for(int columns) const;
    void fill_lanes();
    std::size_t scratch() const;
    std::int64_t rows_until_new_class(const Rows& rows, std::int64_t from) const;
    void lay_out(int first, int count, int columns, int cell_lanes);
    template <class T>
    void move_cells(Memory& to, int first, int count, int columns, int cell_lanes) const;
    void move_gradients(int first, int count, int columns, int cell_lanes);
    void add_dense_arrays(std::vector<NamedArray>& arrays);

    SlotMap slot_map_;
    int cell_lanes_;                           // that a cell has space for
    std::unique_ptr<Memory> memory_;           // cells by their number
    std::unique_ptr<Memory> gradients_;        // with a receipt: S of all lanes that a cell has space for
    std::vector<std::uint32_t> cell_numbers_;  // of the entries of a batch
    std::unique_ptr<Memory> buffer_;           // grows with the longest row
    std::vector<double> intercept_;            // z of all lanes in use, then R, then S
    std::vector<double> h_, inverse_;          // of all lanes in use
    Mixture mixture_ = {};
    struct FreeDense {
        void operator()(ClassDense* dense) const { free_class_dense(dense); }
    };
    std::unique_ptr<ClassDense, FreeDense> dense_;  // null unless the stack sees dense columns
};

}  // namespace ftprl
