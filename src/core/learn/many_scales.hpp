// Several scales a coordinate: long cells, of which only those that occur take up memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "learn/learner.hpp"
#include "support/memory.hpp"

namespace ftprl {

// How the numbers of a cell lie: z and R of all lanes, s, N, and kappa with labels in a unit.
struct CellLayout {
    std::size_t bytes;
    int lanes;
    bool kappa;
};

class ManyScalesLearner final : public Learner {
public:
    explicit ManyScalesLearner(const LearnerOptions& options);
    std::unique_ptr<Learner> copy() const override;

    void intercept(double* out) const override;
    std::size_t slot_bytes() const override;
    std::vector<Part> parts() const override;
    void keep_scales(int first, int count) override;

private:
    ManyScalesLearner(const ManyScalesLearner& other);
    void run_scales(const BasePass& pass, double* buffer) const override;
    std::size_t scratch_numbers(std::int64_t longest) const override {
        return static_cast<std::size_t>(longest) * static_cast<std::size_t>(lanes());
    }
    CellTable table() const override;
    GradientSums gradient_sums() const override {
        return {static_cast<double*>(gradients_->data()), static_cast<std::uint64_t>(lanes())};
    }
    unsigned char* cell(std::uint64_t number) const override {
        return static_cast<unsigned char*>(memory_.data()) + number * layout().bytes;
    }
    std::size_t own_bytes() const override { return layout().bytes; }
    void add_own_arrays(std::vector<NamedArray>& arrays) override;
    int lanes() const { return lanes_of(scales()); }
    CellLayout layout() const;
    void keep_gradients(int old_lanes, int first, int count);

    Memory memory_;                      // cells by their number
    std::unique_ptr<Memory> gradients_;  // S of ReceiptState
    double intercept_[3 * MOST_SCALES + 1] = {};
};

}  // namespace ftprl
