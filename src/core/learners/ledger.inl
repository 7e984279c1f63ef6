// The sums of a receipt over cells, included behind scales.inl; arithmetic and rules as there.
#include "learners/ledger.hpp"

namespace ftprl {
namespace FTPRL_ISA {
namespace {

// Few cells are added at a time, and these sums to the others: a long sum then keeps its digits.
constexpr std::int64_t CHUNK = 4096;
#include "learners/learned.inl"

// Q + l2 M² and the play of some cells; kappa where cells have one, which is not with the log loss.
struct Curve {
    D H, x;
};

inline Curve curve_of(const Play& c, const Limits& limits, D inverse, D z, D R, D M) {
    return {scaled_strength<false>(c, R, M) * inverse, play<false>(c, limits, z, R, M)};
}

inline Curve labelled_curve_of(const Play& c, const Limits& limits, D inverse, D z, D R, D M, D kappa) {
    const D over_kappa = where_positive(kappa, all(1.0) / kappa), Q = M * (c.beta * M + R) * inverse * over_kappa;
    return {Q + c.hl2 * inverse * (M * M), play_at<false>(c, limits, z, rate_of(c, R, M), kappa, M)};
}

// What a cell adds to the sums, with u the play it is compared with; see LEDGER_SUMS.
inline void add_terms(const Play& c, D H, D z, D R, D M, D over_M, D S, D x, D u, D* sums) {
    const D size_u = size(u), width = size_u + size_u, fixed = c.l1 * M * size_u;
    const D Su = S * u, zu = z * u, half = H * (all(0.5) * (u * u)), slope = R * over_M, side = width * M;
    sums[0] += Su;
    sums[1] += half - (Su - zu) + fixed;
    const D half_x = all(0.5) * H * x, fixed_x = c.l1 * M * size(x);
    sums[2] += (half + zu + fixed) - ((half_x + z) * x + fixed_x);
    sums[3] += width * R;
    sums[4] += slope * slope;
    sums[5] += side * side;
    sums[6] += (size(Su) + size(zu) + half + fixed) + ((size(half_x) + size(z)) * size(x) + fixed_x);
    sums[7] += size_u * M;
    sums[8] += all(1.0);
    const D pull = S * over_M;
    sums[9] += pull * pull;
}

// One scale: four cells at a time, whose sums come together at the end of a chunk.
template <class T>
void ledger(const CellTable& t, const Constants& constants, const Coordinates& which, LedgerSums& all_sums) {
    const Play c = play_of(constants);
    const D inverse = all(1.0 / constants.h);
    D sums[LEDGER_SUMS];
    for (D& part : sums) part = all(0.0);
    const Cell<T> none = {0, 0, 1, 0};  // with a play of 0 it adds nothing but its number, which is taken back
    const Cell<T>* four[4] = {&none, &none, &none, &none};
    alignas(32) double S[4] = {};
    std::uint32_t numbers[4] = {};
    int count = 0;
    std::int64_t met = 0;
    const auto add = [&] {
        Four<T> z, R, M, last;
        gather(four, z, R, M, last);
        const D wide_z = wide(z), wide_R = wide(R), wide_M = wide(M);
        const Limits limits = limits_at(c, constants.boxes, numbers);
        Curve curve = t.kappa < 0 ? curve_of(c, limits, inverse, wide_z, wide_R, wide_M)
                                  : labelled_curve_of(c, limits, inverse, wide_z, wide_R, wide_M, wide(last));
        D own_S = load(S);
        if (count < 4) {
            curve.x = only_first(curve.x, count);
            own_S = only_first(own_S, count);
        }
        add_terms(c, curve.H, wide_z, wide_R, wide_M, all(1.0) / wide_M, own_S, curve.x, curve.x, sums);
        if (count < 4) all_sums.sums[8][0] -= 4 - count;
        count = 0;
        for (const Cell<T>*& cell : four) cell = &none;
    };
    const auto flush = [&] {
        if (count > 0) add();
        for (int j = 0; j < LEDGER_SUMS; ++j) {
            all_sums.sums[j][0] += sum(sums[j]);
            sums[j] = all(0.0);
        }
    };
    each_learned<T>(t, which, [&](const T* cell, const double* own_S, std::uint64_t number) {
        S[count] = *own_S;
        numbers[count] = static_cast<std::uint32_t>(number);
        four[count++] = reinterpret_cast<const Cell<T>*>(cell);
        if (count == 4) add();
        if (++met % CHUNK == 0) flush();
    });
    flush();
}

// `labelled`: labels are in any unit.
template <class T, int L, bool labelled>
void ledger_of_scales(const CellTable& t, const ScaleConstants& constants, int leader, const Coordinates& which,
                      LedgerSums& all_sums) {
    const Lanes<L> c = lanes_of<L>(constants);
    D sums[L][LEDGER_SUMS];
    for (int l = 0; l < L; ++l) {
        for (D& part : sums[l]) part = all(0.0);
    }
    std::int64_t met = 0;
    const auto flush = [&] {
        for (int l = 0; l < L; ++l) {
            for (int j = 0; j < LEDGER_SUMS; ++j) {
                double* to = all_sums.sums[j] + 4 * l;
                store(to, load(to) + sums[l][j]);
                sums[l][j] = all(0.0);
            }
        }
    };
    each_learned<T>(t, which, [&](const T* cell, const double* S, std::uint64_t number) {
        const Limits limits = limits_at(c.play[0], constants.base.boxes, number);
        const auto unit = static_cast<double>(cell[t.unit]);
        const D M = all(unit), over_M = all(unit > 0.0 ? 1.0 / unit : 0.0);  // a feature may have been 0 in every row
        const D kappa = all(t.kappa < 0 ? 1.0 : static_cast<double>(cell[t.kappa]));
        D z[L], R[L];
        Curve curve[L];
        alignas(32) double plays[4 * L];
        for (int l = 0; l < L; ++l) {
            z[l] = wide_at(cell + t.z + 4 * l);
            R[l] = wide_at(cell + t.R + 4 * l);
            if constexpr (labelled) curve[l] = labelled_curve_of(c.play[l], limits, c.inverse[l], z[l], R[l], M, kappa);
            if constexpr (!labelled) curve[l] = curve_of(c.play[l], limits, c.inverse[l], z[l], R[l], M);
            store(plays + 4 * l, curve[l].x);
        }
        const D u = all(plays[leader]);
        for (int l = 0; l < L; ++l) {
            add_terms(c.play[l], curve[l].H, z[l], R[l], M, over_M, load(S + 4 * l), curve[l].x, u, sums[l]);
        }
        if (++met % CHUNK == 0) flush();
    });
    flush();
}

}  // namespace
}  // namespace FTPRL_ISA

#define FTPRL_LEDGERS_OF(T, labelled)                                                          \
    {FTPRL_ISA::ledger_of_scales<T, 1, labelled>, FTPRL_ISA::ledger_of_scales<T, 2, labelled>, \
     FTPRL_ISA::ledger_of_scales<T, 3, labelled>, FTPRL_ISA::ledger_of_scales<T, 4, labelled>}

const LedgerKernels FTPRL_LEDGERS = {
    {FTPRL_ISA::ledger<float>, FTPRL_ISA::ledger<double>},
    {{FTPRL_LEDGERS_OF(float, false), FTPRL_LEDGERS_OF(double, false)},
     {FTPRL_LEDGERS_OF(float, true), FTPRL_LEDGERS_OF(double, true)}},
};

}  // namespace ftprl
