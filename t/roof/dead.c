/* A client that sends to dead addresses, and a record of who tries them. */
#include "t/roof/dead.h"

#include "base/memory.h"
#include "t/roof/editor.h"
#include "t/roof/group.h"
#include "t/roof/host.h"
#include "t/roof/network.h"
#include "t/roof/peer.h"
#include "t/roof/redis.h"
#include "t/roof/roof.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEAD_ADDRESSES = 3,
    DEAD_IN_GROUP = 16,
    ADDRESSES_MAX = 100,
    MAILS_MAX = 8000, /* later ones have no number */
    DAY_ONE_IN = 10,  /* acts */
    LOST_MS =
        3 * SECOND_MS, /* to a power cut, beside three syncs of the slowest kind */
    UNDER_WAY_MS = 6 * MINUTE_MS, /* mail that a session has taken before; a reload */
    PATIENCE_MS = 10 * MINUTE_MS,
    TOGGLES = 150, /* in a thousand reloads */
    DEAD_SHARED_MS = 20 * SECOND_MS,
    LOOK_MS = 5 * SECOND_MS
};

#define DEAD_FIELD "X-Dead: "

static struct {
    uint64_t chance;
    bool is_on, forgives, suppresses, is_day, copies, is_group, shares, in_slices;
    int64_t up_ms[GROUP_MEMBERS_MAX]; /* a host runs since then */
    unsigned starts[GROUP_MEMBERS_MAX];
    int64_t trouble_ms; /* of Redis */
    struct roof_timer look;
    char lines[80];
    int64_t since_ms; /* that suppresses is so */
    unsigned domains[4], domain_count, addresses, mails, tries;
    const char *const *names;
    struct dead_address {
        int64_t known_ms[GROUP_MEMBERS_MAX]; /* at each host; 0: it is not suppressed */
        int64_t shared_ms;                   /* so long Redis has it for all */
        bool was_tried;
    } list[ADDRESSES_MAX];
    bool acked[MAILS_MAX], archived[MAILS_MAX];
    unsigned expired; /* copies, as the log says */
} dead;

struct dead_client {
    struct peer peer;
    unsigned step, number;
    char rcpt[100], content[100];
    bool was_sent;
    struct roof_timer timer;
};

static void
dead_set(bool suppresses)
{
    dead.suppresses = suppresses;
    dead.since_ms = roof_now_ms();
    snprintf(dead.lines, sizeof(dead.lines),
             "suppress = %s\nsuppress_bounce_lifetime = 0\n",
             suppresses ? "yes" : "no");
}

void
dead_begin(const char *const *domains, unsigned domain_count, bool forgives)
{
    static const unsigned by_smtp[] = {0, 1, 3, 4};
    dead.chance = roof_fork("dead");
    dead.is_on = true;
    dead.addresses = DEAD_ADDRESSES;
    dead.forgives = forgives;
    dead.names = domains;
    for (size_t i = 0; i < sizeof(by_smtp) / sizeof(*by_smtp); i++)
        if (by_smtp[i] < domain_count)
            dead.domains[dead.domain_count++] = by_smtp[i];
    dead_set(true);
    editor_add(dead.lines);
}

void
dead_edit(void)
{
    if (!dead.is_on || dead.is_day || dead.is_group || dead.in_slices ||
        roof_below_of(&dead.chance, 1000) >= TOGGLES)
        return;
    dead_set(!dead.suppresses);
    roof_note("dead: suppress = %s", dead.suppresses ? "yes" : "no");
}

void
dead_begin_day(unsigned addresses)
{
    dead.is_day = true;
    dead.addresses = addresses < ADDRESSES_MAX ? addresses : ADDRESSES_MAX;
}

/* A host that runs, and a Redis that is well: what it knows is there. Trouble may lose it. */
static void
dead_look(void *context)
{
    int64_t now_ms = roof_now_ms(), trouble_ms = redises_trouble_ms();
    bool is_lost = trouble_ms != dead.trouble_ms;
    dead.trouble_ms = trouble_ms;
    for (unsigned i = 0; i < group_count(); i++) {
        const struct host *h = group_host(i);
        if (!h->running || h->starts != dead.starts[i])
            dead.up_ms[i] = now_ms;
        dead.starts[i] = h->starts;
    }
    for (struct dead_address *d = dead.list; d < dead.list + dead.addresses; d++) {
        d->shared_ms = is_lost ? 0 : d->shared_ms;
        for (unsigned i = 0; i < group_count() && d->shared_ms == 0; i++)
            if (d->known_ms[i] > 0 && now_ms - d->known_ms[i] > DEAD_SHARED_MS &&
                now_ms - dead.up_ms[i] > DEAD_SHARED_MS &&
                (trouble_ms == INT64_MIN || now_ms - trouble_ms > DEAD_SHARED_MS))
                d->shared_ms = now_ms;
    }
    roof_timer_start(&dead.look, LOOK_MS, dead_look, context);
}

void
dead_begin_group(bool shares)
{
    dead.is_group = true;
    dead.addresses = DEAD_IN_GROUP;
    dead.shares = shares;
    if (shares)
        roof_timer_start(&dead.look, LOOK_MS, dead_look, NULL);
}

void
dead_begin_slices(void)
{
    dead.in_slices = true;
}

bool
dead_in_slices(void)
{
    return dead.in_slices;
}

void
dead_copy(void)
{
    dead.copies = true;
}

void
dead_tally(unsigned *mail, unsigned *tries, unsigned *addresses)
{
    *mail = dead.mails;
    *tries = dead.tries;
    *addresses = 0;
    for (unsigned i = 0; i < ADDRESSES_MAX; i++)
        *addresses += dead.list[i].was_tried;
}

/* --- The client -------------------------------------------------------------------- */

static void
release_dead_client(void *context)
{
    free(context);
}

static void
dead_on_over(void *context)
{
    struct dead_client *c = context;
    roof_timer_start(&c->timer, 0, release_dead_client, c);
}

static void
dead_on_impatience(void *context)
{
    struct dead_client *c = context;
    peer_cut(&c->peer, PEER_RESET);
}

static void
dead_go_on(struct dead_client *c, bool good)
{
    const char *const lines[] = {"EHLO dead.test\r\n",
                                 "MAIL FROM:<nobody@back.test>\r\n",
                                 c->rcpt,
                                 "DATA\r\n",
                                 c->content,
                                 "QUIT\r\n"};
    if (!good || c->step == sizeof(lines) / sizeof(*lines)) {
        peer_close(&c->peer);
        return;
    }
    if (lines[c->step] == c->content)
        c->was_sent = true;
    else if (c->was_sent && c->number < MAILS_MAX)
        dead.acked[c->number] = true;
    peer_say(&c->peer, text_from(lines[c->step++]));
}

static bool
dead_on_line(void *context, struct text line)
{
    struct dead_client *c = context;
    if (line.length < 4 || line.at[3] == '-')
        return true;
    dead_go_on(c, line.at[0] == '2' || line.at[0] == '3');
    return true;
}

void
dead_act(void)
{
    struct net_address from =
                           {
                               .family = NET_IPV4, .ip = {10, 1, 0, 250}
    },
                       to = {.family = NET_IPV4, .ip = {10, 0, 0, 1}, .port = 25};
    if (dead.is_day && roof_below_of(&dead.chance, DAY_ONE_IN) > 0)
        return;
    unsigned number = roof_below_of(&dead.chance, dead.addresses),
             member = dead.is_group ? roof_below_of(&dead.chance, group_count()) : 0;
    to.ip[3] = (unsigned char)(member > 0 ? 10 + member : 1);
    const char *domain = dead.names[dead.domains[number % dead.domain_count]];
    struct dead_client *c = memory_new(sizeof(*c));
    snprintf(c->rcpt, sizeof(c->rcpt), "RCPT TO:<dead%u@%s> NOTIFY=NEVER\r\n", number,
             domain);
    c->number = dead.mails++;
    snprintf(c->content, sizeof(c->content),
             DEAD_FIELD "%u\r\nSubject: are you there\r\n\r\nhello\r\n.\r\n",
             c->number);
    roof_note("dead: mail to dead%u@%s, by 10.0.0.%u", number, domain, to.ip[3]);
    c->peer = (struct peer){.line = dead_on_line, .over = dead_on_over, .context = c};
    roof_timer_start(&c->timer, PATIENCE_MS, dead_on_impatience, c);
    peer_connect(&c->peer, &from, &to);
}

/* --- The law ----------------------------------------------------------------------- */

/* NULL: not one of them. */
static struct dead_address *
dead_find(struct text address)
{
    uint64_t number;
    if (!dead.is_on || !text_starts(address, TEXT("dead")) ||
        !text_number(text_before(text_after(address, 4), text_find(address, '@') - 4),
                     dead.addresses - 1, &number))
        return NULL;
    return &dead.list[number];
}

void
dead_log_line(unsigned host_number, struct text line)
{
    struct text begin = TEXT("queue: to=<"), address;
    static const char failed[] = ": warning: the copy for <";
    dead.expired += memmem(line.at, line.length, failed, sizeof(failed) - 1) != NULL;
    if (!text_starts(line, begin))
        return;
    line = text_after(line, begin.length);
    (void)text_cut(&line, '>', &address);
    struct dead_address *d = dead_find(address);
    const struct model_rcpt *r = dead.is_on ? model_find(address) : NULL;
    if (r != NULL && text_starts(line, TEXT(", class=")) &&
        (!r->refused || roof_breaks("suppressed")))
        roof_break("truth", r->message->id,
                   "%.*s is suppressed, and nobody has refused it", TEXT_ARGS(address));
    if (d == NULL || !text_starts(line, TEXT(", class=hard")))
        return;
    d->known_ms[host_number] = roof_now_ms();
}

void
dead_returned(struct model_rcpt *r)
{
    if (dead.is_on && r != NULL)
        model_refused(r);
}

void
dead_host_ended(unsigned host_number, int64_t slowest_ms)
{
    for (unsigned i = 0; i < ADDRESSES_MAX; i++) {
        int64_t *known_ms = &dead.list[i].known_ms[host_number];
        if (*known_ms > roof_now_ms() - LOST_MS - 3 * slowest_ms)
            *known_ms = 0;
    }
}

/* Since when that host has known it, by itself or by the others; 0: perhaps it does not. */
static int64_t
dead_since_ms(const struct dead_address *d, unsigned host_number)
{
    int64_t own_ms = d->known_ms[host_number], shared_ms = d->shared_ms;
    if (!dead.shares || shared_ms == 0)
        return own_ms;
    if (dead.up_ms[host_number] > shared_ms)
        shared_ms = dead.up_ms[host_number];
    if (redises_trouble_ms() > shared_ms)
        shared_ms = redises_trouble_ms();
    shared_ms += DEAD_SHARED_MS;
    return own_ms > 0 && own_ms < shared_ms ? own_ms : shared_ms;
}

bool
dead_tried(struct text address, const struct net_address *from, bool is_late)
{
    struct dead_address *d = dead_find(address);
    int64_t before_ms = roof_now_ms() - UNDER_WAY_MS;
    if (d == NULL)
        return false;
    unsigned host_number = dead.is_group && from->ip[3] > 10 ? from->ip[3] - 10u : 0;
    int64_t since_ms = dead_since_ms(d, host_number);
    dead.tries++;
    d->was_tried = true;
    if (roof_breaks(dead.is_group ? "dead in a group" : "dead") ||
        (!is_late && since_ms > 0 && since_ms < before_ms && dead.suppresses &&
         dead.since_ms < before_ms && !dead.forgives))
        roof_break("dead", NULL,
                   "%.*s is tried by 10.0.0.%u, and suppressed since %" PRId64 " s",
                   TEXT_ARGS(address), from->ip[3], (roof_now_ms() - since_ms) / 1000);
    return true;
}

bool
dead_archived(struct text content)
{
    static const char name[] = DEAD_FIELD;
    uint64_t number;
    const char *at = memmem(content.at, content.length, name, sizeof(name) - 1);
    if (!dead.copies || at == NULL)
        return false;
    content = text_after(content, (size_t)(at - content.at) + sizeof(name) - 1);
    if (text_number(text_before(content, text_find(content, '\r')), MAILS_MAX - 1,
                    &number))
        dead.archived[number] = true;
    return true;
}

void
dead_judge(void)
{
    unsigned missing = 0;
    for (unsigned i = 0; dead.copies && i < MAILS_MAX; i++)
        if (dead.acked[i] && !dead.archived[i] && ++missing > dead.expired)
            roof_break("once", NULL, "mail %u to a dead address is not in the archive",
                       i);
}
