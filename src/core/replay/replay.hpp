// A second learner, for `ftprl verify`: rows learned once more in simple loops, one entry and one scale after another.
//
// It shares no code with src/core/learners, which made the numbers that are checked: what is here is written from
// docs/scales.md, docs/labels.md, docs/classes.md, docs/scales.md and docs/receipt.md. All arrays belong to
// the caller, who reads its certificate from them.
//
// A lane is one score of a row: of one scale, and with several classes of one column of classes. A column stands for a
// class that is known, and the last one for all that may come; cells have a number for each lane, scale by scale within
// each column.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "replay/losses.hpp"

namespace ftprl::replay {

constexpr double LARGEST = 1.7976931348623157e308;
constexpr int MOST = 16;                                                  // scales
constexpr double STACK_CUT = 8.0, FLATTEST = 0x1p-13, HEAVIEST = 0x1p10;  // of the stack: scores, curvature, weight
constexpr int SUMS = 6;  // g x, sigma x^2, g^2 / Q, drift, sizes of the first, sizes of a step
constexpr int ROW_SUMS = 5;

constexpr double LEAST_UNIT = std::numeric_limits<double>::min();  // nothing can be learned in smaller units

struct Settings {
    const Loss* loss;
    double tau, beta, l1, l2, lower, upper;
    bool intercept, wide, stacked, coin, dense;
    std::vector<double> scales;
    std::vector<double> copies;  // how many classes each column stands for; a 1 where there is one score
    int known_before, known;     // classes that can be predicted for the first row, and for the next ones

    bool labelled() const { return loss->labelled(); }
    double quantile() const { return loss->has_quantile ? tau : 0.5; }
    bool unconstrained() const { return l1 == 0.0 && l2 == 0.0 && lower < -LARGEST && upper > LARGEST; }
    int count() const { return static_cast<int>(scales.size()); }
    int columns() const { return static_cast<int>(copies.size()); }
    int lanes() const { return count() * columns(); }
    double scale_of(int lane) const { return scales[lane % count()]; }
    // Units of features are running means, for which rows are counted, unless there is one scale and one score.
    bool counts_rows() const { return count() > 1 || loss->has_classes(); }
};

// The cells that were met: z, R and S (a number a lane), unit, rows and kappa of each cell; float or double.
struct Cells {
    void *z, *R, *unit, *rows, *kappa;
    double* S;
    const double *lower, *upper;  // of each weight; null where all have the same
};

// Offset, unit and range of the labels, and what they follow from; in the order of `Replay.labels`.
struct LabelState {
    double rows, weight, mean, squares, least, most, quantile, since, pinball, deviation;
    double offset, unit, low, high, psi, kappa, outliers;
};

constexpr int HEDGE_NUMBERS = 10;
// The arrays of a mixture: `facts` with the log loss and with classes, `hedge` with the others.
struct MixtureState {
    double *P, *u, *w, *totals, *facts, *hedge, *block, *windows;
};

// The coin: four numbers of each cell, float or double; those of the intercept, the largest weighted slope, and
// the weights of negative and positive labels, which only the log loss counts. Null without.
struct CoinState {
    void* cells;
    double* base;
};

// The dense columns: facts of each, how many are active and watched, the inputs before them and the rows since the last
// power of two; then u and P of the stack that sees them, one after the other for each column of classes. Null without.
constexpr int MOST_COLUMNS = 64, COLUMN_FACTS = 8, COLUMN_COUNTS = 4, STACK_INPUTS = 88;
struct ColumnState {
    double *columns, *counts, *u, *P;
    int stacks;  // how many u and P there are

    ColumnState of_stack(int j) const {
        return {columns, counts, u + j * STACK_INPUTS, P + j * STACK_INPUTS * STACK_INPUTS, 1};
    }
    int active() const { return static_cast<int>(counts[0]); }
    int watched() const { return static_cast<int>(counts[1]); }
    int own() const { return static_cast<int>(counts[2]); }
    bool started() const { return counts != nullptr && counts[2] > 0.0; }
};

// What is added up: tallies (loss, weight, rows), SUMS and slopes and ROW_SUMS for each scale, 20 bins of calibration.
struct Totals {
    double *tallies, *sums, *slopes, *row_sums, *calibration, *base;
};

struct Row {
    const std::int32_t* cell;
    const double* value;
    std::int64_t size;
    double y, weight;
};

struct RowExperts;

class Learner {
public:
    Learner(Settings settings, Cells cells, Totals totals, LabelState* labels, MixtureState mixture, CoinState coin,
            ColumnState columns);

    // One row, all of it; returns the loss of the prediction, and unless the loss is the log loss the prediction.
    double learn(const Row& row, double& prediction);
    // Predict a row and learn nothing from it; returns what `learn` does. Cells that were not met have number 0.
    double score(const Row& row, double& prediction);

    // What the scores of the next row are counted from.
    double offset() const { return labels_->offset; }
    // What the weight of the latest row is multiplied by, where losses are divided by the unit of the labels.
    double share() const {
        if (!s_.loss->divides_rows()) return 1.0;
        return labels_->unit > 0.0 ? 1.0 / labels_->unit : 0.0;
    }

private:
    // Compute the score of each lane, counted from `offset`, and how far a slope of 1 moves the score. A row that is
    // predicted and not learned (`learns` is false) does not change the units of features.
    void play(const Row& row, double offset, bool learns);
    RowExperts experts_of(const Row& row, bool learns);
    double together(const double* terms, std::int64_t count) const;
    // By slopes times weights, counted in psi, with weights in kappa.
    void step(const Row& row, const double* slopes, double psi, double kappa);
    template <class T>
    void raise(const Row& row);
    template <class T>
    void look_up(const Row& row);
    template <class T>
    void play_cells(const Row& row);
    template <class T>
    void step_cells(const Row& row, const double* slopes, double psi, double kappa);
    double rate(double h, double R, double unit) const;
    double rate_with(double rate, double h, double kappa, double unit, bool free) const;
    double rise(double R, double now, double unit, double kappa, double new_kappa) const;
    void step_base(const double* slopes, double psi, double kappa);
    void add_terms(int lane, std::int64_t entry, double h, double held, double rate, double g, double x, double sigma,
                   double z, double moved, double kept, bool narrow, bool met);
    bool learn_labelled(const Row& row, RowExperts& x, double& prediction, double& value);
    void sum_up(int lane, std::int64_t entries);
    void add_lanes();
    template <class T>
    double coin_score(const Row& row, bool learns);
    template <class T>
    void learn_coin(const Row& row, double slope);
    template <class T>
    void review_columns(const Row& row, std::int64_t t);

    Settings s_;
    Cells cells_;
    Totals totals_;
    LabelState* labels_;
    MixtureState mixture_;
    CoinState coin_;
    ColumnState columns_;
    bool several_, unconstrained_;
    std::vector<double> unit_, before_, x_, kappa_, terms_, bets_;
    std::vector<double> scores_, reach_, slopes_, base_;  // of each lane
    std::vector<double> own_, lane_sums_;                 // SUMS of each lane: of the intercept, of the row
};

// ---- parts of a row that are not about cells ----

inline double loss_value(const Settings& s, double score, double y) { return s.loss->value(score, y, s.quantile()); }
double log_slope(double score, double y);

// The label of a row: what is known after it, and the range it is learned with.
struct LabelledRow {
    double learned;       // the label, cut if it is far from all before it
    double offset, unit;  // before it
    double low, high;
    bool teaches;  // more than the label
};
LabelledRow learn_label(const Settings& s, LabelState& state, double y, double weight);
// Learn a label that is not cut; returns what the scores of its row are counted from, and as `share` what a receipt
// multiplies its weight by.
// Forget where the labels were; y is the latest, of weight c.
void begin_anew(LabelState& a, double y, double c);
// The score at which a slope is taken: what is more than the width of the range beyond it counts.
double start_of(const Settings& s, const LabelledRow& row, double score);
double implicit_slope(const Settings& s, const LabelState& state, double score, double y, double A);
void add_row_sums(const Settings& s, const LabelState& state, const LabelledRow& row, double y, double weight,
                  double score, double slope, double prediction, double prediction_loss, double* sums, int stride);

// What the coin and the columns have to say of a row: the coin's score, which becomes its slope, weighted, and what the
// columns give the stack.
struct RowExperts {
    ColumnState columns;
    double bet, slope;
    double inputs[STACK_INPUTS];
};

// The loss of the mixture for row t, counted from 1, which then learns the row: with the log loss, and the prediction
// with the others, which learn the label of the row as well.
double learn_mixture(const Settings& s, const MixtureState& state, const double* scores, RowExperts& x, double y,
                     double weight, double t);
// The prediction of the mixture with any loss but the log loss; its loss with the log loss.
double predict_label(const Settings& s, const MixtureState& m, const LabelState& labels, const double* scores,
                     const RowExperts& x);
double score_mixture(const Settings& s, const MixtureState& m, const double* scores, const RowExperts& x, double y);
LabelledRow learn_label_mixture(const Settings& s, const MixtureState& m, LabelState& labels, const double* scores,
                                RowExperts& x, double y, double weight, double t, double& prediction);

// The loss of the mixture of several classes, which then learns the row, and the slopes of all lanes for a weight of 1.
double learn_classes(const Settings& s, const MixtureState& m, const double* scores, RowExperts& x, const Row& row,
                     std::int64_t t, double* slopes, double& prediction);
double score_classes(const Settings& s, const MixtureState& m, const double* scores, const RowExperts& x, double y,
                     double& prediction);

// The part of the weights that is shared out after row t.
double share_after(double t);
// Rescale the weights of n experts for a new largest weight of a row.
void admit(const MixtureState& m, double weight, int n);
// -ln sum w e^-loss
double mixed_loss(const MixtureState& m, const double* losses, int n);
// The weights after row t; `chances` are e^-loss, null where they would underflow.
void weigh(const MixtureState& m, const double* losses, const double* chances, double weight, double t, int n);
constexpr double LEAST_CHANCE = 0x1p-900;  // a mixture that gave the label less works with logarithms
constexpr double RIDGE = 4.0;              // the Hessian of the stack begins at this times the identity

// A step of the stack: its inputs v, the slope and the curvature (times the weight) of its loss.
void newton_step(const MixtureState& m, const double* v, int size, double slope, double curvature, double weight);
// The same with the columns behind the inputs, if there are any, times `ratio`; v has space for them.
void stack_step(const MixtureState& m, const RowExperts& x, double* v, int size, double ratio, double slope,
                double curvature, double weight);
// Losses in blocks of rows, by which it is decided which scales stay.
inline bool is_power_of_two(std::int64_t n) { return n > 0 && (n & (n - 1)) == 0; }
void add_block(const MixtureState& m, const double* losses, double weight, int K, std::int64_t t);

// A 1 and the values of the active columns, in deviations from their means; a row that is learned is counted.
void read_columns(const ColumnState& c, const Row& row, double* inputs, bool learns);
double columns_score(const ColumnState& c, const double* inputs);
void columns_step(const ColumnState& c, const double* v, double slope, double b, double weight);
// At powers of two of the rows: columns that are rare go, watched ones that are dense stay.
void settle_columns(const ColumnState& c, const MixtureState& m, int stack_inputs);

// Every fourth number from the first, the second, ... on, then these four together.
inline double in_fours(const double* terms, std::int64_t count) {
    double four[4] = {0.0, 0.0, 0.0, 0.0};
    for (std::int64_t i = 0; i < count; ++i) four[i % 4] += terms[i];
    return (four[0] + four[1]) + (four[2] + four[3]);
}

inline double cut(double v, double low, double high) { return v < low ? low : (high < v ? high : v); }

}  // namespace ftprl::replay
