/* Servers of Redis. */
#include "t/roof/redis.h"

#include "base/memory.h"
#include "t/roof/peer.h"
#include "t/roof/redis_keys.h"
#include "t/sim/sim.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <utlist.h>

enum {
    INPUT_MAX = 1 << 20,
    REPLY_MAX = 1 << 20,
    LATE_MAX_MS = 3000,
    LAG_MS = 3000, /* of the replica */
    NOBODY = 0,
    PERMILLE = 1000
};

enum mood {
    REDIS_UP,
    REDIS_REFUSES,
    REDIS_SILENT, /* takes connections, and says nothing */
    REDIS_SLOW,
    REDIS_CUTS, /* within replies */
    REDIS_LOADS,
    REDIS_IS_FULL,
    REDIS_ODD, /* says what is no answer */
    REDIS_MOODS
};
static const char *const mood_words[REDIS_MOODS] = {
    "up",   "refuses",        "is silent", "is slow",
    "cuts", "loads its data", "is full",   "says odd things"};

struct server {
    char ip[16];
    enum mood mood;
    bool is_replica;
    struct redis_keys *keys;
    int64_t step_ms; /* of its clock */
    struct network_service *service;
};

static struct {
    bool has_faults, is_old, has_password;
    unsigned count;
    struct server servers[REDISES_MAX];
    struct asker *askers;
    unsigned cut_off; /* the last octet of a host's address */
    bool is_gone;     /* for good */
    bool forbids_scripts;
    uint64_t chance;
    int64_t trouble_ms;
    struct roof_timer lag;
    char urls[80];
} redises;

/* A connection of a host. */
struct asker {
    struct asker *prev, *next;
    struct server *server;
    struct peer peer;
    unsigned host; /* the last octet of its address */
    struct buffer in, reply;
    bool waits; /* for the timer: nothing is read */
    bool is_known;
    struct roof_timer timer;
};

static unsigned
draw(unsigned limit)
{
    return roof_below_of(&redises.chance, limit);
}

/* --- Replies ---------------------------------------------------------------------- */

static int64_t
server_now_us(const struct server *s)
{
    return (SIM_WALL_START_MS + roof_now_ms() + s->step_ms) * 1000;
}

static void
asker_send(struct asker *a)
{
    struct text reply = buffer_text(&a->reply);
    size_t some = reply.length;
    bool cuts = a->server->mood == REDIS_CUTS && draw(4) == 0;
    if (cuts)
        some = draw((unsigned)reply.length);
    peer_say(&a->peer, text_before(reply, some));
    buffer_clear(&a->reply);
    if (cuts)
        peer_cut(&a->peer, draw(2) == 0 ? PEER_FIN : PEER_RESET);
}

static void asker_go_on(struct asker *a);

static void
asker_on_late(void *context)
{
    struct asker *a = context;
    a->waits = false;
    asker_send(a);
    asker_go_on(a);
}

/* NULL: the command is done. */
static const char *
refusal_of(const struct server *s, const char *command)
{
    if (s->mood == REDIS_LOADS)
        return "-LOADING Redis is loading the dataset in memory\r\n";
    if (s->mood == REDIS_IS_FULL && redis_keys_writes(command))
        return "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    if (redises.forbids_scripts && strncasecmp(command, "EVAL", 4) == 0)
        return "-NOPERM User default has no permissions to run this command\r\n";
    if (s->is_replica && redis_keys_writes(command))
        return "-READONLY You can't write against a read only replica.\r\n";
    return NULL;
}

static const char *
odd_reply(void)
{
    static const char *const odd[] = {"+OK\r\n",
                                      ":-7\r\n",
                                      "$-1\r\n",
                                      "$0\r\n\r\n",
                                      "*2\r\n:1\r\n:2\r\n",
                                      "$9\r\n1 2 3 4 x\r\n",
                                      "$19\r\n0 a b c\nrelay0 {}{]}\r\n",
                                      "-ERR user_script:1: Script attempted\r\n",
                                      "-NOSCRIPT No matching script.\r\n",
                                      "-NOPERM this user has no permissions\r\n",
                                      "$1048576\r\n",
                                      "hello\r\n"};
    return odd[draw(sizeof(odd) / sizeof(*odd))];
}

static void
add_reply(struct asker *a, const char *reply)
{
    bool fits = buffer_add(&a->reply, text_from(reply));
    assert(fits);
}

static void
greet(struct asker *a, const char *const *words, size_t count)
{
    if (strcmp(words[0], "AUTH") == 0) {
        if (strcmp(words[count - 1], REDISES_PASSWORD) != 0)
            roof_break("truth", NULL, "not the password of Redis");
        a->is_known = true;
    }
    add_reply(a, "+OK\r\n");
}

static void
run_command(struct asker *a, const char *const *words, size_t count)
{
    struct server *s = a->server;
    const char *refusal = refusal_of(s, words[0]);
    if (refusal != NULL)
        add_reply(a, refusal);
    else if (s->mood == REDIS_ODD && draw(3) == 0)
        add_reply(a, odd_reply());
    else if (strcmp(words[0], "AUTH") == 0 || strcmp(words[0], "SELECT") == 0)
        greet(a, words, count);
    else if (redises.has_password && !a->is_known)
        add_reply(a, "-NOAUTH Authentication required.\r\n");
    else
        redis_keys_run(s->keys, server_now_us(s), redises.is_old, words, count,
                       &a->reply);
}

/* --- Commands --------------------------------------------------------------------- */

/* "*3" or "$5". False: it is not there as a whole. */
static bool
take_head(struct text *rest, char kind, size_t *number)
{
    struct text line;
    uint64_t value = 0;
    if (text_find(*rest, '\n') == TEXT_NONE)
        return false;
    text_cut(rest, '\n', &line);
    if (line.length < 3 || line.at[0] != kind ||
        !text_number(text_before(text_after(line, 1), line.length - 2), INPUT_MAX,
                     &value))
        roof_break("bounds", NULL, "no command of Redis: %.*s", TEXT_ARGS(line));
    *number = (size_t)value;
    return true;
}

/* The words of the first command, which are freed by free_words(). 0: more is to come. */
static size_t
take_words(struct asker *a, char *words[REDIS_KEYS_WORDS_MAX])
{
    struct text rest = buffer_text(&a->in);
    size_t count, size, got = 0;
    if (!take_head(&rest, '*', &count))
        return 0;
    assert(count > 0 && count <= REDIS_KEYS_WORDS_MAX);
    while (got < count && take_head(&rest, '$', &size) && rest.length >= size + 2) {
        words[got] = memory_new(size + 1);
        memcpy(words[got++], rest.at, size);
        rest = text_after(rest, size + 2);
    }
    if (got == count) {
        buffer_take(&a->in, a->in.length - rest.length);
        return count;
    }
    while (got > 0)
        free(words[--got]);
    return 0;
}

static void
asker_go_on(struct asker *a)
{
    char *words[REDIS_KEYS_WORDS_MAX];
    size_t count;
    while (a->peer.end != NULL && !a->waits && a->server->mood != REDIS_SILENT &&
           (count = take_words(a, words)) > 0) {
        run_command(a, (const char *const *)words, count);
        while (count > 0)
            free(words[--count]);
        a->waits = a->server->mood == REDIS_SLOW;
        if (a->waits)
            roof_timer_start(
                &a->timer,
                roof_between_of(&redises.chance, 1, draw(2) == 0 ? 200 : LATE_MAX_MS),
                asker_on_late, a);
        else
            asker_send(a);
    }
}

static void
asker_on_raw(void *context, struct text bytes)
{
    struct asker *a = context;
    bool fits = buffer_add(&a->in, bytes);
    assert(fits);
    a->peer.raw_left = SIZE_MAX;
    asker_go_on(a);
}

static void
release_asker(void *context)
{
    struct asker *a = context;
    buffer_free(&a->in);
    buffer_free(&a->reply);
    free(a);
}

static void
asker_on_over(void *context)
{
    struct asker *a = context;
    DL_DELETE(redises.askers, a);
    a->waits = true;
    roof_timer_start(&a->timer, 0, release_asker, a);
}

static void
asker_on_accept(void *context, struct network_end *end)
{
    struct asker *a = memory_new(sizeof(*a));
    a->server = context;
    a->host = network_from(end)->ip[3];
    buffer_init(&a->in, INPUT_MAX);
    buffer_init(&a->reply, REPLY_MAX);
    a->peer = (struct peer){
        .raw_left = SIZE_MAX, .raw = asker_on_raw, .over = asker_on_over, .context = a};
    DL_APPEND(redises.askers, a);
    peer_take(&a->peer, end);
    if (a->host == redises.cut_off)
        peer_cut(&a->peer, PEER_RESET);
}

/* --- Trouble ---------------------------------------------------------------------- */

static void
note_trouble(void)
{
    redises.trouble_ms = roof_now_ms();
}

/* Connections end: of a server, or of a host. */
static void
end_askers(const struct server *s, unsigned host, enum peer_end how)
{
    struct asker *a, *next;
    DL_FOREACH_SAFE (redises.askers, a, next)
        if ((s == NULL || a->server == s) && (host == NOBODY || a->host == host))
            peer_cut(&a->peer, how);
}

static void
set_mood(struct server *s, enum mood mood)
{
    struct asker *a, *next;
    note_trouble();
    if (s->mood == mood)
        return;
    roof_note("redis %s: %s", s->ip, mood_words[mood]);
    s->mood = mood;
    network_service_set(s->service,
                        mood == REDIS_REFUSES ? NETWORK_REFUSES : NETWORK_ACCEPTS);
    if (mood == REDIS_REFUSES) {
        end_askers(s, NOBODY, draw(4) == 0 ? PEER_SILENCE : PEER_RESET);
        redis_keys_flush_scripts(s->keys);
        if (draw(2) == 0) {
            roof_note("redis %s: has lost its data", s->ip);
            redis_keys_flush(s->keys);
        }
    }
    DL_FOREACH_SAFE (redises.askers, a, next)
        if (a->server == s)
            asker_go_on(a);
}

/* The replica lacks what came since its last copy. */
static void
fail_over(void)
{
    if (redises.count < 2)
        return;
    for (unsigned i = 0; i < redises.count; i++) {
        struct server *s = &redises.servers[i];
        s->is_replica = !s->is_replica;
        roof_note("redis %s: is the %s now", s->ip,
                  s->is_replica ? "replica" : "primary");
        if (draw(2) == 0)
            end_askers(s, NOBODY, PEER_RESET);
    }
    note_trouble();
}

static void
on_lag(void *context)
{
    (void)context;
    for (unsigned i = 0; i < redises.count; i++) {
        const struct server *s = &redises.servers[i];
        struct server *other = &redises.servers[(i + 1) % redises.count];
        if (s->is_replica || s->mood == REDIS_REFUSES || other->mood == REDIS_REFUSES)
            continue;
        redis_keys_free(&other->keys);
        other->keys = redis_keys_copy(s->keys);
    }
    roof_timer_start(&redises.lag, LAG_MS, on_lag, NULL);
}

static void
cut_off(unsigned host)
{
    redises.cut_off = host;
    roof_note("redis: 10.0.0.%u is cut off", host);
    note_trouble();
    if (host != NOBODY)
        end_askers(NULL, host, draw(2) == 0 ? PEER_RESET : PEER_SILENCE);
}

static void
step_clock(struct server *s)
{
    static const int64_t steps_ms[] = {-1000,  1000,    -7000,       12000,
                                       -60000, HOUR_MS, -2 * HOUR_MS};
    int64_t step_ms = steps_ms[draw(sizeof(steps_ms) / sizeof(*steps_ms))];
    roof_note("redis %s: its clock goes by %" PRId64 " ms", s->ip, step_ms);
    s->step_ms += step_ms;
    note_trouble();
}

void
redises_act(void)
{
    struct server *s = &redises.servers[redises.count > 0 ? draw(redises.count) : 0];
    unsigned kind = draw(16);
    if (redises.count == 0)
        return;
    if (kind < 5) {
        set_mood(s, REDIS_UP);
    } else if (kind < 11) {
        set_mood(s, (enum mood)draw(REDIS_MOODS));
    } else if (kind == 11) {
        roof_note("redis %s: FLUSHALL", s->ip);
        redis_keys_flush(s->keys);
        note_trouble();
    } else if (kind == 12) {
        redis_keys_flush_scripts(s->keys);
    } else if (kind == 13) {
        step_clock(s);
    } else if (kind == 14) {
        fail_over();
    } else {
        static const unsigned hosts[] = {NOBODY, NOBODY, 1, 11, 12};
        cut_off(hosts[draw(sizeof(hosts) / sizeof(*hosts))]);
    }
}

bool
redises_are_good(void)
{
    bool any = false;
    for (unsigned i = 0; i < redises.count; i++)
        any = any ||
              (redises.servers[i].mood == REDIS_UP && !redises.servers[i].is_replica);
    return any && redises.cut_off == NOBODY;
}

int64_t
redises_trouble_ms(void)
{
    if (redises.count > 0 && !redises_are_good())
        return roof_now_ms();
    return redises.trouble_ms;
}

void
redises_become_good(void)
{
    if (redises.count == 0 || !redises.has_faults)
        return;
    cut_off(NOBODY);
    redises.is_gone = draw(4) == 0;
    for (unsigned i = 0; i < redises.count; i++)
        set_mood(&redises.servers[i], redises.is_gone ? REDIS_REFUSES : REDIS_UP);
}

void
redises_forbid_scripts(bool are_forbidden)
{
    roof_note("redis: scripts are %s", are_forbidden ? "forbidden" : "allowed");
    redises.forbids_scripts = are_forbidden;
    note_trouble();
}

/* --------------------------------------------------------------------------------- */

void
redises_begin(bool has_faults)
{
    redises.chance = roof_fork("redises");
    redises.has_faults = has_faults;
    redises.trouble_ms = INT64_MIN;
    redises.is_old = draw(3) == 0;
    redises.has_password = draw(2) == 0;
    redises.count = 1 + draw(REDISES_MAX);
    for (unsigned i = 0; i < redises.count; i++) {
        struct server *s = &redises.servers[i];
        struct net_address at = {
            .family = NET_IPV4, .ip = {10, 0, 4, 0},
                 .port = 6379
        };
        at.ip[3] = (unsigned char)(1 + i);
        snprintf(s->ip, sizeof(s->ip), "10.0.4.%u", 1 + i);
        s->is_replica = i > 0;
        s->keys = redis_keys_new();
        s->service = network_serve(&at, asker_on_accept, s);
        snprintf(redises.urls + strlen(redises.urls),
                 sizeof(redises.urls) - strlen(redises.urls), "%sredis://%s",
                 i > 0 ? ", " : "", s->ip);
    }
    if (redises.count > 1)
        roof_timer_start(&redises.lag, LAG_MS, on_lag, NULL);
}

const char *
redises_urls(void)
{
    return redises.urls;
}

const char *
redises_first_url(void)
{
    return redises.count > 0 ? "redis://10.0.4.1" : "";
}

const char *
redises_password(void)
{
    return redises.has_password ? REDISES_PASSWORD : "";
}
