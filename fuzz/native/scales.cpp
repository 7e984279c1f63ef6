// The learner of several scales. The body is read as rows, the choice as its options. Laws:
//
//   - rows are refused exactly when they break a rule, and then nothing is learned
//   - portable == SSE2 == AVX2, to the bit, in all that a learner can tell, however the rows are cut into batches, and
//     also when a copy goes on, or another learner into which the cells are put, in any order
//   - scales that retire in place are those that retire into another learner, with cells as the lanes of the old ones,
//     and learn on to the same bits, new coordinates too: nothing is left behind the cells
//   - from options and rows within their limits no number becomes NaN or infinite
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "learners/scale_learner.hpp"
#include "learning.hpp"

namespace fuzz {
namespace {

using namespace ftprl;
using Owned = std::unique_ptr<ScaleLearner>;

// What a receipt is asked for besides the options.
struct Question {
    int leader, scale;
    std::vector<std::int64_t> slots;
};

ScaleConstants constants_of(const Setting& s, Random& random) {
    constexpr double steps[] = {2.0, 2.8, 1.1, 1000.0};
    constexpr double shares[] = {0.0, 0.0, 0.001, 0.5, 0.9999999999999999, 1e-30};
    constexpr Share kinds[] = {Share::fixed, Share::falling, Share::capped};
    ScaleConstants c{};
    c.base = s.constants;
    c.count = 2 + static_cast<int>(random.below(MOST_SCALES - 1));
    const double step = random.pick(steps);
    double h = s.constants.h;
    for (int k = 0; k < c.count; ++k, h *= step) c.h[k] = std::min(h, LIMIT);
    // From the least to the largest that are allowed.
    if (random.one_in(8)) c.h[0] = 1e-30, c.h[c.count - 1] = 1e30;
    c.sharing = random.pick(kinds);
    c.share = c.sharing == Share::fixed ? random.pick(shares) : 0.0;
    c.stack = random.one_in(2);
    return c;
}

Owned made(const Setting& s, const ScaleConstants& c) {
    return std::make_unique<ScaleLearner>(s.dim, s.wide_cells, s.receipt, c);
}

// ---- cells ----

std::vector<std::uint32_t> all_slots(std::uint64_t dim) {
    std::vector<std::uint32_t> slots(dim);
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<std::uint32_t>(i);
    return slots;
}

std::vector<unsigned char> taken(const ScaleLearner& learner, const std::vector<std::uint32_t>& slots) {
    std::vector<unsigned char> cells(slots.size() * learner.cell_bytes());
    learner.take(slots.data(), slots.size(), cells.data());
    return cells;
}

template <class T>
Numbers numbers_in(const std::vector<unsigned char>& bytes) {
    std::vector<T> numbers(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return {numbers.begin(), numbers.end()};
}

Numbers cells_of(const ScaleLearner& learner) {
    const std::vector<unsigned char> bytes = taken(learner, all_slots(learner.dim()));
    return learner.wide_cells() ? numbers_in<double>(bytes) : numbers_in<float>(bytes);
}

Numbers touched_by(const ScaleLearner& learner) {
    std::vector<std::uint32_t> slots(learner.dim());
    slots.resize(learner.touched(slots.data()));
    return {slots.begin(), slots.end()};
}

// All that is not in the cells, for the scales from number `first` on of which the new learner has `count`.
void hand_on(ScaleLearner& from, ScaleLearner& to, int first) {
    for (int part = 0; part < 3; ++part) {
        const double* lanes = from.intercept() + part * MOST_SCALES + first;
        std::copy(lanes, lanes + to.count(), to.intercept() + part * MOST_SCALES);
    }
    std::copy(from.tallies(), from.tallies() + TALLIES, to.tallies());
    to.calibration() = from.calibration();
}

// Another learner with the same cells, put there in another order, either all of them or those that were learned.
Owned moved(ScaleLearner& old, const Setting& s, const ScaleConstants& c, Random& random) {
    std::vector<std::uint32_t> slots = all_slots(s.dim);
    if (random.one_in(2)) slots.resize(old.touched(slots.data()));
    if (random.one_in(2)) std::reverse(slots.begin(), slots.end());
    Owned fresh = made(s, c);
    fresh->put(slots.data(), slots.size(), taken(old, slots).data());
    hand_on(old, *fresh, 0);
    fresh->mixture() = old.mixture();
    return fresh;
}

// ---- what is told ----

Told tell(ScaleLearner& learner, const Batch& batch, const Setting& s, const Question& q) {
    Numbers weights, one(s.dim);
    for (int k = 0; k < learner.count(); ++k) {
        learner.weights(k, one.data());
        weights.insert(weights.end(), one.begin(), one.end());
    }
    const double* mixture = &learner.mixture().P[0][0];
    const double* bins = &learner.calibration().bins[0][0];
    static_assert(sizeof(Mixture) % sizeof(double) == 0, "a mixture is doubles only");
    Told told = {{"cell", cells_of(learner)},
                 {"touched", touched_by(learner)},
                 {"intercept", Numbers(learner.intercept(), learner.intercept() + 3 * MOST_SCALES)},
                 {"tallies", Numbers(learner.tallies(), learner.tallies() + TALLIES)},
                 {"mixture", Numbers(mixture, mixture + sizeof(Mixture) / sizeof(double))},
                 {"calibration", Numbers(bins, bins + 3 * BINS)},
                 {"weight", std::move(weights)},
                 {"later score", scores_of(learner, batch, s)},
                 {"score elsewhere", scores_of(learner, elsewhere(batch, s), s)}};
    if (!s.receipt) return told;
    const auto count = static_cast<std::int64_t>(q.slots.size());
    told.emplace_back("ledger", numbers_of(learner.ledger(q.leader, nullptr, 0)));
    told.emplace_back("ledger of some", numbers_of(learner.ledger(q.leader, q.slots.data(), count)));
    told.emplace_back("groups", numbers_of(learner.groups(q.leader, q.scale)));
    return told;
}

Told learned(Owned& learner, const Batch& batch, const Setting& s, const ScaleConstants& c, const Question& q,
             Random* cuts) {
    const auto exchange = [&](ScaleLearner& old) {
        return cuts->one_in(2) ? std::make_unique<ScaleLearner>(old) : moved(old, s, c, *cuts);
    };
    Told told = learn_all(learner, batch, s, cuts, exchange);
    Told after = tell(*learner, batch, s, q);
    told.insert(told.end(), after.begin(), after.end());
    return told;
}

// ---- scales that retire ----

// The lanes that stay, cell by cell, as numbers of a cell of the new learner.
Numbers lanes_of(const Numbers& cells, const ScaleLearner& old, const ScaleLearner& fresh, int first) {
    const std::size_t size = old.wide_cells() ? sizeof(double) : sizeof(float);
    const std::size_t from = old.cell_bytes() / size, to = fresh.cell_bytes() / size;
    const auto P = static_cast<std::size_t>(old.lanes()), p = static_cast<std::size_t>(fresh.lanes());
    const auto at = static_cast<std::size_t>(first), count = static_cast<std::size_t>(fresh.count());
    Numbers kept(cells.size() / from * to);
    for (std::size_t i = 0; i < cells.size() / from; ++i) {
        const double* a = cells.data() + i * from;
        double* b = kept.data() + i * to;
        std::copy(a + at, a + at + count, b);
        std::copy(a + P + at, a + P + at + count, b + p);
        std::copy(a + 2 * P, a + 2 * P + 2, b + 2 * p);
        if (old.receipt()) std::copy(a + 2 * P + 2 + at, a + 2 * P + 2 + at + count, b + 2 * p + 2);
    }
    return kept;
}

void check_retirement(ScaleLearner& old, const Batch& batch, const Setting& s, ScaleConstants c, Random& random) {
    const int count = 2 + static_cast<int>(random.below(static_cast<std::size_t>(c.count) - 1));
    const int first = static_cast<int>(random.below(static_cast<std::size_t>(c.count - count) + 1));
    std::copy(c.h + first, c.h + first + count, c.h);
    c.count = count;
    const Numbers cells = cells_of(old);
    Owned apart = made(s, c), in_place = made(s, c);
    apart->take_lanes(old, first, false);
    check_same(cells_of(old), cells, "a learner keeps what another takes from it: cell");
    check_same(cells_of(*apart), lanes_of(cells, old, *apart, first), "the lanes that stay: cell");
    hand_on(old, *apart, first);
    hand_on(old, *in_place, first);
    in_place->take_lanes(old, first, true);
    const Question q{static_cast<int>(random.below(static_cast<std::size_t>(count))), 0, some_slots(s.dim, random)};
    check_same(tell(*apart, batch, s, q), tell(*in_place, batch, s, q), "apart and in place:");
    const Batch more = elsewhere(batch, s);
    check_same(learned(apart, more, s, c, q, nullptr),
               learned(in_place, more, s, c, q, random.one_in(2) ? &random : nullptr),
               "apart and in place, learning on:");
}

// Cells in several huge pages, of which those that retiring scales leave free are given back and used again.
void check_large(Random& random) {
    Setting s{};
    s.dim = 24000;
    s.wide_cells = s.wide_values = s.receipt = true;
    s.constants = {1.0, 1.0, 0.0, 0.0, -INF, INF, 0.5, loss_named("logistic"), true};
    ScaleConstants c{};
    c.base = s.constants;
    c.count = MOST_SCALES;
    for (int k = 0; k < c.count; ++k) c.h[k] = 1.0 + k;
    Batch batch;
    for (std::uint32_t i = 0; i < s.dim / 2; ++i) batch.add(i, i % 3 == 0 ? 1.0 : 0.5);
    batch.end_row(1.0, 1.0);
    Owned learner = made(s, c);
    learner->learn(batch.rows(true), true, {nullptr, nullptr});
    check_retirement(*learner, batch, s, c, random);
}

void run_scales(const std::string& body, Random random) {
    const Setting s = setting_of(random);
    const ScaleConstants c = constants_of(s, random);
    const bool repeats = random.one_in(4);
    const Batch batch = repeats ? batch_of(body, s) : distinct(batch_of(body, s));
    use_kernels("");
    if (random.one_in(400)) check_large(random);
    if (!admits(*made(s, c), batch, s, random)) return;
    if (std::getenv("FUZZ_TELL") != nullptr) {
        tell_input(batch, s);
        std::fprintf(stderr, "share %d %g stack %d scales", static_cast<int>(c.sharing), c.share, c.stack);
        for (int k = 0; k < c.count; ++k) std::fprintf(stderr, " %g", c.h[k]);
        std::fprintf(stderr, "\n");
    }
    if (random.one_in(16)) ScaleLearner::expect(s.dim, s.wide_cells, s.receipt, c.count);
    const Question q{static_cast<int>(random.below(static_cast<std::size_t>(c.count))),
                     static_cast<int>(random.below(static_cast<std::size_t>(c.count))), some_slots(s.dim, random)};
    Owned last;
    const auto learn = [&](Random* cuts) {
        last = made(s, c);
        return learned(last, batch, s, c, q, cuts);
    };
    const Told told = check_kernels(learn, random);
    // Whoever makes a batch promises distinct coordinates in a row. A play and a step are made for the unit at hand:
    // with one that was raised in between they do not fit together, and z, which no bound holds, may leave every range.
    if (!repeats) {
        check_finite(told,
                     {"cell", "intercept", "weight", "scores", "later score", "tallies", "mixture", "calibration"});
        if (s.receipt && !s.wide_cells) check_finite(told, LEDGER_PARTS);
    }
    use_kernels("");
    check_retirement(*last, batch, s, c, random);
}

}  // namespace

Target scales_target() { return {"scales", run_scales, row_tokens()}; }

}  // namespace fuzz
