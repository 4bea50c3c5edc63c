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
           a->headless == b->headless && a->ended == b->ended && a->length == b->length &&
           a->has_private == b->has_private && a->has_resent == b->has_resent && a->has_odd_name == b->has_odd_name &&
           header_scan_has_bare(a) == header_scan_has_bare(b);
}

static void
take_bare(void *context, const struct address_place *place)
{
    bool *found = context;
    *found = *found || text_find(place->mailbox, '@') == TEXT_NONE;
}

/* The scan has noticed every address without a domain that the parser reads; and each
 * field that is not for the next hop. */
static void
check_needs(struct text header, const struct header_scan *s)
{
    static const char *const lists[] = {"From", "Sender", "Reply-To", "To", "Cc",
                                        "Resent-From", "Resent-Sender", "Resent-Reply-To",
                                        "Resent-To", "Resent-Cc"};
    static const char *const removed[] = {"Bcc", "Resent-Bcc", "Return-Path"};
    struct header_field f;
    while (header_next(&header, &f)) {
        struct buffer unfolded;
        bool bare = false;
        buffer_init(&unfolded, 2 * f.value.length);
        for (size_t i = 0; i < sizeof(removed) / sizeof(removed[0]); i++)
            must(!text_equal_nocase(f.name, text_from(removed[i])) || s->has_private);
        must(f.whole.at[f.name.length] == ':' || s->has_odd_name);
        must(header_unfold(f.value, &unfolded));
        for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
            if (text_equal_nocase(f.name, text_from(lists[i])))
                (void)address_list_read(buffer_text(&unfolded), take_bare, NULL, &bare);
        must(!bare || header_scan_has_bare(s));
        buffer_free(&unfolded);
    }
}

static void
take_mailbox(void *context, const struct address_place *place)
{
    struct address a;
    must(address_parse(place->mailbox, &a) || address_is_local(place->mailbox));
    must(!text_has_control(place->mailbox));
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
    size_t broken = address_list_read(t, take_mailbox, NULL, &mailboxes);
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
    struct text header = whole.ended ? text_before(t, whole.length) : t;
    if (whole.mailbox_line)
        header_skip_mailbox_line(&header);
    check_needs(header, &whole);
    if (whole.ended)
        must(check_fields(header) == header.length);
    must(!whole.headless || fields == 0);
    check_value(t);
    return 0;
}
