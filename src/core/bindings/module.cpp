// The module and the feature hash. With the other bindings it is all of the core that knows Python: they check what
// comes in, call the core, and wrap what goes out.
#include "bindings/bindings.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "support/hash.hpp"

namespace nb = nanobind;

namespace {

struct Bytes {
    const unsigned char* data;
    std::size_t size;
};

std::string kind_of(nb::handle value) { return nb::cast<const char*>(value.type().attr("__name__")); }

nb::builtin_exception not_text(const std::string& what, nb::handle value) {
    return nb::type_error((what + " must be str or bytes, got " + kind_of(value)).c_str());
}

// Nothing when `value` is not text. The bytes belong to `value`: Python keeps a string's UTF-8 with it.
std::optional<Bytes> view(nb::handle value) {
    if (PyUnicode_Check(value.ptr())) {
        Py_ssize_t size = 0;
        const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
        if (text == nullptr) throw nb::python_error();  // a lone surrogate has no UTF-8
        return Bytes{reinterpret_cast<const unsigned char*>(text), static_cast<std::size_t>(size)};
    }
    if (PyBytes_Check(value.ptr())) {
        return Bytes{reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(value.ptr())),
                     static_cast<std::size_t>(PyBytes_GET_SIZE(value.ptr()))};
    }
    return std::nullopt;
}

}  // namespace

std::uint64_t ftprl::bindings::seed_of(nb::handle value) {
    if (!PyIndex_Check(value.ptr())) {
        throw nb::type_error(("seed must be an integer, got " + kind_of(value)).c_str());
    }
    const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
    if (!index.is_valid()) throw nb::python_error();
    const unsigned long long seed = PyLong_AsUnsignedLongLong(index.ptr());
    if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        const nb::str shown = nb::repr(index);
        throw nb::value_error((std::string("seed must be at least 0 and below 2**64, got ") + shown.c_str()).c_str());
    }
    return seed;
}

namespace {

using ftprl::bindings::seed_of;

std::uint64_t feature_hash(nb::handle data, nb::handle seed) {
    const std::optional<Bytes> bytes = view(data);
    if (!bytes) throw not_text("data", data);
    return ftprl::hash_bytes(bytes->data, bytes->size, seed_of(seed));
}

using Hashes = nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<1>>;

Hashes feature_hashes(nb::handle names, nb::handle seed) {
    // A string is itself a sequence of strings: hashing its letters is never what was meant.
    if (PyUnicode_Check(names.ptr()) || PyBytes_Check(names.ptr()) || !PySequence_Check(names.ptr())) {
        throw nb::type_error(
            ("names must be a sequence of str or bytes, got " + kind_of(names) + "; put a single name in a list")
                .c_str());
    }
    const std::uint64_t start = ftprl::hash_start(seed_of(seed));
    const nb::object items = nb::steal(PySequence_Fast(names.ptr(), "names must be a sequence of str or bytes"));
    if (!items.is_valid()) throw nb::python_error();

    const auto count = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(items.ptr()));
    auto hashes = std::make_unique<std::uint64_t[]>(count);
    PyObject** item = PySequence_Fast_ITEMS(items.ptr());
    for (std::size_t i = 0; i < count; ++i) {
        const std::optional<Bytes> bytes = view(item[i]);
        if (!bytes) throw not_text("names[" + std::to_string(i) + "]", item[i]);
        hashes[i] = ftprl::hash_from(start, bytes->data, bytes->size);
    }

    std::uint64_t* data = hashes.release();
    const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<std::uint64_t*>(p); });
    return Hashes(data, {count}, owner);
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The compiled core of ftprl.";
    m.attr("HASH_VERSION") = ftprl::HASH_VERSION;
    // .none(): None goes through to the checks above, which name the argument.
    m.def("feature_hash", &feature_hash, nb::arg("data").none(), nb::arg("seed").none() = 0,
          nb::sig("def feature_hash(data: bytes | str, seed: int = 0) -> int"),
          "The 64-bit hash of one name; a str is hashed as its UTF-8.");
    m.def("feature_hashes", &feature_hashes, nb::arg("names").none(), nb::arg("seed").none() = 0,
          nb::sig("def feature_hashes(names: collections.abc.Sequence[str | bytes], seed: int = 0) -> "
                  "numpy.typing.NDArray[numpy.uint64]"),
          "The 64-bit hash of each name, as a NumPy array.");
    ftprl::bindings::bind_learner(m);
    ftprl::bindings::bind_losses(m);
    ftprl::bindings::bind_lock(m);
    ftprl::bindings::bind_baseline(m);
    ftprl::bindings::bind_confidence(m);
    ftprl::bindings::bind_matrix(m);
    ftprl::bindings::bind_names(m);
    ftprl::bindings::bind_order(m);
    ftprl::bindings::bind_readers(m);
    ftprl::bindings::bind_texts(m);
    ftprl::bindings::bind_replay(m);
    ftprl::bindings::bind_replay_intervals(m);
    ftprl::bindings::bind_frames(m);
    ftprl::bindings::bind_slot_index(m);
    ftprl::bindings::bind_one_row(m);
}
