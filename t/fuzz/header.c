/* Fuzz target: headers. The scan must not depend on how the bytes were cut, nor may it
 * and the parser disagree; addresses out of a list are addresses. */
#include "mime/header.h"

#include "mime/address.h"

#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct header_scan
scan(struct text t, size_t piece)
{
    struct header_scan s;
    header_scan_start(&s);
    for (; t.length > 0; t = text_after(t, piece))
        header_scan_add(&s, text_before(t, piece));
    return s;
}

static bool
same(const struct header_scan *a, const struct header_scan *b)
{
    return a->received == b->received && a->has_from == b->has_from &&
           a->has_date == b->has_date && a->has_message_id == b->has_message_id &&
           a->headless == b->headless && a->ended == b->ended && a->length == b->length;
}

static void
take_mailbox(void *context, struct text mailbox)
{
    struct address a;
    must(address_parse(mailbox, &a) || address_is_local(mailbox));
    must(!text_has_control(mailbox));
    ++*(size_t *)context;
}

static void
check_value(struct text value)
{
    struct buffer unfolded;
    size_t mailboxes = 0;
    buffer_init(&unfolded, 2 * value.length);
    must(header_unfold(value, &unfolded));
    struct text t = buffer_text(&unfolded);
    must(text_find(t, '\r') == TEXT_NONE && text_find(t, '\n') == TEXT_NONE);
    size_t broken = address_list_read(t, take_mailbox, &mailboxes);
    must(mailboxes + broken <= t.length + 1);
    buffer_free(&unfolded);
}

/* Fields follow one another without a gap; returns their length. */
static size_t
check_fields(struct text t)
{
    struct text rest = t;
    struct header_field f;
    size_t before = 0;
    while (header_next(&rest, &f)) {
        must(f.name.length > 0 && f.whole.length > f.name.length);
        must(f.whole.at == t.at + before && f.name.at == f.whole.at);
        before += f.whole.length;
        must(rest.length == t.length - before);
        check_value(f.value);
    }
    return before;
}

/* The first byte is the size of the pieces. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct text t = text_of(data + 1, size - 1);
    struct header_scan whole = scan(t, t.length), cut = scan(t, (size_t)data[0] + 1);
    must(same(&whole, &cut));
    size_t fields = check_fields(t);
    if (whole.ended)
        must(check_fields(text_before(t, whole.length)) == whole.length);
    must(!whole.headless || fields == 0);
    check_value(t);
    return 0;
}
