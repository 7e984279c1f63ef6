// For every x86-64 processor.
#define FTPRL_ISA sse2
#define FTPRL_DELIMITER_SEARCH delimiter_search_sse2
#include "readers/delimiters.inl"
