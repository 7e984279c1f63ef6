// The blocks of a file of batches as Python sees them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/buffers.hpp"
#include "readers/block_reader.hpp"

namespace nb = nanobind;

namespace {

using ftprl::BlockPlace;
using Numbers = nb::ndarray<const std::uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t NUMBERS = 7;  // of a block
constexpr int MOST_THREADS = 64;

// The reader, which ends when Python drops or closes this, or with the last block that another thread is taking.
struct OpenBlocks {
    std::shared_ptr<ftprl::BlockReader> reader;
};

void open_blocks(OpenBlocks* self, int file, const Numbers& blocks, std::size_t first, bool float64, bool names,
                 int threads) {
    if (blocks.shape(1) != NUMBERS || threads < 0) throw nb::value_error("blocks needs seven numbers each");
    std::vector<BlockPlace> places(blocks.shape(0));
    const std::uint64_t* n = blocks.data();
    for (BlockPlace& place : places) {
        place = {n[0], n[1], n[2], n[3], n[4] != 0, n[5] != 0, n[6]};
        n += NUMBERS;
    }
    auto* const reader = new ftprl::BlockReader(file, std::move(places), first, float64 ? 8 : 4, names,
                                                threads < MOST_THREADS ? threads : MOST_THREADS);
    new (self) OpenBlocks{std::shared_ptr<ftprl::BlockReader>(reader, ftprl::BlockReader::End())};
}

nb::tuple take_block(OpenBlocks& self) {
    const std::shared_ptr<ftprl::BlockReader> reader = self.reader;
    if (reader == nullptr || !reader->is_here())
        throw std::runtime_error("a file of batches was closed, or opened by another process; open it again");
    std::optional<ftprl::ReadBlock> block;
    {
        const nb::gil_scoped_release free;
        if (std::optional<ftprl::ReadBlock> next = reader->take()) block.emplace(std::move(*next));
    }
    if (!block) throw nb::stop_iteration();
    if (block->error != 0) {
        errno = block->error;
        PyErr_SetFromErrno(PyExc_OSError);
        throw nb::python_error();
    }
    if (!block->is_whole) throw nb::value_error("a block needs the bytes that were written");
    nb::object names = nb::none();
    if (block->names) names = nb::cast(std::move(*block->names));
    return nb::make_tuple(ftprl::bindings::array_of(block->bytes), names);
}

void close_blocks(OpenBlocks& self) {
    std::shared_ptr<ftprl::BlockReader> reader = std::move(self.reader);
    const nb::gil_scoped_release free;
    reader.reset();
}

}  // namespace

void ftprl::bindings::bind_blocks(nb::module_& m) {
    nb::class_<OpenBlocks>(m, "BlockReader", "The blocks of a file of batches, read in advance.")
        .def("__init__", &open_blocks, nb::arg("file"), nb::arg("blocks").noconvert(), nb::arg("first"),
             nb::arg("float64"), nb::arg("names"), nb::arg("threads"))
        .def("take", &take_block,
             "The bytes of the next block and its names, if they are wanted; ValueError for bytes that were not "
             "written, StopIteration behind the last block, RuntimeError in another process or when it is closed.")
        .def("close", &close_blocks, "End the threads.");
}
