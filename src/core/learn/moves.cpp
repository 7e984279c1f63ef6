#include "learn/moves.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace ftprl {
namespace {

template <class T>
const T* cell_at(const CellTable& table, std::uint32_t slot) {
    const std::uint64_t number = table.slot_map == nullptr ? slot : table.slot_map[slot];
    return reinterpret_cast<const T*>(static_cast<const unsigned char*>(table.cells) + number * table.bytes);
}

// The unit of a feature once this row is learned: the largest value, or what follows the root of the mean square.
template <class T>
double unit_after(const CellTable& table, const T* cell, double size) {
    const double s = cell[table.unit];
    if (!(size > s)) return s;
    if (!table.counts) return static_cast<T>(size);
    const double N = static_cast<T>(static_cast<double>(cell[table.met]) + 1.0);
    const double rms = std::sqrt(s * s + (size * size - s * s) / N);
    return static_cast<T>(std::max(std::max(s, rms), size * 0.0625));
}

struct Weighing {
    double beta, l2, kappa;
    bool labelled;
};

// How much a slope of 1 in the score moves it by way of one feature of value v: v² / (Q + l2 s²). With the log loss R
// is as after the largest gradient, |v|: so large is the step, not larger.
double reach_of(const Weighing& c, double h, double v, double s, double R) {
    const double after = c.labelled ? R : std::sqrt(R * R + v * v);
    const double strength = s * (c.beta * s + after) / c.kappa + h * c.l2 * (s * s);
    return strength > 0.0 ? std::min(v * v * h / strength, DBL_MAX) : (v == 0.0 ? 0.0 : DBL_MAX);
}

// The larger of the steps towards the least and the largest label so far.
double largest_step(const Loss& loss, const LabelState& labels, double tau, double score, double reach) {
    if (labels.rows == 0.0 || !(labels.unit > 0.0)) return 0.0;  // nothing but the labels was learned
    const bool signs = loss.rule == LabelRule::classes;
    const double least = signs ? -1.0 : labels.least, most = signs ? 1.0 : labels.most;
    const double down = loss.implicit(score, least, reach, labels.unit, tau);
    const double up = loss.implicit(score, most, reach, labels.unit, tau);
    return reach * std::max(std::fabs(down), std::fabs(up));
}

template <class T, class V>
void moves(const MoveTable& table, const Rows& rows, const double* scores, double* out) {
    const Constants& c = *table.constants;
    const int K = table.constants->count;
    const bool labelled = table.labels != nullptr;
    const Weighing of_cells = {c.beta, c.l2, labelled ? table.labels->kappa : 1.0, labelled};
    const Weighing of_intercept = {c.beta, 0.0, of_cells.kappa, labelled};
    const V* values = static_cast<const V*>(rows.values);
    for (std::int64_t r = 0; r < rows.count; ++r, out += table.lanes) {
        for (int l = 0; l < table.lanes; ++l) {
            const double h = table.constants->h[l % K];
            out[l] = c.intercept ? reach_of(of_intercept, h, 1.0, 1.0, table.intercept_R[l]) : 0.0;
        }
        for (std::int64_t p = rows.indptr[r]; p < rows.indptr[r + 1]; ++p) {
            const T* cell = cell_at<T>(table.cells, rows.indices[p]);
            const double v = values[p], s = unit_after(table.cells, cell, std::fabs(v));
            for (int l = 0; l < table.lanes; ++l) {
                const double R = cell[table.cells.R + l];
                out[l] = std::min(out[l] + reach_of(of_cells, table.constants->h[l % K], v, s, R), DBL_MAX);
            }
        }
        if (!labelled) continue;
        for (int l = 0; l < table.lanes; ++l) {
            out[l] = largest_step(*c.loss, *table.labels, c.tau, scores[r], out[l]);
        }
    }
}

}  // namespace

void moves_of(const MoveTable& table, const Rows& rows, const double* scores, double* out) {
    if (table.cells.wide) {
        return rows.wide ? moves<double, double>(table, rows, scores, out)
                         : moves<double, float>(table, rows, scores, out);
    }
    return rows.wide ? moves<float, double>(table, rows, scores, out) : moves<float, float>(table, rows, scores, out);
}

}  // namespace ftprl
