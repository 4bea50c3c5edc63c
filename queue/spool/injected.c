/* Takes from the envelope of another user, or of another host, only the data that it may
 * set. */
#include "queue/spool/injected.h"

#include "base/printable.h"
#include "mime/address.h"
#include "mime/header.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    INJECTED_SUBMITTER_MAX = 24,
    GIVEN_SUBMITTER_MAX = 320, /* "user:NAME"; trust has a network, too */
    GIVEN_DUE_MAX_MS = 24 * 3600 * 1000,
    GIVEN_ATTEMPTS_MAX = 100000 /* in years of minimal waits */
};

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

/* The filter for whoever is not this process. */
static const char *
injected_limit(struct envelope *e, int64_t now_ms)
{
    /* birth_ms decides expiry: a time in the future would prolong the message's
     * life. */
    if (e->birth_ms > now_ms || e->birth_ms < now_ms - age_max_ms)
        e->birth_ms = now_ms;
    e->envelope_id = injected_word_of(e->envelope_id, INJECTED_ID_MAX);
    e->prefix = prefix_of(e->prefix);
    if (!is_sender(e->sender))
        return "its sender is no address";
    if (e->count == 0)
        return "it has no recipient";
    for (unsigned i = 0; i < e->count; i++)
        if (!injected_take_recipient(&e->recipients[i]))
            return "a recipient is no address";
    return NULL;
}

const char *
injected_take(struct envelope *e, unsigned user, int64_t now_ms)
{
    char submitter[INJECTED_SUBMITTER_MAX];
    e->ascii_header = false;
    e->priority = 0;
    e->double_bounce = e->fragment.by_peer = false;
    e->fragment.made_of = e->fragment.set_mark = TEXT("");
    e->posted = TEXT("");
    e->message_id = e->tag = TEXT(""); /* read from the header, where they are wanted */
    e->release_ms = 0;
    e->release_request = TEXT("");
    e->ways = NULL;
    e->moved = (struct moved_state){0};
    free(e->delivery.failures);
    e->delivery = (struct delivery_state){0};
    snprintf(submitter, sizeof(submitter), "uid:%u", user);
    e->ours = true;
    e->header_needs = HEADER_NEEDS_ALL;
    e->submitter = envelope_text(e, text_from(submitter));
    e->trust = TEXT("int"); /* as for every user who may submit mail here */
    for (unsigned i = 0; i < e->count; i++) {
        e->recipients[i].way = NULL;
        e->recipients[i].expanded = e->recipients[i].done = false;
    }
    return injected_limit(e, now_ms);
}

/* --- Mail of another host of the group -------------------------------------------- */

/* One line of text, or nothing. */
static struct text
given_line(struct text t, size_t length_max)
{
    return t.length <= length_max && printable_is(t) ? t : TEXT("");
}

/* "user:NAME" and "uid:N". */
static struct text
given_submitter(struct text t)
{
    bool is_one = text_starts(t, TEXT("user:")) || text_starts(t, TEXT("uid:"));
    return is_one ? given_line(t, GIVEN_SUBMITTER_MAX) : TEXT("");
}

/* An unknown form is that of an untrusted client. */
static struct text
given_trust(struct text t)
{
    struct text rest = t, word;
    bool is_known =
        t.length == 0 ||
        (given_line(t, GIVEN_SUBMITTER_MAX).length > 0 && text_cut(&rest, ' ', &word) &&
         (text_equal(word, TEXT("int")) || text_equal(word, TEXT("ext")) ||
          text_starts(word, TEXT("auth:"))));
    return is_known ? t : TEXT("ext");
}

/* "SECONDS WORDS", perhaps with the end of its line: the content of hold/ID. */
static struct text
given_hold(struct text t)
{
    struct text line = t;
    if (t.length > 0 && t.at[t.length - 1] == '\n')
        line = text_before(t, t.length - 1);
    bool good = t.length == 0 || given_line(line, ENVELOPE_HOLD_MAX).length > 0;
    return good ? t : TEXT("0 held by another host\n");
}

/* "5.1.1" */
static bool
given_is_enhanced(const char *code)
{
    struct text rest = text_from(code), part;
    uint64_t number;
    unsigned parts = 0;
    while (text_cut(&rest, '.', &part)) {
        if (!text_number(part, 999, &number) ||
            (parts == 0 && number != 2 && number != 4 && number != 5))
            return false;
        parts++;
    }
    return parts == 3;
}

/* It goes into a notification, whose lines it must not make. */
static void
given_take_outcome(struct outcome *o)
{
    bool delivered = o->verdict == VERDICT_DELIVERED;
    o->blame = delivered ? BLAME_NONE : BLAME_MESSAGE;
    if (o->code < 200 || o->code > 599)
        o->code = 0;
    if (!given_is_enhanced(o->enhanced) || (o->enhanced[0] == '2') != delivered)
        snprintf(o->enhanced, sizeof(o->enhanced), "%s", delivered ? "2.0.0" : "5.0.0");
    printable_clean(o->text);
    if (!printable_is(text_from(o->remote)))
        o->remote[0] = '\0';
}

/* A message that is due in years would wait as long, and nobody would hear of it. */
static void
given_take_state(struct envelope *e, int64_t now_ms)
{
    struct delivery_state *d = &e->delivery;
    int64_t age_s = (now_ms - e->birth_ms) / 1000,
            warned_max_s = age_s + GIVEN_DUE_MAX_MS / 1000;
    if (d->due_ms > now_ms + GIVEN_DUE_MAX_MS)
        d->due_ms = now_ms + GIVEN_DUE_MAX_MS;
    if (d->attempts > GIVEN_ATTEMPTS_MAX)
        d->attempts = GIVEN_ATTEMPTS_MAX;
    if (d->warned_s > warned_max_s)
        d->warned_s = age_s;
    for (unsigned i = 0; i < d->failure_count; i++)
        given_take_outcome(&d->failures[i].outcome);
    e->moved.hold = given_hold(e->moved.hold);
    e->moved.reason = given_line(e->moved.reason, ENVELOPE_REASON_MAX);
}

const char *
injected_take_given(struct envelope *e, int64_t now_ms)
{
    const char *why = injected_limit(e, now_ms);
    e->submitter = given_submitter(e->submitter);
    e->trust = given_trust(e->trust);
    e->message_id = given_line(e->message_id, ENVELOPE_MESSAGE_ID_MAX);
    e->tag = given_line(e->tag, ENVELOPE_TAG_MAX);
    e->release_request = given_line(e->release_request, ENVELOPE_REQUEST_MAX);
    if (e->release_ms > now_ms + age_max_ms)
        e->release_ms = now_ms + age_max_ms;
    given_take_state(e, now_ms);
    for (unsigned i = 0; i < e->count && why == NULL; i++) {
        const struct recipient_way *way = e->recipients[i].way;
        if (way != NULL &&
            ((!is_sender(way->sender) && !envelope_is_copy(&e->recipients[i])) ||
             way->origin.length > INJECTED_ADDRESS_MAX ||
             text_has_control(way->origin)))
            why = "the alias of a recipient is no address";
    }
    for (unsigned i = 0; i < e->delivery.failure_count && why == NULL; i++)
        if (e->delivery.failures[i].outcome.verdict == VERDICT_DEFERRED)
            why = "a recipient has neither failed nor got it";
    return why;
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
