#include "learning.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

namespace fuzz {
namespace {

using namespace ftprl;

constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();
// What the arithmetic of a float or of a double finds hard, within the limits and beyond them.
constexpr double HARD[] = {0.0,     -0.0,   1.0,          -1.0,       0.5,    2.0,    3.0,      0.1,         1e-3,
                           100.0,   1e-7,   -1e7,         16777217.0, 1e30,   -1e30,  9.9e29,   1e29,        1e20,
                           1e-20,   1e-30,  1e-38,        1e-45,      -1e-45, 1e-160, 1.5e-162, 1e-300,      5e-324,
                           -5e-324, 0x1p96, 1.0000001e30, 3e38,       1e300,  INF,    -INF,     NOT_A_NUMBER};
constexpr std::size_t TAME = 28;  // so many of them, from the first, are within the limits

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

bool is_label(double y, Labels labels) {
    if (labels == Labels::signs) return std::fabs(y) == 1.0;
    if (labels == Labels::nonnegative && y < 0.0) return false;
    if (labels == Labels::positive && y <= 0.0) return false;
    return std::fabs(y) <= LIMIT;
}

// A label that a loss takes, from any number within the limits.
double tamed(double number, Labels labels) {
    if (labels == Labels::nonnegative) return std::fabs(number);
    if (labels == Labels::positive) return number == 0.0 ? 1.0 : std::fabs(number);
    return number;
}

}  // namespace

// ---- rows ----

Rows Batch::rows(bool is_wide) const {
    const void* values = is_wide ? static_cast<const void*>(wide.data()) : narrow.data();
    Rows rows{};
    rows.count = static_cast<std::int64_t>(indptr.size()) - 1;
    rows.indptr = indptr.data();
    rows.indices = indices.data();
    rows.values = values;
    rows.y = y.data();
    rows.weight = weight.data();
    return rows;
}

void Batch::add(std::uint32_t slot, double value) {
    indices.push_back(slot);
    wide.push_back(value);
    narrow.push_back(static_cast<float>(value));
}

void Batch::end_row(double label, double row_weight) {
    indptr.push_back(size());
    y.push_back(label);
    weight.push_back(row_weight);
}

void Batch::fit() {
    indptr.shrink_to_fit();
    indices.shrink_to_fit();
    wide.shrink_to_fit();
    narrow.shrink_to_fit();
    y.shrink_to_fit();
    weight.shrink_to_fit();
}

Batch Batch::slice(std::size_t first, std::size_t last) const {
    Batch part;
    const std::int64_t from = indptr[first];
    for (std::size_t r = first; r < last; ++r) part.indptr.push_back(indptr[r + 1] - from);
    part.indices.assign(indices.begin() + from, indices.begin() + indptr[last]);
    part.wide.assign(wide.begin() + from, wide.begin() + indptr[last]);
    part.narrow.assign(narrow.begin() + from, narrow.begin() + indptr[last]);
    part.y.assign(y.begin() + static_cast<std::ptrdiff_t>(first), y.begin() + static_cast<std::ptrdiff_t>(last));
    part.weight.assign(weight.begin() + static_cast<std::ptrdiff_t>(first),
                       weight.begin() + static_cast<std::ptrdiff_t>(last));
    part.fit();
    return part;
}

Setting setting_of(Random& random) {
    constexpr std::uint64_t dims[] = {1, 2, 5, 16, 300};
    constexpr double scales[] = {0.1, 1.0, 0.02, 40.0, 1e-30, 1e30, 1e-9, 1e9};
    constexpr double amounts[] = {0.0, 0.0, 1.0, 0.01, 1e-30, 1e30, 3.0};
    constexpr double sides[] = {INF, INF, 1.0, 0.001, 1e30, 0.0, 1e-30};
    Setting s{};
    s.dim = random.pick(dims);
    s.wide_cells = random.one_in(2);
    s.wide_values = random.one_in(2);
    s.receipt = random.one_in(2);
    s.tame = !random.one_in(4);
    const bool unconstrained = random.one_in(2);
    double lower = -random.pick(sides), upper = random.pick(sides);
    if (random.one_in(4)) lower = upper == INF ? 0.5 : upper;  // both above 0: a play away from where it starts
    s.constants.h = random.pick(scales);
    s.constants.beta = random.one_in(2) ? 1.0 : random.pick(amounts);
    s.constants.l1 = unconstrained ? 0.0 : random.pick(amounts);
    s.constants.l2 = unconstrained ? 0.0 : random.pick(amounts);
    s.constants.lower = unconstrained ? -INF : lower;
    s.constants.upper = unconstrained ? INF : upper;
    s.constants.tau = random.one_in(2) ? 0.5 : 0.9;
    s.constants.loss = &LOSSES[random.below(LOSS_COUNT)];
    s.constants.intercept = random.one_in(2);
    return s;
}

Batch batch_of(const std::string& body, const Setting& s) {
    Bytes bytes(body);
    Batch batch;
    while (!bytes.is_empty()) {
        const unsigned shape = bytes.next();
        const unsigned count = shape < 250 ? shape % 14 : 40 * (shape - 248);
        for (unsigned i = 0; i < count; ++i) {
            const unsigned slot = bytes.next();
            const bool is_outside = !s.tame && slot == 255;
            batch.add(static_cast<std::uint32_t>(is_outside ? s.dim : slot % s.dim), bytes.number(s.tame));
        }
        const unsigned label = bytes.next();
        const double sign = label % 2 == 0 ? 1.0 : -1.0;
        const Labels labels = s.constants.loss->labels;
        const double number = s.tame && labels == Labels::signs ? sign : bytes.number(s.tame);
        const unsigned weight = bytes.next();
        batch.end_row(label < 16 ? NOT_A_NUMBER
                      : s.tame   ? tamed(number, labels)
                                 : number,
                      weight < 160 ? 1.0
                      : s.tame     ? std::fabs(bytes.number(true))
                                   : bytes.number(false));
    }
    batch.fit();
    return batch;
}

bool is_good(const Batch& batch, const Setting& s) {
    bool good = true;
    for (std::size_t i = 0; i < batch.indices.size(); ++i) {
        const double v = s.wide_values ? batch.wide[i] : static_cast<double>(batch.narrow[i]);
        // A float next to 1e30 may be taken for it.
        good = good && batch.indices[i] < s.dim &&
               std::fabs(v) <= (s.wide_values ? LIMIT : static_cast<double>(static_cast<float>(LIMIT)));
    }
    for (std::size_t r = 0; r < batch.y.size(); ++r) {
        const double y = batch.y[r], w = batch.weight[r];
        good = good && w >= 0.0 && w <= LIMIT;
        good = good && (std::isnan(y) || is_label(y, s.constants.loss->labels));
        double largest = 1.0;  // of the intercept
        for (std::int64_t p = batch.indptr[r]; p < batch.indptr[r + 1]; ++p)
            largest =
                std::max(largest, std::fabs(s.wide_values ? batch.wide[p] : static_cast<double>(batch.narrow[p])));
        good = good && (std::isnan(y) || w * largest <= static_cast<double>(static_cast<float>(LIMIT)));
    }
    return good;
}

Batch elsewhere(const Batch& batch, const Setting& s) {
    Batch other = batch;
    for (std::uint32_t& slot : other.indices) slot = static_cast<std::uint32_t>(s.dim - 1 - slot);
    return other;
}

Batch distinct(const Batch& batch) {
    Batch rows;
    for (std::size_t r = 0; r < batch.y.size(); ++r) {
        const std::int64_t from = rows.indptr.back();
        for (auto p = static_cast<std::size_t>(batch.indptr[r]); p < static_cast<std::size_t>(batch.indptr[r + 1]);
             ++p) {
            const auto row = rows.indices.begin() + from;
            if (std::find(row, rows.indices.end(), batch.indices[p]) == rows.indices.end())
                rows.add(batch.indices[p], batch.wide[p]);
        }
        rows.end_row(batch.y[r], batch.weight[r]);
    }
    rows.fit();
    return rows;
}

std::pair<Batch, bool> broken(const Batch& batch, Random& random) {
    Batch rows = batch;
    const std::size_t at = random.below(rows.indptr.size());
    constexpr std::int64_t shifts[] = {1, -1, 1000000, -1000000};
    rows.indptr[at] += random.pick(shifts);
    bool covers = rows.indptr.front() == 0 && rows.indptr.back() == rows.size();
    for (std::size_t r = 1; r < rows.indptr.size(); ++r) covers = covers && rows.indptr[r - 1] <= rows.indptr[r];
    return {std::move(rows), covers};
}

void print_input(const Batch& batch, const Setting& s) {
    const Constants& c = s.constants;
    std::fprintf(stderr,
                 "dim %llu cells64 %d values64 %d receipt %d intercept %d h %g beta %g l1 %g l2 %g lower %g upper %g "
                 "tau %g loss %s\n",
                 static_cast<unsigned long long>(s.dim), s.wide_cells, s.wide_values, s.receipt, c.intercept, c.h,
                 c.beta, c.l1, c.l2, c.lower, c.upper, c.tau, c.loss->name);
    for (std::size_t r = 0; r < batch.y.size(); ++r) {
        std::fprintf(stderr, "y %g weight %g:", batch.y[r], batch.weight[r]);
        for (std::int64_t p = batch.indptr[r]; p < batch.indptr[r + 1]; ++p) {
            std::fprintf(stderr, " %u:%g", batch.indices[static_cast<std::size_t>(p)],
                         batch.wide[static_cast<std::size_t>(p)]);
        }
        std::fprintf(stderr, "\n");
    }
}

// ---- the state of a learner ----

void check_same(const Numbers& a, const Numbers& b, const std::string& what) {
    law(a.size() == b.size(), what.c_str());
    for (std::size_t i = 0; i < a.size(); ++i) {
        // The sign and the payload of a NaN are the processor's own affair.
        if (std::memcmp(&a[i], &b[i], sizeof(double)) != 0 && !(std::isnan(a[i]) && std::isnan(b[i]))) {
            char text[160];
            std::snprintf(text, sizeof text, ": place %zu is %.17g and %.17g", i, a[i], b[i]);
            fail(what + text);
        }
    }
}

void check_same(const LearnerState& a, const LearnerState& b, const std::string& who) {
    law(a.size() == b.size(), who.c_str());
    for (std::size_t i = 0; i < a.size(); ++i) check_same(a[i].second, b[i].second, who + " " + a[i].first);
}

void check_finite(const LearnerState& state, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
        bool is_there = false;
        for (const auto& [part, numbers] : state) {
            if (name != part) continue;
            is_there = true;
            for (std::size_t i = 0; i < numbers.size(); ++i) {
                if (std::isfinite(numbers[i])) continue;
                fail("from tame rows no number becomes NaN or infinite: " + name + " " + std::to_string(i) + " is " +
                     std::to_string(numbers[i]));
            }
        }
        law(is_there, "a part that is checked is there");
    }
}

Numbers numbers_of(const LedgerSums& sums) {
    return {&sums.sums[0][0], &sums.sums[0][0] + sizeof sums.sums / sizeof(double)};
}

Numbers numbers_of(const LedgerGroups& groups) {
    return {&groups.sums[0][0], &groups.sums[0][0] + sizeof groups.sums / sizeof(double)};
}

bool admits(const Learner& learner, const Batch& batch, const Setting& s, Random& random) {
    const RowFault fault = learner.find_fault(batch.rows(s.wide_values), s.wide_values, batch.size(), true);
    law(!fault == is_good(batch, s), "rows are refused exactly when they break a rule");
    law(fault.message.size() < 300, "a fault has a short message");
    law(fault.row < static_cast<std::int64_t>(batch.y.size()), "a fault names a row of the batch");
    if (batch.indptr.size() > 1) {
        // Arrays that do not fit together are refused before they are read.
        const auto [rows, covers] = broken(batch, random);
        const RowFault shape = learner.find_fault(rows.rows(s.wide_values), s.wide_values, batch.size(), true);
        law(covers || shape, "rows that do not cover the entries are refused");
    }
    return !fault;
}

LearnerState learn_all(Owned& learner, const Batch& batch, const Setting& s, Random* cuts, const Exchange& exchange) {
    Numbers all_scores, all_losses;
    for (std::size_t from = 0; from < batch.y.size();) {
        const std::size_t left = batch.y.size() - from;
        const std::size_t count = cuts == nullptr ? left : 1 + cuts->below(left);
        const Batch part = batch.slice(from, from + count);
        Numbers scores(count), losses(count);
        learner->learn(part.rows(s.wide_values), s.wide_values, {scores.data(), losses.data(), nullptr, nullptr});
        all_scores.insert(all_scores.end(), scores.begin(), scores.end());
        all_losses.insert(all_losses.end(), losses.begin(), losses.end());
        from += count;
        if (cuts != nullptr && cuts->one_in(3)) learner = exchange(*learner);
    }
    return {{"scores", std::move(all_scores)}, {"losses", std::move(all_losses)}};
}

Numbers scores_of(const Learner& learner, const Batch& batch, const Setting& s) {
    Numbers scores(batch.y.size());
    learner.score(batch.rows(s.wide_values), s.wide_values, scores.data());
    return scores;
}

std::vector<std::uint32_t> all_slots(std::uint64_t dim) {
    std::vector<std::uint32_t> slots(dim);
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<std::uint32_t>(i);
    return slots;
}

std::vector<unsigned char> taken(const Learner& learner, const std::vector<std::uint32_t>& slots) {
    std::vector<unsigned char> cells(slots.size() * learner.cell_bytes());
    learner.take(slots.data(), slots.size(), cells.data());
    return cells;
}

namespace {

template <class T>
Numbers numbers_in(const std::vector<unsigned char>& bytes) {
    std::vector<T> numbers(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return {numbers.begin(), numbers.end()};
}

// All arrays, one after another.
Numbers joined(const std::vector<NamedArray>& arrays) {
    Numbers all;
    for (const NamedArray& array : arrays) {
        for (int r = 0; r < std::max(array.rows, 1); ++r) {
            const double* row = array.data + static_cast<std::ptrdiff_t>(r) * array.stride;
            all.insert(all.end(), row, row + array.columns);
        }
    }
    return all;
}

}  // namespace

Numbers cells_of(const Learner& learner) {
    const std::vector<unsigned char> bytes = taken(learner, all_slots(learner.dim()));
    return learner.wide_cells() ? numbers_in<double>(bytes) : numbers_in<float>(bytes);
}

LearnerState state_of(Learner& learner, const Batch& batch, const Setting& s, const Question& q) {
    Numbers weights, one(s.dim), intercept(4 * static_cast<std::size_t>(learner.scales()));
    for (int k = 0; k < learner.scales(); ++k) {
        learner.weights(k, one.data());
        weights.insert(weights.end(), one.begin(), one.end());
    }
    learner.intercept(intercept.data());
    std::vector<std::uint32_t> touched(s.dim);
    touched.resize(learner.touched(touched.data()));
    const double* bins = &learner.calibration().bins[0][0];
    LearnerState state = {{"cell", cells_of(learner)},
                          {"touched", Numbers(touched.begin(), touched.end())},
                          {"intercept", std::move(intercept)},
                          {"tallies", Numbers(learner.tallies(), learner.tallies() + TALLIES)},
                          {"mixture", joined(learner.mixture())},
                          {"saved", joined(learner.saved_arrays())},
                          {"calibration", Numbers(bins, bins + 3 * BINS)},
                          {"weight", std::move(weights)},
                          {"later score", scores_of(learner, batch, s)},
                          {"score elsewhere", scores_of(learner, elsewhere(batch, s), s)}};
    if (!s.receipt) return state;
    const auto count = static_cast<std::int64_t>(q.slots.size());
    state.emplace_back("ledger", numbers_of(learner.ledger(q.leader, nullptr, 0)));
    state.emplace_back("ledger of some", numbers_of(learner.ledger(q.leader, q.slots.data(), count)));
    state.emplace_back("groups", numbers_of(learner.groups(q.leader, q.scale)));
    return state;
}

Owned moved(Learner& old, const LearnerOptions& options, Random& random) {
    std::vector<std::uint32_t> slots = all_slots(old.dim());
    if (random.one_in(2)) slots.resize(old.touched(slots.data()));
    if (random.one_in(2)) std::reverse(slots.begin(), slots.end());
    Owned fresh = Learner::make(options);
    fresh->put(slots.data(), slots.size(), taken(old, slots).data());
    if (old.receipt()) {
        Numbers gradients(slots.size() * static_cast<std::size_t>(old.scales()));
        old.take_gradients(slots.data(), slots.size(), gradients.data());
        fresh->put_gradients(slots.data(), slots.size(), gradients.data());
    }
    copy_arrays(old, *fresh);
    return fresh;
}

void copy_arrays(Learner& from, Learner& to) {
    const std::vector<NamedArray> old = from.saved_arrays(), fresh = to.saved_arrays();
    law(old.size() == fresh.size(), "learners of a kind save the same arrays");
    for (std::size_t i = 0; i < old.size(); ++i) {
        for (int r = 0; r < std::max(old[i].rows, 1); ++r) {
            const double* row = old[i].data + static_cast<std::ptrdiff_t>(r) * old[i].stride;
            std::copy(row, row + old[i].columns, fresh[i].data + static_cast<std::ptrdiff_t>(r) * fresh[i].stride);
        }
    }
}

std::vector<std::int64_t> some_slots(std::uint64_t dim, Random random) {
    std::vector<std::int64_t> slots(random.one_in(500) ? 150000 : random.one_in(10) ? 5000 : 1 + random.below(40));
    for (std::int64_t& slot : slots) slot = static_cast<std::int64_t>(random.below(dim));
    return slots;
}

std::vector<std::string> row_tokens() {
    return {"\x01",
            "\x02\x01\x02",
            "\x04",
            "\x0d",
            "\xfa",
            "\xff",
            "\x10\x10",
            "\x20\x20",
            "\xa0",
            "\xf0\xff\xf0",
            std::string("\x01\x00\x02\x10\x10", 5),
            std::string(8, '\0')};
}

LearnerState check_kernels(const std::function<LearnerState(Random* cuts)>& learn, Random& random) {
    use_instruction_set("portable");
    LearnerState portable = learn(nullptr);
    if (use_instruction_set("avx2")) {
        check_same(portable, learn(random.one_in(2) ? &random : nullptr), "portable and avx2");
    }
    use_instruction_set("portable");
    check_same(portable, learn(&random), "whole and in batches:");
    return portable;
}

}  // namespace fuzz
