// The eight losses of a score, the same formulas in the same order as src/ftprl/losses.py.
#pragma once

namespace ftprl {

// The loss of a row and its slope in the score, without the tail below.
struct Pull {
    double value;
    double slope;
};

// The loss is value + log(1 + tail). No step waits for the logarithm, which is slow: take it later, with `whole`.
using Loss = Pull (*)(double score, double y, double tau, double& tail);

double whole(double value, double tail);

// Nothing (nullptr) for a name that is not known.
Loss loss_named(const char* name);

// Which labels a loss takes: -1 and 1, numbers of at least 0, or any numbers.
enum class Domain { signs, counts, numbers };
Domain domain_of(Loss loss);

// What predicts a label from those before it alone, for a yardstick: baseline.hpp.
enum class BaselineKind { base_rate, mean, log_mean, median, quantile, majority };
BaselineKind baseline_of(Loss loss);
const char* name_of(BaselineKind kind);

}  // namespace ftprl
