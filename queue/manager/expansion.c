/* Expands recipients, and chooses sender, NOTIFY and ORCPT of the members. */
#include "queue/manager/expansion.h"

#include "base/memory.h"
#include "mime/address.h"
#include "sched/route/route.h"

#include <stdlib.h>
#include <uthash.h>

enum { ORIGINAL_BYTES_MAX = 2048 };

bool
expansion_is_idle(const struct expansion_rules *rules)
{
    return rules->routes == NULL || (aliases_are_empty(rules->aliases) &&
                                     rules->srs == NULL && rules->verp == NULL);
}

/* --- Members ---------------------------------------------------------------------- */

struct expanding {
    struct expansion *x;
    const struct expansion_rules *rules;
    const struct expansion_question *question;
    unsigned capacity;
    bool full;
    bool has_srs; /* forwarded has the sender for mail that leaves; "": it stays */
    char forwarded[SRS_ADDRESS_MAX];
};

static struct text
expansion_domain_of(struct text address)
{
    return text_after(address, text_find_last(address, '@') + 1);
}

/* Neither null nor local. */
static bool
is_sender_foreign(const struct expanding *e, struct text sender)
{
    return sender.length > 0 && text_find(sender, '@') != TEXT_NONE &&
           !route_is_local_domain(e->rules->routes, expansion_domain_of(sender)) &&
           !text_equal_nocase(expansion_domain_of(sender), srs_domain(e->rules->srs));
}

/* Made once for a message. */
static struct text
srs_sender(struct expanding *e)
{
    if (!e->has_srs && !srs_forward(e->rules->srs, e->question->sender,
                                    e->question->now_ms, e->forwarded))
        e->forwarded[0] = '\0';
    e->has_srs = true;
    e->x->long_senders += e->forwarded[0] == '\0' && !srs_is_blind(e->rules->srs);
    return text_from(e->forwarded);
}

static bool
leaves_by_smtp(const struct expanding *e, struct text address)
{
    struct address parsed;
    if (!address_parse(address, &parsed))
        return false;
    enum target_kind kind =
        route_find_from(e->rules->routes, e->question->sender, &parsed, false)->kind;
    return kind == TARGET_MX || kind == TARGET_SMTP;
}

/* A message with the null sender keeps it: no notification may cause another. */
static struct text
sender_of_member(struct expanding *e, const struct aliases_member *m)
{
    struct text sender = e->question->sender;
    if (sender.length == 0)
        return TEXT("");
    if (m->owner.length > 0)
        return m->owner;
    if (e->rules->srs != NULL && is_sender_foreign(e, sender) &&
        leaves_by_smtp(e, m->address))
        return srs_sender(e);
    return TEXT("");
}

static bool
expansion_on_member(void *context, const struct aliases_member *m)
{
    struct expanding *e = context;
    struct expansion *x = e->x;
    if (x->count == e->capacity) {
        e->capacity = e->capacity > 0 ? 2 * e->capacity : 4;
        x->members = memory_resize(x->members, e->capacity * sizeof(*x->members));
    }
    struct expansion_member *made = &x->members[x->count];
    struct text sender = sender_of_member(e, m);
    /* Members mostly have the same one. */
    bool same = x->count > 0 && text_equal(sender, made[-1].sender);
    *made = (struct expansion_member){.address = arena_copy(&x->arena, m->address),
                                      .sender = same ? made[-1].sender
                                                     : arena_copy(&x->arena, sender)};
    e->full = made->address.at == NULL || made->sender.at == NULL;
    if (e->full)
        return false;
    x->bytes += made->address.length;
    x->count++;
    return true;
}

/* True: it is an address of SRS, and has been dealt with. */
static bool
expansion_unwinds(struct expanding *e)
{
    char back[SRS_ADDRESS_MAX];
    if (e->rules->srs == NULL)
        return false;
    switch (srs_back(e->rules->srs, e->question->address, e->question->now_ms, back)) {
    case SRS_NO:
        return false;
    case SRS_BAD:
        e->x->kind = EXPANSION_FORGED;
        return true;
    case SRS_BLIND:
        e->x->kind = EXPANSION_UNSURE;
        return true;
    case SRS_GOOD:
        break;
    }
    e->x->kind = EXPANSION_SRS;
    (void)!expansion_on_member(e, &(struct aliases_member){.address = text_from(back)});
    return true;
}

/* Likewise an address to which reports come. */
static bool
expansion_returns(struct expanding *e)
{
    struct address a;
    struct verp_tag tag;
    if (e->rules->verp == NULL || !address_parse(e->question->address, &a))
        return false;
    switch (verp_read(e->rules->verp, &a, e->question->now_ms, &tag)) {
    case VERP_NO:
        return false;
    case VERP_PLAIN:
    case VERP_GOOD:
        e->x->kind = EXPANSION_RETURN;
        break;
    case VERP_FORGED:
    case VERP_OLD:
        e->x->kind = EXPANSION_FORGED_RETURN;
        break;
    case VERP_BLIND:
        e->x->kind = EXPANSION_UNSURE;
        break;
    }
    return true;
}

static enum expansion_kind
expansion_kind_of(enum aliases_answer answer)
{
    switch (answer) {
    case ALIASES_NONE:
        break;
    case ALIASES_ONE:
        return EXPANSION_ONE;
    case ALIASES_SEVERAL:
        return EXPANSION_SEVERAL;
    case ALIASES_LIST:
        return EXPANSION_LIST;
    case ALIASES_EMPTY:
        return EXPANSION_EMPTY;
    case ALIASES_TOO_MANY:
        return EXPANSION_TOO_MANY;
    }
    return EXPANSION_NONE;
}

void
expansion_make(struct expansion *x, const struct expansion_rules *rules,
               const struct expansion_question *question)
{
    struct expanding e = {.x = x, .rules = rules, .question = question};
    *x = (struct expansion){.kind = EXPANSION_NONE};
    arena_init(&x->arena, EXPANSION_BYTES_MAX);
    if (expansion_is_idle(rules) || expansion_returns(&e) || expansion_unwinds(&e))
        return;
    struct aliases_question q = {
        .routes = rules->routes, .address = question->address, .ours = question->ours};
    x->kind =
        expansion_kind_of(aliases_expand(rules->aliases, &q, expansion_on_member, &e));
    if (e.full)
        x->kind = EXPANSION_TOO_MANY;
}

void
expansion_free(struct expansion *x)
{
    free(x->members);
    arena_free(&x->arena);
    *x = (struct expansion){.kind = EXPANSION_NONE};
}

/* --- Parameters ------------------------------------------------------------------- */

static bool
is_one(const struct expansion *x)
{
    return x->kind == EXPANSION_ONE || x->kind == EXPANSION_SRS;
}

/* Without SUCCESS nothing may be left, which means NEVER. */
static unsigned
expansion_notify(const struct expansion *x, unsigned notify)
{
    if (x->kind == EXPANSION_LIST)
        return NOTIFY_DEFAULT;
    if (is_one(x) || (notify & NOTIFY_SUCCESS) == 0)
        return notify;
    notify &= ~(unsigned)NOTIFY_SUCCESS;
    return notify == 0 ? NOTIFY_NEVER : notify;
}

bool
expansion_reports(const struct expansion *x, unsigned notify, struct text sender)
{
    return !is_one(x) && (notify & NOTIFY_SUCCESS) != 0 && sender.length > 0;
}

static bool
expansion_original(const struct expansion_question *question, struct text original,
                   struct buffer *made)
{
    if (original.length > 0)
        return buffer_add(made, original);
    if (text_is_ascii(question->address))
        return buffer_add(made, TEXT("rfc822;")) &&
               xtext_write(question->address, made);
    return buffer_add(made, TEXT("utf-8;")) &&
           xtext_write_unitext(question->address, made);
}

/* --- Into the envelope ------------------------------------------------------------ */

static bool
expansion_add_one(const struct expansion_target *t, struct text address,
                  unsigned notify, struct text original,
                  const struct recipient_way *way)
{
    struct envelope *e = t->envelope;
    if (t->known != NULL && t->known(t->context, address))
        return true;
    if (!envelope_add(e, address, notify, original))
        return false;
    struct recipient *r = &e->recipients[e->count - 1];
    r->way = way;
    return t->added == NULL || t->added(t->context, r);
}

/* It is no recipient of that address: \NAME of another alias may be. */
static bool
expansion_add_report(const struct expansion_target *t, struct text address,
                     struct text original, const struct recipient_way *way)
{
    struct envelope *e = t->envelope;
    if (!envelope_add(e, address, NOTIFY_SUCCESS, original))
        return false;
    e->recipients[e->count - 1].way = way;
    e->recipients[e->count - 1].expanded = true;
    return true;
}

bool
expansion_add(const struct expansion *x, const struct expansion_question *question,
              unsigned notify, struct text original, const struct expansion_target *t)
{
    struct buffer made;
    struct text origin = question->address;
    unsigned passed = expansion_notify(x, notify);
    buffer_init(&made, ORIGINAL_BYTES_MAX);
    bool list = x->kind == EXPANSION_LIST;
    /* A list sends on its own account: requests for reports end there. */
    bool good = list || expansion_original(question, original, &made);
    const struct recipient_way *way = NULL;
    for (unsigned i = 0; good && i < x->count; i++) {
        const struct expansion_member *m = &x->members[i];
        if (way == NULL || !text_equal(way->sender, m->sender))
            way = envelope_way(t->envelope, origin, m->sender);
        good = way != NULL &&
               expansion_add_one(t, m->address, passed, buffer_text(&made), way);
    }
    if (good && expansion_reports(x, notify, question->sender))
        good = expansion_add_report(t, origin, original, list ? way : NULL);
    buffer_free(&made);
    return good;
}

/* --- A whole envelope ------------------------------------------------------------- */

struct applied_address {
    UT_hash_handle hh;
};

struct applying {
    struct envelope *envelope;
    struct arena arena;
    struct applied_address *seen;
};

static bool
applied_knows(void *context, struct text address)
{
    struct applying *a = context;
    struct applied_address *found;
    HASH_FIND(hh, a->seen, address.at, address.length, found);
    return found != NULL;
}

static bool
applied_note(void *context, const struct recipient *r)
{
    struct applying *a = context;
    struct applied_address *made = arena_get(&a->arena, sizeof(*made));
    if (made == NULL)
        return false;
    HASH_ADD_KEYPTR(hh, a->seen, r->address.at, r->address.length, made);
    return true;
}

/* The list as it was, while the new one is made. */
struct applied_list {
    struct recipient *list;
    unsigned count;
};

/* As it was given. */
static bool
applied_keep(struct applying *a, const struct recipient *r, enum recipient_refusal why)
{
    struct envelope *e = a->envelope;
    if (r->way == NULL && !r->expanded && applied_knows(a, r->address))
        return true;
    if (!envelope_add(e, r->address, r->notify, r->original))
        return false;
    struct recipient *made = &e->recipients[e->count - 1];
    made->way = r->way;
    made->expanded = r->expanded;
    made->refused = why;
    return r->expanded || applied_note(a, made);
}

static enum recipient_refusal
applied_refusal(const struct expansion *x)
{
    if (x->kind == EXPANSION_FORGED || x->kind == EXPANSION_FORGED_RETURN)
        return RECIPIENT_UNKNOWN;
    if (x->kind == EXPANSION_UNSURE)
        return RECIPIENT_UNSURE;
    if (x->kind == EXPANSION_EMPTY)
        return RECIPIENT_EMPTY;
    return x->kind == EXPANSION_TOO_MANY ? RECIPIENT_TOO_MANY : RECIPIENT_GOOD;
}

/* One that came through an alias has been expanded before. */
static bool
applied_expand(struct applying *a, const struct recipient *r,
               const struct expansion_rules *rules, struct expansion_question *q,
               struct expansion *x,
               bool (*was_delivered)(void *context, struct text address), void *context)
{
    q->address = r->address;
    if (r->way != NULL || r->expanded)
        return applied_keep(a, r, RECIPIENT_GOOD);
    expansion_make(x, rules, q);
    enum recipient_refusal refusal = applied_refusal(x);
    if (x->count == 0 || refusal != RECIPIENT_GOOD)
        return applied_keep(a, r, refusal);
    if (was_delivered != NULL && was_delivered(context, r->address))
        return applied_keep(a, r, RECIPIENT_LOOPS);
    return expansion_add(x, q, r->notify, r->original,
                         &(struct expansion_target){.envelope = a->envelope,
                                                    .known = applied_knows,
                                                    .added = applied_note,
                                                    .context = a});
}

/* Beyond a limit the message fails for all of them, and goes to none. */
static void
applied_refuse_all(struct envelope *e, struct applied_list *old)
{
    free(e->recipients);
    e->recipients = old->list;
    e->count = e->capacity = old->count;
    old->list = NULL;
    for (unsigned i = 0; i < e->count; i++)
        e->recipients[i].refused = RECIPIENT_TOO_MANY;
}

unsigned
expansion_apply(struct envelope *e, const struct expansion_rules *rules, int64_t now_ms,
                bool (*was_delivered)(void *context, struct text address),
                void *context)
{
    struct applied_list old = {e->recipients, e->count};
    struct applying a = {.envelope = e};
    struct expansion_question q = {
        .sender = e->sender, .ours = e->ours, .now_ms = now_ms};
    unsigned work = 0;
    bool good = true;
    if (expansion_is_idle(rules))
        return 0;
    arena_init(&a.arena, ENVELOPE_BYTES_MAX);
    e->recipients = NULL;
    e->count = e->capacity = 0;
    for (unsigned i = 0; good && i < old.count; i++) {
        struct expansion x = {.kind = EXPANSION_NONE};
        good = applied_expand(&a, &old.list[i], rules, &q, &x, was_delivered, context);
        work += x.count + 1;
        good = good && work <= 2 * ENVELOPE_RECIPIENTS_MAX;
        expansion_free(&x);
    }
    HASH_CLEAR(hh, a.seen);
    arena_free(&a.arena);
    if (!good)
        applied_refuse_all(e, &old);
    free(old.list);
    return work;
}
