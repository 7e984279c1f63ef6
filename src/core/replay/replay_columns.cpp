// The dense columns of the stack: docs/scales.md, in the same order.
#include <algorithm>
#include <cmath>

#include "replay/replay.hpp"

namespace ftprl::replay {
namespace {

constexpr double DEVIATIONS = 8.0, PART = 0.625, LEAST_DEVIATION = 0x1p-20;
enum Fact { CELL, CENTRE, DEVIATION, MET, MEAN, SQUARES, ONE_VALUE, DIFFERS };
enum Count { ACTIVE, WATCHED, OWN, ROWS };

double* fact_of(const ColumnState& c, int column) { return c.columns + COLUMN_FACTS * column; }
double& entry(const ColumnState& c, int i, int j) { return c.P[i * STACK_INPUTS + j]; }

void drop_input(const ColumnState& c, int at) {
    for (int i = at; i + 1 < STACK_INPUTS; ++i) {
        c.u[i] = c.u[i + 1];
        for (int j = 0; j < STACK_INPUTS; ++j) entry(c, i, j) = entry(c, i + 1, j);
    }
    const int last = STACK_INPUTS - 1;
    c.u[last] = 0.0;
    for (int i = 0; i < STACK_INPUTS; ++i) {
        for (int j = at; j < last; ++j) entry(c, i, j) = entry(c, i, j + 1);
        entry(c, i, last) = entry(c, last, i) = 0.0;
    }
}

// The stack goes on from where it is, with a constant of weight 0.
void begin(const ColumnState& c, const MixtureState& m, int n) {
    for (int i = 0; i < n; ++i) {  // none of several classes, whose stack has the scales for itself
        c.u[i] = m.u[i];
        for (int j = 0; j < n; ++j) entry(c, i, j) = m.P[i * n + j];
    }
    for (int k = 0; k < c.stacks; ++k) entry(c.of_stack(k), n, n) = 1.0 / RIDGE;
    c.counts[OWN] = n + 1;
}

void watch(double* column, bool met, double value, double rows) {
    if (met && column[MET] == 1.0) column[ONE_VALUE] = value;
    if (met && value != column[ONE_VALUE]) column[DIFFERS] = 1.0;
    const double d = value - column[MEAN];
    column[MEAN] += d / rows;
    column[SQUARES] += d * (value - column[MEAN]);
}

}  // namespace

void read_columns(const ColumnState& c, const Row& row, double* inputs, bool learns) {
    if (learns) c.counts[ROWS] += 1.0;
    inputs[0] = 1.0;
    for (int j = 0; j < c.active() + (learns ? c.watched() : 0); ++j) {
        double *column = fact_of(c, j), value = 0.0;
        bool met = false;
        for (std::int64_t i = 0; i < row.size; ++i) {
            if (static_cast<double>(row.cell[i]) != column[CELL]) continue;
            met = true;
            value = row.value[i];
        }
        column[MET] += met && learns ? 1.0 : 0.0;
        if (j < c.active()) {
            inputs[j + 1] = cut((value - column[CENTRE]) / column[DEVIATION], -DEVIATIONS, DEVIATIONS);
        } else {
            watch(column, met, value, c.counts[ROWS]);
        }
    }
}

double columns_score(const ColumnState& c, const double* inputs) {
    double terms[STACK_INPUTS];
    for (int j = 0; j <= c.active(); ++j) terms[j] = c.u[c.own() - 1 + j] * inputs[j];
    return in_fours(terms, c.active() + 1);
}

void columns_step(const ColumnState& c, const double* v, double slope, double b, double weight) {
    const int n = c.own() + c.active();
    double Pv[STACK_INPUTS], terms[STACK_INPUTS];
    for (int i = 0; i < n; ++i) {
        Pv[i] = 0.0;
        for (int j = 0; j < n; ++j) Pv[i] += entry(c, j, i) * v[j];
        terms[i] = Pv[i] * v[i];
    }
    const double d = 1.0 + b * std::max(in_fours(terms, n), 0.0), along = weight * slope / d, shrink = b / d;
    bool sound = true;
    for (int i = 0; i < n; ++i) {
        c.u[i] -= along * Pv[i];
        for (int j = 0; j < n; ++j) entry(c, i, j) -= shrink * (Pv[i] * Pv[j]);
        sound = sound && entry(c, i, i) > 0.0;
    }
    for (int i = 0; !sound && i < n; ++i) {
        for (int j = 0; j < n; ++j) entry(c, i, j) = i == j ? 1.0 / RIDGE : 0.0;
    }
}

void settle_columns(const ColumnState& c, const MixtureState& m, int stack_inputs) {
    const double rows = c.counts[ROWS];
    for (int j = c.active() - 1; j >= 0; --j) {
        if (fact_of(c, j)[MET] >= 0.5 * PART * rows) continue;
        for (int k = 0; k < c.stacks; ++k) drop_input(c.of_stack(k), c.own() + j);
        std::copy(fact_of(c, j + 1), fact_of(c, c.active() + c.watched()), fact_of(c, j));
        c.counts[ACTIVE] -= 1.0;
    }
    const int first = c.active(), end = first + c.watched();
    for (int j = first; j < end; ++j) {
        double* column = fact_of(c, j);
        const double deviation = std::sqrt(column[SQUARES] / rows);
        const bool enough = column[MET] >= PART * rows && column[DIFFERS] == 1.0;
        if (!(enough && deviation > LEAST_DEVIATION * std::fabs(column[MEAN]))) continue;
        if (!c.started()) begin(c, m, stack_inputs);
        column[CENTRE] = column[MEAN];
        column[DEVIATION] = deviation;
        const int at = c.own() + c.active();
        for (int k = 0; k < c.stacks; ++k) entry(c.of_stack(k), at, at) = 1.0 / RIDGE;
        if (j > c.active()) std::copy(column, column + COLUMN_FACTS, fact_of(c, c.active()));
        c.counts[ACTIVE] += 1.0;
    }
    c.counts[WATCHED] = c.counts[ROWS] = 0.0;
    for (int j = 0; j < c.active(); ++j) fact_of(c, j)[MET] = 0.0;
}

}  // namespace ftprl::replay
