// Bytes of Python as text of the core, and back.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>

#include "readers/split.hpp"

namespace ftprl::bindings {

inline std::string text_of(const nanobind::bytes& bytes) { return std::string(bytes.c_str(), bytes.size()); }
inline nanobind::bytes bytes_of(const std::string& text) { return nanobind::bytes(text.data(), text.size()); }
inline const Byte* data_of(const nanobind::bytes& bytes) { return reinterpret_cast<const Byte*>(bytes.c_str()); }

inline Dialect dialect_of(int separator, int quote) {
    Dialect dialect;
    dialect.separator = static_cast<Byte>(separator);
    dialect.quotes = quote >= 0;
    dialect.quote = static_cast<Byte>(quote >= 0 ? quote : 0);
    return dialect;
}

// Holds the bytes of an object in their place.
class View {
public:
    explicit View(nanobind::handle data) {
        if (PyObject_GetBuffer(data.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nanobind::python_error();
    }
    View(const View&) = delete;
    View& operator=(const View&) = delete;
    ~View() { PyBuffer_Release(&view_); }

    const Byte* data() const { return static_cast<const Byte*>(view_.buf); }
    std::size_t size() const { return static_cast<std::size_t>(view_.len); }

private:
    Py_buffer view_{};
};

}  // namespace ftprl::bindings
