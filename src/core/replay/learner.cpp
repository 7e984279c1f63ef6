#include "replay/learner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace ftprl::replay {
namespace {

constexpr double FARTHEST_SCORE = 8.0;  // that the Newton experts see, of scores and logarithms without a unit
constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr int ROW_SUMS = 5, BINS = 20;

void add_calibration(double* bins, double value, double y, double weight) {
    const double chance = std::exp(-value), p = y > 0.0 ? chance : 1.0 - chance;
    double* bin = bins + 3 * std::min(static_cast<int>(p * BINS), BINS - 1);
    bin[0] += weight;
    bin[1] += weight * p;
    bin[2] += y > 0.0 ? weight : 0.0;
}

}  // namespace

Learner::Learner(Settings settings, const Arrays& arrays)
    : s_(std::move(settings)),
      scales_(s_, arrays),
      labels_(reinterpret_cast<LabelState*>(arrays.numbers("labels", sizeof(LabelState) / sizeof(double)))),
      tallies_(arrays.numbers("tallies", 3)),
      row_sums_(arrays.numbers("row_sums", ROW_SUMS * s_.scales.size())),
      calibration_(arrays.numbers_or_null("calibration", 3 * BINS)),
      slopes_(static_cast<std::size_t>(s_.lanes())) {
    if (!s_.is_mixed()) return;
    experts_ = make_experts(s_, arrays);
    mixture_ = std::make_unique<Mixture>(s_, arrays);
    if (s_.has("coin")) coin_ = std::make_unique<Coin>(s_, arrays);
    if (s_.has("columns")) columns_ = std::make_unique<Columns>(arrays);
    if (s_.loss->kind == Kind::log_odds)
        odds_ = reinterpret_cast<LabelOdds*>(arrays.numbers("labels.odds", sizeof(LabelOdds) / sizeof(double)));
}

View Learner::see(const Row& row, bool learns) {
    const LabelState& a = *labels_;
    const bool labelled = s_.labelled(), has_offset = s_.loss->has_offset();
    scales_.play(row, a.offset, learns);
    View view{};
    view.scores = scales_.scores();
    view.offset = a.offset;
    view.unit = s_.unit_of(a.unit);
    view.low = labelled ? a.low : -INFINITE;
    view.high = labelled ? a.high : INFINITE;
    if (mixture_ == nullptr) return view;
    view.base = has_offset ? a.offset : static_cast<double>(a.mean > 0.0) - static_cast<double>(a.mean < 0.0);
    if (odds_ != nullptr) view.base = s_.intercept ? odds_->base_rate() : 0.0;
    if (coin_ != nullptr) {
        const double bets = coin_->bet(row, learns);
        view.coin = s_.intercept ? bets + (coin_->own_bet() + (labelled ? 0.0 : view.base)) : bets;
        if (labelled) view.coin = a.offset + view.unit * view.coin;
    }
    view.columns[0] = 1.0;
    if (columns_ != nullptr) {
        view.used = columns_->used();
        columns_->read(row, view.columns + 1);
    }
    view.inputs.assign(static_cast<std::size_t>(s_.lanes()) + 1, 0.0);
    for (int k = 0; !s_.loss->has_classes() && k <= s_.count(); ++k) {
        const double score = k < s_.count() ? view.scores[k] : view.coin;
        view.inputs[k] =
            (has_offset ? cut(score, a.low, a.high) : cut(score, -FARTHEST_SCORE, FARTHEST_SCORE)) - a.offset;
    }
    return view;
}

Opinions Learner::opinions_of(const View& view, double y) {
    Opinions o;
    for (std::size_t j = 0; j < experts_.size(); ++j) {
        experts_[j]->score(view, o.scores + j);
        o.losses[j] = s_.labelled() ? s_.loss->value(o.scores[j], y, s_.quantile()) : log_loss(o.scores[j], y);
        o.chances[j] = chance_of(y * o.scores[j]);
    }
    return o;
}

Softmax Learner::classes_of(View& view) {
    const int K = s_.count(), C = s_.columns();
    Softmax own(C, static_cast<int>(experts_.size()));
    std::vector<double> scores(static_cast<std::size_t>(C));
    for (int j = 0; j < own.experts; ++j) {
        experts_[j]->score(view, scores.data());
        own.set(j, scores.data(), s_.copies);
        for (int c = 0; j < K && c < C; ++c) view.inputs[c * K + j] = std::max(own.log_of(c, j), -FARTHEST_SCORE);
    }
    return own;
}

Opinions Learner::of_class(Softmax& own, int y) const {
    Opinions o;
    for (int j = 0; j < own.experts; ++j) {
        o.chances[j] = own.chance_of(y, j);
        o.losses[j] = -own.log_of(y, j);
    }
    return o;
}

double Learner::score(const Row& row, double& prediction) {
    View view = see(row, false);
    const auto value = [&] { return s_.loss->value(prediction, row.y, s_.quantile()); };
    if (mixture_ == nullptr) {
        prediction = cut(view.scores[0], view.low, view.high);
        return value();
    }
    const std::vector<double> w = mixture_->weights(false);
    if (s_.loss->has_classes()) {
        Softmax own = classes_of(view);
        prediction = own.predicted(w.data(), s_.known_before);
        return mixture_->loss(w.data(), of_class(own, static_cast<int>(row.y)));
    }
    const Opinions o = opinions_of(view, row.y);
    if (!s_.labelled()) return mixture_->loss(w.data(), o);
    prediction = mixture_->predict(w.data(), o);
    return value();
}

double Learner::learn_logistic(const Row& row, const View& view) {
    for (int k = 0; k < s_.count(); ++k) slopes_[k] = log_slope(view.scores[k], row.y);
    if (mixture_ == nullptr) return s_.loss->value(view.scores[0], row.y, s_.quantile());
    const double value = mixture_->learn_chances(opinions_of(view, row.y), row.weight, tallies_[2]);
    const Lesson lesson{*labels_, row.y, row.weight, 1.0, view.low, view.high};
    for (const auto& expert : experts_) expert->learn(view, lesson, nullptr);
    coin_slope_ = row.weight * log_slope(view.coin, row.y);
    odds_->learn(row.y, row.weight);
    return value;
}

double Learner::learn_classes(const Row& row, View& view, double& prediction) {
    const int K = s_.count(), C = s_.columns(), y = static_cast<int>(row.y);
    Softmax own = classes_of(view);
    prediction = own.predicted(mixture_->weights(true).data(), s_.known_before);
    s_.known_before = s_.known;
    const double value = mixture_->learn_chances(of_class(own, y), row.weight, tallies_[2]);
    const Lesson lesson{*labels_, row.y, row.weight, 1.0, view.low, view.high};
    std::vector<double> p(static_cast<std::size_t>(C));
    for (int j = 0; j < own.experts; ++j) {
        for (int c = 0; c < C; ++c) p[c] = own.chance_of(c, j);
        experts_[j]->learn(view, lesson, p.data());
        for (int c = 0; j < K && c < C; ++c) slopes_[c * K + j] = p[c] - (c == y ? 1.0 : 0.0);
    }
    return value;
}

double Learner::learn_labelled(const Row& row, const View& view, double& prediction, bool& teaches) {
    const double tau = s_.quantile();
    prediction = cut(view.scores[0], view.low, view.high);
    if (mixture_ != nullptr) {
        const Opinions o = opinions_of(view, row.y);
        prediction = mixture_->predict(mixture_->weights(true).data(), o);
        mixture_->learn_scores(*labels_, o, prediction, row.y, row.weight, tallies_[2]);
    }
    const LabelledRow own = learn_label(s_, *labels_, row.y, row.weight);
    const double value = s_.loss->value(prediction, row.y, tau);
    teaches = own.teaches;
    coin_slope_ = 0.0;
    if (teaches && mixture_ != nullptr) {
        const Lesson lesson{*labels_, own.learned, row.weight, s_.unit_of(labels_->unit), own.low, own.high};
        for (const auto& expert : experts_) expert->learn(view, lesson, nullptr);
        const double bet = cut(view.coin, own.low, own.high);
        coin_slope_ = row.weight * s_.loss->coin_slope(*labels_, bet, own.learned, tau);
    }
    for (int k = 0; k < s_.count(); ++k) {
        const double A = row.weight * labels_->kappa * scales_.reach(k), score = view.scores[k];
        slopes_[k] = teaches ? s_.loss->slope_after_step(*labels_, start_of(s_, own, score), own.learned, A, tau) : 0.0;
        add_row_sums(s_, *labels_, own, row.y, row.weight, score, slopes_[k], prediction, value, row_sums_ + k,
                     s_.count());
    }
    return value;
}

double Learner::learn(const Row& row, double& prediction) {
    View view = see(row, true);
    tallies_[2] += 1.0;
    bool teaches = true;
    const double value = s_.labelled()            ? learn_labelled(row, view, prediction, teaches)
                         : s_.loss->has_classes() ? learn_classes(row, view, prediction)
                                                  : learn_logistic(row, view);
    if (teaches) {
        for (double& slope : slopes_) slope *= row.weight;
        scales_.step(row, slopes_.data(), labels_->psi, labels_->kappa);
    } else if (mixture_ == nullptr) {  // one scale: such a row leaves its cells alone
        scales_.forget_units(row);
    }
    if (coin_ != nullptr) coin_->learn(row, coin_slope_);
    if (columns_ != nullptr)
        columns_->learn(row, static_cast<std::int64_t>(tallies_[2]), experts_[s_.expert("columns")]->followers());
    tallies_[0] += row.weight * value;
    tallies_[1] += row.weight;
    if (calibration_ != nullptr) add_calibration(calibration_, value, row.y, row.weight);
    return value;
}

}  // namespace ftprl::replay
