// The settings of a model, its rows, and the arrays that the caller owns.
//
// The files of this folder are a second learner, for `ftprl verify`: rows are learned once more in simple loops, one
// entry and one expert after another. They share no code with the learner that made the numbers to be checked, and
// are written from docs/scales.md, docs/labels.md, docs/classes.md and docs/receipt.md.
//
// A lane is one score of a row: of one scale, and with several classes of one column of classes. A column of classes
// stands for a class that is known, and the last one for all that may come; cells have a number for each lane, scale
// by scale within each column.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "replay/losses.hpp"

namespace ftprl::replay {

constexpr double LARGEST = 1.7976931348623157e308;
constexpr double NARROW_CUT = 0x1p96, WIDE_CUT = 0x1p400;  // of gradients, in cells of float and of double
constexpr int MOST_SCALES = 16, MOST_EXPERTS = MOST_SCALES + 5;
constexpr double FLATTEST = 0x1p-13;  // curvature of a Newton step, at least

struct Settings {
    const Loss* loss;
    double tau, beta, l1, l2, lower, upper;
    bool intercept, wide;
    bool coin_input;  // whether the coin's score is an input of the Newton experts; only tests switch it off
    std::vector<double> scales;
    std::vector<std::string> experts;  // their names in order: the scales, then all others
    std::vector<double> copies;        // how many classes each column stands for; a 1 where there is one score
    int known_before, known;           // classes that can be predicted for the first row, and for the next ones

    bool labelled() const { return loss->labelled(); }
    double quantile() const { return loss->has_quantile ? tau : 0.5; }
    bool unconstrained() const { return l1 == 0.0 && l2 == 0.0 && lower < -LARGEST && upper > LARGEST; }
    int count() const { return static_cast<int>(scales.size()); }
    int columns() const { return static_cast<int>(copies.size()); }
    int lanes() const { return count() * columns(); }
    double scale_of(int lane) const { return scales[lane % count()]; }
    // The number of an expert that is not a scale; -1 where it is absent.
    int expert(const char* name) const {
        for (std::size_t j = scales.size(); j < experts.size(); ++j) {
            if (experts[j] == name) return static_cast<int>(j);
        }
        return -1;
    }
    bool has(const char* name) const { return expert(name) >= 0; }
    bool is_mixed() const { return count() > 1 || loss->has_classes(); }
    // The unit that scores are counted in: of the labels, where these have one.
    double unit_of(double unit) const { return loss->predicts_labels() ? unit : 1.0; }
};

struct Row {
    const std::int32_t* cell;
    const double* value;
    std::int64_t size;
    double y, weight;
};

// Numbers of cells, float or double.
struct Stored {
    void* numbers;
    bool wide;

    double operator[](std::int64_t i) const {
        return wide ? static_cast<const double*>(numbers)[i] : static_cast<const float*>(numbers)[i];
    }
    double rounded(double v) const { return wide ? v : static_cast<float>(v); }
    void put(std::int64_t i, double v) const {
        if (wide) static_cast<double*>(numbers)[i] = v;
        if (!wide) static_cast<float*>(numbers)[i] = static_cast<float>(v);
    }
    double cut_gradient() const { return wide ? WIDE_CUT : NARROW_CUT; }
};

// The arrays of the caller by name, checked for their sizes.
class Arrays {
public:
    virtual ~Arrays() = default;
    virtual double* numbers(const std::string& name, std::size_t size) const = 0;
    virtual double* numbers_or_null(const std::string& name, std::size_t size) const = 0;
    virtual Stored cells(const std::string& name, std::size_t per_cell) const = 0;
    virtual std::size_t cell_count() const = 0;
};

// Every fourth number from the first, the second, ... on, then these four together.
inline double in_fours(const double* terms, std::int64_t count) {
    double four[4] = {0.0, 0.0, 0.0, 0.0};
    for (std::int64_t i = 0; i < count; ++i) four[i % 4] += terms[i];
    return (four[0] + four[1]) + (four[2] + four[3]);
}

inline double cut(double v, double low, double high) { return v < low ? low : (high < v ? high : v); }
inline bool is_power_of_two(std::int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

}  // namespace ftprl::replay
