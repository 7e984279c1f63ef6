// For every x86-64 processor.
#define FTPRL_ISA sse2
#define FTPRL_MARKERS markers_sse2
#include "readers/marks.inl"
