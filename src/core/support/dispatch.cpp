#include "support/dispatch.hpp"

#include <atomic>
#include <cstring>

namespace ftprl {
namespace {

InstructionSet best() noexcept {
#if defined(FTPRL_X86)
    static const bool has_avx2 = __builtin_cpu_supports("avx2");
    return has_avx2 ? InstructionSet::avx2 : InstructionSet::sse2;
#else
    return InstructionSet::portable;
#endif
}

constexpr int UNCHOSEN = -1;
std::atomic<int> chosen{UNCHOSEN};

bool choose(InstructionSet set) noexcept {
    if (set > best()) return false;
    chosen = static_cast<int>(set);
    return true;
}

}  // namespace

InstructionSet instruction_set() noexcept {
    const int set = chosen;
    return set == UNCHOSEN ? best() : static_cast<InstructionSet>(set);
}

bool use_instruction_set(const char* name) noexcept {
    if (*name == '\0') return choose(best());
    if (std::strcmp(name, "portable") == 0) return choose(InstructionSet::portable);
    if (std::strcmp(name, "sse2") == 0) return choose(InstructionSet::sse2);
    return std::strcmp(name, "avx2") == 0 && choose(InstructionSet::avx2);
}

}  // namespace ftprl
