#include "learn/ledger.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cfloat>
#include <cmath>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace ftprl {
namespace {

constexpr int PARTS = 16;
constexpr std::int64_t LONG = 1 << 17;
// Few cells are added at a time, and these sums to the others: a long sum then keeps its digits.
constexpr std::int64_t CHUNK = 4096;

// Some coordinates of a table: numbers `from` to `to` of a list, or of all when it is null.
struct Coordinates {
    const std::int64_t* slots;
    std::int64_t from, to;
};

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

constexpr std::int64_t TOGETHER = 1024;
constexpr int NEXT = 16;

// What was learned of the coordinates, cells with their S and their numbers, in their order. Those that have a cell are
// looked up some at a time: in a large table few have, and a branch on each would often be wrong.
template <class T, class Use>
inline void each_learned(const CellTable& t, const Coordinates& which, const Use& use) {
    const auto* base = static_cast<const unsigned char*>(t.cells);
    std::uint64_t cells[TOGETHER + NEXT];
    for (std::int64_t from = which.from; from < which.to; from += TOGETHER) {
        const std::int64_t to = from + TOGETHER < which.to ? from + TOGETHER : which.to;
        std::int64_t size = 0;
        for (std::int64_t i = from; i < to; ++i) {
            const auto slot = static_cast<std::uint64_t>(which.slots == nullptr ? i : which.slots[i]);
            cells[size] = t.slot_map == nullptr ? slot : t.slot_map[slot];
            size += t.slot_map == nullptr || cells[size] != 0 ? 1 : 0;
        }
        for (int k = 0; k < NEXT; ++k) cells[size + k] = 0;
        for (std::int64_t j = 0; j < size; ++j) {
            const unsigned char* next = base + cells[j + NEXT] * t.bytes;
            fetch(next);
            if (t.bytes > 64) fetch(next + 64);
            const T* cell = reinterpret_cast<const T*>(base + cells[j] * t.bytes);
            if (cell[t.met] > T(0)) use(cell, t.S.first + cells[j] * t.S.stride, cells[j]);
        }
    }
}

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
void grouped(const CellTable& t, const Constants& c, int leader, int scale, const Coordinates& which,
             LedgerGroups& all) {
    const double* h = c.h;
    const int scales = c.count;
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

// ---- the play of a lane, by the operations of the kernels in the same order ----

inline double larger(double a, double b) { return a > b ? a : b; }
inline double smaller(double a, double b) { return a < b ? a : b; }

// One scale of a column of classes: its constants, and whether labels are in any unit.
struct Lane {
    double h, inverse, hl2;
    bool labelled;
};

inline Lane lane_of(const Constants& c, int lane) {
    const double h = c.h[lane % c.count];
    return {h, 1.0 / h, h * c.l2, c.loss->rule != LabelRule::none};
}

// What one lane of a cell holds, and between which numbers its weight has to be.
struct LaneCell {
    double z, R, M, kappa, lower, upper;
};

template <class T>
inline LaneCell lane_cell(const CellTable& t, const Constants& c, const T* cell, std::uint64_t number, int lane) {
    const double* own = c.boxes.kinds == nullptr ? nullptr : c.boxes.ends[c.boxes.kinds[number]];
    return {static_cast<double>(cell[t.z + lane]), static_cast<double>(cell[t.R + lane]),
            static_cast<double>(cell[t.unit]),     t.kappa < 0 ? 1.0 : static_cast<double>(cell[t.kappa]),
            own == nullptr ? c.lower : own[0],     own == nullptr ? c.upper : own[1]};
}

inline double play_of(const Constants& c, const Lane& lane, const LaneCell& a, bool unconstrained) {
    const double pull = larger(std::fabs(a.z) - c.l1 * a.M, 0.0), hQ = a.M * (c.beta * a.M + a.R);
    double x = 0.0;
    if (lane.labelled) {
        const double rate = smaller(hQ > 0.0 ? lane.h / hQ : 0.0, DBL_MAX);
        if (unconstrained) return -(a.z * rate) * a.kappa;
        const double own = smaller(rate * a.kappa, DBL_MAX);
        x = std::copysign(pull, -a.z) * (own / (1.0 + own * (lane.hl2 / lane.h * (a.M * a.M))));
    } else {
        const double strength = hQ + lane.hl2 * (a.M * a.M);
        if (strength > 0.0) x = std::copysign(pull, a.z) * -lane.h / strength;
    }
    return smaller(larger(x, a.lower), a.upper);
}

// Q + l2 M²
inline double curvature_of(const Constants& c, const Lane& lane, const LaneCell& a) {
    const double hQ = a.M * (c.beta * a.M + a.R);
    if (!lane.labelled) return (hQ + lane.hl2 * (a.M * a.M)) * lane.inverse;
    const double over_kappa = a.kappa > 0.0 ? 1.0 / a.kappa : 0.0;
    return hQ * lane.inverse * over_kappa + lane.hl2 * lane.inverse * (a.M * a.M);
}

// Add the terms of one lane of a cell to the sums of LEDGER_SUMS. `u` is the fixed weight that the run is compared
// with; `S_seen` is the sum S for fixed weights of the classes that came.
inline void add_terms(const Constants& c, const LaneCell& a, double H, double S, double S_seen, double x, double u,
                      double* sums) {
    const double over_M = a.M > 0.0 ? 1.0 / a.M : 0.0;  // a feature may have been 0 in every row
    const double size_u = std::fabs(u), width = size_u + size_u, fixed = c.l1 * a.M * size_u;
    const double Su = S * u, zu = a.z * u, half = H * (0.5 * (u * u)), slope = a.R * over_M, side = width * a.M;
    const double half_x = 0.5 * H * x, fixed_x = c.l1 * a.M * std::fabs(x), pull = S_seen * over_M;
    sums[0] += Su;
    sums[1] += half - (Su - zu) + fixed;
    sums[2] += (half + zu + fixed) - ((half_x + a.z) * x + fixed_x);
    sums[3] += width * a.R;
    sums[4] += slope * slope;
    sums[5] += side * side;
    sums[6] += (std::fabs(Su) + std::fabs(zu) + half + fixed) +
               ((std::fabs(half_x) + std::fabs(a.z)) * std::fabs(x) + fixed_x);
    sums[7] += size_u * a.M;
    sums[8] += 1.0;
    sums[9] += pull * pull;
}

// Sums over the cells of a chunk by lane; those of one scale over every fourth cell, from the first, the second, ...
// on.
template <class T>
void add_ledger(const CellTable& t, const Constants& c, int leader, const Coordinates& which, LedgerSums& all) {
    using Sums = std::array<double, LEDGER_SUMS>;
    const int K = c.count, lanes = t.columns * K;
    const std::size_t groups = lanes == 1 && t.slot_map == nullptr ? 4 : 1;
    std::vector<Lane> lane;
    for (int l = 0; l < lanes; ++l) lane.push_back(lane_of(c, l));
    std::vector<Sums> sums(groups * static_cast<std::size_t>(lanes));
    std::vector<double> plays(lane.size());
    std::size_t met = 0;
    const auto flush = [&] {
        for (int l = 0; l < lanes; ++l) {
            const double copies = l / K + 1 == t.columns ? t.copies : 1.0;
            const Sums* own = &sums[static_cast<std::size_t>(l)];
            for (std::size_t j = 0; j < LEDGER_SUMS; ++j) {
                const double sum = groups == 1 ? own[0][j] : (own[0][j] + own[1][j]) + (own[2][j] + own[3][j]);
                all.sums[j][l % K] += copies * sum;
            }
        }
        std::fill(sums.begin(), sums.end(), Sums{});
    };
    each_learned<T>(t, which, [&](const T* cell, const double* S, std::uint64_t number) {
        for (std::size_t l = 0; l < lane.size(); ++l) {
            plays[l] = play_of(c, lane[l], lane_cell(t, c, cell, number, static_cast<int>(l)), false);
        }
        Sums* to = &sums[met % groups];
        for (int l = 0; l < lanes; ++l) {
            const auto at = static_cast<std::size_t>(l);
            const LaneCell own = lane_cell(t, c, cell, number, l);
            const double u = plays[static_cast<std::size_t>(l / K * K + leader)];
            double S_seen = S[l];
            if (t.missing > 0.0) S_seen = l >= lanes - K ? 0.0 : S[l] + t.missing * S[lanes - K + l % K];
            add_terms(c, own, curvature_of(c, lane[at], own), S[l], S_seen, plays[at], u, to[at].data());
        }
        if (++met % CHUNK == 0) flush();
    });
    flush();
}

template <class T>
std::size_t put_touched(const CellTable& t, std::uint32_t* out) {
    constexpr std::uint64_t AHEAD = 64;
    const auto* base = static_cast<const unsigned char*>(t.cells);
    const auto met = [&](std::uint64_t slot) {
        return reinterpret_cast<const T*>(base + t.slot_map[slot] * t.bytes) + t.met;
    };
    std::size_t count = 0;
    for (std::uint64_t i = 0; i < t.dim; ++i) {
        if (i + AHEAD < t.dim) fetch(met(i + AHEAD));
        if (t.slot_map[i] != 0 && *met(i) > T(0)) out[count++] = static_cast<std::uint32_t>(i);
    }
    return count;
}

template <class T>
void put_weights(const CellTable& t, const Constants& constants, int number, double* out) {
    const Lane lane = lane_of(constants, number);
    const auto* base = static_cast<const unsigned char*>(t.cells);
    for (std::uint64_t i = 0; i < t.dim; ++i) {
        const std::uint64_t at = t.slot_map == nullptr ? i : t.slot_map[i];
        const T* cell = reinterpret_cast<const T*>(base + at * t.bytes);
        out[i] = play_of(constants, lane, lane_cell(t, constants, cell, at, number), constants.unconstrained);
    }
}

}  // namespace

LedgerGroups groups_of(const CellTable& table, const Constants& constants, int leader, int scale) {
    const auto group = table.wide ? grouped<double> : grouped<float>;
    return in_parts<LedgerGroups>(table, nullptr, 0, [&](const Coordinates& which, LedgerGroups& out) {
        group(table, constants, leader, scale, which, out);
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

LedgerSums ledger_of(const CellTable& table, const Constants& constants, int leader, const std::int64_t* slots,
                     std::int64_t count) {
    const auto add = table.wide ? add_ledger<double> : add_ledger<float>;
    return in_parts<LedgerSums>(table, slots, count, [&](const Coordinates& which, LedgerSums& out) {
        add(table, constants, leader, which, out);
    });
}

std::size_t touched_of(const CellTable& table, std::uint32_t* out) {
    return table.wide ? put_touched<double>(table, out) : put_touched<float>(table, out);
}

void weights_of(const CellTable& table, const Constants& constants, int lane, double* out) {
    return table.wide ? put_weights<double>(table, constants, lane, out)
                      : put_weights<float>(table, constants, lane, out);
}

}  // namespace ftprl
