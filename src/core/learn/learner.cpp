#include "learn/learner.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "learn/blocks.hpp"
#include "learn/many_classes.hpp"
#include "learn/many_scales.hpp"
#include "learn/moves.hpp"
#include "learn/single_scale.hpp"
#include "support/dispatch.hpp"

namespace ftprl {
namespace {

constexpr std::size_t AHEAD = 64;  // cells fetched ahead

const Kernels& kernels_chosen() {
#if defined(FTPRL_X86)
    if (instruction_set() == InstructionSet::avx2) return kernels_avx2;
#endif
    return kernels_portable;
}

// The options with what follows from others: lanes that are not used have the scale 1, and only quantile loss has a
// tau.
LearnerOptions completed(LearnerOptions options) {
    Constants& c = options.constants;
    if (c.loss->baseline != BaselineKind::quantile) c.tau = 0.5;  // absolute loss: the median
    c.unconstrained = !options.boxed && c.l1 == 0.0 && c.l2 == 0.0 && std::isinf(c.lower) && std::isinf(c.upper);
    options.coin = options.coin && c.count > 1 && options.most_classes == 0;
    options.columns = options.columns && options.has_newtons();
    for (int k = c.count; k < MOST_SCALES; ++k) c.h[k] = 1.0;
    c.least_kappa = options.wide_cells ? DBL_MIN : FLT_MIN;
    return options;
}

bool has_margins(const Loss& loss) { return loss.rule == LabelRule::classes; }

}  // namespace

static_assert(alignof(SingleScaleLearner) == alignof(Learner) && alignof(ManyScalesLearner) == alignof(Learner) &&
                  alignof(ManyClassesLearner) == alignof(Learner),
              "a learner is freed with the alignment of Learner");

std::unique_ptr<Learner> Learner::make(const LearnerOptions& options) {
    if (options.most_classes > 0) return std::make_unique<ManyClassesLearner>(options);
    if (options.constants.count == 1) return std::make_unique<SingleScaleLearner>(options);
    return std::make_unique<ManyScalesLearner>(options);
}

Learner::Learner(const LearnerOptions& options, std::uint64_t cells, int class_columns)
    : options_(completed(options)), kernels_(&kernels_chosen()), labels_(no_labels(*options.constants.loss)) {
    const LearnerOptions& o = options_;
    if (o.has_newtons())
        newtons_ = std::make_unique<Newtons>(scales(), o.coin && o.coin_input, o.columns, class_columns);
    if (o.columns) columns_ = std::make_unique<Columns>();
    if (o.coin) coin_ = std::make_unique<Memory>(cells * COIN_FACTS * (wide_cells() ? sizeof(double) : sizeof(float)));
    coin_intercept_[COIN_BOUND] = 1.0;
    if (o.boxed) {
        boxes_ = std::make_unique<Boxes>(cells, o.constants.lower, o.constants.upper);
        options_.constants.boxes = boxes_->table();
    }
    if (o.calibration != CalibrationKind::none) calibrator_ = std::make_unique<Calibrator>(o.calibration);
    mixture_.facts[LARGEST_WEIGHT] = 1.0;
    const std::vector<ExpertEntry> entries = first_experts(o);
    const double part = has_margins(loss()) ? 1.0 / (1.0 + CAUTION) : 1.0;
    mixture_.w[0] = 1.0;
    for (std::size_t j = 0; j < entries.size(); ++j) mixture_.w[j] = part * entries[j].prior;
    const Roster r = roster();
    if (has_margins(loss()) && r.offset >= 0) mixture_.w[r.offset] += 1.0 - part;
}

Learner::~Learner() = default;

Learner::Learner(const Learner& other)
    : threads(other.threads),
      options_(other.options_),
      kernels_(other.kernels_),
      labels_(other.labels_),
      rates_(other.rates_),
      mixture_(other.mixture_),
      calibration_(other.calibration_) {
    std::copy(std::begin(other.tallies_), std::end(other.tallies_), tallies_);
    std::copy(&other.rounding_[0][0], &other.rounding_[0][0] + ROUNDING_SUMS * MOST_SCALES, &rounding_[0][0]);
    std::copy(&other.row_sums_[0][0], &other.row_sums_[0][0] + ROW_SUMS * MOST_SCALES, &row_sums_[0][0]);
    std::copy(std::begin(other.coin_intercept_), std::end(other.coin_intercept_), coin_intercept_);
    if (other.newtons_ != nullptr) newtons_ = std::make_unique<Newtons>(*other.newtons_);
    if (newtons_ != nullptr) newtons_->point();
    if (other.columns_ != nullptr) columns_ = std::make_unique<Columns>(*other.columns_);
    if (other.slot_map_ != nullptr) {
        slot_map_ = std::make_unique<SlotMap>(dim());
        slot_map_->copy_from(*other.slot_map_);
    }
    if (other.coin_ != nullptr) {
        coin_ = std::make_unique<Memory>(other.coin_->size());
        coin_->copy_from(*other.coin_, slot_map_->count() * coin_bytes());
    }
    if (other.calibrator_ != nullptr) calibrator_ = std::make_unique<Calibrator>(*other.calibrator_);
    if (other.boxes_ != nullptr) {
        boxes_ = std::make_unique<Boxes>(*other.boxes_);
        options_.constants.boxes = boxes_->table();
    }
}

// ---- experts ----

// Scales that are best on most streams begin with more of the weights: docs/scales.md.
std::vector<ExpertEntry> Learner::first_experts(const LearnerOptions& given) {
    const LearnerOptions o = completed(given);
    std::vector<ExpertEntry> entries;
    const int K = o.constants.count;
    for (int k = 0; k < K; ++k) {
        const double away = std::log(o.constants.h[k] / USUAL_SCALE) / USUAL_WIDTH;
        char name[32];
        std::snprintf(name, sizeof name, "%g", o.constants.h[k]);
        entries.push_back({name, 2.0 / (1.0 + away * away), false});
    }
    for (const NewtonKind& kind : NEWTONS) {
        if (o.has_newtons() && (o.columns || !kind.columns)) entries.push_back({kind.name, kind.prior, kind.droppable});
    }
    const Loss& loss = *o.constants.loss;
    if (K > 1 && o.most_classes == 0)
        entries.push_back({has_margins(loss) ? "majority" : "offset", OFFSET_PRIOR, false});
    if (o.coin) entries.push_back({"coin", COIN_PRIOR, true});
    double total = 0.0;
    for (const ExpertEntry& e : entries) total += e.prior;
    for (ExpertEntry& e : entries) e.prior /= total;
    return entries;
}

std::vector<ExpertEntry> Learner::experts() const {
    LearnerOptions now = options_;
    now.coin = coin_ != nullptr;
    std::vector<ExpertEntry> present;
    for (ExpertEntry& e : first_experts(now)) {
        bool is_newton = false, is_present = false;
        for (const NewtonKind& kind : NEWTONS) is_newton = is_newton || e.name == kind.name;
        for (std::size_t i = 0; newtons_ != nullptr && i < newtons_->count(); ++i)
            is_present = is_present || e.name == newtons_->kind(i).name;
        if (!is_newton || is_present) present.push_back(std::move(e));
    }
    return present;
}

Roster Learner::roster() const {
    Roster r = {};
    r.scales = r.count = scales();
    r.offset = r.coin = r.drift = -1;
    if (newtons_ != nullptr) r.newtons = newtons_->fill(r.newton);
    for (int i = 0; i < r.newtons; ++i, ++r.count) {
        if (r.newton[i].kind->drift > 0.0) r.drift = r.count;
        if (r.newton[i].kind->droppable) r.droppable[r.droppables++] = r.count;
    }
    if (scales() > 1 && !has_classes()) r.offset = r.count++;
    if (coin_ != nullptr) {
        r.droppable[r.droppables++] = r.count;
        r.coin = r.count++;
    }
    return r;
}

// Expert number `at` leaves; the weights of those that stay become 1 together. They may have had none at all: then they
// begin anew with equal weights.
void Learner::drop_number(int at) {
    const int n = roster().count;
    Mixture& m = mixture_;
    for (double* array : {m.w, m.totals, m.octave[0], m.octave[1], m.without[0], m.without[1]})
        keep_numbers(array, MOST_EXPERTS, 0, at, at + 1, n - at - 1);
}

namespace {

void divide_by_total(double* w, int count) {
    double total = 0.0;
    for (int j = 0; j < count; ++j) total += w[j];
    for (int j = 0; j < count; ++j) w[j] = total > 0.0 ? w[j] / total : 1.0 / count;
}

}  // namespace

void Learner::drop_expert(const std::string& name) {
    const std::vector<ExpertEntry> entries = experts();
    for (std::size_t j = 0; j < entries.size(); ++j) {
        if (entries[j].name != name || !entries[j].droppable) continue;
        drop_number(static_cast<int>(j));
        if (name == "coin") {
            if (newtons_ != nullptr) newtons_->drop_coin();
            options_.coin = false;
            coin_.reset();
        } else {
            newtons_->drop(name);
            if (!newtons_->sees_columns()) {
                columns_.reset();
                options_.columns = false;
            }
        }
        divide_by_total(mixture_.w, roster().count);
        return;
    }
}

void Learner::keep_experts(int first, int count) {
    const int K = scales(), others = roster().count - K;
    Mixture& m = mixture_;
    if (newtons_ != nullptr) newtons_->keep_scales(first, count);
    for (double* array : {m.w, m.totals, m.octave[0], m.octave[1], m.without[0], m.without[1]})
        keep_numbers(array, MOST_EXPERTS, first, count, K, others);
    divide_by_total(m.w, count + others);
    for (auto& sums : m.sums) keep_numbers(sums, MOST_SCALES, first, count);
    for (auto& sums : rounding_) keep_numbers(sums, MOST_SCALES, first, count);
    for (auto& sums : row_sums_) keep_numbers(sums, MOST_SCALES, first, count);
    std::fill(std::begin(m.block), std::end(m.block), 0.0);
    for (auto& windows : m.windows) std::fill(std::begin(windows), std::end(windows), 0.0);
    double* const h = options_.constants.h;
    std::copy(h + first, h + first + count, h);
    std::fill(h + count, h + MOST_SCALES, 1.0);
    options_.constants.count = count;
}

void keep_numbers(double* array, int size, int first, int count, int next, int more) {
    std::copy(array + first, array + first + count, array);
    std::copy(array + next, array + next + more, array + count);
    std::fill(array + count + more, array + size, 0.0);
}

// ---- rows ----

RowFault Learner::find_fault(const Rows& rows, std::int64_t size, bool labels, double* largest) const {
    return ftprl::find_fault(rows, size, dim(), labels ? &loss() : nullptr, options_.most_classes, *kernels_, largest);
}

Totals Learner::learn(const Rows& rows, const RowOutputs& out) {
    if (calibrator_ != nullptr) return learn_calibrated(rows, out);
    if (!calibrates()) return learn_uncalibrated(rows, out);
    RowOutputs with_losses = out;
    if (out.losses == nullptr) {
        if (losses_.size() < static_cast<std::size_t>(rows.count)) losses_.resize(static_cast<std::size_t>(rows.count));
        with_losses.losses = losses_.data();
    }
    const Totals totals = learn_uncalibrated(rows, with_losses);
    calibration_.add(rows, with_losses.losses);
    return totals;
}

Totals Learner::learn_uncalibrated(const Rows& rows, const RowOutputs& out) {
    Batch batch = {rows, rows.indices};
    if (slot_map_ != nullptr) {
        const std::int64_t size = rows.indptr[rows.count];
        if (cell_numbers_.size() < static_cast<std::size_t>(size)) cell_numbers_.resize(static_cast<std::size_t>(size));
        slot_map_->claim(rows.indices, size, cell_numbers_.data());
        batch.rows.indices = cell_numbers_.data();
    }
    return learn_rows(batch, out);
}

// The learner goes on as without a calibrator; scores and losses, those that are added up too, are the calibrated ones.
// The calibrator learns a row after it was predicted, and no row of a later pass.
Totals Learner::learn_calibrated(const Rows& rows, const RowOutputs& out) {
    RowOutputs own = out;
    if (out.scores == nullptr) {
        if (scores_.size() < static_cast<std::size_t>(rows.count)) scores_.resize(static_cast<std::size_t>(rows.count));
        own.scores = scores_.data();
    }
    const double before = tallies_[LOSS];
    Totals totals = learn_uncalibrated(rows, own);
    tallies_[LOSS] = before;
    totals.loss = 0.0;
    const Constants& c = options_.constants;
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const double score = own.scores[r], calibrated = calibrator_->map()(score), y = rows.y[r];
        own.scores[r] = calibrated;
        if (y != y) continue;
        double tail = 0.0;
        const double value = loss().at(calibrated, y, c.tau, tail).value, cost = total_loss(value, tail);
        if (out.losses != nullptr) out.losses[r] = cost;
        if (!(rows.weight[r] > 0.0) || weighs_) continue;
        totals.loss += rows.weight[r] * cost;
        tallies_[LOSS] += rows.weight[r] * cost;
        if (!frozen_) calibrator_->learn(score, y, rows.weight[r]);
    }
    return totals;
}

void Learner::score(const Rows& rows, double* scores, bool calibrated) const {
    score_rows(rows, scores);
    if (calibrator_ == nullptr || !calibrated) return;
    const CalibrationMap map = calibrator_->map();
    for (std::int64_t r = 0; r < rows.count; ++r) scores[r] = map(scores[r]);
}

void Learner::moves(const Rows& rows, double* out) const {
    const int K = scales(), lanes = outputs() * K;
    std::vector<double> cells(static_cast<std::size_t>(4 * lanes)), roots(static_cast<std::size_t>(lanes)), scores;
    intercept(cells.data());
    for (int l = 0; l < lanes; ++l)
        roots[static_cast<std::size_t>(l)] = cells[static_cast<std::size_t>((4 * (l / K) + 1) * K + l % K)];
    if (labelled()) {
        scores.resize(static_cast<std::size_t>(rows.count));
        score_rows(rows, scores.data());
    }
    moves_of({table(), &options_.constants, roots.data(), labelled() ? &labels_ : nullptr, lanes}, rows, scores.data(),
             out);
}

// ---- cells ----

std::uint64_t Learner::claim_cell(std::uint32_t slot) {
    if (slot_map_ == nullptr) return slot;
    std::uint32_t cell = 0;
    slot_map_->claim(&slot, 1, &cell);
    return cell;
}

void Learner::take(const std::uint32_t* slots, std::size_t count, void* out) const {
    const std::size_t bytes = own_bytes(), more = coin_bytes();
    const auto* coins = coin_ == nullptr ? nullptr : static_cast<const unsigned char*>(coin_->data());
    auto* to = static_cast<unsigned char*>(out);
    for (std::size_t i = 0; i < count; ++i, to += bytes + more) {
        if (i + AHEAD < count) fetch(cell(cell_of(slots[i + AHEAD])), bytes);
        const std::uint64_t number = cell_of(slots[i]);
        std::memcpy(to, cell(number), bytes);
        if (more != 0) std::memcpy(to + bytes, coins + number * more, more);
    }
}

void Learner::put(const std::uint32_t* slots, std::size_t count, const void* from) {
    const std::size_t bytes = own_bytes(), more = coin_bytes();
    auto* coins = coin_ == nullptr ? nullptr : static_cast<unsigned char*>(coin_->data());
    const auto* own = static_cast<const unsigned char*>(from);
    if (slot_map_ != nullptr) {
        if (cell_numbers_.size() < count) cell_numbers_.resize(count);
        slot_map_->claim(slots, static_cast<std::int64_t>(count), cell_numbers_.data());
    }
    for (std::size_t i = 0; i < count; ++i, own += bytes + more) {
        const std::uint64_t number = cell_of(slots[i]);
        std::memcpy(cell(number), own, bytes);
        if (more != 0) std::memcpy(coins + number * more, own + bytes, more);
    }
}

std::vector<Part> Learner::saved_parts() const {
    std::vector<Part> saved = parts();
    saved[2].name = "s";
    saved[3].name = "N";
    return saved;
}

void Learner::weights(int scale, double* out) const {
    const CellTable cells = table();
    for (int output = 0; output < outputs(); ++output, out += dim()) {
        weights_of(cells, options_.constants, output * scales() + scale, out);
    }
}

std::size_t Learner::touched(std::uint32_t* out) const { return touched_of(table(), out); }

LedgerSums Learner::ledger(int leader, const std::int64_t* slots, std::int64_t count) const {
    return ledger_of(table(), options_.constants, leader, slots, count);
}

LedgerGroups Learner::groups(int leader, int scale) const {
    return groups_of(table(), options_.constants, leader, scale);
}

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
    options_.constants.boxes = boxes_->table();
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

// ---- state ----

void Learner::expect_columns(int used, int watched) {
    if (columns_ != nullptr) columns_->expect(used, watched);
}

std::vector<NamedArray> Learner::mixture() {
    Mixture& m = mixture_;
    const int K = scales(), n = roster().count;
    if (is_single())
        return {{"w", m.w, 0, 1, 0}, {"totals", tallies_ + LOSS, 0, 1, 0}, {"sums", tallies_ + LINEAR, 3, 1, 1}};
    return {{"w", m.w, 0, n, 0},
            {"totals", m.totals, 0, n, 0},
            {"facts", m.facts, 0, MIXTURE_FACTS, 0},
            {"first", m.first, 0, n, 0},
            {"weighed", m.weighed, 0, n, 0},
            {"first_part", &m.first_part, 0, 1, 0},
            {"block", m.block, 0, K, 0},
            {"windows", &m.windows[0][0], 3, K > WINDOW ? K - WINDOW + 2 : 0, MOST_WINDOWS},
            {"octave", &m.octave[0][0], OCTAVES, n, MOST_EXPERTS},
            {"without", &m.without[0][0], OCTAVES, n, MOST_EXPERTS},
            {"octave_loss", m.octave_loss, 0, OCTAVES, 0},
            {"sums", &m.sums[0][0], 3, K, MOST_SCALES}};
}

std::vector<NamedArray> Learner::saved_arrays() {
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
    if (labelled()) arrays.push_back({"labels", reinterpret_cast<double*>(&labels_), 0, int{LABEL_NUMBERS}, 0});
    add_own_arrays(arrays);
    if (is_single()) return arrays;
    Mixture& m = mixture_;
    const int K = scales(), n = roster().count, used = columns_ == nullptr ? 0 : columns_->used();
    if (!labelled() && !has_classes())
        arrays.push_back({"labels.odds", reinterpret_cast<double*>(&rates_), 0, int{RATE_NUMBERS}, 0});
    arrays.insert(arrays.end(), {{"mixture.w", m.w, 0, n, 0},
                                 {"mixture.totals", m.totals, 0, n, 0},
                                 {"mixture.facts", m.facts, 0, MIXTURE_FACTS, 0},
                                 {"mixture.octave", &m.octave[0][0], OCTAVES, n, MOST_EXPERTS},
                                 {"mixture.without", &m.without[0][0], OCTAVES, n, MOST_EXPERTS},
                                 {"mixture.octave_loss", m.octave_loss, 0, OCTAVES, 0}});
    if (K > WINDOW) {
        arrays.push_back({"mixture.block", m.block, 0, K, 0});
        arrays.push_back({"mixture.windows", &m.windows[0][0], 3, K - WINDOW + 2, MOST_WINDOWS});
    }
    if (receipt()) arrays.push_back({"mixture.sums", &m.sums[0][0], 3, K, MOST_SCALES});
    if (newtons_ != nullptr) {
        const std::lock_guard<std::mutex> own(mirroring_);
        if (!is_mirrored_) newtons_->mirror(used);
        is_mirrored_ = true;
        newtons_->add_arrays(arrays, loss().has_kink(), used);
    }
    if (coin_ != nullptr) arrays.push_back({"coin.intercept", coin_intercept_, 0, COIN_NUMBERS, 0});
    if (columns_ == nullptr) return arrays;
    arrays.push_back({"columns.rows", &columns_->rows(), 0, 1, 0});
    if (used > 0) arrays.push_back({"columns.facts", &columns_->facts()[0][0], used, COLUMN_FACTS, COLUMN_FACTS});
    if (columns_->watched_count() > 0) {
        arrays.push_back(
            {"columns.table", &columns_->watched()[0][0], columns_->watched_count(), WATCHED_FACTS, WATCHED_FACTS});
    }
    return arrays;
}

ReceiptState Learner::receipt_state() const {
    // Loops that do not learn leave the state alone.
    auto* self = const_cast<Learner*>(this);
    ReceiptState state = {receipt() ? gradient_sums().first : nullptr, {}, self->rounding_, self->row_sums_};
    for (int part = 0; part < 3; ++part)
        state.sums[part] = is_single() ? self->tallies_ + LINEAR + part : self->mixture_.sums[part];
    return state;
}

}  // namespace ftprl
