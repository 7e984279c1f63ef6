// For x86-64 processors with AVX2, which have BMI and POPCNT as well.
#define FTPRL_ISA avx2
#define FTPRL_DELIMITER_SEARCH delimiter_search_avx2
#include "readers/delimiters.inl"
