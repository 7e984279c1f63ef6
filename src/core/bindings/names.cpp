// Names of features as Python sees them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "readers/bound_table.hpp"
#include "readers/name_table.hpp"
#include "readers/packed_names.hpp"
#include "readers/rows.hpp"

namespace nb = nanobind;

namespace {

using ftprl::BoundTable;
using ftprl::NameTable;
using ftprl::NewNames;
using ftprl::bindings::Column;
using ftprl::bindings::owned_array;

// Numbers that somebody else keeps: no copy is made of them.
template <class T>
nb::object array_of(const ftprl::GrowingList<T>& list) {
    using View = typename ftprl::GrowingList<T>::View;
    static const T nothing{};
    auto* const view = new View(list.view());
    const nb::capsule owner(view, [](void* p) noexcept { delete static_cast<View*>(p); });
    const T* const data = view->size() == 0 ? &nothing : view->data();
    return nb::cast(nb::ndarray<nb::numpy, const T, nb::ndim<1>>(data, {view->size()}, owner));
}

std::unique_ptr<NameTable> make_table(std::uint64_t budget, std::uint64_t cells) {
    if (cells > (std::uint64_t{1} << 32)) throw nb::value_error("cells must be at most 2**32");
    return std::make_unique<NameTable>(budget, cells);
}

std::pair<std::size_t, std::size_t> add_names(NameTable& table, const NewNames& names, std::size_t from,
                                              std::size_t to) {
    const nb::gil_scoped_release free;
    const NameTable::FullRows full = table.add(names, from, to);
    return {full.any, full.product};
}

nb::bytes packed_names(const NewNames& names, std::size_t from, std::size_t to) {
    const std::string text = ftprl::pack_names(names, from, to);
    return nb::bytes(text.data(), text.size());
}

NewNames unpacked_names(const nb::bytes& packed) {
    std::optional<NewNames> names =
        ftprl::unpack_names(reinterpret_cast<const ftprl::Byte*>(packed.c_str()), packed.size());
    if (!names) throw nb::value_error("packed names must be whole");
    return std::move(*names);
}

// The cells of the names in a table of `dim` weights.
nb::object slots_of(const NameTable& table, std::uint64_t dim) {
    if (dim < 1 || dim > (std::uint64_t{1} << 32)) throw nb::value_error("dim must be between 1 and 2**32");
    const ftprl::Slots slot(dim, false);
    std::vector<std::uint32_t> slots;
    slots.reserve(table.hashes.size());
    for (std::size_t i = 0; i < table.hashes.size(); ++i) slots.push_back(slot(table.hashes[i]));
    return owned_array(std::move(slots));
}

nb::bytes name_at(const NameTable& table, std::size_t i) {
    const std::vector<std::uint64_t>& ends = table.ends();
    if (i >= ends.size()) throw nb::index_error("no such name");
    const std::uint64_t from = i == 0 ? 0 : ends[i - 1];
    return nb::bytes(reinterpret_cast<const char*>(table.text.data()) + from, ends[i] - from);
}

// Names that were saved; false when they are not those of a table.
bool load_names(NameTable& table, const Column<std::uint64_t>& hashes, const Column<std::uint32_t>& sizes,
                const nb::bytes& text, bool is_full, std::uint64_t product_bytes, bool are_products_full) {
    if (hashes.size() != sizes.size() || table.hashes.size() != 0) return false;
    const auto* const first = reinterpret_cast<const ftprl::Byte*>(text.c_str());
    std::size_t at = 0;
    for (std::size_t i = 0; i < hashes.size(); ++i) {
        const std::size_t size = sizes.data()[i];
        if (size > text.size() - at || !table.load(hashes.data()[i], first + at, size)) return false;
        at += size;
    }
    if (is_full) table.set_full();
    return at == text.size() && table.set_products(product_bytes, are_products_full);
}

using Pattern = std::tuple<std::string, double, double>;

std::unique_ptr<BoundTable> make_bounds(std::uint64_t dim, double lower, double upper,
                                        const std::vector<Pattern>& patterns) {
    if (dim < 1 || dim > (std::uint64_t{1} << 32)) throw nb::value_error("dim must be between 1 and 2**32");
    auto table = std::make_unique<BoundTable>(dim, ftprl::Ends{lower, upper});
    for (const auto& [text, low, high] : patterns) table->add_pattern(text, {low, high});
    return table;
}

// Rows, cells, whether a cell was in use before, and its bounds.
nb::object changes_of(const BoundTable& table, bool is_good) {
    if (!is_good) return nb::none();
    std::vector<std::int64_t> rows;
    std::vector<std::uint32_t> slots;
    std::vector<std::uint8_t> seen;
    std::vector<double> ends;
    for (const BoundTable::Change& change : table.changes) {
        rows.push_back(static_cast<std::int64_t>(change.row));
        slots.push_back(change.slot);
        seen.push_back(change.was_seen ? 1 : 0);
        ends.insert(ends.end(), {change.ends.lower, change.ends.upper});
    }
    return nb::make_tuple(owned_array(std::move(rows)), owned_array(std::move(slots)), owned_array(std::move(seen)),
                          owned_array(std::move(ends)));
}

nb::object bound_names(BoundTable& table, const NewNames& names, std::size_t from, std::size_t to) {
    bool is_good = false;
    {
        const nb::gil_scoped_release free;
        is_good = table.add(names, from, to);
    }
    return changes_of(table, is_good);
}

nb::object bound_numbers(BoundTable& table, const Column<std::uint32_t>& numbers) {
    bool is_good = false;
    {
        const nb::gil_scoped_release free;
        is_good = table.add_numbers(numbers.data(), numbers.size());
    }
    return changes_of(table, is_good);
}

void load_bounds(BoundTable& table, const Column<std::uint32_t>& slots, const Column<double>& ends) {
    if (ends.size() != 2 * slots.size()) throw nb::value_error("ends need two numbers for each slot");
    for (std::size_t i = 0; i < slots.size(); ++i) {
        table.load(slots.data()[i], {ends.data()[2 * i], ends.data()[2 * i + 1]});
    }
}

nb::tuple bounded_of(const BoundTable& table) {
    std::vector<std::uint32_t> slots;
    std::vector<double> ends;
    for (const auto& [slot, own] : table.bounded()) {
        slots.push_back(slot);
        ends.insert(ends.end(), {own.lower, own.upper});
    }
    return nb::make_tuple(owned_array(std::move(slots)), owned_array(std::move(ends)));
}

// The name that was refused, its cell, and what the cell and the patterns of the name allow.
nb::tuple refused_of(const BoundTable& table) {
    return nb::make_tuple(nb::bytes(table.refused.data(), table.refused.size()), table.refused_slot,
                          table.refused_cell.lower, table.refused_cell.upper, table.refused_own.lower,
                          table.refused_own.upper);
}

void bind_bounds(nb::module_& m) {
    nb::class_<BoundTable>(m, "BoundTable", "Bounds of weights by patterns of names, and the cells that have them.")
        .def(nb::new_(&make_bounds), nb::arg("dim"), nb::arg("lower"), nb::arg("upper"), nb::arg("patterns"))
        .def(
            "add", &bound_names, nb::arg("names"), nb::arg("start"), nb::arg("stop"),
            "Rows, cells, whether each was in use before, and new bounds, of the names first met in some rows; None at "
            "a name whose bounds leave nothing.")
        .def("add_numbers", &bound_numbers, nb::arg("numbers").noconvert(),
             "The same for features that are called by the numbers of their cells.")
        .def("load", &load_bounds, nb::arg("slots").noconvert(), nb::arg("ends").noconvert(), "Bounds that were saved.")
        .def("copy", [](const BoundTable& table) { return std::make_unique<BoundTable>(table); })
        .def_prop_ro("bounded", &bounded_of, "The cells that have bounds of their own, in order, and these.")
        .def_prop_ro("shared", &BoundTable::shared, "How many of these cells several names share; -1 if not known.")
        .def_prop_ro("matches", &BoundTable::matches, "How many names each pattern fitted, repeats included.")
        .def_prop_ro("refused", &refused_of, "The name that was refused, its cell, and the bounds of both.");
}

}  // namespace

void ftprl::bindings::bind_names(nb::module_& m) {
    bind_bounds(m);
    nb::class_<NewNames>(m, "NewNames", "Names that the rows of a batch have and rows before did not.")
        .def("__len__", &NewNames::size)
        .def("stop", &NewNames::stop, "Want no more names of the parsers that these come from.")
        .def("stop_products", &NewNames::stop_products, "Want no more names of interactions of these parsers.")
        .def_prop_ro("is_complete", &NewNames::is_complete, "Whether none may be missing.")
        .def("pack", &packed_names, nb::arg("start"), nb::arg("stop"), "The names of some rows as bytes.")
        .def_static("unpack", &unpacked_names, nb::arg("packed"), "The names that `pack` made bytes of.");
    nb::class_<NameTable>(m, "NameTable", "The names of features by their hashes, within a budget of bytes.")
        .def(nb::new_(&make_table), nb::arg("budget"), nb::arg("cells"),
             "Of each of so many cells the first name is kept; with 0 every name.")
        .def("__len__", [](const NameTable& table) { return table.hashes.size(); })
        .def("add", &add_names, nb::arg("names"), nb::arg("start"), nb::arg("stop"),
             "Add the names of rows [start, stop); returns the row of the first that does not fit, and of the first "
             "interaction, or stop.")
        .def("load", &load_names, nb::arg("hashes"), nb::arg("sizes"), nb::arg("text"), nb::arg("is_full"),
             nb::arg("product_bytes") = 0, nb::arg("are_products_full") = false,
             "Fill an empty table with saved names; False when they are not those of a table.")
        .def("slots", &slots_of, nb::arg("dim"), "The cell of each name in a table of so many weights.")
        .def("name", &name_at, nb::arg("number"), "One name.")
        .def_prop_ro("hashes", [](const NameTable& table) { return array_of(table.hashes); })
        .def_prop_ro("sizes", [](const NameTable& table) { return array_of(table.sizes); })
        .def_prop_ro("text", [](const NameTable& table) { return array_of(table.text); })
        .def_prop_ro("bytes", &NameTable::bytes)
        .def_prop_ro("budget", &NameTable::budget)
        .def_prop_ro("is_full", &NameTable::is_full)
        .def_prop_ro("product_bytes", &NameTable::product_bytes, "How many bytes the names of interactions take.");
}
