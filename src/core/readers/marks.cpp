#include "readers/marks.hpp"

#include <atomic>
#include <cstring>

namespace ftprl {
namespace {

std::atomic<const Markers*> chosen{nullptr};

const Markers* named(const char* name) noexcept {
    const bool best = *name == '\0';
#if defined(FTPRL_X86)
    const bool has_avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt");
    if ((best || std::strcmp(name, "avx2") == 0) && has_avx2) return &markers_avx2;
    if (best || std::strcmp(name, "sse2") == 0) return &markers_sse2;
#endif
    return best || std::strcmp(name, "portable") == 0 ? &markers_portable : nullptr;
}

}  // namespace

const Markers& markers() noexcept {
    const Markers* found = chosen.load();
    return found != nullptr ? *found : *named("");
}

bool use_markers(const char* name) noexcept {
    const Markers* found = named(name);
    if (found != nullptr) chosen.store(found);
    return found != nullptr;
}

}  // namespace ftprl
