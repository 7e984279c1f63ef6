#include "learners/learner.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "learners/moves.hpp"
#include "learners/multi_class.hpp"
#include "learners/multi_scale.hpp"
#include "learners/single_scale.hpp"
#include "support/dispatch.hpp"

namespace ftprl {
namespace {

const Kernels& kernels_chosen() {
#if defined(FTPRL_X86)
    if (instruction_set() == InstructionSet::avx2) return kernels_avx2;
#endif
    return kernels_portable;
}

bool is_unconstrained(const LearnerOptions& options) {
    const Constants& c = options.constants.base;
    return !options.boxed && c.l1 == 0.0 && c.l2 == 0.0 && std::isinf(c.lower) && std::isinf(c.upper);
}

// The options with what follows from others: a stack needs several scales and no bounds of single weights, since its
// score would break them; lanes that are not used have the scale 1, and only quantile loss has a tau.
LearnerOptions completed(LearnerOptions options) {
    ScaleConstants& c = options.constants;
    c.base.h = c.h[0];
    if (c.base.loss->baseline != BaselineKind::quantile) c.base.tau = 0.5;  // absolute loss: the median
    c.stack = c.count > 1 && !options.boxed;
    c.coin = c.coin && c.count > 1;
    c.dense = c.dense && c.stack;
    for (int k = c.count; k < MOST_SCALES; ++k) c.h[k] = 1.0;
    c.base.least_kappa = options.wide_cells ? DBL_MIN : FLT_MIN;
    return options;
}

}  // namespace

static_assert(alignof(SingleScaleLearner) == alignof(Learner) && alignof(MultiScaleLearner) == alignof(Learner) &&
                  alignof(MultiClassLearner) == alignof(Learner),
              "a learner is freed with the alignment of Learner");

std::unique_ptr<Learner> Learner::make(const LearnerOptions& options) {
    if (options.most_classes > 0) return std::make_unique<MultiClassLearner>(options);
    if (options.constants.count == 1) return std::make_unique<SingleScaleLearner>(options);
    return std::make_unique<MultiScaleLearner>(options);
}

Learner::Learner(const LearnerOptions& options, std::uint64_t cells)
    : options_(completed(options)), kernels_(&kernels_chosen()), unconstrained_(is_unconstrained(options)) {
    if (options.boxed) {
        boxes_ = std::make_unique<Boxes>(cells, options.constants.base.lower, options.constants.base.upper);
        options_.constants.base.boxes = boxes_->table();
    }
    if (options.calibration != CalibrationKind::none) calibrator_ = std::make_unique<Calibrator>(options.calibration);
}

RowFault Learner::find_fault(const Rows& rows, bool wide_values, std::int64_t size, bool labels,
                             double* largest) const {
    return ftprl::find_fault(rows, wide_values, size, dim(), labels ? &loss() : nullptr, options_.most_classes,
                             *kernels_, largest);
}

Totals Learner::learn(const Rows& rows, bool wide_values, const RowOutputs& out) {
    if (calibrator_ != nullptr) return learn_calibrated(rows, wide_values, out);
    if (!calibrates()) return learn_rows(rows, wide_values, out);
    RowOutputs with_losses = out;
    if (out.losses == nullptr) {
        if (losses_.size() < static_cast<std::size_t>(rows.count)) losses_.resize(static_cast<std::size_t>(rows.count));
        with_losses.losses = losses_.data();
    }
    const Totals totals = learn_rows(rows, wide_values, with_losses);
    calibration_.add(rows, with_losses.losses);
    return totals;
}

// The learner goes on as without a calibrator; scores and losses, those that are added up too, are the calibrated ones.
// The calibrator learns a row after it was predicted, and no row of a later pass.
Totals Learner::learn_calibrated(const Rows& rows, bool wide_values, const RowOutputs& out) {
    RowOutputs own = out;
    if (out.scores == nullptr) {
        if (scores_.size() < static_cast<std::size_t>(rows.count)) scores_.resize(static_cast<std::size_t>(rows.count));
        own.scores = scores_.data();
    }
    const double before = tallies_[LOSS];
    Totals totals = learn_rows(rows, wide_values, own);
    tallies_[LOSS] = before;
    totals.loss = 0.0;
    const ScaleConstants& c = options_.constants;
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const double score = own.scores[r], calibrated = calibrator_->map()(score), y = rows.y[r];
        own.scores[r] = calibrated;
        if (y != y) continue;
        double tail = 0.0;
        const double value = loss().at(calibrated, y, c.base.tau, tail).value, cost = total_loss(value, tail);
        if (out.losses != nullptr) out.losses[r] = cost;
        if (!(rows.weight[r] > 0.0) || c.weighs) continue;
        totals.loss += rows.weight[r] * cost;
        tallies_[LOSS] += rows.weight[r] * cost;
        if (!c.frozen) calibrator_->learn(score, y, rows.weight[r]);
    }
    return totals;
}

void Learner::score(const Rows& rows, bool wide_values, double* scores, bool calibrated) const {
    score_rows(rows, wide_values, scores);
    if (calibrator_ == nullptr || !calibrated) return;
    const CalibrationMap map = calibrator_->map();
    for (std::int64_t r = 0; r < rows.count; ++r) scores[r] = map(scores[r]);
}

void Learner::moves(const Rows& rows, bool wide_values, double* out) const {
    const int K = scales(), lanes = outputs() * K;
    std::vector<double> cells(static_cast<std::size_t>(4 * lanes)), roots(static_cast<std::size_t>(lanes)), scores;
    intercept(cells.data());
    for (int l = 0; l < lanes; ++l)
        roots[static_cast<std::size_t>(l)] = cells[static_cast<std::size_t>((4 * (l / K) + 1) * K + l % K)];
    if (labels() != nullptr) {
        scores.resize(static_cast<std::size_t>(rows.count));
        score_rows(rows, wide_values, scores.data());
    }
    moves_of({table(), &options_.constants, roots.data(), labels(), lanes}, rows, wide_values, scores.data(), out);
}

void Learner::weights(int scale, double* out) const {
    const CellTable cells = table();
    for (int output = 0; output < outputs(); ++output, out += dim()) {
        weights_of(cells, options_.constants, unconstrained_, output * scales() + scale, out);
    }
}

std::size_t Learner::touched(std::uint32_t* out) const { return touched_of(table(), out); }

LedgerSums Learner::ledger(int leader, const std::int64_t* slots, std::int64_t count) const {
    return ledger_of(table(), options_.constants, leader, slots, count);
}

LedgerGroups Learner::groups(int leader, int scale) const {
    return groups_of(table(), options_.constants.base, options_.constants.h, scales(), leader, scale);
}

std::vector<NamedArray> Learner::common_arrays() {
    std::vector<NamedArray> arrays = {{"tallies", tallies_, 0, TALLIES, 0}};
    if (calibrator_ != nullptr && calibrator_->kind == CalibrationKind::platt) {
        arrays.push_back({"calibrator.u", calibrator_->u, 0, PLATT_NUMBERS, 0});
        arrays.push_back({"calibrator.P", &calibrator_->P[0][0], PLATT_NUMBERS, PLATT_NUMBERS, PLATT_NUMBERS});
    }
    if (calibrator_ != nullptr && calibrator_->kind == CalibrationKind::isotonic) {
        arrays.push_back({"calibrator.bins", &calibrator_->bins[0][0], SCORE_BINS, BIN_SUMS, BIN_SUMS});
    }
    if (receipt()) arrays.push_back(rounding());
    if (receipt() && labelled()) arrays.push_back(row_sums());
    if (calibrates()) arrays.push_back({"calibration", &calibration_.bins[0][0], BINS, 3, 3});
    return arrays;
}

Learner::Learner(const Learner& other)
    : options_(other.options_),
      kernels_(other.kernels_),
      unconstrained_(other.unconstrained_),
      calibration_(other.calibration_) {
    std::copy(std::begin(other.tallies_), std::end(other.tallies_), tallies_);
    std::copy(&other.rounding_[0][0], &other.rounding_[0][0] + ROUNDING_SUMS * MOST_SCALES, &rounding_[0][0]);
    std::copy(&other.row_sums_[0][0], &other.row_sums_[0][0] + ROW_SUMS * MOST_SCALES, &row_sums_[0][0]);
    if (other.calibrator_ != nullptr) calibrator_ = std::make_unique<Calibrator>(*other.calibrator_);
    if (other.boxes_ != nullptr) {
        boxes_ = std::make_unique<Boxes>(*other.boxes_);
        options_.constants.base.boxes = boxes_->table();
    }
}

ReceiptState Learner::receipt_state() const {
    // The kernels that do not learn leave the state alone.
    auto* rounding = const_cast<double (*)[MOST_SCALES]>(rounding_);
    return {receipt() ? gradient_sums().first : nullptr, rounding, const_cast<double (*)[MOST_SCALES]>(row_sums_)};
}

NamedArray Learner::row_sums() { return {"row_sums", &row_sums_[0][0], ROW_SUMS, scales(), MOST_SCALES}; }

NamedArray Learner::rounding() { return {"rounding", &rounding_[0][0], ROUNDING_SUMS, scales(), MOST_SCALES}; }

void Learner::take_gradients(const std::uint32_t* slots, std::size_t count, double* out) const {
    const GradientSums S = gradient_sums();
    const auto width = static_cast<std::size_t>(gradient_width());
    for (std::size_t i = 0; i < count; ++i) {
        const double* from = S.first + cell_of(slots[i]) * S.stride;
        std::copy(from, from + width, out + i * width);
    }
}

void Learner::put_gradients(const std::uint32_t* slots, std::size_t count, const double* from) {
    const GradientSums S = gradient_sums();
    const auto width = static_cast<std::size_t>(gradient_width());
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t cell = cell_of(slots[i]);
        // Of several scales or classes, cell 0 belongs to slots that were never learned.
        if (cell == 0 && (scales() > 1 || has_classes())) continue;
        std::copy(from + i * width, from + (i + 1) * width, S.first + cell * S.stride);
    }
}

bool Learner::put_boxes(const std::uint32_t* slots, std::size_t count, const double* ends) {
    std::vector<std::uint16_t> kinds(count);
    bool fits = true;
    for (std::size_t i = 0; i < count && fits; ++i) fits = boxes_->add(ends[2 * i], ends[2 * i + 1], &kinds[i]);
    for (std::size_t i = 0; i < count && fits; ++i) boxes_->set(claim_cell(slots[i]), kinds[i]);
    options_.constants.base.boxes = boxes_->table();
    return fits;
}

void Learner::take_boxes(const std::uint32_t* slots, std::size_t count, double* ends) const {
    for (std::size_t i = 0; i < count; ++i) {
        const double* own = boxes_->ends_of(cell_of(slots[i]));
        std::copy(own, own + 2, ends + 2 * i);
    }
}

std::int64_t longest_row(const Rows& rows) {
    std::int64_t longest = 0;
    for (std::int64_t r = 0; r < rows.count; ++r) longest = std::max(longest, rows.indptr[r + 1] - rows.indptr[r]);
    return longest;
}

}  // namespace ftprl
