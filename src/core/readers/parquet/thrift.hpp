// The compact protocol of Apache Thrift, in which Parquet writes its metadata: structures of numbered fields.
// (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md)
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "readers/scan.hpp"

namespace ftprl::parquet {

// What is wrong with a file; whoever reads it says in which one.
class Damaged : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
};

class Thrift {
public:
    enum Type : int { yes = 1, no = 2, byte = 3, i16 = 4, i32 = 5, i64 = 6, real = 7, text = 8, list = 9, set = 10 };
    static constexpr int MAP = 11, STRUCTURE = 12;

    Thrift(const Byte* p, const Byte* end) noexcept : p_(p), end_(end) {}

    const Byte* at() const noexcept { return p_; }

    // Calls visit(id, type) for each field of a structure; what it has not read, and returns false for, is skipped.
    template <class Visit>
    void structure(Visit&& visit) {
        const Deeper here(*this);
        std::int64_t id = 0;
        while (const Byte head = next()) {
            id = head >> 4 != 0 ? id + (head >> 4) : number();
            const int type = head & 15;
            if (!visit(id, type)) skip(type, false);
        }
    }

    // Calls each(type) for each element of a list, which has to read it.
    template <class Each>
    void elements(Each&& each) {
        const Byte head = next();
        const std::uint64_t size = head >> 4 == 15 ? varint() : head >> 4;
        if (size > static_cast<std::uint64_t>(end_ - p_)) cut();  // an element has a byte at least
        for (std::uint64_t i = 0; i < size; ++i) each(head & 15);
    }

    std::int64_t number() {
        const std::uint64_t bits = varint();
        return static_cast<std::int64_t>(bits >> 1 ^ (~(bits & 1) + 1));
    }
    // A number in a field of one of the types for them.
    bool number(int type, std::int64_t& out) {
        if (type != i16 && type != i32 && type != i64) return false;
        out = number();
        return true;
    }
    bool string(int type, std::string& out) {
        if (type != text) return false;
        const std::size_t size = length();
        out.assign(reinterpret_cast<const char*>(p_), size);
        p_ += size;
        return true;
    }

    void skip(int type, bool in_list) {
        switch (type) {
            case yes:
            case no:
                if (in_list) next();
                return;
            case byte:
                next();
                return;
            case i16:
            case i32:
            case i64:
                varint();
                return;
            case real:
                advance(8);
                return;
            case text:
                advance(length());
                return;
            case list:
            case set: {
                const Deeper here(*this);
                return elements([&](int inner) { skip(inner, true); });
            }
            case MAP:
                return skip_map();
            case STRUCTURE:
                return structure([](std::int64_t, int) { return false; });
            default:
                throw Damaged("metadata of an unknown type");
        }
    }

private:
    static constexpr int DEEPEST = 32;

    struct Deeper {
        explicit Deeper(Thrift& reader) : owner(reader) {
            if (++owner.depth_ > DEEPEST) throw Damaged("metadata that is nested too deep");
        }
        ~Deeper() { --owner.depth_; }
        Deeper(const Deeper&) = delete;
        Deeper& operator=(const Deeper&) = delete;
        Thrift& owner;
    };

    [[noreturn]] static void cut() { throw Damaged("metadata that is cut"); }

    Byte next() {
        if (p_ == end_) cut();
        return *p_++;
    }
    void advance(std::size_t size) {
        if (size > static_cast<std::size_t>(end_ - p_)) cut();
        p_ += size;
    }
    std::size_t length() {
        const std::uint64_t size = varint();
        if (size > static_cast<std::uint64_t>(end_ - p_)) cut();
        return static_cast<std::size_t>(size);
    }
    std::uint64_t varint() {
        std::uint64_t bits = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const Byte part = next();
            bits |= std::uint64_t{part & 0x7fu} << shift;
            if (part < 0x80) return bits;
        }
        throw Damaged("a number that is too long");
    }
    void skip_map() {
        const Deeper here(*this);
        const std::uint64_t size = varint();
        if (size == 0) return;
        if (size > static_cast<std::uint64_t>(end_ - p_)) cut();
        const Byte types = next();
        for (std::uint64_t i = 0; i < size; ++i) {
            skip(types >> 4, true);
            skip(types & 15, true);
        }
    }

    const Byte* p_;
    const Byte* end_;
    int depth_ = 0;
};

}  // namespace ftprl::parquet
