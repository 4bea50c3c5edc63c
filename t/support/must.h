/* Conditions that a test or a fuzzer needs: if one does not hold, the process ends. */
#ifndef T_SUPPORT_MUST_H
#define T_SUPPORT_MUST_H

#include <stdnoreturn.h>

#define must(...) ((__VA_ARGS__) ? (void)0 : must_fail(#__VA_ARGS__, __FILE__, __LINE__))

noreturn void must_fail(const char *condition, const char *file, int line);

#endif
