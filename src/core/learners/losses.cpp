#include "learners/losses.hpp"

#include <cmath>
#include <cstring>
#include <limits>

namespace ftprl {
namespace {

// Ternaries, not std::max: Python's max keeps the first of two equal numbers, and so do these.
double above(double v, double floor) { return floor > v ? floor : v; }
double below(double v, double ceiling) { return ceiling < v ? ceiling : v; }
double half_square(double d) { return 0.5 * (d * d); }

LossAtScore logistic(double s, double y, double, double& tail) {
    const double v = -y * s;
    const double e = std::exp(-std::fabs(v));  // at most 1: nothing overflows
    tail = e;
    // No branches: half of the rows would be guessed wrong. `up` is 1 for v > 0 and 0 for v < 0; at 0, e is 1 as well.
    const double up = 0.5 + std::copysign(0.5, v);
    const double top = above(e, up);
    return {0.5 * v + 0.5 * std::fabs(v), -y * (top / (1.0 + e))};
}

LossAtScore hinge(double s, double y, double, double&) { return {above(1.0 - y * s, 0.0), y * s < 1.0 ? -y : 0.0}; }

LossAtScore squared_hinge(double s, double y, double, double&) {
    const double miss = above(1.0 - y * s, 0.0);
    return {half_square(miss), -y * miss};
}

LossAtScore squared(double s, double y, double, double&) { return {half_square(s - y), s - y}; }

LossAtScore absolute(double s, double y, double, double&) {
    const double d = s - y;
    return {std::fabs(d), d > 0 ? 1.0 : (d < 0 ? -1.0 : 0.0)};
}

LossAtScore quantile(double s, double y, double tau, double&) {
    const double value = tau * above(y - s, 0.0) + (1.0 - tau) * above(s - y, 0.0);
    return {value, s == y ? 0.0 : (s > y ? 1.0 - tau : -tau)};
}

LossAtScore huber(double s, double y, double, double&) {
    const double d = s - y;
    const double size = std::fabs(d);
    return {size <= 1.0 ? half_square(d) : size - 0.5, below(above(d, -1.0), 1.0)};
}

constexpr double CLAMP = 60.0;  // of scores with a log link, whose mean is e^score

LossAtScore poisson(double s, double y, double, double&) {
    const double c = below(above(s, -CLAMP), CLAMP);
    const double e = std::exp(c);
    return {e - y * c, e - y};
}

LossAtScore gamma(double s, double y, double, double&) {
    const double c = below(above(s, -CLAMP), CLAMP);
    const double ratio = y * std::exp(-c);
    return {ratio + c, 1.0 - ratio};
}

constexpr double NO_CLIP = std::numeric_limits<double>::infinity();

}  // namespace

// name, function, labels, how scales are mixed, within which scores, baseline
const Loss LOSSES[] = {
    {"logistic", logistic, Labels::signs, Mixing::log_loss, NO_CLIP, BaselineKind::base_rate},
    {"hinge", hinge, Labels::signs, Mixing::hedge, NO_CLIP, BaselineKind::majority},
    {"squared_hinge", squared_hinge, Labels::signs, Mixing::hedge, NO_CLIP, BaselineKind::majority},
    {"squared", squared, Labels::numbers, Mixing::squared, NO_CLIP, BaselineKind::mean},
    {"absolute", absolute, Labels::numbers, Mixing::hedge, NO_CLIP, BaselineKind::median},
    {"quantile", quantile, Labels::numbers, Mixing::hedge, NO_CLIP, BaselineKind::quantile},
    {"huber", huber, Labels::numbers, Mixing::hedge, NO_CLIP, BaselineKind::mean},
    {"poisson", poisson, Labels::nonnegative, Mixing::hedge, CLAMP, BaselineKind::log_mean},
    {"gamma", gamma, Labels::positive, Mixing::hedge, CLAMP, BaselineKind::log_mean},
};
const std::size_t LOSS_COUNT = sizeof LOSSES / sizeof *LOSSES;

double total_loss(double value, double tail) { return tail == 0.0 ? value : value + std::log1p(tail); }

const Loss* loss_named(const char* name) {
    for (const Loss& loss : LOSSES) {
        if (std::strcmp(loss.name, name) == 0) return &loss;
    }
    return nullptr;
}

const char* name_of(BaselineKind kind) {
    constexpr const char* NAMES[] = {"base_rate", "mean", "log_mean", "median", "quantile", "majority"};
    return NAMES[static_cast<int>(kind)];
}

}  // namespace ftprl
