/* Fuzz target: the header of submitted mail as it leaves. It has a From, no field that is
 * not for the next hop, and twice is as once. */
#include "mime/rewrite.h"

#include "mime/header.h"
#include "t/support/must.h"

#include <stdint.h>
#include <string.h>

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

/* Which of the fields of interest; -1: none. Those from BCC on are removed. */
enum { TO, CC, SUBJECT, X, FROM, BCC, RESENT_BCC, RETURN_PATH, NAMES };

static int
find_name(struct text name)
{
    static const struct text names[NAMES] = {[TO] = TEXT("To"),
                                             [CC] = TEXT("Cc"),
                                             [SUBJECT] = TEXT("Subject"),
                                             [X] = TEXT("X"),
                                             [FROM] = TEXT("From"),
                                             [BCC] = TEXT("Bcc"),
                                             [RESENT_BCC] = TEXT("Resent-Bcc"),
                                             [RETURN_PATH] = TEXT("Return-Path")};
    for (int i = 0; i < NAMES; i++)
        if (text_equal_nocase(name, names[i]))
            return i;
    return -1;
}

static void
count(struct text header, unsigned counts[NAMES])
{
    struct header_field f;
    memset(counts, 0, NAMES * sizeof(*counts));
    while (header_next(&header, &f)) {
        int which = find_name(f.name);
        if (which >= 0)
            counts[which]++;
    }
}

static void
check_rest(struct text before, struct text after)
{
    unsigned old[NAMES], new[NAMES];
    count(before, old);
    count(after, new);
    for (int i = 0; i < FROM; i++)
        must(old[i] == new[i]);
    for (int i = BCC; i < NAMES; i++)
        must(new[i] == 0);
    must(new[FROM] == (old[FROM] > 0 ? old[FROM] : 1));
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
    buffer_init(&once, 32 * size + 1000); /* each "e;" gets a name and a domain */
    buffer_init(&twice, 32 * size + 1000);
    must(rewrite_header(&r, header, &once));
    check_rest(header, buffer_text(&once));
    must(rewrite_header(&r, buffer_text(&once), &twice));
    must(text_equal(buffer_text(&once), buffer_text(&twice)));
    buffer_free(&once);
    buffer_free(&twice);
    return 0;
}
