// For x86-64 processors with AVX2: what is watched of each row.
#define FTPRL_ISA avx2
#define FTPRL_MONITOR monitor_avx2
#include "learners/monitor_rows.inl"
