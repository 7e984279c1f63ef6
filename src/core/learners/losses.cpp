#include "learners/losses.hpp"

#include <cmath>
#include <cstring>

namespace ftprl {
namespace {

// Ternaries, not std::max: Python's max keeps the first of two equal numbers, and so do these.
double above(double v, double floor) { return floor > v ? floor : v; }
double below(double v, double ceiling) { return ceiling < v ? ceiling : v; }
double half_square(double d) { return 0.5 * (d * d); }

Pull logistic(double s, double y, double, double& tail) {
    const double v = -y * s;
    const double e = std::exp(-std::fabs(v));  // at most 1: nothing overflows
    tail = e;
    // No branches: half of the rows would be guessed wrong. `up` is 1 for v > 0 and 0 for v < 0; at 0, e is 1 as well.
    const double up = 0.5 + std::copysign(0.5, v);
    const double top = above(e, up);
    return {0.5 * v + 0.5 * std::fabs(v), -y * (top / (1.0 + e))};
}

Pull hinge(double s, double y, double, double&) { return {above(1.0 - y * s, 0.0), y * s < 1.0 ? -y : 0.0}; }

Pull squared_hinge(double s, double y, double, double&) {
    const double miss = above(1.0 - y * s, 0.0);
    return {half_square(miss), -y * miss};
}

Pull squared(double s, double y, double, double&) { return {half_square(s - y), s - y}; }

Pull absolute(double s, double y, double, double&) {
    const double d = s - y;
    return {std::fabs(d), d > 0 ? 1.0 : (d < 0 ? -1.0 : 0.0)};
}

Pull quantile(double s, double y, double tau, double&) {
    const double value = tau * above(y - s, 0.0) + (1.0 - tau) * above(s - y, 0.0);
    return {value, s == y ? 0.0 : (s > y ? 1.0 - tau : -tau)};
}

Pull huber(double s, double y, double, double&) {
    const double d = s - y;
    const double size = std::fabs(d);
    return {size <= 1.0 ? half_square(d) : size - 0.5, below(above(d, -1.0), 1.0)};
}

Pull poisson(double s, double y, double, double&) {
    const double c = below(above(s, -60.0), 60.0);
    const double e = std::exp(c);
    return {e - y * c, e - y};
}

struct Named {
    const char* name;
    Loss loss;
    BaselineKind baseline;
};

constexpr Named TABLE[] = {{"logistic", logistic, BaselineKind::base_rate},
                           {"hinge", hinge, BaselineKind::majority},
                           {"squared_hinge", squared_hinge, BaselineKind::majority},
                           {"squared", squared, BaselineKind::mean},
                           {"absolute", absolute, BaselineKind::median},
                           {"quantile", quantile, BaselineKind::quantile},
                           {"huber", huber, BaselineKind::mean},
                           {"poisson", poisson, BaselineKind::log_mean}};

}  // namespace

double whole(double value, double tail) { return tail == 0.0 ? value : value + std::log1p(tail); }

Loss loss_named(const char* name) {
    for (const Named& row : TABLE) {
        if (std::strcmp(row.name, name) == 0) return row.loss;
    }
    return nullptr;
}

BaselineKind baseline_of(Loss loss) {
    for (const Named& row : TABLE) {
        if (row.loss == loss) return row.baseline;
    }
    return BaselineKind::mean;  // no loss is without an entry
}

const char* name_of(BaselineKind kind) {
    constexpr const char* NAMES[] = {"base_rate", "mean", "log_mean", "median", "quantile", "majority"};
    return NAMES[static_cast<int>(kind)];
}

Domain domain_of(Loss loss) {
    if (loss == logistic || loss == hinge || loss == squared_hinge) return Domain::signs;
    return loss == poisson ? Domain::counts : Domain::numbers;
}

}  // namespace ftprl
