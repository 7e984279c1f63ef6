// The learner that the rest of the program knows: a table of cells, the constants it is learned with, its experts, and
// what was added up on the way. How a cell is laid out is the business of its three implementations: one scale,
// several, and several classes.
//
// A batch is learned in blocks of rows, each in steps: the facts of its labels; what the base experts (the scales, the
// coin, the columns) say of its rows, which they then learn; and the mixture, in the order of rows. Base experts depend
// on rows alone, not on each other or on the mixture. So with several threads each step of a block is done by whoever
// is free, as soon as the steps before it are; the bits are those of one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "learn/boxes.hpp"
#include "learn/calibrator.hpp"
#include "learn/coin.hpp"
#include "learn/columns.hpp"
#include "learn/kernel.hpp"
#include "learn/ledger.hpp"
#include "learn/mixture.hpp"
#include "learn/newtons.hpp"
#include "learn/rows.hpp"
#include "learn/slot_map.hpp"
#include "support/memory.hpp"

namespace ftprl {

struct LearnerOptions {
    std::uint64_t dim = 1;
    int outputs = 1;       // scores of a row: with losses of classes those known so far
    int most_classes = 0;  // with such a loss, as many as there may ever be
    bool wide_cells = false;
    bool receipt = false;
    bool boxed = false;                                   // whether single weights have bounds of their own
    bool coin = false;                                    // with several scales of one score
    bool columns = false;                                 // whether a Newton expert sees columns
    bool coin_input = true;                               // whether Newton experts see the coin
    CalibrationKind calibration = CalibrationKind::none;  // of scores with the log loss
    Constants constants = {};

    // Newton experts need several scales, and no bounds of single weights, which their scores would break.
    bool has_newtons() const { return constants.count > 1 && !boxed; }
};

// Some neighbouring numbers of a cell: `count` of them from number `first` on; 0 for a single one that is no list.
struct Part {
    const char* name;
    int first;
    int count;
};

// An expert of a mixture: its name, the weight it begins with, and whether a long run may drop it.
struct ExpertEntry {
    std::string name;
    double prior;
    bool droppable;
};

struct Block;

class alignas(64) Learner {
public:
    static std::unique_ptr<Learner> make(const LearnerOptions& options);
    virtual ~Learner();
    Learner& operator=(const Learner&) = delete;
    virtual std::unique_ptr<Learner> copy() const = 0;

    RowFault find_fault(const Rows& rows, std::int64_t size, bool labels, double* largest = nullptr) const;

    // The rows must be without fault; they are taken as they are. Scores are a row by an output.
    Totals learn(const Rows& rows, const RowOutputs& out);
    // What learns from the rows to come. Rows that were learned in an earlier pass leave the mixture as it is; held-out
    // rows move nothing but the weights of the experts.
    void choose_parts(bool scales, bool mixture) {
        frozen_ = !mixture;
        weighs_ = !scales;
    }
    // Scores are calibrated where there is a calibrator, unless they are asked for as they were before.
    void score(const Rows& rows, double* scores, bool calibrated = true) const;
    // The score of each row of a dense matrix, `width` values that belong to the first slots, for which the scores of
    // the scales, a row of them each, and the coin's, if there is one, are known already. Not of several classes.
    void score_said(std::int64_t rows, const double* scores, const double* coin, const double* values,
                    std::int64_t width, double* out) const;
    // The largest step of the score in each lane (moves.hpp), rows by outputs times scales.
    void moves(const Rows& rows, double* out) const;

    // How many threads learn a batch together.
    int threads = 1;

    // The weight of each slot in one scale, an output by a slot; and z, R, S and kappa of the intercept, an output by
    // four by a scale.
    void weights(int scale, double* out) const;
    virtual void intercept(double* out) const = 0;

    // The slots that have been learned, in order, into space for all of them; returns how many there are.
    virtual std::size_t touched(std::uint32_t* out) const;
    // Whole cells, of slots below dim. Callers see the coin's numbers as part of a cell, although they are stored in an
    // array of their own.
    void take(const std::uint32_t* slots, std::size_t count, void* out) const;
    void put(const std::uint32_t* slots, std::size_t count, const void* from);
    std::size_t cell_bytes() const { return own_bytes() + coin_bytes(); }
    // Of memory that each slot of the table may take up.
    virtual std::size_t slot_bytes() const = 0;
    // Before the first cell is put: few of the cells of a large table will be used, so give none of them a huge page.
    virtual void use_small_pages() { slot_map_->use_small_pages(); }  // cells lie close together as it is
    // g_{1:t} of the slots in float64, a row of `gradient_width` each: a number for each scale, and of several classes
    // for each of their columns; kept with a receipt only.
    virtual int gradient_width() const { return scales(); }
    void take_gradients(const std::uint32_t* slots, std::size_t count, double* out) const;
    void put_gradients(const std::uint32_t* slots, std::size_t count, const double* from);
    // Between which numbers the weights of some slots have to be, a pair each; false when there are more than 2^16 - 1
    // different pairs. Only with `boxed`.
    bool put_boxes(const std::uint32_t* slots, std::size_t count, const double* ends);
    void take_boxes(const std::uint32_t* slots, std::size_t count, double* ends) const;
    // The numbers of a cell by name: z and R for each scale (and with one scale S, rounded), the unit of the feature,
    // and the count of its rows where there is one.
    virtual std::vector<Part> parts() const = 0;
    // The same as a model file names them.
    virtual std::vector<Part> saved_parts() const;

    // The sums of a receipt against the weights of scale `leader`, over `count` rising slots, or all when null.
    LedgerSums ledger(int leader, const std::int64_t* slots, std::int64_t count) const;
    // The cells by how often they were seen, compared with the weights of `leader`.
    LedgerGroups groups(int leader, int scale) const;

    // The experts in their order; none with one scale.
    std::vector<ExpertEntry> experts() const;
    // Those of a learner that has dropped none yet.
    static std::vector<ExpertEntry> first_experts(const LearnerOptions& options);
    // The state of the mixture: with one scale its weight 1, its loss and its sums.
    std::vector<NamedArray> mixture();
    // The arrays of a model file besides the cells.
    std::vector<NamedArray> saved_arrays();
    // Before the arrays of a file are put: how many columns there are, and how many features are counted.
    void expect_columns(int used, int watched);

    // Of several classes: make so many known, at least those that are, before cells are put or rows are scored.
    virtual void know_classes(int /*classes*/) {}

    // Drop all scales but `count` neighbours from number `first` on. One scale cannot be dropped.
    virtual void keep_scales(int first, int count) = 0;
    // Drop an expert that may be dropped, if it is there.
    void drop_expert(const std::string& name);

    std::uint64_t dim() const { return options_.dim; }
    int outputs() const { return options_.outputs; }
    int most_classes() const { return options_.most_classes; }
    int scales() const { return options_.constants.count; }
    bool wide_cells() const { return options_.wide_cells; }
    bool receipt() const { return options_.receipt; }
    bool boxed() const { return boxes_ != nullptr; }
    double* tallies() { return tallies_; }
    Calibration& calibration() { return calibration_; }
    // The sums that bound the rounding of a receipt: a row for each RoundingSum, a column for each scale.
    NamedArray rounding() { return {"rounding", &rounding_[0][0], ROUNDING_SUMS, scales(), MOST_SCALES}; }
    // The sums over rows of a receipt when labels are in their own unit: a row for each RowSum.
    NamedArray row_sums() { return {"row_sums", &row_sums_[0][0], ROW_SUMS, scales(), MOST_SCALES}; }
    // Whether labels are in their own unit: with every loss but the log loss.
    bool labelled() const { return loss().rule != LabelRule::none; }
    // Whether a label is the number of a class.
    bool has_classes() const { return loss().labels == Labels::classes; }
    bool has_coin() const { return coin_ != nullptr; }
    // What calibrates the scores; null without it.
    const Calibrator* calibrator() const { return calibrator_.get(); }
    // Whether predicted probabilities are compared with labels.
    bool calibrates() const { return receipt() && !labelled() && !has_classes(); }

protected:
    // A batch that is learned or scored: its rows with cells in place of slots.
    struct Batch {
        Rows rows;
        const std::uint32_t* slots;
    };

    Learner(const LearnerOptions& options, std::uint64_t cells, int class_columns);
    Learner(const Learner& other);

    virtual Totals learn_rows(const Batch& batch, const RowOutputs& out) { return learn_blocks(batch, out); }
    Totals learn_blocks(const Batch& batch, const RowOutputs& out);
    // What the scales say of the rows of a pass, which they learn if it does.
    virtual void run_scales(const BasePass& pass, double* buffer) const = 0;
    virtual std::size_t scratch_numbers(std::int64_t longest) const = 0;
    // Numbers that the scales say of a row, and what follows from the experts' numbers.
    virtual int said_numbers() const { return scales(); }
    virtual void mix(const MixPass& pass, double* class_scores) const;

    virtual CellTable table() const = 0;
    virtual GradientSums gradient_sums() const = 0;  // with a receipt
    virtual unsigned char* cell(std::uint64_t number) const = 0;
    virtual std::size_t own_bytes() const = 0;
    // The arrays of the intercept and of what only some cells have.
    virtual void add_own_arrays(std::vector<NamedArray>& arrays) = 0;

    // The number of a slot's cell, which has to be there to be written.
    std::uint64_t cell_of(std::uint32_t slot) const { return slot_map_ == nullptr ? slot : (*slot_map_)[slot]; }
    std::uint64_t claim_cell(std::uint32_t slot);
    std::size_t coin_bytes() const {
        return coin_ == nullptr ? 0 : COIN_FACTS * (wide_cells() ? sizeof(double) : sizeof(float));
    }
    ReceiptState receipt_state() const;
    const Loss& loss() const { return *options_.constants.loss; }
    // Whether nothing is mixed.
    bool is_single() const { return scales() == 1 && !has_classes(); }
    std::size_t box_bytes() const {
        return options_.boxed ? sizeof(std::uint16_t) : 0;
    }  // the number of a cell's bounds
    // The experts' part of keep_scales.
    void keep_experts(int first, int count);
    Roster roster() const;

    LearnerOptions options_;
    const Kernels* kernels_;
    std::unique_ptr<SlotMap> slot_map_;  // null where a slot is the number of its cell
    double tallies_[TALLIES] = {};
    LabelState labels_;
    LabelRates rates_ = {0.0, 0.0, 1.0};
    Mixture mixture_ = {};
    std::unique_ptr<Newtons> newtons_;  // null with one scale, and with bounds of single weights
    std::unique_ptr<Columns> columns_;  // null where no expert sees them
    std::unique_ptr<Memory> coin_;      // the numbers of the coin by the number of a cell; null without
    double coin_intercept_[COIN_NUMBERS] = {};
    Calibration calibration_;
    std::unique_ptr<Boxes> boxes_;
    std::unique_ptr<Calibrator> calibrator_;
    double rounding_[ROUNDING_SUMS][MOST_SCALES] = {};
    double row_sums_[ROW_SUMS][MOST_SCALES] = {};
    bool frozen_ = false, weighs_ = false;

private:
    Totals learn_uncalibrated(const Rows& rows, const RowOutputs& out);
    Totals learn_calibrated(const Rows& rows, const RowOutputs& out);
    void begin(Block& block, const Batch& batch, std::int64_t from, std::int64_t to, bool learns) const;
    std::int64_t block_end(const Rows& rows, std::int64_t from, std::int64_t& row_number) const;
    std::int64_t most_block_rows() const;
    BasePass pass_of(Block& block, const Batch& batch, bool learns) const;
    void run_coin(Block& block, const Batch& batch, bool learns, double* buffer) const;
    void learn_columns(Block& block, const Batch& batch, std::int64_t row_number);
    MixPass mix_pass(const Block& block, const Batch& batch, const RowOutputs& out, const Roster& roster,
                     Totals& totals, bool learns) const;
    void score_rows(const Rows& rows, double* scores) const;
    void drop_number(int at);

    std::mutex mirroring_;                     // readers of the arrays wait for the one that fills them in
    bool is_mirrored_ = false;                 // since rows were last learned
    std::vector<std::uint32_t> cell_numbers_;  // of the entries of a batch
    std::vector<double> losses_;               // of a batch, for the calibration
    std::vector<double> scores_;               // likewise, for the calibrator
    std::unique_ptr<Memory> buffer_;           // grows with the longest row
    std::vector<std::unique_ptr<Block>> blocks_;
};

// Of the longest of some rows.
std::int64_t longest_row(const Rows& rows);

// Move `count` of an array's numbers to its front, then `more` from number `next` on, and set the other ones to 0.
void keep_numbers(double* array, int size, int first, int count, int next = 0, int more = 0);

}  // namespace ftprl
