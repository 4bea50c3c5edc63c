/* The effects that adoption between hosts may have on mail. */
#include "t/roof/law_adoption.h"

#include "base/memory.h"
#include "queue/copies/adoption.h"
#include "queue/envelope/envelope.h"
#include "t/roof/engine.h"
#include "t/roof/group.h"
#include "t/roof/host.h"
#include "t/roof/model.h"
#include "t/roof/roof.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <uthash.h>

enum {
    GIFTS_MS = 90 * SECOND_MS,  /* those under way, and lost answers */
    PASSING_MS = 2 * SECOND_MS, /* a reply, or a connection, is on its way */
    NAME_DIGIT = sizeof("relay") - 1
};

/* A recipient, or a message for its report: whose it is, since the last claim. */
struct owned {
    const void *what;
    unsigned owner, seen; /* seen: how often it was stored when a chance was given */
    int64_t since_ms;
    UT_hash_handle hh;
};

/* "relay1, was=ID, first=ID" of a log: who has said that it adopts that message. */
struct adopted {
    struct text what;
    unsigned by;
    int64_t at_ms;
    UT_hash_handle hh;
};

struct excused {
    const struct model_message *message;
    UT_hash_handle hh;
};

static struct {
    struct owned *owned;
    struct adopted *adopted;
    struct excused *excused;
    unsigned claims, left; /* messages that may be excused */
    struct {
        int64_t fenced_ms; /* 0: not */
        size_t sessions;   /* that were open then: each may have one more message */
        bool adopts, is_lost;
        bool
            is_excused; /* its own mail went to another, and what it had stored with it */
        unsigned twice;   /* messages that another has adopted, too, in this adoption */
        int64_t again_ms; /* when its copies were its own again; 0: never */
    } hosts[GROUP_MEMBERS_MAX];
} law;

int
law_adoption_host(const struct net_address *a)
{
    int last = a->ip[3], number = -1;
    if (a->family != NET_IPV4 || a->ip[0] != 10 || a->ip[1] != 0)
        return -1;
    if (a->ip[2] == 3)
        number = last - 1;
    else if (a->ip[2] == 0)
        number = last == 1 ? 0 : last - 10;
    return number >= 0 && number < (int)group_count() ? number : -1;
}

unsigned
law_adoption_claims(void)
{
    return law.claims;
}

bool
law_adoption_is_fenced(unsigned number)
{
    return law.hosts[number].fenced_ms > 0;
}

/* --- Owners --- */

static struct owned *
find_owned(const void *what)
{
    struct owned *o = NULL;
    HASH_FIND_PTR(law.owned, &what, o);
    return o;
}

/* True: it had come count times, and not at the last claim. */
static bool
own(const void *what, unsigned owner, unsigned count)
{
    struct owned *o = find_owned(what);
    if (o == NULL) {
        o = memory_new(sizeof(*o));
        o->what = what;
        HASH_ADD_PTR(law.owned, what, o);
    }
    bool is_new = count > o->seen;
    o->owner = owner;
    o->seen = count;
    o->since_ms = roof_now_ms();
    return is_new;
}

struct claim {
    struct text key;
    unsigned owner;
};

static void
claim_report(const struct claim *c, struct model_message *m)
{
    m->report_chances += own(m, c->owner, m->reports);
}

static void
claim_recipient(const struct claim *c, struct model_rcpt *r)
{
    unsigned ends = r->stored + r->refused + r->failed;
    bool again = own(r, c->owner, ends);
    r->chances += again;
    r->message->report_chances += again;
    r->copied = true; /* each host has its own times */
    r->deferred_ms = 0;
}

static void
claim_copy(void *context, const struct engine_copy *copy)
{
    const struct claim *c = context;
    const struct envelope *e = copy->envelope;
    if (!text_equal(text_from(copy->key), c->key))
        return;
    for (unsigned i = 0; i < e->count; i++) {
        struct model_rcpt *r = model_find(e->recipients[i].address);
        struct model_message *back = model_find_sender(e->recipients[i].address);
        if (e->recipients[i].done)
            continue;
        if (r != NULL)
            claim_recipient(c, r);
        else if (back != NULL)
            claim_report(c, back);
    }
}

static unsigned
host_of_owner(struct text owner)
{
    assert(owner.length > NAME_DIGIT);
    return (unsigned)(owner.at[NAME_DIGIT] - '0');
}

static bool
is_of_host(struct text key, unsigned number)
{
    struct text rest = text_after(key, text_find(key, '}'));
    return text_starts(rest, TEXT("}:")) &&
           host_of_owner(text_after(rest, 2)) == number;
}

/* Its own mail goes to another while it adopts: what it had stored and not taken goes with it,
 * and may have gone back to the host whose it was. */
static void
excuse_adopter(unsigned from, unsigned to, struct text key)
{
    if (from == to || !law.hosts[from].adopts || law.hosts[from].is_excused ||
        !is_of_host(key, from))
        return;
    law.hosts[from].is_excused = true;
    law.left += ADOPTION_SLOTS;
}

/* A host that begins again claims its own copies, and has its disk. */
void
law_adoption_claimed(struct text was, struct text is, struct text key)
{
    if (group_count() == 0)
        return;
    unsigned from = host_of_owner(was), to = host_of_owner(is);
    struct claim c = {.key = key, .owner = to};
    assert(from < GROUP_MEMBERS_MAX && to < GROUP_MEMBERS_MAX);
    if (from == to && !law.hosts[from].is_lost)
        return;
    roof_note("engine: the copies of %.*s, at %.*s, are those of %.*s", TEXT_ARGS(key),
              TEXT_ARGS(was), TEXT_ARGS(is));
    law.claims++;
    excuse_adopter(from, to, key);
    engine_each_copy(claim_copy, &c);
}

void
law_adoption_lost(unsigned number)
{
    law.hosts[number].is_lost = true;
}

/* --- Other hosts --- */

void
law_adoption_storing(int number, struct model_rcpt *r)
{
    const struct owned *o = find_owned(r);
    if (o == NULL || number < 0 || o->owner == (unsigned)number)
        return;
    /* before its copies are its own again all that is another's ends there */
    if (law.hosts[number].again_ms > o->since_ms &&
        roof_now_ms() - law.hosts[number].again_ms > PASSING_MS)
        return;
    roof_note("engine: m%ur%u is not relay%d's", r->message->number, r->index, number);
    r->chances++;
    r->message->report_chances++;
}

void
law_adoption_reporting(int number, struct model_message *m)
{
    const struct owned *o = find_owned(m);
    bool is_others = o != NULL && o->owner != (unsigned)number;
    if (law.owned == NULL || number < 0)
        return;
    for (unsigned i = 0; i < m->rcpt_count && !is_others; i++) {
        o = find_owned(&m->rcpts[i]);
        is_others = o != NULL && o->owner != (unsigned)number;
    }
    m->report_chances += is_others;
}

static bool
is_fenced(int number)
{
    int64_t since_ms = law.hosts[number].fenced_ms;
    return roof_breaks("fenced") ||
           (since_ms > 0 && roof_now_ms() - since_ms > PASSING_MS);
}

void
law_adoption_mail(int number, struct text sender)
{
    if (number < 0 || !is_fenced(number))
        return;
    if (law.hosts[number].sessions == 0)
        roof_break("fenced", NULL,
                   "relay%d delivers mail from %.*s, and knows that its mail is "
                   "another's",
                   number, TEXT_ARGS(sender));
    law.hosts[number].sessions--;
}

void
law_adoption_acked(unsigned number)
{
    if (number < group_count() && is_fenced((int)number))
        roof_break("fenced", NULL,
                   "relay%u says 250, and knows that its mail is another's", number);
}

/* --- Logs --- */

static bool
has(struct text line, const char *words)
{
    return memmem(line.at, line.length, words, strlen(words)) != NULL;
}

/* The value of a field of a line, up to the next comma. */
static struct text
field_of(struct text line, const char *name)
{
    const char *at = memmem(line.at, line.length, name, strlen(name));
    if (at == NULL)
        return TEXT("");
    struct text value = text_after(line, (size_t)(at - line.at) + strlen(name));
    return text_before(value, text_find(value, ','));
}

/* A host that has known for long that its mail is another's gives none to a third. */
static void
judge_gift(unsigned giver, struct text line)
{
    if (law.hosts[giver].fenced_ms > 0 &&
        roof_now_ms() - law.hosts[giver].fenced_ms > GIFTS_MS)
        roof_break("fenced", NULL,
                   "relay%u gives mail, and knows that it is another's: %.*s", giver,
                   TEXT_ARGS(line));
}

/* It was cut off with some stored, and perhaps said to be its own; the host whose they were is
 * back since, and has forgotten who had them. */
static bool
may_adopt_twice(unsigned number, unsigned giver, const struct adopted *a)
{
    bool may = law.hosts[number].adopts && law.hosts[giver].again_ms > a->at_ms &&
               law.hosts[number].twice < ADOPTION_SLOTS;
    law.hosts[number].twice += may;
    law.left += may;
    return may;
}

/* One host takes a message, however many try. */
static void
judge_adopted(unsigned number, unsigned giver, struct text line)
{
    struct text what = text_after(line, text_find(line, '='));
    struct adopted *a = NULL;
    HASH_FIND(hh, law.adopted, what.at, what.length, a);
    if (a == NULL) {
        a = memory_new(sizeof(*a));
        a->what = text_from(text_string(what));
        a->by = number;
        a->at_ms = roof_now_ms();
        HASH_ADD_KEYPTR(hh, law.adopted, a->what.at, a->what.length, a);
    }
    if (a->by != number && !may_adopt_twice(number, giver, a))
        roof_break("fenced", NULL, "relay%u adopts what relay%u has adopted: %.*s",
                   number, a->by, TEXT_ARGS(line));
}

/* "queue: ID: from=relay1, was=ID, first=ID": this host has it. The one that is its owner may
 * have it still. */
static void
note_move(unsigned number, struct text line)
{
    struct text first = field_of(line, " first="), from = field_of(line, " from=");
    bool is_gift = !has(line, "status=adopted");
    unsigned giver = host_of_owner(from);
    if (is_gift)
        judge_gift(giver, line);
    else
        judge_adopted(number, giver, line);
    for (unsigned i = 0; i < model_count(); i++) {
        struct model_message *m = model_at(i);
        for (unsigned j = 0; j < m->rcpt_count && text_equal(text_from(m->id), first);
             j++) {
            struct owned *o = find_owned(&m->rcpts[j]);
            bool is_twice = o != NULL && is_gift && o->owner != giver;
            m->rcpts[j].chances += is_twice;
            m->report_chances += is_twice;
            if (o != NULL)
                o->owner = number;
        }
    }
}

static void
note_again(unsigned number)
{
    law.hosts[number].fenced_ms = 0;
    law.hosts[number].again_ms = roof_now_ms();
}

static void
note_fence(unsigned number)
{
    const struct host *h = group_host(number);
    if (law.hosts[number].fenced_ms > 0)
        return;
    law.hosts[number].fenced_ms = roof_now_ms();
    law.hosts[number].sessions = sched_count(manager_sched(h->daemon.manager)).sessions;
}

void
law_adoption_line(unsigned number, struct text line)
{
    if (law.owned != NULL && text_starts(line, TEXT("queue: ")) && has(line, " was="))
        note_move(number, line);
    if (!text_starts(line, TEXT("copies: ")))
        return;
    if (group_count() > 0 && has(line, " the mail of this host") &&
        !has(line, "no copies can be kept"))
        note_fence(number);
    else if (has(line, "copies are kept again"))
        note_again(number);
    else if (has(line, "adopting the mail of")) {
        law.hosts[number].adopts = true;
        law.hosts[number].is_excused = false;
        law.hosts[number].twice = 0;
    } else if (has(line, " is adopted"))
        law.hosts[number].adopts = false;
}

void
law_adoption_ended(unsigned number)
{
    bool may = law.hosts[number].adopts && !law.hosts[number].is_excused;
    law.left += may ? ADOPTION_SLOTS : 0;
    law.hosts[number].adopts = false;
    law.hosts[number].fenced_ms = 0;
}

bool
law_adoption_excuses(const struct model_message *m)
{
    struct excused *e = NULL;
    HASH_FIND_PTR(law.excused, &m, e);
    if (e != NULL)
        return true;
    if (law.left == 0)
        return false;
    law.left--;
    e = memory_new(sizeof(*e));
    e->message = m;
    HASH_ADD_PTR(law.excused, message, e);
    return true;
}
