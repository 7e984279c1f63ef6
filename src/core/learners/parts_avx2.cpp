// For x86-64 processors with AVX2: scales that several threads learn.
#define FTPRL_ISA avx2
#define FTPRL_PARTS parts_avx2
// In this order: each uses what the one before defines.
// clang-format off
#include "learners/kernel.inl"
#include "learners/scales.inl"
#include "learners/parts.inl"
// clang-format on
