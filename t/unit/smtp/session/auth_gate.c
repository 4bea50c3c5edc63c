/* smtp/login: the pace of checks, the row, late answers, lock-out, in virtual time. */
/* link: t/sim/loop.c */
#include "smtp/session/auth_gate.h"

#include "base/log/log.h"
#include "base/log/log_internal.h"
#include "base/event/event.h"
#include "t/support/sasl_kit.h"
#include "t/sim/sim.h"

static struct users *users;
static char content[64 * 1024]; /* of their file */
static struct server_rules rules = {.hostname = "mx.example.org",
                                    .size_limit = 1000,
                                    .recipient_limit = 10,
                                    .hop_limit = 50};

struct world {
    struct loop *loop;
    struct log *log;
    struct event_hub *events;
    struct buffer out, lines;
    struct auth_gate *gate;
    struct lockout *lockout;
};

struct client {
    struct world *w;
    struct server server;
    struct auth_attempt *login;
    char said[200]; /* since the last AUTH */
    unsigned resumed;
};

static void
world_start(struct world *w, int limit)
{
    users_free(&users); /* no password is known from before */
    users = kit_users(content);
    rules.users = users;
    w->loop = sim_loop_new(3);
    w->log = log_new(w->loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    w->events = event_hub_new(w->log);
    buffer_init(&w->out, 1 << 20);
    buffer_init(&w->lines, 1 << 20);
    log_capture(w->log, &w->lines);
    w->lockout = lockout_new();
    lockout_set_limit(w->lockout, limit);
    w->gate = auth_gate_new(w->loop, w->events, w->lockout);
}

static void
world_end(struct world *w)
{
    auth_gate_free(&w->gate);
    lockout_free(&w->lockout);
    loop_turn(w->loop, 0);
    event_hub_free(&w->events);
    log_free(&w->log);
    loop_free(&w->loop);
    buffer_free(&w->out);
    buffer_free(&w->lines);
}

static unsigned
count(const struct world *w, const char *what)
{
    unsigned found = 0;
    struct text lines = buffer_text(&w->lines);
    const char *at = lines.length > 0 ? lines.at : NULL, *next;
    const char *end = at != NULL ? at + lines.length : NULL;
    for (; at != NULL && (next = memmem(at, (size_t)(end - at), what, strlen(what)));
         at = next + 1)
        found++;
    return found;
}

static void
hear(struct client *c)
{
    text_copy(c->said, sizeof(c->said), buffer_text(&c->w->out));
    buffer_clear(&c->w->out);
}

static void
resume(void *context)
{
    struct client *c = context;
    c->resumed++;
    hear(c);
}

static void
arrive(struct client *c, struct world *w, unsigned char last)
{
    struct net_address a = {.family = NET_IPV4, .ip = {192, 0, 2, last}};
    struct lockout_key key = lockout_key(&a, 0);
    struct text hello = TEXT("EHLO x\r\n");
    memset(c, 0, sizeof(*c));
    c->w = w;
    server_start(&c->server, &rules, w->events, &w->out, "[192.0.2.9]", false, false);
    c->server.offer.auth = SERVER_AUTH_CLEAR;
    if (server_step(&c->server, &hello) != SERVER_GO_ON)
        abort();
    c->login = auth_attempt_new(w->gate, &c->server, &key, &(struct dovecot_client){0}, resume, c);
    buffer_clear(&w->out);
}

static void
leave(struct client *c)
{
    auth_attempt_free(&c->login);
    loop_turn(c->w->loop, 0);
    server_free(&c->server);
}

#define GOOD  "AUTH PLAIN AHVzZXIAcGVuY2ls\r\n"
#define WRONG "AUTH PLAIN AHVzZXIAcGVuY2lt\r\n"

/* Whether it is answered at once. */
static bool
tries(struct client *c, const char *line)
{
    struct text input = text_from(line);
    c->said[0] = '\0';
    if (server_step(&c->server, &input) != SERVER_LOGIN)
        abort();
    if (!auth_attempt_ask(c->login))
        return false;
    hear(c);
    return true;
}

/* As one of many users, whose password may not have been right before. */
static bool
tries_as(struct client *c, unsigned user, bool right)
{
    char plain[40], line[100];
    int length = snprintf(plain, sizeof(plain), "%cu%u%cpenci%c", 0, user, 0,
                          right ? 'l' : 'm');
    struct text coded = kit_coded(text_of(plain, (size_t)length));
    snprintf(line, sizeof(line), "AUTH PLAIN %.*s\r\n", TEXT_ARGS(coded));
    return tries(c, line);
}

static bool
heard(const struct client *c, const char *reply)
{
    return strncmp(c->said, reply, strlen(reply)) == 0;
}

static void
good(void)
{
    struct client c;
    FIXTURE(world, w, world_start, world_end, 10);
    arrive(&c, &w, 1);
    ok_named(tries(&c, GOOD) && heard(&c, "235"), "at once");
    is_number(c.resumed, 0, "and nothing later");
    leave(&c);
    ok(c.login == NULL);
}

TEST(late_answers)
{
    static const int64_t delays[] = {1000, 2000, 4000, 8000, 10000, 10000};
    FIXTURE(world, w, world_start, world_end, 10);
    FIXTURE(client, c, arrive, leave, &w, 1);
    for (unsigned i = 0; i < sizeof(delays) / sizeof(delays[0]); i++) {
        struct text more = TEXT("NOOP\r\n");
        ok(!tries(&c, WRONG));
        ok_named(server_step(&c.server, &more) == SERVER_WAIT && more.length == 6,
                 "it is not read meanwhile");
        is_number(count(&w, "refused=535 5.7.8"), i + 1, "logged at once");
        sim_loop_advance(w.loop, delays[i] - 1);
        is_string(c.said, "", "not yet");
        sim_loop_advance(w.loop, 1);
        ok(heard(&c, "535 5.7.8"));
        is_number(c.resumed, i + 1, "told once");
        ok_named(server_step(&c.server, &more) == SERVER_GO_ON, "then it goes on");
        buffer_clear(&w.out);
    }
    ok_named(tries(&c, GOOD) && heard(&c, "235"), "who knows it is let in");
}

TEST(locked_out)
{
    struct client c, other, same;
    FIXTURE(world, w, world_start, world_end, 3);
    arrive(&c, &w, 1);
    for (int i = 0; i < 2; i++) {
        ok(!tries(&c, WRONG));
        sim_loop_advance(w.loop, 10000);
        ok(heard(&c, "535"));
    }
    ok(!tries(&c, WRONG));
    ok_named(count(&w, "warning: auth=locked, client=[192.0.2.9], failures=3, "
                       "seconds=300 (") == 1,
             "the lock-out has its line");
    arrive(&same, &w, 1);
    ok_named(tries(&same, GOOD) && heard(&same, "454 4.7.0"),
             "at once for all of that address, even with the right password");
    arrive(&other, &w, 2);
    sim_loop_advance(w.loop, AUTH_ATTEMPT_PACE_MS);
    ok_named(tries(&other, GOOD) && heard(&other, "235"), "for no other");
    sim_loop_advance(w.loop, 10000);
    ok_named(heard(&c, "421 4.7.0") && c.server.stage == SERVER_CLOSED, "and it is cut off");
    sim_loop_advance(w.loop, LOCKOUT_FIRST_MS - 10001 - AUTH_ATTEMPT_PACE_MS);
    ok(tries(&same, GOOD) && heard(&same, "454 4.7.0"));
    sim_loop_advance(w.loop, 2);
    ok_named(tries(&same, GOOD) && heard(&same, "235"), "until it is over");
    leave(&c);
    leave(&same);
    leave(&other);
}

TEST(pace)
{
    enum { CROWD = AUTH_ATTEMPT_WAITING_MAX + 3 };
    static struct client c[CROWD];
    unsigned in = 0, turned_away = 0;
    FIXTURE(world, w, world_start, world_end, 10);
    for (unsigned char i = 0; i < CROWD; i++) {
        arrive(&c[i], &w, i);
        bool at_once = tries_as(&c[i], i, true);
        in += at_once && heard(&c[i], "235");
        turned_away += at_once && heard(&c[i], "454 4.7.0 too many concurrent logins, ");
    }
    is_number(in, 1, "one is checked at once");
    is_number(turned_away, 2, "the row has an end");
    sim_loop_advance(w.loop, AUTH_ATTEMPT_PACE_MS - 1);
    is_number(c[1].resumed, 0, "the next not before its time");
    sim_loop_advance(w.loop, 1);
    ok(c[1].resumed == 1 && heard(&c[1], "235") && c[2].resumed == 0);
    auth_attempt_free(&c[2].login); /* it has hung up */
    FIXTURE(client, scram, arrive, leave, &w, 200);
    ok_named(tries(&scram, "AUTH SCRAM-SHA-256\r\n") && heard(&scram, "334"),
             "what costs nothing need not wait");
    sim_loop_advance(w.loop, AUTH_ATTEMPT_PACE_MS);
    is_number(c[3].resumed, 1, "a place in the row is free");
    sim_loop_advance(w.loop, (int64_t)AUTH_ATTEMPT_PACE_MS * AUTH_ATTEMPT_WAITING_MAX);
    for (unsigned i = 3; i <= AUTH_ATTEMPT_WAITING_MAX; i++)
        if (!heard(&c[i], "235"))
            ok_named(false, "everybody has been checked");
    ok_named(tries_as(&c[CROWD - 1], 200, true) && heard(&c[CROWD - 1], "235"),
             "who was turned away may come again");
    is_number(c[2].resumed, 0, "who has gone is not called");
    for (unsigned i = 0; i < CROWD; i++)
        leave(&c[i]);
}

/* Many sessions of one client ask together, again and again: it has no more than its
 * failures, and no more than its places. */
TEST(guessing)
{
    enum { CROWD = 30, ROUNDS = 5 };
    static struct client c[CROWD];
    unsigned places = 0, turned_away = 0, locked = 0;
    FIXTURE(world, w, world_start, world_end, 10);
    for (unsigned i = 0; i < CROWD; i++)
        arrive(&c[i], &w, 7);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < CROWD; i++) {
            if (c[i].server.stage == SERVER_CLOSED)
                continue;
            bool at_once = tries(&c[i], WRONG);
            places += !at_once && round == 0;
            turned_away += at_once && heard(&c[i], "454 4.7.0 too many concurrent logins "
                                                   "from your address");
            locked += at_once && heard(&c[i], "454 4.7.0 too many failed");
        }
        sim_loop_advance(w.loop, 60000);
    }
    is_number(places, 1 + AUTH_ATTEMPT_WAITING_EACH, "one is checked, four wait");
    ok_named(turned_away >= 2 * (CROWD - 1 - AUTH_ATTEMPT_WAITING_EACH), "the others do not");
    is_number(count(&w, "refused=535 5.7.8"), 10, "ten guesses");
    ok_named(locked >= CROWD, "the others are not even looked at");
    for (unsigned i = 0; i < CROWD; i++)
        leave(&c[i]);
}

/* Input that is no message of the mechanism takes no place and no pace, and is a
 * failure. */
static void
malformed(void)
{
    static const char *const bad[] = {"AUTH PLAIN Z2FyYmFnZQ==\r\n",
                                      "AUTH PLAIN !!!!\r\n", "AUTH LOGIN =\r\n"};
    static struct client c[2 * AUTH_ATTEMPT_WAITING_MAX];
    struct client good;
    FIXTURE(world, w, world_start, world_end, 10);
    for (unsigned i = 0; i < 2 * AUTH_ATTEMPT_WAITING_MAX; i++) {
        arrive(&c[i], &w, 7);
        ok(tries(&c[i], bad[i % 3]));
        const char *want = i < 9 ? "501 5.5.2" : i == 9 ? "421 4.7.0" : "454 4.7.0";
        if (!heard(&c[i], want))
            ok_named(false, want);
    }
    arrive(&good, &w, 1);
    ok_named(tries(&good, GOOD) && heard(&good, "235"),
             "the row is free for others, at once");
    is_number(count(&w, "auth=locked, client=[192.0.2.9], failures=10"), 1,
              "ten lock out");
    is_number(count(&w, "refused=501 5.5.2"), 9, "each has its line");
    ok_named(c[0].server.errors == 1, "and is an error");
    leave(&good);
    for (unsigned i = 0; i < 2 * AUTH_ATTEMPT_WAITING_MAX; i++)
        leave(&c[i]);
}

/* Whom the gate has answered, in turn. */
static unsigned
first_answered(struct world *w, struct client *c, unsigned count, bool *answered)
{
    for (int i = 0; i < 1000; i++) {
        for (unsigned j = 0; j < count; j++)
            if (!answered[j] && c[j].resumed > 0) {
                answered[j] = true;
                return j;
            }
        sim_loop_advance(w->loop, AUTH_ATTEMPT_PACE_MS);
    }
    return count;
}

static void
turns(void)
{
    enum { A = AUTH_ATTEMPT_WAITING_EACH, COUNT = A + 2 };
    static const unsigned order[COUNT] = {0, A, A + 1, 1, 2, 3};
    struct client c[COUNT], known;
    bool answered[COUNT] = {false};
    FIXTURE(world, w, world_start, world_end, 10);
    for (unsigned char i = A - 1; i < COUNT; i++) { /* else the first to log in leads */
        arrive(&known, &w, i);
        (void)tries_as(&known, 100 + i, true);
        sim_loop_advance(w.loop, AUTH_ATTEMPT_PACE_MS - (i == COUNT - 1));
        leave(&known);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        arrive(&c[i], &w, (unsigned char)(i < A ? A - 1 : i));
        ok(!tries_as(&c[i], i, true));
    }
    for (unsigned i = 0; i < COUNT; i++)
        is_number(first_answered(&w, c, COUNT, answered), order[i], "clients take turns");
    for (unsigned i = 0; i < COUNT; i++)
        leave(&c[i]);
}

/* 50 clients and more that fail or are new cannot keep out one that has logged in; nor
 * can clients that have failed keep out a new one. */
static void
claims(void)
{
    enum { CROWD = 2 * AUTH_ATTEMPT_WAITING_MAX };
    static struct client c[CROWD], more[CROWD];
    struct client known, stranger, again;
    unsigned evicted = 0;
    FIXTURE(world, w, world_start, world_end, 10);
    arrive(&known, &w, 250);
    ok(tries_as(&known, 0, true));
    server_forget_user(&known.server);
    for (unsigned i = 0; i < CROWD; i++) {
        arrive(&c[i], &w, (unsigned char)i);
        (void)tries(&c[i], WRONG);
    }
    known.resumed = 0;
    ok_named(!tries_as(&known, 1, true), "it gets a place in a row that is full of new ones");
    sim_loop_advance(w.loop, AUTH_ATTEMPT_PACE_MS);
    ok_named(known.resumed == 1 && heard(&known, "235"), "and the next turn");
    for (unsigned i = 0; i < CROWD; i++)
        evicted += c[i].resumed == 1 && heard(&c[i], "454 4.7.0 too many concurrent logins");
    is_number(evicted, 1, "the last of the others is told to come later");
    arrive(&again, &w, 249);
    ok_named(tries_as(&again, 0, true) && heard(&again, "235"),
             "a password that was right before is not checked");
    leave(&again);
    sim_loop_advance(w.loop, 60000);
    for (unsigned i = 0; i < CROWD; i++) { /* those that were heard have failed now */
        arrive(&more[i], &w, (unsigned char)(i % (AUTH_ATTEMPT_WAITING_MAX - 1)));
        (void)tries(&more[i], WRONG);
    }
    arrive(&stranger, &w, 251);
    ok_named(!tries_as(&stranger, 2, true), "a new one gets a place among those that failed");
    sim_loop_advance(w.loop, AUTH_ATTEMPT_PACE_MS);
    ok_named(stranger.resumed == 1 && heard(&stranger, "235"), "and the next turn");
    for (unsigned i = 0; i < CROWD; i++) {
        leave(&c[i]);
        leave(&more[i]);
    }
    leave(&known);
    leave(&stranger);
}

/* Many users may be behind an address that is known. */
static void
office(void)
{
    enum { CROWD = AUTH_ATTEMPT_WAITING_EACH_GOOD + 2 };
    static struct client c[CROWD];
    unsigned waiting = 0;
    FIXTURE(world, w, world_start, world_end, 10);
    for (unsigned i = 0; i < CROWD; i++) {
        arrive(&c[i], &w, 1);
        waiting += !tries_as(&c[i], i, true);
    }
    is_number(waiting, AUTH_ATTEMPT_WAITING_EACH_GOOD, "it has more places");
    for (unsigned i = 0; i < CROWD; i++)
        leave(&c[i]);
}

#define DEAR       "AUTH PLAIN AGRlYXIAcGVuY2ls\r\n"
#define DEAR_WRONG "AUTH PLAIN AGRlYXIAcGVuY2lt\r\n"

/* Users whose check takes slices, others behind them. */
static void
slices(void)
{
    enum { TAKES_MS = (VERIFIER_ITERATIONS / VERIFIER_SLICE - 1) * AUTH_ATTEMPT_SLICE_MS };
    struct client slow, next, scram;
    FIXTURE(world, w, world_start, world_end, 10);
    arrive(&slow, &w, 1);
    arrive(&next, &w, 2);
    arrive(&scram, &w, 3);
    ok(!tries(&slow, DEAR_WRONG) && !tries(&next, GOOD));
    ok_named(tries(&scram, "AUTH SCRAM-SHA-256\r\n") && heard(&scram, "334"),
             "what costs nothing need not wait");
    sim_loop_advance(w.loop, TAKES_MS - 1);
    ok_named(count(&w, "refused=535") == 0 && next.resumed == 0, "one after the other");
    sim_loop_advance(w.loop, 1);
    is_number(count(&w, "refused=535 5.7.8"), 1, "logged as soon as it is known");
    sim_loop_advance(w.loop, 2 * AUTH_ATTEMPT_PACE_MS);
    ok_named(next.resumed == 1 && heard(&next, "235"), "then the next");
    sim_loop_advance(w.loop, 1000);
    ok(heard(&slow, "535") && slow.resumed == 1);
    ok(!tries(&slow, DEAR));
    sim_loop_advance(w.loop, TAKES_MS);
    ok_named(heard(&slow, "235") && slow.resumed == 2, "in slices");
    leave(&slow);
    arrive(&slow, &w, 1);
    sim_loop_advance(w.loop, AUTH_ATTEMPT_PACE_MS);
    ok_named(tries(&slow, DEAR) && heard(&slow, "235"), "and at once the next time");
    leave(&slow);
    leave(&next);
    leave(&scram);
}

/* Leaving before the check is over is no way to guess for nothing. */
static void
leaving_early(void)
{
    struct client c, next;
    FIXTURE(world, w, world_start, world_end, 3);
    for (unsigned i = 0; i < 3; i++) {
        arrive(&c, &w, 1);
        ok(!tries(&c, DEAR_WRONG));
        arrive(&next, &w, 2);
        ok(!tries_as(&next, i, true));
        sim_loop_advance(w.loop, AUTH_ATTEMPT_SLICE_MS);
        leave(&c);
        sim_loop_advance(w.loop, 2 * AUTH_ATTEMPT_PACE_MS);
        ok_named(heard(&next, "235"), "the next does not wait for it");
        leave(&next);
    }
    is_number(count(&w, "auth=locked"), 1, "these are failures");
    arrive(&c, &w, 1);
    ok(tries(&c, GOOD) && heard(&c, "454 4.7.0"));
    leave(&c);
}

/* A session may end in any of these states. */
static void
leaving(void)
{
    struct client a, b;
    FIXTURE(world, w, world_start, world_end, 1);
    arrive(&a, &w, 1);
    arrive(&b, &w, 2);
    ok(!tries(&a, WRONG) && !tries(&b, WRONG));
    leave(&b);
    leave(&a);
    sim_loop_advance(w.loop, 20000);
    is_number(a.resumed + b.resumed, 0, "nobody is called");
}

int
main(void)
{
    size_t length = 0;
    struct verifier dear;
    struct buffer out;
    buffer_init(&out, VERIFIER_WRITTEN_MAX);
    verifier_make(&dear, TEXT("pencil"), TEXT("saltsalt"), VERIFIER_ITERATIONS);
    ok(verifier_write(&dear, &out));
    length = (size_t)snprintf(content, sizeof(content),
                              "user:" KIT_KEYS "\ndear:%.*s\n",
                              TEXT_ARGS(buffer_text(&out)));
    for (unsigned i = 0; i < 256; i++)
        length += (size_t)snprintf(content + length, sizeof(content) - length,
                                   "u%u:" KIT_KEYS "\n", i);
    buffer_free(&out);
    good();
    tap_tests("");
    slices();
    leaving_early();
    malformed();
    turns();
    claims();
    office();
    leaving();
    users_free(&users);
    return done();
}
