/* Reads recipients from arguments and header fields into an envelope. */
#include "admin/sendmail/recipients.h"

#include "base/memory.h"
#include "mime/address.h"
#include "mime/header.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <uthash.h>

struct recipients_seen {
    UT_hash_handle hh; /* its key is the address in the envelope */
};

bool
recipients_qualify(struct text written, const char *hostname, struct buffer *out)
{
    char whole[2 * RECIPIENTS_ADDRESS_MAX];
    struct address address;
    if (text_has_control(written))
        return false;
    struct text t = text_within(text_trim(written), '<', '>');
    if (address_parse(t, &address))
        return address_write(&address, out);
    int length = snprintf(whole, sizeof(whole), "%.*s@%s", TEXT_ARGS(t), hostname);
    return length > 0 && (size_t)length < sizeof(whole) && address_is_local(t) &&
           address_parse(text_from(whole), &address) && address_write(&address, out);
}

static void
recipients_fail(struct recipients *r, const char *error)
{
    if (r->error == NULL)
        r->error = error;
}

/* NULL: all are full. */
static struct envelope *
begin_next(struct recipients *r)
{
    struct envelope *last = r->envelope;
    if (r->full_count == RECIPIENTS_ENVELOPES_MAX - 1)
        return NULL;
    r->full[r->full_count++] = last;
    r->envelope = envelope_new();
    r->envelope->sender = envelope_text(r->envelope, last->sender);
    r->envelope->envelope_id = envelope_text(r->envelope, last->envelope_id);
    r->envelope->ret = last->ret;
    return r->envelope;
}

static void
add_normal(struct recipients *r, struct text address)
{
    struct envelope *e = r->envelope;
    struct recipients_seen *known;
    HASH_FIND(hh, r->known, address.at, address.length, known);
    if (known)
        return;
    if (e->count == RECIPIENTS_PER_ENVELOPE)
        e = begin_next(r);
    if (e == NULL || !envelope_add(e, address, r->notify, TEXT(""))) {
        recipients_fail(r, "too many recipients (1000000 at most)");
        return;
    }
    struct text kept = e->recipients[e->count - 1].address;
    assert(text_equal(kept, address));
    known = memory_new(sizeof(*known));
    HASH_ADD_KEYPTR(hh, r->known, kept.at, kept.length, known);
}

/* The entry as text that no reader takes for an address. */
static struct text
recipients_inert(struct text entry, char inert[RECIPIENTS_ADDRESS_MAX])
{
    struct address parsed;
    size_t length = 0;
    for (size_t at = 0; at < entry.length && length < ADDRESS_MAX; at++) {
        char c = entry.at[at];
        inert[length++] = c == '\t' ? ' ' : c < ' ' || c > '~' ? '?' : c;
    }
    inert[length] = '\0';
    if (address_parse(text_of(inert, length), &parsed))
        inert[0] = '<';
    return text_of(inert, length);
}

static void
add_broken(void *context, struct text entry)
{
    struct recipients *r = context;
    char inert[RECIPIENTS_ADDRESS_MAX];
    struct text kept = recipients_inert(entry, inert);
    unsigned before = recipients_count(r);
    if (r->broken[0] == '\0')
        snprintf(r->broken, sizeof(r->broken), "%s", inert);
    if (!r->returns_broken)
        recipients_fail(r, "not a mail address, or a broken list");
    else if (kept.length > 0)
        add_normal(r, kept);
    r->broken_count += recipients_count(r) - before;
}

static void
recipients_add_one(void *context, const struct address_place *place)
{
    struct recipients *r = context;
    struct buffer normal;
    buffer_init(&normal, RECIPIENTS_ADDRESS_MAX);
    if (recipients_qualify(place->mailbox, r->hostname, &normal))
        add_normal(r, buffer_text(&normal));
    else
        add_broken(r, place->mailbox);
    buffer_free(&normal);
}

bool
recipients_add(struct recipients *r, struct text list)
{
    address_list_read(list, recipients_add_one, add_broken, r);
    return r->error == NULL;
}

struct recipients_sender {
    struct buffer kept;
    unsigned count;
};

static void
recipients_note_sender(void *context, const struct address_place *place)
{
    struct recipients_sender *s = context;
    s->count++;
    buffer_clear(&s->kept);
    (void)!buffer_add(&s->kept, place->mailbox);
}

bool
recipients_qualify_sender(struct text written, const char *hostname, struct buffer *out)
{
    char plain[2 * RECIPIENTS_ADDRESS_MAX];
    struct recipients_sender s = {.count = 0};
    size_t length = 0;
    if (recipients_qualify(written, hostname, out))
        return true;
    if (text_has_control(written) || written.length > sizeof(plain))
        return false;
    for (size_t at = 0; at < written.length; at++)
        if (written.at[at] != '\\' || at + 1 == written.length ||
            text_find(TEXT("<>"), written.at[at + 1]) == TEXT_NONE)
            plain[length++] = written.at[at];
    buffer_init(&s.kept, RECIPIENTS_ADDRESS_MAX);
    bool good = address_list_read(text_of(plain, length), recipients_note_sender, NULL,
                                  &s) == 0 &&
                s.count == 1 && recipients_qualify(buffer_text(&s.kept), hostname, out);
    buffer_free(&s.kept);
    return good;
}

unsigned
recipients_count(const struct recipients *r)
{
    return r->full_count * RECIPIENTS_PER_ENVELOPE + r->envelope->count;
}

struct envelope **
recipients_envelope(struct recipients *r, unsigned index)
{
    if (index < r->full_count)
        return &r->full[index];
    return index == r->full_count ? &r->envelope : NULL;
}

void
recipients_free(struct recipients *r)
{
    struct recipients_seen *known, *next;
    HASH_ITER (hh, r->known, known, next) {
        HASH_DEL(r->known, known);
        free(known);
    }
    for (unsigned i = 0; i <= r->full_count; i++)
        envelope_free(recipients_envelope(r, i));
}
