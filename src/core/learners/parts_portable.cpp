// For any processor: scales that several threads learn.
#define FTPRL_ISA portable
#define FTPRL_PARTS parts_portable
#define FTPRL_PORTABLE
// In this order: each uses what the one before defines.
// clang-format off
#include "learners/kernel.inl"
#include "learners/scales.inl"
#include "learners/parts.inl"
// clang-format on
