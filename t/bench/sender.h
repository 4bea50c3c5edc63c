/* One connection of the load generator: banner, EHLO, messages, QUIT, and again. */
#ifndef T_BENCH_SENDER_H
#define T_BENCH_SENDER_H

#include "base/loop/loop.h"
#include "base/net/net.h"
#include "base/tls/tls.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    FILL_SIZE = 78 * 512, /* lines of 78 with their ends */
    RETRY_MS = 100,
    REPLY_MAX = 4096
};

enum step {
    STEP_NONE, /* no connection, or nothing to send */
    STEP_BANNER,
    STEP_HELO,
    STEP_MAIL,
    STEP_RCPT,
    STEP_DATA,
    STEP_DOT,
    STEP_RSET,
    STEP_QUIT
};

struct load {
    struct loop *loop;
    struct net *net;
    struct net_address to;
    struct tls_client *tls; /* NULL: in clear text */
    long messages, connections, size, recipients, per_connection, rate, give_up_s;
    long partial; /* fragments that make one message; 0: none are sent */
    const char *from, *rcpt, *answers_file;
    bool pipeline, with_tls;
    FILE *answers;
    struct sender *senders;
    struct loop_timer clock; /* rate and giving up */
    void (*reopen)(void *sender);
    char fill[FILL_SIZE];
    long started, accepted, refused, lost;
    int64_t start_us, answered_us, end_us;
    uint32_t *latency_us;
};

struct sender {
    struct load *load;
    struct net_connection *connection;
    struct loop_timer timer;
    enum step step;
    long number, next; /* of the message; -1 = none. next: already announced */
    int64_t start_us, next_start_us;
    long awaited, good;   /* RCPT replies to come; of those taken */
    long unsent, fill_at; /* of content */
    long sent;            /* on this connection */
    bool has_content;     /* all or some of it has gone out */
};

/* The loop's clock has milliseconds and stands still within a turn; a measure wants
 * more. */
static int64_t
now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* The number of a new message; -1 when all are under way or the rate says: later. */
static long
take_number(struct load *l)
{
    if (l->started == l->messages)
        return -1;
    if (l->rate > 0 &&
        l->started * 1000000 > (now_us() - l->start_us) * (int64_t)l->rate)
        return -1;
    return l->started++;
}

static bool
may_start_another(const struct sender *s)
{
    return s->load->per_connection == 0 || s->sent < s->load->per_connection;
}

static void
send_rcpt(struct sender *s, long number, long which)
{
    const char *pattern = s->load->rcpt, *mark = strstr(pattern, "%d");
    char line[1200];
    if (mark == NULL)
        snprintf(line, sizeof(line), "RCPT TO:<%s>\r\n", pattern);
    else
        snprintf(line, sizeof(line), "RCPT TO:<%.*s%ld%s>\r\n", (int)(mark - pattern),
                 pattern, number * s->load->recipients + which, mark + 2);
    net_send(s->connection, text_from(line));
}

static void
send_mail(struct sender *s)
{
    char line[1200];
    snprintf(line, sizeof(line), "MAIL FROM:<%s>\r\n", s->load->from);
    net_send(s->connection, text_from(line));
}

static void
send_envelope(struct sender *s, long number)
{
    send_mail(s);
    for (long i = 0; s->load->pipeline && i < s->load->recipients; i++)
        send_rcpt(s, number, i);
    if (s->load->pipeline)
        net_send(s->connection, TEXT("DATA\r\n"));
}

/* The content as far as the peer reads, then the dot. */
static void
send_content(struct sender *s)
{
    while (s->unsent > 0 && net_unsent(s->connection) < NET_HIGH_WATER) {
        long part = FILL_SIZE - s->fill_at;
        if (part > s->unsent)
            part = s->unsent;
        struct text fill = text_of(s->load->fill + s->fill_at, (size_t)part);
        bool halved = part == s->unsent && fill.at[part - 1] == '\r';
        net_send(s->connection, text_before(fill, (size_t)(part - halved)));
        if (halved) /* the line end that comes with the dot would make it a bare CR */
            net_send(s->connection, TEXT("."));
        s->unsent -= part;
        s->fill_at = (s->fill_at + part) % FILL_SIZE;
    }
    if (s->unsent > 0)
        return; /* NET_DRAINED goes on */
    net_send(s->connection, TEXT("\r\n.\r\n"));
    s->step = STEP_DOT;
    s->sent++;
    if (s->load->pipeline && may_start_another(s) &&
        (s->next = take_number(s->load)) >= 0) {
        s->next_start_us = now_us();
        send_envelope(s, s->next);
    }
}

/* The header of a fragment of a message. No two runs use the same id. */
static int
print_partial(const struct sender *s, char *out, size_t size)
{
    const struct load *l = s->load;
    long number = l->partial > 0 ? s->number % l->partial + 1 : 0;
    if (l->partial == 0)
        return snprintf(out, size, "\r\n");
    return snprintf(out, size,
                    "MIME-Version: 1.0\r\nContent-Type: message/partial; "
                    "id=\"%ld.%lld@load.example.org\"; number=%ld; total=%ld\r\n\r\n%s",
                    s->number / l->partial, (long long)l->start_us, number, l->partial,
                    number == 1 ? "Subject: joined\r\nMIME-Version: 1.0\r\n\r\n" : "");
}

static void
start_content(struct sender *s)
{
    char header[1200];
    int length =
        snprintf(header, sizeof(header),
                 "From: <%s>\r\nTo: undisclosed-recipients:;\r\nSubject: load %ld\r\n"
                 "Date: Thu, 1 Jan 1970 00:00:00 +0000\r\n"
                 "Message-ID: <load.%ld@example.org>\r\n",
                 s->load->from, s->number, s->number);
    length += print_partial(s, header + length, sizeof(header) - (size_t)length);
    assert(length > 0 && length < (int)sizeof(header));
    net_send(s->connection, text_of(header, (size_t)length));
    s->unsent = s->load->size - length - 2; /* the last line end comes with the dot */
    if (s->unsent < 0)
        s->unsent = 0;
    s->fill_at = 0;
    s->has_content = true;
    s->step = STEP_NONE; /* no reply is due before the dot */
    send_content(s);
}

/* The next message, or QUIT when there is none for this connection. */
static void
start_message(struct sender *s)
{
    struct load *l = s->load;
    if (s->next >= 0) {
        s->number = s->next;
        s->start_us = s->next_start_us;
        s->next = -1;
    } else {
        if (s->number < 0 && may_start_another(s))
            s->number = take_number(l);
        if (s->number < 0) {
            s->step = STEP_NONE;
            if (may_start_another(s) && l->started < l->messages)
                return; /* the clock wakes it */
            net_send(s->connection, TEXT("QUIT\r\n"));
            s->step = STEP_QUIT;
            return;
        }
        s->start_us = now_us();
        send_envelope(s, s->number);
    }
    s->step = STEP_MAIL;
    s->awaited = l->recipients;
    s->good = 0;
    s->has_content = false;
}

static void
note_answer(struct sender *s, struct text reply, bool accepted)
{
    struct load *l = s->load;
    l->answered_us = now_us();
    if (l->answers != NULL)
        fprintf(l->answers, "%ld %.*s\n", s->number, TEXT_ARGS(reply));
    if (accepted)
        l->latency_us[l->accepted++] = (uint32_t)(l->answered_us - s->start_us);
    else
        l->refused++;
    s->number = -1;
    s->has_content = false;
    l->end_us = l->answered_us;
}

static void
refuse(struct sender *s, struct text reply)
{
    note_answer(s, reply, false);
    net_send(s->connection, TEXT("RSET\r\n"));
    s->step = STEP_RSET;
}

static void
heard_rcpt(struct sender *s, struct text reply, bool good)
{
    s->good += good;
    s->awaited--;
    if (s->awaited == 0)
        s->step = STEP_DATA;
    if (s->load->pipeline)
        return;
    if (s->awaited > 0)
        send_rcpt(s, s->number, s->load->recipients - s->awaited);
    else if (s->good > 0)
        net_send(s->connection, TEXT("DATA\r\n"));
    else
        refuse(s, reply);
}

static void
heard_mail(struct sender *s, struct text reply, bool good)
{
    if (!good && !s->load->pipeline) {
        refuse(s, reply);
        return;
    }
    s->step = STEP_RCPT;
    if (!s->load->pipeline)
        send_rcpt(s, s->number, 0);
}

/* One whole reply; its last line. */
static void
heard(struct sender *s, struct text reply)
{
    bool good = reply.at[0] == '2';
    switch (s->step) {
    case STEP_BANNER:
        net_send(s->connection,
                 good ? TEXT("EHLO load.example.org\r\n") : TEXT("QUIT\r\n"));
        s->step = good ? STEP_HELO : STEP_QUIT;
        return;
    case STEP_HELO:
    case STEP_RSET:
        start_message(s);
        return;
    case STEP_MAIL:
        heard_mail(s, reply, good);
        return;
    case STEP_RCPT:
        heard_rcpt(s, reply, good);
        return;
    case STEP_DATA:
        if (reply.at[0] == '3')
            start_content(s);
        else
            refuse(s, reply);
        return;
    case STEP_DOT:
        note_answer(s, reply, good);
        start_message(s);
        return;
    case STEP_NONE:
    case STEP_QUIT:
        return; /* 421, and it will close */
    }
}

static bool
is_over(const struct load *l)
{
    return l->accepted + l->refused + l->lost == l->messages;
}

/* Lost, or closed after QUIT: what was sent and not answered counts as lost; what was
 * only announced goes out once more. */
static void
closed(struct sender *s)
{
    struct load *l = s->load;
    net_abort(&s->connection);
    if (s->number >= 0 && s->has_content) {
        s->number = -1;
        l->lost++;
        l->end_us = now_us();
    }
    if (s->next >= 0) {
        s->number = s->next;
        s->next = -1;
    }
    bool quit = s->step == STEP_QUIT;
    s->step = STEP_NONE;
    s->has_content = false;
    if (is_over(l))
        loop_stop(l->loop);
    else if (s->number >= 0 || l->started < l->messages)
        loop_timer_start(l->loop, &s->timer, quit ? 0 : RETRY_MS, l->reopen, s);
}

static void
on_input(struct sender *s)
{
    for (;;) {
        struct text in = net_input(s->connection);
        size_t end = text_find(in, '\n');
        if (end == TEXT_NONE) {
            if (in.length > REPLY_MAX)
                closed(s);
            return;
        }
        char line[REPLY_MAX];
        struct text whole = text_trim(text_before(in, end));
        text_copy(line, sizeof(line), whole);
        net_consume(s->connection, end + 1);
        if (whole.length < 3 || (whole.length > 3 && whole.at[3] == '-'))
            continue;
        if (memcmp(line, "421", 3) == 0 && s->step != STEP_DOT) {
            closed(s); /* the message is tried again on another connection */
            return;
        }
        heard(s, text_from(line));
    }
}

static void
on_event(void *context, enum net_event event)
{
    struct sender *s = context;
    switch (event) {
    case NET_CONNECTED:
    case NET_SECURED:
        return;
    case NET_DRAINED:
        if (s->unsent > 0)
            send_content(s);
        return;
    case NET_INPUT:
        on_input(s);
        return;
    case NET_ENDED:
    case NET_TIMED_OUT:
    case NET_FAILED:
        closed(s);
        return;
    }
}

static void
open_connection(void *context)
{
    struct sender *s = context;
    struct load *l = s->load;
    if (s->number < 0 && l->started == l->messages)
        return;
    s->step = STEP_BANNER;
    s->sent = 0;
    s->unsent = 0;
    s->connection = net_connect(l->net, &l->to, NULL, on_event, s);
    struct net_tls tls = {.client = l->tls, .options = {.level = TLS_LEVEL_NONE}};
    if (l->tls != NULL)
        net_start_tls(s->connection, &tls);
}

#endif
