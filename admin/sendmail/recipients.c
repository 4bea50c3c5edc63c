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
    struct text t = text_trim(written);
    if (t.length >= 2 && t.at[0] == '<' && t.at[t.length - 1] == '>')
        t = text_of(t.at + 1, t.length - 2);
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

static void
add_normal(struct recipients *r, struct text address)
{
    struct envelope *e = r->envelope;
    struct recipients_seen *known;
    HASH_FIND(hh, r->known, address.at, address.length, known);
    if (known)
        return;
    if (e->count >= r->limit || !envelope_add(e, address, r->notify, TEXT(""))) {
        recipients_fail(r, "too many recipients (recipient_limit)");
        return;
    }
    struct text kept = e->recipients[e->count - 1].address;
    assert(text_equal(kept, address));
    known = memory_new(sizeof(*known));
    HASH_ADD_KEYPTR(hh, r->known, kept.at, kept.length, known);
}

static void
add_one(void *context, struct text mailbox)
{
    struct recipients *r = context;
    struct buffer normal;
    buffer_init(&normal, RECIPIENTS_ADDRESS_MAX);
    if (recipients_qualify(mailbox, r->hostname, &normal))
        add_normal(r, buffer_text(&normal));
    else
        recipients_fail(r, "not a mail address");
    buffer_free(&normal);
}

bool
recipients_add(struct recipients *r, struct text list)
{
    if (address_list_read(list, add_one, r) > 0)
        recipients_fail(r, "not a mail address, or a broken list");
    return r->error == NULL;
}

void
recipients_free(struct recipients *r)
{
    struct recipients_seen *known, *next;
    HASH_ITER (hh, r->known, known, next) {
        HASH_DEL(r->known, known);
        free(known);
    }
}
