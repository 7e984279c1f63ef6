// For any processor.
#define FTPRL_ISA portable
#define FTPRL_KERNELS kernels_portable
#define FTPRL_SCALES scales_portable
#define FTPRL_CLASSES classes_portable
// In this order: each uses what the one before defines.
// clang-format off
#include "learners/kernel.inl"
#include "learners/scales.inl"
#include "learners/classes.inl"
// clang-format on
