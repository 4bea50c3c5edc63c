/* Collects sender, recipients and facts about the content of one message. */
#include "smtp/server/transaction.h"

#include "base/crypto/digest.h"
#include "base/event/event.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "mime/address.h"
#include "queue/manager/expansion.h"
#include "smtp/access/senders.h"
#include "smtp/redirect.h"
#include "smtp/server/server_internal.h"
#include "smtp/server/trace.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* --- Whether a submitted message is ours, and whose: envelope.ours ---------------- */

/* A message is ours when the client may relay. With `sender_login` or `sender_domains`
 * the first address in From must be permitted as well, or a user could have mail in
 * any name signed: such a message is accepted, but neither rewritten nor signed. */

enum { FROM_MAX = 512, SUBMITTER_NAME_MAX = 512 };

/* Content up to the end of the header, if t->gathers_head. */
static void
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
keep_first(void *context, const struct address_place *place)
{
    struct submitter_from *from = context;
    struct address address;
    if (from->seen)
        return;
    from->seen = true;
    if (!address_parse(place->mailbox, &address))
        address = (struct address){place->mailbox, text_from(from->hostname), false};
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
        from->broken =
            !header_unfold(f.value, &unfolded) ||
            address_list_read(buffer_text(&unfolded), keep_first, NULL, from) > 0;
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

/* Sets ours, header_needs and submitter of t's envelope. The client may relay. Logs a
 * From that is not permitted. */
static void
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

/* --- The envelope ----------------------------------------------------------------- */

enum {
    SEEN_BYTES_MAX = 16 * 1024 * 1024,
    SEEN_FROM = 16, /* the first recipients are compared one by one */
    NORMAL_MAX = 512,
    MEMBER_OVERHEAD = 256,
    ORIGINAL_MAX = 2048,
    TRUST_MAX = 8192
};

static const struct refusal too_large = {552, "5.3.4", "message is too large"};
static const struct refusal not_our_route = {
    553, "5.1.3",
    "XDEFRAG requires recipients <@defrag_host:user@domain> of this host"};
static const struct refusal no_fragment = {554, "5.6.1",
                                           "XDEFRAG needs message/partial content"};
static const struct refusal partial = {550, "5.6.1", "message/partial not accepted"};
static const struct refusal too_many = {452, "4.5.3", "too many recipients"};
static const struct refusal no_memory = {
    452, "4.3.1", "too many recipients in all sessions, try again later"};
static const struct refusal looping = {554, "5.4.6", "too many hops: mail loop"};
static const struct refusal forwarded = {
    554, "5.4.6", "mail loop: the alias has forwarded this message before"};
static const struct refusal beside_a_loop = {
    451, "4.3.0", "another recipient of this message loops: try again without it"};

/* A recipient by its normal form, which the envelope owns. */
struct id_set {
    UT_hash_handle hh;
};

/* An RCPT that was accepted. */
struct transaction_answer {
    struct transaction_answer *next;
    struct text alias; /* its address; empty: it has none */
};

/* Data that live as long as the dialog are in the arena; data for the queue are in the
 * envelope, which is given away as a whole. */
struct server_transaction *
transaction_new(const struct mail_parameters *parameters, int priority)
{
    struct server_transaction *t = memory_new(sizeof(*t));
    struct envelope *e = t->envelope = envelope_new();
    arena_init(&t->arena, SEEN_BYTES_MAX);
    buffer_init(&t->argument, SERVER_LINE_MAX);
    buffer_init(&t->normal, NORMAL_MAX);
    buffer_init(&t->original, ORIGINAL_MAX);
    buffer_init(&t->head, SUBMITTER_HEAD_MAX);
    t->answers_end = &t->answers;
    header_scan_start(&t->header);
    dot_decode_start(&t->dot);
    bool written = address_write(&parameters->sender.address, &t->normal);
    assert(written);
    t->sender = arena_copy(&t->arena, buffer_text(&t->normal));
    t->expected = parameters->size;
    t->has_priority = parameters->has_priority;
    t->priority_changed = priority != parameters->priority;
    e->priority = priority;
    e->sender = envelope_text(e, t->sender);
    e->envelope_id = envelope_text(e, parameters->envelope_id);
    e->ret = parameters->ret;
    e->eight_bit = parameters->eight_bit;
    e->binary = parameters->binary;
    e->utf8 = parameters->utf8;
    t->hold_s = parameters->hold_s;
    if (parameters->requires_tls)
        e->tls = ENVELOPE_TLS_REQUIRED;
    t->hold_until_ms = parameters->hold_until_ms;
    t->hold = arena_copy(&t->arena, parameters->hold);
    t->by_peer = e->fragment.by_peer = parameters->has_set_mark;
    e->fragment.set_mark = envelope_text(e, parameters->set_mark);
    return t;
}

/* The memory of the recipients is taken out of the count of all sessions on every way a
 * transaction can end. */
void
transaction_free(struct server_transaction **t)
{
    if (*t == NULL)
        return;
    if ((*t)->envelopes != NULL)
        (*t)->envelopes->bytes -= (*t)->counted;
    HASH_CLEAR(hh, (*t)->seen);
    envelope_free(&(*t)->envelope);
    buffer_free(&(*t)->argument);
    buffer_free(&(*t)->normal);
    buffer_free(&(*t)->original);
    buffer_free(&(*t)->head);
    arena_free(&(*t)->arena);
    free(*t);
    *t = NULL;
}

/* Routes and the DNS use A-labels; notifications show the domain as written (RFC 3461
 * §5.2.1, RFC 6533 §3). */
static void
take_ascii_domain(struct server_transaction *t)
{
    struct text normal = buffer_text(&t->normal);
    struct address *a = &t->rcpt.recipient.address;
    struct text domain = text_after(normal, text_find_last(normal, '@') + 1);
    buffer_clear(&t->original);
    if (text_is_ascii(a->domain) || !text_is_ascii(domain))
        return;
    bool kept = buffer_add(&t->original, TEXT("utf-8;")) &&
                xtext_write_unitext(a->local, &t->original) &&
                buffer_add(&t->original, TEXT("@")) &&
                xtext_write_unitext(a->domain, &t->original);
    assert(kept);
    a->domain = domain;
    if (t->rcpt.original.length == 0)
        t->rcpt.original = buffer_text(&t->original);
}

/* <postmaster> gets its domain: all later addresses have one. */
static bool
write_normal(struct server_transaction *t, struct text domain)
{
    struct address whole = t->rcpt.recipient.address;
    if (whole.domain.length == 0)
        whole = (struct address){TEXT("postmaster"), domain, false};
    return address_write(&whole, &t->normal);
}

const struct refusal *
transaction_ask(struct server_transaction *t, struct text argument,
                const struct path_rules *rules, struct text name, struct text domain)
{
    buffer_clear(&t->argument);
    buffer_clear(&t->normal);
    if (t->by_peer && !redirect_cut_route(argument, name, &t->argument))
        return &not_our_route;
    bool kept = t->by_peer || buffer_add(&t->argument, argument);
    assert(kept);
    const struct refusal *refusal = parameters_read_rcpt(
        buffer_text(&t->argument), rules, t->envelope->utf8, &t->rcpt);
    if (refusal == NULL) {
        bool written = write_normal(t, domain);
        assert(written && t->normal.length > 0);
        take_ascii_domain(t);
    }
    return refusal;
}

/* The memory of the recipients beyond SERVER_ENVELOPE_FREE. */
static size_t
countable_bytes(const struct server_transaction *t)
{
    const struct envelope *e = t->envelope;
    size_t bytes = t->arena.used + e->arena.used +
                   e->capacity * sizeof(*e->recipients) +
                   HASH_COUNT(t->seen) * sizeof(struct UT_hash_bucket);
    return bytes > SERVER_ENVELOPE_FREE ? bytes - SERVER_ENVELOPE_FREE : 0;
}

/* True: the limit of all sessions is reached, and this one uses counted memory. */
static bool
is_crowded(const struct server_transaction *t)
{
    return t->envelopes != NULL && t->envelopes->bytes >= t->envelopes_max &&
           t->counted > 0;
}

static void
transaction_count_bytes(struct server_transaction *t)
{
    if (t->envelopes == NULL)
        return;
    size_t bytes = countable_bytes(t);
    t->envelopes->bytes += bytes - t->counted;
    t->counted = bytes;
}

/* False: too many. */
static bool
transaction_note(void *context, const struct recipient *r)
{
    struct server_transaction *t = context;
    if (t->envelope->count <= SEEN_FROM)
        return true;
    struct id_set *seen = arena_get(&t->arena, sizeof(*seen));
    if (seen != NULL)
        HASH_ADD_KEYPTR(hh, t->seen, r->address.at, r->address.length, seen);
    return seen != NULL;
}

static bool
transaction_has(void *context, struct text address)
{
    const struct server_transaction *t = context;
    struct id_set *found;
    const struct envelope *e = t->envelope;
    for (unsigned i = 0; i < e->count && i < SEEN_FROM; i++)
        if (!e->recipients[i].expanded && text_equal(e->recipients[i].address, address))
            return true;
    HASH_FIND(hh, t->seen, address.at, address.length, found);
    return found != NULL;
}

/* As no address can be: an alias is no recipient, and \NAME of another may be. */
static struct text
key_of_alias(const struct server_transaction *t, char key[NORMAL_MAX + 1])
{
    key[0] = ' ';
    (void)text_copy(key + 1, NORMAL_MAX, buffer_text(&t->normal));
    return text_from(key);
}

static bool
knows_alias(const struct server_transaction *t)
{
    struct server_transaction *same = (struct server_transaction *)(uintptr_t)t;
    char key[NORMAL_MAX + 1];
    return t->seen != NULL && transaction_has(same, key_of_alias(t, key));
}

bool
transaction_knows(const struct server_transaction *t)
{
    struct server_transaction *same = (struct server_transaction *)(uintptr_t)t;
    return transaction_has(same, buffer_text(&t->normal)) || knows_alias(t);
}

/* An upper bound of the memory for the members of an alias. */
static size_t
bytes_of_members(const struct server_transaction *t, const struct expansion *x)
{
    size_t each = 3 * sizeof(struct recipient) + sizeof(struct id_set) +
                  sizeof(struct UT_hash_bucket) + t->rcpt.original.length +
                  3 * t->normal.length + MEMBER_OVERHEAD;
    return x->bytes + (x->count + 1) * each;
}

/* All members, or none: a client that is refused gives the recipient again. The first
 * recipient of a message may be an alias of any size. */
static const struct refusal *
refuse_members(const struct server_transaction *t, const struct expansion *x)
{
    const struct envelope *e = t->envelope;
    size_t bytes = bytes_of_members(t, x);
    size_t counted = countable_bytes(t) + bytes;
    unsigned report = expansion_reports(x, t->rcpt.notify, t->sender) ? 1 : 0;
    unsigned most = e->count > 0 ? t->recipients_max : ENVELOPE_RECIPIENTS_MAX;
    if (e->count + x->count + report > most || e->arena.used + bytes > e->arena.limit ||
        t->arena.used + bytes > t->arena.limit)
        return &too_many;
    bool is_free = t->envelopes == NULL || counted <= SERVER_ENVELOPE_FREE;
    if (!is_free && t->envelopes->bytes - t->counted + counted > t->envelopes_max)
        return &no_memory;
    return NULL;
}

static void
remember_alias(struct server_transaction *t)
{
    char written[NORMAL_MAX + 1];
    struct text key = arena_copy(&t->arena, key_of_alias(t, written));
    struct id_set *seen = arena_get(&t->arena, sizeof(*seen));
    if (key.at != NULL && seen != NULL)
        HASH_ADD_KEYPTR(hh, t->seen, key.at, key.length, seen);
}

static const struct refusal *
transaction_add_members(struct server_transaction *t, const struct expansion *x)
{
    struct expansion_question q = {.address = buffer_text(&t->normal),
                                   .sender = t->sender};
    struct expansion_target target = {.envelope = t->envelope,
                                      .known = transaction_has,
                                      .added = transaction_note,
                                      .context = t};
    const struct refusal *refusal = refuse_members(t, x);
    if (refusal == NULL &&
        !expansion_add(x, &q, t->rcpt.notify, t->rcpt.original, &target))
        refusal = &too_many;
    if (refusal == NULL)
        remember_alias(t);
    return refusal;
}

static const struct refusal *
transaction_add(struct server_transaction *t)
{
    struct envelope *e = t->envelope;
    const struct expansion *x = t->expansion;
    t->expansion = NULL;
    if (is_crowded(t))
        return &no_memory;
    if (x != NULL) {
        const struct refusal *refusal = transaction_add_members(t, x);
        transaction_count_bytes(t);
        t->given += refusal == NULL;
        return refusal;
    }
    if (!envelope_add(e, buffer_text(&t->normal), t->rcpt.notify, t->rcpt.original))
        return &too_many;
    if (!transaction_note(t, &e->recipients[e->count - 1])) {
        e->count--;
        return &too_many;
    }
    t->given++;
    transaction_count_bytes(t);
    return NULL;
}

/* NULL: there is no room. */
static struct transaction_answer *
transaction_answer_new(struct server_transaction *t)
{
    struct transaction_answer *made = arena_get(&t->arena, sizeof(*made));
    if (made == NULL)
        return NULL;
    *made = (struct transaction_answer){.next = NULL};
    if (t->expansion == NULL && !knows_alias(t))
        return made;
    made->alias = arena_copy(&t->arena, buffer_text(&t->normal));
    return made->alias.at != NULL ? made : NULL;
}

const struct refusal *
transaction_accept(struct server_transaction *t, bool lmtp)
{
    struct transaction_answer *answer = lmtp ? transaction_answer_new(t) : NULL;
    const struct refusal *refusal = NULL;
    if (lmtp && answer == NULL)
        refusal = &too_many;
    else if (!transaction_knows(t))
        refusal = transaction_add(t);
    t->expansion = NULL;
    if (refusal != NULL)
        return refusal;
    t->accepted++;
    if (answer != NULL) {
        *t->answers_end = answer;
        t->answers_end = &answer->next;
    }
    return NULL;
}

/* An alias has forwarded the message before: its Delivered-To is there. */
static bool
transaction_loops(const struct server_transaction *t)
{
    const struct recipient_way *w = t->envelope != NULL ? t->envelope->ways : NULL;
    while (w != NULL && !header_scan_was_delivered(&t->header, w->origin))
        w = w->next;
    return w != NULL;
}

/* Many clients omit BODY=8BITMIME. The next hop gets the parameter or converted content. */
static void
note_eight_bit(struct server_transaction *t, struct text content)
{
    struct envelope *e = t->envelope;
    bool open = !e->eight_bit || (e->utf8 && !t->body_utf8);
    if (!open || text_is_ascii(content))
        return;
    e->eight_bit = true;
    t->body_utf8 = e->utf8;
}

void
transaction_take(struct server_transaction *t, const struct server_rules *rules,
                 struct text content)
{
    t->size += (int64_t)content.length;
    if (t->gathers_head && !t->header.ended)
        submitter_gather(t, content);
    if (!t->header.ended)
        header_scan_add(&t->header, content);
    note_eight_bit(t, content);
    if (t->fault != NULL)
        return;
    if (rules->size_limit > 0 && t->size > rules->size_limit)
        t->fault = &too_large;
    else if (t->header.received > (unsigned)rules->hop_limit)
        t->fault = &looping;
    else if (t->header.ended && t->header.is_partial && rules->refuses_partial &&
             !t->joins && !t->by_peer)
        t->fault = &partial;
}

const struct refusal *
transaction_fault(const struct server_transaction *t)
{
    bool fits = !t->by_peer || t->header.is_message;
    if (t->fault == NULL && transaction_loops(t))
        return &forwarded;
    return t->fault != NULL || fits ? t->fault : &no_fragment;
}

/* Members may be behind several aliases, and stand in the envelope with one of them. So
 * nobody gets the message now, and the others get it when they are given alone. */
bool
transaction_each_loop(const struct server_transaction *t,
                      void (*each)(void *context, const struct refusal *refusal),
                      void *context)
{
    if (t->fault != NULL || t->answers == NULL || !transaction_loops(t))
        return false;
    for (const struct transaction_answer *a = t->answers; a != NULL; a = a->next) {
        bool loops =
            a->alias.length > 0 && header_scan_was_delivered(&t->header, a->alias);
        each(context, loops ? &forwarded : &beside_a_loop);
    }
    return true;
}

bool
transaction_is_flood(const struct server_transaction *t,
                     const struct server_rules *rules)
{
    return rules->size_limit > 0 && t->size - rules->size_limit > SERVER_EXCESS_MAX;
}

static const char *
protocol(const struct server *s, bool utf8)
{
    /* RFC 3848, RFC 6531 §4.3: UTF8, S for TLS, A for AUTH */
    static const char *const names[2][2][2][2] = {
        {{{"ESMTP", "ESMTPA"}, {"ESMTPS", "ESMTPSA"}},
         {{"UTF8SMTP", "UTF8SMTPA"}, {"UTF8SMTPS", "UTF8SMTPSA"}}},
        {{{"LMTP", "LMTPA"}, {"LMTPS", "LMTPSA"}},
         {{"UTF8LMTP", "UTF8LMTPA"}, {"UTF8LMTPS", "UTF8LMTPSA"}}},
    };
    bool user = s->user != NULL && !s->certified;
    if (s->protocol != NULL)
        return s->protocol;
    if (!s->lmtp && !s->esmtp && !s->secure && !utf8 && !user)
        return "SMTP";
    return names[s->lmtp][utf8][s->secure][user];
}

/* For mail of another of our hosts, the mark of the set proves the trust, not the
 * connection. */
static struct text
trust_of(const struct server *s, struct envelope *e)
{
    struct buffer trust;
    if (e->fragment.by_peer)
        return TEXT("");
    buffer_init(&trust, TRUST_MAX);
    bool fits = trace_write_origin(s, &trust);
    assert(fits);
    struct text kept = envelope_text(e, buffer_text(&trust));
    buffer_free(&trust);
    return kept;
}

/* True: no UTF-8 in the header, and no parts, whose headers are not parsed here. */
static bool
has_ascii_header(const struct server_transaction *t)
{
    return !t->header.has_eight_bit && !(t->header.composite && t->body_utf8);
}

/* The reply to the content may be long in coming: many clients wait for it. */
static void
forget_recipients(struct server_transaction *t)
{
    HASH_CLEAR(hh, t->seen);
    buffer_free(&t->argument);
    buffer_free(&t->normal);
    buffer_free(&t->original);
    buffer_free(&t->head);
}

/* Once for a message, whatever was repaired in it. */
static void
log_repairs(const struct server_transaction *t, const struct server *s)
{
    const struct newlines_content *n = &t->newlines;
    bool unseparated = t->header.unseparated && server_may_relay(s);
    if (s->events != NULL && (n->had_cr || n->had_nul || unseparated))
        log_say(event_hub_log(s->events), LOG_LEVEL_INFO, "smtpd", t->id,
                "repaired:%s%s%s", n->had_cr ? " bare CR;" : "",
                n->had_nul ? " NUL;" : "",
                unseparated ? " no empty line behind the header;" : "");
}

/* Hosts of a loop that all add nothing would have no end of it. */
static bool
transaction_was_here(const struct server_transaction *t, const struct server *s)
{
    struct text id = header_scan_message_id(&t->header);
    unsigned char digest[DIGEST_SIZE];
    uint64_t hash;
    if (s->rules->seen == NULL || id.length == 0)
        return false;
    digest_plain(id, digest);
    memcpy(&hash, digest, sizeof(hash));
    uint64_t *place = &s->rules->seen[hash % SERVER_SEEN_MAX];
    bool was_here = *place == hash;
    *place = hash;
    return was_here;
}

/* Mail that comes back to us through a client that may relay has a field each time. */
static enum server_received
received_form(const struct server_transaction *t, const struct server *s,
              bool submitted)
{
    if (!submitted)
        return SERVER_RECEIVED_FULL;
    return s->rules->received == SERVER_RECEIVED_NONE &&
                   (t->header.received > 0 || transaction_was_here(t, s))
               ? SERVER_RECEIVED_SHORT
               : s->rules->received;
}

/* The time counts from the acceptance (RFC 4865 §4). */
static void
transaction_hold(struct server_transaction *t, int64_t now_ms)
{
    char request[ENVELOPE_REQUEST_MAX];
    int64_t release_ms = t->hold_s > 0 ? now_ms + t->hold_s * 1000 : t->hold_until_ms;
    if (t->hold.length == 0)
        return;
    int length = snprintf(request, sizeof(request), "%s;%.*s",
                          t->hold_s > 0 ? "for" : "until", TEXT_ARGS(t->hold));
    envelope_release_at(t->envelope, release_ms, text_of(request, (size_t)length));
}

struct envelope *
transaction_seal(struct server_transaction *t, const struct server *s, int64_t now_ms)
{
    struct envelope *e = t->envelope;
    struct buffer lines;
    char priority[16] = "", client[SERVER_CLIENT_MAX + 20];
    assert(e != NULL && e->count > 0);
    /* A fragment received by another of our hosts is not a submission. */
    bool submitted = server_may_relay(s) && !t->by_peer;
    bool resent = submitted && t->header.has_resent;
    id_format(e->id, t->id);
    t->protocol = protocol(s, e->utf8);
    t->recipients = e->count;
    if (t->has_priority)
        snprintf(priority, sizeof(priority), "%d", e->priority);
    snprintf(client, sizeof(client), s->uid == SERVER_NO_UID ? "%s" : "%s, uid=%u",
             s->client, s->uid);
    struct trace trace = {
        .form = received_form(t, s, submitted),
        .helo = s->helo,
        .client = client,
        .hostname = s->rules->hostname,
        .protocol = t->protocol,
        .security = s->security,
        .id = t->id,
        .recipient = e->count == 1 ? e->recipients[0].address : TEXT(""),
        .priority = text_from(priority),
        .now_ms = now_ms,
        .add_date = submitted && !t->header.has_date,
        .add_message_id = submitted && !t->header.has_message_id,
        .add_resent_date = resent && !t->header.has_resent_date,
        .add_resent_message_id = resent && !t->header.has_resent_message_id,
        .add_end = t->header.headless,
        .add_mailbox_line = t->header.mailbox_line,
    };
    buffer_init(&lines, TRACE_MAX);
    trace_write(&trace, &lines);
    e->prefix = envelope_text(e, buffer_text(&lines));
    if (t->header
            .is_message) /* possibly a fragment: reassembled only with its sender's */
        e->trust = trust_of(s, e);
    if (submitted)
        submitter_note(t, s);
    transaction_hold(t, now_ms);
    if (e->tls == ENVELOPE_TLS_PLAIN && header_scan_waives_tls(&t->header))
        e->tls = ENVELOPE_TLS_WAIVED;
    log_repairs(t, s);
    server_note_names(s, e);
    e->ascii_header = e->utf8 && has_ascii_header(t) && text_is_ascii(e->prefix);
    buffer_free(&lines);
    t->envelope = NULL;
    t->draft = false;
    forget_recipients(t);
    return e;
}
