// Names of features as Python sees them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "readers/name_table.hpp"
#include "readers/rows.hpp"

namespace nb = nanobind;

namespace {

using ftprl::NameTable;
using ftprl::NewNames;
using ftprl::bindings::Column;

// A copy of numbers as an array of NumPy.
template <class T>
nb::object array_of(std::vector<T> numbers) {
    auto* const owned = new std::vector<T>(std::move(numbers));
    const nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

std::size_t add_names(NameTable& table, const NewNames& names, std::size_t from, std::size_t to) {
    const nb::gil_scoped_release free;
    return table.add(names, from, to);
}

// A name in a file of batches: its hash, its row and its size; the texts follow all of them.
struct PackedName {
    std::uint64_t hash;
    std::uint32_t row;
    std::uint32_t size;
};

nb::bytes pack_names(const NewNames& names, std::size_t from, std::size_t to) {
    const std::size_t first = names.first_of(from), end = names.first_of(to);
    const std::uint64_t count = end - first;
    std::string text(reinterpret_cast<const char*>(&count), sizeof(count));
    for (std::size_t i = first; i < end; ++i) {
        const PackedName name{names[i].hash, names[i].row - static_cast<std::uint32_t>(from), names[i].size};
        text.append(reinterpret_cast<const char*>(&name), sizeof(name));
    }
    for (std::size_t i = first; i < end; ++i) {
        text.append(reinterpret_cast<const char*>(names.text(names[i])), names[i].size);
    }
    return nb::bytes(text.data(), text.size());
}

NewNames unpack_names(const nb::bytes& packed) {
    const auto* const data = reinterpret_cast<const ftprl::Byte*>(packed.c_str());
    std::uint64_t count = 0;
    const auto fail = [](bool wrong) {
        if (wrong) throw nb::value_error("packed names must be whole");
    };
    fail(packed.size() < sizeof(count));
    std::memcpy(&count, data, sizeof(count));
    fail(count > (packed.size() - sizeof(count)) / sizeof(PackedName));
    std::size_t text = sizeof(count) + count * sizeof(PackedName);
    NewNames names;
    std::uint32_t row = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        PackedName name{};
        std::memcpy(&name, data + sizeof(count) + i * sizeof(name), sizeof(name));
        fail(name.row < row || name.size > packed.size() - text);
        row = name.row;
        names.add(name.hash, name.row, data + text, name.size);
        text += name.size;
    }
    fail(text != packed.size());
    return names;
}

// The cells of the names in a table of `dim` weights.
nb::object slots_of(const NameTable& table, std::uint64_t dim) {
    if (dim < 1 || dim > (std::uint64_t{1} << 32)) throw nb::value_error("dim must be between 1 and 2**32");
    const ftprl::Slots slot(dim, false);
    std::vector<std::uint32_t> slots;
    slots.reserve(table.hashes.size());
    for (const std::uint64_t hash : table.hashes) slots.push_back(slot(hash));
    return array_of(std::move(slots));
}

nb::bytes bytes_of(const std::vector<ftprl::Byte>& text) {
    return nb::bytes(reinterpret_cast<const char*>(text.data()), text.size());
}

nb::bytes name_at(const NameTable& table, std::size_t i) {
    if (i >= table.ends.size()) throw nb::index_error("no such name");
    const std::uint64_t from = i == 0 ? 0 : table.ends[i - 1];
    return nb::bytes(reinterpret_cast<const char*>(table.text.data()) + from, table.ends[i] - from);
}

// Names that were saved; false when they are not those of a table.
bool load_names(NameTable& table, const Column<std::uint64_t>& hashes, const Column<std::uint32_t>& sizes,
                const nb::bytes& text, bool is_full) {
    if (hashes.size() != sizes.size() || !table.hashes.empty()) return false;
    const auto* const first = reinterpret_cast<const ftprl::Byte*>(text.c_str());
    std::size_t at = 0;
    for (std::size_t i = 0; i < hashes.size(); ++i) {
        const std::size_t size = sizes.data()[i];
        if (size > text.size() - at || !table.add(hashes.data()[i], first + at, size)) return false;
        if (table.hashes.size() != i + 1) return false;  // it was there before
        at += size;
    }
    if (is_full) table.set_full();
    return at == text.size();
}

nb::object sizes_of(const NameTable& table) {
    std::vector<std::uint32_t> sizes;
    sizes.reserve(table.ends.size());
    std::uint64_t before = 0;
    for (const std::uint64_t end : table.ends)
        sizes.push_back(static_cast<std::uint32_t>(end - std::exchange(before, end)));
    return array_of(std::move(sizes));
}

}  // namespace

void ftprl::bindings::bind_names(nb::module_& m) {
    nb::class_<NewNames>(m, "NewNames", "Names that the rows of a batch have and rows before did not.")
        .def("__len__", &NewNames::size)
        .def("stop", &NewNames::stop, "Want no more names of the parsers that these come from.")
        .def("pack", &pack_names, nb::arg("start"), nb::arg("stop"), "The names of some rows as bytes.")
        .def_static("unpack", &unpack_names, nb::arg("packed"), "The names that `pack` made bytes of.");
    nb::class_<NameTable>(m, "NameTable", "The names of features by their hashes, within a budget of bytes.")
        .def(nb::init<std::uint64_t>(), nb::arg("budget"))
        .def("__len__", [](const NameTable& table) { return table.hashes.size(); })
        .def("add", &add_names, nb::arg("names"), nb::arg("start"), nb::arg("stop"),
             "Add the names of rows [start, stop); returns the row of the first that does not fit, or stop.")
        .def("load", &load_names, nb::arg("hashes"), nb::arg("sizes"), nb::arg("text"), nb::arg("is_full"),
             "Fill an empty table with saved names; False when they are not those of a table.")
        .def("slots", &slots_of, nb::arg("dim"), "The cell of each name in a table of so many weights.")
        .def("name", &name_at, nb::arg("number"), "One name.")
        .def_prop_ro("hashes", [](const NameTable& table) { return array_of(table.hashes); })
        .def_prop_ro("sizes", &sizes_of)
        .def_prop_ro("text", [](const NameTable& table) { return bytes_of(table.text); })
        .def_prop_ro("bytes", &NameTable::bytes)
        .def_prop_ro("budget", &NameTable::budget)
        .def_prop_ro("is_full", &NameTable::is_full);
}
