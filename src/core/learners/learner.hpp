// The learner that the rest of the program knows: a table of cells, the constants it is learned with, and what was
// added up on the way. How a cell is laid out is the business of its three implementations: one scale, several, and
// several classes.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "learners/boxes.hpp"
#include "learners/calibrator.hpp"
#include "learners/kernel.hpp"
#include "learners/ledger.hpp"
#include "learners/rows.hpp"
#include "learners/scales.hpp"
#include "support/memory.hpp"

namespace ftprl {

struct LearnerOptions {
    std::uint64_t dim = 1;
    int outputs = 1;       // scores of a row: with losses of classes those known so far
    int most_classes = 0;  // with such a loss, as many as there may ever be
    bool wide_cells = false;
    bool receipt = false;
    bool boxed = false;                                   // whether single weights have bounds of their own
    CalibrationKind calibration = CalibrationKind::none;  // of scores with the log loss
    ScaleConstants constants = {};
};

// Some neighbouring numbers of a cell: `count` of them from number `first` on; 0 for a single one that is no list.
struct Columns {
    const char* name;
    int first;
    int count;
};

// An array of a learner: a vector of `columns` numbers when `rows` is 0, otherwise rows that begin `stride` apart.
struct NamedArray {
    const char* name;
    double* data;
    int rows;
    int columns;
    int stride;
};

// As aligned as what its classes hold: Python frees whatever learner it is with the alignment of this class.
class alignas(Mixture) Learner {
public:
    static std::unique_ptr<Learner> make(const LearnerOptions& options);
    virtual ~Learner() = default;
    Learner& operator=(const Learner&) = delete;
    virtual std::unique_ptr<Learner> copy() const = 0;

    RowFault find_fault(const Rows& rows, bool wide_values, std::int64_t size, bool labels,
                        double* largest = nullptr) const;

    // The rows must be without fault; they are taken as they are. Scores are a row by an output.
    Totals learn(const Rows& rows, bool wide_values, const RowOutputs& out);
    // What learns from the rows to come. Rows that were learned in an earlier pass leave the mixture as it is; held-out
    // rows move nothing but the weights of the experts.
    void choose_parts(bool scales, bool mixture) {
        options_.constants.frozen = !mixture;
        options_.constants.weighs = !scales;
    }
    // Scores are calibrated where there is a calibrator, unless they are asked for as they were before.
    void score(const Rows& rows, bool wide_values, double* scores, bool calibrated = true) const;
    // The largest step of the score in each lane (moves.hpp), rows by outputs times scales.
    void moves(const Rows& rows, bool wide_values, double* out) const;

    // The weight of each slot in one scale, an output by a slot; and z, R, S and kappa of the intercept, an output by
    // four by a scale.
    void weights(int scale, double* out) const;
    virtual void intercept(double* out) const = 0;

    // The slots that have been learned, in order, into space for all of them; returns how many there are.
    virtual std::size_t touched(std::uint32_t* out) const;
    // Whole cells, of slots below dim.
    virtual void take(const std::uint32_t* slots, std::size_t count, void* out) const = 0;
    virtual void put(const std::uint32_t* slots, std::size_t count, const void* from) = 0;
    virtual std::size_t cell_bytes() const = 0;
    // Of memory that each slot of the table may take up.
    virtual std::size_t slot_bytes() const = 0;
    // Before the first cell is put: few of the cells of a large table will be used, so give none of them a huge page.
    virtual void use_small_pages() = 0;
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
    virtual std::vector<Columns> columns() const = 0;

    // The sums of a receipt against the weights of scale `leader`, over `count` rising slots, or all when null.
    LedgerSums ledger(int leader, const std::int64_t* slots, std::int64_t count) const;
    // The cells by how often they were seen, compared with the weights of `leader`.
    LedgerGroups groups(int leader, int scale) const;

    // The state of the mixture, an array for each output: with one scale its weight 1, its loss and its sums.
    virtual std::vector<NamedArray> mixture() = 0;
    // What a model file holds: parts of every cell, and arrays besides the cells.
    virtual std::vector<Columns> saved_columns() const = 0;
    virtual std::vector<NamedArray> saved_arrays() = 0;
    // Before the arrays of a file are put: how many dense columns its stack knows, and how many inputs it has with
    // them.
    virtual void expect_columns(int /*columns*/, int /*inputs*/) {}

    // Of several classes: make so many known, at least those that are, before cells are put or rows are scored.
    virtual void know_classes(int /*classes*/) {}

    // Drop all scales but `count` neighbours from number `first` on. One scale cannot be dropped.
    virtual void keep_scales(int first, int count) = 0;
    // Drop the coin-betting expert, if there is one.
    virtual void drop_coin() {}

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
    NamedArray rounding();
    // The sums over rows of a receipt when labels are in their own unit: a row for each RowSum.
    NamedArray row_sums();
    // Whether labels are in their own unit: with every loss but the log loss.
    bool labelled() const { return loss().rule != LabelRule::none; }
    // Whether a label is the number of a class.
    bool has_classes() const { return loss().labels == Labels::classes; }
    // What calibrates the scores; null without it.
    const Calibrator* calibrator() const { return calibrator_.get(); }
    // Whether predicted probabilities are compared with labels.
    bool calibrates() const { return receipt() && !labelled() && !has_classes(); }

protected:
    Learner(const LearnerOptions& options, std::uint64_t cells);
    Learner(const Learner& other);

    virtual Totals learn_rows(const Rows& rows, bool wide_values, const RowOutputs& out) = 0;
    virtual void score_rows(const Rows& rows, bool wide_values, double* scores) const = 0;
    // What is known of the labels; null with the log loss.
    virtual const LabelState* labels() const = 0;
    virtual CellTable table() const = 0;
    // The number of a slot's cell, which has to be there to be written.
    virtual std::uint64_t cell_of(std::uint32_t slot) const = 0;
    // The same, for a slot that may have none yet.
    virtual std::uint64_t claim_cell(std::uint32_t slot) = 0;
    virtual GradientSums gradient_sums() const = 0;  // with a receipt
    ReceiptState receipt_state() const;
    const Loss& loss() const { return *options_.constants.base.loss; }
    std::size_t box_bytes() const {
        return options_.boxed ? sizeof(std::uint16_t) : 0;
    }  // the number of a cell's bounds
    // The arrays that every model file has.
    std::vector<NamedArray> common_arrays();

    LearnerOptions options_;
    const Kernels* kernels_;
    bool unconstrained_;  // no l1, no l2, no bound
    double tallies_[TALLIES] = {};
    Calibration calibration_;
    std::unique_ptr<Boxes> boxes_;
    std::unique_ptr<Calibrator> calibrator_;
    double rounding_[ROUNDING_SUMS][MOST_SCALES] = {};
    double row_sums_[ROW_SUMS][MOST_SCALES] = {};

private:
    Totals learn_calibrated(const Rows& rows, bool wide_values, const RowOutputs& out);

    std::vector<double> losses_;  // of a batch, for the calibration
    std::vector<double> scores_;  // likewise, for the calibrator
};

// Of the longest of some rows.
std::int64_t longest_row(const Rows& rows);

}  // namespace ftprl
