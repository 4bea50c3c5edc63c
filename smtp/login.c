/* Paces password checks, delays the answers to failures, locks out. */
#include "smtp/login.h"

#include "base/log.h"
#include "base/loop.h"
#include "base/memory.h"
#include "smtp/reply.h"

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

struct login_gate {
    struct loop *loop;
    struct log *log;
    struct lockout *lockout;
    struct login *waiting; /* first come, first checked */
    size_t waiting_count;
    struct login *checking; /* its check is not finished */
    int64_t next_ms;        /* no check before that, monotonic */
    struct loop_timer pace;
};

struct login {
    struct login_gate *gate;
    struct server *server;
    struct lockout_key key;
    struct loop_timer late;
    bool waits;  /* in the gate's row */
    bool locked; /* by its last failure */
    void (*resume)(void *context);
    void *context;
    struct login *prev, *next;
};

static const struct refusal too_many = {454, "4.7.0",
                                        "too many logins at a time, try later"};
static const struct refusal locked = {
    454, "4.7.0", "too many failed logins from your address, try later"};
static const struct refusal locked_now = {
    421, "4.7.0", "too many failed logins from your address, closing"};

struct login_gate *
login_gate_new(struct loop *loop, struct log *log)
{
    struct login_gate *gate = memory_new(sizeof(*gate));
    gate->loop = loop;
    gate->log = log;
    gate->lockout = lockout_new();
    return gate;
}

void
login_gate_free(struct login_gate **gate)
{
    struct login_gate *g = *gate;
    *gate = NULL;
    if (g == NULL)
        return;
    assert(g->waiting == NULL);
    loop_timer_stop(g->loop, &g->pace);
    lockout_free(&g->lockout);
    loop_release(g->loop, free, g);
}

void
login_gate_set_limit(struct login_gate *gate, int failure_limit)
{
    lockout_set_limit(gate->lockout, failure_limit);
}

bool
login_gate_is_locked(const struct login_gate *gate, const struct lockout_key *key)
{
    return lockout_left_ms(gate->lockout, key, loop_monotonic_ms(gate->loop)) > 0;
}

struct login *
login_new(struct login_gate *gate, struct server *server, const struct lockout_key *key,
          void (*resume)(void *context), void *context)
{
    struct login *l = memory_new(sizeof(*l));
    l->gate = gate;
    l->server = server;
    l->key = *key;
    l->resume = resume;
    l->context = context;
    return l;
}

static void
leave_row(struct login *l)
{
    if (!l->waits)
        return;
    DL_DELETE(l->gate->waiting, l);
    l->gate->waiting_count--;
    l->waits = false;
}

static void
tell_late(void *context)
{
    struct login *l = context;
    if (l->locked)
        server_login_refused(l->server, &locked_now);
    else
        server_login_answer(l->server);
    l->resume(l->context);
}

static void
log_lockout(const struct login *l, const struct lockout_verdict *verdict)
{
    struct log_line line;
    log_start(&line, l->gate->log, LOG_LEVEL_WARNING, "smtpd", NULL);
    log_field_format(&line, "auth", "locked");
    log_field(&line, "client", text_from(l->server->client));
    log_field_number(&line, "failures", verdict->failures);
    log_field_number(&line, "seconds", verdict->locked_ms / 1000);
    log_remark(&line, TEXT("too many failed logins"));
    log_end(&line);
}

static struct lockout_verdict
count_failure(struct login *l)
{
    struct lockout_verdict verdict =
        lockout_failed(l->gate->lockout, &l->key, loop_monotonic_ms(l->gate->loop));
    l->locked = verdict.locked_ms > 0;
    if (l->locked)
        log_lockout(l, &verdict);
    return verdict;
}

static void
end_check(struct login *l)
{
    struct login_gate *gate = l->gate;
    if (gate->checking != l)
        return;
    gate->checking = NULL;
    gate->next_ms = loop_monotonic_ms(gate->loop) + LOGIN_PACE_MS;
}

/* True: answered. */
static bool
heard(struct login *l, enum sasl_result result)
{
    end_check(l);
    if (result != SASL_FAILED) {
        server_login_answer(l->server);
        return true;
    }
    loop_timer_start(l->gate->loop, &l->late, count_failure(l).delay_ms, tell_late, l);
    return false;
}

static void
work(void *context)
{
    struct login *l = context;
    enum sasl_result result = server_login_work(l->server);
    if (result == SASL_UNFINISHED)
        loop_timer_start(l->gate->loop, &l->late, LOGIN_SLICE_MS, work, l);
    else if (heard(l, result))
        l->resume(l->context);
}

/* True: answered. */
static bool
check(struct login *l)
{
    char nonce[SASL_NONCE_SIZE];
    uint64_t random[3];
    for (size_t i = 0; i < 3; i++)
        random[i] = loop_random(l->gate->loop);
    sasl_nonce(random, nonce);
    enum sasl_result result = server_login_step(l->server, nonce);
    if (result != SASL_UNFINISHED)
        return heard(l, result);
    l->gate->checking = l;
    loop_timer_start(l->gate->loop, &l->late, LOGIN_SLICE_MS, work, l);
    return false;
}

static bool
refuse_locked(struct login *l)
{
    if (!login_gate_is_locked(l->gate, &l->key))
        return false;
    server_login_refused(l->server, &locked);
    return true;
}

static void
next_check(void *context)
{
    struct login_gate *gate = context;
    struct login *l = gate->waiting;
    if (l == NULL)
        return;
    if (gate->checking != NULL) {
        loop_timer_start(gate->loop, &gate->pace, LOGIN_PACE_MS, next_check, gate);
        return;
    }
    leave_row(l);
    /* Meanwhile others of that client may have failed. */
    bool refused = refuse_locked(l);
    if (!refused)
        gate->next_ms = loop_monotonic_ms(gate->loop) + LOGIN_PACE_MS;
    if (gate->waiting != NULL)
        loop_timer_start(gate->loop, &gate->pace, refused ? 0 : LOGIN_PACE_MS,
                         next_check, gate);
    if (refused || check(l))
        l->resume(l->context);
}

static bool
is_busy(const struct login_gate *gate)
{
    return gate->waiting != NULL || gate->checking != NULL ||
           loop_monotonic_ms(gate->loop) < gate->next_ms;
}

static void
join_row(struct login *l)
{
    struct login_gate *gate = l->gate;
    if (gate->waiting == NULL)
        loop_timer_start(gate->loop, &gate->pace,
                         gate->next_ms - loop_monotonic_ms(gate->loop), next_check,
                         gate);
    DL_APPEND(gate->waiting, l);
    gate->waiting_count++;
    l->waits = true;
}

bool
login_ask(struct login *l)
{
    struct login_gate *gate = l->gate;
    assert(!l->waits);
    if (refuse_locked(l))
        return true;
    if (!server_login_costs(l->server))
        return check(l);
    if (!is_busy(gate)) {
        gate->next_ms = loop_monotonic_ms(gate->loop) + LOGIN_PACE_MS;
        return check(l);
    }
    if (gate->waiting_count == LOGIN_WAITING_MAX) {
        server_login_refused(l->server, &too_many);
        return true;
    }
    join_row(l);
    return false;
}

void
login_free(struct login **login)
{
    struct login *l = *login;
    *login = NULL;
    if (l == NULL)
        return;
    leave_row(l);
    if (l->gate->checking == l)
        (void)count_failure(l);
    end_check(l);
    loop_timer_stop(l->gate->loop, &l->late);
    loop_release(l->gate->loop, free, l);
}
