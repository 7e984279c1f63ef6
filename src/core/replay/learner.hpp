// The second learner: a row from its prediction to the last expert that learns from it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "replay/cells.hpp"
#include "replay/experts.hpp"
#include "replay/mixture.hpp"

namespace ftprl::replay {

class Learner {
public:
    Learner(Settings settings, const Arrays& arrays);

    // One row, all of it; returns the loss of the prediction, and unless the loss is the log loss the prediction.
    double learn(const Row& row, double& prediction);
    // Predict a row and learn nothing from it; returns what `learn` does. Cells that were not met have number 0.
    double score(const Row& row, double& prediction);

    // What the scores of the next row are counted from.
    double offset() const { return labels_->offset; }
    // What the weight of the latest row is multiplied by, where losses are divided by the unit of the labels.
    double share() const {
        if (!s_.loss->divides_rows()) return 1.0;
        return labels_->unit > 0.0 ? 1.0 / labels_->unit : 0.0;
    }

private:
    View see(const Row& row, bool learns);
    Opinions opinions_of(const View& view, double y);
    Softmax classes_of(View& view);
    Opinions of_class(Softmax& own, int y) const;
    // The loss of the prediction; a row learns from these, and the slopes of a row of weight 1 are left in slopes_.
    double learn_logistic(const Row& row, const View& view);
    double learn_classes(const Row& row, View& view, double& prediction);
    double learn_labelled(const Row& row, const View& view, double& prediction, bool& teaches);

    Settings s_;
    Scales scales_;
    LabelState* labels_;
    LabelOdds* odds_ = nullptr;
    double *tallies_, *row_sums_, *calibration_;  // loss, weight, rows; ROW_SUMS of each scale; 20 bins
    std::vector<std::unique_ptr<Expert>> experts_;
    std::unique_ptr<Mixture> mixture_;  // null with one scale
    std::unique_ptr<Coin> coin_;
    std::unique_ptr<Columns> columns_;
    std::vector<double> slopes_;  // of each lane
    double coin_slope_ = 0.0;
};

}  // namespace ftprl::replay
