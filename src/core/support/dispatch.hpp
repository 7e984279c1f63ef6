// Which instruction set the core uses. Everything that is compiled several times, kernels and delimiter search alike,
// asks here, so that one choice holds for all.
#pragma once

namespace ftprl {

enum class InstructionSet { portable, sse2, avx2 };

// The best that this processor has, unless another one was chosen.
InstructionSet instruction_set() noexcept;

// Choose one for everything made from now on, in tests and benchmarks: "avx2", "sse2", "portable", or "" for the best.
// False, and no change, when the name is unknown or the processor lacks it.
bool use_instruction_set(const char* name) noexcept;

}  // namespace ftprl
