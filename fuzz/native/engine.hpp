// What the fuzz targets share. A target is a function of a body of bytes and of a choice, 64 bits from which it draws
// its options: the two together repeat an execution exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace fuzz {

// SplitMix64: the same numbers everywhere, which the standard library's distributions do not promise.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t x = state_ += 0x9e3779b97f4a7c15u;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        return x ^ x >> 31;
    }
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
    bool one_in(std::size_t n) { return below(n) == 0; }

    template <class T, std::size_t N>
    const T& pick(const T (&of)[N]) {
        return of[below(N)];
    }

private:
    std::uint64_t state_;
};

// A law does not hold: says so, keeps the input and ends the process.
[[noreturn]] void fail(const std::string& what);

inline void law(bool holds, const char* what) {
    if (!holds) fail(what);
}

// A copy of some bytes in memory of exactly their size: a sanitizer sees every byte read beyond them.
class Exact {
public:
    explicit Exact(const std::string& text) : size_(text.size()), data_(new unsigned char[text.size()]) {
        if (!text.empty()) std::memcpy(data_.get(), text.data(), text.size());
    }
    const unsigned char* data() const { return data_.get(); }
    const unsigned char* end() const { return data_.get() + size_; }
    std::size_t size() const { return size_; }

private:
    std::size_t size_;
    std::unique_ptr<unsigned char[]> data_;
};

struct Target {
    const char* name;
    void (*run)(const std::string& body, Random random);
    std::vector<std::string> tokens;  // what a body is made of, for the mutations
};

const std::vector<Target>& targets();

Target vw_target();
Target libsvm_target();
Target table_target();
Target jsonl_target();
Target number_target();
Target label_target();
Target hash_target();
Target words_target();
Target learning_target();
Target canary_target();

std::string mutated(std::string body, const std::vector<std::string>& tokens, const std::vector<std::string>& corpus,
                    Random& random);

// Coverage of the code that was compiled with -fsanitize-coverage=trace-pc; nothing is ever new without it.
void forget_path();
bool is_new_path();
std::size_t branches_seen();

}  // namespace fuzz
