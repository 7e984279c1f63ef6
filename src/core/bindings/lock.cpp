// The lock of a learner's state as Python sees it: two context managers, to read and to change.
#include <nanobind/nanobind.h>

#include <memory>

#include "bindings/bindings.hpp"
#include "bindings/lock.hpp"
#include "support/state_lock.hpp"

namespace nb = nanobind;

[[noreturn]] static void refuse(const char* message) {
    PyErr_SetString(PyExc_RuntimeError, message);
    throw nb::python_error();
}

void ftprl::bindings::Hold::enter() const {
    Entry entry = lock->try_enter(access);
    if (entry == Entry::occupied) {
        // Whoever has the lock may need Python to go on.
        const nb::gil_scoped_release free;
        entry = lock->wait_and_enter(access) ? Entry::entered : Entry::refused;
    }
    if (entry == Entry::refused) {
        refuse(
            "learning needs a state that may change, got one that this thread keeps unchanged; leave the block of "
            "`unchanged` first");
    }
}

void ftprl::bindings::Hold::leave() const {
    if (!lock->leave()) refuse("a block of `unchanged` needs to end in the thread that began it, got another thread");
}

namespace {

using ftprl::Access;
using ftprl::StateLock;
using ftprl::bindings::Hold;

nb::tuple make_holds() {
    const auto lock = std::make_shared<StateLock>();
    return nb::make_tuple(Hold{lock, Access::read}, Hold{lock, Access::change});
}

}  // namespace

void ftprl::bindings::bind_lock(nb::module_& m) {
    nb::class_<Hold>(m, "Hold", "A context manager: the state of one learner is read, or changed, in its block.")
        .def("__enter__", [](const Hold& self) { self.enter(); })
        .def(
            "__exit__", [](const Hold& self, nb::handle, nb::handle, nb::handle) { self.leave(); },
            nb::arg("type").none(), nb::arg("error").none(), nb::arg("trace").none());
    m.def("state_lock", &make_holds, "A lock as two context managers: to read, and to change.");
}
