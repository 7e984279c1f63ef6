// The learner. The body is read as rows, the choice as its options. Laws:
//
//   - rows are refused exactly when they break a rule, and then nothing is learned
//   - portable == SSE2 == AVX2, to the bit, in every cell, tally, score, loss and weight, however the rows are cut into
//     batches, and also when a copy of the learner goes on
//   - from options and rows within their limits no number becomes NaN or infinite
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>

#include "engine.hpp"
#include "learner.hpp"

namespace fuzz {
namespace {

using namespace ftprl;

constexpr double INF = std::numeric_limits<double>::infinity();
constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();
// What the arithmetic of a float or of a double finds hard, within the limits and beyond them.
constexpr double HARD[] = {0.0,     -0.0,   1.0,          -1.0,       0.5,    2.0,    3.0,      0.1,         1e-3,
                           100.0,   1e-7,   -1e7,         16777217.0, 1e30,   -1e30,  9.9e29,   1e29,        1e20,
                           1e-20,   1e-30,  1e-38,        1e-45,      -1e-45, 1e-160, 1.5e-162, 1e-300,      5e-324,
                           -5e-324, 0x1p96, 1.0000001e30, 3e38,       1e300,  INF,    -INF,     NOT_A_NUMBER};
constexpr std::size_t TAME = 28;  // so many of them, from the first, are within the limits
constexpr const char* LOSSES[] = {"logistic", "hinge",    "squared_hinge", "squared",
                                  "absolute", "quantile", "huber",         "poisson"};

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

// Rows in arrays of exactly their size.
struct Batch {
    std::vector<std::int64_t> indptr{0};
    std::vector<std::uint32_t> indices;
    std::vector<double> wide;
    std::vector<float> narrow;
    std::vector<double> y, weight;

    Rows rows(bool is_wide) const {
        const void* values = is_wide ? static_cast<const void*>(wide.data()) : narrow.data();
        return {static_cast<std::int64_t>(indptr.size()) - 1,
                indptr.data(),
                indices.data(),
                values,
                y.data(),
                weight.data()};
    }
    void fit() {
        indptr.shrink_to_fit();
        indices.shrink_to_fit();
        wide.shrink_to_fit();
        narrow.shrink_to_fit();
        y.shrink_to_fit();
        weight.shrink_to_fit();
    }
    Batch slice(std::size_t first, std::size_t last) const {
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
};

struct Setting {
    std::uint64_t dim;
    bool wide_cells, wide_values, receipt, tame;
    Constants constants;
};

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
    const bool plain = random.one_in(2);
    double lower = -random.pick(sides), upper = random.pick(sides);
    if (random.one_in(4)) lower = upper == INF ? 0.5 : upper;  // both above 0: a play away from where it starts
    s.constants = Constants{random.pick(scales),
                            random.one_in(2) ? 1.0 : random.pick(amounts),
                            plain ? 0.0 : random.pick(amounts),
                            plain ? 0.0 : random.pick(amounts),
                            plain ? -INF : lower,
                            plain ? INF : upper,
                            random.one_in(2) ? 0.5 : 0.9,
                            loss_named(random.pick(LOSSES)),
                            random.one_in(2)};
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
            const double value = bytes.number(s.tame);
            const bool is_outside = !s.tame && slot == 255;
            batch.indices.push_back(is_outside ? static_cast<std::uint32_t>(s.dim)
                                               : static_cast<std::uint32_t>(slot % s.dim));
            batch.wide.push_back(value);
            batch.narrow.push_back(static_cast<float>(value));
        }
        batch.indptr.push_back(static_cast<std::int64_t>(batch.indices.size()));
        const unsigned label = bytes.next();
        const double sign = label % 2 == 0 ? 1.0 : -1.0;
        const bool free = s.tame && domain_of(s.constants.loss) == Domain::signs;
        const double number = free ? sign : bytes.number(s.tame);
        const bool is_count = s.tame && domain_of(s.constants.loss) == Domain::counts;
        batch.y.push_back(label < 16 ? NOT_A_NUMBER : is_count ? std::fabs(number) : number);
        const unsigned weight = bytes.next();
        batch.weight.push_back(weight < 160 ? 1.0 : s.tame ? std::fabs(bytes.number(true)) : bytes.number(false));
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
        const Domain domain = domain_of(s.constants.loss);
        const bool fits = domain == Domain::signs ? std::fabs(y) == 1.0
                                                  : std::fabs(y) <= LIMIT && !(domain == Domain::counts && y < 0.0);
        good = good && (std::isnan(y) || fits);
    }
    return good;
}

// All that a learner can tell.
struct Told {
    std::vector<double> cells, intercept, tallies, scores, losses, after, weights;
};

std::vector<double> cells_of(const Learner& learner) {
    const std::size_t count = 4 * static_cast<std::size_t>(learner.dim());
    if (learner.wide_cells()) {
        const auto* cells = static_cast<const double*>(learner.cells());
        return {cells, cells + count};
    }
    const auto* cells = static_cast<const float*>(learner.cells());
    return {cells, cells + count};
}

Told tell(Learner& learner, const Batch& batch, const Setting& s) {
    Told told;
    told.cells = cells_of(learner);
    told.intercept.assign(learner.intercept(), learner.intercept() + 4);
    told.tallies.assign(learner.tallies(), learner.tallies() + TALLIES);
    told.after.resize(batch.y.size());
    told.weights.resize(learner.dim());
    learner.score(batch.rows(s.wide_values), s.wide_values, told.after.data());
    learner.weights(told.weights.data());
    return told;
}

void check_same(const std::vector<double>& a, const std::vector<double>& b, const char* what) {
    law(a.size() == b.size(), what);
    for (std::size_t i = 0; i < a.size(); ++i) {
        // The sign and the payload of a NaN are the processor's own affair.
        if (std::memcmp(&a[i], &b[i], sizeof(double)) != 0 && !(std::isnan(a[i]) && std::isnan(b[i]))) {
            char text[160];
            std::snprintf(text, sizeof text, "%s: place %zu is %.17g and %.17g", what, i, a[i], b[i]);
            fail(text);
        }
    }
}

Told learned(const char* kernels, const Batch& batch, const Setting& s, Random* cuts) {
    use_kernels(kernels);
    auto learner = std::make_unique<Learner>(s.dim, s.wide_cells, s.receipt, s.constants);
    std::vector<double> all_scores, all_losses;
    for (std::size_t from = 0; from < batch.y.size();) {
        const std::size_t left = batch.y.size() - from;
        const std::size_t count = cuts == nullptr ? left : 1 + cuts->below(left);
        const Batch part = batch.slice(from, from + count);
        std::vector<double> scores(count), losses(count);
        learner->learn(part.rows(s.wide_values), s.wide_values, {scores.data(), losses.data()});
        all_scores.insert(all_scores.end(), scores.begin(), scores.end());
        all_losses.insert(all_losses.end(), losses.begin(), losses.end());
        from += count;
        if (cuts != nullptr && cuts->one_in(3)) learner = std::make_unique<Learner>(*learner);
    }
    Told told = tell(*learner, batch, s);
    learner->touch(batch.rows(s.wide_values));
    check_same(cells_of(*learner), told.cells, "touching changes nothing");
    told.scores = std::move(all_scores);
    told.losses = std::move(all_losses);
    return told;
}

void check_finite(const std::vector<double>& numbers, const char* what) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (std::isfinite(numbers[i])) continue;
        fail(std::string("from tame rows no number becomes NaN or infinite: ") + what + " " + std::to_string(i) +
             " is " + std::to_string(numbers[i]));
    }
}

void check_same(const Told& a, const Told& b, const std::string& who) {
    check_same(a.scores, b.scores, (who + " scores").c_str());
    check_same(a.losses, b.losses, (who + " losses").c_str());
    check_same(a.cells, b.cells, (who + " cells").c_str());
    check_same(a.intercept, b.intercept, (who + " intercept").c_str());
    check_same(a.tallies, b.tallies, (who + " tallies").c_str());
    check_same(a.weights, b.weights, (who + " weights").c_str());
    check_same(a.after, b.after, (who + " scores afterwards").c_str());
}

// Arrays that do not fit together are refused before they are read.
void check_shape(const Batch& batch, const Setting& s, const Learner& learner, Random& random) {
    if (batch.indptr.size() < 2) return;
    Batch broken = batch;
    const std::size_t at = random.below(broken.indptr.size());
    constexpr std::int64_t shifts[] = {1, -1, 1000000, -1000000};
    broken.indptr[at] += random.pick(shifts);
    bool good = broken.indptr.front() == 0 && broken.indptr.back() == static_cast<std::int64_t>(broken.indices.size());
    for (std::size_t r = 1; r < broken.indptr.size(); ++r) good = good && broken.indptr[r - 1] <= broken.indptr[r];
    const std::string fault = learner.fault(broken.rows(s.wide_values), s.wide_values,
                                            static_cast<std::int64_t>(batch.indices.size()), true, 0);
    if (!good) law(!fault.empty(), "rows that do not cover the entries are refused");
}

// What an input means, to understand a failure: FUZZ_TELL=1 driver --replay ...
void tell_input(const Batch& batch, const Setting& s) {
    const Constants& c = s.constants;
    std::fprintf(stderr,
                 "dim %llu cells64 %d values64 %d receipt %d intercept %d h %g beta %g l1 %g l2 %g lower %g upper %g "
                 "tau %g loss",
                 static_cast<unsigned long long>(s.dim), s.wide_cells, s.wide_values, s.receipt, c.intercept, c.h,
                 c.beta, c.l1, c.l2, c.lower, c.upper, c.tau);
    for (const char* name : LOSSES)
        std::fprintf(stderr, "%s", loss_named(name) == c.loss ? (std::string(" ") + name + "\n").c_str() : "");
    for (std::size_t r = 0; r < batch.y.size(); ++r) {
        std::fprintf(stderr, "y %g weight %g:", batch.y[r], batch.weight[r]);
        for (std::int64_t p = batch.indptr[r]; p < batch.indptr[r + 1]; ++p) {
            std::fprintf(stderr, " %u:%g", batch.indices[static_cast<std::size_t>(p)],
                         batch.wide[static_cast<std::size_t>(p)]);
        }
        std::fprintf(stderr, "\n");
    }
}

void run_kernel(const std::string& body, Random random) {
    const Setting s = setting_of(random);
    const Batch batch = batch_of(body, s);
    use_kernels("");
    const Learner judge(s.dim, s.wide_cells, s.receipt, s.constants);
    const auto size = static_cast<std::int64_t>(batch.indices.size());
    const std::string fault = judge.fault(batch.rows(s.wide_values), s.wide_values, size, true, 5);
    law(fault.empty() == is_good(batch, s), "rows are refused exactly when they break a rule");
    law(fault.size() < 300, "a fault is told briefly");
    check_shape(batch, s, judge, random);
    if (!fault.empty()) return;
    if (std::getenv("FUZZ_TELL") != nullptr) tell_input(batch, s);
    const Told portable = learned("portable", batch, s, nullptr);
    for (const char* name : {"sse2", "avx2"}) {
        if (!use_kernels(name)) continue;
        check_same(portable, learned(name, batch, s, random.one_in(2) ? &random : nullptr),
                   std::string("portable and ") + name);
    }
    check_same(portable, learned("portable", batch, s, &random), "whole and in batches:");
    check_finite(portable.cells, "cell");
    check_finite(portable.intercept, "intercept");
    check_finite(portable.weights, "weight");
    check_finite(portable.scores, "score");
    check_finite(portable.after, "later score");
}

}  // namespace

Target kernel_target() {
    return {"kernel",
            run_kernel,
            {"\x01", "\x02\x01\x02", "\x04", "\x0d", "\xfa", "\xff", "\x10\x10", "\x20\x20", "\xa0", "\xf0\xff\xf0",
             std::string("\x01\x00\x02\x10\x10", 5), std::string(8, '\0')}};
}

}  // namespace fuzz
