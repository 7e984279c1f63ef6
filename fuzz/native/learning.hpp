// What the targets of the learners share: a body read as rows, a choice as options, and what a learner tells.
#pragma once

#include <functional>
#include <limits>
#include <utility>

#include "engine.hpp"
#include "learners/learner.hpp"

namespace fuzz {

constexpr double INF = std::numeric_limits<double>::infinity();

// Rows in arrays of exactly their size.
struct Batch {
    std::vector<std::int64_t> indptr{0};
    std::vector<std::uint32_t> indices;
    std::vector<double> wide;
    std::vector<float> narrow;
    std::vector<double> y, weight;

    ftprl::Rows rows(bool is_wide) const;
    std::int64_t size() const { return static_cast<std::int64_t>(indices.size()); }
    void add(std::uint32_t slot, double value);
    void end_row(double label, double row_weight);
    void fit();
    Batch slice(std::size_t first, std::size_t last) const;
};

struct Setting {
    std::uint64_t dim;
    bool wide_cells, wide_values, receipt, tame;
    ftprl::Constants constants;
};

Setting setting_of(Random& random);
Batch batch_of(const std::string& body, const Setting& s);
bool is_good(const Batch& batch, const Setting& s);
// The same rows in other places of the table, many of them new.
Batch elsewhere(const Batch& batch, const Setting& s);
// The rows without the entries whose coordinate stands in the row before them.
Batch distinct(const Batch& batch);
// What an input means, to understand a failure: FUZZ_TELL=1 driver --replay ...
void tell_input(const Batch& batch, const Setting& s);
// Rows of which one begins or ends where none does, and whether they still cover the entries.
std::pair<Batch, bool> broken(const Batch& batch, Random& random);

// All that a learner can tell, by name.
using Numbers = std::vector<double>;
using Told = std::vector<std::pair<const char*, Numbers>>;
void check_same(const Numbers& a, const Numbers& b, const std::string& what);
void check_same(const Told& a, const Told& b, const std::string& who);
// The parts of these names.
void check_finite(const Told& told, const std::vector<std::string>& names);

// What is finite in float32 cells. In float64 cells a feature near 1e-160 has a weight near 1e160 or more, whose
// square, as a receipt adds it up, is beyond every double.
const std::vector<std::string> LEDGER_PARTS = {"ledger", "ledger of some", "groups"};
Numbers numbers_of(const ftprl::LedgerSums& sums);
Numbers numbers_of(const ftprl::LedgerGroups& groups);
// Some coordinates for a ledger: few, more than are added up together, and seldom more than one thread adds up.
std::vector<std::int64_t> some_slots(std::uint64_t dim, Random random);

// Whether rows may be learned, by a learner for which they are meant; checks that it says so rightly.
template <class L>
bool admits(const L& judge, const Batch& batch, const Setting& s, Random& random) {
    const std::string fault = judge.fault(batch.rows(s.wide_values), s.wide_values, batch.size(), true, 5);
    law(fault.empty() == is_good(batch, s), "rows are refused exactly when they break a rule");
    law(fault.size() < 300, "a fault is told briefly");
    if (batch.indptr.size() > 1) {
        // Arrays that do not fit together are refused before they are read.
        const auto [rows, covers] = broken(batch, random);
        const std::string why = judge.fault(rows.rows(s.wide_values), s.wide_values, batch.size(), true, 0);
        law(covers || !why.empty(), "rows that do not cover the entries are refused");
    }
    return fault.empty();
}

// Learns the rows, whole or as `cuts` cuts them; then a learner may be exchanged for one that says it is the same.
template <class L, class Exchange>
Told learn_all(std::unique_ptr<L>& learner, const Batch& batch, const Setting& s, Random* cuts, Exchange exchange) {
    Numbers all_scores, all_losses;
    for (std::size_t from = 0; from < batch.y.size();) {
        const std::size_t left = batch.y.size() - from;
        const std::size_t count = cuts == nullptr ? left : 1 + cuts->below(left);
        const Batch part = batch.slice(from, from + count);
        Numbers scores(count), losses(count);
        learner->learn(part.rows(s.wide_values), s.wide_values, {scores.data(), losses.data()});
        all_scores.insert(all_scores.end(), scores.begin(), scores.end());
        all_losses.insert(all_losses.end(), losses.begin(), losses.end());
        from += count;
        if (cuts != nullptr && cuts->one_in(3)) learner = exchange(*learner);
    }
    return {{"scores", std::move(all_scores)}, {"losses", std::move(all_losses)}};
}

template <class L>
Numbers scores_of(const L& learner, const Batch& batch, const Setting& s) {
    Numbers scores(batch.y.size());
    learner.score(batch.rows(s.wide_values), s.wide_values, scores.data());
    return scores;
}

// What bodies of rows are made of.
std::vector<std::string> row_tokens();

// `learn` with each instruction set, whole and in batches: all must tell the same. Returns what they tell.
Told check_kernels(const std::function<Told(Random* cuts)>& learn, Random& random);

}  // namespace fuzz
