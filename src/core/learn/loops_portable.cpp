// For any processor.
#define FTPRL_ISA portable
#define FTPRL_KERNELS kernels_portable
#include "learn/loops.inl"
