/* The properties of every header that is rewritten (mime/rewrite.h), with the real table:
 * for the walk and the fuzzer. The process ends if it does not. */
#ifndef T_SUPPORT_REWRITE_CHECK_H
#define T_SUPPORT_REWRITE_CHECK_H

#include "base/text.h"

enum { REWRITE_CHECK_TABLES = 4 };
/* header: without its empty line. table: below REWRITE_CHECK_TABLES; -1: none. */
void rewrite_check(struct text sender, struct text header, int table);

#endif
