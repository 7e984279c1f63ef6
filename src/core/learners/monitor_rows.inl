// The functions of monitor_rows.hpp, included once for each instruction set with FTPRL_ISA (a namespace) and
// FTPRL_MONITOR (the table) defined. No template or inline function of the standard library may be used here.
//
// Four rows at a time. What is watched of them is computed with a row in each lane of a D. Sums then take one row after
// the other, which fixes their bits however rows are cut into batches, with a sequence in each lane, so that four sums
// wait for the row before at once. While rows are added the next ones are derived, by the same loop.
#include <float.h>
#include <math.h>
#include <string.h>
#if defined(__SSE2__) && !defined(FTPRL_PORTABLE)
#include <immintrin.h>
#endif

#include "learners/monitor_rows.hpp"

namespace ftprl {
namespace FTPRL_ISA {
namespace {

#include "learners/lanes.inl"

// Four whole numbers of 64 bits, and what is done with the bits of a D. `where_below` is `value` in lanes where a < b,
// otherwise 0; `where_at_most` likewise.

#if defined(__AVX2__) && !defined(FTPRL_PORTABLE)

using W = __m256i;

inline W whole(std::int64_t v) { return _mm256_set1_epi64x(v); }
inline W bits_of(D v) { return _mm256_castpd_si256(v); }
inline D number_of(W v) { return _mm256_castsi256_pd(v); }
inline W plus(W a, W b) { return _mm256_add_epi64(a, b); }
inline W minus(W a, W b) { return _mm256_sub_epi64(a, b); }
inline W either(W a, W b) { return _mm256_or_si256(a, b); }
inline W differing(W a, W b) { return _mm256_xor_si256(a, b); }
template <int by>
inline W up(W a) {
    return _mm256_slli_epi64(a, by);
}
inline bool any_sign(W a) { return _mm256_movemask_pd(_mm256_castsi256_pd(a)) != 0; }
inline bool any_bit(W a) { return _mm256_testz_si256(a, a) == 0; }
inline D where_below(D a, D b, D value) { return _mm256_and_pd(_mm256_cmp_pd(a, b, _CMP_LT_OQ), value); }
inline D where_at_most(D a, D b, D value) { return _mm256_and_pd(_mm256_cmp_pd(a, b, _CMP_LE_OQ), value); }
inline D every_second(const double* p) {
    return _mm256_permute4x64_pd(_mm256_unpacklo_pd(_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)), 0xd8);
}
inline void rows_of(D a, D b, D c, D d, D* rows) {
    transpose(a, b, c, d);
    rows[0] = a;
    rows[1] = b;
    rows[2] = c;
    rows[3] = d;
}

#elif defined(__SSE2__) && !defined(FTPRL_PORTABLE)

struct W {
    __m128i a, b;
};

inline W whole(std::int64_t v) { return {_mm_set1_epi64x(v), _mm_set1_epi64x(v)}; }
inline W bits_of(D v) { return {_mm_castpd_si128(v.a), _mm_castpd_si128(v.b)}; }
inline D number_of(W v) { return {_mm_castsi128_pd(v.a), _mm_castsi128_pd(v.b)}; }
inline W plus(W u, W v) { return {_mm_add_epi64(u.a, v.a), _mm_add_epi64(u.b, v.b)}; }
inline W minus(W u, W v) { return {_mm_sub_epi64(u.a, v.a), _mm_sub_epi64(u.b, v.b)}; }
inline W either(W u, W v) { return {_mm_or_si128(u.a, v.a), _mm_or_si128(u.b, v.b)}; }
inline W differing(W u, W v) { return {_mm_xor_si128(u.a, v.a), _mm_xor_si128(u.b, v.b)}; }
template <int by>
inline W up(W u) {
    return {_mm_slli_epi64(u.a, by), _mm_slli_epi64(u.b, by)};
}
inline bool any_sign(W u) { return _mm_movemask_pd(_mm_castsi128_pd(_mm_or_si128(u.a, u.b))) != 0; }
inline bool any_bit(W u) {
    return _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_or_si128(u.a, u.b), _mm_setzero_si128())) != 0xffff;
}
inline D where_below(D u, D v, D value) {
    return {_mm_and_pd(_mm_cmplt_pd(u.a, v.a), value.a), _mm_and_pd(_mm_cmplt_pd(u.b, v.b), value.b)};
}
inline D where_at_most(D u, D v, D value) {
    return {_mm_and_pd(_mm_cmple_pd(u.a, v.a), value.a), _mm_and_pd(_mm_cmple_pd(u.b, v.b), value.b)};
}
inline D every_second(const double* p) {
    return {_mm_unpacklo_pd(_mm_loadu_pd(p), _mm_loadu_pd(p + 2)),
            _mm_unpacklo_pd(_mm_loadu_pd(p + 4), _mm_loadu_pd(p + 6))};
}
inline void rows_of(D a, D b, D c, D d, D* rows) {
    rows[0] = {_mm_unpacklo_pd(a.a, b.a), _mm_unpacklo_pd(c.a, d.a)};
    rows[1] = {_mm_unpackhi_pd(a.a, b.a), _mm_unpackhi_pd(c.a, d.a)};
    rows[2] = {_mm_unpacklo_pd(a.b, b.b), _mm_unpacklo_pd(c.b, d.b)};
    rows[3] = {_mm_unpackhi_pd(a.b, b.b), _mm_unpackhi_pd(c.b, d.b)};
}

#else

struct W {
    std::uint64_t v[4];
};

template <class F>
inline W each_whole(F f) {
    return {{f(0), f(1), f(2), f(3)}};
}

inline W whole(std::int64_t v) {
    return each_whole([&](int) { return static_cast<std::uint64_t>(v); });
}
inline W bits_of(D v) {
    W bits;
    memcpy(&bits, &v, sizeof v);
    return bits;
}
inline D number_of(W v) {
    D number;
    memcpy(&number, &v, sizeof v);
    return number;
}
inline W plus(W a, W b) {
    return each_whole([&](int j) { return a.v[j] + b.v[j]; });
}
inline W minus(W a, W b) {
    return each_whole([&](int j) { return a.v[j] - b.v[j]; });
}
inline W either(W a, W b) {
    return each_whole([&](int j) { return a.v[j] | b.v[j]; });
}
inline W differing(W a, W b) {
    return each_whole([&](int j) { return a.v[j] ^ b.v[j]; });
}
template <int by>
inline W up(W a) {
    return each_whole([&](int j) { return a.v[j] << by; });
}
inline std::uint64_t union_of(W a) { return (a.v[0] | a.v[1]) | (a.v[2] | a.v[3]); }
inline bool any_sign(W a) { return union_of(a) >> 63 != 0; }
inline bool any_bit(W a) { return union_of(a) != 0; }
inline D where_below(D a, D b, D value) {
    return each([&](int j) { return a.v[j] < b.v[j] ? value.v[j] : 0.0; });
}
inline D where_at_most(D a, D b, D value) {
    return each([&](int j) { return a.v[j] <= b.v[j] ? value.v[j] : 0.0; });
}
inline D every_second(const double* p) { return {{p[0], p[2], p[4], p[6]}}; }
inline void rows_of(D a, D b, D c, D d, D* rows) {
    for (int j = 0; j < 4; ++j) rows[j] = {{a.v[j], b.v[j], c.v[j], d.v[j]}};
}

#endif

inline std::int64_t bits_of(double v) {
    std::int64_t bits = 0;
    memcpy(&bits, &v, sizeof v);
    return bits;
}

constexpr std::int64_t ALL_BUT_SIGN = 0x7fffffffffffffff;

// e^-x for 0 <= x <= FARTHEST, to 13 digits: 2^-n (1 - r + r^2 q(r)), |r| <= ln(2) / 2. q is the Chebyshev series of
// (e^-r - 1 + r) / r^2 up to degree 7, in an order in which few operations wait for others.
constexpr double FARTHEST = 700.0;

FTPRL_INSIDE D exp_of_minus(D x) {
    constexpr double LOG2E = 1.4426950408889634, LN2 = 0.6931471805599453, SHIFT = 0x1.8p52;
    constexpr double Q0 = 0x1.fffffffffe067p-2, Q1 = -0x1.5555555553b7cp-3, Q2 = 0x1.55555565c5e48p-5;
    constexpr double Q3 = -0x1.1111111c46182p-7, Q4 = 0x1.6c166be5d9ab5p-10, Q5 = -0x1.a019adaae68d5p-13;
    constexpr double Q6 = 0x1.a136b28252698p-16, Q7 = -0x1.72c721fc9c39fp-19;
    const D shifted = x * all(LOG2E) + all(SHIFT), r = x - (shifted - all(SHIFT)) * all(LN2), r2 = r * r, r4 = r2 * r2;
    const D low = (all(Q0) + all(Q1) * r) + r2 * (all(Q2) + all(Q3) * r);
    const D high = (all(Q4) + all(Q5) * r) + r2 * (all(Q6) + all(Q7) * r);
    const D p = (all(1.0) - r) + r2 * (low + r4 * high);
    return p * number_of(up<52>(minus(whole(1023), bits_of(shifted))));  // the low bits of `shifted` are n
}

// 1 where `margin` is below 0, 1/2 where it is 0.
FTPRL_INSIDE D miss_of(D margin, D zero) {
    return where_at_most(margin, zero, all(0.5)) + where_below(margin, zero, all(0.5));
}

// The log loss of a probability of 1/2, and how far from it a loss still counts as a tie: rounding, of which another
// way to compute the same loss has another share, must not decide whether a row is an error.
constexpr double EVEN = 0.6931471805599453, TIE = 1e-9;

// Numbers of four rows, and what is watched of them.
struct FourRows {
    D loss, baseline, score, prediction, y, weight;
    D improvement, residual, miss;
};

// What is not usual about rows: a sign that is set in any lane of `beyond`, or any bit of `different`.
struct Unusual {
    W beyond, different;
};

// Limits as bits. Numbers from 0 up are in the order of their bits, so that whole numbers can be compared, which most
// processors do beside the arithmetic: the difference has a sign in lanes beyond a limit, as NaN always is.
struct LimitBits {
    W loss, improvement, heaviest, one;
};

template <bool weighted>
FTPRL_INSIDE void check_weight(D weight, const LimitBits& limits, Unusual& unusual) {
    const W bits = bits_of(weight);
    if (weighted) {
        const W is_zero = minus(bits, whole(1)), is_heavy = minus(limits.heaviest, bits);
        unusual.beyond = either(either(unusual.beyond, bits), either(is_zero, is_heavy));
    } else {
        unusual.different = either(unusual.different, differing(bits, limits.one));
    }
}

// With the log loss.
struct FromLosses {
    static constexpr bool needs_scores = false;

    template <bool any_loss>
    FTPRL_INSIDE static void derive(FourRows& rows) {
        const D chance = exp_of_minus(any_loss ? smaller(rows.loss, all(FARTHEST)) : rows.loss);
        rows.improvement = rows.baseline - rows.loss;
        rows.residual = rows.y * (chance - all(1.0));
        rows.miss =
            where_at_most(all(EVEN - TIE), rows.loss, all(0.5)) + where_below(all(EVEN + TIE), rows.loss, all(0.5));
    }
    // A residual is at most 1, and so is a miss.
    static bool fits(const UsualLimits& limits) {
        return limits.low[LOSS] <= 0.0 && limits.high[LOSS] >= 0.0 && limits.high[LOSS] <= FARTHEST &&
               limits.high[IMPROVEMENT] >= 0.0 && limits.high[RESIDUAL] >= 1.0 && limits.high[MISS] >= 1.0;
    }
    FTPRL_INSIDE static void check(const FourRows& rows, const UsualLimits&, const LimitBits& limits,
                                   Unusual& unusual) {
        const W loss = bits_of(rows.loss), improvement = bits_of(size(rows.improvement)), y = bits_of(size(rows.y));
        unusual.beyond = either(either(unusual.beyond, loss),
                                either(minus(limits.loss, loss), minus(limits.improvement, improvement)));
        unusual.different = either(unusual.different, differing(y, limits.one));  // a label is 1 or -1
    }
};

// The sign is set in lanes where x is not within its limits.
FTPRL_INSIDE W outside(const UsualLimits& limits, int k, D x) {
    const D inside = where_at_most(all(limits.low[k]), x, where_at_most(x, all(limits.high[k]), all(1.0)));
    return minus(bits_of(inside), whole(1));
}

FTPRL_INSIDE void check_limits(const FourRows& rows, const UsualLimits& limits, Unusual& unusual) {
    const W loss = either(outside(limits, LOSS, rows.loss), outside(limits, IMPROVEMENT, rows.improvement));
    const W other = either(outside(limits, RESIDUAL, rows.residual), outside(limits, MISS, rows.miss));
    unusual.beyond = either(unusual.beyond, either(loss, other));
}

struct FromScores {
    static constexpr bool needs_scores = true;

    template <bool any_loss>
    FTPRL_INSIDE static void derive(FourRows& rows) {
        rows.improvement = rows.baseline - rows.loss;
        rows.residual = rows.prediction - rows.y;
        rows.miss = miss_of(rows.score * rows.y, all(0.0));
    }
    static bool fits(const UsualLimits&) { return true; }
    FTPRL_INSIDE static void check(const FourRows& rows, const UsualLimits& limits, const LimitBits&,
                                   Unusual& unusual) {
        check_limits(rows, limits, unusual);
    }
};

struct FromClasses {
    static constexpr bool needs_scores = true;

    template <bool any_loss>
    FTPRL_INSIDE static void derive(FourRows& rows) {
        rows.improvement = rows.baseline - rows.loss;
        rows.residual = rows.y - rows.y;  // none, and NaN without a label
        const D different = size(rows.score - rows.y);
        rows.miss = all(1.0) - where_at_most(different, all(0.0), all(1.0));  // also where no class was predicted
    }
    static bool fits(const UsualLimits&) { return true; }
    FTPRL_INSIDE static void check(const FourRows& rows, const UsualLimits& limits, const LimitBits&,
                                   Unusual& unusual) {
        check_limits(rows, limits, unusual);
    }
};

// `any_loss`: not only a usual one.
template <class From, bool any_loss>
FTPRL_INSIDE FourRows four_rows(const WatchedBlock& rows, std::int64_t r) {
    FourRows at;
    at.loss = load(rows.losses + r);
    at.baseline = every_second(rows.baselines + 2 * r);
    at.y = load(rows.y + r);
    at.weight = load(rows.weight + r);
    if (From::needs_scores) {
        at.score = load(rows.scores + r);
        at.prediction = load(rows.predictions + r);
    }
    From::template derive<any_loss>(at);
    return at;
}

constexpr int STEP = 8;  // rows that are derived at once

// The last rows, fewer than STEP, and copies of the last one.
struct LastRows {
    double losses[STEP], baselines[2 * STEP], scores[STEP], predictions[STEP], y[STEP], weight[STEP];

    WatchedBlock of(const WatchedBlock& rows, std::int64_t first) {
        for (std::int64_t j = 0; j < STEP; ++j) {
            const std::int64_t r = first + j < rows.count ? first + j : rows.count - 1;
            losses[j] = rows.losses[r];
            baselines[2 * j] = baselines[2 * j + 1] = rows.baselines[2 * r];
            scores[j] = rows.scores == nullptr ? 0.0 : rows.scores[r];
            predictions[j] = rows.predictions == nullptr ? 0.0 : rows.predictions[r];
            y[j] = rows.y[r];
            weight[j] = rows.weight[r];
        }
        return {losses, baselines, scores, predictions, y, weight, STEP};
    }
};

// What is watched of rows, a row in each D.
struct StepRows {
    D numbers[STEP];
};

template <class From, bool weighted>
FTPRL_INSIDE void derive_step(const WatchedBlock& rows, std::int64_t first, const UsualLimits& limits,
                              const LimitBits& bits, Unusual& unusual, StepRows& to) {
    for (int k = 0; k < STEP; k += 4) {
        const FourRows at = four_rows<From, false>(rows, first + k);
        rows_of(at.loss, at.improvement, at.residual, at.miss, to.numbers + k);
        check_weight<weighted>(at.weight, bits, unusual);
        From::check(at, limits, bits, unusual);
    }
}

struct LaneSums {
    D guess, sum, squares, weight;

    template <bool weighted>
    FTPRL_INSIDE void add(const StepRows& rows, const double* weights, int count) {
        for (int j = 0; j < count; ++j) {
            D x = rows.numbers[j], deviation = x - guess;
            if (weighted) {
                const D w = all(weights[j]);
                deviation = w * deviation;
                x = w * x;
                weight += w;
            }
            sum += x;
            squares += deviation * deviation;
        }
    }
};

// Sums that turn out to have a row that is not usual are given up.
template <class From, bool weighted>
bool add_usual(const WatchedBlock& rows, const UsualLimits& limits, SequenceSums& to) {
    if (!From::fits(limits) || (!weighted && !(limits.heaviest >= 1.0))) return false;
    const LimitBits bits = {whole(bits_of(limits.high[LOSS])), whole(bits_of(limits.high[IMPROVEMENT])),
                            whole(bits_of(limits.heaviest)), whole(bits_of(1.0))};
    LaneSums sums = {load(to.guess), load(to.sum), load(to.squares), load(to.weight)};
    Unusual unusual = {whole(0), whole(0)};
    StepRows a, b, *now = &a, *next = &b;
    std::int64_t r = 0;
    if (STEP <= rows.count) {
        derive_step<From, weighted>(rows, 0, limits, bits, unusual, *now);
        for (; r + 2 * STEP <= rows.count; r += STEP) {
            derive_step<From, weighted>(rows, r + STEP, limits, bits, unusual, *next);
            sums.template add<weighted>(*now, rows.weight + r, STEP);
            StepRows* const added = now;
            now = next;
            next = added;
        }
        sums.template add<weighted>(*now, rows.weight + r, STEP);
        r += STEP;
    }
    if (r < rows.count) {
        LastRows last;
        derive_step<From, weighted>(last.of(rows, r), 0, limits, bits, unusual, *now);
        sums.template add<weighted>(*now, rows.weight + r, static_cast<int>(rows.count - r));
    }
    if (any_sign(unusual.beyond) || any_bit(unusual.different)) return false;
    store(to.sum, sums.sum);
    store(to.squares, sums.squares);
    store(to.weight, sums.weight);
    return true;
}

template <class From>
void derive(const WatchedBlock& rows, DerivedRows& to) {
    LastRows last;
    for (std::int64_t r = 0; r < rows.count; r += 4) {
        const bool is_whole = r + 4 <= rows.count;
        const FourRows at = four_rows<From, true>(is_whole ? rows : last.of(rows, r), is_whole ? r : 0);
        store(to.improvement + r, at.improvement);
        store(to.residual + r, at.residual);
        store(to.miss + r, at.miss);
    }
}

}  // namespace
}  // namespace FTPRL_ISA

#define FTPRL_WATCH(From) \
    {{FTPRL_ISA::add_usual<From, false>, FTPRL_ISA::add_usual<From, true>}, FTPRL_ISA::derive<From>}

const MonitorKernels FTPRL_MONITOR = {
    FTPRL_WATCH(FTPRL_ISA::FromLosses),
    FTPRL_WATCH(FTPRL_ISA::FromScores),
    FTPRL_WATCH(FTPRL_ISA::FromClasses),
};

}  // namespace ftprl
