// The order of rows as Python sees it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "order/row_order.hpp"

namespace nb = nanobind;

namespace {

using namespace ftprl::bindings;
using ftprl::OrderedRows;
using ftprl::RowOrder;

// A row order and the type of its values.
struct TypedOrder {
    RowOrder order;
    bool wide;
};

void make_order(TypedOrder* self, nb::handle seed, std::size_t rows, std::size_t bytes, bool wide) {
    new (self) TypedOrder{RowOrder(seed_of(seed), rows, bytes, wide), wide};
}

void add_rows(TypedOrder& self, const Column<std::int64_t>& indptr, const Column<std::uint32_t>& indices,
              const Values& values, const Column<double>& y, const Column<double>& weight, std::int64_t first_row) {
    if (indptr.size() == 0) throw nb::value_error("indptr needs one number more than there are rows, got none");
    const auto count = static_cast<std::int64_t>(indptr.size()) - 1;
    const auto entries = static_cast<std::int64_t>(indices.size());
    check_length("y", y.size(), count);
    check_length("weight", weight.size(), count);
    if (values.dtype() != (self.wide ? nb::dtype<double>() : nb::dtype<float>()) || values.size() != indices.size())
        throw nb::value_error("values need the type of the order, and one number for each index");
    const std::int64_t* ends = indptr.data();
    for (std::int64_t r = 0; r < count; ++r)
        if (ends[r] > ends[r + 1]) throw nb::value_error("indptr needs to be nondecreasing");
    if (ends[0] != 0 || ends[count] != entries) throw nb::value_error("indptr needs to run from 0 to the entries");
    const nb::gil_scoped_release free;
    self.order.add({count, ends, indices.data(), values.data(), y.data(), weight.data(), first_row});
}

template <class T>
nb::object numbers_in(const std::vector<unsigned char>& bytes) {
    std::vector<T> numbers(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return owned_array(std::move(numbers));
}

// indptr, indices, values, y, weight and the numbers of the rows.
nb::tuple arrays_of(const TypedOrder& self, OrderedRows rows) {
    nb::object values = self.wide ? numbers_in<double>(rows.values) : numbers_in<float>(rows.values);
    return nb::make_tuple(owned_array(std::move(rows.indptr)), owned_array(std::move(rows.indices)), std::move(values),
                          owned_array(std::move(rows.y)), owned_array(std::move(rows.weight)),
                          owned_array(std::move(rows.number)));
}

nb::object take_rows(TypedOrder& self, std::size_t most) {
    ftprl::Stage stage{};
    OrderedRows rows;
    {
        const nb::gil_scoped_release free;
        rows = self.order.take(most, stage);
    }
    if (rows.y.empty()) return nb::none();
    return nb::make_tuple(static_cast<int>(stage), arrays_of(self, std::move(rows)));
}

nb::tuple checked_rows(const TypedOrder& self, std::size_t from, std::size_t most) {
    return arrays_of(self, self.order.checked(from, most));
}

nb::object order_keys(nb::handle seed, std::uint64_t first, std::size_t count) {
    const std::uint64_t own = seed_of(seed);
    std::vector<std::uint64_t> keys(count);
    for (std::size_t i = 0; i < count; ++i) keys[i] = ftprl::order_key(own, first + i);
    return owned_array(std::move(keys));
}

}  // namespace

void ftprl::bindings::bind_order(nb::module_& m) {
    nb::class_<TypedOrder>(m, "RowOrder", "Rows that wait to be learned in a random order.")
        .def("__init__", &make_order, nb::arg("seed"), nb::arg("rows"), nb::arg("bytes"), nb::arg("wide"))
        .def("add", &add_rows, nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(),
             nb::arg("values").noconvert(), nb::arg("y").noconvert(), nb::arg("weight").noconvert(),
             nb::arg("first_row"), "Add rows that have arrived.")
        .def(
            "finish", [](TypedOrder& self) { self.order.finish(); }, "The data is over.")
        .def("take", &take_rows, nb::arg("most"), "The stage and the arrays of the next rows to learn, or None.")
        .def("checked", &checked_rows, nb::arg("start"), nb::arg("most"), "Arrays of the rows that are checked.")
        .def_prop_ro("waiting", [](const TypedOrder& self) { return self.order.waiting(); })
        .def_prop_ro("checked_rows", [](const TypedOrder& self) { return self.order.checked_rows(); })
        .def_prop_ro("overflowed", [](const TypedOrder& self) { return self.order.overflowed(); });
    m.def("order_keys", &order_keys, nb::arg("seed"), nb::arg("first"), nb::arg("count"),
          "The random bits of some rows, by their numbers: splitmix64.");
}
