#define FTPRL_ISA base
#define FTPRL_KERNELS kernels_base
#include "kernel.inl"
