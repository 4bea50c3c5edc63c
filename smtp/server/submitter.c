/* Judges the From of submitted mail, and notes the submitter. */
#include "smtp/server/submitter.h"

#include "base/log/log.h"
#include "mime/address.h"
#include "base/event/event.h"
#include "smtp/access/senders.h"

#include <stdio.h>

enum { FROM_MAX = 512, SUBMITTER_NAME_MAX = 512 };

void
submitter_gather(struct server_transaction *t, struct text content)
{
    (void)!buffer_add(&t->head,
                      text_before(content, SUBMITTER_HEAD_MAX - t->head.length));
}

struct submitter_from {
    struct buffer address; /* of the first one, normal form */
    const char *hostname;  /* completes a bare one, as before it leaves */
    bool seen;
    bool broken; /* an entry of its list: some programs would read an address there */
};

static void
keep_first(void *context, struct text mailbox)
{
    struct submitter_from *from = context;
    struct address address;
    if (from->seen)
        return;
    from->seen = true;
    if (!address_parse(mailbox, &address))
        address = (struct address){mailbox, text_from(from->hostname), false};
    if (!address_write(&address, &from->address))
        buffer_clear(&from->address);
}

/* A field without any entry is no From for this. */
static void
submitter_read_from(struct text head, struct submitter_from *from)
{
    struct header_field f;
    struct buffer unfolded;
    header_skip_mailbox_line(&head);
    while (!from->seen && !from->broken && header_next(&head, &f)) {
        if (!text_equal_nocase(f.name, TEXT("From")))
            continue;
        buffer_init(&unfolded, SUBMITTER_HEAD_MAX);
        from->broken = !header_unfold(f.value, &unfolded) ||
                       address_list_read(buffer_text(&unfolded), keep_first, from) > 0;
        buffer_free(&unfolded);
    }
}

/* The permission is that for MAIL. A missing From is made from the sender, which has
 * it. */
static bool
submitter_may_use_from(struct server_transaction *t, const struct server *s)
{
    struct submitter_from from = {.hostname = s->rules->hostname};
    struct outcome refusal;
    buffer_init(&from.address, FROM_MAX);
    submitter_read_from(buffer_text(&t->head), &from);
    struct text address = buffer_text(&from.address);
    bool whole = !from.broken && t->header.length <= SUBMITTER_HEAD_MAX &&
                 from.seen == (address.length > 0);
    bool permitted =
        whole && senders_permit(s->rules->senders, s->user, true, address, &refusal);
    if (from.broken)
        log_say(event_hub_log(s->events), LOG_LEVEL_INFO, "smtpd", t->id,
                "From is malformed: neither signed nor rewritten");
    else if (!permitted)
        log_say(event_hub_log(s->events), LOG_LEVEL_INFO, "smtpd", t->id,
                "From <%.*s> is not a sender of %s%s: neither signed nor rewritten",
                TEXT_ARGS(address), s->user != NULL ? "user " : "this client",
                s->user != NULL ? s->user : "");
    buffer_free(&from.address);
    return permitted;
}

void
submitter_note(struct server_transaction *t, const struct server *s)
{
    struct envelope *e = t->envelope;
    char name[SUBMITTER_NAME_MAX] = "";
    e->ours = !t->gathers_head || submitter_may_use_from(t, s);
    if (!e->ours)
        return;
    if (s->user != NULL)
        snprintf(name, sizeof(name), "user:%s", s->user);
    else if (s->uid != SERVER_NO_UID)
        snprintf(name, sizeof(name), "uid:%u", s->uid);
    e->submitter = envelope_text(e, text_from(name));
    e->header_needs =
        (t->header.has_from ? 0 : HEADER_NEEDS_FROM) |
        (t->header.has_private || t->header.has_odd_name || t->header.unseparated
             ? HEADER_NEEDS_REMOVAL
             : 0) |
        (header_scan_has_bare(&t->header) ? HEADER_NEEDS_DOMAIN : 0);
}
