// For any processor.
#define FTPRL_ISA portable
#define FTPRL_DELIMITER_SEARCH delimiter_search_portable
#define FTPRL_PORTABLE
#include "readers/delimiters.inl"
