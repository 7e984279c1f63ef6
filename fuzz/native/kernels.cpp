// The learner of one scale. The body is read as rows, the choice as its options. Laws:
//
//   - rows are refused exactly when they break a rule, and then nothing is learned
//   - portable == SSE2 == AVX2, to the bit, in every cell, tally, score, loss, weight and sum of a receipt, however the
//     rows are cut into batches, and also when a copy of the learner goes on
//   - from options and rows within their limits no number becomes NaN or infinite
#include <cstdlib>

#include "learning.hpp"

namespace fuzz {
namespace {

using namespace ftprl;

Numbers cells_of(const Learner& learner) {
    const std::size_t count = 4 * static_cast<std::size_t>(learner.dim());
    if (learner.wide_cells()) {
        const auto* cells = static_cast<const double*>(learner.cells());
        return {cells, cells + count};
    }
    const auto* cells = static_cast<const float*>(learner.cells());
    return {cells, cells + count};
}

Told learned(const Batch& batch, const Setting& s, const std::vector<std::int64_t>& slots, Random* cuts) {
    auto learner = std::make_unique<Learner>(s.dim, s.wide_cells, s.receipt, s.constants);
    Told told = learn_all(learner, batch, s, cuts, [](const Learner& old) { return std::make_unique<Learner>(old); });
    Numbers weights(s.dim);
    learner->weights(weights.data());
    const double* bins = &learner->calibration().bins[0][0];
    told.emplace_back("cell", cells_of(*learner));
    told.emplace_back("intercept", Numbers(learner->intercept(), learner->intercept() + 4));
    told.emplace_back("tallies", Numbers(learner->tallies(), learner->tallies() + TALLIES));
    told.emplace_back("weight", std::move(weights));
    told.emplace_back("calibration", Numbers(bins, bins + 3 * BINS));
    told.emplace_back("later score", scores_of(*learner, batch, s));
    if (s.receipt) {
        const auto count = static_cast<std::int64_t>(slots.size());
        told.emplace_back("ledger", numbers_of(learner->ledger(nullptr, 0)));
        told.emplace_back("ledger of some", numbers_of(learner->ledger(slots.data(), count)));
        told.emplace_back("groups", numbers_of(learner->groups()));
    }
    learner->touch(batch.rows(s.wide_values));
    check_same(cells_of(*learner), told[2].second, "touching changes nothing: cell");
    return told;
}

void run_kernel(const std::string& body, Random random) {
    const Setting s = setting_of(random);
    const Batch batch = batch_of(body, s);
    use_kernels("");
    const Learner judge(s.dim, s.wide_cells, s.receipt, s.constants);
    if (!admits(judge, batch, s, random)) return;
    if (std::getenv("FUZZ_TELL") != nullptr) tell_input(batch, s);
    if (random.one_in(16)) Learner::expect(s.dim, s.wide_cells);
    const std::vector<std::int64_t> slots = some_slots(s.dim, random);
    const Told told = check_kernels([&](Random* cuts) { return learned(batch, s, slots, cuts); }, random);
    check_finite(told, {"cell", "intercept", "weight", "scores", "later score"});
    if (s.receipt && !s.wide_cells) check_finite(told, LEDGER_PARTS);
}

}  // namespace

Target kernel_target() { return {"kernel", run_kernel, row_tokens()}; }

}  // namespace fuzz
