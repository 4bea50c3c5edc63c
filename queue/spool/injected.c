/* Takes from another user's envelope only the data that an injector may set, and logs
 * it. */
#include "queue/spool/injected.h"

#include "mime/address.h"
#include "mime/header.h"

#include <stdio.h>
#include <stdlib.h>

enum { INJECTED_SUBMITTER_MAX = 24 };

static const int64_t age_max_ms = INT64_C(365) * 24 * 60 * 60 * 1000;

/* An argument of an SMTP command. */
static struct text
injected_word_of(struct text t, size_t length_max)
{
    bool good = t.length <= length_max && !text_has_control(t) &&
                text_find(t, ' ') == TEXT_NONE && text_is_utf8(t);
    return good ? t : TEXT("");
}

static unsigned
notify_of(unsigned notify)
{
    const unsigned wishes = NOTIFY_SUCCESS | NOTIFY_FAILURE | NOTIFY_DELAY;
    return (notify & NOTIFY_NEVER) != 0 ? NOTIFY_NEVER : notify & wishes;
}

/* A message with a bad address is returned; an address that is not text could not even
 * be reported. */
static bool
injected_take_recipient(struct recipient *r)
{
    r->original = injected_word_of(r->original, INJECTED_ORIGINAL_MAX);
    r->notify = notify_of(r->notify);
    r->way = NULL;
    r->expanded = r->done = false;
    r->refused = RECIPIENT_GOOD;
    return r->address.length > 0 && r->address.length <= INJECTED_ADDRESS_MAX;
}

static struct text
prefix_of(struct text t)
{
    bool good = t.length <= INJECTED_PREFIX_MAX && t.length >= 2 &&
                text_equal(text_after(t, t.length - 2), TEXT("\r\n"));
    return good ? t : TEXT("");
}

static bool
is_sender(struct text t)
{
    struct address address;
    return t.length == 0 || address_parse(t, &address);
}

const char *
injected_take(struct envelope *e, unsigned user, int64_t now_ms)
{
    char submitter[INJECTED_SUBMITTER_MAX];
    /* birth_ms decides expiry: a time in the future would prolong the message's
     * life. */
    if (e->birth_ms > now_ms || e->birth_ms < now_ms - age_max_ms)
        e->birth_ms = now_ms;
    e->envelope_id = injected_word_of(e->envelope_id, INJECTED_ID_MAX);
    e->prefix = prefix_of(e->prefix);
    e->ascii_header = false;
    e->priority = 0;
    e->double_bounce = e->fragment.by_peer = false;
    e->fragment.made_of = e->fragment.set_mark = TEXT("");
    e->message_id = e->tag = TEXT(""); /* read from the header, where they are wanted */
    e->ways = NULL;
    e->moved = (struct moved_state){0};
    free(e->delivery.failures);
    e->delivery = (struct delivery_state){0};
    snprintf(submitter, sizeof(submitter), "uid:%u", user);
    e->ours = true;
    e->header_needs = HEADER_NEEDS_ALL;
    e->submitter = envelope_text(e, text_from(submitter));
    e->trust = TEXT("int"); /* as for every user who may submit mail here */
    if (!is_sender(e->sender))
        return "its sender is no address";
    if (e->count == 0)
        return "it has no recipient";
    for (unsigned i = 0; i < e->count; i++)
        if (!injected_take_recipient(&e->recipients[i]))
            return "a recipient is no address";
    return NULL;
}

void
injected_read_names(struct text prefix, struct text head, struct injected_names *out)
{
    struct header_scan scan;
    header_scan_start(&scan);
    header_scan_add(&scan, prefix);
    header_scan_add(&scan, head);
    (void)text_copy(out->message_id, sizeof(out->message_id),
                    header_scan_message_id(&scan));
    (void)text_copy(out->tag, sizeof(out->tag), header_scan_tag(&scan));
}
