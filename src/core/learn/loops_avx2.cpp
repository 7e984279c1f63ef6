// For x86-64 processors with AVX2.
#define FTPRL_ISA avx2
#define FTPRL_KERNELS kernels_avx2
#include "learn/loops.inl"
