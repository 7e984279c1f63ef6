#include "replay/cells.hpp"

#include <algorithm>
#include <cmath>

namespace ftprl::replay {
namespace {

constexpr double LARGEST_FLOAT = 3.4028234663852886e38, SMALLEST_NORMAL_FLOAT = 0x1p-126;
constexpr double WEALTH = 0.3;  // of the coin in each coordinate, at first
}  // namespace

Scales::Scales(const Settings& settings, const Arrays& arrays)
    : s_(settings),
      z_(arrays.cells("z", s_.lanes())),
      R_(arrays.cells("R", s_.lanes())),
      units_(arrays.cells("unit", 1)),
      rows_(arrays.cells("count", 1)),
      kappas_(arrays.cells("kappa", 1)),
      S_(arrays.numbers("S", arrays.cell_count() * s_.lanes())),
      base_(arrays.numbers("base", 4 * s_.lanes())),
      sums_(arrays.numbers("sums", SUMS * s_.count())),
      slopes_(arrays.numbers("slopes", s_.count())),
      lower_(arrays.numbers_or_null("lower", arrays.cell_count())),
      upper_(arrays.numbers_or_null("upper", arrays.cell_count())) {
    unconstrained_ = s_.unconstrained() && lower_ == nullptr;
    const auto lanes = static_cast<std::size_t>(s_.lanes());
    for (auto* part : {&scores_, &reach_, &own_x_}) part->resize(lanes);
    for (auto* part : {&own_, &lane_sums_}) part->resize(SUMS * lanes);
}

// 1 / Q without kappa: h / (unit (beta unit + R)), and 0 where nothing was met.
double Scales::rate(double h, double R, double unit) const {
    const double held = unit * (s_.beta * unit + R);
    return held > 0.0 ? std::min(h / held, LARGEST) : 0.0;
}

// 1 / (Q + l2 unit^2)
double Scales::rate_with(double rate, double h, double kappa, double unit, bool free) const {
    const double own = rate * kappa;
    if (free || unconstrained_) return own;
    const double finite = std::min(own, LARGEST);
    const double l2 = h * s_.l2 / h;  // as it is rounded where h Q is what is kept
    return finite / (1.0 + finite * (l2 * (unit * unit)));
}

// What h Q / unit grows by.
double Scales::rise(double R, double now, double unit, double kappa, double new_kappa) const {
    if (!s_.loss->kinked) return now - R;
    const double own = kappa > 0.0 ? 1.0 / kappa : 0.0;
    return (s_.beta * unit + now) * (1.0 / new_kappa) - (s_.beta * unit + R) * own;
}

// The units of the row's features; of a row that is learned, this row included.
void Scales::look_up(const Row& row, bool learns) {
    for (std::int64_t i = 0; i < row.size; ++i) {
        const std::int64_t p = row.cell[i];
        const double a = std::fabs(row.value[i]), unit = units_[p];
        before_[i] = unit_[i] = unit;
        kappa_[i] = s_.loss->kinked ? kappas_[p] : 1.0;
        if (!learns) continue;
        if (counts_rows()) rows_.put(p, rows_[p] + 1.0);
        if (!(a > unit)) continue;
        double now = a;
        if (counts_rows()) {  // a running mean
            const double mean = std::sqrt(std::max(unit * unit + (a * a - unit * unit) / rows_[p], 0.0));
            now = std::max(std::max(unit, mean), a / 16.0);
        }
        units_.put(p, now);
        unit_[i] = units_[p];
    }
}

// The weight of each entry and lane, and the intercept's.
void Scales::play_cells(const Row& row) {
    const int lanes = s_.lanes();
    for (std::int64_t i = 0; i < row.size; ++i) {
        const double unit = unit_[i];
        const double low = lower_ == nullptr ? s_.lower : lower_[row.cell[i]];
        const double high = upper_ == nullptr ? s_.upper : upper_[row.cell[i]];
        for (int lane = 0; lane < lanes; ++lane) {
            const std::int64_t c = static_cast<std::int64_t>(row.cell[i]) * lanes + lane;
            const double z = z_[c], R = R_[c];
            const double h = s_.scale_of(lane);
            double x = 0.0;
            if (s_.labelled()) {
                const double own = rate(h, R, unit);
                if (unconstrained_) {
                    x = -(z * own) * kappa_[i];
                } else {
                    const double pull = std::copysign(std::max(std::fabs(z) - s_.l1 * unit, 0.0), -z);
                    x = cut(pull * rate_with(own, h, kappa_[i], unit, false), low, high);
                }
            } else {
                double held = unit * (s_.beta * unit + R), pull = z * -h;
                if (!unconstrained_) {
                    held += h * s_.l2 * (unit * unit);
                    pull = std::copysign(std::max(std::fabs(z) - s_.l1 * unit, 0.0), -z) * h;
                }
                x = held > 0.0 ? pull / held : 0.0;
                if (!unconstrained_) x = cut(x, low, high);
            }
            x_[lane * row.size + i] = x;
        }
    }
    for (int lane = 0; s_.intercept && lane < lanes; ++lane) {
        const double *own = base_ + lane, z = own[0], R = own[lanes], h = s_.scale_of(lane);
        const double held = 1.0 * (s_.beta * 1.0 + R);
        own_x_[lane] = s_.labelled() ? -(z * rate(h, R, 1.0)) * own[3 * lanes] : (held > 0.0 ? z * -h / held : 0.0);
    }
}

// The sum of a row's terms: in order with several classes, and otherwise in fours.
double Scales::together(const double* terms, std::int64_t count) const {
    if (!s_.loss->has_classes()) return in_fours(terms, count);
    double sum = 0.0;
    for (std::int64_t i = 0; i < count; ++i) sum += terms[i];
    return sum;
}

void Scales::play(const Row& row, double offset, bool learns) {
    const int lanes = s_.lanes();
    const auto size = static_cast<std::size_t>(row.size);
    if (unit_.size() < size) {
        for (auto* part : {&unit_, &before_, &kappa_}) part->resize(size);
    }
    if (x_.size() < size * lanes) {
        x_.resize(size * lanes);
        terms_.resize(size * SUMS);
    }
    look_up(row, learns);
    play_cells(row);
    for (int lane = 0; lane < lanes; ++lane) {
        for (std::int64_t i = 0; i < row.size; ++i) terms_[i] = x_[lane * row.size + i] * row.value[i];
        double score = together(terms_.data(), row.size);
        if (s_.labelled()) score = score + offset;
        scores_[lane] = s_.intercept ? score + own_x_[lane] : score;
        if (!s_.labelled()) continue;
        for (std::int64_t i = 0; i < row.size; ++i) {
            const std::int64_t c = static_cast<std::int64_t>(row.cell[i]) * lanes + lane;
            terms_[i] = (row.value[i] * row.value[i]) * rate(s_.scale_of(lane), R_[c], unit_[i]);
        }
        reach_[lane] = together(terms_.data(), row.size);
        if (s_.intercept) reach_[lane] += rate(s_.scale_of(lane), base_[lanes + lane], 1.0);
    }
}

// What a step adds to the sums: docs/receipt.md. `held` is h (Q + l2), `rate` 1 / (Q + l2) with labels in any unit.
void Scales::add_terms(int lane, std::int64_t entry, double h, double held, double rate, double g, double x,
                       double sigma, double z, double moved, double kept, bool narrow, bool met) {
    const bool labelled = s_.labelled(), free = !labelled && (unconstrained_ || entry < 0);
    const double inverse = labelled ? std::min(rate, LARGEST) : (held > 0.0 ? std::min(h / held, LARGEST) : 0.0);
    const double pulled = labelled ? std::fabs(g) + std::fabs(sigma * x) : std::fabs(g);
    const double proximal = sigma * x * x, lost = kept - moved, pull = held > 0.0 ? g * h / held : 0.0;
    const double size = labelled ? std::fabs(kept) + pulled : std::fabs(kept);
    const double lost_at_most = narrow ? std::fabs(lost) : 0x1p-52 * size * (met ? 1.0 : 0.0);
    double out[SUMS];
    out[0] = g * x;
    out[1] = proximal;
    out[2] = labelled ? g * g * inverse : g * pull;
    out[3] = labelled && !narrow ? 0.0 : lost * ((g + 0.5 * lost) * inverse - x);
    out[4] = labelled ? std::fabs(g) * std::fabs(x) + std::fabs(proximal) : std::fabs(g) * std::fabs(x);
    const double left = labelled ? pulled + std::fabs(kept) : std::fabs(g) + std::fabs(kept);
    out[5] = (left + lost_at_most) * (std::fabs(x) + (std::fabs(g) + lost_at_most) * inverse);
    if (free) {  // x = -z / Q: the second order of the drift and most sizes are bounded by other sums, unless z is tiny
        const bool tiny = narrow && std::fabs(kept) < SMALLEST_NORMAL_FLOAT;
        out[3] = lost * (pull - x) + (tiny ? 0.5 * lost * lost * inverse : 0.0);
        out[5] = std::fabs(z * x) + (tiny ? out[5] : 0.0);
    }
    for (int j = 0; j < SUMS; ++j)
        (entry < 0 ? own_[j * s_.lanes() + lane] : terms_[j * terms_.size() / SUMS + entry]) = out[j];
}

void Scales::step_cells(const Row& row, const double* slopes, double psi, double kappa) {
    const int lanes = s_.lanes();
    const bool narrow = !s_.wide;
    const double top = z_.cut_gradient(), most = narrow ? LARGEST_FLOAT : LARGEST, new_kappa = z_.rounded(kappa);
    for (int lane = 0; lane < lanes; ++lane) {
        const double h = s_.scale_of(lane), inverse_h = 1.0 / h;
        for (std::int64_t i = 0; i < row.size; ++i) {
            const std::int64_t c = static_cast<std::int64_t>(row.cell[i]) * lanes + lane;
            const double z = z_[c], R = R_[c];
            const double unit = unit_[i], x = x_[lane * row.size + i];
            const double g = cut(slopes[lane] * row.value[i], -top, top);
            const double counted = s_.labelled() ? cut(g * (1.0 / psi), -top, top) : g;
            const double now = std::max(z_.rounded(std::sqrt(R * R + counted * counted)), R);
            const double sigma = unit * rise(R, now, unit, kappa_[i], new_kappa) * inverse_h;
            const double moved = z + (g - sigma * x);
            const bool clamped = s_.labelled() || !unconstrained_;
            z_.put(c, clamped ? cut(moved, -most, most) : moved);
            R_.put(c, now);
            S_[c] += g;
            double held = 0.0, own = 0.0;
            if (s_.labelled()) {
                own = rate_with(rate(h, now, unit), h, new_kappa, unit, false);
            } else {
                held = unit * (s_.beta * unit + now);
                if (!unconstrained_) held += h * s_.l2 * (unit * unit);
            }
            const bool met = row.value[i] != 0.0;
            add_terms(lane, i, h, held, own, g, x, sigma, z, moved, z_[c], narrow, met);
        }
        sum_up(lane, row.size);
    }
    for (std::int64_t i = 0; s_.labelled() && i < row.size; ++i) kappas_.put(row.cell[i], kappa);
}

void Scales::sum_up(int lane, std::int64_t entries) {
    for (int j = 0; j < SUMS; ++j) {
        const double whole = together(terms_.data() + j * terms_.size() / SUMS, entries);
        lane_sums_[j * s_.lanes() + lane] = s_.intercept ? whole + own_[j * s_.lanes() + lane] : whole;
    }
}

// Add the sums of a row over all columns of classes, each as often as there are classes that it stands for.
void Scales::add_lanes(const double* slopes) {
    const int K = s_.count();
    for (int k = 0; k < K; ++k) {
        for (int j = 0; j < SUMS; ++j) {
            double whole = 0.0;
            for (int c = 0; c < s_.columns(); ++c) whole += s_.copies[c] * lane_sums_[j * s_.lanes() + c * K + k];
            sums_[j * K + k] += whole;
        }
        double sizes = 0.0;
        for (int c = 0; c < s_.columns(); ++c) sizes += s_.copies[c] * std::fabs(slopes[c * K + k]);
        slopes_[k] += sizes;
    }
}

void Scales::step_base(const double* slopes, double psi, double kappa) {
    const int lanes = s_.lanes();
    for (int lane = 0; lane < lanes; ++lane) {
        double *z = base_ + lane, *R = z + lanes, *S = R + lanes, *own_kappa = S + lanes;
        const double h = s_.scale_of(lane), x = own_x_[lane];
        const double g = cut(slopes[lane], -WIDE_CUT, WIDE_CUT);
        const double counted = s_.labelled() ? cut(g * (1.0 / psi), -WIDE_CUT, WIDE_CUT) : g;
        const double now = std::max(std::sqrt(*R * *R + counted * counted), *R);
        const double sigma = rise(*R, now, 1.0, *own_kappa, kappa) * (1.0 / h);
        const double before = *z;
        double moved = before + (g - sigma * x);
        if (s_.labelled()) {
            moved = cut(moved, -LARGEST, LARGEST);
            *own_kappa = kappa;
        }
        *z = moved;
        *R = now;
        *S += g;
        const double held = 1.0 * (s_.beta * 1.0 + now);
        const double own = s_.labelled() ? rate_with(rate(h, now, 1.0), h, kappa, 1.0, true) : 0.0;
        add_terms(lane, -1, h, held, own, g, x, sigma, before, moved, moved, false, true);
    }
}

void Scales::forget_units(const Row& row) {
    for (std::int64_t i = 0; i < row.size; ++i) units_.put(row.cell[i], before_[i]);
}

void Scales::step(const Row& row, const double* slopes, double psi, double kappa) {
    if (s_.intercept) step_base(slopes, psi, kappa);
    step_cells(row, slopes, psi, kappa);
    add_lanes(slopes);
}

Coin::Coin(const Settings& settings, const Arrays& arrays)
    : s_(settings), cells_(arrays.cells("coin", 4)), base_(arrays.numbers("coin.intercept", 5)) {}

double Coin::own_bet() const {
    return s_.intercept ? (WEALTH + base_[2]) * base_[0] / (base_[4] * (base_[4] + base_[1])) : 0.0;
}

double Coin::bet(const Row& row, bool learns) {
    bets_.resize(static_cast<std::size_t>(row.size));
    std::vector<double> terms(static_cast<std::size_t>(row.size));
    for (std::int64_t i = 0; i < row.size; ++i) {
        const std::int64_t at = 4 * static_cast<std::int64_t>(row.cell[i]);
        if (learns) cells_.put(at + 3, std::max(cells_[at + 3], cells_.rounded(std::fabs(row.value[i]))));
        const double most_lost = cells_[at + 3] * base_[4], held = most_lost * (most_lost + cells_[at + 1]);
        bets_[i] = held > 0.0 ? (WEALTH + cells_[at + 2]) * cells_[at] / held : 0.0;
        terms[i] = bets_[i] * row.value[i];
    }
    return in_fours(terms.data(), row.size);
}

void Coin::learn(const Row& row, double row_slope) {
    const double slope = cut(row_slope, -base_[4], base_[4]), top = cells_.cut_gradient();
    for (std::int64_t i = 0; i < row.size; ++i) {
        const std::int64_t at = 4 * static_cast<std::int64_t>(row.cell[i]);
        const double g = cut(slope * row.value[i], -top, top);
        cells_.put(at, cells_[at] - g);
        cells_.put(at + 1, cells_[at + 1] + std::fabs(g));
        cells_.put(at + 2, cut(cells_[at + 2] - g * bets_[i], -top, top));
    }
    if (s_.intercept) {
        const double bet = own_bet();
        base_[2] = cut(base_[2] - slope * bet, -WIDE_CUT, WIDE_CUT);
        base_[0] -= slope;
        base_[1] += std::fabs(slope);
    }
    base_[4] = std::max(base_[4], std::fabs(row_slope));
}

}  // namespace ftprl::replay
