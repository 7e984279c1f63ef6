// The learner. The body is read as rows, the choice as its options. Laws:
//
//   - rows are refused exactly when they break a rule, and arrays that do not fit together before they are read
//   - the same bits in all that can be read off a learner with every instruction set, with one thread and two, however
//     the rows are cut into batches, and when a copy goes on
//   - from options and rows within their limits no number becomes NaN or infinite
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <utility>

#include "engine.hpp"
#include "learn/learner.hpp"
#include "support/dispatch.hpp"

namespace fuzz {
namespace {

using namespace ftprl;

using Doubles = std::vector<double>;
using State = std::vector<std::pair<std::string, Doubles>>;  // all that can be read off a learner, by name

constexpr double INF = std::numeric_limits<double>::infinity();
constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();
// What the arithmetic of a float or of a double finds hard, within the limits and beyond them.
constexpr double HARD[] = {0.0,     -0.0,   1.0,          -1.0,       0.5,    2.0,    3.0,      0.1,         1e-3,
                           100.0,   1e-7,   -1e7,         16777217.0, 1e30,   -1e30,  9.9e29,   1e29,        1e20,
                           1e-20,   1e-30,  1e-38,        1e-45,      -1e-45, 1e-160, 1.5e-162, 1e-300,      5e-324,
                           -5e-324, 0x1p96, 1.0000001e30, 3e38,       1e300,  INF,    -INF,     NOT_A_NUMBER};
constexpr std::size_t TAME = 28;                           // so many of them, from the first, are within the limits
constexpr std::size_t MANY_ROWS = 1100;                    // of which threads are used
constexpr double FLOAT_LIMIT = static_cast<float>(LIMIT);  // a float next to 1e30 may be taken for it

// ---- options ----

struct Setting {
    LearnerOptions options;
    bool wide_values, tame, repeats_slots, many_rows;
    bool weighs, drops;  // whether a second pass only weighs experts; whether scales and experts leave before it
    double ends[2];      // of the bounds of every third slot
};

Setting setting_of(Random& random) {
    constexpr std::uint64_t dims[] = {1, 2, 5, 16, 300};
    constexpr double scales[] = {0.1, 1.0, 0.02, 40.0, 1e-30, 1e30, 1e-9, 1e9}, steps[] = {2.0, 2.8, 1.1, 1000.0};
    constexpr double amounts[] = {0.0, 0.0, 1.0, 0.01, 1e-30, 1e30, 3.0}, sides[] = {INF, INF, 1.0, 1e-3, 1e30, 0.0};
    constexpr int classes[] = {2, 3, 9};
    Setting s{};
    LearnerOptions& o = s.options;
    Constants& c = o.constants;
    const std::size_t loss = random.below(LOSS_COUNT + CLASS_LOSS_COUNT);
    c.loss = loss < LOSS_COUNT ? &LOSSES[loss] : &CLASS_LOSSES[loss - LOSS_COUNT];
    if (loss >= LOSS_COUNT) {
        o.most_classes = random.pick(classes);
        o.outputs = random.one_in(2) ? 0 : static_cast<int>(random.below(o.most_classes + 1u));
    }
    o.dim = random.pick(dims);
    o.wide_cells = random.one_in(2);
    o.receipt = random.one_in(2);
    const bool free = random.one_in(2);
    o.boxed = !free && random.one_in(3);
    o.coin = free && random.one_in(2);
    o.columns = free && random.one_in(2);
    o.coin_input = random.one_in(2);
    if (!o.receipt && o.most_classes == 0 && c.loss->rule == LabelRule::none)
        o.calibration = static_cast<CalibrationKind>(random.below(3));
    c.count = random.one_in(4) ? 1 : 1 + static_cast<int>(random.below(MOST_SCALES));
    const double step = random.pick(steps);
    double h = random.pick(scales);
    for (int k = 0; k < c.count; ++k, h *= step) c.h[k] = std::min(h, LIMIT);
    if (c.count > 1 && random.one_in(8)) c.h[0] = 1e-30, c.h[c.count - 1] = 1e30;
    c.beta = random.one_in(2) ? 1.0 : random.pick(amounts);
    c.l1 = free ? 0.0 : random.pick(amounts);
    c.l2 = free ? 0.0 : random.pick(amounts);
    c.upper = free ? INF : random.pick(sides);
    c.lower = free ? -INF : -random.pick(sides);
    if (!free && random.one_in(4)) c.lower = c.upper == INF ? 0.5 : c.upper;  // a play away from where it starts
    c.tau = random.one_in(2) ? 0.5 : 0.9;
    c.intercept = random.one_in(2);
    s.ends[1] = random.pick(sides);
    s.ends[0] = random.one_in(4) && s.ends[1] < INF ? s.ends[1] : -random.pick(sides);
    s.wide_values = random.one_in(2);
    s.tame = !random.one_in(4);
    s.repeats_slots = random.one_in(4);
    s.many_rows = random.one_in(50);
    s.weighs = random.one_in(2);
    s.drops = random.one_in(2);
    return s;
}

// ---- rows ----

// Rows in arrays of exactly their size.
struct Batch {
    std::vector<std::int64_t> indptr{0};
    std::vector<std::uint32_t> indices;
    std::vector<double> wide;
    std::vector<float> narrow;
    Doubles y, weight;

    std::size_t count() const { return y.size(); }
    std::int64_t size() const { return static_cast<std::int64_t>(indices.size()); }
    double value(std::size_t p, bool is_wide) const { return is_wide ? wide[p] : static_cast<double>(narrow[p]); }
    Rows rows(bool is_wide) const {
        const void* const values = is_wide ? static_cast<const void*>(wide.data()) : narrow.data();
        Rows rows{static_cast<std::int64_t>(indptr.size()) - 1,
                  indptr.data(),
                  indices.data(),
                  values,
                  y.data(),
                  weight.data()};
        rows.wide = is_wide;
        return rows;
    }
    void add(std::uint32_t slot, double number) {
        indices.push_back(slot);
        wide.push_back(number);
        narrow.push_back(static_cast<float>(number));
    }
    void end_row(double label, double row_weight) {
        indptr.push_back(size());
        y.push_back(label);
        weight.push_back(row_weight);
    }
    // Row r of another batch.
    void add_row(const Batch& of, std::size_t r) {
        for (auto p = static_cast<std::size_t>(of.indptr[r]); p < static_cast<std::size_t>(of.indptr[r + 1]); ++p)
            add(of.indices[p], of.wide[p]);
        end_row(of.y[r], of.weight[r]);
    }
    Batch fitted() && {
        const auto fit = [](auto&... arrays) { (arrays.shrink_to_fit(), ...); };
        fit(indptr, indices, wide, narrow, y, weight);
        return std::move(*this);
    }
    Batch slice(std::size_t first, std::size_t last) const {
        Batch part;
        for (std::size_t r = first; r < last; ++r) part.add_row(*this, r);
        return std::move(part).fitted();
    }
};

// The bytes of a body, and zeros after its end.
class Bytes {
public:
    explicit Bytes(const std::string& body) : body_(body) {}
    bool is_empty() const { return at_ >= body_.size(); }
    unsigned next() { return is_empty() ? 0 : static_cast<unsigned char>(body_[at_++]); }
    double number(bool tame) {
        const unsigned kind = next();
        if (kind < 200) return HARD[kind % (tame || kind < 180 ? TAME : std::size(HARD))];
        const double small = (static_cast<double>(next()) - 128.0) / 16.0;
        return std::ldexp(small, kind < 240 ? 0 : static_cast<int>(next()) - 160);
    }

private:
    const std::string& body_;
    std::size_t at_ = 0;
};

bool is_label(double y, const LearnerOptions& o) {
    const Labels labels = o.constants.loss->labels;
    if (std::isnan(y)) return true;
    if (labels == Labels::signs) return std::fabs(y) == 1.0;
    if (labels == Labels::classes) return y >= 0.0 && y < o.most_classes && y == std::floor(y);
    const bool too_small = (labels == Labels::nonnegative && y < 0.0) || (labels == Labels::positive && y <= 0.0);
    return !too_small && std::fabs(y) <= LIMIT;
}

// A label that a loss takes, from any number within the limits.
double tamed(double number, unsigned byte, const LearnerOptions& o) {
    const Labels labels = o.constants.loss->labels;
    if (labels == Labels::signs) return byte % 2 == 0 ? 1.0 : -1.0;
    if (labels == Labels::classes) return static_cast<double>(byte % static_cast<unsigned>(o.most_classes));
    if (labels == Labels::nonnegative) return std::fabs(number);
    return labels == Labels::positive && number <= 0.0 ? (number == 0.0 ? 1.0 : -number) : number;
}

Batch batch_of(const std::string& body, const Setting& s) {
    Bytes bytes(body);
    Batch batch;
    while (!bytes.is_empty()) {
        const unsigned shape = bytes.next(), count = shape < 250 ? shape % 14 : 40 * (shape - 248);
        for (unsigned i = 0; i < count; ++i) {
            const unsigned byte = bytes.next();
            const auto slot = static_cast<std::uint32_t>(!s.tame && byte == 255 ? s.options.dim : byte % s.options.dim);
            const double value = bytes.number(s.tame);
            const auto row = batch.indices.begin() + batch.indptr.back();
            const bool is_new = std::find(row, batch.indices.end(), slot) == batch.indices.end();
            if (is_new || s.repeats_slots) batch.add(slot, value);
        }
        const unsigned label = bytes.next();
        const double number = bytes.number(s.tame);
        const double y = s.tame || label % 8 != 1 ? tamed(number, label, s.options) : number;
        const double weight = bytes.next() < 160 ? 1.0 : bytes.number(s.tame);
        batch.end_row(label < 16 ? NOT_A_NUMBER : y, s.tame ? std::fabs(weight) : weight);
    }
    const std::size_t own = batch.count();
    while (s.many_rows && own > 0 && batch.count() < MANY_ROWS) batch.add_row(batch, batch.count() % own);
    return std::move(batch).fitted();
}

// What an input means, to understand a failure: FUZZ_PRINT=1 driver --replay ...
void print_input(const Batch& batch, const Setting& s) {
    const LearnerOptions& o = s.options;
    const Constants& c = o.constants;
    std::fprintf(
        stderr,
        "%s classes %d of %d dim %llu cells64 %d values64 %d receipt %d boxed %d (%g to %g) coin %d %d columns "
        "%d calibration %d intercept %d beta %g l1 %g l2 %g lower %g upper %g tau %g weighs %d drops %d scales",
        c.loss->name, o.outputs, o.most_classes, static_cast<unsigned long long>(o.dim), o.wide_cells, s.wide_values,
        o.receipt, o.boxed, s.ends[0], s.ends[1], o.coin, o.coin_input, o.columns, static_cast<int>(o.calibration),
        c.intercept, c.beta, c.l1, c.l2, c.lower, c.upper, c.tau, s.weighs, s.drops);
    for (int k = 0; k < c.count; ++k) std::fprintf(stderr, " %g", c.h[k]);
    for (std::size_t r = 0; r < std::min<std::size_t>(batch.count(), 100); ++r) {
        std::fprintf(stderr, "\ny %g weight %g:", batch.y[r], batch.weight[r]);
        for (auto p = static_cast<std::size_t>(batch.indptr[r]); p < static_cast<std::size_t>(batch.indptr[r + 1]); ++p)
            std::fprintf(stderr, " %u:%g", batch.indices[p], batch.wide[p]);
    }
    std::fprintf(stderr, "\n%zu rows\n", batch.count());
}

bool is_good(const Batch& batch, const Setting& s) {
    bool good = true;
    for (std::size_t r = 0; r < batch.count(); ++r) {
        const double y = batch.y[r], weight = batch.weight[r];
        double largest = 1.0;  // of the intercept
        for (auto p = static_cast<std::size_t>(batch.indptr[r]); p < static_cast<std::size_t>(batch.indptr[r + 1]);
             ++p) {
            const double size = std::fabs(batch.value(p, s.wide_values));
            good = good && batch.indices[p] < s.options.dim && size <= (s.wide_values ? LIMIT : FLOAT_LIMIT);
            largest = std::max(largest, size);
        }
        good = good && is_label(y, s.options) && weight >= 0.0 && weight <= LIMIT;
        good = good && (std::isnan(y) || weight * largest <= FLOAT_LIMIT);
    }
    return good;
}

bool admits(const Learner& learner, Batch batch, const Setting& s, Random& random) {
    const RowFault fault = learner.find_fault(batch.rows(s.wide_values), batch.size(), true);
    law(!fault == is_good(batch, s), "rows are refused exactly when they break a rule");
    law(fault.message.size() < 300, "a fault has a short message");
    law(fault.row < static_cast<std::int64_t>(batch.count()), "a fault names a row of the batch");
    constexpr std::int64_t shifts[] = {1, -1, 1000000, -1000000};
    std::vector<std::int64_t>& ends = batch.indptr;
    ends[random.below(ends.size())] += random.pick(shifts);
    const bool covers = ends.front() == 0 && ends.back() == batch.size() && std::is_sorted(ends.begin(), ends.end());
    law(covers || learner.find_fault(batch.rows(s.wide_values), batch.size(), true),
        "rows that do not cover the entries are refused");
    return !fault;
}

// ---- the state of a learner ----

void check_same(const State& a, const State& b, const std::string& who) {
    law(a.size() == b.size(), "states have the same parts");
    for (std::size_t i = 0; i < a.size(); ++i) {
        const Doubles &one = a[i].second, &other = b[i].second;
        const std::string what = who + ": " + a[i].first;
        if (one.size() != other.size()) fail(what + " differ in size");
        for (std::size_t j = 0; j < one.size(); ++j) {
            // The sign and the payload of a NaN are the processor's own affair.
            if (std::memcmp(&one[j], &other[j], sizeof(double)) == 0 || (std::isnan(one[j]) && std::isnan(other[j])))
                continue;
            char text[100];
            std::snprintf(text, sizeof text, " %zu is %.17g and %.17g", j, one[j], other[j]);
            fail(what + text);
        }
    }
}

void check_finite(const State& state) {
    for (const auto& [name, numbers] : state) {
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            if (!std::isfinite(numbers[i]))
                fail("from tame rows no number becomes NaN or infinite: " + name + " " + std::to_string(i));
        }
    }
}

void add_arrays(State& state, const std::vector<NamedArray>& arrays) {
    for (const NamedArray& array : arrays) {
        Doubles all;
        for (int block = 0; block < std::max(array.blocks, 1); ++block) {
            const double* row = array.data + static_cast<std::ptrdiff_t>(block) * array.block_stride;
            for (int r = 0; r < std::max(array.rows, 1); ++r, row += array.stride)
                all.insert(all.end(), row, row + array.columns);
        }
        state.emplace_back(array.name, std::move(all));
    }
}

template <class T>
Doubles cells_of(const Learner& learner, const std::vector<std::uint32_t>& slots) {
    std::vector<T> cells(slots.size() * learner.cell_bytes() / sizeof(T));
    learner.take(slots.data(), slots.size(), cells.data());
    return {cells.begin(), cells.end()};
}

template <class Sums>
Doubles numbers_of(const Sums& sums) {
    const double* const first = &sums.sums[0][0];
    return {first, first + sizeof sums.sums / sizeof(double)};
}

Doubles scores_of(const Learner& learner, const Batch& batch, const Setting& s) {
    Doubles scores(batch.count() * static_cast<std::size_t>(learner.outputs()));
    learner.score(batch.rows(s.wide_values), scores.data());
    return scores;
}

void add_state(State& state, Learner& learner, const Batch& batch, const Setting& s) {
    const auto outputs = static_cast<std::size_t>(learner.outputs()), K = static_cast<std::size_t>(learner.scales());
    std::vector<std::uint32_t> slots(learner.dim());
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<std::uint32_t>(i);
    state.emplace_back("cells",
                       learner.wide_cells() ? cells_of<double>(learner, slots) : cells_of<float>(learner, slots));
    for (std::size_t k = 0; k < K; ++k) {
        Doubles weights(outputs * slots.size());
        learner.weights(static_cast<int>(k), weights.data());
        state.emplace_back("weights", std::move(weights));
    }
    state.emplace_back("tallies", Doubles(learner.tallies(), learner.tallies() + TALLIES));
    add_arrays(state, learner.mixture());
    add_arrays(state, learner.saved_arrays());
    state.emplace_back("later scores", scores_of(learner, batch, s));
    Batch elsewhere = batch;  // in other places of the table, many of them new
    for (std::uint32_t& slot : elsewhere.indices) slot = static_cast<std::uint32_t>(slots.size() - 1 - slot);
    state.emplace_back("scores elsewhere", scores_of(learner, elsewhere, s));
    // Of float64 cells a feature near 1e-160 has a weight near 1e160 or more, whose square is beyond every double.
    if (!learner.receipt() || learner.wide_cells()) return;
    state.emplace_back("ledger", numbers_of(learner.ledger(0, nullptr, 0)));
    const std::vector<std::int64_t> some(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(slots.size() / 2));
    state.emplace_back("ledger of some",
                       numbers_of(learner.ledger(0, some.data(), static_cast<std::int64_t>(some.size()))));
    state.emplace_back("groups", numbers_of(learner.groups(0, learner.scales() - 1)));
}

// Learns rows [from, to), whole or as `cuts` cuts them, when copies may go on.
State learned(const Batch& batch, const Setting& s, const char* instructions, int threads, Random* cuts) {
    if (!use_instruction_set(instructions)) use_instruction_set("portable");
    std::unique_ptr<Learner> learner = Learner::make(s.options);
    learner->threads = threads;
    for (std::uint32_t slot = 0; s.options.boxed && slot < s.options.dim; slot += 3)
        law(learner->put_boxes(&slot, 1, s.ends), "there are not too many bounds");
    State state;
    for (const bool again : {false, true}) {
        Doubles scores(batch.count()), losses(batch.count());
        if (again && s.drops && learner->scales() > 2) learner->keep_scales(1, learner->scales() - 1);
        for (const ExpertEntry& expert : learner->experts()) {
            if (again && s.drops && expert.droppable) learner->drop_expert(expert.name);
        }
        for (std::size_t from = 0, to = 0; from < batch.count(); from = to) {
            to = cuts == nullptr ? batch.count() : from + 1 + cuts->below(batch.count() - from);
            const Batch part = batch.slice(from, to);
            Rows rows = part.rows(s.wide_values);
            law(!learner->find_fault(rows, part.size(), true, &rows.largest), "rows are good by themselves");
            learner->choose_parts(!again || !s.weighs, !again || s.weighs);
            learner->learn(rows, {&scores[from], &losses[from], nullptr, nullptr});
            if (cuts != nullptr && cuts->one_in(3)) learner = learner->copy();
        }
        for (std::size_t r = 0; r < batch.count(); ++r) {
            if (s.options.outputs == 0 && std::isnan(scores[r])) scores[r] = -1.0;  // no class is known yet
            if (!std::isnan(batch.y[r])) continue;
            law(std::isnan(losses[r]), "a row without a label has no loss");
            losses[r] = 0.0;
        }
        state.emplace_back("scores", std::move(scores));
        state.emplace_back("losses", std::move(losses));
        add_state(state, *learner, batch, s);
    }
    use_instruction_set("");
    return state;
}

void run_learning(const std::string& body, Random random) {
    const Setting s = setting_of(random);
    const Batch batch = batch_of(body, s);
    if (std::getenv("FUZZ_PRINT") != nullptr) print_input(batch, s);
    if (!admits(*Learner::make(s.options), batch, s, random)) return;
    const State state = learned(batch, s, "portable", 1, nullptr);
    check_same(state, learned(batch, s, "avx2", 2, nullptr), "portable, and AVX2 with two threads");
    check_same(state, learned(batch, s, "portable", 1, &random), "whole and in batches");
    // Whoever makes a batch promises distinct slots in a row: a play and a step are made for the unit at hand.
    if (!s.repeats_slots) check_finite(state);
}

}  // namespace

Target learning_target() {
    return {"learning",
            run_learning,
            {"\x01", "\x02\x01\x02", "\x04", "\x0d", "\xfa", "\xff", "\x10\x10", "\x20\x20", "\xa0", "\xf0\xff\xf0",
             std::string("\x01\x00\x02\x10\x10", 5), std::string(8, '\0')}};
}

}  // namespace fuzz
