// For every x86-64 processor.
#define FTPRL_ISA sse2
#define FTPRL_KERNELS kernels_sse2
#define FTPRL_SCALES scales_sse2
#define FTPRL_LEDGERS ledgers_sse2
#define FTPRL_CLASSES classes_sse2
// In this order: each uses what the one before defines.
// clang-format off
#include "learners/kernel.inl"
#include "learners/scales.inl"
#include "learners/ledger.inl"
#include "learners/classes.inl"
// clang-format on
