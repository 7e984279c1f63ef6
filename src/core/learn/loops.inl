// All that is compiled for each instruction set, included once for each with FTPRL_ISA (a namespace) and FTPRL_KERNELS
// (the table) defined: the one loop over rows, the cells and losses it is made for, and the mixture. No template or
// inline function of the standard library may be used here.
#include <float.h>
#include <math.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "learn/classes.hpp"
#include "learn/coin.hpp"
#include "learn/kernel.hpp"
#include "learn/mixture.hpp"

namespace ftprl {
namespace FTPRL_ISA {
namespace {

#include "learn/lanes.inl"
#include "learn/steps.inl"
// Each uses what the ones before define.
// clang-format off
#include "learn/exponentials.inl"
#include "learn/one_scale.inl"
#include "learn/several_scales.inl"
#include "learn/class_scales.inl"
#include "learn/coin.inl"
#include "learn/newton.inl"
#include "learn/mix.inl"
#include "learn/mix_log.inl"
#include "learn/mix_labels.inl"
#include "learn/mix_classes.inl"
// clang-format on

// ---- losses of base experts: the slopes of a row for weight 1, and false where it teaches nothing ----

struct LogLoss {
    explicit LogLoss(const Constants&) {}

    FTPRL_INSIDE bool slopes(const RowFacts& facts, const double* scores, const double*, int count, double* tails,
                             double* slopes) const {
        alignas(32) double e[MOST_SCALES], unused[MOST_SCALES];
        for (int k = 0; k < count; ++k) tails[k] = e[k] = exp(-fabs(-facts.y * scores[k]));
        for (int k = count; k % 4 != 0; ++k) e[k] = 0.0;
        log_losses(scores, e, count, facts.y, unused, slopes, unused);
        return true;
    }
};

// Slopes after the step, so that no step goes beyond the label: docs/labels.md.
struct LabelledLoss {
    explicit LabelledLoss(const Constants& constants) : constants_(constants) {}

    FTPRL_INSIDE bool slopes(const RowFacts& facts, const double* scores, const double* reach, int count, double*,
                             double* slopes) const {
        for (int k = 0; k < count; ++k)
            slopes[k] = facts.teaches ? slope_of(constants_, facts, scores[k], reach[k]) : 0.0;
        return facts.teaches;
    }

    const Constants& constants_;
};

// ---- the one loop over rows ----

template <class Cells, class Loss>
void learn_rows(const BasePass& pass, const Constants& constants, const TableState& state, double* buffer) {
    Cells cells(pass, constants, state, buffer);
    const Loss loss(constants);
    alignas(32) double scores[MOST_SCALES], reach[MOST_SCALES], tails[MOST_SCALES];
    alignas(32) double slopes[MOST_SCALES] = {};  // 0 in the lanes that are not used
    const int count = cells.count();
    for (std::int64_t r = pass.from; r < pass.to; ++r) {
        const std::int64_t row = r - pass.from;
        const RowFacts& facts = pass.facts[row];
        double* to = pass.scores + row * pass.stride;
        if (!facts.learns) {
            cells.template score<false>(r, facts, scores, reach);
            for (int k = 0; k < count; ++k) to[k] = scores[k];
            continue;
        }
        cells.template score<true>(r, facts, scores, reach);
        for (int k = 0; k < count; ++k) to[k] = scores[k];
        const bool teaches = loss.slopes(facts, scores, reach, count, tails, slopes);
        for (int k = 0; pass.tails != nullptr && k < count; ++k) pass.tails[row * pass.stride + k] = tails[k];
        for (int k = 0; pass.slopes != nullptr && k < count; ++k) pass.slopes[row * pass.stride + k] = slopes[k];
        if (!teaches) continue;
        for (int k = 0; k < count; ++k) slopes[k] = facts.weight * slopes[k];
        for (int k = count; k % 4 != 0; ++k) slopes[k] = 0.0;
        cells.step(r, facts, slopes);
    }
}

// ---- a look at a batch before it is learned ----

template <class V>
struct BitsOf {
    using type = std::uint64_t;
};
template <>
struct BitsOf<float> {
    using type = std::uint32_t;
};

// The bits of |v|: sizes are in the order of these numbers, NaN above all others.
template <class V>
inline typename BitsOf<V>::type bits_of_size(V v) {
    typename BitsOf<V>::type bits;
    memcpy(&bits, &v, sizeof v);
    return bits & ~(typename BitsOf<V>::type{1} << (8 * sizeof v - 1));
}

// By differences in place of comparisons, and the bits of all indices where they say enough: what every instruction set
// has for several numbers at once.
template <class V>
Scan scan(const Rows& rows, std::uint64_t dim) {
    using Bits = typename BitsOf<V>::type;
    const V* values = static_cast<const V*>(rows.values);
    const std::int64_t end = rows.indptr[rows.count];
    const Bits limit = bits_of_size(static_cast<V>(LIMIT)), small = bits_of_size(static_cast<V>(SMALL_VALUE));
    std::uint32_t largest = 0;
    Bits beyond = 0, large = 0;    // their first bits are set by a difference below 0
    if ((dim & (dim - 1)) == 0) {  // a power of two: all indices are below it when all their bits are
        for (std::int64_t p = 0; p < end; ++p) {
            largest |= rows.indices[p];
            beyond |= limit - bits_of_size(values[p]);
            large |= small - bits_of_size(values[p]);
        }
    } else {
        for (std::int64_t p = 0; p < end; ++p) {
            largest = rows.indices[p] > largest ? rows.indices[p] : largest;
            beyond |= limit - bits_of_size(values[p]);
            large |= small - bits_of_size(values[p]);
        }
    }
    constexpr int SIGN = 8 * sizeof(V) - 1;
    return {largest < dim, (beyond >> SIGN) == 0, (large >> SIGN) == 0};
}

}  // namespace
}  // namespace FTPRL_ISA

#define FTPRL_LOG(T, L, receipt) \
    FTPRL_ISA::learn_rows<FTPRL_ISA::SeveralScales<T, L, false, receipt>, FTPRL_ISA::LogLoss>
#define FTPRL_LABELLED(T, L, receipt) \
    FTPRL_ISA::learn_rows<FTPRL_ISA::SeveralScales<T, L, true, receipt>, FTPRL_ISA::LabelledLoss>
#define FTPRL_WIDTHS(make, T, receipt) {make(T, 1, receipt), make(T, 2, receipt), make(T, 4, receipt)}
#define FTPRL_ONE_OF(T)                                                                            \
    {                                                                                              \
        {FTPRL_ISA::learn_rows<FTPRL_ISA::OneScale<T, false, false>, FTPRL_ISA::LogLoss>,          \
         FTPRL_ISA::learn_rows<FTPRL_ISA::OneScale<T, false, true>, FTPRL_ISA::LogLoss>},          \
        {                                                                                          \
            FTPRL_ISA::learn_rows<FTPRL_ISA::OneScale<T, true, false>, FTPRL_ISA::LabelledLoss>,   \
                FTPRL_ISA::learn_rows<FTPRL_ISA::OneScale<T, true, true>, FTPRL_ISA::LabelledLoss> \
        }                                                                                          \
    }
#define FTPRL_SEVERAL_OF(T)                                                               \
    {                                                                                     \
        {FTPRL_WIDTHS(FTPRL_LOG, T, false), FTPRL_WIDTHS(FTPRL_LOG, T, true)}, {          \
            FTPRL_WIDTHS(FTPRL_LABELLED, T, false), FTPRL_WIDTHS(FTPRL_LABELLED, T, true) \
        }                                                                                 \
    }

const Kernels FTPRL_KERNELS = {
    {FTPRL_ONE_OF(float), FTPRL_ONE_OF(double)},
    {FTPRL_SEVERAL_OF(float), FTPRL_SEVERAL_OF(double)},
    {{FTPRL_ISA::learn_class_rows<float, false>, FTPRL_ISA::learn_class_rows<float, true>},
     {FTPRL_ISA::learn_class_rows<double, false>, FTPRL_ISA::learn_class_rows<double, true>}},
    {FTPRL_ISA::learn_coin_rows<float>, FTPRL_ISA::learn_coin_rows<double>},
    FTPRL_ISA::mix_rows,
    FTPRL_ISA::mix_class_rows,
    {FTPRL_ISA::scan<float>, FTPRL_ISA::scan<double>},
};

}  // namespace ftprl
