// One scale a coordinate: cells of four numbers, 16 or 32 bytes, in the order of their slots. With a receipt a cell has
// its S behind it and twice the bytes, unless it holds S in float64 itself.
#pragma once

#include <memory>
#include <vector>

#include "learn/learner.hpp"
#include "support/memory.hpp"

namespace ftprl {

class SingleScaleLearner final : public Learner {
public:
    explicit SingleScaleLearner(const LearnerOptions& options);
    std::unique_ptr<Learner> copy() const override;

    void intercept(double* out) const override;
    std::size_t touched(std::uint32_t* out) const override;
    std::size_t slot_bytes() const override;
    void use_small_pages() override { memory_.use_small_pages(); }
    std::vector<Part> parts() const override;
    std::vector<Part> saved_parts() const override { return {{"cells", 0, 4}}; }
    void keep_scales(int, int) override {}

private:
    SingleScaleLearner(const SingleScaleLearner& other);
    void run_scales(const BasePass& pass, double* buffer) const override;
    std::size_t scratch_numbers(std::int64_t longest) const override {
        return static_cast<std::size_t>(longest + 3) / 4 * 4 * SCRATCH;
    }
    CellTable table() const override;
    GradientSums gradient_sums() const override;
    unsigned char* cell(std::uint64_t slot) const override;
    std::size_t own_bytes() const override;
    void add_own_arrays(std::vector<NamedArray>& arrays) override;

    Memory memory_;
    double intercept_[5] = {0.0, 0.0, 1.0, 0.0, 0.0};  // z, R, the unit, S; labelled: kappa and S
};

}  // namespace ftprl
