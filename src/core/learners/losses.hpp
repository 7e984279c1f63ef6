// The losses of a score: one entry each, the same formulas in the same order as src/ftprl/losses.py.
#pragma once

#include <cstddef>

namespace ftprl {

// The loss of a row and its slope in the score, without the tail below.
struct LossAtScore {
    double value;
    double slope;
};

// The loss is value + log(1 + tail). No step waits for the logarithm, which is slow: take it later, with `total_loss`.
using LossFunction = LossAtScore (*)(double score, double y, double tau, double& tail);

double total_loss(double value, double tail);

enum class Labels { signs, nonnegative, positive, numbers };  // -1 and 1; y >= 0; y > 0; any y
enum class Mixing { log_loss, squared, hedge };               // how the predictions of several scales are combined

// What predicts a label from those before it alone, for a yardstick: baseline.hpp.
enum class BaselineKind { base_rate, mean, log_mean, median, quantile, majority };
const char* name_of(BaselineKind kind);

struct Loss {
    const char* name;
    LossFunction at;
    Labels labels;
    Mixing mixing;
    double clip;  // scores are mixed within [-clip, clip]; infinite for most losses
    BaselineKind baseline;
};

extern const Loss LOSSES[];
extern const std::size_t LOSS_COUNT;

// Nothing (nullptr) for a name that is not known.
const Loss* loss_named(const char* name);

}  // namespace ftprl
