// The phases of a round of several rows for Python, for tables that are spread over several processes.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "learners/learner.hpp"

namespace nb = nanobind;

namespace {

using ftprl::Learner;
using ftprl::Numbering;
using ftprl::SlotNumbers;
using ftprl::bindings::check_length;
using ftprl::bindings::Column;
using ftprl::bindings::Target;
using ftprl::bindings::Values;

using Slots = nb::ndarray<std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// ---- checks ----

void check_slots(const Learner& learner, const Column<std::uint32_t>& slots) {
    const bool fit = std::all_of(slots.data(), slots.data() + slots.size(),
                                 [&](std::uint32_t slot) { return slot < learner.dim(); });
    if (!fit) throw nb::value_error("a slot is outside the table");
}

template <class Array>
void check_lanes(const Learner& learner, const char* name, const Array& array, std::size_t rows) {
    if (array.shape(0) == rows && array.shape(1) == static_cast<std::size_t>(learner.round_stride())) return;
    throw nb::value_error((std::string(name) + " needs " + std::to_string(rows) + " rows of " +
                           std::to_string(learner.round_stride()) + " numbers")
                              .c_str());
}

void check_loss(const Learner& learner) {
    if (learner.labelled() || learner.has_classes()) throw nb::value_error("rounds need the log loss");
}

void check_indptr(const Column<std::int64_t>& indptr, std::size_t entries) {
    const std::int64_t* at = indptr.data();
    bool rises = indptr.size() > 0 && at[0] == 0 && at[indptr.size() - 1] == static_cast<std::int64_t>(entries);
    for (std::size_t r = 0; rises && r + 1 < indptr.size(); ++r) rises = at[r] <= at[r + 1];
    if (!rises) throw nb::value_error("indptr needs to run from 0 to the number of entries");
}

ftprl::RoundRows rows_of(const Column<std::int64_t>& indptr, const Column<std::uint32_t>& coordinates,
                         const Column<double>& values, std::size_t count) {
    check_indptr(indptr, coordinates.size());
    check_length("values", values.size(), static_cast<std::int64_t>(coordinates.size()));
    const bool fit = std::all_of(coordinates.data(), coordinates.data() + coordinates.size(),
                                 [&](std::uint32_t i) { return i < count; });
    if (!fit) throw nb::value_error("a coordinate is none of the round");
    return {static_cast<std::int64_t>(indptr.size()) - 1,
            indptr.data(),
            coordinates.data(),
            values.data(),
            nullptr,
            nullptr};
}

ftprl::Rows rows_of(const Learner* learner, const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices,
                    const Values& values, const Column<double>& y, const Column<double>& weight, bool& wide) {
    wide = values.dtype() == nb::dtype<double>();
    if (!wide && values.dtype() != nb::dtype<float>()) throw nb::type_error("values must be float32 or float64");
    check_indptr(indptr, indices.size());
    check_length("values", values.size(), static_cast<std::int64_t>(indices.size()));
    const auto count = static_cast<std::int64_t>(indptr.size()) - 1;
    check_length("y", y.size(), count);
    check_length("weight", weight.size(), count);
    if (learner != nullptr) check_slots(*learner, indices);
    return {count, indptr.data(), indices.data(), values.data(), y.data(), weight.data()};
}

// ---- the coordinates of a round ----

template <class T>
nb::object copy_of(const std::vector<T>& numbers) {
    auto* own = new T[std::max<std::size_t>(1, numbers.size())];
    std::copy(numbers.begin(), numbers.end(), own);
    const nb::capsule owner(own, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(own, {numbers.size()}, owner));
}

void bind_slot_numbers(nb::module_& m) {
    nb::class_<SlotNumbers>(m, "SlotNumbers", "Numbers for slots of a table, in the order in which they are first met.")
        .def(nb::init<std::uint64_t>(), nb::arg("dim"))
        .def("clear", &SlotNumbers::clear, "Forget all numbers.")
        .def("__len__", [](const SlotNumbers& self) { return self.slots().size(); })
        .def(
            "number",
            [](SlotNumbers& self, const Column<std::uint32_t>& slots, const Slots& out) {
                check_length("out", out.size(), static_cast<std::int64_t>(slots.size()));
                const bool fit = std::all_of(slots.data(), slots.data() + slots.size(),
                                             [&](std::uint32_t slot) { return slot < self.dim(); });
                if (!fit) throw nb::value_error("a slot is outside the table");
                const nb::gil_scoped_release free;
                self.number(slots.data(), slots.size(), out.data());
            },
            nb::arg("slots").noconvert(), nb::arg("out").noconvert(),
            "Write the numbers of slots; one that has none gets the next.")
        .def_prop_ro(
            "slots", [](const SlotNumbers& self) { return copy_of(self.slots()); }, "The slots by their numbers.");
}

void bind_numbering(nb::module_& m) {
    nb::class_<Numbering>(m, "RoundNumbering",
                          "The coordinates of some rows, numbered in the order in which learned rows first have them.")
        .def(nb::init<std::uint64_t>(), nb::arg("dim"))
        .def("clear", &Numbering::clear, "Forget all rows.")
        .def(
            "add",
            [](Numbering& self, const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices,
               const Values& values, const Column<double>& y, const Column<double>& weight, std::int64_t block) {
                bool wide = false;
                const ftprl::Rows rows = rows_of(nullptr, indptr, indices, values, y, weight, wide);
                for (std::size_t p = 0; p < indices.size(); ++p) {
                    if (indices.data()[p] >= self.dim()) throw nb::value_error("a slot is outside the table");
                }
                if (block < 1) throw nb::value_error("a block needs at least one row");
                const nb::gil_scoped_release free;
                self.add(rows, wide, block);
            },
            nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
            nb::arg("y").noconvert(), nb::arg("weight").noconvert(), nb::arg("block") = ftprl::ROUND_BLOCK,
            "Add rows behind those that are there; their learned ones are blocks of `block` rows.")
        .def_prop_ro(
            "slots", [](const Numbering& self) { return copy_of(self.slots()); }, "The slot of each coordinate.")
        .def_prop_ro(
            "rows", [](const Numbering& self) { return copy_of(self.rows()); },
            "How many entries of learned rows have each coordinate.")
        .def_prop_ro(
            "largest", [](const Numbering& self) { return copy_of(self.largest()); }, "The largest |value| in these.")
        .def_prop_ro(
            "squares", [](const Numbering& self) { return copy_of(self.squares()); },
            "The sum of the squares of these values.")
        .def_prop_ro(
            "coordinates", [](const Numbering& self) { return copy_of(self.coordinates()); },
            "The number of the coordinate of each entry.")
        .def_prop_ro(
            "values", [](const Numbering& self) { return copy_of(self.values()); }, "The values in float64.")
        .def_prop_ro(
            "next_hot", [](const Numbering& self) { return copy_of(self.next_hot()); },
            "The slots that at least half of the learned rows have, in order.");
}

// ---- phases ----

// Where the table of a learner has the coordinates with these slots: there, or at slots of its own.
const std::uint32_t* local_slots_of(const Learner& learner, const Column<std::uint32_t>& slots,
                                    const std::optional<Column<std::uint32_t>>& local_slots) {
    if (local_slots) check_length("local_slots", local_slots->size(), static_cast<std::int64_t>(slots.size()));
    check_slots(learner, local_slots ? *local_slots : slots);
    return local_slots ? local_slots->data() : nullptr;
}

void play_round(Learner& learner, const Column<std::uint32_t>& slots, const Column<double>& rows,
                const Column<double>& largest, const Column<double>& squares, const Target<2>& x,
                const std::optional<Column<std::uint32_t>>& local_slots) {
    check_loss(learner);
    const auto count = static_cast<std::int64_t>(slots.size());
    const std::uint32_t* where = local_slots_of(learner, slots, local_slots);
    check_length("rows", rows.size(), count);
    check_length("largest", largest.size(), count);
    check_length("squares", squares.size(), count);
    check_lanes(learner, "x", x, slots.size());
    const nb::gil_scoped_release free;
    learner.play_round({count, slots.data(), nullptr, rows.data(), largest.data(), squares.data(), 0.0, where},
                       x.data());
}

void score_round(const Learner& learner, const Column<std::int64_t>& indptr, const Column<std::uint32_t>& coordinates,
                 const Column<double>& values, const Matrix& x, const Target<2>& scores) {
    const ftprl::RoundRows rows = rows_of(indptr, coordinates, values, x.shape(0));
    check_lanes(learner, "x", x, x.shape(0));
    check_lanes(learner, "scores", scores, static_cast<std::size_t>(rows.count));
    const nb::gil_scoped_release free;
    learner.score_round(rows, x.data(), scores.data());
}

nb::tuple chain_round(Learner& learner, const Column<double>& y, const Column<double>& weight,
                      const Column<std::int64_t>& hot_indptr, const Column<std::uint32_t>& hot_slots,
                      const Column<double>& hot_values, const Matrix& scores, const Target<2>& slopes,
                      const std::optional<Target<1>>& predictions, const std::optional<Target<1>>& losses,
                      bool mixture) {
    check_loss(learner);
    const auto count = static_cast<std::int64_t>(y.size());
    check_length("weight", weight.size(), count);
    check_length("hot_indptr", hot_indptr.size(), count + 1);
    check_indptr(hot_indptr, hot_slots.size());
    check_length("hot_values", hot_values.size(), static_cast<std::int64_t>(hot_slots.size()));
    check_slots(learner, hot_slots);
    check_lanes(learner, "scores", scores, y.size());
    check_lanes(learner, "slopes", slopes, y.size());
    if (predictions) check_length("predictions", predictions->size(), count);
    if (losses) check_length("losses", losses->size(), count);
    const ftprl::RoundRows rows = {count, nullptr, nullptr, nullptr, y.data(), weight.data()};
    ftprl::RowOutputs out{};
    out.scores = predictions ? predictions->data() : nullptr;
    out.losses = losses ? losses->data() : nullptr;
    learner.choose_parts(true, mixture);
    ftprl::Totals totals{};
    {
        const nb::gil_scoped_release free;
        totals = learner.chain_round(rows, hot_indptr.data(), hot_slots.data(), hot_values.data(), scores.data(), out,
                                     slopes.data());
    }
    return nb::make_tuple(totals.loss, totals.weight, totals.rows);
}

void sum_round(const Learner& learner, const Column<std::int64_t>& indptr, const Column<std::uint32_t>& coordinates,
               const Column<double>& values, const Column<double>& y, const Column<double>& weight,
               const Matrix& slopes, const Target<2>& sums) {
    ftprl::RoundRows rows = rows_of(indptr, coordinates, values, sums.shape(0));
    check_length("y", y.size(), rows.count);
    check_length("weight", weight.size(), rows.count);
    rows.y = y.data();
    rows.weight = weight.data();
    check_lanes(learner, "slopes", slopes, static_cast<std::size_t>(rows.count));
    check_lanes(learner, "sums", sums, sums.shape(0));
    const nb::gil_scoped_release free;
    learner.sum_round(rows, slopes.data(), sums.data());
}

// As large as ShardSums.
using ShardArray = Target<3>;

ftprl::ShardSums& shards_of(const ShardArray& sums) {
    if (sums.shape(0) != ftprl::SHARDS || sums.shape(1) != ftprl::STEP_SUMS || sums.shape(2) != ftprl::MOST_SCALES)
        throw nb::value_error("sums need the shape (64, 6, 16)");
    return *reinterpret_cast<ftprl::ShardSums*>(sums.data());
}

void step_round(Learner& learner, const Column<std::uint32_t>& slots, const Column<double>& rows,
                const Column<double>& largest, double heaviest, const Matrix& x, const Matrix& g,
                const ShardArray& sums, const std::optional<Column<std::uint32_t>>& local_slots) {
    check_loss(learner);
    const auto count = static_cast<std::int64_t>(slots.size());
    const std::uint32_t* where = local_slots_of(learner, slots, local_slots);
    check_length("rows", rows.size(), count);
    check_length("largest", largest.size(), count);
    check_lanes(learner, "x", x, slots.size());
    check_lanes(learner, "g", g, slots.size());
    ftprl::ShardSums& to = shards_of(sums);
    const nb::gil_scoped_release free;
    learner.step_round({count, slots.data(), nullptr, rows.data(), largest.data(), nullptr, heaviest, where}, x.data(),
                       g.data(), to);
}

nb::tuple learn_round(Learner& learner, const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices,
                      const Values& values, const Column<double>& y, const Column<double>& weight,
                      const std::optional<Target<1>>& predictions, const std::optional<Target<1>>& losses,
                      std::int64_t block) {
    check_loss(learner);
    bool wide = false;
    const ftprl::Rows rows = rows_of(&learner, indptr, indices, values, y, weight, wide);
    if (block < 1) throw nb::value_error("a block needs at least one row");
    if (predictions) check_length("predictions", predictions->size(), rows.count);
    if (losses) check_length("losses", losses->size(), rows.count);
    ftprl::RowOutputs out{};
    out.scores = predictions ? predictions->data() : nullptr;
    out.losses = losses ? losses->data() : nullptr;
    learner.choose_parts(true, true);
    ftprl::Totals totals{};
    {
        const nb::gil_scoped_release free;
        totals = learner.learn_round(rows, wide, out, block);
    }
    return nb::make_tuple(totals.loss, totals.weight, totals.rows);
}

void count_round(Learner& learner, const Column<double>& y, const Column<double>& weight,
                 const Column<double>& losses) {
    const auto count = static_cast<std::int64_t>(y.size());
    check_length("weight", weight.size(), count);
    check_length("losses", losses.size(), count);
    learner.count_round({count, nullptr, nullptr, nullptr, y.data(), weight.data()}, losses.data());
}

void set_hot(Learner& learner, const Column<std::uint32_t>& slots) {
    check_slots(learner, slots);
    std::vector<std::uint32_t> own(slots.data(), slots.data() + slots.size());
    std::sort(own.begin(), own.end());
    learner.set_hot(std::move(own));
}

}  // namespace

void ftprl::bindings::bind_rounds(nb::module_& m) {
    bind_numbering(m);
    bind_slot_numbers(m);
    const auto array = [](const char* name) { return nb::arg(name).noconvert(); };
    m.def("play_round", &play_round, nb::arg("learner"), array("slots"), array("rows"), array("largest"),
          array("squares"), array("x"), array("local_slots").none() = nb::none(),
          "Raise the units of coordinates by what the rows of a round have of them, and write what they play. "
          "`local_slots` "
          "are where the table has the coordinates, if not at their slots.");
    m.def("score_round", &score_round, nb::arg("learner"), array("indptr"), array("coordinates"), array("values"),
          array("x"), array("scores"), "The products of rows with what was played, by lane.");
    m.def("chain_round", &chain_round, nb::arg("learner"), array("y"), array("weight"), array("hot_indptr"),
          array("hot_slots"), array("hot_values"), array("scores"), array("slopes"),
          array("predictions").none() = nb::none(), array("losses").none() = nb::none(), nb::arg("mixture") = true,
          "What goes row by row: hot coordinates, intercept, losses and mixture. Writes the slopes of the rows.");
    m.def("sum_round", &sum_round, nb::arg("learner"), array("indptr"), array("coordinates"), array("values"),
          array("y"), array("weight"), array("slopes"), array("sums"),
          "Add the gradients of a block of rows to the sums of their coordinates.");
    m.def("step_round", &step_round, nb::arg("learner"), array("slots"), array("rows"), array("largest"),
          nb::arg("heaviest"), array("x"), array("g"), array("sums"), array("local_slots").none() = nb::none(),
          "One step for each coordinate that `rows` are learned of; receipts add to `sums` by shard.");
    m.def(
        "add_round_sums", [](Learner& learner, const ShardArray& sums) { learner.add_round_sums(shards_of(sums)); },
        nb::arg("learner"), array("sums"), "Add what `step_round` left, shard by shard, to the sums of a receipt.");
    m.def("count_round", &count_round, nb::arg("learner"), array("y"), array("weight"), array("losses"),
          "Compare the predictions of a round with its labels, where a receipt does that.");
    m.def("learn_round", &learn_round, nb::arg("learner"), array("indptr"), array("indices"), array("values"),
          array("y"), array("weight"), array("predictions").none() = nb::none(), array("losses").none() = nb::none(),
          nb::arg("block") = ROUND_BLOCK, "Learn all rows as one round, which has to be without fault.");
    m.def("round_size", &ftprl::round_size, nb::arg("learned"), nb::arg("most"), nb::arg("growth") = ROUND_GROWTH,
          "How many rows a round has that begins when so many were learned.");
    m.def(
        "round_stride", [](const Learner& learner) { return learner.round_stride(); }, nb::arg("learner"),
        "How many numbers arrays by lane have for each row or coordinate.");
    m.def(
        "hot_slots", [](const Learner& learner) { return copy_of(learner.hot()); }, nb::arg("learner"),
        "The slots that are hot in the next round, in order.");
    m.def("set_hot_slots", &set_hot, nb::arg("learner"), array("slots"), "Replace them.");
}
