/* Copies of mail for the addresses of `copy_to`: recipients more, each with a mail of its
 * own from the null sender. So they are durable with the message, and their results are. */
#include "queue/manager/manager_internal.h"

#include "mime/verp.h"

enum { COPY_ERRORS_MAX = 1024 };

void
manager_copies_set(struct manager *m, struct text table)
{
    struct buffer errors;
    buffer_init(&errors, COPY_ERRORS_MAX);
    struct copies *fresh = copies_new(table, &errors);
    if (fresh == NULL) { /* the settings were checked: it cannot be */
        log_say(m->log, LOG_LEVEL_ERROR, "queue", NULL, "the old copy_to stays: %.*s",
                TEXT_ARGS(text_trim(buffer_text(&errors))));
    } else {
        copies_free(&m->copies);
        m->copies = fresh;
    }
    buffer_free(&errors);
}

/* Beyond a limit the message fails for all: none goes without its copy. */
static void
copies_add_all(const struct copies *copies, const struct copies_match *match,
               struct envelope *e)
{
    struct text address;
    unsigned at = 0, given = e->count;
    bool good = true;
    while (good && copies_next(copies, match, &at, &address))
        good = envelope_add_copy(e, address);
    if (good)
        return;
    e->count = given;
    for (unsigned i = 0; i < e->count; i++)
        e->recipients[i].refused = RECIPIENT_TOO_MANY;
}

/* A report that comes back is read, and goes to nobody. */
static bool
copies_skip(const struct manager *m, const struct envelope *e)
{
    struct address address;
    struct verp_tag tag;
    if (m->verp == NULL)
        return false;
    for (unsigned i = 0; i < e->count; i++)
        if (!address_parse(e->recipients[i].address, &address) ||
            verp_read(m->verp, &address, loop_now_ms(m->loop), &tag) == VERP_NO)
            return false;
    return true;
}

void
manager_copy(struct manager *m, struct envelope *e)
{
    struct copies_match match = {.wanted = 0};
    if (copies_are_empty(m->copies) || e->fragment.by_peer || copies_skip(m, e))
        return;
    copies_add_sender(m->copies, &match, e->sender);
    for (unsigned i = 0; i < e->count; i++)
        if (!e->recipients[i].expanded)
            copies_add_recipient(m->copies, &match, e->recipients[i].address);
    for (const struct recipient_way *w = e->ways; w != NULL; w = w->next)
        copies_add_recipient(m->copies, &match, w->origin);
    copies_add_all(m->copies, &match, e);
}

void
manager_copy_settled(struct manager *m, const struct envelope *e,
                     const struct recipient *r, const struct outcome *outcome)
{
    char id[ID_LENGTH + 1];
    if (!envelope_is_copy(r) || outcome->verdict == VERDICT_DEFERRED)
        return;
    if (outcome->verdict == VERDICT_DELIVERED) {
        m->copied.delivered++;
        return;
    }
    m->copied.failed++;
    m->copied.failed_ms = loop_monotonic_ms(m->loop);
    (void)text_copy(m->copied.failed_to, sizeof(m->copied.failed_to), r->address);
    id_format(e->id, id);
    log_say(m->log, LOG_LEVEL_WARNING, "queue", id,
            "the copy for <%.*s> failed, and nobody is notified: %s",
            TEXT_ARGS(r->address), outcome->text);
}

struct manager_copied
manager_copied(const struct manager *m)
{
    return m->copied;
}
