// The Newton experts of a learner: who they are, their numbers, and what stays of these when scales, columns, the coin
// or an expert go.
#pragma once

#include <string>
#include <vector>

#include "learn/classes.hpp"
#include "learn/columns.hpp"
#include "learn/mixture.hpp"

namespace ftprl {

// An array of a learner by name: a vector of `columns` numbers when `rows` is 0, otherwise rows that begin `stride`
// apart; with `blocks`, so many matrices that begin `block_stride` apart.
struct NamedArray {
    std::string name;
    double* data;
    int rows;
    int columns;
    int stride;
    int blocks = 0;
    int block_stride = 0;
};

class Newtons {
public:
    // `classes`: their columns, or 0 where a row has one score.
    Newtons(int scales, bool coin, bool columns, int classes);

    // As the loops see them; `states` lives as long as this object does not change.
    int fill(Newton* states) const;
    const ClassNewtons* of_classes() const { return classes_ > 0 ? &class_view_ : nullptr; }
    bool sees_columns() const;
    // After a copy: where the numbers of classes are now.
    void point();
    std::size_t count() const { return experts_.size(); }
    const NewtonKind& kind(std::size_t i) const { return *experts_[i].kind; }

    void change(const std::vector<ColumnChange>& changes);
    void keep_scales(int first, int count);
    void drop_coin();
    void drop(const std::string& name);
    // New columns of classes are copies of the last one.
    void know_classes(int columns);
    // Fill in what the loops leave out of symmetric matrices: after rows were learned, before they are read.
    void mirror(int used);
    void add_arrays(std::vector<NamedArray>& arrays, bool kinked, int used);

private:
    struct Expert {
        const NewtonKind* kind;
        std::vector<double> u, P;
        double loss[2];
    };

    int scores_of(const NewtonKind& kind) const { return scales_ + (coin_ && kind.coin ? 1 : 0); }
    int inputs_of(const NewtonKind& kind) const;
    void drop_inputs(int from, int count);
    void change_weights(const ColumnChange& change, double* u, double* P, int stride, int constant) const;

    int scales_, classes_;
    bool coin_;
    std::vector<Expert> experts_;
    std::vector<double> W_, Q_, bias_, variance_;
    ClassNewtons class_view_ = {};
};

}  // namespace ftprl
