// The scales of a model in parts that several threads learn at once: parts.hpp.
//
// Rows are cut into blocks, which every part learns in their order, mostly on a thread of its own. Two more things
// follow the order of the rows: to find the cells of a block before it is learned, and to mix its predictions
// afterwards. One thread at a time is at each of them, whichever is not behind. All numbers are computed by the same
// operations in the same order as by one thread, so that the model is the same to the bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "learners/experts.hpp"
#include "learners/parts.hpp"
#include "learners/scales.hpp"
#include "learners/slot_map.hpp"
#include "support/memory.hpp"
#include "support/workers.hpp"

namespace ftprl {

// How the numbers of a cell lie: z and R of all lanes, s, N, and kappa where there is one.
struct CellLayout {
    std::size_t bytes;
    int lanes;
    bool kappa;
};

// A table of cells, and the S of a receipt beside it or null.
struct WholeCells {
    void* cells;
    double* S;
    CellLayout layout;
};

class ScaleParts {
public:
    // Into how many parts so many threads split scales: each has at least four of them, or what is left.
    static int count_for(int scales, int threads);

    // `cells` are how many there may be; throws std::bad_alloc when there is no memory for them.
    ScaleParts(const PartKernels& kernels, const ScaleConstants& constants, bool wide_cells, bool receipt, int count,
               std::uint64_t cells);

    // The first `cells` cells of a whole table, from it or into it.
    void split(const WholeCells& from, std::uint64_t cells);
    void join(const WholeCells& to, std::uint64_t cells) const { join_range(to, 0, cells); }
    void join_and_end(const WholeCells& to, std::uint64_t cells);  // by all threads, which then end
    void join_cell(std::uint64_t cell, void* to, const CellLayout& layout) const;
    // How many rows had the feature of a cell.
    double rows_of(std::uint64_t cell) const;
    // Have a cell fetched that is asked for soon.
    void fetch_cell(std::uint64_t cell) const {
        for (const auto& part : parts_) {
            const auto* own = static_cast<const char*>(part->cells.data()) + cell * part->layout.bytes;
            fetch(own);
            fetch(own + part->layout.bytes - 1);
        }
    }

    // Rows whose indices are slots; `cells` gets the cell of each entry. `constants` and `state` are those of all
    // scales, whose cells are not used.
    Totals learn(const Rows& rows, bool wide, SlotMap& slot_map, std::uint32_t* cells, const ScaleConstants& constants,
                 bool unconstrained, const ScaleState& state, const RowOutputs& out);
    // Rows whose indices are cells. Several threads may score at once.
    void score(const Rows& rows, bool wide, const ScaleConstants& constants, bool unconstrained,
               const ScaleState& state, double* scores) const;

private:
    struct Part {
        int first, count, lanes;  // of the scales
        CellLayout layout;
        const PartSet* set;
        Memory cells;
        std::unique_ptr<Memory> S;
        std::unique_ptr<Memory> plays, numbers;  // grow with the rows
        PartSums sums;

        Part(int first, int count, const PartSet& set, CellLayout layout, std::uint64_t size, bool receipt);
    };
    class Batch;

    template <class T>
    void copy_cell(std::uint64_t cell, T* to, const CellLayout& layout) const;
    const PartSet& set_of(const PartKernels& kernels, const Loss& loss, int lanes) const;
    void join_range(const WholeCells& to, std::uint64_t first, std::uint64_t last) const;
    MixedRows mixed_rows(const Rows& rows, bool wide) const;
    bool have_workers();

    const PartKernels* kernels_;
    bool wide_cells_, receipt_;
    std::vector<std::unique_ptr<Part>> parts_;
    std::unique_ptr<Workers, Workers::End> workers_;  // made when they are first needed
    bool lacks_threads_ = false;                      // the system has none to give
};

}  // namespace ftprl
