// The second learner of `ftprl verify` as Python sees it: settings, and arrays that belong to the caller.
#include "replay/replay.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"

namespace nb = nanobind;

namespace {

using namespace ftprl::bindings;
using Numbers = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Any = nb::ndarray<nb::c_contig, nb::device::cpu>;

// Keeps the arrays alive, since the learner writes into them.
struct CompiledReplay {
    nb::dict arrays;
    std::int64_t cell_count;
    int known, columns;  // of several classes, how many labels a row may have that is learned, or predicted; 0 for any
    std::unique_ptr<ftprl::replay::Learner> learner;
};

void* array_of(const nb::dict& arrays, const char* name, bool wide, std::size_t size) {
    if (!arrays.contains(name)) return nullptr;
    const auto array = nb::cast<Any>(arrays[name]);
    const bool fits = wide ? array.dtype() == nb::dtype<double>() : array.dtype() == nb::dtype<float>();
    if (!fits || array.size() < size)
        throw nb::value_error((std::string(name) + " needs " + std::to_string(size) + " numbers").c_str());
    return array.data();
}

double* numbers_of(const nb::dict& arrays, const char* name, std::size_t size) {
    return static_cast<double*>(array_of(arrays, name, true, size));
}

double* needed(const nb::dict& arrays, const char* name, std::size_t size) {
    double* numbers = numbers_of(arrays, name, size);
    if (numbers == nullptr) throw nb::value_error((std::string(name) + " is missing").c_str());
    return numbers;
}

ftprl::replay::Settings settings_of(const nb::dict& d) {
    const auto number = [&](const char* name) { return nb::cast<double>(d[name]); };
    const auto flag = [&](const char* name) { return nb::cast<bool>(d[name]); };
    ftprl::replay::Settings s{&ftprl::replay::loss_named(nb::cast<std::string>(d["loss"])),
                              number("tau"),
                              number("beta"),
                              number("l1"),
                              number("l2"),
                              number("lower"),
                              number("upper"),
                              flag("intercept"),
                              flag("float64"),
                              flag("stacked"),
                              flag("coin"),
                              flag("dense"),
                              nb::cast<std::vector<double>>(d["scales"]),
                              nb::cast<std::vector<double>>(d["copies"]),
                              nb::cast<int>(d["known_before"]),
                              nb::cast<int>(d["known"])};
    if (s.scales.empty() || s.scales.size() > ftprl::replay::MOST)
        throw nb::value_error("scales needs 1 to 16 numbers");
    const bool one_score = s.copies.size() == 1 && s.copies[0] == 1.0;
    if (!s.loss->has_classes() && !one_score) throw nb::value_error("copies needs a loss of several classes");
    if (s.known_before > s.known || s.known > s.columns() || s.columns() > s.known + 1)
        throw nb::value_error("copies needs a number for each class that is known, and one for all others");
    return s;
}

std::unique_ptr<CompiledReplay> make(const nb::dict& settings, nb::dict arrays) {
    using namespace ftprl::replay;
    const Settings s = settings_of(settings);
    const std::size_t K = s.scales.size(), C = s.copies.size(), L = K * C, windows = K > 4 ? 3 * (K - 2) : 0;
    const std::size_t cell_count = nb::cast<Any>(arrays["unit"]).size();
    const auto cells = [&](const char* name, std::size_t size) {
        void* array = array_of(arrays, name, s.wide, size);
        if (array == nullptr) throw nb::value_error((std::string(name) + " is missing").c_str());
        return array;
    };
    const ftprl::replay::Cells table{cells("z", cell_count * L),
                                     cells("R", cell_count * L),
                                     cells("unit", cell_count),
                                     cells("count", cell_count),
                                     cells("kappa", cell_count),
                                     needed(arrays, "S", cell_count * L),
                                     numbers_of(arrays, "lower", cell_count),
                                     numbers_of(arrays, "upper", cell_count)};
    const ftprl::replay::Totals totals{needed(arrays, "tallies", 3),          needed(arrays, "sums", 6 * K),
                                       needed(arrays, "slopes", K),           needed(arrays, "row_sums", 5 * K),
                                       numbers_of(arrays, "calibration", 60), needed(arrays, "base", 4 * L)};
    auto* labels = reinterpret_cast<ftprl::replay::LabelState*>(
        needed(arrays, "labels", sizeof(ftprl::replay::LabelState) / sizeof(double)));
    const bool log_loss = !s.labelled();
    const std::size_t n = K + (s.stacked ? 1 : 0) + (log_loss ? 0 : 1) + (s.coin ? 1 : 0);
    ftprl::replay::MixtureState mixture{};
    if (s.counts_rows()) {
        mixture = {needed(arrays, "P", K * K),
                   needed(arrays, "u", K),
                   needed(arrays, "w", n),
                   needed(arrays, "totals", n),
                   log_loss ? needed(arrays, "facts", 1) : nullptr,
                   log_loss ? nullptr : needed(arrays, "hedge", HEDGE_NUMBERS),
                   needed(arrays, "block", K),
                   needed(arrays, "windows", windows)};
    }
    CoinState coin{};
    ColumnState columns{};
    if (s.coin) coin = {cells("coin", 4 * cell_count), needed(arrays, "coin_base", 7)};
    if (s.dense) {
        columns = {needed(arrays, "columns", MOST_COLUMNS * COLUMN_FACTS),
                   needed(arrays, "column_counts", COLUMN_COUNTS), needed(arrays, "dense_u", C * STACK_INPUTS),
                   needed(arrays, "dense_P", C * STACK_INPUTS * STACK_INPUTS), static_cast<int>(C)};
    }
    auto learner = std::make_unique<Learner>(s, table, totals, labels, mixture, coin, columns);
    return std::make_unique<CompiledReplay>(
        CompiledReplay{std::move(arrays), static_cast<std::int64_t>(cell_count), s.loss->has_classes() ? s.known : 0,
                       s.loss->has_classes() ? s.columns() : 0, std::move(learner)});
}

void check_cells(const CompiledReplay& self, const Column<std::int32_t>& cell, const Column<double>& value) {
    check_length("value", value.size(), static_cast<std::int64_t>(cell.size()));
    for (std::size_t i = 0; i < cell.size(); ++i) {
        if (cell.data()[i] < 0 || cell.data()[i] >= self.cell_count)
            throw nb::value_error("a cell is outside the table");
    }
}

// Predict rows, and learn them if `learns`. Beside each loss and prediction stand what the scores of the row were
// counted from, and what its weight is multiplied by where losses are divided by the unit of the labels.
void pass_rows(CompiledReplay& self, bool learns, const Column<std::int64_t>& indptr, const Column<std::int32_t>& cell,
               const Column<double>& value, const Column<double>& y, const Column<double>& weight, Numbers losses,
               Numbers predictions, Numbers offsets, Numbers shares) {
    const auto rows = static_cast<std::int64_t>(y.size());
    check_length("losses", losses.size(), rows);
    check_length("predictions", predictions.size(), rows);
    check_length("offsets", offsets.size(), rows);
    check_length("shares", shares.size(), rows);
    check_length("weight", weight.size(), rows);
    check_length("indptr", indptr.size(), rows + 1);
    check_cells(self, cell, value);
    const std::int64_t* ends = indptr.data();
    const auto entries = static_cast<std::int64_t>(cell.size());
    for (std::int64_t r = 0; r < rows; ++r) {
        if (ends[r] < 0 || ends[r] > ends[r + 1] || ends[r + 1] > entries)
            throw nb::value_error("indptr needs to rise");
        const double label = y.data()[r];
        const int most = learns ? self.known : self.columns;
        if (most > 0 && weight.data()[r] > 0.0 && label == label && !(label >= 0.0 && label < most))
            throw nb::value_error("y needs to be the number of a class that is known");
    }
    const nb::gil_scoped_release free;
    for (std::int64_t r = 0; r < rows; ++r) {
        if (!(weight.data()[r] > 0.0) || y.data()[r] != y.data()[r]) continue;
        const std::int64_t from = ends[r];
        const ftprl::replay::Row row{cell.data() + from, value.data() + from, ends[r + 1] - from, y.data()[r],
                                     weight.data()[r]};
        double& prediction = predictions.data()[r];
        offsets.data()[r] = self.learner->offset();
        losses.data()[r] = learns ? self.learner->learn(row, prediction) : self.learner->score(row, prediction);
        shares.data()[r] = self.learner->share();
    }
}

}  // namespace

void ftprl::bindings::bind_replay(nb::module_& m) {
    nb::class_<CompiledReplay>(m, "CompiledReplay", "A second learner for verify; it writes into arrays of the caller.")
        .def(nb::new_(&make), nb::arg("settings"), nb::arg("arrays"))
        .def("pass_rows", &pass_rows, nb::arg("learns"), nb::arg("indptr").noconvert(), nb::arg("cell").noconvert(),
             nb::arg("value").noconvert(), nb::arg("y").noconvert(), nb::arg("weight").noconvert(),
             nb::arg("losses").noconvert(), nb::arg("predictions").noconvert(), nb::arg("offsets").noconvert(),
             nb::arg("shares").noconvert(),
             "Predict rows, and learn them if `learns`; losses are written, and predictions unless the loss is the log "
             "loss.");
}
