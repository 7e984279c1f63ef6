#include "learners/labels.hpp"

#include <cmath>

namespace ftprl {
namespace {

constexpr double LOG_RANGE = 8.0;  // scores of counts reach this far below the offset

double above(double v, double floor) { return floor > v ? floor : v; }
double below(double v, double ceiling) { return ceiling < v ? ceiling : v; }

void learn_moments(LabelState& s, double y, double c) {
    const bool first = s.rows == 0.0;
    s.rows += 1.0;
    s.weight += c;
    const double d = y - s.mean;
    s.mean += (c / s.weight) * d;
    s.squares += c * d * (y - s.mean);
    s.least = first ? y : below(s.least, y);
    s.most = first ? y : above(s.most, y);
}

// The running quantile of the baseline, and the mean distance from it.
void learn_quantile(LabelState& s, double tau, double y, double c) {
    if (s.rows == 1.0) {
        s.quantile = y;
        return;
    }
    s.since += c;
    const double d = y - s.quantile, part = c / s.since;
    s.pinball += part * ((d > 0.0 ? tau : tau - 1.0) * d - s.pinball);
    s.deviation += part * (std::fabs(d) - s.deviation);
    const double side = d > 0.0 ? tau : (d < 0.0 ? tau - 1.0 : 0.0);
    const double step = (2.0 * s.pinball / (tau * (1.0 - tau))) * (c / s.weight) * side;
    s.quantile = below(above(s.quantile + step, s.least), s.most);
}

void follow_counts(LabelState& s) {
    s.offset = s.mean > 0.0 ? std::log(s.mean) : -std::log(s.rows + 1.0);
    s.unit = s.mean;
    s.lowest = s.offset - LOG_RANGE;
    s.highest = s.most > 0.0 ? above(s.offset, std::log(s.most)) : s.offset;
}

}  // namespace

LabelState no_labels(const Loss& loss) {
    LabelState state = {};
    state.psi = state.kappa = 1.0;
    if (loss.rule == LabelRule::classes) {
        state.unit = 1.0;
        state.lowest = -1.0;
        state.highest = 1.0;
    }
    return state;
}

void learn_label(LabelState& s, const Loss& loss, double tau, double y, double c) {
    learn_moments(s, y, c);
    switch (loss.rule) {
        case LabelRule::none:
        case LabelRule::classes:
            return;
        case LabelRule::mean:
            s.offset = s.mean;
            s.unit = s.psi = std::sqrt(above(s.squares / s.weight, 0.0));
            break;
        case LabelRule::quantile:
            learn_quantile(s, tau, y, c);
            s.offset = s.quantile;
            s.unit = s.kappa = s.deviation;
            break;
        case LabelRule::median_of_unit:
            learn_quantile(s, 0.5, y, c);
            s.offset = s.quantile;
            s.unit = s.deviation;
            s.psi = below(1.0, s.unit);
            s.kappa = above(1.0, s.unit);
            break;
        case LabelRule::log_mean:
            return follow_counts(s);
        case LabelRule::log_ratio:
            s.offset = std::log(s.mean);
            s.unit = 1.0;
            s.lowest = std::log(s.least);
            s.highest = std::log(s.most);
            return;
    }
    s.lowest = s.least;
    s.highest = s.most;
}

}  // namespace ftprl
