// For x86-64 processors with AVX2.
#define FTPRL_ISA avx2
#define FTPRL_KERNELS kernels_avx2
#define FTPRL_SCALES scales_avx2
#define FTPRL_CLASSES classes_avx2
// In this order: each uses what the one before defines.
// clang-format off
#include "learners/kernel.inl"
#include "learners/scales.inl"
#include "learners/classes.inl"
// clang-format on
