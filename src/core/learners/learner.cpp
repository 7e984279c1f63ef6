#include "learners/learner.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>

namespace ftprl {
namespace {

std::atomic<const Kernels*> chosen{nullptr};

std::string shown(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    return text;
}

double value_at(const Rows& rows, bool wide, std::int64_t p) {
    return wide ? static_cast<const double*>(rows.values)[p] : static_cast<const float*>(rows.values)[p];
}

std::string fault_of_shape(const Rows& rows, std::int64_t size) {
    if (rows.indptr[0] != 0 || rows.indptr[rows.count] != size) {
        return "indptr needs to run from 0 to the number of entries (" + std::to_string(size) + "), got " +
               std::to_string(rows.indptr[0]) + " to " + std::to_string(rows.indptr[rows.count]) +
               "; cut indices and values to the rows";
    }
    for (std::int64_t r = 0; r < rows.count; ++r) {
        if (rows.indptr[r] > rows.indptr[r + 1]) {
            return "indptr needs to be nondecreasing, got " + std::to_string(rows.indptr[r]) + " before " +
                   std::to_string(rows.indptr[r + 1]) + "; sort the rows";
        }
    }
    return {};
}

bool label_fits(double y, Domain domain) {
    if (y != y) return true;  // it is missing
    if (domain == Domain::signs) return std::fabs(y) == 1.0;
    return std::fabs(y) <= LIMIT && !(domain == Domain::counts && y < 0.0);
}

bool weight_fits(double weight) { return weight >= 0.0 && weight <= LIMIT; }

std::string fault_of_label(double y, double weight, Domain domain) {
    if (!label_fits(y, domain)) {
        switch (domain) {
            case Domain::signs:
                return "a label needs to be -1 or 1 (or NaN when it is missing), got " + shown(y) +
                       "; map the labels first";
            case Domain::counts:
                return "a label needs to be from 0 to 1e30 for this loss, got " + shown(y) +
                       "; mend it or drop the row";
            case Domain::numbers:
                return "a label needs to be within 1e30, got " + shown(y) + "; rescale the labels";
        }
    }
    if (!weight_fits(weight)) {
        return "a weight needs to be from 0 to 1e30, got " + shown(weight) + "; drop or rescale the row";
    }
    return {};
}

}  // namespace

const Kernels* kernels_named(const std::string& name) {
#if defined(FTPRL_X86)
    if ((name.empty() || name == "avx2") && __builtin_cpu_supports("avx2")) return &kernels_avx2;
    if (name.empty() || name == "sse2") return &kernels_sse2;
#endif
    return name.empty() || name == "portable" ? &kernels_portable : nullptr;
}

bool use_kernels(const std::string& name) {
    const Kernels* found = kernels_named(name);
    if (found != nullptr) chosen = found;
    return found != nullptr;
}

const Kernels* kernels_chosen() { return chosen != nullptr ? chosen.load() : kernels_named(""); }

bool is_plain(const Constants& c) { return c.l1 == 0.0 && c.l2 == 0.0 && std::isinf(c.lower) && std::isinf(c.upper); }

Learner::Learner(std::uint64_t dim, bool wide_cells, bool receipt, const Constants& constants)
    : dim_(dim),
      wide_(wide_cells),
      receipt_(receipt),
      plain_(is_plain(constants)),
      constants_(constants),
      kernels_(kernels_chosen()),
      memory_(dim * (wide_cells ? 32 : 16)) {}

void Learner::expect(std::uint64_t dim, bool wide_cells) {
    const std::size_t bytes = dim * (wide_cells ? 32 : 16);
    Memory::expect({{bytes, MOST_EXPECTED}});
}

Learner::Learner(const Learner& other) : Learner(other.dim_, other.wide_, other.receipt_, other.constants_) {
    kernels_ = other.kernels_;
    memory_.copy_from(other.memory_, memory_.size());
    std::copy(other.intercept_, other.intercept_ + 4, intercept_);
    std::copy(other.tallies_, other.tallies_ + TALLIES, tallies_);
    calibration_ = other.calibration_;
}

State Learner::state() const {
    // The kernels that do not learn leave the state alone.
    return {memory_.data(), const_cast<double*>(intercept_), const_cast<double*>(tallies_)};
}

std::string fault_of(const Rows& rows, bool wide_values, std::int64_t size, bool labels, std::int64_t first_row,
                     std::uint64_t dim, Loss loss, const Kernels& kernels) {
    std::string wrong = fault_of_shape(rows, size);
    if (!wrong.empty()) return wrong;
    const auto at = [&](std::int64_t r) { return "row " + std::to_string(first_row + r) + ": "; };
    const Scan found = size > 0 ? kernels.scan[wide_values](rows) : Scan{0, true};
    if (found.largest_index >= dim || !found.values_fit) {
        for (std::int64_t r = 0; r < rows.count; ++r) {
            for (std::int64_t p = rows.indptr[r]; p < rows.indptr[r + 1]; ++p) {
                const double v = value_at(rows, wide_values, p);
                if (rows.indices[p] >= dim) {
                    return at(r) + "an index needs to be below " + std::to_string(dim) + ", got " +
                           std::to_string(rows.indices[p]) + "; make the table larger or hash the names";
                }
                if (!(std::fabs(v) <= LIMIT)) {
                    return at(r) + "a value needs to be finite and within 1e30, got " + shown(v) +
                           "; drop or rescale the feature";
                }
            }
        }
    }
    if (!labels) return {};
    const Domain domain = domain_of(loss);
    for (std::int64_t r = 0; r < rows.count; ++r) {
        if (label_fits(rows.y[r], domain) && weight_fits(rows.weight[r])) continue;
        return at(r) + fault_of_label(rows.y[r], rows.weight[r], domain);
    }
    return {};
}

std::string Learner::fault(const Rows& rows, bool wide_values, std::int64_t size, bool labels,
                           std::int64_t first_row) const {
    return fault_of(rows, wide_values, size, labels, first_row, dim_, constants_.loss, *kernels_);
}

Totals Learner::learn(const Rows& rows, bool wide_values, const Out& out) {
    std::int64_t longest = 0;
    for (std::int64_t r = 0; r < rows.count; ++r) longest = std::max(longest, rows.indptr[r + 1] - rows.indptr[r]);
    const std::size_t room = static_cast<std::size_t>(longest + 3) * SCRATCH * sizeof(double);
    if (room_ == nullptr || room_->size() < room) room_ = std::make_unique<Memory>(room);
    auto* scratch = static_cast<double*>(room_->data());
    const auto learn = kernels_->of[wide_][wide_values].learn[plain_][receipt_];
    if (!receipt_ || constants_.loss != loss_named("logistic")) return learn(rows, constants_, state(), out, scratch);
    const Out asked = with_losses(out, rows.count, losses_);
    const Totals totals = learn(rows, constants_, state(), asked, scratch);
    calibration_.add(rows, asked.losses);
    return totals;
}

void Learner::score(const Rows& rows, bool wide_values, double* scores) const {
    kernels_->of[wide_][wide_values].score[plain_](rows, constants_, state(), scores);
}

void Learner::weights(double* out) const { kernels_->weights[wide_](constants_, state(), dim_, out); }

Out with_losses(const Out& out, std::int64_t count, std::vector<double>& room) {
    if (out.losses != nullptr) return out;
    if (room.size() < static_cast<std::size_t>(count)) room.resize(static_cast<std::size_t>(count));
    return {out.scores, room.data()};
}

Table Learner::table() const {
    return {memory_.data(), nullptr, dim_, wide_ ? std::size_t{32} : std::size_t{16}, wide_, 1, 0, 1, 3, 2, 2, false};
}

LedgerGroups Learner::groups() const { return groups_of(table(), constants_, &constants_.h, 0, 0); }

LedgerSums Learner::ledger(const std::int64_t* slots, std::int64_t count) const {
    return ledger_of(*kernels_, table(), constants_, slots, count);
}

std::size_t Learner::touched(std::uint32_t* out) const {
    const auto* words = static_cast<const std::uint64_t*>(memory_.data());
    const std::uint64_t each = wide_ ? 4 : 2;
    std::size_t count = 0;
    for (std::uint64_t i = 0; i < dim_; ++i, words += each) {
        const std::uint64_t bits = wide_ ? (words[0] | words[1]) | (words[2] | words[3]) : words[0] | words[1];
        out[count] = static_cast<std::uint32_t>(i);  // overwritten by the next if it does not count
        count += bits != 0 ? 1 : 0;
    }
    return count;
}

void Learner::touch(const Rows& rows) { kernels_->touch[wide_](rows, state()); }

}  // namespace ftprl
