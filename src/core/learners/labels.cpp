#include "learners/labels.hpp"

namespace ftprl {

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

}  // namespace ftprl
