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

}  // namespace

// ---- rows ----

Rows Batch::rows(bool is_wide) const {
    const void* values = is_wide ? static_cast<const void*>(wide.data()) : narrow.data();
    return {
        static_cast<std::int64_t>(indptr.size()) - 1, indptr.data(), indices.data(), values, y.data(), weight.data()};
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
            const bool is_outside = !s.tame && slot == 255;
            batch.add(static_cast<std::uint32_t>(is_outside ? s.dim : slot % s.dim), bytes.number(s.tame));
        }
        const unsigned label = bytes.next();
        const double sign = label % 2 == 0 ? 1.0 : -1.0;
        const bool free = s.tame && domain_of(s.constants.loss) == Domain::signs;
        const double number = free ? sign : bytes.number(s.tame);
        const bool is_count = s.tame && domain_of(s.constants.loss) == Domain::counts;
        const unsigned weight = bytes.next();
        batch.end_row(label < 16 ? NOT_A_NUMBER
                      : is_count ? std::fabs(number)
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
        const Domain domain = domain_of(s.constants.loss);
        const bool fits = domain == Domain::signs ? std::fabs(y) == 1.0
                                                  : std::fabs(y) <= LIMIT && !(domain == Domain::counts && y < 0.0);
        good = good && (std::isnan(y) || fits);
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

// ---- what is told ----

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

void check_same(const Told& a, const Told& b, const std::string& who) {
    law(a.size() == b.size(), who.c_str());
    for (std::size_t i = 0; i < a.size(); ++i) check_same(a[i].second, b[i].second, who + " " + a[i].first);
}

void check_finite(const Told& told, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
        bool is_there = false;
        for (const auto& [part, numbers] : told) {
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

Told check_kernels(const std::function<Told(Random* cuts)>& learn, Random& random) {
    use_kernels("portable");
    Told portable = learn(nullptr);
    for (const char* name : {"sse2", "avx2"}) {
        if (!use_kernels(name)) continue;
        check_same(portable, learn(random.one_in(2) ? &random : nullptr), std::string("portable and ") + name);
    }
    use_kernels("portable");
    check_same(portable, learn(&random), "whole and in batches:");
    return portable;
}

}  // namespace fuzz
