/* The content of the mail under way: read from the spool, scanned for conversion, signed,
 * and sent.
 *
 * Content is read in pieces, only as fast as the peer takes it. Content that may have to
 * be converted, or is to be signed, is read in whole before MAIL, a part in each turn, and
 * once more when it is sent. */
#include "smtp/delivery/client_connection_internal.h"

#include <assert.h>

/* Bytes of content. Dot-stuffed they are at most twice as many, so that no more than
 * NET_HIGH_WATER waits in the socket's buffer; converted content may exceed that. */
enum {
    PIECE = READER_PIECE,
    PAUSE = NET_HIGH_WATER - 2 * PIECE,
    SCAN_PER_TURN = 512 * 1024,
    HASHED_NOW =
        32 * 1024 /* 0.1 ms: a turn of its own costs more where mail is small */
};
static_assert((int)PAUSE >= (int)NET_LOW_WATER, "NET_DRAINED would not come");
static_assert((int)PIECE <= (int)CLIENT_PIECE_MAX, "a piece fits");

/* --- Content ------------------------------------------------------------------- */

void
client_connection_forget_content(struct client_connection *s)
{
    reader_close(&s->reader);
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
    if (reader_open(&s->reader, s->settings.queue, s->envelope,
                    s->forms[s->mail_count - 1], &why))
        return true;
    content_failed(s, why);
    return false;
}

int64_t
client_connection_newly_taken(struct client_connection *s)
{
    int64_t before = s->taken;
    int64_t taken = s->said - (int64_t)net_unsent(s->connection);
    s->taken = taken > before ? taken : before; /* TLS adds bytes */
    return s->taken - before;
}

void
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

void
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
    enum progress progress = reader_read(&s->reader, &piece, &why);
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

void
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
    reader_close(&s->reader);
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

bool
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
    reader_close(&s->reader);
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
        enum progress progress = reader_read(&s->reader, &piece, &why);
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

/* Whether the content must and can be converted, and its signature: all of it is read
 * before MAIL. */
void
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
