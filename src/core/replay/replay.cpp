#include "replay/replay.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ftprl::replay {
namespace {

constexpr double NARROW_CUT = 0x1p96, WIDE_CUT = 0x1p400;
constexpr double LARGEST_FLOAT = 3.4028234663852886e38, SMALLEST_NORMAL_FLOAT = 0x1p-126;
constexpr double WEALTH = 0.3, COLUMN_PART = 0.625;
constexpr std::int64_t FIRST_WATCHED = 8;

// The bet of the coin's intercept, a coordinate of value 1.
double own_bet(const double* base) { return (WEALTH + base[2]) * base[0] / (base[4] * (base[4] + base[1])); }

// The log odds of the labels so far, with half a row of each class before them: 0 unless labels are counted.
double label_odds(const double* base) {
    const double half = 0.5 * base[4];
    return std::log((base[6] + half) / (base[5] + half));
}

template <class T>
constexpr double most_of() {
    return sizeof(T) == sizeof(float) ? LARGEST_FLOAT : LARGEST;
}

template <class T>
constexpr double cut_of() {
    return sizeof(T) == sizeof(float) ? NARROW_CUT : WIDE_CUT;
}

template <class T>
T& at(void* array, std::int64_t i) {
    return static_cast<T*>(array)[i];
}

void add_calibration(double* bins, double value, double y, double weight) {
    const double chance = std::exp(-value), p = y > 0.0 ? chance : 1.0 - chance;
    double* bin = bins + 3 * std::min(static_cast<int>(p * 20.0), 19);
    bin[0] += weight;
    bin[1] += weight * p;
    bin[2] += y > 0.0 ? weight : 0.0;
}

}  // namespace

Learner::Learner(Settings settings, Cells cells, Totals totals, LabelState* labels, MixtureState mixture,
                 CoinState coin, ColumnState columns)
    : s_(std::move(settings)),
      cells_(cells),
      totals_(totals),
      labels_(labels),
      mixture_(mixture),
      coin_(coin),
      columns_(columns),
      several_(s_.count() > 1),
      unconstrained_(s_.unconstrained() && cells_.lower == nullptr) {
    const auto lanes = static_cast<std::size_t>(s_.lanes());
    for (auto* part : {&scores_, &reach_, &slopes_, &base_}) part->resize(lanes);
    for (auto* part : {&own_, &lane_sums_}) part->resize(SUMS * lanes);
}

// 1 / Q without kappa: h / (unit (beta unit + R)), and 0 where nothing was met.
double Learner::rate(double h, double R, double unit) const {
    const double held = unit * (s_.beta * unit + R);
    return held > 0.0 ? std::min(h / held, LARGEST) : 0.0;
}

// 1 / (Q + l2 unit^2)
double Learner::rate_with(double rate, double h, double kappa, double unit, bool free) const {
    const double own = rate * kappa;
    if (free || unconstrained_) return own;
    const double finite = std::min(own, LARGEST);
    const double l2 = h * s_.l2 / h;  // as it is rounded where h Q is what is kept
    return finite / (1.0 + finite * (l2 * (unit * unit)));
}

// What h Q / unit grows by.
double Learner::rise(double R, double now, double unit, double kappa, double new_kappa) const {
    if (!s_.loss->kinked) return now - R;
    const double own = kappa > 0.0 ? 1.0 / kappa : 0.0;
    return (s_.beta * unit + now) * (1.0 / new_kappa) - (s_.beta * unit + R) * own;
}

// The units of the row's features, this row included.
template <class T>
void Learner::raise(const Row& row) {
    for (std::int64_t i = 0; i < row.size; ++i) {
        const std::int64_t p = row.cell[i];
        const double a = std::fabs(row.value[i]);
        T& stored = at<T>(cells_.unit, p);
        double unit = static_cast<double>(stored);
        before_[i] = unit;
        if (!s_.counts_rows()) {
            unit = std::max(unit, static_cast<double>(static_cast<T>(a)));
        } else {
            T& rows = at<T>(cells_.rows, p);
            rows = static_cast<T>(static_cast<double>(rows) + 1.0);
            if (a > unit) {
                const double step = (a * a - unit * unit) / static_cast<double>(rows);
                const double mean = std::sqrt(std::max(unit * unit + step, 0.0));
                unit = static_cast<double>(static_cast<T>(std::max(std::max(unit, mean), a / 16.0)));
            }
        }
        stored = static_cast<T>(unit);
        unit_[i] = unit;
        kappa_[i] = s_.loss->kinked ? static_cast<double>(at<T>(cells_.kappa, p)) : 1.0;
    }
}

// The units of the row's features as they are.
template <class T>
void Learner::look_up(const Row& row) {
    for (std::int64_t i = 0; i < row.size; ++i) {
        unit_[i] = static_cast<double>(at<T>(cells_.unit, row.cell[i]));
        kappa_[i] = s_.loss->kinked ? static_cast<double>(at<T>(cells_.kappa, row.cell[i])) : 1.0;
    }
}

// The weight of each entry and lane, and the intercept's.
template <class T>
void Learner::play_cells(const Row& row) {
    const int lanes = s_.lanes();
    for (std::int64_t i = 0; i < row.size; ++i) {
        const double unit = unit_[i];
        const double low = cells_.lower == nullptr ? s_.lower : cells_.lower[row.cell[i]];
        const double high = cells_.upper == nullptr ? s_.upper : cells_.upper[row.cell[i]];
        for (int lane = 0; lane < lanes; ++lane) {
            const std::int64_t c = static_cast<std::int64_t>(row.cell[i]) * lanes + lane;
            const double z = static_cast<double>(at<T>(cells_.z, c)), R = static_cast<double>(at<T>(cells_.R, c));
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
        const double *own = totals_.base + lane, z = own[0], R = own[lanes], h = s_.scale_of(lane);
        const double held = 1.0 * (s_.beta * 1.0 + R);
        base_[lane] = s_.labelled() ? -(z * rate(h, R, 1.0)) * own[3 * lanes] : (held > 0.0 ? z * -h / held : 0.0);
    }
}

// The sum of a row's terms: in order with several classes, and otherwise in fours.
double Learner::together(const double* terms, std::int64_t count) const {
    if (!s_.loss->has_classes()) return in_fours(terms, count);
    double sum = 0.0;
    for (std::int64_t i = 0; i < count; ++i) sum += terms[i];
    return sum;
}

void Learner::play(const Row& row, double offset, bool learns) {
    const int lanes = s_.lanes();
    const auto size = static_cast<std::size_t>(row.size);
    if (unit_.size() < size) {
        for (auto* part : {&unit_, &before_, &kappa_}) part->resize(size);
    }
    if (x_.size() < size * lanes) {
        x_.resize(size * lanes);
        terms_.resize(size * SUMS);
    }
    if (learns) {
        s_.wide ? raise<double>(row) : raise<float>(row);
    } else {
        s_.wide ? look_up<double>(row) : look_up<float>(row);
    }
    s_.wide ? play_cells<double>(row) : play_cells<float>(row);
    for (int lane = 0; lane < lanes; ++lane) {
        for (std::int64_t i = 0; i < row.size; ++i) terms_[i] = x_[lane * row.size + i] * row.value[i];
        double score = together(terms_.data(), row.size);
        if (s_.labelled()) score = score + offset;
        scores_[lane] = s_.intercept ? score + base_[lane] : score;
        if (!s_.labelled()) continue;
        for (std::int64_t i = 0; i < row.size; ++i) {
            const std::int64_t c = static_cast<std::int64_t>(row.cell[i]) * lanes + lane;
            const double R = s_.wide ? at<double>(cells_.R, c) : static_cast<double>(at<float>(cells_.R, c));
            terms_[i] = (row.value[i] * row.value[i]) * rate(s_.scale_of(lane), R, unit_[i]);
        }
        reach_[lane] = together(terms_.data(), row.size);
        if (s_.intercept) reach_[lane] += rate(s_.scale_of(lane), totals_.base[lanes + lane], 1.0);
    }
}

// What a step adds to the sums: docs/receipt.md. `held` is h (Q + l2), `rate` 1 / (Q + l2) with labels in any unit.
void Learner::add_terms(int lane, std::int64_t entry, double h, double held, double rate, double g, double x,
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

template <class T>
void Learner::step_cells(const Row& row, const double* slopes, double psi, double kappa) {
    const int lanes = s_.lanes();
    const double top = cut_of<T>(), most = most_of<T>(), new_kappa = static_cast<double>(static_cast<T>(kappa));
    const bool narrow = sizeof(T) == sizeof(float);
    for (int lane = 0; lane < lanes; ++lane) {
        const double h = s_.scale_of(lane), inverse_h = 1.0 / h;
        for (std::int64_t i = 0; i < row.size; ++i) {
            const std::int64_t c = static_cast<std::int64_t>(row.cell[i]) * lanes + lane;
            const double z = static_cast<double>(at<T>(cells_.z, c)), R = static_cast<double>(at<T>(cells_.R, c));
            const double unit = unit_[i], x = x_[lane * row.size + i];
            const double g = cut(slopes[lane] * row.value[i], -top, top);
            const double counted = s_.labelled() ? cut(g * (1.0 / psi), -top, top) : g;
            const double now = std::max(static_cast<double>(static_cast<T>(std::sqrt(R * R + counted * counted))), R);
            const double sigma = unit * rise(R, now, unit, kappa_[i], new_kappa) * inverse_h;
            const double moved = z + (g - sigma * x);
            const bool clamped = s_.labelled() || !unconstrained_;
            const T kept = static_cast<T>(clamped ? cut(moved, -most, most) : moved);
            at<T>(cells_.z, c) = kept;
            at<T>(cells_.R, c) = static_cast<T>(now);
            cells_.S[c] += g;
            double held = 0.0, own = 0.0;
            if (s_.labelled()) {
                own = rate_with(rate(h, now, unit), h, new_kappa, unit, false);
            } else {
                held = unit * (s_.beta * unit + now);
                if (!unconstrained_) held += h * s_.l2 * (unit * unit);
            }
            const bool met = row.value[i] != 0.0;
            add_terms(lane, i, h, held, own, g, x, sigma, z, moved, static_cast<double>(kept), narrow, met);
        }
        sum_up(lane, row.size);
    }
    for (std::int64_t i = 0; s_.labelled() && i < row.size; ++i)
        at<T>(cells_.kappa, row.cell[i]) = static_cast<T>(kappa);
}

void Learner::sum_up(int lane, std::int64_t entries) {
    for (int j = 0; j < SUMS; ++j) {
        const double whole = together(terms_.data() + j * terms_.size() / SUMS, entries);
        lane_sums_[j * s_.lanes() + lane] = s_.intercept ? whole + own_[j * s_.lanes() + lane] : whole;
    }
}

// Add the sums of a row over all columns of classes, each as often as there are classes that it stands for.
void Learner::add_lanes() {
    const int K = s_.count();
    for (int k = 0; k < K; ++k) {
        for (int j = 0; j < SUMS; ++j) {
            double whole = 0.0;
            for (int c = 0; c < s_.columns(); ++c) whole += s_.copies[c] * lane_sums_[j * s_.lanes() + c * K + k];
            totals_.sums[j * K + k] += whole;
        }
        double slopes = 0.0;
        for (int c = 0; c < s_.columns(); ++c) slopes += s_.copies[c] * std::fabs(slopes_[c * K + k]);
        totals_.slopes[k] += slopes;
    }
}

void Learner::step_base(const double* slopes, double psi, double kappa) {
    const int lanes = s_.lanes();
    for (int lane = 0; lane < lanes; ++lane) {
        double *z = totals_.base + lane, *R = z + lanes, *S = R + lanes, *own_kappa = S + lanes;
        const double h = s_.scale_of(lane), x = base_[lane];
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

void Learner::step(const Row& row, const double* slopes, double psi, double kappa) {
    if (s_.intercept) step_base(slopes, psi, kappa);
    s_.wide ? step_cells<double>(row, slopes, psi, kappa) : step_cells<float>(row, slopes, psi, kappa);
    add_lanes();
}

// The coin's score; the bets of the row are left in bets_.
template <class T>
double Learner::coin_score(const Row& row, bool learns) {
    bets_.resize(static_cast<std::size_t>(row.size));
    const double bound = coin_.base[4];
    for (std::int64_t i = 0; i < row.size; ++i) {
        T* own = static_cast<T*>(coin_.cells) + 4 * static_cast<std::int64_t>(row.cell[i]);
        if (learns) own[3] = std::max(own[3], static_cast<T>(std::fabs(row.value[i])));
        const double theta = own[0], sizes = own[1], won = own[2], most_lost = static_cast<double>(own[3]) * bound;
        const double held = most_lost * (most_lost + sizes);
        bets_[i] = held > 0.0 ? (WEALTH + won) * theta / held : 0.0;
        terms_[i] = bets_[i] * row.value[i];
    }
    const double total = in_fours(terms_.data(), row.size);
    return s_.intercept ? total + (own_bet(coin_.base) + label_odds(coin_.base)) : total;
}

template <class T>
void Learner::learn_coin(const Row& row, double row_slope) {
    double* base = coin_.base;
    const double slope = cut(row_slope, -base[4], base[4]), top = cut_of<T>();
    for (std::int64_t i = 0; i < row.size; ++i) {
        T* own = static_cast<T*>(coin_.cells) + 4 * static_cast<std::int64_t>(row.cell[i]);
        const double g = cut(slope * row.value[i], -top, top);
        own[0] = static_cast<T>(static_cast<double>(own[0]) - g);
        own[1] = static_cast<T>(static_cast<double>(own[1]) + std::fabs(g));
        own[2] = static_cast<T>(cut(static_cast<double>(own[2]) - g * bets_[i], -top, top));
    }
    if (s_.intercept) {
        const double bet = own_bet(base);
        base[2] = cut(base[2] - slope * bet, -cut_of<double>(), cut_of<double>());
        base[0] -= slope;
        base[1] += std::fabs(slope);
    }
    base[4] = std::max(base[4], std::fabs(row_slope));
}

template <class T>
void Learner::review_columns(const Row& row, std::int64_t t) {
    if (t < FIRST_WATCHED || (t & (t - 1)) != 0) return;
    settle_columns(columns_, mixture_, s_.loss->has_classes() ? 0 : s_.count());
    const int active = columns_.active();
    int count = active;
    for (std::int64_t i = 0; i < row.size && count < MOST_COLUMNS; ++i) {
        const double seen = static_cast<double>(at<T>(cells_.rows, row.cell[i]));
        bool new_one = seen >= COLUMN_PART * static_cast<double>(t) && std::fabs(row.value[i]) != unit_[i];
        for (int j = 0; j < active; ++j)
            new_one = new_one && columns_.columns[j * COLUMN_FACTS] != static_cast<double>(row.cell[i]);
        if (!new_one) continue;
        double* column = columns_.columns + COLUMN_FACTS * count++;
        std::fill(column, column + COLUMN_FACTS, 0.0);
        column[0] = static_cast<double>(row.cell[i]);
    }
    columns_.counts[1] = count - active;
}

// The loss of the prediction, and the slopes of a row of weight 1; false where the row teaches nothing but its label.
bool Learner::learn_labelled(const Row& row, RowExperts& x, double& prediction, double& value) {
    LabelState& state = *labels_;
    prediction = cut(scores_[0], state.low, state.high);
    const LabelledRow own = several_ ? learn_label_mixture(s_, mixture_, state, scores_.data(), x, row.y, row.weight,
                                                           totals_.tallies[2], prediction)
                                     : learn_label(s_, state, row.y, row.weight);
    value = loss_value(s_, prediction, row.y);
    for (int k = 0; k < s_.count(); ++k) {
        const double A = row.weight * state.kappa * reach_[k];
        slopes_[k] = own.teaches ? implicit_slope(s_, state, start_of(s_, own, scores_[k]), own.learned, A) : 0.0;
        add_row_sums(s_, state, own, row.y, row.weight, scores_[k], slopes_[k], prediction, value, totals_.row_sums + k,
                     s_.count());
    }
    return own.teaches;
}

RowExperts Learner::experts_of(const Row& row, bool learns) {
    RowExperts x{columns_, 0.0, 0.0, {}};
    if (coin_.cells != nullptr) x.bet = s_.wide ? coin_score<double>(row, learns) : coin_score<float>(row, learns);
    if (columns_.counts != nullptr) read_columns(columns_, row, x.inputs, learns);
    return x;
}

double Learner::score(const Row& row, double& prediction) {
    play(row, labels_->offset, false);
    const RowExperts x = experts_of(row, false);
    if (s_.loss->has_classes()) return score_classes(s_, mixture_, scores_.data(), x, row.y, prediction);
    if (!s_.labelled())
        return several_ ? score_mixture(s_, mixture_, scores_.data(), x, row.y) : loss_value(s_, scores_[0], row.y);
    prediction = several_ ? predict_label(s_, mixture_, *labels_, scores_.data(), x)
                          : cut(scores_[0], labels_->low, labels_->high);
    return loss_value(s_, prediction, row.y);
}

double Learner::learn(const Row& row, double& prediction) {
    play(row, labels_->offset, true);
    const bool coin = coin_.cells != nullptr, dense = columns_.counts != nullptr;
    RowExperts x = experts_of(row, true);
    totals_.tallies[2] += 1.0;
    double value = 0.0;
    bool teaches = true;
    const auto t = static_cast<std::int64_t>(totals_.tallies[2]);
    if (s_.labelled()) {
        teaches = learn_labelled(row, x, prediction, value);
    } else if (s_.loss->has_classes()) {
        value = learn_classes(s_, mixture_, scores_.data(), x, row, t, slopes_.data(), prediction);
        s_.known_before = s_.known;
    } else {
        value = several_ ? learn_mixture(s_, mixture_, scores_.data(), x, row.y, row.weight, totals_.tallies[2])
                         : loss_value(s_, scores_[0], row.y);
        for (int k = 0; k < s_.count(); ++k) slopes_[k] = log_slope(scores_[k], row.y);
        if (coin && s_.intercept) coin_.base[row.y > 0.0 ? 6 : 5] += row.weight;
    }
    if (teaches) {
        for (double& slope : slopes_) slope *= row.weight;
        step(row, slopes_.data(), labels_->psi, labels_->kappa);
    } else if (!several_) {  // one scale: such a row leaves its cells alone
        for (std::int64_t i = 0; i < row.size; ++i) {
            if (s_.wide) at<double>(cells_.unit, row.cell[i]) = before_[i];
            if (!s_.wide) at<float>(cells_.unit, row.cell[i]) = static_cast<float>(before_[i]);
        }
    }
    if (coin) s_.wide ? learn_coin<double>(row, x.slope) : learn_coin<float>(row, x.slope);
    if (dense) s_.wide ? review_columns<double>(row, t) : review_columns<float>(row, t);
    totals_.tallies[0] += row.weight * value;
    totals_.tallies[1] += row.weight;
    if (totals_.calibration != nullptr) add_calibration(totals_.calibration, value, row.y, row.weight);
    return value;
}

}  // namespace ftprl::replay
