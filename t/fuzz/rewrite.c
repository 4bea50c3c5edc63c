/* Fuzz target: the header of submitted mail as it leaves, by real tables
 * (t/support/rewrite_check.h). */
#include "mime/header.h"
#include "t/support/rewrite_check.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The part that is a header, without its empty line. */
static struct text
header_of(struct text all)
{
    struct header_scan scan;
    header_scan_start(&scan);
    header_scan_add(&scan, all);
    return text_before(all, scan.length);
}

/* The first byte chooses the sender, and the table. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    rewrite_check(data[0] & 1 ? TEXT("s@x.test") : TEXT(""), header_of(text_of(data + 1, size - 1)),
                  data[0] & 2 ? data[0] / 4 % REWRITE_CHECK_TABLES : -1);
    return 0;
}
