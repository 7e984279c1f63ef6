// The second learner of `ftprl verify` as Python sees it: settings, and arrays that belong to the caller.
#include "replay/learner.hpp"

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

// Keeps the arrays of a dictionary alive, since the learner writes into them.
class ArraysOfDict final : public ftprl::replay::Arrays {
public:
    ArraysOfDict(nb::dict arrays, bool wide) : arrays_(std::move(arrays)), wide_(wide) {}

    double* numbers_or_null(const std::string& name, std::size_t size) const override {
        return static_cast<double*>(find(name, size, true));
    }
    double* numbers(const std::string& name, std::size_t size) const override {
        return static_cast<double*>(needed(name, size, true));
    }
    ftprl::replay::Stored cells(const std::string& name, std::size_t per_cell) const override {
        return {needed(name, cell_count() * per_cell, wide_), wide_};
    }
    std::size_t cell_count() const override { return nb::cast<Any>(arrays_["unit"]).size(); }

private:
    void* find(const std::string& name, std::size_t size, bool wide) const {
        if (!arrays_.contains(name.c_str())) return nullptr;
        const auto array = nb::cast<Any>(arrays_[name.c_str()]);
        const bool fits = wide ? array.dtype() == nb::dtype<double>() : array.dtype() == nb::dtype<float>();
        if (!fits || array.size() < size)
            throw nb::value_error((name + " needs " + std::to_string(size) + " numbers").c_str());
        return array.data();
    }
    void* needed(const std::string& name, std::size_t size, bool wide) const {
        if (!arrays_.contains(name.c_str())) throw nb::value_error((name + " is missing").c_str());
        return find(name, size, wide);
    }

    nb::dict arrays_;
    bool wide_;
};

struct CompiledReplay {
    ArraysOfDict arrays;
    std::int64_t cell_count;
    int known, columns;  // of several classes, how many labels a row may have that is learned, or predicted; 0 for any
    std::unique_ptr<ftprl::replay::Learner> learner;
};

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
                              flag("coin_input"),
                              nb::cast<std::vector<double>>(d["scales"]),
                              nb::cast<std::vector<std::string>>(d["experts"]),
                              nb::cast<std::vector<double>>(d["copies"]),
                              nb::cast<int>(d["known_before"]),
                              nb::cast<int>(d["known"])};
    if (s.scales.empty() || s.scales.size() > ftprl::replay::MOST_SCALES)
        throw nb::value_error("scales needs 1 to 16 numbers");
    if (s.experts.size() < s.scales.size() || s.experts.size() > ftprl::replay::MOST_EXPERTS)
        throw nb::value_error("experts needs a name for each scale, and at most 5 others");
    const bool one_score = s.copies.size() == 1 && s.copies[0] == 1.0;
    if (!s.loss->has_classes() && !one_score) throw nb::value_error("copies needs a loss of several classes");
    if (s.known_before > s.known || s.known > s.columns() || s.columns() > s.known + 1)
        throw nb::value_error("copies needs a number for each class that is known, and one for all others");
    return s;
}

std::unique_ptr<CompiledReplay> make(const nb::dict& settings, nb::dict arrays) {
    const ftprl::replay::Settings s = settings_of(settings);
    const ArraysOfDict own(std::move(arrays), s.wide);
    const bool classes = s.loss->has_classes();
    return std::make_unique<CompiledReplay>(CompiledReplay{own, static_cast<std::int64_t>(own.cell_count()),
                                                           classes ? s.known : 0, classes ? s.columns() : 0,
                                                           std::make_unique<ftprl::replay::Learner>(s, own)});
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
               const Column<double>& value, const Column<double>& y, const Column<double>& weight,
               const Numbers& losses, const Numbers& predictions, const Numbers& offsets, const Numbers& shares) {
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
