/* A group's bank in one of its slices: the slice that has it, and those that ask it. */
#include "queue/group/group_lead.h"

#include "base/breaker.h"
#include "base/disk/disk.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/net/net.h"
#include "queue/group/group_internal.h"
#include "queue/spool/slices.h"
#include "queue/spool/spool.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    LEAD_PATH_MAX = 2 * NET_PATH_MAX,
    LEAD_FILE_MAX = 64 * 1024 /* one line is read of it */
};

static const char lead_lock[] = "lock/bank";

enum lead_stage { LEAD_WAITING, LEAD_GREETING, LEAD_READY };

/* Another slice, or anybody who may open our socket. */
struct lead_visitor {
    struct lead_visitor *prev, *next;
    struct group_lead *lead;
    struct net_connection *connection;
};

struct group_lead {
    struct group_lead_setup setup;
    char spool[NET_PATH_MAX];
    int lock;       /* -1: another slice has the bank */
    unsigned place; /* the slice that has it, or had it */
    struct group_asker *asker;
    const struct group_ask *asks; /* the question under way, and its sites; 0: none */
    size_t asked;

    /* Ours. */
    struct bank *bank; /* NULL: another slice has it */
    struct net_listener *listener;
    struct lead_visitor *visitors;
    size_t visitor_count;
    struct loop_task
        answering; /* ourselves, in the next turn: ask() does not call back */

    /* That of another slice. */
    enum lead_stage stage;
    struct breaker breaker;
    struct loop_timer step;
    int64_t connect_ms; /* not before */
    struct net_connection *connection;
};

/* --- Frames ------------------------------------------------------------------------- */

static void
lead_send(struct net_connection *connection, const void *items, size_t size,
          size_t count)
{
    const struct group_frame frame = {GROUP_FRAME_FORM, count};
    net_send(connection, text_of(&frame, sizeof(frame)));
    net_send(connection, text_of(items, size * count));
}

/* The first frame of the input, whose items go to out. */
static enum progress
lead_read(struct net_connection *connection, void *out, size_t size, size_t *count)
{
    const uint64_t form = GROUP_FRAME_FORM;
    struct group_frame frame;
    struct text input = net_input(connection);
    size_t known = input.length < sizeof(form) ? input.length : sizeof(form);
    if (memcmp(input.at, &form, known) != 0)
        return PROGRESS_BAD;
    if (input.length < sizeof(frame))
        return PROGRESS_MORE;
    memcpy(&frame, input.at, sizeof(frame));
    if (frame.count > GROUP_ASK_MAX)
        return PROGRESS_BAD;
    *count = (size_t)frame.count;
    if (input.length < sizeof(frame) + *count * size)
        return PROGRESS_MORE;
    memcpy(out, input.at + sizeof(frame), *count * size);
    net_consume(connection, sizeof(frame) + *count * size);
    return PROGRESS_DONE;
}

/* --- The slice with the bank -------------------------------------------------------- */

bool
group_lead_grant(struct bank *bank, int64_t now_us, const struct group_ask *asks,
                 size_t count, struct bank_grant *out)
{
    for (size_t i = 0; i < count; i++)
        if (!bank_question_is_sound(&asks[i].question))
            return false;
    for (size_t i = 0; i < count; i++)
        out[i] = bank_ask(bank, text_of(asks[i].key, sizeof(asks[i].key)), now_us,
                          &asks[i].question);
    return true;
}

static bool
lead_grant(struct group_lead *l, const struct group_ask *asks, size_t count,
           struct bank_grant *out)
{
    return group_lead_grant(l->bank, loop_monotonic_ms(l->setup.loop) * 1000, asks,
                            count, out);
}

static void
lead_visitor_end(struct lead_visitor *v)
{
    struct group_lead *l = v->lead;
    net_abort(&v->connection);
    DL_DELETE(l->visitors, v);
    l->visitor_count--;
    loop_release(l->setup.loop, free, v);
}

/* False: it is to be cut off. */
static bool
lead_visitor_answer(struct lead_visitor *v)
{
    struct group_ask asks[GROUP_ASK_MAX];
    struct bank_grant grants[GROUP_ASK_MAX];
    enum progress progress;
    size_t count;
    while ((progress = lead_read(v->connection, asks, sizeof(*asks), &count)) ==
           PROGRESS_DONE) {
        if (!lead_grant(v->lead, asks, count, grants))
            return false;
        lead_send(v->connection, grants, sizeof(*grants), count);
        if (net_unsent(v->connection) > LEAD_UNREAD_MAX)
            return false;
    }
    return progress == PROGRESS_MORE;
}

static void
lead_visitor_on_event(void *context, enum net_event event)
{
    struct lead_visitor *v = context;
    bool good = event == NET_DRAINED || (event == NET_INPUT && lead_visitor_answer(v));
    if (!good)
        lead_visitor_end(v);
}

static void
lead_on_accept(void *context, struct net_connection *connection)
{
    struct group_lead *l = context;
    if (l->bank == NULL || l->visitor_count == LEAD_VISITORS_MAX) {
        net_abort(&connection);
        return;
    }
    struct lead_visitor *v = memory_new(sizeof(*v));
    v->lead = l;
    v->connection = connection;
    DL_APPEND(l->visitors, v);
    l->visitor_count++;
    net_attach(connection, lead_visitor_on_event, v);
}

/* --- Ends --------------------------------------------------------------------------- */

static void
lead_drop(struct group_lead *l)
{
    net_abort(&l->connection);
    loop_timer_stop(l->setup.loop, &l->step);
    loop_unpost(l->setup.loop, &l->answering);
    l->asked = 0;
    l->stage = LEAD_WAITING;
}

/* The lock is tried again soon, the other slice only when the breaker permits it: one that
 * hangs keeps its lock. */
static void
lead_wait(struct group_lead *l)
{
    int64_t left_ms = l->connect_ms - loop_monotonic_ms(l->setup.loop);
    loop_timer_start(l->setup.loop, &l->step,
                     left_ms < LEAD_TRY_MS ? left_ms : LEAD_TRY_MS, l->step.fire, l);
}

static void
lead_fail(void *bank, const char *why)
{
    struct group_lead *l = bank;
    char reason[REDIS_ERROR_MAX];
    snprintf(reason, sizeof(reason), "%s", why); /* it may be of the connection */
    lead_drop(l);
    l->connect_ms = loop_monotonic_ms(l->setup.loop) + breaker_failed(&l->breaker);
    lead_wait(l);
    if (l->asker != NULL)
        l->asker->connection.failed(l->asker->connection.context, reason);
}

static void
lead_get_ready(struct group_lead *l)
{
    l->stage = LEAD_READY;
    loop_timer_stop(l->setup.loop, &l->step);
    if (l->asker != NULL)
        l->asker->connection.ready(l->asker->connection.context);
}

/* --- Another slice ------------------------------------------------------------------ */

/* The first answer is the one to the greeting. False: the connection has ended. */
static bool
lead_take_answer(struct group_lead *l, const struct bank_grant *grants, size_t count)
{
    size_t asked = l->asked;
    bool is_greeting = l->stage == LEAD_GREETING && count == 0;
    if (!is_greeting && (count != asked || asked == 0)) {
        lead_fail(l, "an answer to nothing");
        return false;
    }
    for (size_t i = 0; i < count; i++)
        if (!bank_grant_is_sound(&grants[i])) {
            lead_fail(l, "an odd answer of the slice with the bank");
            return false;
        }
    l->asked = 0;
    if (is_greeting) {
        lead_get_ready(l);
    } else {
        breaker_good(&l->breaker);
        l->asker->granted(l->asker->connection.context, grants, NULL);
    }
    return l->connection != NULL;
}

static void
lead_take_answers(struct group_lead *l)
{
    struct bank_grant grants[GROUP_ASK_MAX];
    enum progress progress;
    size_t count;
    do
        progress = lead_read(l->connection, grants, sizeof(*grants), &count);
    while (progress == PROGRESS_DONE && lead_take_answer(l, grants, count));
    if (progress == PROGRESS_BAD)
        lead_fail(l, "the slice with the bank says what this version does not know");
}

static void
lead_on_event(void *context, enum net_event event)
{
    struct group_lead *l = context;
    switch (event) {
    case NET_CONNECTED:
        lead_send(l->connection, NULL, 0, 0);
        break;
    case NET_INPUT:
        lead_take_answers(l);
        break;
    case NET_FAILED:
        lead_fail(l, net_error(l->connection));
        break;
    case NET_ENDED:
    case NET_TIMED_OUT:
        lead_fail(l, "the slice with the bank has gone");
        break;
    case NET_DRAINED:
    case NET_SECURED:
        break;
    }
}

/* The path of the socket of a slice. */
static void
lead_path(const char *spool, unsigned slices, unsigned slice, char out[LEAD_PATH_MAX])
{
    char part[SLICES_SUFFIX_MAX];
    slices_part(slices, slice, part);
    snprintf(out, LEAD_PATH_MAX, "%.*s/lock/bank.sock.%s", NET_PATH_MAX, spool, part);
}

/* False: nobody of our number of slices. */
static bool
lead_find(struct group_lead *l)
{
    char part[SLICES_SUFFIX_MAX];
    struct buffer file;
    struct text line, rest;
    bool found = false;
    buffer_init(&file, LEAD_FILE_MAX);
    if (spool_read_path(l->setup.disk, lead_lock, &file) >= 0) {
        rest = buffer_text(&file);
        (void)!text_cut(&rest, '\n', &line);
        for (unsigned i = 0; i < l->setup.slices && !found; i++) {
            slices_part(l->setup.slices, i, part);
            found = text_equal(line, text_from(part));
            l->place = found ? i : l->place;
        }
    }
    buffer_free(&file);
    return found;
}

static void
lead_connect(struct group_lead *l)
{
    struct net_address address = {.family = NET_UNIX};
    char path[LEAD_PATH_MAX];
    if (!lead_find(l)) {
        lead_fail(l, "no slice has the bank yet");
        return;
    }
    lead_path(l->spool, l->setup.slices, l->place, path);
    bool fits = text_copy(address.path, sizeof(address.path), text_from(path));
    assert(fits); /* as ours did */
    l->stage = LEAD_GREETING;
    loop_timer_start(l->setup.loop, &l->step, l->setup.patience_ms, l->step.fire, l);
    l->connection = net_connect(l->setup.net, &address, NULL, lead_on_event, l);
}

/* --- The lock ----------------------------------------------------------------------- */

/* 0, or -errno: -EWOULDBLOCK if another slice has it. */
static int
lead_take_lock(struct group_lead *l)
{
    char part[SLICES_SUFFIX_MAX], line[SLICES_SUFFIX_MAX + 1];
    int lock = disk_lock(l->setup.disk, lead_lock, 0, 1);
    if (lock < 0)
        return lock;
    slices_part(l->setup.slices, l->setup.slice, part);
    snprintf(line, sizeof(line), "%s\n", part);
    /* In place: another file would not be the locked one. */
    int result = disk_write_at(l->setup.disk, lock, 0, text_from(line));
    if (result < 0) {
        disk_close_file(l->setup.disk, lock);
        return result;
    }
    l->lock = lock;
    l->place = l->setup.slice;
    l->bank = bank_new(); /* empty */
    log_say(l->setup.log, LOG_LEVEL_INFO, "group", NULL,
            "this slice has the bank of the %u slices", l->setup.slices);
    return 0;
}

static void
lead_on_step(void *context)
{
    struct group_lead *l = context;
    int result = 0;
    if (l->stage == LEAD_GREETING) {
        lead_fail(l, "no answer in time");
        return;
    }
    if (l->lock < 0)
        result = lead_take_lock(l);
    if (result == 0)
        lead_get_ready(l);
    else if (result != -EWOULDBLOCK)
        lead_fail(l, strerror(-result));
    else if (loop_monotonic_ms(l->setup.loop) < l->connect_ms)
        lead_wait(l);
    else
        lead_connect(l);
}

/* --- The bank that the group asks --------------------------------------------------- */

static void
lead_join(void *bank, struct group_asker *asker)
{
    struct group_lead *l = bank;
    assert(l->asker == NULL);
    l->asker = asker;
}

static void
lead_leave(void *bank, struct group_asker *asker)
{
    struct group_lead *l = bank;
    assert(l->asker == asker);
    l->asker = NULL;
    lead_drop(l);
}

static bool
lead_is_ready(const void *bank)
{
    const struct group_lead *l = bank;
    return l->stage == LEAD_READY;
}

static bool
lead_is_up(const void *bank)
{
    const struct group_lead *l = bank;
    return !breaker_is_open(&l->breaker);
}

static void
lead_on_answering(void *context)
{
    struct group_lead *l = context;
    struct bank_grant grants[GROUP_ASK_MAX];
    bool is_sound = lead_grant(l, l->asks, l->asked, grants);
    l->asked = 0;
    l->asker->granted(l->asker->connection.context, is_sound ? grants : NULL,
                      "an odd question");
}

static void
lead_ask(void *bank, const struct group_ask *asks, size_t count)
{
    struct group_lead *l = bank;
    assert(l->stage == LEAD_READY && l->asked == 0 && count > 0);
    l->asks = asks;
    l->asked = count;
    if (l->bank == NULL)
        lead_send(l->connection, asks, sizeof(*asks), count);
    else
        loop_post(l->setup.loop, &l->answering, lead_on_answering, l);
}

static void
lead_place(const void *bank, char out[REDIS_URL_MAX])
{
    const struct group_lead *l = bank;
    snprintf(out, REDIS_URL_MAX, "slice %u", l->place);
}

static void
lead_free(void *bank)
{
    struct group_lead *l = bank;
    lead_drop(l);
    net_listener_free(&l->listener);
    while (l->visitors != NULL)
        lead_visitor_end(l->visitors);
    bank_free(&l->bank);
    if (l->lock >= 0)
        disk_close_file(l->setup.disk, l->lock);
    free(l);
}

static bool
lead_listen(struct group_lead *l, char *error, size_t size)
{
    struct net_address address = {.family = NET_UNIX};
    char path[LEAD_PATH_MAX];
    lead_path(l->spool, l->setup.slices, l->setup.slice, path);
    if (!text_copy(address.path, sizeof(address.path), text_from(path)))
        snprintf(error, size, "'%s' is longer than %d bytes", path, NET_PATH_MAX - 1);
    else
        l->listener =
            net_listen(l->setup.net, &address, 0600, lead_on_accept, l, error, size);
    return l->listener != NULL;
}

struct group_engine
group_lead_new(const struct group_lead_setup *setup, char *error, size_t size)
{
    static const struct group_engine_kind kind = {.join = lead_join,
                                                  .leave = lead_leave,
                                                  .is_ready = lead_is_ready,
                                                  .is_up = lead_is_up,
                                                  .ask = lead_ask,
                                                  .fail = lead_fail,
                                                  .place = lead_place,
                                                  .free = lead_free};
    struct group_lead *l = memory_new(sizeof(*l));
    l->setup = *setup;
    if (setup->patience_ms == 0)
        l->setup.patience_ms = REDIS_ANSWER_MS;
    snprintf(l->spool, sizeof(l->spool), "%s", setup->spool);
    l->setup.spool = NULL;
    l->lock = -1;
    l->place = setup->slice;
    if (!lead_listen(l, error, size)) {
        free(l);
        return (struct group_engine){.kind = NULL};
    }
    l->breaker = (struct breaker){
        .failures_max = 3, .retry_ms = 50, .pause_ms = 1000, .pause_max_ms = 1000};
    loop_timer_start(setup->loop, &l->step, 0, lead_on_step, l);
    return (struct group_engine){&kind, l};
}
