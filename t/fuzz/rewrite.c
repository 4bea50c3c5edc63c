/* Fuzz target: the header of submitted mail as it leaves. It has a From, no field that is
 * not for the next hop, and twice is as once. */
#include "mime/rewrite.h"

#include "mime/header.h"
#include "t/support/must.h"

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

static unsigned
count(struct text header, const char *name)
{
    struct header_field f;
    unsigned found = 0;
    while (header_next(&header, &f))
        found += text_equal_nocase(f.name, text_from(name));
    return found;
}

static void
check_rest(struct text before, struct text after)
{
    static const char *const kept[] = {"To", "Cc", "Subject", "X"};
    static const char *const removed[] = {"Bcc", "Resent-Bcc", "Return-Path"};
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        must(count(before, kept[i]) == count(after, kept[i]));
    for (size_t i = 0; i < sizeof(removed) / sizeof(removed[0]); i++)
        must(count(after, removed[i]) == 0);
    must(count(after, "From") == (count(before, "From") > 0 ? count(before, "From") : 1));
}

/* As "rewrite = local all@example.org", and a row for a domain. */
static void
find(const void *table, struct text address, struct rewrite_answer *answer)
{
    bool local = text_find(address, '@') == TEXT_NONE;
    (void)table;
    *answer = (struct rewrite_answer){.local = local};
    if (local || text_ends_nocase(address, TEXT("@x.test")))
        text_copy(answer->address, sizeof(answer->address), TEXT("all@example.org"));
}

/* The first byte chooses the sender, and whether there is a table. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rewrite r = {.hostname = TEXT("h.test"), .sender = TEXT("")};
    struct buffer once, twice;
    if (size == 0)
        return 0;
    if (data[0] & 1)
        r.sender = TEXT("s@x.test");
    if (data[0] & 2)
        r.find = find;
    struct text header = header_of(text_of(data + 1, size - 1));
    buffer_init(&once, 4 * size + 1000);
    buffer_init(&twice, 8 * size + 2000);
    must(rewrite_header(&r, header, &once));
    check_rest(header, buffer_text(&once));
    must(rewrite_header(&r, buffer_text(&once), &twice));
    must(text_equal(buffer_text(&once), buffer_text(&twice)));
    buffer_free(&once);
    buffer_free(&twice);
    return 0;
}
