#include "replay/baseline.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace ftprl::replay {

Baseline::Baseline(const std::string& kind, const Loss* loss, double tau, int classes)
    : kind_(kind_named(kind)),
      loss_(loss),
      tau_(tau),
      follows_(kind == "quantile" ? tau : 0.5),
      classes_(static_cast<std::size_t>(classes), 0.0) {}

Baseline::Kind Baseline::kind_named(const std::string& name) {
    if (name == "base_rate") return Kind::base_rate;
    if (name == "majority") return Kind::majority;
    if (name == "mean") return Kind::mean;
    if (name == "log_mean") return Kind::log_mean;
    if (name == "median" || name == "quantile") return Kind::quantile;
    if (name == "class_rates") return Kind::class_rates;
    throw std::invalid_argument("baseline is not known: " + name);
}

double Baseline::learn(double y, double weight) {
    const double own = score(y, weight), value = loss_ == nullptr ? -own : loss_->value(own, y, tau_);
    total_ += weight * value;
    least_ += weight * least_of(y);
    rows_ += 1.0;
    return value;
}

double Baseline::least_of(double y) const {
    return kind_ == Kind::log_mean && y > 0.0 ? loss_->value(std::log(y), y, tau_) : 0.0;
}

double Baseline::score(double y, double weight) {
    if (kind_ == Kind::class_rates) return log_share(static_cast<std::size_t>(y), weight);
    if (kind_ == Kind::quantile) return follow_quantile(y, weight);
    const double n = weight_, positive = positive_, mean = n > 0.0 ? sum_ / n : 0.0;
    weight_ += weight;
    sum_ += weight * y;
    if (y > 0.0) positive_ += weight;
    if (kind_ == Kind::base_rate) return std::log((positive + 0.5) / (n - positive + 0.5));
    if (kind_ == Kind::majority) {
        const double lead = positive - (n - positive);
        return static_cast<double>(lead > 0.0) - static_cast<double>(lead < 0.0);
    }
    if (kind_ == Kind::mean) return mean;
    return mean > 0.0 ? std::log(mean) : -std::log(rows_ + 1.0);
}

// The running quantile before a label, and one step towards that.
double Baseline::follow_quantile(double y, double weight) {
    const double before = quantile_;
    weight_ += weight;
    if (weight_ == weight) {
        quantile_ = low_ = high_ = y;
        return before;
    }
    low_ = std::min(low_, y);
    high_ = std::max(high_, y);
    since_ += weight;
    const double d = y - before, side = d > 0.0 ? follows_ : (d < 0.0 ? follows_ - 1.0 : 0.0);
    pinball_ += (weight / since_) * (std::max(follows_ * d, (follows_ - 1.0) * d) - pinball_);
    const double step = 2.0 * pinball_ / (follows_ * (1.0 - follows_)) * (weight / weight_);
    quantile_ = std::min(std::max(before + step * side, low_), high_);
    return before;
}

// The logarithm of the share of a class among those met, or of what is left for each of the others.
double Baseline::log_share(std::size_t y, double weight) {
    const auto most = static_cast<std::int64_t>(classes_.size());
    const auto met = static_cast<std::int64_t>(most - std::count(classes_.begin(), classes_.end(), 0.0));
    const double own = classes_[y], total = weight_ + 0.5 * static_cast<double>(met + (met < most ? 1 : 0));
    classes_[y] += weight;
    weight_ += weight;
    return std::log(own > 0.0 ? (own + 0.5) / total : 0.5 / total / static_cast<double>(most - met));
}

}  // namespace ftprl::replay
