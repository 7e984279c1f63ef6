// What the bindings of both learners share: one scale or several, they have the same door.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "learners/kernel.hpp"
#include "learners/ledger.hpp"

namespace ftprl::bindings {

namespace nb = nanobind;

template <class T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Target = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The arrays of a batch as the core wants them, lengths checked.
struct Entries {
    Rows rows;
    std::int64_t size;
    bool wide;
};

inline Entries entries_of(const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices,
                          const Values& values) {
    const bool wide = values.dtype() == nb::dtype<double>();
    if (!wide && values.dtype() != nb::dtype<float>()) throw nb::type_error("values must be float32 or float64");
    if (indptr.size() == 0) throw nb::value_error("indptr needs one number more than there are rows, got none");
    if (values.size() != indices.size()) {
        throw nb::value_error(("indices and values need one length, got " + std::to_string(indices.size()) + " and " +
                               std::to_string(values.size()))
                                  .c_str());
    }
    const auto count = static_cast<std::int64_t>(indptr.size()) - 1;
    const Rows rows{count, indptr.data(), indices.data(), values.data(), nullptr, nullptr};
    return {rows, static_cast<std::int64_t>(indices.size()), wide};
}

inline void check_length(const char* name, std::size_t got, std::int64_t rows) {
    if (static_cast<std::int64_t>(got) == rows) return;
    throw nb::value_error((std::string(name) + " needs a number for each of the " + std::to_string(rows) +
                           " rows, got " + std::to_string(got))
                              .c_str());
}

inline double* data_of(const char* name, std::optional<Target>& target, std::int64_t rows) {
    if (!target) return nullptr;
    check_length(name, target->size(), rows);
    return target->data();
}

inline void raise_fault(const std::string& fault) {
    if (!fault.empty()) throw nb::value_error(fault.c_str());
}

template <class L>
nb::tuple learn(L& learner, const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices,
                const Values& values, const Column<double>& y, const Column<double>& weight,
                std::optional<Target> scores, std::optional<Target> losses, std::int64_t first_row) {
    Entries e = entries_of(indptr, indices, values);
    check_length("y", y.size(), e.rows.count);
    check_length("weight", weight.size(), e.rows.count);
    e.rows.y = y.data();
    e.rows.weight = weight.data();
    const Out out{data_of("scores", scores, e.rows.count), data_of("losses", losses, e.rows.count)};
    std::string fault;
    Totals totals{};
    {
        const nb::gil_scoped_release free;
        fault = learner.fault(e.rows, e.wide, e.size, true, first_row);
        if (fault.empty()) totals = learner.learn(e.rows, e.wide, out);
    }
    raise_fault(fault);
    return nb::make_tuple(totals.loss, totals.weight, totals.rows);
}

template <class L>
void score(const L& learner, const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices,
           const Values& values, const Target& scores, std::int64_t first_row) {
    const Entries e = entries_of(indptr, indices, values);
    check_length("scores", scores.size(), e.rows.count);
    std::string fault;
    {
        const nb::gil_scoped_release free;
        fault = learner.fault(e.rows, e.wide, e.size, false, first_row);
        if (fault.empty()) learner.score(e.rows, e.wide, scores.data());
    }
    raise_fault(fault);
}

using SlotList = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The sums of a receipt over the cells at `slots` (or all), a row a sum and a column a scale, into `out`.
template <class L, class Ask>
void ledger(const L& learner, const nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& out, int count,
            const std::optional<SlotList>& slots, const Ask& ask) {
    if (!learner.receipt()) throw nb::value_error("a ledger needs a learner with a receipt");
    if (out.shape(0) != LEDGER_SUMS || static_cast<int>(out.shape(1)) != count) {
        throw nb::value_error("out needs a row a sum and a column a scale");
    }
    const std::int64_t* at = slots ? slots->data() : nullptr;
    const auto size = static_cast<std::int64_t>(slots ? slots->size() : 0);
    for (std::int64_t i = 0; i < size; ++i) {
        if (at[i] < 0 || static_cast<std::uint64_t>(at[i]) >= learner.dim())
            throw nb::value_error("a slot is outside the table");
    }
    const nb::gil_scoped_release free;
    const LedgerSums found = ask(at, size);
    for (int j = 0; j < LEDGER_SUMS; ++j) {
        for (int k = 0; k < count; ++k) out.data()[j * count + k] = found.sums[j][k];
    }
}

using Groups = nb::ndarray<double, nb::shape<GROUPS, 4>, nb::c_contig, nb::device::cpu>;

// The cells by how often they were seen, into `out`.
template <class L, class Ask>
void groups(const L& learner, const Groups& out, const Ask& ask) {
    if (!learner.receipt()) throw nb::value_error("a ledger needs a learner with a receipt");
    const nb::gil_scoped_release free;
    const LedgerGroups found = ask();
    std::copy(&found.sums[0][0], &found.sums[0][0] + GROUPS * 4, out.data());
}

template <class L>
nb::object calibration_of(nb::handle self) {
    auto& learner = nb::cast<L&>(self);
    return nb::cast(nb::ndarray<nb::numpy, double>(&learner.calibration().bins[0][0], {BINS, 3}, self));
}

template <class L>
std::size_t touched_of(const L& learner,
                       const nb::ndarray<std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& out) {
    if (out.size() != learner.dim()) throw nb::value_error("out needs a number for each cell");
    const nb::gil_scoped_release free;
    return learner.touched(out.data());
}

}  // namespace ftprl::bindings
