// For x86-64 processors with SSE2: scales that several threads learn.
#define FTPRL_ISA sse2
#define FTPRL_PARTS parts_sse2
// In this order: each uses what the one before defines.
// clang-format off
#include "learners/kernel.inl"
#include "learners/scales.inl"
#include "learners/parts.inl"
// clang-format on
