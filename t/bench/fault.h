/* The sink's state of a session, and the faults that it was told to show. */
#ifndef T_BENCH_FAULT_H
#define T_BENCH_FAULT_H

#include "base/buffer.h"
#include "base/disk/disk.h"
#include "base/memory.h"
#include "base/net/net_internal.h"
#include "t/bench/site.h"

#include <stdio.h>
#include <utlist.h>

enum {
    FAULTS_MAX = 64,
    COMMAND_MAX = 4096,
    ENVELOPE_MAX = 8 * 1024 * 1024, /* of X-Sink lines */
    RECIPIENTS_MAX = 100000         /* of one transaction */
};

enum fault_kind { FAULT_CODE, FAULT_DELAY, FAULT_CLOSE, FAULT_RCPT, FAULT_LMTP };

struct fault {
    enum fault_kind kind;
    enum stage stage;
    char *pattern; /* RCPT, LMTP: part of the address */
    int code;
    int64_t delay_ms;
    long left; /* how often still; < 0 = always */
};

struct sink {
    struct loop *loop;
    struct net *net;
    struct disk *directory; /* NULL: nothing is kept */
    struct tls_server *tls; /* NULL: in clear text */
    struct fault faults[FAULTS_MAX];
    size_t fault_count;
    bool lmtp, no_ehlo, no_pipelining, no_8bitmime, no_dsn, capture;
    int64_t size;      /* 0 = no limit */
    long max_messages; /* of a connection; 0 = no limit */
    struct site sites[SITES_MAX];
    size_t site_count;
    struct tally total;
    unsigned long long stored, sessions; /* for file names; never reset */
    void (*arrived)(struct sink *sink);
    struct session *open;
};

enum session_state {
    SESSION_SILENT, /* has no place */
    SESSION_NEW,    /* has a place from here on */
    SESSION_COMMAND,
    SESSION_CONTENT
};

struct session {
    struct sink *sink;
    struct site *site;
    struct net_connection *connection; /* NULL: over */
    void (*run)(struct session *s);    /* goes on after a wait */
    struct loop_timer timer;
    struct buffer envelope; /* the side file */
    enum session_state state;
    bool esmtp, has_mail, waited, waiting, refused;
    bool line_start, after_cr, began; /* of content */
    bool too_large;
    long messages;
    unsigned recipients;
    struct buffer failing; /* LMTP: code of each recipient, int */
    unsigned long long number, length;
    size_t held;      /* input that was seen before and is still there */
    int content, raw; /* files; -1 = none */
    char name[48];
    struct session *prev, *next;
};

/* The fault for this stage, once; NULL: there is none. */
static struct fault *
find_fault(struct sink *sink, enum fault_kind kind, enum stage stage,
           struct text address)
{
    for (size_t i = 0; i < sink->fault_count; i++) {
        struct fault *f = &sink->faults[i];
        if (f->kind != kind || f->stage != stage || f->left == 0)
            continue;
        if (f->pattern != NULL &&
            memmem(address.at, address.length, f->pattern, strlen(f->pattern)) == NULL)
            continue;
        if (f->left > 0)
            f->left--;
        return f;
    }
    return NULL;
}

static void
drop_content(struct session *s)
{
    if (s->content < 0)
        return;
    disk_close_file(s->sink->directory, s->content);
    disk_unlink(s->sink->directory, s->name);
    s->content = -1;
}

static void
reset_transaction(struct session *s)
{
    drop_content(s);
    buffer_clear(&s->envelope);
    buffer_clear(&s->failing);
    s->has_mail = s->too_large = s->began = false;
    s->recipients = 0;
    s->length = 0;
}

static void
session_release(void *object)
{
    struct session *s = object;
    buffer_free(&s->envelope);
    buffer_free(&s->failing);
    free(s);
}

/* All but the connection. */
static void
sched_session_leave(struct session *s)
{
    reset_transaction(s);
    DL_DELETE(s->sink->open, s);
    if (s->raw >= 0)
        disk_close_file(s->sink->directory, s->raw);
    loop_timer_stop(s->sink->loop, &s->timer);
    if (s->state >= SESSION_NEW)
        site_count_open(s->site, false);
    loop_release(s->sink->loop, session_release, s);
}

static void
session_end(struct session *s, bool abruptly)
{
    sched_session_leave(s);
    if (abruptly)
        net_abort(&s->connection);
    else
        net_close(&s->connection);
}

static void
answer(struct session *s, const char *reply)
{
    net_send(s->connection, text_from(reply));
}

/* 421 also ends the session. False when it did. */
static bool
answer_refusal(struct session *s, int code, const char *why)
{
    char reply[64];
    snprintf(reply, sizeof(reply), "%d %d.%s\r\n", code, code / 100, why);
    answer(s, reply);
    site_count(s->site, COUNT_REFUSED, 1);
    if (code != 421)
        return true;
    session_end(s, false);
    return false;
}

/* The reply of a fault, unchanged. */
static bool
answer_code(struct session *s, int code)
{
    return answer_refusal(s, code, "0.0 Refused, as told");
}

static void
on_waited(void *context)
{
    struct session *s = context;
    s->waiting = false;
    s->waited = true;
    net_want_input(s->connection, true);
    s->run(s);
}

/* The delays and ends of a stage, before anything else of it. False: not now. */
static bool
enter_stage(struct session *s, enum stage stage)
{
    if (!s->waited) {
        struct fault *f = find_fault(s->sink, FAULT_DELAY, stage, TEXT(""));
        int64_t delay_ms = f != NULL ? f->delay_ms : s->site->set.delay_ms[stage];
        if (f != NULL || delay_ms > 0) {
            s->waiting = true;
            net_want_input(s->connection, false);
            loop_timer_start(s->sink->loop, &s->timer, delay_ms, on_waited, s);
            return false;
        }
    }
    s->waited = false;
    if (stage != STAGE_DOT && find_fault(s->sink, FAULT_CLOSE, stage, TEXT(""))) {
        session_end(s, true);
        return false;
    }
    return true;
}

/* False when the fault of this stage has been answered. */
static bool
pass_stage(struct session *s, enum stage stage)
{
    struct fault *f = find_fault(s->sink, FAULT_CODE, stage, TEXT(""));
    if (f == NULL)
        return true;
    answer_code(s, f->code);
    return false;
}

#endif
