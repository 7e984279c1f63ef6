#include "readers/marks.hpp"

#include "support/dispatch.hpp"

namespace ftprl {

const Markers& markers() noexcept {
    switch (instruction_set()) {
#if defined(FTPRL_X86)
        case InstructionSet::avx2:
            return markers_avx2;
        case InstructionSet::sse2:
            return markers_sse2;
#endif
        default:
            return markers_portable;
    }
}

}  // namespace ftprl
