// For any processor: what is watched of each row.
#define FTPRL_ISA portable
#define FTPRL_MONITOR monitor_portable
#define FTPRL_PORTABLE
#include "learners/monitor_rows.inl"
