#include "measure/residuals.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ftprl {
namespace {

// No number times 1 / width overflows, and no smaller difference of predictions is of interest.
constexpr double LEAST_WIDTH = 0x1p-800, LARGEST_SCORE = 0x1p200;
constexpr int SHIFT = 52 - 4;  // the exponent and the first four bits of the fraction are the number of a bin

double bin_number(double size) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &size, sizeof bits);
    return static_cast<double>(bits >> SHIFT);
}

void shift_down(double* bins, std::int64_t by, double& out) {
    for (std::int64_t i = RESIDUAL_BINS - 1; i >= 0; --i) {
        const std::int64_t to = i + by;
        if (to >= RESIDUAL_BINS) {
            out += bins[i];
        } else {
            bins[to] = bins[i];
        }
        bins[i] = 0.0;
    }
}

}  // namespace

void Residuals::add(const double* score, const double* prediction, const double* y, const double* weight,
                    std::int64_t count) {
    ResidualState& s = state_;
    for (std::int64_t r = 0; r < count; ++r) {
        if (!(std::fabs(score[r]) <= LARGEST_SCORE)) continue;  // no number, since another thread wrote the array
        const double residual = y[r] - prediction[r], w = weight[r], d = y[r] - s.label;
        s.rows += 1.0;
        s.weight += w;
        s.absolute += w * std::fabs(residual);
        s.label += w / s.weight * d;
        s.label_squares += w * d * (y[r] - s.label);
        PredictionBin& bin = bin_of(score[r]);
        bin.weight += w;
        bin.prediction += w * prediction[r];
        bin.residual += w * residual;
        bin.squares += w * (residual * residual);
        add_residual(residual, w);
    }
}

PredictionBin& Residuals::bin_of(double score) {
    double number = std::floor(score / state_.width);  // width 0: before the first row
    if (!(number >= state_.first && number <= state_.last && state_.width > 0.0)) {
        if (state_.width == 0.0) {
            state_.width = LEAST_WIDTH;
            state_.first = state_.last = std::floor(score / LEAST_WIDTH);
        }
        make_room(score);
        number = std::floor(score / state_.width);
    }
    return state_.predictions[static_cast<int>(number - state_.first)];
}

void Residuals::make_room(double score) {
    ResidualState& s = state_;
    double number = std::floor(score / s.width);
    while (std::max(s.last, number) - std::min(s.first, number) >= PREDICTION_BINS) {
        double_width();
        number = std::floor(score / s.width);
    }
    if (number < s.first) {
        const auto by = static_cast<int>(s.first - number), used = static_cast<int>(s.last - s.first) + 1;
        std::move_backward(s.predictions, s.predictions + used, s.predictions + used + by);
        std::fill(s.predictions, s.predictions + by, PredictionBin{});
        s.first = number;
    }
    s.last = std::max(s.last, number);
}

void Residuals::double_width() {
    ResidualState& s = state_;
    const double first = std::floor(s.first / 2.0);
    const auto used = static_cast<int>(s.last - s.first) + 1;
    for (int i = 0; i < used; ++i) {
        const PredictionBin moved = s.predictions[i];
        s.predictions[i] = {};
        PredictionBin& to = s.predictions[static_cast<int>(std::floor((s.first + i) / 2.0) - first)];
        to.weight += moved.weight;
        to.prediction += moved.prediction;
        to.residual += moved.residual;
        to.squares += moved.squares;
    }
    s.last = std::floor(s.last / 2.0);
    s.first = first;
    s.width *= 2.0;
}

void Residuals::add_residual(double residual, double weight) {
    ResidualState& s = state_;
    const double number = bin_number(std::fabs(residual));
    if (number > s.top) raise_top(number);
    const double index = s.top - number;
    if (residual == 0.0 || !(index < RESIDUAL_BINS)) {
        s.near_zero += weight;
    } else {
        (residual < 0.0 ? s.below : s.above)[static_cast<int>(index)] += weight;
    }
}

void Residuals::raise_top(double number) {
    const double by = std::min(number - state_.top, static_cast<double>(RESIDUAL_BINS));
    shift_down(state_.below, static_cast<std::int64_t>(by), state_.near_zero);
    shift_down(state_.above, static_cast<std::int64_t>(by), state_.near_zero);
    state_.top = number;
}

}  // namespace ftprl
