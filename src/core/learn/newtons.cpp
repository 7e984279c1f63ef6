#include "learn/newtons.hpp"

#include <algorithm>

namespace ftprl {
namespace {

void set_row_and_column(double* P, int stride, int inputs, int at, double variance) {
    for (int i = 0; i < inputs; ++i) P[at * stride + i] = P[i * stride + at] = 0.0;
    P[at * stride + at] = variance;
}

// The loops keep what is on the diagonal of four by four numbers, or right of it.
void mirror_one(double* P, int stride, int inputs) {
    for (int i = 0; i < inputs; ++i) {
        for (int j = i + 1; j < inputs; ++j) P[j * stride + i] = P[i * stride + j];
    }
}

// Remove inputs [at, at + count) of `inputs` from a matrix and its vector.
void remove(double* u, double* P, int stride, int inputs, int at, int count) {
    mirror_one(P, stride, inputs);
    for (int i = at; i + count < inputs; ++i) {
        u[i] = u[i + count];
        std::copy(P + (i + count) * stride, P + (i + count) * stride + inputs, P + i * stride);
    }
    for (int i = 0; i < inputs; ++i) {
        double* row = P + i * stride;
        std::copy(row + at + count, row + inputs, row + at);
        std::fill(row + inputs - count, row + inputs, 0.0);
    }
    for (int i = inputs - count; i < inputs; ++i) {
        u[i] = 0.0;
        std::fill(P + i * stride, P + i * stride + inputs, 0.0);
    }
}

// The last `own` numbers again and again until there are `wanted` such parts.
void repeat_last(std::vector<double>& numbers, std::size_t own, int wanted) {
    const std::vector<double> last(numbers.end() - static_cast<std::ptrdiff_t>(own), numbers.end());
    while (numbers.size() < own * static_cast<std::size_t>(wanted))
        numbers.insert(numbers.end(), last.begin(), last.end());
}

}  // namespace

Newtons::Newtons(int scales, bool coin, bool columns, int classes) : scales_(scales), classes_(classes), coin_(coin) {
    for (const NewtonKind& kind : NEWTONS) {
        if (kind.columns && !columns) continue;
        Expert e = {&kind, std::vector<double>(MOST_INPUTS), {}, {0.0, 0.0}};
        std::fill_n(e.u.begin(), scales, 1.0 / scales);
        // With classes the constant and the columns have weights of their own for each of them.
        const int inputs = inputs_of(kind);
        e.P.resize(static_cast<std::size_t>(MOST_INPUTS) * static_cast<std::size_t>((inputs + 3) / 4 * 4));
        for (int i = 0; i < inputs; ++i) e.P[static_cast<std::size_t>(i * MOST_INPUTS + i)] = 1.0 / RIDGE;
        experts_.push_back(std::move(e));
    }
    if (classes > 0) {
        bias_.assign(static_cast<std::size_t>(classes), 0.0);
        variance_.assign(static_cast<std::size_t>(classes), 1.0 / RIDGE);
    }
    if (classes > 0 && columns) {
        W_.assign(CLASS_STRIDE, 0.0);
        Q_.assign(CLASS_INPUTS * CLASS_STRIDE, 0.0);
        for (int i = 0; i < CLASS_INPUTS; ++i) Q_[static_cast<std::size_t>(i * CLASS_STRIDE + i)] = 1.0 / RIDGE;
        repeat_last(W_, CLASS_STRIDE, classes);
        repeat_last(Q_, CLASS_INPUTS * CLASS_STRIDE, classes);
    }
    point();
}

// All inputs there may ever be.
int Newtons::inputs_of(const NewtonKind& kind) const {
    if (classes_ > 0) return scales_;
    return scores_of(kind) + (kind.constant ? 1 : 0) + (kind.columns ? MOST_COLUMNS : 0);
}

void Newtons::point() {
    class_view_ = {W_.empty() ? nullptr : W_.data(), Q_.empty() ? nullptr : Q_.data(), bias_.data(), variance_.data()};
}

int Newtons::fill(Newton* states) const {
    int n = 0;
    for (const Expert& e : experts_) {
        // Loops that do not learn leave the numbers alone.
        states[n++] = {e.kind,
                       classes_ > 0 ? scales_ : scores_of(*e.kind),
                       MOST_INPUTS,
                       const_cast<double*>(e.u.data()),
                       const_cast<double*>(e.P.data()),
                       const_cast<double*>(e.loss)};
    }
    return n;
}

bool Newtons::sees_columns() const {
    return std::any_of(experts_.begin(), experts_.end(), [](const Expert& e) { return e.kind->columns; });
}

// `constant` is the input of the constant; columns follow it.
void Newtons::change_weights(const ColumnChange& change, double* u, double* P, int stride, int constant) const {
    const int at = constant + 1 + change.column, inputs = constant + 1 + MOST_COLUMNS;
    mirror_one(P, stride, inputs);
    if (change.kind == ColumnChange::leaves) u[at] = 0.0;
    if (change.kind == ColumnChange::moves) {
        u[constant] += u[at] * change.shift;
        u[at] *= change.ratio;
        for (int i = 0; i < inputs; ++i) P[constant * stride + i] += change.shift * P[at * stride + i];
        for (int i = 0; i < inputs; ++i) P[i * stride + constant] += change.shift * P[i * stride + at];
    }
    set_row_and_column(P, stride, inputs, at, change.variance);
}

void Newtons::change(const std::vector<ColumnChange>& changes) {
    for (const ColumnChange& c : changes) {
        for (int i = 0; i < classes_ && !W_.empty(); ++i) {
            change_weights(c, W_.data() + i * CLASS_STRIDE, Q_.data() + std::ptrdiff_t{i} * CLASS_INPUTS * CLASS_STRIDE,
                           CLASS_STRIDE, 0);
        }
        for (Expert& e : experts_) {
            if (classes_ == 0 && e.kind->columns)
                change_weights(c, e.u.data(), e.P.data(), MOST_INPUTS, scores_of(*e.kind));
        }
    }
}

void Newtons::drop_inputs(int from, int count) {
    for (Expert& e : experts_) {
        if (from < (classes_ > 0 ? scales_ : scores_of(*e.kind)))
            remove(e.u.data(), e.P.data(), MOST_INPUTS, inputs_of(*e.kind), from, count);
    }
}

void Newtons::keep_scales(int first, int count) {
    drop_inputs(first + count, scales_ - first - count);
    scales_ = first + count;
    drop_inputs(0, first);
    scales_ = count;
}

void Newtons::drop_coin() {
    if (!coin_) return;
    drop_inputs(scales_, 1);
    coin_ = false;
}

void Newtons::drop(const std::string& name) {
    experts_.erase(
        std::remove_if(experts_.begin(), experts_.end(), [&](const Expert& e) { return e.kind->name == name; }),
        experts_.end());
    if (!sees_columns()) {
        W_.clear();
        Q_.clear();
    }
    point();
}

void Newtons::know_classes(int columns) {
    classes_ = columns;
    repeat_last(bias_, 1, columns);
    repeat_last(variance_, 1, columns);
    if (!W_.empty()) {
        repeat_last(W_, CLASS_STRIDE, columns);
        repeat_last(Q_, CLASS_INPUTS * CLASS_STRIDE, columns);
    }
    point();
}

void Newtons::mirror(int used) {
    for (Expert& e : experts_) mirror_one(e.P.data(), MOST_INPUTS, inputs_of(*e.kind));
    for (int i = 0; i < classes_ && !Q_.empty(); ++i)
        mirror_one(Q_.data() + std::ptrdiff_t{i} * CLASS_INPUTS * CLASS_STRIDE, CLASS_STRIDE, 1 + used);
}

void Newtons::add_arrays(std::vector<NamedArray>& arrays, bool kinked, int used) {
    for (Expert& e : experts_) {
        const std::string name = std::string("newton_") + e.kind->letter;
        const int unused = e.kind->columns && classes_ == 0 ? MOST_COLUMNS - used : 0,
                  inputs = inputs_of(*e.kind) - unused;
        arrays.push_back({name + ".u", e.u.data(), 0, inputs, 0});
        arrays.push_back({name + ".P", e.P.data(), inputs, inputs, MOST_INPUTS});
        if (kinked) arrays.push_back({name + ".loss", e.loss, 0, 2, 0});
        if (classes_ > 0 && e.kind->drift > 0.0) {
            arrays.push_back({name + ".bias", bias_.data(), 0, classes_, 0});
            arrays.push_back({name + ".var", variance_.data(), 0, classes_, 0});
        }
    }
    if (W_.empty()) return;
    arrays.push_back({"columns.W", W_.data(), classes_, 1 + used, CLASS_STRIDE});
    arrays.push_back({"columns.Q", Q_.data(), 1 + used, 1 + used, CLASS_STRIDE, classes_, CLASS_INPUTS * CLASS_STRIDE});
}

}  // namespace ftprl
