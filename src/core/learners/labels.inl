// What a label changes: LabelState. Included by kernel_labels.inl, for each instruction set; rules as in kernel.inl.

constexpr double LOG_RANGE = 8.0;   // scores of counts reach this far below the offset
constexpr double SURE_ROWS = 16.0;  // labels before one is cut
constexpr double FAR_UNITS = 4.0;   // a label this many units beyond the range is learned as it is
constexpr double MOST_OUTLIERS = 9.0;

inline double above(double v, double floor) { return floor > v ? floor : v; }
inline double below(double v, double ceiling) { return ceiling < v ? ceiling : v; }

inline void learn_moments(LabelState& s, double y, double c) {
    const bool first = s.rows == 0.0;
    s.rows += 1.0;
    s.weight += c;
    const double d = y - s.mean;
    s.mean += (c / s.weight) * d;
    s.squares += c * d * (y - s.mean);
    s.least = first ? y : below(s.least, y);
    s.most = first ? y : above(s.most, y);
    s.mean = below(above(s.mean, s.least), s.most);  // rounding may leave it outside, even at 0 for labels above 0
}

// A unit that can be divided by: nothing can be learned in smaller ones.
inline double usable_unit(double unit) { return unit >= DBL_MIN ? unit : 0.0; }

// The logarithm of a label within the scores that losses with a log link take.
inline double log_of_label(double y) { return below(above(log(y), -LARGEST_LOG_SCORE), LARGEST_LOG_SCORE); }

// The running quantile of the baseline, and the mean distance from it.
inline void learn_quantile(LabelState& s, double tau, double y, double c) {
    if (s.rows == 1.0) {
        s.quantile = y;
        return;
    }
    s.since += c;
    const double d = y - s.quantile, part = c / s.since;
    s.pinball += part * ((d > 0.0 ? tau : tau - 1.0) * d - s.pinball);
    s.deviation += part * (fabs(d) - s.deviation);
    const double side = d > 0.0 ? tau : (d < 0.0 ? tau - 1.0 : 0.0);
    const double step = (2.0 * s.pinball / (tau * (1.0 - tau))) * (c / s.weight) * side;
    s.quantile = below(above(s.quantile + step, s.least), s.most);
}

// Forget where the labels were; their unit stays, and follows those to come sooner. y is the latest, of weight c.
inline void begin_anew(LabelState& s, double y, double c) {
    s.squares *= c / s.weight;
    s.weight = c;
    s.since = below(s.since, c);
    s.mean = s.least = s.most = s.quantile = y;
    s.offset = s.lowest = s.highest = y;
}

// The label that is learned: one far beyond the range of all before it is cut, since it may be the only one of its
// kind. The range grows at least to its double with each of several in a row, and faster with every one: labels in a
// larger unit are learned as they are after a few rows.
inline double believed_label(LabelState& s, double y) {
    if (s.rows < SURE_ROWS || s.unit == 0.0) return y;
    const double wide = above(s.most - s.least, FAR_UNITS * s.unit);
    const int before = static_cast<int>(below(s.outliers, MOST_OUTLIERS));
    const double far = before == 0 ? wide : ldexp(wide, (1 << before) - 1);
    const double learned = below(above(y, s.least - far), s.most + far);
    s.outliers = learned != y ? s.outliers + 1.0 : 0.0;
    return learned;
}

inline void follow_counts(LabelState& s) {
    s.offset = s.mean > 0.0 ? log_of_label(s.mean) : -log(s.rows + 1.0);
    s.unit = usable_unit(s.mean);
    s.lowest = above(s.offset - LOG_RANGE, -LARGEST_LOG_SCORE);
    s.highest = s.most > 0.0 ? above(s.offset, log_of_label(s.most)) : s.offset;
}

// Learn a label of weight c. The unit stays 0 while all labels are equal: nothing but the labels can be learned then.
inline void learn_label(LabelState& s, const Loss& loss, double tau, double y, double c) {
    learn_moments(s, y, c);
    switch (loss.rule) {
        case LabelRule::none:
        case LabelRule::classes:
            return;
        case LabelRule::mean:
            s.offset = s.mean;
            s.unit = s.psi = sqrt(above(s.squares / s.weight, 0.0));
            break;
        case LabelRule::quantile:
            learn_quantile(s, tau, y, c);
            s.offset = s.quantile;
            s.unit = s.kappa = usable_unit(s.deviation);
            break;
        case LabelRule::median_of_unit:
            learn_quantile(s, 0.5, y, c);
            s.offset = s.quantile;
            s.unit = usable_unit(s.deviation);
            s.psi = below(1.0, s.unit);
            s.kappa = above(1.0, s.unit);
            break;
        case LabelRule::log_mean:
            return follow_counts(s);
        case LabelRule::log_ratio:
            s.offset = log_of_label(s.mean);
            s.unit = 1.0;
            s.lowest = log_of_label(s.least);
            s.highest = log_of_label(s.most);
            return;
    }
    s.lowest = s.least;
    s.highest = s.most;
}
