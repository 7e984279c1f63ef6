#include "ledger.hpp"

#include <algorithm>
#include <cmath>

namespace ftprl {
namespace {

// h (Q + l2)
inline double hold(const Constants& c, double h, double R, double M) { return M * (c.beta * M + R) + h * c.l2; }

inline double play(const Constants& c, double h, double z, double held) {
    const double pull = std::max(std::fabs(z) - c.l1, 0.0);
    const double x = held > 0.0 ? std::copysign(pull, -z) * h / held : 0.0;
    return std::min(std::max(x, c.lower), c.upper);
}

// Of P lanes, those that no scale fills included: a fixed number of them goes together.
template <int P>
struct Lanes {
    double sums[LEDGER_SUMS][P] = {};
};

template <class T, int P>
inline void add_cell(const T* cell, const Table& t, const Constants& c, const double* h, const double* inverse, int leader,
                     Lanes<P>& to) {
    const double M = static_cast<double>(cell[t.unit]);
    const double led = static_cast<double>(cell[t.R + leader]);
    const double u = play(c, h[leader], static_cast<double>(cell[t.z + leader]), hold(c, h[leader], led, M));
    const double size = std::fabs(u), D = 2.0 * size, fixed = c.l1 * size, square = 0.5 * (u * u);
    for (int k = 0; k < P; ++k) {
        const double z = static_cast<double>(cell[t.z + k]);
        const double R = static_cast<double>(cell[t.R + k]);
        const double S = static_cast<double>(cell[t.S + k]);
        const double held = hold(c, h[k], R, M), x = play(c, h[k], z, held), H = held * inverse[k];
        const double Su = S * u, zu = z * u, half = H * square, unit = R / M;
        to.sums[0][k] += Su;
        to.sums[1][k] += half - (Su - zu) + fixed;
        to.sums[2][k] += (half + zu + fixed) - ((0.5 * H * x + z) * x + c.l1 * std::fabs(x));
        to.sums[3][k] += D * R;
        to.sums[4][k] += unit * unit;
        to.sums[5][k] += (D * M) * (D * M);
        to.sums[6][k] += std::fabs(Su) + half;
    }
}

// Few cells are added at a time, and these sums to the others: a long sum then keeps its digits.
constexpr std::int64_t CHUNK = 4096;
constexpr std::int64_t AHEAD = 32;

// What was learned of the coordinates `slots`, or of all, in their order.
template <class T, class Use>
inline void each_learned(const Table& t, const std::int64_t* slots, std::int64_t count, const Use& use) {
    const auto* base = static_cast<const unsigned char*>(t.cells);
    const auto at = [&](std::int64_t i) {
        const auto slot = static_cast<std::uint64_t>(slots == nullptr ? i : slots[i]);
        return base + (t.places == nullptr ? slot : (*t.places)[slot]) * t.bytes;
    };
    if (slots == nullptr) count = static_cast<std::int64_t>(t.dim);
    for (std::int64_t i = 0; i < count; ++i) {
#if defined(__GNUC__)
        if (i + AHEAD < count) __builtin_prefetch(at(i + AHEAD), 0, 0);
#endif
        const T* cell = reinterpret_cast<const T*>(at(i));
        if (cell[t.met] > T(0)) use(cell);
    }
}

template <class T, int P>
LedgerSums sums_of(const Table& t, const Constants& c, const double* h, int leader, const std::int64_t* slots,
                   std::int64_t count) {
    LedgerSums all;
    double inverse[P];
    for (int k = 0; k < P; ++k) inverse[k] = 1.0 / h[k];
    Lanes<P> part;
    std::int64_t met = 0;
    const auto flush = [&] {
        for (int j = 0; j < LEDGER_SUMS; ++j) {
            for (int k = 0; k < t.count; ++k) all.sums[j][k] += part.sums[j][k];
        }
        part = Lanes<P>();
    };
    each_learned<T>(t, slots, count, [&](const T* cell) {
        add_cell<T, P>(cell, t, c, h, inverse, leader, part);
        if (++met % CHUNK == 0) flush();
    });
    flush();
    return all;
}

template <class T>
LedgerSums sums_of(const Table& t, const Constants& c, const double* h, int leader, const std::int64_t* slots,
                   std::int64_t count) {
    if (t.count == 1 && !t.counts) return sums_of<T, 1>(t, c, h, leader, slots, count);
    if (t.count <= 4) return sums_of<T, 4>(t, c, h, leader, slots, count);
    if (t.count <= 8) return sums_of<T, 8>(t, c, h, leader, slots, count);
    if (t.count <= 12) return sums_of<T, 12>(t, c, h, leader, slots, count);
    return sums_of<T, MOST_LANES>(t, c, h, leader, slots, count);
}

template <class T>
LedgerGroups grouped(const Table& t, const Constants& c, const double* h, int leader, int scale) {
    LedgerGroups all;
    const double inverse = 1.0 / h[scale];
    each_learned<T>(t, nullptr, 0, [&](const T* cell) {
        const double M = static_cast<double>(cell[t.unit]);
        const double led = static_cast<double>(cell[t.R + leader]);
        const double u = play(c, h[leader], static_cast<double>(cell[t.z + leader]), hold(c, h[leader], led, M));
        const double z = static_cast<double>(cell[t.z + scale]), R = static_cast<double>(cell[t.R + scale]);
        const double Su = static_cast<double>(cell[t.S + scale]) * u, slope = R / M;
        const double seen = t.counts ? static_cast<double>(cell[t.met]) : slope * slope;
        int level = RAREST;
        if (seen >= 0x1p-19) level = std::isfinite(seen) ? std::ilogb(seen) : RAREST + GROUPS - 1;
        double* to = all.sums[std::min(level - RAREST, GROUPS - 1)];
        to[0] += 1.0;
        to[1] -= Su;
        to[2] += hold(c, h[scale], R, M) * inverse * (0.5 * (u * u)) - (Su - z * u) + c.l1 * std::fabs(u);
        to[3] += 2.0 * std::fabs(u) * R;
    });
    return all;
}

}  // namespace

LedgerGroups groups_of(const Table& table, const Constants& constants, const double* h, int leader, int scale) {
    return table.wide ? grouped<double>(table, constants, h, leader, scale)
                      : grouped<float>(table, constants, h, leader, scale);
}

void Calibration::add(const Rows& rows, const double* losses) {
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const double y = rows.y[r], weight = rows.weight[r];
        if (y != y || !(weight > 0.0)) continue;
        const double chance = std::exp(-losses[r]), p = y > 0.0 ? chance : 1.0 - chance;
        double* bin = bins[std::min(static_cast<int>(p * BINS), BINS - 1)];
        bin[0] += weight;
        bin[1] += weight * p;
        bin[2] += y > 0.0 ? weight : 0.0;
    }
}

LedgerSums ledger_of(const Table& table, const Constants& constants, const double* h, int leader,
                     const std::int64_t* slots, std::int64_t count) {
    return table.wide ? sums_of<double>(table, constants, h, leader, slots, count)
                      : sums_of<float>(table, constants, h, leader, slots, count);
}

}  // namespace ftprl
