// Included inside a namespace that has `fetch(const void*)`.

constexpr std::int64_t TOGETHER = 1024;
constexpr int NEXT = 16;

// What was learned of the coordinates, cells with their S and their numbers, in their order. Those that have a cell are
// looked up some at a time: in a large table few have, and a branch on each would often be wrong.
template <class T, class Use>
inline void each_learned(const CellTable& t, const Coordinates& which, const Use& use) {
    const auto* base = static_cast<const unsigned char*>(t.cells);
    std::uint64_t cells[TOGETHER + NEXT];
    for (std::int64_t from = which.from; from < which.to; from += TOGETHER) {
        const std::int64_t to = from + TOGETHER < which.to ? from + TOGETHER : which.to;
        std::int64_t size = 0;
        for (std::int64_t i = from; i < to; ++i) {
            const auto slot = static_cast<std::uint64_t>(which.slots == nullptr ? i : which.slots[i]);
            cells[size] = t.slot_map == nullptr ? slot : t.slot_map[slot];
            size += t.slot_map == nullptr || cells[size] != 0 ? 1 : 0;
        }
        for (int k = 0; k < NEXT; ++k) cells[size + k] = 0;
        for (std::int64_t j = 0; j < size; ++j) {
            const unsigned char* next = base + cells[j + NEXT] * t.bytes;
            fetch(next);
            if (t.bytes > 64) fetch(next + 64);
            const T* cell = reinterpret_cast<const T*>(base + cells[j] * t.bytes);
            if (cell[t.met] > T(0)) use(cell, t.S.first + cells[j] * t.S.stride, cells[j]);
        }
    }
}
