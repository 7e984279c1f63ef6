// The experts of a mixture: each scores a row before its label is known, and learns from it afterwards.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "replay/columns.hpp"
#include "replay/labels.hpp"
#include "replay/settings.hpp"

namespace ftprl::replay {

// What the experts see of a row before its label.
struct View {
    const double* scores;              // of each lane
    double offset, unit;               // of the labels
    double low, high;                  // their range
    double base;                       // the score of the offset
    double coin;                       // the score of the coin
    std::vector<double> inputs;        // of the Newton experts: of each lane, then the coin's
    double columns[1 + MOST_COLUMNS];  // a 1, and the values of the columns
    int used;                          // columns
};

// What they learn from it.
struct Lesson {
    const LabelState& labels;  // after the row
    double y, weight;          // of several classes y is the number of the row's column
    double unit;               // of the labels, after the row
    double low, high;          // the hull of the ranges before and after the row
};

// What the experts give each class, as logarithms and chances: numbers of the experts one after the other for each
// column of classes.
struct Softmax {
    int columns, experts;
    std::vector<double> logs, chances;

    Softmax(int C, int n) : columns(C), experts(n), logs(std::size_t(C) * n), chances(std::size_t(C) * n) {}

    double& log_of(int c, int j) { return logs[std::size_t(c) * experts + j]; }
    double& chance_of(int c, int j) { return chances[std::size_t(c) * experts + j]; }
    // One expert from its scores; a column counts for as many classes as it stands for.
    void set(int j, const double* scores, const std::vector<double>& copies);
    // The most probable of the classes that are known, the first of equals; NaN before there is one.
    double predicted(const double* w, int known);
};

class Expert {
public:
    virtual ~Expert() = default;
    // The score of the row, or of each column of classes.
    virtual void score(const View& view, double* out) = 0;
    // With several classes `p` are the chances that it gave them.
    virtual void learn(const View&, const Lesson&, const double* /*p*/) {}
    // What columns that leave, move or join change.
    virtual std::vector<Regression> followers() const { return {}; }
};

// All experts that settings name: the scales, the Newton experts, the offset and the coin.
std::vector<std::unique_ptr<Expert>> make_experts(const Settings& settings, const Arrays& arrays);

}  // namespace ftprl::replay
