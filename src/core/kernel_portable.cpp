// For any processor.
#define FTPRL_ISA portable
#define FTPRL_KERNELS kernels_portable
#define FTPRL_SCALES scales_portable
#define FTPRL_LEDGERS ledgers_portable
#define FTPRL_PORTABLE
#include "kernel.inl"
#include "scales.inl"
#include "ledger.inl"
