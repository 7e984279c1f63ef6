// For x86-64 processors with AVX2.
#define FTPRL_ISA avx2
#define FTPRL_KERNELS kernels_avx2
#define FTPRL_SCALES scales_avx2
#define FTPRL_LEDGERS ledgers_avx2
#include "kernel.inl"
#include "scales.inl"
#include "ledger.inl"
