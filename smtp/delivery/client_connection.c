/* Moves bytes between a socket and the client machine.
 *
 * pump_client() is the only function that calls client_next(): it passes input, handles
 * the events, sends the output, and starts the time-out of the reply that is now
 * awaited. The owner may send the next message within an event (pumping); the pump that
 * is under way then sends its commands.
 *
 * Work on a message is between client_connection_enter() and _leave(), so that a crash
 * is attributed to it. */
#include "smtp/delivery/client_connection.h"

#include "base/event/event.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "smtp/client/content_reader.h"
#include "smtp/deadline.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* Two time-outs exclude each other: `deadline` is that of the awaited reply, the
 * time-out of the socket that of the next byte of content. Within content
 * `content_timer` demands the least rate in addition: a peer that takes a byte now and
 * then would otherwise hold the session as long as it likes. */
struct client_connection {
    struct client_connection_settings settings;
    char *hostname, *redirect_to, *site;
    struct transcript *transcript; /* NULL: nobody keeps it */
    int64_t begun_ms;              /* since 1970 */
    client_connection_happened *on_event;
    void *context;
    struct net_connection *connection; /* NULL: closed */
    struct client *client;
    bool pumping, closed;
    bool lost;     /* the peer has closed */
    bool securing; /* from CLIENT_SECURE to the end of the handshake */
    char tls[160];
    unsigned turn;     /* client_turn() of the deadline */
    int64_t turned_ms; /* monotonic: its beginning */
    struct loop_timer deadline;
    /* The least rate within content: bytes sent so far, and taken at the last check. */
    struct deadline content_deadline;
    struct deadline_rules content_rules;
    int64_t said, taken;
    struct loop_timer content_timer;
    struct loop_task task;
    void (*pump)(void *context); /* the work of task */

    const struct envelope *envelope; /* of the mail under way */
    struct id mails[2];        /* sent and not done: the one under way, and the next */
    struct outgoing *forms[2]; /* of these; NULL: as stored */
    unsigned mail_count;
    bool in_content;
    struct content_reader reader;
    struct downgrade *downgrade; /* while the content is scanned or converted */
    enum downgrade_verdict verdict;
    struct signing_pass *signing; /* of the mail under way; NULL: unsigned */
    bool hashing;                 /* the content is read for it */
    struct loop_task scan;
};

/* A crash from now on is attributed to the mail under way. */
static struct id
client_connection_enter(struct client_connection *s)
{
    if (s->settings.queue == NULL)
        return (struct id){0};
    return queue_enter(s->settings.queue,
                       s->mail_count > 0 ? s->mails[0] : s->settings.first);
}

static void
client_connection_leave(struct client_connection *s, struct id before)
{
    if (s->settings.queue != NULL)
        queue_leave(s->settings.queue, before);
}

/* Sends the machine's output. */
static void
client_connection_flush(struct client_connection *s)
{
    struct buffer *output = client_output(s->client);
    if (s->connection != NULL && !s->lost && output->length > 0) {
        net_send(s->connection, buffer_text(output));
        s->said += (int64_t)output->length;
    }
    buffer_clear(output);
}

/* --- Content ---------------------------------------------------------------------- */

/* Content is read in pieces, only as fast as the peer takes it. Content that may have to
 * be converted, or is to be signed, is read in whole before MAIL, a part in each turn, and
 * once more when it is sent. */

/* Bytes of content. Dot-stuffed they are at most twice as many, so that no more than
 * NET_HIGH_WATER waits in the socket's buffer; converted content may exceed that. */
enum {
    PIECE = CONTENT_READER_PIECE,
    PAUSE = NET_HIGH_WATER - 2 * PIECE,
    SCAN_PER_TURN = 512 * 1024,
    HASHED_NOW =
        32 * 1024 /* 0.1 ms: a turn of its own costs more where mail is small */
};
static_assert((int)PAUSE >= (int)NET_LOW_WATER, "NET_DRAINED would not come");
static_assert((int)PIECE <= (int)CLIENT_PIECE_MAX, "a piece fits");

/* --- Content ------------------------------------------------------------------- */

static void
client_connection_forget_content(struct client_connection *s)
{
    content_reader_close(&s->reader);
    loop_unpost(s->settings.loop, &s->scan);
    loop_timer_stop(s->settings.loop, &s->content_timer);
    s->in_content = false;
    downgrade_free(&s->downgrade);
}

/* The file is damaged or cannot be read, which says nothing about the host. The
 * connection ends before the end of the content, so that the peer does not accept a
 * part. */
static void
content_failed(struct client_connection *s, const char *why)
{
    char id[ID_LENGTH + 1];
    id_format(s->envelope->id, id);
    log_say(s->settings.log, LOG_LEVEL_ERROR, s->settings.lmtp ? "lmtp" : "smtp", id,
            "cannot send the content: %s", why);
    struct outcome outcome = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.0",
                                          "queue file: %s", why);
    client_abandon(s->client, &outcome);
}

static bool
client_connection_begin_content(struct client_connection *s)
{
    const char *why;
    assert(!s->in_content && s->envelope != NULL);
    if (content_reader_open(&s->reader, s->settings.queue, s->envelope,
                            s->forms[s->mail_count - 1], &why))
        return true;
    content_failed(s, why);
    return false;
}

/* Bytes that the socket has taken since the last call; the kernel holds some of them. */
static int64_t
client_connection_newly_taken(struct client_connection *s)
{
    int64_t before = s->taken;
    int64_t taken = s->said - (int64_t)net_unsent(s->connection);
    s->taken = taken > before ? taken : before; /* TLS adds bytes */
    return s->taken - before;
}

/* Each byte that is taken begins the time-out anew; this deadline it does not move. */
static void
client_connection_watch_content(struct client_connection *s)
{
    struct loop *loop = s->settings.loop;
    int64_t due_ms = deadline_due_ms(&s->content_deadline, &s->content_rules);
    if (due_ms < INT64_MAX)
        loop_timer_start(loop, &s->content_timer, due_ms - loop_monotonic_ms(loop),
                         s->content_timer.fire, s);
}

/* A converter's output. */
static void
say_content(void *context, struct text bytes)
{
    struct client_connection *s = context;
    for (; bytes.length > 0; bytes = text_after(bytes, CLIENT_PIECE_MAX))
        client_content(s->client, text_before(bytes, CLIENT_PIECE_MAX));
}

static void
client_connection_start_content(struct client_connection *s)
{
    s->in_content = client_connection_begin_content(s);
    if (!s->in_content)
        return;
    s->content_rules = (struct deadline_rules){.data_ms = client_timeout_ms(s->client),
                                               .data_rate = s->settings.data_rate_min};
    /* The bytes taken before are commands. */
    (void)client_connection_newly_taken(s);
    deadline_noted(&s->content_deadline, true, 0, true,
                   loop_monotonic_ms(s->settings.loop));
    client_connection_watch_content(s);
    /* DKIM-Signature stands above all other fields. */
    if (s->signing != NULL)
        say_content(s, signing_pass_result(s->signing)->fields);
}

static void
content_end(struct client_connection *s)
{
    if (s->downgrade)
        downgrade_end(s->downgrade);
    client_content_end(s->client);
    client_connection_forget_content(s);
}

/* False: the content has ended or failed. */
static bool
content_step(struct client_connection *s)
{
    struct text piece;
    const char *why;
    enum progress progress = content_reader_read(&s->reader, &piece, &why);
    if (progress == PROGRESS_BAD)
        content_failed(s, why);
    else if (progress == PROGRESS_DONE)
        content_end(s);
    else if (s->downgrade)
        downgrade_add(s->downgrade, piece);
    else
        client_content(s->client, piece);
    return progress == PROGRESS_MORE;
}

/* Content goes into the socket's buffer up to a limit; NET_DRAINED continues. So a
 * large message takes a bounded amount of memory, however slowly the peer reads. */
static void
client_connection_pump_content(struct client_connection *s)
{
    while (s->in_content && net_unsent(s->connection) < PAUSE) {
        bool more = content_step(s);
        client_connection_flush(s);
        if (!more)
            break;
    }
}

/* --- Preparing: conversion and signature --------------------------------------- */

/* With CONVERTIBLE the converter goes on to the content. */
static void
end_preparing(struct client_connection *s)
{
    bool converts = s->verdict == DOWNGRADE_CONVERTIBLE;
    uint64_t size_max = converts ? downgrade_size_max(s->downgrade) : 0;
    size_t added =
        s->signing != NULL ? signing_pass_result(s->signing)->fields.length : 0;
    content_reader_close(&s->reader);
    s->hashing = false;
    client_prepared(s->client, s->verdict,
                    s->downgrade != NULL ? downgrade_reason_text(s->downgrade) : "",
                    size_max, added);
    if (converts)
        downgrade_start(s->downgrade, say_content, s);
    else
        downgrade_free(&s->downgrade);
}

/* Never unsigned where a key fits: the mail waits. */
static void
on_signed(void *context)
{
    struct client_connection *s = context;
    struct id before = client_connection_enter(s);
    struct outcome outcome = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.0",
                                          "cannot sign the message (dkim_keys)");
    if (signing_pass_result(s->signing)->failed)
        client_abandon(s->client, &outcome);
    else
        end_preparing(s);
    client_connection_leave(s, before);
    s->pump(s);
}

static void
hash_content(void *context, struct text bytes)
{
    struct client_connection *s = context;
    signing_pass_add(s->signing, bytes);
}

/* Only mail that is ours. */
static bool
client_connection_signs(const struct client_connection *s, const struct envelope *e)
{
    return s->settings.signing != NULL && e->ours && !s->settings.lmtp &&
           s->redirect_to == NULL && signing_is_on(s->settings.signing);
}

/* Begins the pass over the form that will leave. False: nothing is to be signed, or it
 * cannot be read. */
static bool
begin_hashing(struct client_connection *s)
{
    assert(s->signing == NULL);
    content_reader_close(&s->reader);
    if (s->verdict == DOWNGRADE_FRAGMENT || !client_connection_signs(s, s->envelope)) {
        end_preparing(s);
        return false;
    }
    if (!client_connection_begin_content(s))
        return false;
    s->hashing = true;
    s->signing = signing_pass_new(
        s->settings.signing, s->envelope, outgoing_sender(s->forms[0], s->envelope),
        client_signing_form(s->client, s->verdict), outgoing_header(s->forms[0]));
    if (s->verdict == DOWNGRADE_CONVERTIBLE)
        downgrade_start(s->downgrade, hash_content, s);
    return true;
}

/* False: there is more to do. */
static bool
end_scan(struct client_connection *s)
{
    s->verdict = downgrade_scan_end(s->downgrade);
    char id[ID_LENGTH + 1];
    id_format(s->envelope->id, id);
    bool converts = s->verdict == DOWNGRADE_CONVERTIBLE;
    const char *why =
        downgrade_breaks_dkim(s->downgrade) ? "; its DKIM signature breaks" : "";
    if (s->verdict != DOWNGRADE_NOT_NEEDED)
        log_say(s->settings.log, LOG_LEVEL_INFO, s->settings.lmtp ? "lmtp" : "smtp", id,
                "%sconverted for %s, which does not offer %s%s%s",
                converts ? "" : "not ", s->settings.peer.remote,
                s->envelope->binary ? "BINARYMIME" : "8BITMIME", converts ? "" : ": ",
                converts ? why : downgrade_reason_text(s->downgrade));
    return !begin_hashing(s);
}

/* The end of the pass; its signature comes in a later turn, and the pump with it. */
static void
end_hashing(struct client_connection *s)
{
    if (s->verdict == DOWNGRADE_CONVERTIBLE && !signing_pass_has_enough(s->signing))
        downgrade_end(s->downgrade);
    signing_pass_end(s->signing, on_signed, s);
}

/* False: there is more to do. */
static bool
end_reading(struct client_connection *s)
{
    if (!s->hashing)
        return end_scan(s);
    end_hashing(s);
    return true;
}

static void
take_piece(struct client_connection *s, struct text piece)
{
    if (!s->hashing)
        downgrade_scan(s->downgrade, piece);
    else if (s->verdict == DOWNGRADE_CONVERTIBLE)
        downgrade_add(s->downgrade, piece);
    else
        signing_pass_add(s->signing, piece);
}

/* SCAN_PER_TURN bytes at most: the loop serves others, too. False: there is more. */
static bool
scan_some(struct client_connection *s)
{
    struct text piece;
    const char *why;
    for (size_t done = 0; done < SCAN_PER_TURN; done += piece.length) {
        if (s->hashing && signing_pass_has_enough(s->signing))
            return end_reading(s);
        enum progress progress = content_reader_read(&s->reader, &piece, &why);
        if (progress == PROGRESS_MORE) {
            take_piece(s, piece);
            continue;
        }
        if (progress == PROGRESS_DONE)
            return end_reading(s);
        content_failed(s, why);
        return true;
    }
    return false;
}

static void
client_connection_scan(void *context)
{
    struct client_connection *s = context;
    struct id before = client_connection_enter(s);
    bool ended = scan_some(s);
    client_connection_leave(s, before);
    loop_post(s->settings.loop, ended ? &s->task : &s->scan,
              ended ? s->pump : client_connection_scan, s);
}

/* Before MAIL: reads all content, a part in each turn, if it may have to be converted,
 * or is to be signed. client_prepared() is called then, or client_abandon(). */
static void
client_connection_prepare(struct client_connection *s)
{
    assert(s->downgrade == NULL && !s->hashing);
    s->verdict = DOWNGRADE_NOT_NEEDED;
    if (client_converts(s->client)) {
        struct downgrade_way way = client_way(s->client);
        if (!client_connection_begin_content(s))
            return;
        s->downgrade = downgrade_new(&way);
    } else if (!begin_hashing(s)) {
        return;
    }
    if (s->hashing && s->envelope->content_size <= HASHED_NOW && scan_some(s))
        return;
    loop_post(s->settings.loop, &s->scan, client_connection_scan, s);
}

enum { SECURED_TEXT_MAX = 128 };

/* --- The line ------------------------------------------------------------------ */

/* A message whose end was not sent must not be completed by bytes that wait in the
 * socket: it is aborted. */
static void
hang_up(struct client_connection *s)
{
    client_connection_flush(s);
    if (s->connection != NULL && (s->in_content || s->securing))
        net_abort(&s->connection);
    else if (s->connection != NULL)
        net_close(&s->connection);
    client_connection_forget_content(s);
    signing_pass_free(&s->signing);
    loop_timer_stop(s->settings.loop, &s->deadline);
    loop_unpost(s->settings.loop, &s->task);
    s->closed = true;
}

/* --- The conversation ---------------------------------------------------------- */

static void
client_connection_begin_transcript(struct client_connection *s)
{
    struct loop *loop = s->settings.loop;
    if (s->settings.failed_dialogues == NULL)
        return;
    s->site = memory_string(s->settings.site);
    s->transcript = memory_new(sizeof(*s->transcript));
    s->transcript->begun_ms = s->transcript->now_ms = loop_monotonic_ms(loop);
    s->begun_ms = loop_now_ms(loop);
}

static void
client_connection_clock(struct client_connection *s)
{
    if (s->transcript != NULL)
        s->transcript->now_ms = loop_monotonic_ms(s->settings.loop);
}

/* After each message, since others may follow for a long time. */
static void
client_connection_keep_failure(struct client_connection *s)
{
    if (s->transcript == NULL || !s->transcript->failed)
        return;
    s->transcript->failed = false;
    failed_dialogues_keep(s->settings.failed_dialogues, s->site,
                          s->settings.peer.remote, s->begun_ms, s->transcript);
}

/* --- Crashes ------------------------------------------------------------------- */

/* --- The machine --------------------------------------------------------------- */

/* The owner gets all events but those about content and TLS, which end here. */
static void
handle(struct client_connection *s, const struct client_event *event)
{
    switch (event->kind) {
    case CLIENT_CONTENT:
        client_connection_start_content(s);
        client_connection_pump_content(s);
        return;
    case CLIENT_PREPARE:
        client_connection_prepare(s);
        return;
    case CLIENT_OVER:
        client_connection_keep_failure(s);
        hang_up(s);
        break;
    case CLIENT_DONE:
        client_connection_keep_failure(s);
        assert(s->mail_count > 0 && !s->in_content);
        downgrade_free(&s->downgrade); /* no recipient was accepted */
        signing_pass_free(&s->signing);
        outgoing_free(&s->forms[0]);
        s->mails[0] = s->mails[1];
        s->forms[0] = s->forms[1];
        s->forms[1] = NULL;
        s->mail_count--;
        break;
    case CLIENT_SECURE:
        s->securing = true; /* TLS starts when the 220 is off the input */
        return;
    case CLIENT_READY:
    case CLIENT_VERDICT:
    case CLIENT_LATER:
    case CLIENT_EARLY:
    case CLIENT_PROBED:
        break;
    }
    s->on_event(s->context, event);
}

/* Starts the time-out of the awaited reply, or of the next byte of content. Bytes that
 * do not complete a reply do not change the turn, so that a peer that sends a reply
 * byte by byte gets no more time. */
static void
rearm(struct client_connection *s)
{
    int64_t timeout_ms = client_timeout_ms(s->client);
    if (s->closed || s->turn == client_turn(s->client))
        return;
    s->turn = client_turn(s->client);
    s->turned_ms = loop_monotonic_ms(s->settings.loop);
    loop_timer_stop(s->settings.loop, &s->deadline);
    net_set_timeout(s->connection, s->in_content ? timeout_ms : 0);
    if (!s->in_content && timeout_ms > 0)
        loop_timer_start(s->settings.loop, &s->deadline, timeout_ms, s->deadline.fire,
                         s);
}

/* The trust anchors are read here and not at the start of the connection: after a
 * reload between the two the new ones count. */
static void
start_tls(struct client_connection *s)
{
    struct net_tls tls = {.client = *s->settings.tls,
                          .options = security_tls_options(&s->settings.security)};
    net_start_tls(s->connection, &tls);
}

static void
pump_client(struct client_connection *s)
{
    struct client_event event;
    bool was_securing = s->securing;
    if (s->closed)
        return;
    client_connection_clock(s);
    struct text input = net_input(s->connection);
    size_t before = input.length;
    assert(!s->pumping);
    s->pumping = true;
    while (!s->closed && client_next(s->client, &input, &event)) {
        handle(s, &event);
        (void)client_connection_enter(s); /* the next event may be another mail's */
    }
    s->pumping = false;
    if (s->closed)
        return;
    net_consume(s->connection, before - input.length);
    client_connection_flush(s);
    if (s->securing && !was_securing)
        start_tls(s);
    rearm(s);
}

/* Logging in takes computing: a part in each turn, so that others are served. */
static void
client_connection_work(void *context)
{
    struct client_connection *s = context;
    client_work(s->client);
    pump_client(s);
    if (!s->closed && client_is_working(s->client))
        loop_post(s->settings.loop, &s->task, s->task.run, s);
}

/* The task may be posted for news that this pump has just handled; only computing is
 * left to do then. */
static void
client_connection_pump(void *context)
{
    struct client_connection *s = context;
    struct id before = client_connection_enter(s);
    pump_client(s);
    client_connection_leave(s, before);
    loop_unpost(s->settings.loop, &s->task);
    if (!s->closed && client_is_working(s->client))
        loop_post(s->settings.loop, &s->task, client_connection_work, s);
}

static void
client_connection_on_deadline(void *context)
{
    struct client_connection *s = context;
    client_timed_out(s->client);
    client_connection_pump(s);
}

static void
client_connection_on_content_timer(void *context)
{
    struct client_connection *s = context;
    int64_t now_ms = loop_monotonic_ms(s->settings.loop);
    assert(s->in_content);
    deadline_noted(&s->content_deadline, true, client_connection_newly_taken(s), false,
                   now_ms);
    if (deadline_lasts(&s->content_deadline, &s->content_rules, now_ms))
        client_connection_watch_content(s);
    else
        client_connection_on_deadline(s);
}

static void
tell_secured(const struct client_connection *s)
{
    struct tls_facts f = net_tls_facts(s->connection);
    char tls[SECURED_TEXT_MAX];
    snprintf(tls, sizeof(tls), "%s with cipher %s%s", f.version, f.cipher,
             f.is_resumed ? ", resumed" : "");
    event_tell(s->settings.events,
               &(struct event){.kind = EVENT_SECURED,
                               .program = s->settings.lmtp ? "lmtp" : "smtp",
                               .relay = text_from(s->settings.peer.remote),
                               .tls = text_from(tls),
                               .text = f.is_verified || f.is_dane ? TEXT("Verified")
                                                                  : TEXT("Untrusted")});
}

/* How the peer has proven itself. */
static const char *
proof_word(const struct client_connection *s, const struct tls_facts *f)
{
    if (f->is_dane)
        return "dane";
    if (s->settings.security.proof == SECURITY_PROOF_STS)
        return "sts";
    return f->is_verified ? "verified" : "unverified";
}

static void
on_secured(struct client_connection *s)
{
    struct tls_facts f = net_tls_facts(s->connection);
    assert(s->securing);
    assert(f.is_verified || s->settings.security.level != TARGET_TLS_VERIFY);
    assert(f.is_dane || s->settings.security.proof != SECURITY_PROOF_DANE);
    s->securing = false;
    snprintf(s->tls, sizeof(s->tls), "%s/%s/%s", f.version, f.cipher,
             proof_word(s, &f));
    tell_secured(s);
    client_connection_clock(s);
    transcript_add(s->transcript, TRANSCRIPT_NOTE, text_from(s->tls));
    client_secured(s->client);
    client_connection_pump(s);
}

static const char *
why_ended(const struct client_connection *s)
{
    const char *why = net_error(s->connection);
    return why != NULL && why[0] != '\0' ? why : "closed";
}

/* First the peer's last words: they may say why it closed. */
static void
on_lost(struct client_connection *s)
{
    if (s->securing) {
        client_insecure(s->client, why_ended(s));
        client_connection_pump(s);
        return;
    }
    client_connection_pump(s);
    if (s->closed)
        return;
    s->lost = true;
    client_lost(s->client);
    client_connection_pump(s);
}

static void
client_connection_on_net(void *context, enum net_event event)
{
    struct client_connection *s = context;
    struct id before;
    switch (event) {
    case NET_CONNECTED:
        break; /* it was connected when we got it */
    case NET_SECURED:
        on_secured(s);
        break;
    case NET_INPUT:
        client_connection_pump(s);
        break;
    case NET_DRAINED:
        before = client_connection_enter(s);
        client_connection_pump_content(s);
        client_connection_leave(s, before);
        client_connection_pump(s);
        break;
    case NET_ENDED:
    case NET_FAILED:
        on_lost(s);
        break;
    case NET_TIMED_OUT:
        client_connection_on_deadline(s);
        break;
    }
}

static const struct outgoing_rules to_mailbox = {.to_mailbox = true};

/* --- The owner ----------------------------------------------------------------- */

struct client_connection *
client_connection_new(const struct client_connection_settings *settings,
                      client_connection_happened *on_event, void *context)
{
    struct client_connection *s = memory_new(sizeof(*s));
    s->settings = *settings;
    s->settings.log = event_hub_log(settings->events);
    /* A reload may replace the settings while the connection lasts. */
    s->hostname = memory_string(settings->hostname);
    /* Our own other hosts get each message as it is stored. */
    if (settings->redirect_to != NULL)
        s->settings.outgoing = NULL;
    else if (settings->lmtp)
        s->settings.outgoing = &to_mailbox;
    if (settings->redirect_to != NULL)
        s->redirect_to = memory_string(settings->redirect_to);
    s->on_event = on_event;
    s->context = context;
    s->pump = client_connection_pump;
    client_connection_begin_transcript(s);
    struct client_settings machine = {
        .hostname = s->hostname,
        .redirect_to = s->redirect_to,
        .to = settings->to,
        .peer = &s->settings.peer,
        .lmtp = settings->lmtp,
        .timeout_scale = settings->timeout_scale,
        .login = credentials_login(settings->login),
        .tls = settings->security.level,
        .demander = security_demander(&settings->security),
        .is_certain = settings->security.is_certain,
        .is_required = settings->security.is_required,
        .tls_implicit = settings->security.implicit,
        .other_scheme = security_other_scheme(
            &settings->security, settings->peer.port,
            settings->security.implicit ? ACTIVITY_HANDSHAKE : ACTIVITY_GREETING, 0),
        .tls_failed = settings->security.fallen_back,
        .transcript = s->transcript};
    s->client = client_new(&machine);
    s->connection = settings->connection;
    net_attach(s->connection, client_connection_on_net, s);
    if (settings->security.implicit) {
        s->securing = true;
        start_tls(s);
    }
    s->deadline.fire = client_connection_on_deadline;
    s->content_timer.fire = client_connection_on_content_timer;
    s->turn = client_turn(s->client) - 1; /* so that rearm() waits for the greeting */
    rearm(s);
    return s;
}

/* Within an event the pump sends the commands. Otherwise they leave now, and events
 * that need no input, such as a verdict for an unfit recipient, come in a later turn.
 */
void
client_connection_send(struct client_connection *s, const struct client_mail *mail)
{
    assert(!s->closed && !s->in_content && s->mail_count < 2);
    struct id before = queue_enter(s->settings.queue, mail->envelope->id);
    s->envelope = mail->envelope;
    s->mails[s->mail_count] = mail->envelope->id;
    const struct recipient *first = &mail->envelope->recipients[mail->indexes[0]];
    struct outgoing_rules rules = {0};
    if (s->settings.outgoing != NULL)
        rules = *s->settings.outgoing;
    rules.add_header = s->settings.add_header;
    rules.remove_header = s->settings.remove_header;
    if (s->settings.to != NULL && s->settings.to[0] != '\0')
        rules.original = first->address; /* it is the only one */
    s->forms[s->mail_count] = outgoing_new(
        s->settings.queue, mail->envelope, s->redirect_to == NULL ? first->way : NULL,
        s->settings.outgoing != NULL ? &rules : NULL, s->settings.log);
    if (s->settings.tagged && mail->count == 1)
        outgoing_tag(&s->forms[s->mail_count], mail->envelope, first,
                     s->settings.outgoing, loop_now_ms(s->settings.loop));
    struct client_mail formed = *mail;
    formed.outgoing = s->forms[s->mail_count++];
    formed.sign = client_connection_signs(s, mail->envelope);
    client_send(s->client, &formed);
    client_connection_leave(s, before);
    if (s->pumping)
        return;
    client_connection_flush(s);
    rearm(s);
    if (client_has_news(s->client))
        loop_post(s->settings.loop, &s->task, client_connection_pump, s);
}

void
client_connection_probe(struct client_connection *s, struct text sender,
                        struct text recipient)
{
    assert(s->pumping);
    client_probe(s->client, sender, recipient);
}

const char *
client_connection_tls(const struct client_connection *s)
{
    return s->tls;
}

const struct credentials *
client_connection_credentials(const struct client_connection *s)
{
    return s->settings.login;
}

void
client_connection_note_mail(const struct client_connection *s, struct timing *out)
{
    out->tls = s->tls;
    out->dkim = s->signing != NULL ? signing_pass_result(s->signing)->names : TEXT("");
    out->sender = s->mail_count > 0 && s->forms[0] != NULL
                      ? text_from(s->forms[0]->sender)
                      : TEXT("");
}

bool
client_connection_tls_failed(const struct client_connection *s)
{
    return client_tls_failed(s->client);
}

bool
client_connection_has_requiretls(const struct client_connection *s)
{
    return client_has_requiretls(s->client);
}

struct client_limits
client_connection_limits(const struct client_connection *s)
{
    return client_limits(s->client);
}

void
client_connection_activity(const struct client_connection *s, struct id message,
                           struct activity *out)
{
    struct loop *loop = s->settings.loop;
    const char *command;
    out->kind = s->closed ? ACTIVITY_NONE : client_activity(s->client, &command);
    out->since_ms = loop_now_ms(loop) - (loop_monotonic_ms(loop) - s->turned_ms);
    text_copy(out->remote, sizeof(out->remote), text_from(s->settings.peer.remote));
    for (unsigned i = 0; i < s->mail_count; i++)
        out->has_message |= id_compare(s->mails[i], message) == 0;
    if (out->kind == ACTIVITY_REPLY)
        text_copy(out->what, sizeof(out->what), text_from(command));
}

bool
client_connection_has_space(const struct client_connection *s)
{
    return !s->closed && client_has_space(s->client);
}

void
client_connection_abandon(struct client_connection *s, const struct outcome *outcome)
{
    assert(!s->closed && !s->pumping);
    client_abandon(s->client, outcome);
    client_connection_pump(s);
}

/* At the end of the turn: the owner may end a connection within one of its events. */
static void
client_connection_release(void *object)
{
    struct client_connection *s = object;
    client_free(&s->client);
    credentials_free(&s->settings.login);
    outgoing_free(&s->forms[0]);
    outgoing_free(&s->forms[1]);
    free(s->hostname);
    free(s->redirect_to);
    free(s->site);
    free(s->transcript);
    free(s);
}

void
client_connection_free(struct client_connection **connection)
{
    struct client_connection *s = *connection;
    if (s == NULL)
        return;
    client_connection_keep_failure(s);
    if (!s->closed) {
        client_quit(s->client);
        hang_up(s);
    }
    loop_release(s->settings.loop, client_connection_release, s);
    *connection = NULL;
}
