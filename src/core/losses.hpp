// The eight losses of a score, the same formulas in the same order as src/ftprl/losses.py.
#pragma once

namespace ftprl {

// The loss of a row and its slope in the score.
struct Pull {
    double value;
    double slope;
};

using Loss = Pull (*)(double score, double y, double tau);

// Nothing (nullptr) for a name that is not known.
Loss loss_named(const char* name);

// Whether a loss wants labels -1 and 1.
bool wants_signs(Loss loss);

}  // namespace ftprl
