// Zeroed memory for a table: aligned, on huge pages where the system has them, and taken up only when touched.
#pragma once

#include <cstddef>
#include <memory>

namespace ftprl {

class Memory {
public:
    explicit Memory(std::size_t bytes);  // throws std::bad_alloc
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    void* data() const { return data_; }
    std::size_t size() const { return size_; }

    // Set the bytes from `from` to `to` to zero again, and give them back where the system can take them.
    void clear(std::size_t from, std::size_t to);

    // Have a table of so many bytes made ready by a thread, which the next one of that size then is. The first use of
    // a page takes long: whoever knows early what will be needed can do something else meanwhile. The latest wish
    // counts.
    static void expect(std::size_t bytes);

    // Take over the first `size` bytes of another; what is zero there is not touched here.
    void copy_from(const Memory& other, std::size_t size);

private:
    struct Helper;
    Memory();
    void map(std::size_t bytes);
    bool take_expected(std::size_t bytes);

    void* block_ = nullptr;  // what the system gave
    std::size_t block_size_ = 0;
    void* data_ = nullptr;  // its aligned part
    std::size_t size_ = 0;
    std::unique_ptr<Helper> helper_;  // of a table that is expected, until somebody has it
};

}  // namespace ftprl
