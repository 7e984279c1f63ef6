#include "readers/delimiters.hpp"

#include <atomic>
#include <cstring>

namespace ftprl {
namespace {

std::atomic<const DelimiterSearch*> chosen{nullptr};

const DelimiterSearch* named(const char* name) noexcept {
    const bool best = *name == '\0';
#if defined(FTPRL_X86)
    const bool has_avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt");
    if ((best || std::strcmp(name, "avx2") == 0) && has_avx2) return &delimiter_search_avx2;
    if (best || std::strcmp(name, "sse2") == 0) return &delimiter_search_sse2;
#endif
    return best || std::strcmp(name, "portable") == 0 ? &delimiter_search_portable : nullptr;
}

}  // namespace

const DelimiterSearch& delimiter_search() noexcept {
    const DelimiterSearch* search = chosen.load();
    return search != nullptr ? *search : *named("");
}

bool use_delimiter_search(const char* name) noexcept {
    const DelimiterSearch* search = named(name);
    if (search != nullptr) chosen.store(search);
    return search != nullptr;
}

}  // namespace ftprl
