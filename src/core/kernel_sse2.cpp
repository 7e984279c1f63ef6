// For every x86-64 processor.
#define FTPRL_ISA sse2
#define FTPRL_KERNELS kernels_sse2
#define FTPRL_SCALES scales_sse2
#define FTPRL_LEDGERS ledgers_sse2
#include "kernel.inl"
#include "scales.inl"
#include "ledger.inl"
