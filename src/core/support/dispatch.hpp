// The instruction set that the core uses. All kernels, which are compiled several times, ask here, so that one choice
// holds for all.
#pragma once

// What has to be compiled into its caller, and for the processor of its caller; the same in learn/lanes.inl.
#if defined(__GNUC__)
#define FTPRL_INSIDE inline __attribute__((always_inline))
#else
#define FTPRL_INSIDE inline
#endif

// Marks an AVX2 function in a file for all processors; functions it calls must be inlined to use AVX2.
#if defined(FTPRL_X86)
#define FTPRL_AVX2 __attribute__((target("avx2")))
#endif

namespace ftprl {

enum class InstructionSet { portable, sse2, avx2 };

// The best that this processor has, unless another one was chosen.
InstructionSet instruction_set() noexcept;

// Chooses one for all later objects, in tests and benchmarks: "avx2", "sse2", "portable", or "" for the best. False,
// without a change, if the name is unknown or the processor lacks it.
bool use_instruction_set(const char* name) noexcept;

}  // namespace ftprl
