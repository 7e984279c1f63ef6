// What is known of the rows to come: confidence sequences of the loss, of how much it is below the baseline's, of the
// calibration and of the error rate, an alarm for a loss that rises, and the residuals of a regression run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "learn/losses.hpp"
#include "measure/confidence.hpp"
#include "measure/residuals.hpp"

namespace ftprl {

// All that is saved; every member consists of doubles.
struct MonitorState {
    double first_rows;  // learned before the unit of the labels was known: no sequence has them
    double first_loss;  // sum of |loss| and |prediction - label| of the latest of them
    double first_residual;
    MeanState loss, improvement, calibration, errors;
    DriftState drift;
};

constexpr std::size_t MONITOR_NUMBERS = sizeof(MonitorState) / sizeof(double);

// One number a row each; `scores` may be null with the log loss.
struct MonitoredRows {
    const double* losses;     // before the row was learned
    const double* baselines;  // of the baseline: two numbers a row, of which the first is its loss
    const double* scores;
    const double* y;
    const double* weight;
    std::int64_t count;
};

class Monitor {
public:
    Monitor(const Loss* loss, double error_probability, double false_alarm);

    void add(const MonitoredRows& rows);  // rows without a label or with weight 0 are passed over

    // Losses do not tell the predictions.
    bool needs_scores() const { return kind_->rule != LabelRule::none || kind_->labels == Labels::classes; }
    const MeanSequence& losses() const { return loss_; }
    const MeanSequence& improvement() const { return improvement_; }
    const MeanSequence& calibration() const { return calibration_; }
    const MeanSequence& errors() const { return errors_; }
    MonitorState state() const;
    void set_state(const MonitorState& state);
    bool has_residuals() const { return kind_->labels != Labels::signs && kind_->labels != Labels::classes; }
    Residuals& residuals() { return residuals_; }

private:
    struct Block;

    void fill(const MonitoredRows& rows, std::int64_t first, std::int64_t last, Block& to) const;
    void add_block(const Block& rows, std::int64_t first);
    std::int64_t settle_unit(const Block& rows);
    // The hinge losses predict no mean.
    bool has_calibration() const { return kind_->rule != LabelRule::classes && kind_->labels != Labels::classes; }
    bool is_unit_known() const;

    const Loss* kind_;
    bool has_unit_;  // a bound is known before the first row
    double first_rows_ = 0.0, first_loss_ = 0.0, first_residual_ = 0.0;
    MeanSequence loss_, improvement_, calibration_, errors_;
    DriftAlarm drift_;
    Residuals residuals_;
};

}  // namespace ftprl
