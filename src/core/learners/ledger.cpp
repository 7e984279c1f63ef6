#include "learners/ledger.hpp"

#include "learners/classes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace ftprl {
namespace {

constexpr int PARTS = 16;
constexpr std::int64_t LONG = 1 << 17;

// h (Q + l2 M²)
inline double scaled_strength(const Constants& c, double h, double R, double M, double kappa) {
    if (!(kappa > 0.0)) return h * c.l2 * (M * M);  // met, but never learned
    return M * (c.beta * M + R) / kappa + h * c.l2 * (M * M);
}

inline double play(const Constants& c, std::uint64_t cell, double h, double z, double M, double strength) {
    const double pull = std::max(std::fabs(z) - c.l1 * M, 0.0);
    const double x = strength > 0.0 ? std::copysign(pull, -z) * h / strength : 0.0;
    const double global[2] = {c.lower, c.upper};
    const double* ends = c.boxes.kinds == nullptr ? global : c.boxes.ends[c.boxes.kinds[cell]];
    return std::min(std::max(x, ends[0]), ends[1]);
}

inline void fetch(const void* p) {
#if defined(__GNUC__)
    __builtin_prefetch(p, 0, 3);
#else
    (void)p;
#endif
}

#include "learners/learned.inl"

// The table's coordinates in equal parts, each with a sum of its own, whatever list of coordinates they are taken from:
// a list may have some that were never learned. Of a long one another thread does some parts: whoever is free the next.
template <class Sums, class Work>
Sums in_parts(const CellTable& table, const std::int64_t* slots, std::int64_t size, const Work& work) {
    std::array<Sums, PARTS> sums;
    std::atomic<int> next{0};
    const std::int64_t count = slots == nullptr ? static_cast<std::int64_t>(table.dim) : size;
    const auto begin = [&](int k) -> std::int64_t {
        const auto slot = static_cast<std::int64_t>(table.dim / PARTS * static_cast<std::uint64_t>(k));
        if (k == PARTS) return count;
        return slots == nullptr ? slot : std::lower_bound(slots, slots + size, slot) - slots;
    };
    const auto help = [&] {
        for (int k = next++; k < PARTS; k = next++)
            work({slots, begin(k), begin(k + 1)}, sums[static_cast<std::size_t>(k)]);
    };
    std::optional<std::thread> other;
    try {
        if (count >= LONG) other.emplace(help);
    } catch (const std::system_error&) {  // none is to be had
    }
    help();
    if (other) other->join();
    for (std::size_t k = 1; k < sums.size(); ++k) {
        const auto* from = &sums[k].sums[0][0];
        auto* to = &sums[0].sums[0][0];
        for (std::size_t i = 0; i < sizeof sums[0].sums / sizeof *to; ++i) to[i] += from[i];
    }
    return sums[0];
}

template <class T>
void grouped(const CellTable& t, const Constants& c, const double* h, int scales, int leader, int scale,
             const Coordinates& which, LedgerGroups& all) {
    const double inverse = 1.0 / h[scale];
    const auto add = [&](const T* cell, const double* S, std::uint64_t number, int column) {
        const double copies = column + 1 == t.columns ? t.copies : 1.0;
        const T *all_z = cell + t.z + column * scales, *all_R = cell + t.R + column * scales;
        const double M = static_cast<double>(cell[t.unit]);
        const double kappa = t.kappa < 0 ? 1.0 : static_cast<double>(cell[t.kappa]);
        const double led = static_cast<double>(all_R[leader]);
        const double u = play(c, number, h[leader], static_cast<double>(all_z[leader]), M,
                              scaled_strength(c, h[leader], led, M, kappa));
        const double z = static_cast<double>(all_z[scale]), R = static_cast<double>(all_R[scale]);
        const double Su = S[column * scales + scale] * u, slope = R / M;
        const double seen = t.counts ? static_cast<double>(cell[t.met]) : slope * slope;
        int level = RAREST;
        if (seen >= 0x1p-19) level = std::isfinite(seen) ? std::ilogb(seen) : RAREST + GROUPS - 1;
        double* to = all.sums[std::min(level - RAREST, GROUPS - 1)];
        to[0] += copies;
        to[1] -= copies * Su;
        to[2] += copies * (scaled_strength(c, h[scale], R, M, kappa) * inverse * (0.5 * (u * u)) - (Su - z * u) +
                           c.l1 * M * std::fabs(u));
        to[3] += copies * (2.0 * std::fabs(u) * R);
    };
    each_learned<T>(t, which, [&](const T* cell, const double* S, std::uint64_t number) {
        for (int column = 0; column < t.columns; ++column) add(cell, S, number, column);
    });
}

}  // namespace

LedgerGroups groups_of(const CellTable& table, const Constants& constants, const double* h, int scales, int leader,
                       int scale) {
    const auto group = table.wide ? grouped<double> : grouped<float>;
    return in_parts<LedgerGroups>(table, nullptr, 0, [&](const Coordinates& which, LedgerGroups& out) {
        group(table, constants, h, scales, leader, scale, which, out);
    });
}

void Calibration::add(const Rows& rows, const double* losses) {
    for (std::int64_t r = 0; r < rows.count; ++r) {
        const double y = rows.y[r], weight = rows.weight[r];
        // Rows that repeat a coordinate may have no loss: it is no number, and no bin is theirs.
        if (y != y || !(weight > 0.0) || losses[r] != losses[r]) continue;
        const double chance = std::exp(-losses[r]), p = y > 0.0 ? chance : 1.0 - chance;
        // Written so that NaN has a bin too: the losses are the caller's array, which another thread may write.
        const double place = p * BINS > 0.0 ? p * BINS : 0.0;
        double* bin = bins[place < BINS - 1.0 ? static_cast<int>(place) : BINS - 1];
        bin[0] += weight;
        bin[1] += weight * p;
        bin[2] += y > 0.0 ? weight : 0.0;
    }
}

LedgerSums ledger_of(const Kernels& kernels, const CellTable& table, const Constants& constants,
                     const std::int64_t* slots, std::int64_t count) {
    const auto add = kernels.ledgers->one[table.wide];
    return in_parts<LedgerSums>(table, slots, count,
                                [&](const Coordinates& which, LedgerSums& out) { add(table, constants, which, out); });
}

LedgerSums ledger_of(const Kernels& kernels, const CellTable& table, const ScaleConstants& constants, int leader,
                     const std::int64_t* slots, std::int64_t count) {
    const auto add =
        kernels.ledgers
            ->several[constants.base.loss->rule != LabelRule::none][table.wide][(constants.count + 3) / 4 - 1];
    return in_parts<LedgerSums>(table, slots, count, [&](const Coordinates& which, LedgerSums& out) {
        add(table, constants, leader, which, out);
    });
}

LedgerSums ledger_of(const Kernels& kernels, const CellTable& table, const ClassConstants& constants, int leader,
                     const std::int64_t* slots, std::int64_t count) {
    const auto add = kernels.classes->of[table.wide].ledger;
    return in_parts<LedgerSums>(table, slots, count, [&](const Coordinates& which, LedgerSums& out) {
        std::vector<double> buffer(static_cast<std::size_t>(LEDGER_NUMBERS * constants.lanes));
        add(table, constants, leader, which, out, buffer.data());
    });
}

}  // namespace ftprl
