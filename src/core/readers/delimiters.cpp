#include "readers/delimiters.hpp"

#include "support/dispatch.hpp"

namespace ftprl {

const DelimiterSearch& delimiter_search() noexcept {
    switch (instruction_set()) {
#if defined(FTPRL_X86)
        case InstructionSet::avx2:
            return delimiter_search_avx2;
        case InstructionSet::sse2:
            return delimiter_search_sse2;
#endif
        default:
            return delimiter_search_portable;
    }
}

}  // namespace ftprl
