// For any processor.
#define FTPRL_ISA portable
#define FTPRL_MARKERS markers_portable
#define FTPRL_PORTABLE
#include "readers/marks.inl"
