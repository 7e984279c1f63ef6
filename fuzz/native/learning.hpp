// What the targets of the learners share: a body read as rows, a choice as options, and what can be read off a learner.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "engine.hpp"
#include "learners/learner.hpp"
#include "support/dispatch.hpp"

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
// What an input means, to understand a failure: FUZZ_PRINT=1 driver --replay ...
void print_input(const Batch& batch, const Setting& s);
// Rows of which one begins or ends where none does, and whether they still cover the entries.
std::pair<Batch, bool> broken(const Batch& batch, Random& random);

// All that can be read off a learner, by name.
using Numbers = std::vector<double>;
using LearnerState = std::vector<std::pair<const char*, Numbers>>;
void check_same(const Numbers& a, const Numbers& b, const std::string& what);
void check_same(const LearnerState& a, const LearnerState& b, const std::string& who);
// The parts of these names.
void check_finite(const LearnerState& state, const std::vector<std::string>& names);

// What is finite in float32 cells. In float64 cells a feature near 1e-160 has a weight near 1e160 or more, whose
// square, as a receipt adds it up, is beyond every double.
const std::vector<std::string> LEDGER_PARTS = {"ledger", "ledger of some", "groups"};
Numbers numbers_of(const ftprl::LedgerSums& sums);
Numbers numbers_of(const ftprl::LedgerGroups& groups);
// Some coordinates for a ledger: few, more than are added up together, and seldom more than one thread adds up.
std::vector<std::int64_t> some_slots(std::uint64_t dim, Random random);

using Owned = std::unique_ptr<ftprl::Learner>;
using Exchange = std::function<Owned(ftprl::Learner&)>;

// What a receipt is asked for besides the options.
struct Question {
    int leader, scale;
    std::vector<std::int64_t> slots;
};

// Whether rows may be learned, by a learner for which they are meant; checks that it decides rightly.
bool admits(const ftprl::Learner& learner, const Batch& batch, const Setting& s, Random& random);

// Learns the rows, whole or as `cuts` cuts them; then a learner may be exchanged for one that should be the same.
LearnerState learn_all(Owned& learner, const Batch& batch, const Setting& s, Random* cuts, const Exchange& exchange);
LearnerState state_of(ftprl::Learner& learner, const Batch& batch, const Setting& s, const Question& q);
Numbers scores_of(const ftprl::Learner& learner, const Batch& batch, const Setting& s);

std::vector<std::uint32_t> all_slots(std::uint64_t dim);
std::vector<unsigned char> taken(const ftprl::Learner& learner, const std::vector<std::uint32_t>& slots);
Numbers cells_of(const ftprl::Learner& learner);
// Another learner with the same cells, put there in another order, either all of them or those that were learned.
Owned moved(ftprl::Learner& old, const ftprl::LearnerOptions& options, Random& random);
// All that is not in the cells.
void copy_arrays(ftprl::Learner& from, ftprl::Learner& to);

// What bodies of rows are made of.
std::vector<std::string> row_tokens();

// `learn` with each instruction set, whole and in batches: all must lead to the same state. Returns it.
LearnerState check_kernels(const std::function<LearnerState(Random* cuts)>& learn, Random& random);

}  // namespace fuzz
