// Decompression of zstd by the library of the system, which is looked for when the first such page is met: nearly every
// Linux has it, and with it a file needs neither pyarrow nor the lock of Python.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <memory>
#include <new>

#include "readers/parquet/thrift.hpp"
#include "readers/scan.hpp"

namespace ftprl::parquet {

namespace detail {

// The functions of libzstd that are used; their forms have been the same since its version 1.0.
struct ZstdLibrary {
    void* (*create)() = nullptr;
    std::size_t (*free)(void*) = nullptr;
    std::size_t (*decompress)(void*, void*, std::size_t, const void*, std::size_t) = nullptr;
    unsigned (*is_error)(std::size_t) = nullptr;

    ZstdLibrary() noexcept {
        void* library = nullptr;
        for (const char* const name : {"libzstd.so.1", "libzstd.1.dylib"}) {
            if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
        }
        if (library == nullptr) return;
        set(create, library, "ZSTD_createDCtx");
        set(free, library, "ZSTD_freeDCtx");
        set(decompress, library, "ZSTD_decompressDCtx");
        set(is_error, library, "ZSTD_isError");
    }

    bool is_there() const noexcept {
        return create != nullptr && free != nullptr && decompress != nullptr && is_error != nullptr;
    }

private:
    template <class Function>
    static void set(Function& function, void* library, const char* name) noexcept {
        function = reinterpret_cast<Function>(::dlsym(library, name));
    }
};

}  // namespace detail

class Unzstd {
public:
    static const detail::ZstdLibrary& library() noexcept {
        static const detail::ZstdLibrary found;
        return found;
    }

    // Decompresses [p, end) to exactly `size` bytes.
    void operator()(const Byte* p, const Byte* end, Byte* out, std::size_t size) {
        if (state_ == nullptr) state_.reset(library().create());
        if (state_ == nullptr) throw std::bad_alloc();
        const std::size_t got = library().decompress(state_.get(), out, size, p, static_cast<std::size_t>(end - p));
        if (library().is_error(got) != 0 || got != size) throw Damaged("a page that zstd cannot decompress");
    }

private:
    struct Free {
        void operator()(void* state) const noexcept { library().free(state); }
    };
    std::unique_ptr<void, Free> state_;
};

}  // namespace ftprl::parquet
