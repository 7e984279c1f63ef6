#include "replay/experts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace ftprl::replay {
namespace {

constexpr double HEAVIEST = 0x1p10;                          // weight of a row in a Newton step
constexpr double DRIFT = 0x1p-4, LARGEST_DRIFTED = 1.0;      // variance of the constant that drifts
constexpr double LARGEST_DRIFTED_OF_CLASS = FIRST_VARIANCE;  // of that of a class

constexpr double LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33, LOG2E = 1.4426950408889634;
constexpr double FARTHEST = -700.0, SHIFT = 0x1.8p52;
constexpr double TERMS[] = {1.0 / 6227020800.0,
                            1.0 / 479001600.0,
                            1.0 / 39916800.0,
                            1.0 / 3628800.0,
                            1.0 / 362880.0,
                            1.0 / 40320.0,
                            1.0 / 5040.0,
                            1.0 / 720.0,
                            1.0 / 120.0,
                            1.0 / 24.0,
                            1.0 / 6.0,
                            0.5,
                            1.0,
                            1.0};

// e^x of a number of at most 0, and e^-700 below that.
double exp_below(double x) {
    const double t = std::max(x, FARTHEST), whole = (t * LOG2E + SHIFT) - SHIFT;
    const double r = (t - whole * LN2_HIGH) - whole * LN2_LOW;
    double p = TERMS[0];
    for (std::size_t i = 1; i < sizeof TERMS / sizeof *TERMS; ++i) p = p * r + TERMS[i];
    return std::ldexp(p, static_cast<int>(whole));
}

class ScaleExpert final : public Expert {
public:
    ScaleExpert(const Settings& settings, int k) : s_(settings), k_(k) {}

    void score(const View& view, double* out) override {
        for (int c = 0; c < s_.columns(); ++c) out[c] = cut(view.scores[c * s_.count() + k_], view.low, view.high);
    }

private:
    const Settings& s_;
    int k_;
};

class OffsetExpert final : public Expert {
public:
    void score(const View& view, double* out) override { out[0] = view.base; }
};

class CoinExpert final : public Expert {
public:
    void score(const View& view, double* out) override { out[0] = cut(view.coin, view.low, view.high); }
};

// Which inputs a Newton expert has besides the scores of the scales.
struct NewtonKind {
    const char *expert, *arrays;  // names
    bool coin;                    // the score of the coin
    bool columns;                 // a 1 and the columns
    bool drifts;                  // a 1 with a coefficient that is a random walk
};

// Newton's method for the coefficients of scores, and of a constant and columns.
class NewtonExpert final : public Expert {
public:
    NewtonExpert(const Settings& s, const Arrays& arrays, NewtonKind kind) : s_(s), kind_(kind) {
        const std::string name = kind.arrays;
        scores_ = s.count() + (kind.coin && s.coin_input && s.has("coin") ? 1 : 0);
        const int stride = scores_ + (kind.columns ? 1 + MOST_COLUMNS : kind.drifts ? 1 : 0);
        own_ = {arrays.numbers(name + ".u", stride), arrays.numbers(name + ".P", stride * stride), stride, scores_};
        if (s.loss->kinked) loss_ = arrays.numbers(name + ".loss", 2);
    }

    void score(const View& view, double* out) override {
        double sum = 0.0, terms[MOST_INPUTS];
        for (int i = 0; i < scores_; ++i) sum += own_.u[i] * view.inputs[i];
        f_ = view.offset + sum;
        const int others = inputs(view) - scores_;
        for (int j = 0; j < others; ++j) terms[j] = own_.u[scores_ + j] * view.columns[j];
        if (others > 0) f_ = f_ + view.unit * in_fours(terms, others);
        out[0] = cut(s_.loss->gain * f_, view.low, view.high);
    }

    void learn(const View& view, const Lesson& lesson, const double*) override {
        const Loss& loss = *s_.loss;
        const int n = inputs(view);
        const double c = std::min(lesson.weight, HEAVIEST), y = lesson.y, tau = s_.quantile();
        const double own = cut(f_, lesson.low, lesson.high), f = loss.has_log_link() ? own : f_;
        double x[MOST_INPUTS], Px[MOST_INPUTS];
        for (int i = 0; i < scores_; ++i) x[i] = view.inputs[i] / lesson.unit;
        for (int i = scores_; i < n; ++i) x[i] = view.unit / lesson.unit * view.columns[i - scores_];
        if (loss.kinked) {
            loss_[0] += c;
            loss_[1] += c / loss_[0] * (loss.value(own, y, tau) - loss_[1]);
        }
        const NewtonSlope at = loss.newton(lesson.labels, f, y, loss.kinked ? loss_[1] : 1.0, tau);
        const double b = c * at.curvature, q = own_.project(x, n, Px);
        double slope = at.slope;
        if (loss.jumps) {  // the slope after the step, which does not go beyond the label
            const double reach = c * q / (1.0 + b * q) * lesson.unit;
            slope = loss.slope_after_step(lesson.labels, f, y, reach, tau);
        }
        own_.step(Px, n, c * slope, b, q);
        if (kind_.drifts && own_.entry(scores_, scores_) < LARGEST_DRIFTED) own_.entry(scores_, scores_) += DRIFT;
        own_.keep_sound(n);
    }

    std::vector<Regression> followers() const override {
        return kind_.columns ? std::vector<Regression>{own_} : std::vector<Regression>{};
    }

private:
    int inputs(const View& view) const { return scores_ + (kind_.columns ? 1 + view.used : kind_.drifts ? 1 : 0); }

    const Settings& s_;
    NewtonKind kind_;
    int scores_;
    Regression own_{};
    double *loss_ = nullptr, f_ = 0.0;  // weight and mean loss of the steps; the score of the row
};

// The same for several classes: coefficients of the scales that all classes share, and for each class a constant and
// columns, or a constant that drifts.
class ClassNewtonExpert final : public Expert {
public:
    ClassNewtonExpert(const Settings& s, const Arrays& arrays, NewtonKind kind) : s_(s), kind_(kind) {
        const std::string name = kind.arrays;
        const int K = s.count(), stride = 1 + MOST_COLUMNS;
        const auto C = static_cast<std::size_t>(s.columns());
        shared_ = {arrays.numbers(name + ".u", K), arrays.numbers(name + ".P", K * K), K, 0};
        if (kind.columns) {
            double *W = arrays.numbers("columns.W", C * stride), *Q = arrays.numbers("columns.Q", C * stride * stride);
            for (std::size_t c = 0; c < C; ++c) own_.push_back({W + c * stride, Q + c * stride * stride, stride, 0});
        }
        if (kind.drifts) {
            bias_ = arrays.numbers(name + ".bias", C);
            variance_ = arrays.numbers(name + ".var", C);
        }
    }

    void score(const View& view, double* out) override {
        const int K = s_.count();
        double terms[MOST_INPUTS];
        for (int c = 0; c < s_.columns(); ++c) {
            out[c] = 0.0;
            for (int k = 0; k < K; ++k) out[c] += shared_.u[k] * view.inputs[c * K + k];
            for (int j = 0; kind_.columns && j <= view.used; ++j) terms[j] = own_[c].u[j] * view.columns[j];
            if (kind_.columns) out[c] = out[c] + in_fours(terms, view.used + 1);
            if (kind_.drifts) out[c] = out[c] + bias_[c];
        }
    }

    void learn(const View& view, const Lesson& lesson, const double* p) override {
        const double weight = std::min(lesson.weight, HEAVIEST);
        const int y = static_cast<int>(lesson.y);
        learn_shared(view, y, weight, p);
        for (int c = 0; c < s_.columns(); ++c) {
            const double slope = c == y ? p[c] - 1.0 : p[c], b = weight * std::max(p[c] * (1.0 - p[c]), FLATTEST);
            if (kind_.columns) {
                double Px[MOST_INPUTS];
                const double q = own_[c].project(view.columns, view.used + 1, Px);
                own_[c].step(Px, view.used + 1, weight * slope, b, q);
                own_[c].keep_sound(view.used + 1);
            }
            if (kind_.drifts) {
                const double e = 1.0 + b * variance_[c];
                bias_[c] -= weight * slope * variance_[c] / e;
                variance_[c] = variance_[c] / e;
                if (variance_[c] < LARGEST_DRIFTED_OF_CLASS) variance_[c] += DRIFT;
            }
        }
    }

    std::vector<Regression> followers() const override { return own_; }

private:
    // A step with the Hessian of the softmax, one class after the other.
    void learn_shared(const View& view, int y, double weight, const double* p) {
        const int K = s_.count();
        double mean[MOST_SCALES] = {}, d[MOST_SCALES], Pd[MOST_SCALES];
        const auto project = [&] {
            for (int j = 0; j < K; ++j) {
                Pd[j] = 0.0;
                for (int i = 0; i < K; ++i) Pd[j] += shared_.entry(i, j) * d[i];
            }
        };
        for (int c = 0; c < s_.columns(); ++c) {
            for (int k = 0; k < K; ++k) mean[k] += s_.copies[c] * p[c] * view.inputs[c * K + k];
        }
        for (int c = 0; c < s_.columns(); ++c) {
            for (int k = 0; k < K; ++k) d[k] = view.inputs[c * K + k] - mean[k];
            project();
            double q = 0.0;
            for (int k = 0; k < K; ++k) q += d[k] * Pd[k];
            const double b = weight * std::max(s_.copies[c] * p[c], FLATTEST),
                         shrink = b / (1.0 + b * std::max(q, 0.0));
            for (int i = 0; i < K; ++i) {
                for (int j = 0; j < K; ++j) shared_.entry(i, j) -= shrink * (Pd[i] * Pd[j]);
            }
        }
        for (int k = 0; k < K; ++k) d[k] = mean[k] - view.inputs[y * K + k];
        project();
        for (int k = 0; k < K; ++k) shared_.u[k] -= weight * Pd[k];
        shared_.keep_sound(K);
    }

    const Settings& s_;
    NewtonKind kind_;
    Regression shared_{};
    std::vector<Regression> own_;  // of each column of classes
    double *bias_ = nullptr, *variance_ = nullptr;
};

constexpr NewtonKind NEWTON_KINDS[] = {{"scores", "newton_A", true, false, false},
                                       {"columns", "newton_B", true, true, false},
                                       {"drift", "newton_D", false, false, true}};

}  // namespace

std::vector<std::unique_ptr<Expert>> make_experts(const Settings& s, const Arrays& arrays) {
    std::vector<std::unique_ptr<Expert>> experts;
    experts.reserve(s.experts.size());
    for (int k = 0; k < s.count(); ++k) experts.push_back(std::make_unique<ScaleExpert>(s, k));
    for (const NewtonKind& kind : NEWTON_KINDS) {
        if (s.has(kind.expert) && s.loss->has_classes())
            experts.push_back(std::make_unique<ClassNewtonExpert>(s, arrays, kind));
        if (s.has(kind.expert) && !s.loss->has_classes())
            experts.push_back(std::make_unique<NewtonExpert>(s, arrays, kind));
    }
    if (s.has("offset") || s.has("majority")) experts.push_back(std::make_unique<OffsetExpert>());
    if (s.has("coin")) experts.push_back(std::make_unique<CoinExpert>());
    if (experts.size() != s.experts.size()) throw std::invalid_argument("experts has a name that is not known");
    return experts;
}

void Softmax::set(int j, const double* scores, const std::vector<double>& copies) {
    double total = 0.0;
    const double largest = *std::max_element(scores, scores + columns);
    for (int c = 0; c < columns; ++c) {
        log_of(c, j) = scores[c] - largest;
        chance_of(c, j) = exp_below(log_of(c, j));
        total += copies[c] * chance_of(c, j);
    }
    const double log_total = std::log(total);
    for (int c = 0; c < columns; ++c) {
        log_of(c, j) -= log_total;
        chance_of(c, j) /= total;
    }
}

double Softmax::predicted(const double* w, int known) {
    double most = -1.0, best = std::numeric_limits<double>::quiet_NaN();
    for (int c = 0; c < known; ++c) {
        double chance = 0.0;
        for (int j = 0; j < experts; ++j) chance += w[j] * chance_of(c, j);
        if (!(chance > most)) continue;
        best = c;
        most = chance;
    }
    return best;
}

}  // namespace ftprl::replay
