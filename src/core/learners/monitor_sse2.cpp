// For x86-64 processors: what is watched of each row.
#define FTPRL_ISA sse2
#define FTPRL_MONITOR monitor_sse2
#include "learners/monitor_rows.inl"
