// Which instruction set the core uses. All kernels, which are compiled several times, ask here, so that one choice
// holds for all.
#pragma once

// What has to be compiled into its caller, and for the processor of its caller; the same in learn/lanes.inl.
#if defined(__GNUC__)
#define FTPRL_INSIDE inline __attribute__((always_inline))
#else
#define FTPRL_INSIDE inline
#endif

// A function for AVX2 in a file for all processors; what is to use AVX2 with it has to be inside.
#if defined(FTPRL_X86)
#define FTPRL_AVX2 __attribute__((target("avx2")))
#endif

namespace ftprl {

enum class InstructionSet { portable, sse2, avx2 };

// The best that this processor has, unless another one was chosen.
InstructionSet instruction_set() noexcept;

// Choose one for everything made from now on, in tests and benchmarks: "avx2", "sse2", "portable", or "" for the best.
// False, and no change, when the name is unknown or the processor lacks it.
bool use_instruction_set(const char* name) noexcept;

}  // namespace ftprl
