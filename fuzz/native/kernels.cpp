// The learner of one scale. The body is read as rows, the choice as its options. Laws:
//
//   - rows are refused exactly when they break a rule, and then nothing is learned
//   - portable == SSE2 == AVX2, to the bit, in every cell, tally, score, loss, weight and sum of a receipt, however the
//     rows are cut into batches, and also when a copy of the learner goes on, or (no row repeats a slot) another one
//     into which the cells are put
//   - from options and rows within their limits no number becomes NaN or infinite
#include <cstdlib>

#include "learning.hpp"

namespace fuzz {
namespace {

using namespace ftprl;

LearnerState learned(const Batch& batch, const Setting& s, const LearnerOptions& options, const Question& q,
                     bool repeats, Random* cuts) {
    Owned learner = Learner::make(options);
    // Whoever makes a batch promises distinct slots in a row. Of a slot that a row repeats the last entry is learned:
    // when that is 0 the cell stays empty, and its S, to which both were added, is not among what a model keeps.
    LearnerState state = learn_all(learner, batch, s, cuts, [&](Learner& old) {
        return repeats || cuts->one_in(2) ? old.copy() : moved(old, options, *cuts);
    });
    const LearnerState after = state_of(*learner, batch, s, q);
    state.insert(state.end(), after.begin(), after.end());
    return state;
}

void run_kernel(const std::string& body, Random random) {
    const Setting s = setting_of(random);
    const bool repeats = random.one_in(4);
    const Batch batch = repeats ? batch_of(body, s) : distinct(batch_of(body, s));
    LearnerOptions options;
    options.dim = s.dim;
    options.wide_cells = s.wide_cells;
    options.receipt = s.receipt;
    options.constants.base = s.constants;
    options.constants.count = 1;
    options.constants.h[0] = s.constants.h;
    use_instruction_set("");
    if (!admits(*Learner::make(options), batch, s, random)) return;
    if (std::getenv("FUZZ_PRINT") != nullptr) print_input(batch, s);
    const Question q{0, 0, some_slots(s.dim, random)};
    const auto learn = [&](Random* cuts) { return learned(batch, s, options, q, repeats, cuts); };
    const LearnerState state = check_kernels(learn, random);
    check_finite(state, {"cell", "intercept", "weight", "scores", "later score"});
    if (s.receipt && !s.wide_cells) check_finite(state, LEDGER_PARTS);
}

}  // namespace

Target kernel_target() { return {"kernel", run_kernel, row_tokens()}; }

}  // namespace fuzz
