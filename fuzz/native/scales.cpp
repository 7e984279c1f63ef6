// The learner of several scales. The body is read as rows, the choice as its options. Laws:
//
//   - rows are refused exactly when they break a rule, and then nothing is learned
//   - portable == SSE2 == AVX2, to the bit, in all that can be read off a learner, however the rows are cut into
//   batches,
//     and also when a copy goes on, or another learner into which the cells are put, in any order
//   - scales that are kept when others are dropped have their lanes of the old cells, and learn on to the same bits as
//   a
//     learner into which these were put, new coordinates too: nothing is left behind the cells
//   - from options and rows within their limits no number becomes NaN or infinite
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "learning.hpp"

namespace fuzz {
namespace {

using namespace ftprl;

LearnerOptions options_of(const Setting& s, Random& random) {
    constexpr double steps[] = {2.0, 2.8, 1.1, 1000.0};
    LearnerOptions options;
    options.dim = s.dim;
    options.wide_cells = s.wide_cells;
    options.receipt = s.receipt;
    ScaleConstants& c = options.constants;
    c.base = s.constants;
    c.count = 2 + static_cast<int>(random.below(MOST_SCALES - 1));
    const double step = random.pick(steps);
    double h = s.constants.h;
    for (int k = 0; k < c.count; ++k, h *= step) c.h[k] = std::min(h, LIMIT);
    // From the least to the largest that are allowed.
    if (random.one_in(8)) c.h[0] = 1e-30, c.h[c.count - 1] = 1e30;
    c.stack = random.one_in(2);
    return options;
}

LearnerState learned(Owned& learner, const Batch& batch, const Setting& s, const LearnerOptions& options,
                     const Question& q, Random* cuts) {
    LearnerState state = learn_all(learner, batch, s, cuts, [&](Learner& old) {
        return cuts->one_in(2) ? old.copy() : moved(old, options, *cuts);
    });
    const LearnerState after = state_of(*learner, batch, s, q);
    state.insert(state.end(), after.begin(), after.end());
    return state;
}

// ---- scales that are dropped ----

// Part of a cell for `count` scales from number `first` on: z, R and S by scale, the unit and the count.
Numbers parts_of(const Learner& learner, int first, int count) {
    const Numbers cells = cells_of(learner);
    const std::size_t width = learner.cell_bytes() / (learner.wide_cells() ? sizeof(double) : sizeof(float));
    Numbers parts;
    for (std::size_t at = 0; at < cells.size(); at += width) {
        for (const Columns& part : learner.columns()) {
            const double* from = cells.data() + at + part.first + (part.count == 0 ? 0 : first);
            parts.insert(parts.end(), from, from + (part.count == 0 ? 1 : count));
        }
    }
    return parts;
}

void check_dropping(Learner& learner, const Batch& batch, const Setting& s, LearnerOptions options, Random& random) {
    ScaleConstants& c = options.constants;
    const int count = 2 + static_cast<int>(random.below(static_cast<std::size_t>(c.count) - 1));
    const int first = static_cast<int>(random.below(static_cast<std::size_t>(c.count - count) + 1));
    std::copy(c.h + first, c.h + first + count, c.h);
    c.count = count;
    const Numbers kept = parts_of(learner, first, count);
    Owned fewer = learner.copy();
    fewer->keep_scales(first, count);
    law(fewer->scales() == count, "as many scales stay as were asked for");
    check_same(parts_of(*fewer, 0, count), kept, "the lanes that stay: cell");
    Owned other = moved(*fewer, options, random);
    const Question q{static_cast<int>(random.below(static_cast<std::size_t>(count))), 0, some_slots(s.dim, random)};
    check_same(state_of(*fewer, batch, s, q), state_of(*other, batch, s, q), "after dropping and put by hand:");
    const Batch more = elsewhere(batch, s);
    check_same(learned(fewer, more, s, options, q, nullptr),
               learned(other, more, s, options, q, random.one_in(2) ? &random : nullptr),
               "after dropping and put by hand, learning on:");
}

// Cells in several huge pages, of which those that dropped scales leave free are given back and used again.
void check_large(Random& random) {
    Setting s{};
    s.dim = 24000;
    s.wide_cells = s.wide_values = s.receipt = true;
    s.constants.h = s.constants.beta = 1.0;
    s.constants.lower = -INF;
    s.constants.upper = INF;
    s.constants.tau = 0.5;
    s.constants.loss = loss_named("logistic");
    s.constants.intercept = true;
    LearnerOptions options;
    options.dim = s.dim;
    options.wide_cells = options.receipt = true;
    options.constants.base = s.constants;
    options.constants.count = MOST_SCALES;
    for (int k = 0; k < MOST_SCALES; ++k) options.constants.h[k] = 1.0 + k;
    Batch batch;
    for (std::uint32_t i = 0; i < s.dim / 2; ++i) batch.add(i, i % 3 == 0 ? 1.0 : 0.5);
    batch.end_row(1.0, 1.0);
    Owned learner = Learner::make(options);
    learner->learn(batch.rows(true), true, {});
    check_dropping(*learner, batch, s, options, random);
}

void print_scales(const ScaleConstants& c) {
    std::fprintf(stderr, "stack %d scales", c.stack);
    for (int k = 0; k < c.count; ++k) std::fprintf(stderr, " %g", c.h[k]);
    std::fprintf(stderr, "\n");
}

void run_scales(const std::string& body, Random random) {
    const Setting s = setting_of(random);
    const LearnerOptions options = options_of(s, random);
    const bool repeats = random.one_in(4);
    const Batch batch = repeats ? batch_of(body, s) : distinct(batch_of(body, s));
    use_instruction_set("");
    if (random.one_in(400)) check_large(random);
    if (!admits(*Learner::make(options), batch, s, random)) return;
    if (std::getenv("FUZZ_PRINT") != nullptr) {
        print_input(batch, s);
        print_scales(options.constants);
    }
    const auto count = static_cast<std::size_t>(options.constants.count);
    const Question q{static_cast<int>(random.below(count)), static_cast<int>(random.below(count)),
                     some_slots(s.dim, random)};
    Owned last;
    const auto learn = [&](Random* cuts) {
        last = Learner::make(options);
        return learned(last, batch, s, options, q, cuts);
    };
    const LearnerState state = check_kernels(learn, random);
    // Whoever makes a batch promises distinct coordinates in a row. A play and a step are made for the unit at hand:
    // with one that was raised in between they do not fit together, and z, which no bound holds, may leave every range.
    if (!repeats) {
        check_finite(state,
                     {"cell", "intercept", "weight", "scores", "later score", "tallies", "mixture", "calibration"});
        if (s.receipt && !s.wide_cells) check_finite(state, LEDGER_PARTS);
    }
    use_instruction_set("");
    check_dropping(*last, batch, s, options, random);
}

}  // namespace

Target scales_target() { return {"scales", run_scales, row_tokens()}; }

}  // namespace fuzz
