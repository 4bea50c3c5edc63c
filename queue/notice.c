/* Composes the report of a message's failures and successes, or delays, and commits it
 * as a new message. */
#include "queue/notice.h"

#include "base/loop.h"
#include "base/memory.h"
#include "mime/address.h"
#include "mime/header.h"
#include "mime/report.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADER_MAX = 64 * 1024,
    PIECE = 32 * 1024,
    ESCAPED_MAX = 4 /* of a byte of UTF-8: \x{80} for two */
};

static bool
wants_failure(const struct recipient *r)
{
    if (r->notify == NOTIFY_DEFAULT)
        return true;
    return (r->notify & NOTIFY_FAILURE) != 0 && (r->notify & NOTIFY_NEVER) == 0;
}

bool
notice_wants_delay(const struct recipient *r)
{
    if (r->notify == NOTIFY_DEFAULT)
        return true;
    return (r->notify & NOTIFY_DELAY) != 0 && (r->notify & NOTIFY_NEVER) == 0;
}

bool
notice_wants_success(const struct recipient *r)
{
    return (r->notify & NOTIFY_SUCCESS) != 0 && (r->notify & NOTIFY_NEVER) == 0;
}

/* "utf-8;..." is shown as it was given, in ASCII where the report is (RFC 6533 §3). */
static struct text
original_in_utf8(struct text given, bool utf8, struct buffer *out)
{
    size_t before = out->length;
    if (!(utf8 ? buffer_add(out, given) : address_write_utf8_xtext(given, out)))
        return TEXT("");
    return text_of(out->at + before, out->length - before);
}

/* ORCPT with its address decoded: "rfc822;a+b@c"; empty when there is none to show. */
static struct text
original_recipient(struct text given, bool utf8, struct buffer *out)
{
    size_t semicolon = text_find(given, ';');
    size_t before = out->length;
    if (text_starts_nocase(given, TEXT("utf-8;")) && text_is_utf8(given))
        return original_in_utf8(given, utf8, out);
    if (semicolon == TEXT_NONE || !buffer_add(out, text_before(given, semicolon + 1)) ||
        !address_read_xtext(text_after(given, semicolon + 1), out)) {
        out->length = before;
        return TEXT("");
    }
    return text_of(out->at + before, out->length - before);
}

static void
write_to_draft(void *context, struct text bytes)
{
    /* A failing disk is told at commit. */
    (void)!queue_write(context, bytes);
}

/* Length without an unfinished line at the end. */
static size_t
last_line_end(struct text t)
{
    size_t end = text_find_last(t, '\n');
    return end == TEXT_NONE ? 0 : end + 1;
}

/* Reads the header of the message as it was accepted, prefix included. */
static bool
read_header(struct queue *queue, const struct envelope *e, struct buffer *out)
{
    int content = queue_content_open(queue, e);
    if (content < 0)
        return false;
    if (!buffer_add(out, text_before(e->prefix, HEADER_MAX / 2)))
        assert(false && "half the limit fits");
    struct header_scan scan;
    header_scan_start(&scan);
    int64_t offset = 0;
    char *room;
    while (!scan.ended && (room = buffer_reserve(out, PIECE / 8)) != NULL) {
        int64_t got = queue_content_read(queue, content, offset, room, PIECE / 8);
        if (got <= 0)
            break;
        header_scan_add(&scan, text_of(room, (size_t)got));
        out->length += (size_t)got;
        offset += got;
    }
    size_t prefix = text_before(e->prefix, HEADER_MAX / 2).length;
    if (scan.ended)
        out->length = prefix + scan.length;
    else /* it ends nowhere, or beyond the limit: whole lines only */
        out->length = last_line_end(buffer_text(out));
    queue_content_close(queue, content);
    return true;
}

static void
copy_content(struct queue *queue, const struct envelope *e, struct queue_draft *draft)
{
    int content = queue_content_open(queue, e);
    if (content < 0)
        return;
    char *piece = memory_new(PIECE);
    int64_t offset = 0, got;
    while ((got = queue_content_read(queue, content, offset, piece, PIECE)) > 0) {
        write_to_draft(draft, text_of(piece, (size_t)got));
        offset += got;
    }
    free(piece);
    queue_content_close(queue, content);
}

/* What is told to whom; texts live in the buffer. */
struct composition {
    const struct envelope *envelope;
    const struct notice_delay *delays; /* of this kind; else the envelope's failures */
    size_t delay_count;
    struct report report;
    struct report_recipient *recipients;
    struct buffer texts;
    bool has_failure; /* else only the header goes back (RFC 3461 §4.3) */
    bool full;
};

static void
add_recipient(struct composition *c, unsigned index, struct report_recipient made)
{
    const struct recipient *r = &c->envelope->recipients[index];
    made.address = r->address;
    made.original = original_recipient(r->original, c->report.utf8, &c->texts);
    c->recipients[c->report.count++] = made;
}

static bool
is_failure(const struct failure *f)
{
    return f->outcome.verdict == VERDICT_FAILED;
}

static enum report_action
action_of(const struct failure *f)
{
    if (is_failure(f))
        return REPORT_FAILED;
    return f->relayed ? REPORT_RELAYED : REPORT_DELIVERED;
}

/* A success was only put down because it is wanted. */
static void
add_failures(struct composition *c, bool all)
{
    const struct envelope *e = c->envelope;
    for (unsigned i = 0; i < e->failure_count; i++) {
        const struct failure *f = &e->failures[i];
        if (!all && is_failure(f) && !wants_failure(&e->recipients[f->recipient]))
            continue;
        c->has_failure = c->has_failure || is_failure(f);
        add_recipient(c, f->recipient,
                      (struct report_recipient){.action = action_of(f),
                                                .expired = f->expired,
                                                .outcome = &f->outcome});
    }
}

static void
add_delays(struct composition *c)
{
    for (size_t i = 0; i < c->delay_count; i++) {
        const struct notice_delay *d = &c->delays[i];
        if (notice_wants_delay(&c->envelope->recipients[d->recipient]))
            add_recipient(c, d->recipient,
                          (struct report_recipient){.action = REPORT_DELAYED,
                                                    .retry_until_ms = d->retry_until_ms,
                                                    .outcome = d->outcome});
    }
}

static void
add_recipients(struct composition *c, bool all)
{
    size_t most = c->delays ? c->delay_count : c->envelope->failure_count;
    c->recipients = memory_array(most, sizeof(*c->recipients));
    if (c->delays)
        add_delays(c);
    else
        add_failures(c, all);
    c->report.recipients = c->recipients;
}

/* Reserved once, so that texts never move while slices of them are held. */
static void
reserve_texts(struct composition *c)
{
    const struct envelope *e = c->envelope;
    size_t need = 4096 + e->envelope_id.length;
    for (unsigned i = 0; i < e->count; i++)
        need += ESCAPED_MAX * e->recipients[i].original.length;
    buffer_init(&c->texts, need);
    if (!buffer_reserve(&c->texts, need))
        assert(false && "the limit was chosen to fit");
}

/* "prefix" + t, kept with the texts. */
static struct text
joined(struct composition *c, const char *prefix, struct text t)
{
    size_t before = c->texts.length;
    if (!buffer_add(&c->texts, text_from(prefix)) || !buffer_add(&c->texts, t))
        return TEXT("");
    return text_of(c->texts.at + before, c->texts.length - before);
}

static struct text
envelope_id_of(struct composition *c, const struct envelope *e)
{
    size_t before = c->texts.length;
    if (!address_read_xtext(e->envelope_id, &c->texts)) {
        c->texts.length = before;
        return TEXT("");
    }
    return text_of(c->texts.at + before, c->texts.length - before);
}

/* Else the report is in the form that every reader knows, and goes everywhere. */
static bool
needs_utf8(const struct envelope *e)
{
    bool ascii = !envelope_has_utf8_header(e) && text_is_ascii(e->sender);
    for (unsigned i = 0; ascii && i < e->count; i++)
        ascii = text_is_ascii(e->recipients[i].address);
    return e->utf8 && !ascii;
}

static void
compose(struct composition *c, struct loop *loop,
        const struct notice_settings *settings)
{
    const struct envelope *e = c->envelope;
    struct text host = text_from(settings->hostname);
    bool doubled = e->sender.length == 0;
    char id[ID_LENGTH + 1], boundary[48];
    id_format(e->id, id);
    snprintf(boundary, sizeof(boundary), "%s/%016" PRIx64, id, loop_random(loop));
    reserve_texts(c);
    c->report = (struct report){
        .reporting_host = host,
        .from = joined(c, "MAILER-DAEMON@", host),
        .to = doubled ? joined(c, "postmaster@", host) : e->sender,
        .original_sender = e->sender,
        .id = joined(c, "", text_from(id)),
        .boundary = joined(c, "", text_from(boundary)),
        .envelope_id = envelope_id_of(c, e),
        .arrival_ms = e->birth_ms,
        .now_ms = loop_now_ms(loop),
        .utf8 = needs_utf8(e),
    };
    add_recipients(c, doubled);
    c->full = !doubled && c->has_failure && e->ret == RETURN_FULL && !e->binary &&
              e->content_size <= (int64_t)settings->size_limit;
    c->report.full = c->full;
}

static bool
has_eight_bit(struct text t)
{
    return !text_is_ascii(t);
}

static void
write_notice(struct queue *queue, struct queue_draft *draft, struct composition *c)
{
    const struct envelope *e = c->envelope;
    struct buffer header;
    buffer_init(&header, HEADER_MAX);
    if (!c->full)
        (void)!read_header(queue, e, &header);
    c->report.eight_bit =
        c->full ? e->eight_bit || e->utf8 : has_eight_bit(buffer_text(&header));
    report_begin(&c->report, write_to_draft, draft);
    if (c->full) {
        write_to_draft(draft, e->prefix);
        copy_content(queue, e, draft);
    } else {
        write_to_draft(draft, buffer_text(&header));
    }
    report_end(&c->report, write_to_draft, draft);
    buffer_free(&header);
}

static struct envelope *
notice_envelope(const struct composition *c)
{
    const struct envelope *e = c->envelope;
    struct envelope *notice = envelope_new();
    notice->double_bounce = e->sender.length == 0;
    notice->utf8 = c->report.utf8;
    notice->priority = e->priority;
    notice->eight_bit = c->report.eight_bit;
    if (!envelope_add(notice, c->report.to, NOTIFY_NEVER, TEXT("")))
        assert(false && "one recipient always fits");
    return notice;
}

/* Who is told, and of what, in the log. */
static const char *
notified(const struct composition *c)
{
    if (c->delays)
        return "sender notified of the delay";
    if (!c->has_failure)
        return "sender notified of the delivery";
    return c->envelope->sender.length == 0 ? "sender is null; postmaster notified"
                                           : "sender notified";
}

/* Once composed; frees what is in it. */
static enum notice_result
commit(struct composition *c, struct queue *queue, struct log *log,
       queue_stored *stored, void *context)
{
    const struct envelope *e = c->envelope;
    char id[ID_LENGTH + 1], notice_id[ID_LENGTH + 1];
    id_format(e->id, id);
    enum notice_result result = NOTICE_NOTHING;
    struct outcome refusal;
    int64_t size = c->delays ? 0 : e->content_size;
    struct queue_draft *draft =
        c->report.count == 0 ? NULL : queue_begin_notice(queue, size, &refusal);
    if (draft) {
        write_notice(queue, draft, c);
        struct envelope *notice = notice_envelope(c);
        queue_name(draft, notice);
        id_format(notice->id, notice_id);
        log_say(log, LOG_LEVEL_INFO, "queue", id, "%s: %s", notified(c), notice_id);
        queue_commit(&draft, &notice, stored, context);
        result = NOTICE_COMMITTED;
    } else if (c->report.count > 0) {
        log_say(log, LOG_LEVEL_WARNING, "queue", id, "cannot write the notice now: %s",
                refusal.text);
        result = NOTICE_REFUSED;
    }
    free(c->recipients);
    buffer_free(&c->texts);
    return result;
}

enum notice_result
notice_commit(struct queue *queue, struct loop *loop, struct log *log,
              const struct notice_settings *settings, const struct envelope *e,
              queue_stored *stored, void *context)
{
    struct composition c = {.envelope = e};
    if (e->failure_count == 0)
        return NOTICE_NOTHING;
    if (e->double_bounce) {
        char id[ID_LENGTH + 1];
        id_format(e->id, id);
        log_say(log, LOG_LEVEL_WARNING, "queue", id,
                "a notice to postmaster failed; nobody else is told");
        return NOTICE_NOTHING;
    }
    compose(&c, loop, settings);
    return commit(&c, queue, log, stored, context);
}

enum notice_result
notice_commit_delay(struct queue *queue, struct loop *loop, struct log *log,
                    const struct notice_settings *settings, const struct envelope *e,
                    const struct notice_delay *delays, size_t count,
                    queue_stored *stored, void *context)
{
    struct composition c = {.envelope = e, .delays = delays, .delay_count = count};
    if (count == 0 || e->sender.length == 0)
        return NOTICE_NOTHING;
    compose(&c, loop, settings);
    return commit(&c, queue, log, stored, context);
}
