// What the experts give each class: docs/classes.md.
#pragma once

#include <cstddef>
#include <vector>

namespace ftprl::replay {

// Logarithms and chances: numbers of the experts one after the other for each column of classes.
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

}  // namespace ftprl::replay
