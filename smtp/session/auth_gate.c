/* Paces password checks, delays the replies to failures, locks clients out.
 *
 * A check costs milliseconds, so a flood of logins could stop the daemon. One check
 * runs at a time, in slices, with a pause after each. Attempts wait in rounds: a client
 * has one turn in each, and those that have logged in before come first. */
#include "smtp/session/auth_gate.h"

#include "base/event/event.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "smtp/reply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct auth_gate {
    struct loop *loop;
    struct event_hub *events;
    struct lockout *lockout;
    struct auth_attempt *waiting; /* in order of arrival */
    struct auth_attempt *current; /* its check is not finished */
    size_t waiting_count;
    struct auth_attempt *asked; /* those about which another server is asked */
    struct dovecot_auth *dovecot;
    int64_t round;   /* of turns among the waiting clients */
    int64_t next_ms; /* no check before this monotonic time */
    struct loop_timer pace;
};

struct auth_attempt {
    struct auth_gate *gate;
    struct server *server;
    struct lockout_key key;
    struct dovecot_client client;
    struct dovecot_request *request; /* NULL: not at another server */
    bool is_asked;                   /* in the list of those */
    struct loop_timer late;
    bool waits;                    /* in the queue of the gate */
    int64_t round;                 /* in which its turn comes */
    const struct refusal *refusal; /* the delayed reply to a failure */
    void (*resume)(void *context);
    void *context;
    struct auth_attempt *prev, *next;
};

static const struct refusal too_many = {454, "4.7.0",
                                        "too many concurrent logins, try again later"};
static const struct refusal too_many_own = {
    454, "4.7.0", "too many concurrent logins from your address, try again later"};
static const struct refusal unavailable = {454, "4.7.0",
                                           "temporary authentication failure"};
static const struct refusal locked = {
    454, "4.7.0", "too many failed logins from your address, try again later"};
static const struct refusal locked_now = {
    421, "4.7.0", "too many failed logins from your address, closing"};

/* --- The queue -------------------------------------------------------------------- */

static void
leave_row(struct auth_attempt *l)
{
    if (!l->waits)
        return;
    DL_DELETE(l->gate->waiting, l);
    l->gate->waiting_count--;
    l->waits = false;
}

static enum lockout_standing
standing(const struct auth_attempt *l)
{
    return lockout_standing(l->gate->lockout, &l->key,
                            loop_monotonic_ms(l->gate->loop));
}

/* Rank alone; equal ranks keep their order of arrival. */
static bool
is_before(const struct auth_attempt *a, const struct auth_attempt *b)
{
    enum lockout_standing one = standing(a), other = standing(b);
    return one < other || (one == other && a->round < b->round);
}

/* NULL: no attempt waits. */
static struct auth_attempt *
first_in_row(const struct auth_gate *gate)
{
    struct auth_attempt *l, *first = gate->waiting;
    DL_FOREACH (gate->waiting, l)
        if (is_before(l, first))
            first = l;
    return first;
}

static struct auth_attempt *
last_in_row(const struct auth_gate *gate)
{
    struct auth_attempt *l, *last = gate->waiting;
    DL_FOREACH (gate->waiting, l)
        if (!is_before(l, last))
            last = l;
    return last;
}

/* The number of waiting attempts of the same client; round gets its next turn. A
 * client's second attempt waits for the next round, so a crowd of connections gives it
 * no more turns. */
static int
count_own(const struct auth_attempt *l, int64_t *round)
{
    const struct auth_attempt *other;
    int own = 0;
    /* The current round, not an earlier one: unused turns are not saved up. */
    *round = l->gate->round;
    DL_FOREACH (l->gate->waiting, other)
        if (memcmp(&other->key, &l->key, sizeof(l->key)) == 0) {
            own++;
            *round = other->round >= *round ? other->round + 1 : *round;
        }
    return own;
}

/* The failure was counted when it happened: a client that goes away during the delay
 * gains nothing. */
static void
tell_late(void *context)
{
    struct auth_attempt *l = context;
    const struct refusal *refusal = l->refusal;
    l->refusal = NULL;
    if (refusal != NULL)
        server_login_refused(l->server, refusal);
    else
        server_login_answer(l->server);
    l->resume(l->context);
}

/* Posted, because the current turn of the loop is in another session. */
static void
give_way(struct auth_attempt *l)
{
    leave_row(l);
    l->refusal = &too_many;
    loop_timer_start(l->gate->loop, &l->late, 0, tell_late, l);
}

/* NULL: the attempt waits. A full queue keeps the better claim: a client that has
 * logged in before displaces a suspect. */
static const struct refusal *
join_row(struct auth_attempt *l)
{
    struct auth_gate *gate = l->gate;
    int each = standing(l) == LOCKOUT_GOOD ? AUTH_ATTEMPT_WAITING_EACH_GOOD
                                           : AUTH_ATTEMPT_WAITING_EACH;
    if (count_own(l, &l->round) >= each)
        return &too_many_own;
    if (gate->waiting_count == AUTH_ATTEMPT_WAITING_MAX) {
        struct auth_attempt *last = last_in_row(gate);
        if (!is_before(l, last))
            return &too_many;
        give_way(last);
    }
    DL_APPEND(gate->waiting, l);
    gate->waiting_count++;
    l->waits = true;
    return NULL;
}

/* --- Checks ----------------------------------------------------------------------- */

static void
tell_lockout(const struct auth_attempt *l, const struct lockout_verdict *verdict)
{
    struct event_client client = {.name = l->server->client, .uid = l->server->uid};
    event_tell(l->gate->events,
               &(struct event){.kind = EVENT_LOCKED,
                               .client = &client,
                               .attempt = (uint32_t)verdict->failures,
                               .next_ms = verdict->locked_ms,
                               .text = TEXT("too many failed logins")});
}

/* The delay of the reply in ms. */
static int64_t
count_failure(struct auth_attempt *l)
{
    struct auth_gate *gate = l->gate;
    struct lockout_verdict verdict =
        lockout_failed(gate->lockout, &l->key, loop_monotonic_ms(gate->loop));
    l->refusal = verdict.locked_ms > 0 ? &locked_now : NULL;
    if (l->refusal != NULL)
        tell_lockout(l, &verdict);
    return verdict.delay_ms;
}

/* True: the reply is sent. Only a wrong password is answered late. A malformed message
 * is no guess, but it counts. */
static bool
conclude(struct auth_attempt *l, enum sasl_result result)
{
    struct auth_gate *gate = l->gate;
    int64_t delay_ms = 0;
    if (result == SASL_FAILED || result == SASL_MALFORMED)
        delay_ms = count_failure(l);
    else if (result == SASL_DONE)
        lockout_passed(gate->lockout, &l->key, loop_monotonic_ms(gate->loop));
    if (result == SASL_FAILED)
        loop_timer_start(gate->loop, &l->late, delay_ms, tell_late, l);
    else if (l->refusal != NULL)
        server_login_refused(l->server, l->refusal);
    else
        server_login_answer(l->server);
    return result != SASL_FAILED;
}

/* True: the reply is sent. */
static bool
auth_attempt_check(struct auth_attempt *l)
{
    struct auth_gate *gate = l->gate;
    enum sasl_result result = server_login_work(l->server);
    bool over = result != SASL_UNFINISHED;
    gate->current = over ? NULL : l;
    gate->next_ms = loop_monotonic_ms(gate->loop) +
                    (over ? AUTH_ATTEMPT_PACE_MS : AUTH_ATTEMPT_SLICE_MS);
    return over && conclude(l, result);
}

static bool
refuse_locked(struct auth_attempt *l)
{
    if (lockout_left_ms(l->gate->lockout, &l->key, loop_monotonic_ms(l->gate->loop)) ==
        0)
        return false;
    server_login_refused(l->server, &locked);
    return true;
}

/* The timer runs while an attempt waits. An idle gate has no timer. */
static void
set_pace(struct auth_gate *gate)
{
    int64_t left_ms = gate->next_ms - loop_monotonic_ms(gate->loop);
    if (gate->current != NULL || gate->waiting != NULL)
        loop_timer_start(gate->loop, &gate->pace, left_ms > 0 ? left_ms : 0,
                         gate->pace.fire, gate);
}

static void
next_check(void *context)
{
    struct auth_gate *gate = context;
    struct auth_attempt *l = gate->current != NULL ? gate->current : first_in_row(gate);
    if (l == NULL)
        return;
    bool answered = false;
    if (l == gate->current) {
        answered = auth_attempt_check(l);
    } else {
        leave_row(l);
        gate->round = l->round;
        /* Other attempts of the client may have failed in the meantime. */
        answered = refuse_locked(l) || auth_attempt_check(l);
    }
    set_pace(gate);
    if (answered)
        l->resume(l->context);
}

/* --- Another server --------------------------------------------------------------- */

static void
auth_attempt_leave_asked(struct auth_attempt *l)
{
    if (l->is_asked)
        DL_DELETE(l->gate->asked, l);
    l->is_asked = false;
    dovecot_request_free(&l->request);
}

/* A dovecot_answered(). */
static void
auth_attempt_answered(void *context, enum dovecot_answer answer, struct text text)
{
    static const enum sasl_result results[] = {[DOVECOT_ANSWER_OK] = SASL_DONE,
                                               [DOVECOT_ANSWER_CONTINUE] =
                                                   SASL_CHALLENGE,
                                               [DOVECOT_ANSWER_FAILED] = SASL_FAILED};
    struct auth_attempt *l = context;
    bool answered = true;
    if (answer == DOVECOT_ANSWER_TEMPORARY) {
        auth_attempt_leave_asked(l);
        server_login_refused(l->server, &unavailable);
    } else {
        enum sasl_result result = server_login_decide(l->server, results[answer], text);
        if (result != SASL_CHALLENGE)
            auth_attempt_leave_asked(l);
        answered = conclude(l, result);
    }
    if (answered)
        l->resume(l->context);
}

static bool
auth_attempt_has_its_share(const struct auth_attempt *l)
{
    const struct auth_attempt *other;
    int own = 0, each = standing(l) == LOCKOUT_GOOD ? AUTH_ATTEMPT_WAITING_EACH_GOOD
                                                    : AUTH_ATTEMPT_WAITING_EACH;
    DL_FOREACH (l->gate->asked, other)
        own += memcmp(&other->key, &l->key, sizeof(l->key)) == 0;
    return own >= each;
}

/* NULL: the answer comes later. */
static const struct refusal *
auth_attempt_ask_server(struct auth_attempt *l)
{
    enum sasl_mechanism mechanism;
    struct text response = server_login_response(l->server, &mechanism);
    if (l->request != NULL) {
        if (dovecot_request_go_on(l->request, response))
            return NULL;
        auth_attempt_leave_asked(l);
        return &unavailable;
    }
    if (auth_attempt_has_its_share(l))
        return &too_many_own;
    l->client.secured = l->server->secure;
    l->request = dovecot_request_new(l->gate->dovecot, mechanism, &l->client, response,
                                     auth_attempt_answered, l);
    if (l->request == NULL)
        return &unavailable;
    DL_APPEND(l->gate->asked, l);
    l->is_asked = true;
    return NULL;
}

/* --- The next check --------------------------------------------------------------- */

static bool
auth_attempt_is_busy(const struct auth_gate *gate)
{
    return gate->current != NULL || gate->waiting != NULL ||
           loop_monotonic_ms(gate->loop) < gate->next_ms;
}

static enum sasl_result
auth_attempt_read_line(struct auth_attempt *l)
{
    char nonce[SASL_NONCE_SIZE];
    uint64_t random[3];
    for (size_t i = 0; i < 3; i++)
        random[i] = loop_random(l->gate->loop);
    sasl_nonce(random, nonce);
    return server_login_step(l->server, nonce);
}

/* --- Gate and logins ----------------------------------------------------------- */

struct auth_gate *
auth_gate_new(struct loop *loop, struct event_hub *events, struct lockout *lockout)
{
    struct auth_gate *gate = memory_new(sizeof(*gate));
    gate->loop = loop;
    gate->events = events;
    gate->lockout = lockout;
    gate->pace.fire = next_check;
    return gate;
}

void
auth_gate_free(struct auth_gate **gate)
{
    struct auth_gate *g = *gate;
    *gate = NULL;
    if (g == NULL)
        return;
    /* session_host_stop() has ended the sessions, which own the attempts. */
    assert(g->waiting == NULL && g->current == NULL && g->asked == NULL);
    loop_timer_stop(g->loop, &g->pace);
    loop_release(g->loop, free, g);
}

void
auth_gate_ask(struct auth_gate *gate, struct dovecot_auth *dovecot)
{
    gate->dovecot = dovecot;
}

struct auth_attempt *
auth_attempt_new(struct auth_gate *gate, struct server *server,
                 const struct lockout_key *key, const struct dovecot_client *client,
                 void (*resume)(void *context), void *context)
{
    struct auth_attempt *l = memory_new(sizeof(*l));
    l->gate = gate;
    l->server = server;
    l->key = *key;
    l->client = *client;
    l->resume = resume;
    l->context = context;
    return l;
}

/* A client that hangs up during its check would otherwise have had a free guess. */
void
auth_attempt_free(struct auth_attempt **login)
{
    struct auth_attempt *l = *login;
    *login = NULL;
    if (l == NULL)
        return;
    struct auth_gate *gate = l->gate;
    leave_row(l);
    if (gate->current == l || l->is_asked) {
        gate->current = gate->current == l ? NULL : gate->current;
        (void)count_failure(l);
    }
    auth_attempt_leave_asked(l);
    loop_timer_stop(gate->loop, &l->late);
    loop_release(gate->loop, free, l);
}

/* A locked-out client gets its refusal before anything is checked, the right password
 * included. A malformed line takes no place and no pace, because it costs no check. */
bool
auth_attempt_ask(struct auth_attempt *l)
{
    struct auth_gate *gate = l->gate;
    assert(!l->waits && gate->current != l);
    if (refuse_locked(l))
        return true;
    enum sasl_result result = auth_attempt_read_line(l);
    if (result != SASL_UNFINISHED) {
        auth_attempt_leave_asked(l); /* the client has cancelled it */
        return conclude(l, result);
    }
    const struct refusal *refusal = NULL;
    bool answered = false;
    if (server_login_is_remote(l->server))
        refusal = auth_attempt_ask_server(l);
    else if (auth_attempt_is_busy(gate))
        refusal = join_row(l);
    else
        answered = auth_attempt_check(l);
    if (refusal != NULL)
        server_login_refused(l->server, refusal);
    set_pace(gate);
    return answered || refusal != NULL;
}
