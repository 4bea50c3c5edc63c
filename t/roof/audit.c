/* Exact questions to a quiet host. */
#include "t/roof/audit.h"

#include "t/roof/audit_internal.h"
#include "t/roof/editor.h"
#include "t/roof/hop.h"
#include "t/roof/host.h"
#include "t/roof/law_truth.h"
#include "t/roof/model.h"
#include "t/roof/operator.h"
#include "t/roof/peer.h"
#include "t/roof/plan.h"
#include "t/roof/roof.h"
#include "t/roof/world.h"
#include "t/sim/sim_disk.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TELLERS = 13, /* sessions side by side */
    LINE_SIZE = 512,
    ANSWER_MS = 10 * 60 * 1000, /* an answer takes no longer */
    SETTLED_MS = 10 * 1000,     /* until marks and due times are durable */
    LATE_MS = 60 * 1000,
    EARLY_MS = 2 * 1000, /* due times count whole seconds */
    PACES = 6,
    PACE_MS = 1000,
    RCPTS_ASKED = 60,
    SIZE_ASKED = 1 << 21,
    HEADER_LINES = 80, /* of a header of more than 64 KiB */
    DOT_LINES = 60000,
    SILENCE_MS = 70 * 1000,
    ARRIVED_MS = 200, /* what was sent */
    FLOOD_OCTETS = 180 * 1000,
    SLOW_REPLY_MS = 5000,
    REVIVED = 14,
    EXPIRY_PERMILLE = 250,
    EXPIRY_SELDOM_PERMILLE = 80, /* days of attempts */
    LOSSES = 2,
    ALWAYS = 1000
};
#define MINUTE_MS INT64_C(60000)
#define DAY_MS    (24 * 60 * MINUTE_MS)

/* One that speaks SMTP and waits for each answer. */
struct teller {
    struct peer peer;
    bool over, answered;
    int code;
    char text[LINE_SIZE]; /* the last line of the answer */
};

/* Mail whose attempts are watched. */
struct watched {
    struct model_message *message;
    int64_t tried_ms; /* last; 0: not yet */
    unsigned tries;
    bool rests; /* it is held, or removed */
};

static struct {
    struct teller tellers[TELLERS], *asked;
    struct watched watched[PACES];
    unsigned watched_count;
    int64_t tried_ms; /* the last of all attempts */
} audit;

const struct options *
audit_options(void)
{
    return &host.daemon.configuration->options;
}

/* --- A session --- */

static bool
teller_on_line(void *context, struct text line)
{
    struct teller *t = context;
    if (line.length < 3 || (line.length > 3 && line.at[3] == '-'))
        return true;
    t->answered = true;
    t->code = (line.at[0] - '0') * 100 + (line.at[1] - '0') * 10 + line.at[2] - '0';
    text_copy(t->text, sizeof(t->text), line);
    return true;
}

static void
teller_on_over(void *context)
{
    struct teller *t = context;
    t->over = true;
}

static bool
teller_is_answered(void)
{
    return audit.asked->answered || audit.asked->over;
}

/* The code of the answer; 0: the session has ended, or nothing came. */
static int
teller_wait(struct teller *t)
{
    audit.asked = t;
    t->code = 0;
    t->answered = false;
    (void)world_run_for(ANSWER_MS, teller_is_answered);
    return t->code;
}

/* The code of its greeting. */
static int
teller_begin(struct teller *t, unsigned client)
{
    struct net_address from =
                           {
                               .family = NET_IPV4, .ip = {10, 1, 1, 1}
    },
                       to = {.family = NET_IPV4, .ip = {10, 0, 0, 1}, .port = 25};
    from.ip[3] = (unsigned char)(1 + client);
    *t = (struct teller){0};
    t->peer =
        (struct peer){.line = teller_on_line, .over = teller_on_over, .context = t};
    peer_connect(&t->peer, &from, &to);
    return teller_wait(t);
}

static int teller_say(struct teller *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int
teller_say(struct teller *t, const char *format, ...)
{
    char line[LINE_SIZE];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    if (t->over)
        return 0;
    peer_say(&t->peer, text_from(line));
    peer_say(&t->peer, TEXT("\r\n"));
    return teller_wait(t);
}

static void
teller_end(struct teller *t)
{
    (void)teller_say(t, "QUIT");
    if (!t->over)
        peer_close(&t->peer);
}

static void
expect(struct teller *t, int code, int wanted, const char *what)
{
    if (code != wanted)
        roof_break("bounds", NULL, "%s: %d wanted, and this came: %d %s", what, wanted,
                   code, t->text);
}

static void
teller_greet(struct teller *t)
{
    expect(t, teller_begin(t, 0), 220, "a client alone is greeted");
    expect(t, teller_say(t, "EHLO audit.test"), 250, "EHLO");
}

static int
teller_mail(struct teller *t, const struct model_message *m)
{
    char sender[MODEL_ADDRESS_MAX];
    model_sender_address(m, sender);
    return teller_say(t, "MAIL FROM:<%s>", sender);
}

static int
teller_rcpt(struct teller *t, const struct model_rcpt *r)
{
    char address[MODEL_ADDRESS_MAX];
    model_rcpt_address(r, address);
    return teller_say(t, "RCPT TO:<%s>", address);
}

/* By DATA, or in chunks of any size. */
static int
teller_content(struct teller *t, const struct model_message *m, bool chunks)
{
    struct text rest = text_of(m->content.at, m->content.length), line;
    int code = chunks ? 250 : teller_say(t, "DATA");
    if (!chunks && code != 354)
        return code;
    while (rest.length > 0 && !t->over && chunks && code == 250) {
        struct text chunk = text_before(rest, 1 + roof_below(40 * 1000));
        char command[LINE_SIZE];
        rest = text_after(rest, chunk.length);
        snprintf(command, sizeof(command), "BDAT %zu%s\r\n", chunk.length,
                 rest.length == 0 ? " LAST" : "");
        peer_say(&t->peer, text_from(command));
        peer_say(&t->peer, chunk);
        code = teller_wait(t);
    }
    if (chunks)
        return code;
    while (rest.length > 0) {
        text_cut(&rest, '\n', &line);
        if (text_starts(line, TEXT(".")))
            peer_say(&t->peer, TEXT("."));
        peer_say(&t->peer, line);
        peer_say(&t->peer, TEXT("\n"));
    }
    return teller_say(t, ".");
}

static void
take_id(const struct teller *t, struct model_message *m)
{
    struct text line = text_from(t->text);
    model_acked(m, text_after(line, text_find_last(line, ' ') + 1));
}

/* A message for its first `count` recipients. */
static void
give(struct teller *t, struct model_message *m, unsigned count, bool chunks)
{
    expect(t, teller_mail(t, m), 250, "MAIL");
    for (unsigned i = 0; i < count; i++) {
        expect(t, teller_rcpt(t, &m->rcpts[i]), 250, "RCPT");
        m->rcpts[i].accepted = true;
    }
    int code = teller_content(t, m, chunks);
    if (code == 250)
        take_id(t, m);
    else
        m->state = MODEL_REFUSED;
    expect(t, code, 250, "a message in good weather is taken");
}

/* --- Doors --- */

/* As many as the limit says are greeted, and no more. */
static void
judge_crowd(int64_t limit, bool of_one, const char *what)
{
    unsigned greeted = 0;
    for (unsigned i = 0; i <= (unsigned)limit; i++) {
        int code = teller_begin(&audit.tellers[i], of_one ? 0 : i);
        greeted += code == 220;
        if (code == 220 && greeted > limit)
            roof_break("bounds", NULL, "%s: %u sessions, with a limit of %" PRId64,
                       what, greeted, limit);
        if (code != 220 && i == 0)
            roof_break("bounds", NULL, "%s: the first client hears: %d %s", what, code,
                       audit.tellers[i].text);
        if (code != 220 && i < limit && of_one)
            roof_break("bounds", NULL, "%s: client %u of %" PRId64 " hears: %d %s",
                       what, i + 1, limit, code, audit.tellers[i].text);
    }
    for (unsigned i = 0; i <= (unsigned)limit; i++)
        teller_end(&audit.tellers[i]);
}

/* Limits that few clients and little mail reach: those of the run are often too large. */
static void
set_limits(bool small)
{
    static const char *const rows[][2] = {
        {"client_session_limit", "3"     },
        {"server_session_limit", "11"    },
        {"recipient_limit",      "20"    },
        {"message_size_limit",   "400000"}
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (!small || roof_chance(700))
            editor_set(rows[i][0], small ? rows[i][1] : "");
    world_set_route("");
}

static void
audit_crowds(void)
{
    const struct options *o = audit_options();
    if (o->server.clients.sessions_per_client < TELLERS &&
        o->server.clients.sessions > 4 * o->server.clients.sessions_per_client)
        judge_crowd(o->server.clients.sessions_per_client, true,
                    "client_session_limit");
    if (o->server.clients.sessions < TELLERS)
        judge_crowd(o->server.clients.sessions, false, "server_session_limit");
}

/* --- Transactions --- */

static struct model_message *
new_message(unsigned rcpts, size_t size)
{
    struct model_message *m = model_add();
    model_draw(m, rcpts, size);
    return m;
}

/* RSET takes recipients back, and one that is said twice is taken once. */
static void
audit_recipients(struct teller *t)
{
    struct model_message *m = new_message(3, 300);
    expect(t, teller_mail(t, m), 250, "MAIL");
    expect(t, teller_rcpt(t, &m->rcpts[2]), 250, "RCPT");
    expect(t, teller_say(t, "RSET"), 250, "RSET");
    expect(t, teller_mail(t, m), 250, "MAIL behind RSET");
    expect(t, teller_rcpt(t, &m->rcpts[0]), 250, "RCPT");
    expect(t, teller_rcpt(t, &m->rcpts[1]), 250, "RCPT");
    expect(t, teller_rcpt(t, &m->rcpts[0]), 250, "a repeated RCPT");
    m->rcpts[0].accepted = m->rcpts[1].accepted = true;
    expect(t, teller_content(t, m, false), 250, "DATA");
    take_id(t, m);
}

static void
audit_recipient_limit(struct teller *t)
{
    int64_t limit = audit_options()->server.recipient_limit;
    if (limit > RCPTS_ASKED)
        return;
    struct model_message *m = new_message((unsigned)limit + 1, 300);
    m->state = MODEL_REFUSED;
    expect(t, teller_mail(t, m), 250, "MAIL");
    for (unsigned i = 0; i < (unsigned)limit; i++)
        expect(t, teller_rcpt(t, &m->rcpts[i]), 250, "RCPT within recipient_limit");
    expect(t, teller_rcpt(t, &m->rcpts[limit]), 452, "RCPT beyond recipient_limit");
    expect(t, teller_say(t, "RSET"), 250, "RSET");
}

static void
add_octets(struct model_message *m, size_t size)
{
    bool fits = true;
    while (size > 0) {
        size_t line = size > 902 ? 800 : size;
        for (size_t i = 0; i + 2 < line; i++)
            fits = buffer_add_byte(&m->content, 'x') && fits;
        fits = buffer_add(&m->content, TEXT("\r\n")) && fits;
        size -= line;
    }
    assert(fits);
}

/* The announced size counts, too. */
static void
audit_announced(struct teller *t, int64_t limit)
{
    expect(t, teller_say(t, "MAIL FROM:<> SIZE=%" PRId64, limit), 250,
           "MAIL of message_size_limit");
    expect(t, teller_say(t, "RSET"), 250, "RSET");
    expect(t, teller_say(t, "MAIL FROM:<> SIZE=%" PRId64, limit + 1), 552,
           "MAIL beyond message_size_limit");
}

/* Content of just the limit passes, and one octet more does not. */
static void
audit_size_limit(struct teller *t)
{
    int64_t limit = audit_options()->message_size_limit;
    if (limit > SIZE_ASKED)
        return;
    struct model_message *fits = new_message(1, 300), *large = new_message(1, 300);
    audit_announced(t, limit);
    add_octets(fits, (size_t)limit - fits->content.length);
    add_octets(large, (size_t)limit + 1 - large->content.length);
    give(t, fits, 1, false);
    large->state = MODEL_REFUSED;
    expect(t, teller_mail(t, large), 250, "MAIL");
    expect(t, teller_rcpt(t, &large->rcpts[0]), 250, "RCPT");
    expect(t, teller_content(t, large, false), 552,
           "content beyond message_size_limit");
}

/* A header longer than any buffer. */
static void
audit_header(struct teller *t)
{
    struct model_message *m = new_message(1, 0);
    struct text body = text_of(m->content.at, m->content.length);
    size_t end =
        (size_t)((char *)memmem(body.at, body.length, "\r\n\r\n", 4) - body.at);
    struct buffer made;
    buffer_init(&made, 1 << 20);
    bool fits = buffer_add(&made, text_before(body, end + 2));
    for (unsigned i = 0; i < HEADER_LINES; i++) {
        fits = buffer_format(&made, "X-Line-%u: ", i) && fits;
        for (unsigned j = 0; j < 900; j++)
            fits = buffer_add_byte(&made, (char)('a' + (i + j) % 26)) && fits;
        fits = buffer_add(&made, TEXT("\r\n")) && fits;
    }
    fits = buffer_add(&made, text_after(body, end + 2)) && fits;
    assert(fits);
    buffer_free(&m->content);
    m->content = made;
    give(t, m, 1, true);
}

/* Lines that begin with a dot, wherever pieces of the content begin. */
static void
audit_dots(struct teller *t)
{
    struct model_message *m = new_message(1, 0);
    bool fits = true;
    m->rcpts[0].domain = model_domains() > 1; /* whose host takes no chunks */
    for (unsigned i = 0; i < DOT_LINES; i++)
        fits = buffer_add(&m->content, i % 7 == 0 ? TEXT("..\r\n") : TEXT(".\r\n")) &&
               fits;
    assert(fits);
    give(t, m, 1, roof_chance(500));
}

static bool
is_gone(void)
{
    return model_open() == 0;
}

void
audit_departure(const char *what)
{
    const struct options *o = audit_options();
    int64_t pace_ms =
        o->transport.rate_delay_ms + o->transport.transport_rate_delay_ms + PACE_MS;
    if (world_run_for(10 * MINUTE_MS + 100 * pace_ms, is_gone))
        return;
    model_print();
    roof_break("in time", NULL, "%s: %u recipients are open", what, model_open());
}

/* One that says nothing any more is not waited for. */
static void
audit_silence(void)
{
    struct teller *t = &audit.tellers[0];
    editor_set("smtpd_timeout", "60s");
    world_set_route("");
    teller_greet(t);
    (void)world_run_for(SILENCE_MS, NULL);
    if (!t->over)
        roof_break("bounds", NULL, "a client that says nothing for 70 s is waited for");
    editor_set("smtpd_timeout", "");
    world_set_route("");
}

static void
audit_transactions(void)
{
    struct teller *t = &audit.tellers[0];
    network_fail_accepts(1);
    teller_greet(t);
    audit_recipients(t);
    audit_recipient_limit(t);
    audit_size_limit(t);
    audit_header(t);
    audit_dots(t);
    teller_end(t);
    audit_departure("mail in good weather");
}

/* --- Mail that waits --- */

static void
watch(struct model_message *m)
{
    assert(audit.watched_count < PACES);
    audit.watched[audit.watched_count++] = (struct watched){.message = m};
}

static int64_t
delay_of(int64_t age_ms)
{
    const struct options *o = audit_options();
    int64_t delay = age_ms > o->transport.maximal_backoff_ms
                        ? o->transport.maximal_backoff_ms
                        : age_ms;
    return delay < o->transport.minimal_backoff_ms ? o->transport.minimal_backoff_ms
                                                   : delay;
}

/* The latest end of a wait that begins now. */
static int64_t
longest_ms(void)
{
    return delay_of(INT64_MAX) * 11 / 10 + LATE_MS;
}

static void
judge_attempt(struct watched *w)
{
    int64_t now_ms = roof_now_ms(), gap_ms = now_ms - w->tried_ms;
    int64_t wanted_ms = delay_of(w->tried_ms - w->message->acked_ms);
    if (w->rests)
        roof_break("bounds", w->message->id, "m%u is held or removed, and tried",
                   w->message->number);
    if (w->tried_ms > 0 && gap_ms + EARLY_MS < wanted_ms)
        roof_break("in time", w->message->id,
                   "m%u is tried again after %" PRId64 " ms, and not after %" PRId64,
                   w->message->number, gap_ms, wanted_ms);
    if (w->tried_ms > 0 && gap_ms > wanted_ms * 11 / 10 + LATE_MS)
        roof_break("in time", w->message->id,
                   "m%u is tried again after %" PRId64 " ms, late by %" PRId64,
                   w->message->number, gap_ms, gap_ms - wanted_ms);
    w->tried_ms = now_ms;
    w->tries++;
}

static void
audit_attempted(struct model_rcpt *r)
{
    audit.tried_ms = roof_now_ms();
    for (unsigned i = 0; i < audit.watched_count; i++)
        if (audit.watched[i].message == r->message)
            judge_attempt(&audit.watched[i]);
}

static bool
all_are_tried(void)
{
    for (unsigned i = 0; i < audit.watched_count; i++)
        if (audit.watched[i].tries == 0)
            return false;
    return roof_now_ms() - audit.tried_ms > SETTLED_MS;
}

static bool
is_settled(void)
{
    return roof_now_ms() - audit.tried_ms > SETTLED_MS;
}

static void
restart(void)
{
    if (world_run_for(longest_ms(), is_settled))
        world_restart(roof_chance(500));
}

/* Deferred again and again; the third is held, and the fourth removed. */
static void
begin_waiting(void)
{
    struct teller *t = &audit.tellers[0];
    struct hop_mood refusing = {.rcpt = 1000};
    audit.watched_count = 0;
    world_set_moods(&refusing);
    model_on_attempted(audit_attempted);
    teller_greet(t);
    for (unsigned i = 0; i < 4; i++) {
        struct model_message *m = new_message(1, roof_below(20000));
        give(t, m, 1, false);
        watch(m);
    }
    teller_end(t);
    if (!world_run_for(longest_ms(), all_are_tried))
        roof_break("in time", NULL, "new mail is not tried");
}

static void
rest(struct watched *w, const char *command)
{
    operator_order(command, w->message);
    (void)world_run_for(SETTLED_MS, NULL);
    w->rests = true;
}

static bool
third_is_tried(void)
{
    return audit.watched[2].tries > 1;
}

/* A message that was released is due immediately. */
static void
audit_release(void)
{
    struct watched *w = &audit.watched[2];
    w->rests = false;
    w->tried_ms = 0;
    w->tries = 1;
    operator_order("release", w->message);
    if (!world_run_for(2 * LATE_MS, third_is_tried))
        roof_break("in time", w->message->id, "m%u is released, and not tried",
                   w->message->number);
}

static void
judge_notices(const struct model_message *m, int64_t waited_ms)
{
    const struct options *o = audit_options();
    int64_t after_ms = o->transport.delay_warning_ms;
    bool wanted = after_ms > 0 && after_ms + longest_ms() < waited_ms;
    unsigned count = m->rcpts[0].delayed;
    if (count > (after_ms > 0) || (wanted && count == 0))
        roof_break("once", m->id,
                   "m%u is reported as delayed %u times, with delay_warning_time "
                   "%" PRId64,
                   m->number, count, after_ms);
}

static void
judge_expiry(const struct model_message *m)
{
    int64_t life_ms = audit_options()->transport.lifetime_ms,
            age_ms = m->reported_ms - m->acked_ms;
    if (m->rcpts[0].failed == 0)
        roof_break("in time", m->id, "m%u has not expired", m->number);
    if (age_ms + EARLY_MS < life_ms || age_ms > life_ms + longest_ms())
        roof_break("in time", m->id, "m%u expires after %" PRId64 " ms, with %" PRId64,
                   m->number, age_ms, life_ms);
}

static void
audit_end_of_waiting(void)
{
    struct hop_mood good = {0};
    const struct model_message *m = audit.watched[0].message;
    bool expires =
        roof_chance(world_is_dense() ? EXPIRY_SELDOM_PERMILLE : EXPIRY_PERMILLE);
    if (expires) {
        int64_t left_ms =
            m->acked_ms + audit_options()->transport.lifetime_ms - roof_now_ms();
        (void)world_run_for(left_ms + longest_ms() + LATE_MS, NULL);
    }
    for (unsigned i = 0; i < 2; i++)
        judge_notices(audit.watched[i].message, roof_now_ms() - m->acked_ms);
    for (unsigned i = 0; i < 3 && expires; i++)
        judge_expiry(audit.watched[i].message);
    model_on_attempted(NULL);
    world_set_moods(&good);
    if (!world_run_for(longest_ms() + LATE_MS, is_gone))
        audit_departure("mail that had to wait");
}

static void
audit_waiting(void)
{
    begin_waiting();
    audit.watched[2].message->rcpts[0].deferred_ms = 0;
    rest(&audit.watched[2], "hold");
    audit.watched[3].message->rcpts[0].may_vanish = true;
    rest(&audit.watched[3], "rm");
    if (roof_chance(500)) /* in one life, and over two restarts */
        (void)world_run_for(2 * longest_ms(), NULL);
    restart();
    (void)world_run_for(2 * longest_ms(), NULL);
    restart();
    audit_release();
    audit_end_of_waiting();
}

/* --- Orders while a delivery is under way --- */

static bool
all_are_asked(void)
{
    for (unsigned i = 0; i < audit.watched_count; i++)
        if (audit.watched[i].tries == 0)
            return false;
    return true;
}

/* The hop takes its time for the reply to RCPT, and then refuses. */
static void
begin_slowly(unsigned count)
{
    struct teller *t = &audit.tellers[0];
    struct hop_mood slow = {.rcpt = 1000, .reply_ms = SLOW_REPLY_MS};
    audit.watched_count = 0;
    world_set_moods(&slow);
    model_on_attempted(audit_attempted);
    teller_greet(t);
    for (unsigned i = 0; i < count; i++) {
        struct model_message *m = new_message(1, 200);
        m->rcpts[0].domain = 0;
        give(t, m, 1, false);
        watch(m);
    }
    teller_end(t);
}

/* One at a time: each is ordered within its first attempt. */
static void
order_within(const char *first, const char *second, const char *third)
{
    begin_slowly(1);
    if (!world_run_for(longest_ms(), all_are_asked))
        roof_break("in time", NULL, "new mail is not tried");
    struct watched *w = &audit.watched[0];
    struct model_rcpt *r = &w->message->rcpts[0];
    r->may_vanish = strcmp(third, "rm") == 0;
    if (strcmp(third, "bounce") == 0)
        model_refused(r);
    const char *orders[] = {first, second, third};
    for (unsigned i = 0; i < 3; i++)
        if (orders[i][0] != '\0') {
            operator_order(orders[i], w->message);
            (void)world_run_for(SLOW_REPLY_MS / 20, NULL);
            law_truth_ask();
            (void)world_run_for(SLOW_REPLY_MS / 20, NULL);
        }
    (void)world_run_for(2 * SLOW_REPLY_MS, NULL);
    w->rests = true;
}

static void
audit_orders(void)
{
    struct hop_mood good = {0};
    order_within("", "", "rm");
    (void)world_run_for(longest_ms(), NULL);
    order_within("", "", "bounce");
    const struct model_message *bounced = audit.watched[0].message;
    (void)world_run_for(longest_ms(), NULL);
    if (bounced->rcpts[0].failed != 1)
        roof_break("once", bounced->id, "m%u was bounced, and is reported %u times",
                   bounced->number, bounced->rcpts[0].failed);
    order_within("hold", "release", "hold");
    restart();
    (void)world_run_for(longest_ms(), NULL);
    world_set_moods(&good);
    audit.watched[0].rests = false;
    audit.watched[0].tried_ms = 0;
    operator_order("release", audit.watched[0].message);
    audit_departure("mail that was held in its delivery");
    model_on_attempted(NULL);
}

/* The clock is set far ahead while mail is in a delivery, and back: its age is that of the
 * time that has passed. */
static void
audit_step_within(void)
{
    struct hop_mood good = {0};
    begin_slowly(1);
    (void)world_run_for(longest_ms(), all_are_asked);
    world_step_clock(30 * DAY_MS);
    (void)world_run_for(2 * SLOW_REPLY_MS, NULL);
    model_on_attempted(NULL);
    world_step_clock(-30 * DAY_MS);
    world_set_moods(&good);
    (void)world_run_for(longest_ms(), is_gone);
    audit_departure("mail of a clock that was set within its delivery");
}

/* Some recipients fail, others wait: their report comes first, and nothing is left of it
 * in the end. */
static void
audit_mixed(bool with_cut)
{
    struct teller *t = &audit.tellers[0];
    struct hop_mood good = {0}, mixed = {.rcpt = 700, .never = 300};
    world_set_moods(&mixed);
    teller_greet(t);
    for (unsigned i = 0; i < 2; i++)
        give(t, new_message(6, 400), 6, false);
    teller_end(t);
    (void)world_run_for(2 * longest_ms(), NULL);
    if (with_cut)
        world_cut();
    world_set_moods(&good);
    (void)world_run_for(longest_ms(), is_gone);
    audit_departure("mail with recipients of many fates");
}

/* One recipient has its mail, and the other is slow: the host is killed some time after the
 * first, who does not get it again. */
static void
audit_slow_second(void)
{
    struct teller *t = &audit.tellers[0];
    struct hop_mood good = {0}, slow = {.reply_ms = 40 * 1000};
    if (model_domains() < 2)
        return;
    world_set_moods(&slow);
    world_set_first_mood(&good);
    struct model_message *m = new_message(2, 400);
    m->rcpts[0].domain = 0;
    m->rcpts[1].domain = 1;
    teller_greet(t);
    give(t, m, 2, false);
    teller_end(t);
    (void)world_run_for(SETTLED_MS, NULL);
    world_restart(true);
    world_set_moods(&good);
    (void)world_run_for(longest_ms(), is_gone);
    audit_departure("mail with a slow recipient");
}

/* --- A flood --- */

static bool
all_are_answered(void)
{
    for (unsigned i = 0; i < AUDIT_FLOOD; i++)
        if (audit.tellers[i].code == 0 && !audit.tellers[i].over)
            return false;
    return true;
}

bool
audit_begin_flood(struct model_message *m[AUDIT_FLOOD])
{
    const struct options *o = audit_options();
    if (o->server.clients.sessions < 4 * AUDIT_FLOOD ||
        o->manager.queue.journal_size == 0 ||
        o->manager.queue.journal_message_max < FLOOD_OCTETS + 8192)
        return false;
    for (unsigned i = 0; i < AUDIT_FLOOD; i++) {
        struct teller *t = &audit.tellers[i];
        m[i] = new_message(1, FLOOD_OCTETS - roof_below(FLOOD_OCTETS / 6));
        expect(t, teller_begin(t, i), 220, "a client of a flood is greeted");
        expect(t, teller_say(t, "EHLO flood.test"), 250, "EHLO");
        expect(t, teller_mail(t, m[i]), 250, "MAIL");
        expect(t, teller_rcpt(t, &m[i]->rcpts[0]), 250, "RCPT");
        m[i]->rcpts[0].accepted = true;
        t->code = 0;
        char command[LINE_SIZE];
        snprintf(command, sizeof(command), "BDAT %zu LAST\r\n", m[i]->content.length);
        peer_say(&t->peer, text_from(command));
        peer_say(&t->peer,
                 text_before(buffer_text(&m[i]->content), m[i]->content.length - 1));
    }
    (void)world_run_for(1000, NULL);
    return true;
}

void
audit_end_flood(struct model_message *m[AUDIT_FLOOD], bool may_fail)
{
    for (unsigned i = 0; i < AUDIT_FLOOD; i++)
        if (!audit.tellers[i].over)
            peer_say(&audit.tellers[i].peer, TEXT("\n"));
    (void)world_run_for(ANSWER_MS, all_are_answered);
    for (unsigned i = 0; i < AUDIT_FLOOD; i++) {
        struct teller *t = &audit.tellers[i];
        expect(t, t->code != 0 || t->over, true, "a client of a flood hears a reply");
        if (t->code == 250)
            take_id(t, m[i]);
        else
            m[i]->state = MODEL_REFUSED;
        if (!may_fail)
            expect(t, t->code, 250, "a message of a flood is taken");
        teller_end(t);
    }
}

/* More comes together than the journal has room for: all of it is taken, some later. */
void
audit_flood(void)
{
    struct model_message *m[AUDIT_FLOOD];
    if (!audit_begin_flood(m))
        return;
    audit_end_flood(m, false);
    audit_departure("mail of a flood");
}

/* The power goes some time after mail has left: it does not come back, though the journal
 * was used all around meanwhile. */
static void
audit_power(void)
{
    if (host.daemon.started->options.manager.queue.journal_size == 0)
        return; /* removals are not synced (doc/dev/queue.md) */
    for (unsigned i = 0; i < 3; i++) {
        audit_mixed(true);
        audit_flood();
    }
    (void)world_run_for(SETTLED_MS, NULL);
    world_cut();
    (void)world_run_for(longest_ms(), NULL);
}

/* --- Sites that were away --- */

void
audit_give_to_first(unsigned count)
{
    struct teller *t = &audit.tellers[0];
    teller_greet(t);
    for (unsigned i = 0; i < count; i++) {
        struct model_message *m = new_message(1, 100);
        m->rcpts[0].domain = 0;
        give(t, m, 1, false);
    }
    teller_end(t);
}

/* Each message that was given to it while it was away has been stored. Where the model knows
 * no lifetime, because the clock was set far and often, no mail is open. */
static bool
is_revived(void)
{
    for (unsigned i = model_count() - REVIVED; i < model_count(); i++)
        if (model_at(i)->rcpts[0].stored == 0)
            return false;
    return is_gone();
}

/* A site that was away is found by a probe, not when its mail is due; and then it gets
 * sessions again. A clock that is set meanwhile changes neither. */
static void
audit_revival(void)
{
    const struct options *o = audit_options();
    struct hop_mood good = {0}, slow = {.reply_ms = 500};
    int64_t away_ms = 40 * MINUTE_MS, probe_ms = away_ms / 40 + LATE_MS;
    bool many =
        o->transport.concurrency_limit != 1 && o->manager.sched.session_limit > 4 &&
        o->transport.rate_delay_ms == 0 && o->transport.transport_rate_delay_ms == 0 &&
        o->manager.sched.active_limit > 4 && o->manager.sched.recipient_limit > 40;
    if (o->transport.failed_cohort_limit == 0 || !o->transport.adaptive)
        return;             /* mail waits until it is due */
    audit_give_to_first(1); /* or it may have been away for a day before this */
    if (!world_run_for(longest_ms(), is_gone))
        return;
    (void)world_run_for(SETTLED_MS, NULL); /* until the daemon knows it */
    world_set_hops(false);
    audit_give_to_first(REVIVED);
    (void)world_run_for(away_ms, NULL);
    if (roof_chance(500))
        world_step_clock(-10 * 60 * MINUTE_MS);
    hops_forget_most();
    world_set_moods(&slow);
    world_set_hops(!roof_breaks("probe"));
    if (!world_run_for(probe_ms + REVIVED * 5000 + LATE_MS +
                           o->transport.rate_delay_ms * REVIVED,
                       is_revived)) {
        model_print();
        roof_break("in time", NULL, "a site is back, and its mail waits");
    }
    if (many && hops_most() < 2)
        roof_break("bounds", NULL, "a site that is back never gets a second session");
    world_set_moods(&good);
}

/* --- Content without lines, damage, clocks, and mail that waits in memory --- */

/* To a host that takes it as it is. */
static void
audit_binary(void)
{
    struct teller *t = &audit.tellers[0];
    char sender[MODEL_ADDRESS_MAX];
    struct model_message *m = new_message(1, 30000);
    m->rcpts[0].domain = 0;
    teller_greet(t);
    model_sender_address(m, sender);
    expect(t, teller_say(t, "MAIL FROM:<%s> BODY=BINARYMIME", sender), 250, "MAIL");
    expect(t, teller_rcpt(t, &m->rcpts[0]), 250, "RCPT");
    m->rcpts[0].accepted = true;
    expect(t, teller_content(t, m, true), 250, "BDAT");
    take_id(t, m);
    teller_end(t);
    audit_departure("binary mail");
}

/* --- For the other files of the audit --- */

int64_t
audit_longest_ms(void)
{
    return longest_ms();
}

bool
audit_has_gone(int64_t ms)
{
    return world_run_for(ms, is_gone);
}

void
audit_settle(void)
{
    (void)world_run_for(SETTLED_MS, NULL); /* the last reply is on its way */
    if (host.daemon.started->options.manager.queue.journal_size == 0)
        sim_disk_settle();
}

struct model_message *
audit_message(unsigned domain, unsigned rcpts, size_t size)
{
    struct model_message *m = new_message(rcpts, size);
    for (unsigned i = 0; i < rcpts; i++)
        m->rcpts[i].domain = domain;
    return m;
}

struct model_message *
audit_give(unsigned domain, unsigned rcpts)
{
    struct teller *t = &audit.tellers[0];
    struct model_message *m = audit_message(domain, rcpts, 200);
    teller_greet(t);
    give(t, m, rcpts, false);
    teller_end(t);
    return m;
}

bool
audit_give_and_stay(unsigned domain, unsigned rcpts, int64_t ms, bool (*over)(void))
{
    struct teller *t = &audit.tellers[0];
    teller_greet(t);
    give(t, audit_message(domain, rcpts, 200), rcpts, false);
    bool is_over = world_run_for(ms, over);
    teller_end(t);
    return is_over;
}

/* As far as its content, which goes in one chunk. False: a disk that fails now refuses the
 * sender. */
static bool
begin_message(struct teller *t, struct model_message *m)
{
    char command[LINE_SIZE];
    teller_greet(t);
    if (teller_mail(t, m) == 451 && world_has_failed()) {
        m->state = MODEL_REFUSED;
        return false;
    }
    expect(t, t->code, 250, "MAIL");
    for (unsigned i = 0; i < m->rcpt_count; i++) {
        expect(t, teller_rcpt(t, &m->rcpts[i]), 250, "RCPT");
        m->rcpts[i].accepted = true;
    }
    m->state = MODEL_MAYBE;
    snprintf(command, sizeof(command), "BDAT %zu LAST\r\n", m->content.length);
    peer_say(&t->peer, text_from(command));
    peer_say(&t->peer, buffer_text(&m->content));
    return true;
}

int
audit_try(struct model_message *m)
{
    struct teller *t = &audit.tellers[0];
    int code = begin_message(t, m) ? teller_wait(t) : t->code;
    if (code == 250)
        take_id(t, m);
    else if (code != 0)
        m->state = MODEL_REFUSED;
    teller_end(t);
    return code;
}

void
audit_give_and_leave(struct model_message *m)
{
    struct teller *t = &audit.tellers[0];
    if (begin_message(t, m))
        (void)world_run_for(ARRIVED_MS, NULL);
    if (!t->over)
        peer_cut(&t->peer, PEER_RESET);
}

bool
audit_give_to_dying(struct model_message *m, unsigned calls, bool by_cut)
{
    struct teller *t = &audit.tellers[0];
    bool has_begun = begin_message(t, m);
    host.dies_after = calls;
    host.dies_by_cut = by_cut;
    if (has_begun && teller_wait(t) == 250)
        take_id(t, m);
    bool has_died = t->code == 0;
    if (!by_cut)
        host.dies_after = 0;
    teller_end(t);
    return has_died;
}

static void
audit_limits(void)
{
    set_limits(true);
    audit_crowds();
    audit_transactions();
    set_limits(false);
}

static void
audit_mixed_without_cut(void)
{
    audit_mixed(false);
}

/* Kills, cuts and faults, twice: a loss needs luck. */
static void
audit_losses(void)
{
    for (unsigned i = 0; i < (world_is_dense() ? LOSSES : 1); i++) {
        audit_results();
        audit_disk();
        if (world_is_dense())
            audit_order();
    }
}

static void
audit_more(void)
{
    if (world_is_dense())
        audit_again();
}

static const struct {
    void (*ask)(void);
    unsigned permille;
} parts[] = {
    {audit_limits,            ALWAYS},
    {audit_silence,           ALWAYS},
    {audit_rate,              ALWAYS},
    {audit_flood,             500   },
    {audit_orders,            ALWAYS},
    {audit_step_within,       ALWAYS},
    {audit_slow_second,       ALWAYS},
    {audit_mixed_without_cut, ALWAYS},
    {audit_waiting,           ALWAYS},
    {audit_binary,            ALWAYS},
    {audit_power,             300   },
    {audit_revival,           ALWAYS},
    {audit_sites,             ALWAYS},
    {audit_losses,            ALWAYS},
    {audit_rot,               ALWAYS}, /* behind the last cut, which may bring back mail */
    {audit_clock_ahead,       300   },
    {audit_lifetimes,         500   },
    {audit_crowd,             ALWAYS},
    {audit_more,              ALWAYS},
};

void
audit_run(void)
{
    size_t sockets = world_sockets();
    for (unsigned i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        if ((parts[i].permille == ALWAYS || roof_chance(parts[i].permille)) &&
            plan_takes("ask", i))
            parts[i].ask();
    model_judge();
    restart();
    (void)world_run_for(30 * MINUTE_MS, NULL);
    if (world_sockets() != sockets)
        roof_break("clean", NULL, "%zu sockets were open, and after a start %zu are",
                   sockets, world_sockets());
}
