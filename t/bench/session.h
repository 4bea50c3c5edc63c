/* The sink's side of SMTP and LMTP.
 *
 * Written apart from smtp/: a mistake there must not be hidden by the same one here.
 * Only CRLF ends a line and only CRLF.CRLF ends a message. */
#ifndef T_BENCH_SESSION_H
#define T_BENCH_SESSION_H

#include "t/bench/command.h"

static bool
keep(struct session *s)
{
    struct disk *disk = s->sink->directory;
    if (disk == NULL)
        return true;
    if (s->content < 0) /* the disk has failed */
        return false;
    char name[48];
    snprintf(name, sizeof(name), "%08llu.envelope", s->sink->stored);
    int file = disk_create(disk, name, 0644);
    bool good = file >= 0 && disk_write(disk, file, buffer_text(&s->envelope)) == 0;
    if (file >= 0)
        disk_close_file(disk, file);
    disk_close_file(disk, s->content);
    s->content = -1;
    /* The content comes last and whole: a reader that sees it sees all. */
    snprintf(name, sizeof(name), "%08llu.eml", s->sink->stored++);
    return disk_rename(disk, s->name, name) == 0 && good;
}

static void
answer_dot(struct session *s)
{
    const char *accepted = "250 2.0.0 Ok: taken\r\n";
    if (!s->sink->lmtp) {
        answer(s, accepted);
        return;
    }
    for (size_t i = 0; i < s->recipients; i++) {
        int code;
        memcpy(&code, s->failing.at + i * sizeof(code), sizeof(code));
        if (code == 250)
            answer(s, accepted);
        else if (!answer_code(s, code))
            return;
    }
}

/* Behind the final dot. */
static void
finish_content(struct session *s)
{
    struct sink *sink = s->sink;
    s->state = SESSION_COMMAND;
    s->messages++;
    struct fault *f = find_fault(sink, FAULT_CODE, STAGE_DOT, TEXT(""));
    int code = f != NULL ? f->code : s->too_large ? 552 : 0;
    if (code == 0 && !keep(s))
        code = 452;
    if (code != 0) {
        /* LMTP: every recipient hears it (RFC 2033 §4.2). */
        unsigned replies = sink->lmtp ? s->recipients : 1;
        while (replies-- > 0 && answer_code(s, code))
            ;
        if (s->connection != NULL)
            reset_transaction(s);
        return;
    }
    site_count(s->site, COUNT_MESSAGES, 1);
    site_count(s->site, COUNT_RECIPIENTS, s->recipients);
    site_count(s->site, COUNT_BYTES, s->length);
    if (find_fault(sink, FAULT_CLOSE, STAGE_DOT, TEXT("")))
        session_end(s, true); /* taken, but the client will never know */
    else
        answer_dot(s);
    if (s->connection != NULL)
        reset_transaction(s);
    sink->arrived(sink);
}

static void
add_content(struct session *s, struct text bytes)
{
    s->length += bytes.length;
    if (s->sink->size > 0 && s->length > (unsigned long long)s->sink->size)
        s->too_large = true;
    if (s->content >= 0 && bytes.length > 0 &&
        disk_write(s->sink->directory, s->content, bytes) < 0)
        drop_content(s);
}

/* Takes a run of whole and half lines; stuffed dots go. False when more input is
 * needed, or the session waits or has ended. */
static bool
take_content(struct session *s)
{
    struct text in = net_input(s->connection);
    size_t at = 0, from = 0;
    if (in.length == 0 || (!s->began && !enter_stage(s, STAGE_BODY)))
        return false;
    s->began = true;
    while (at < in.length) {
        if (s->line_start && in.at[at] == '.') {
            struct text rest = text_before(text_after(in, at), 3);
            if (rest.length < 3 && text_starts(TEXT(".\r\n"), rest))
                break;
            add_content(s, text_of(in.at + from, at - from));
            if (text_equal(rest, TEXT(".\r\n"))) {
                net_consume(s->connection, at);
                if (!enter_stage(s, STAGE_DOT))
                    return false;
                net_consume(s->connection, 3);
                finish_content(s);
                return s->connection != NULL;
            }
            from = ++at;
            s->line_start = s->after_cr = false;
            continue;
        }
        const char *end = memchr(in.at + at, '\n', in.length - at);
        size_t stop = end == NULL ? in.length : (size_t)(end - in.at) + 1;
        s->line_start =
            end != NULL && (end > in.at + at ? end[-1] == '\r' : s->after_cr);
        s->after_cr = end == NULL && in.at[stop - 1] == '\r';
        at = stop;
    }
    add_content(s, text_of(in.at + from, at - from));
    net_consume(s->connection, at);
    return false;
}

static bool
greet(struct session *s)
{
    if (!enter_stage(s, STAGE_BANNER))
        return false;
    s->state = SESSION_COMMAND;
    struct fault *f = find_fault(s->sink, FAULT_CODE, STAGE_BANNER, TEXT(""));
    s->refused = f != NULL;
    if (f != NULL)
        return answer_code(s, f->code);
    answer(s, s->sink->lmtp ? "220 sink LMTP\r\n" : "220 sink ESMTP\r\n");
    return true;
}

static bool
take_step(struct session *s)
{
    switch (s->state) {
    case SESSION_SILENT: /* goes on reading, so that the end is seen */
        net_consume(s->connection, net_input(s->connection).length);
        return false;
    case SESSION_NEW:
        return greet(s);
    case SESSION_COMMAND:
        return take_command(s);
    case SESSION_CONTENT:
        return take_content(s);
    }
    abort(); /* a state that does not exist */
}

static void
session_run(struct session *s)
{
    struct text in = net_input(s->connection);
    if (s->raw >= 0 && in.length > s->held &&
        disk_write(s->sink->directory, s->raw, text_after(in, s->held)) < 0)
        fprintf(stderr, "sink: cannot write a capture\n");
    while (!s->waiting && net_unsent(s->connection) < NET_HIGH_WATER && take_step(s))
        ;
    if (s->connection == NULL)
        return;
    s->held = net_input(s->connection).length;
    if (net_unsent(s->connection) >= NET_HIGH_WATER) /* reads no replies */
        net_want_input(s->connection, false);
}

static void
on_session_event(void *context, enum net_event event)
{
    struct session *s = context;
    switch (event) {
    case NET_CONNECTED:
    case NET_SECURED:
        return;
    case NET_DRAINED:
        net_want_input(s->connection, !s->waiting);
        session_run(s);
        return;
    case NET_INPUT:
        session_run(s);
        return;
    case NET_ENDED:
    case NET_TIMED_OUT:
        session_end(s, false);
        return;
    case NET_FAILED:
        session_end(s, true);
        return;
    }
}

/* Silent, until somebody says what becomes of it. */
static struct session *
sched_session_new(struct site *site, struct net_connection *connection)
{
    struct sink *sink = site->sink;
    struct session *s = memory_new(sizeof(*s));
    *s = (struct session){.sink = sink,
                          .site = site,
                          .connection = connection,
                          .run = session_run,
                          .state = SESSION_SILENT,
                          .number = ++sink->sessions,
                          .content = -1,
                          .raw = -1};
    DL_APPEND(sink->open, s);
    site_count(site, COUNT_CONNECTIONS, 1);
    buffer_init(&s->envelope, ENVELOPE_MAX);
    buffer_init(&s->failing, RECIPIENTS_MAX * sizeof(int));
    if (sink->capture) {
        char name[48];
        snprintf(name, sizeof(name), "connection.%llu.raw", s->number);
        s->raw = disk_create(sink->directory, name, 0644);
    }
    net_attach(connection, on_session_event, s);
    return s;
}

/* It gets its place, and is greeted. */
static void
session_serve(struct session *s)
{
    assert(s->state < SESSION_NEW);
    s->state = SESSION_NEW;
    site_count_open(s->site, true);
    session_run(s);
}

#endif
