/* Fuzz target: the header of submitted mail as it leaves. It has a From, no field that is
 * not for the next hop, and twice is as once. What could be parsed can be parsed, and has
 * as many addresses, which are complete. */
#include "mime/rewrite.h"

#include "mime/address.h"
#include "mime/header.h"
#include "sched/route/rewrites.h"
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

/* The addresses of the Nth field of a name. */
struct addresses {
    size_t broken, count, bare;
};

static void
take_address(void *context, const struct address_place *place)
{
    struct addresses *a = context;
    struct address parsed;
    a->count++;
    a->bare += !address_parse(place->mailbox, &parsed);
}

static struct addresses
addresses_of(struct text header, struct text name, unsigned which)
{
    struct header_field f;
    struct addresses a = {0};
    while (header_next(&header, &f))
        if (text_equal_nocase(f.name, name) && which-- == 0) {
            a.broken = address_list_places(f.value, take_address, &a);
            break;
        }
    return a;
}

static void
check_addresses(struct text before, struct text after)
{
    static const struct text names[] = {TEXT("From"), TEXT("To"), TEXT("Cc"), TEXT("Errors-To")};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (unsigned which = 0; which < 8; which++) {
            struct addresses old = addresses_of(before, names[i], which);
            struct addresses new = addresses_of(after, names[i], which);
            if (old.count == 0 || old.count > REWRITE_ADDRESSES_MAX)
                continue;
            must(new.count == old.count && new.broken == old.broken);
            must(old.broken > 0 || new.bare == 0);
        }
}

static void
find(const void *table, struct text address, struct rewrite_answer *answer)
{
    struct rewrites_answer found;
    rewrites_find(table, address, &found);
    answer->by_local = found.by_local;
    answer->local = found.local;
    memcpy(answer->address, found.address, sizeof(answer->address));
}

enum { TABLES = 4 };

static const struct rewrites *
table_of(unsigned which)
{
    static const char *const tables[TABLES] = {"local all@example.org\nx.test all@example.org", "* @relay.test",
                                               "example.org =\n* one@example.org",
                                               "a@x.test \"b c\"@example.org\nexample.org =\n.test @example.org\n* =?@example.org"};
    static struct rewrites *made[TABLES];
    struct buffer errors;
    buffer_init(&errors, 1000);
    struct rewrites_settings settings = {.table = text_from(tables[which]), .hostname = "h.test"};
    if (made[which] == NULL)
        made[which] = rewrites_new(&settings, &errors);
    must(made[which] != NULL);
    buffer_free(&errors);
    return made[which];
}

/* The first byte chooses the sender, and the table. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rewrite r = {.hostname = TEXT("h.test"), .sender = TEXT("")};
    struct buffer once, twice;
    if (size == 0)
        return 0;
    if (data[0] & 1)
        r.sender = TEXT("s@x.test");
    if (data[0] & 2) {
        r.find = find;
        r.table = table_of(data[0] / 4 % TABLES);
    }
    struct text header = header_of(text_of(data + 1, size - 1));
    buffer_init(&once, 64 * size + 1000); /* each "e;" gets a name and a domain */
    buffer_init(&twice, 64 * size + 1000);
    must(rewrite_header(&r, header, &once));
    check_rest(header, buffer_text(&once));
    check_addresses(header, buffer_text(&once));
    must(rewrite_header(&r, buffer_text(&once), &twice));
    must(text_equal(buffer_text(&once), buffer_text(&twice)));
    buffer_free(&once);
    buffer_free(&twice);
    return 0;
}
