/* Composes the report of a message's failures and successes, or delays, and commits it
 * as a new message. */
#include "queue/manager/dsn.h"

#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/printable.h"
#include "mime/address.h"
#include "mime/header.h"
#include "mime/report/report.h"
#include "base/event/event.h"
#include "sched/limits/refusal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_ID_MAX = 320 };
enum {
    HEADER_MAX = 64 * 1024,
    PIECE = 32 * 1024,
    LOOKS_PER_TURN = 2000, /* recipients, so that a large report stalls nothing else */
    ESCAPED_MAX = 4        /* of a byte of UTF-8: \x{80} for two */
};

/* Without NOTIFY, failures are reported, and delays may be (RFC 3461 §4.1). */
static bool
wants_failure(const struct recipient *r)
{
    if (r->notify == NOTIFY_DEFAULT)
        return true;
    return (r->notify & NOTIFY_FAILURE) != 0 && (r->notify & NOTIFY_NEVER) == 0;
}

bool
dsn_wants_delay(const struct recipient *r)
{
    if (r->notify == NOTIFY_DEFAULT)
        return true;
    return (r->notify & NOTIFY_DELAY) != 0 && (r->notify & NOTIFY_NEVER) == 0;
}

/* Only on request: nobody wants a message for each message (RFC 3461 §4.1). */
bool
dsn_wants_success(const struct recipient *r)
{
    return (r->notify & NOTIFY_SUCCESS) != 0 && (r->notify & NOTIFY_NEVER) == 0;
}

/* "utf-8;..." is shown as it was given, in ASCII where the report is (RFC 6533 §3). */
static struct text
original_in_utf8(struct text given, bool utf8, struct buffer *out)
{
    size_t before = out->length;
    bool raw = utf8 && printable_is(given);
    if (!(raw ? buffer_add(out, given) : xtext_write_utf8(given, out)))
        return TEXT("");
    return text_of(out->at + before, out->length - before);
}

/* Decoded; as it was given if it would not be printable in the report, or empty if it does
 * not decode. */
static struct text
decoded_xtext(struct text given, bool utf8, struct buffer *out)
{
    size_t before = out->length;
    if (!xtext_read(given, out))
        return TEXT("");
    struct text read = text_of(out->at + before, out->length - before);
    if ((utf8 || text_is_ascii(read)) && printable_is(read))
        return read;
    out->length = before;
    return buffer_add(out, given) ? text_of(out->at + before, given.length) : TEXT("");
}

/* ORCPT with its address decoded: "rfc822;a+b@c"; empty when there is none to show. An
 * ORCPT that does not decode is left out: the address itself is in the report. */
static struct text
original_recipient(struct text given, bool utf8, struct buffer *out)
{
    size_t semicolon = text_find(given, ';');
    size_t before = out->length;
    if (text_starts_nocase(given, TEXT("utf-8;")) && text_is_utf8(given))
        return original_in_utf8(given, utf8, out);
    if (semicolon == TEXT_NONE || !buffer_add(out, text_before(given, semicolon + 1)) ||
        decoded_xtext(text_after(given, semicolon + 1), utf8, out).length == 0) {
        out->length = before;
        return TEXT("");
    }
    return text_of(out->at + before, out->length - before);
}

static void
write_to_draft(void *context, struct text bytes)
{
    /* The commit reports a disk error. */
    (void)!queue_write(context, bytes);
}

/* Length without an unfinished last line. */
static size_t
last_line_end(struct text t)
{
    size_t end = text_find_last(t, '\n');
    return end == TEXT_NONE ? 0 : end + 1;
}

/* Reads the header of the message as it was accepted, prefix included. The header is
 * read from the message, not kept in memory: most messages need no report. */
static bool
dsn_read_header(struct queue *queue, const struct envelope *e, struct buffer *out)
{
    int content = queue_content_open(queue, e);
    if (content < 0)
        return false;
    if (!buffer_add(out, text_before(e->prefix, HEADER_MAX / 2)))
        assert(false && "half the limit fits");
    struct header_scan scan;
    header_scan_start(&scan);
    int64_t offset = 0;
    char *space;
    while (!scan.ended && (space = buffer_reserve(out, PIECE / 8)) != NULL) {
        int64_t got = queue_content_read(queue, content, offset, space, PIECE / 8);
        if (got <= 0)
            break;
        header_scan_add(&scan, text_of(space, (size_t)got));
        out->length += (size_t)got;
        offset += got;
    }
    size_t prefix = text_before(e->prefix, HEADER_MAX / 2).length;
    if (scan.ended)
        out->length = prefix + scan.length;
    else /* no end, or beyond the limit: complete lines only */
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

/* A notification while it is composed; texts live in the buffer. */
struct dsn {
    struct dsn_settings settings;
    char *hostname; /* of the settings */
    const struct envelope *envelope;
    struct text to; /* whom; "": the sender is null, and postmaster is notified */
    bool is_delay;  /* else it reports the envelope's failures */
    struct report report;
    struct report_place written;
    struct report_recipient *recipients;
    struct buffer texts, header; /* header: of the message, unless all of it is
                                  * returned */
    bool has_failure;            /* else only the header is returned (RFC 3461 §4.3) */
    bool full;
    struct queue_draft *draft;
    struct loop_task task;
    struct dsn **under_way;
    queue_stored *stored;
    void *context;
};

static void
dsn_free(void *object)
{
    struct dsn *n = object;
    free(n->recipients);
    buffer_free(&n->texts);
    buffer_free(&n->header);
    free(n->hostname);
    free(n);
}

/* The draft is discarded: nobody has been notified of it. */
void
dsn_drop(struct dsn **notification)
{
    struct dsn *n = *notification;
    if (n == NULL)
        return;
    *notification = NULL;
    loop_unpost(n->settings.loop, &n->task);
    if (n->draft != NULL)
        queue_discard(&n->draft);
    else /* it is being committed: its owner ends */
        queue_commit_ignore(n->settings.queue, n);
    dsn_free(n);
}

static void
dsn_add_recipient(struct dsn *n, unsigned index, struct report_recipient made)
{
    const struct recipient *r = &n->envelope->recipients[index];
    made.address = r->address;
    made.original = original_recipient(r->original, n->report.utf8, &n->texts);
    n->recipients[n->report.count++] = made;
}

static bool
is_failure(const struct failure *f)
{
    return f->outcome.verdict == VERDICT_FAILED;
}

static enum report_action
action_of(const struct dsn *n, const struct failure *f)
{
    const struct recipient *r = &n->envelope->recipients[f->recipient];
    if (is_failure(f))
        return REPORT_FAILED;
    if (r->expanded && r->way == NULL)
        return REPORT_EXPANDED;
    return f->relayed ? REPORT_RELAYED : REPORT_DELIVERED;
}

/* Failures of a message with the null sender are reported to postmaster, all of them. */
static bool
is_reportable(const struct envelope *e, const struct failure *f)
{
    return !f->notified && (e->sender.length == 0 || !is_failure(f) ||
                            wants_failure(&e->recipients[f->recipient]));
}

/* The sender's address comes first, then owners of lists in any fixed order. */
static int
compare_notified(const struct envelope *e, struct text a, struct text b)
{
    bool first = text_equal(a, e->sender), second = text_equal(b, e->sender);
    return first || second ? (int)second - (int)first : text_compare(a, b);
}

/* The next address that is to be notified, behind that one (NULL: the first). False:
 * there is none. */
static bool
dsn_next(const struct envelope *e, const struct text *behind, struct text *to)
{
    bool found = false;
    for (unsigned i = 0; i < e->delivery.failure_count; i++) {
        const struct failure *f = &e->delivery.failures[i];
        if (!is_reportable(e, f))
            continue;
        struct text one = envelope_notified(e, &e->recipients[f->recipient]);
        if ((behind != NULL && compare_notified(e, one, *behind) <= 0) ||
            (found && compare_notified(e, one, *to) >= 0))
            continue;
        *to = one;
        found = true;
    }
    return found;
}

/* A success is recorded only if it is requested. A report of successes alone has only
 * the header of the message, however small it is. */
static void
add_failures(struct dsn *n)
{
    const struct envelope *e = n->envelope;
    n->recipients = memory_array(e->delivery.failure_count, sizeof(*n->recipients));
    for (unsigned i = 0; i < e->delivery.failure_count; i++) {
        const struct failure *f = &e->delivery.failures[i];
        if (!is_reportable(e, f) ||
            !text_equal(envelope_notified(e, &e->recipients[f->recipient]), n->to))
            continue;
        n->has_failure = n->has_failure || is_failure(f);
        dsn_add_recipient(n, f->recipient,
                          (struct report_recipient){.action = action_of(n, f),
                                                    .expired = f->expired,
                                                    .outcome = &f->outcome});
    }
}

static void
add_delays(struct dsn *n, const struct dsn_delay *delays, size_t count)
{
    n->is_delay = true;
    n->recipients = memory_array(count, sizeof(*n->recipients));
    for (size_t i = 0; i < count; i++) {
        const struct dsn_delay *d = &delays[i];
        const struct recipient *r = &n->envelope->recipients[d->recipient];
        if (dsn_wants_delay(r) && text_equal(envelope_notified(n->envelope, r), n->to))
            dsn_add_recipient(
                n, d->recipient,
                (struct report_recipient){.action = REPORT_DELAYED,
                                          .retry_until_ms = d->retry_until_ms,
                                          .outcome = d->outcome});
    }
}

/* Reserved once, so that texts never move while slices of them are held. */
static void
reserve_texts(struct dsn *n)
{
    const struct envelope *e = n->envelope;
    size_t need = 4096 + e->envelope_id.length;
    for (unsigned i = 0; i < e->count; i++)
        need += ESCAPED_MAX * e->recipients[i].original.length;
    buffer_init(&n->texts, need);
    if (!buffer_reserve(&n->texts, need))
        assert(false && "the limit was chosen to fit");
}

/* "prefix" + t, kept with the texts. */
static struct text
prefixed(struct dsn *n, const char *prefix, struct text t)
{
    size_t before = n->texts.length;
    if (!buffer_add(&n->texts, text_from(prefix)) || !buffer_add(&n->texts, t))
        return TEXT("");
    return text_of(n->texts.at + before, n->texts.length - before);
}

static struct text
envelope_id_of(struct dsn *n, const struct envelope *e)
{
    return decoded_xtext(e->envelope_id, false, &n->texts);
}

/* Otherwise the report has the form that every reader knows and every host accepts. */
static bool
dsn_needs_utf8(const struct envelope *e)
{
    bool ascii = !envelope_has_utf8_header(e) && text_is_ascii(e->sender);
    for (unsigned i = 0; ascii && i < e->count; i++)
        ascii = text_is_ascii(e->recipients[i].address);
    return e->utf8 && !ascii;
}

static_assert((int)REPORT_HINT_MAX == (int)REFUSAL_HINT_MAX, "a hint fits");

static struct dsn *
compose(const struct dsn_settings *settings, const struct envelope *e, struct text to)
{
    struct dsn *n = memory_new(sizeof(*n));
    struct text host = text_from(settings->hostname);
    bool doubled = e->sender.length == 0;
    char id[ID_LENGTH + 1], boundary[48];
    id_format(e->id, id);
    snprintf(boundary, sizeof(boundary), "%s/%016" PRIx64, id,
             loop_random(settings->loop));
    n->settings = *settings;
    n->settings.hostname = n->hostname = memory_string(settings->hostname);
    n->envelope = e;
    n->to = to;
    buffer_init(&n->header, HEADER_MAX);
    reserve_texts(n);
    n->report = (struct report){
        .reporting_host = prefixed(n, "", host),
        .from = prefixed(n, "MAILER-DAEMON@", host),
        .to = doubled ? prefixed(n, "postmaster@", host) : to,
        .original_sender = e->sender,
        .id = prefixed(n, "", text_from(id)),
        .boundary = prefixed(n, "", text_from(boundary)),
        .envelope_id = envelope_id_of(n, e),
        .release_request = e->release_request,
        .arrival_ms = e->birth_ms,
        .now_ms = loop_now_ms(settings->loop),
        .utf8 = dsn_needs_utf8(e),
        .waives_tls = e->tls == ENVELOPE_TLS_WAIVED,
        .hint = refusal_hint,
    };
    return n;
}

/* Chooses the form of the report once all recipients are known. */
static void
choose_form(struct dsn *n)
{
    const struct envelope *e = n->envelope;
    n->report.recipients = n->recipients;
    n->full = e->sender.length > 0 && n->has_failure && e->ret == RETURN_FULL &&
              e->tls != ENVELOPE_TLS_REQUIRED && !e->binary &&
              e->content_size <= (int64_t)n->settings.size_limit;
    n->report.full = n->full;
    if (!n->full)
        (void)!dsn_read_header(n->settings.queue, e, &n->header);
    n->report.eight_bit =
        n->full ? e->eight_bit || e->utf8 : !text_is_ascii(buffer_text(&n->header));
}

static void
write_original(struct dsn *n)
{
    const struct envelope *e = n->envelope;
    if (!n->full) {
        write_to_draft(n->draft, buffer_text(&n->header));
        return;
    }
    write_to_draft(n->draft, e->prefix);
    copy_content(n->settings.queue, e, n->draft);
}

static struct text
dsn_message_id(const struct dsn *n, char out[MESSAGE_ID_MAX])
{
    snprintf(out, MESSAGE_ID_MAX, "<%.*s@%.*s>", TEXT_ARGS(n->report.boundary),
             TEXT_ARGS(n->report.reporting_host));
    return text_before(text_from(out), ENVELOPE_MESSAGE_ID_MAX);
}

/* The sender is null (RFC 5321 §4.5.5): a notification that fails causes no other
 * one. */
static struct envelope *
dsn_envelope(const struct dsn *n)
{
    const struct envelope *e = n->envelope;
    struct envelope *made = envelope_new();
    made->double_bounce = e->sender.length == 0;
    made->ours = true;
    made->utf8 = n->report.utf8;
    made->priority = e->priority;
    made->eight_bit = n->report.eight_bit;
    made->tls = e->tls; /* RFC 8689 §5, §6 */
    if (event_are_kept(n->settings.events)) {
        char id[MESSAGE_ID_MAX];
        made->message_id = envelope_text(made, dsn_message_id(n, id));
    }
    if (!envelope_add(made, n->report.to, NOTIFY_NEVER, TEXT("")))
        assert(false && "one recipient always fits");
    /* Mail of cron comes from root, and its bounces go where root's mail goes. */
    if (n->settings.expand != NULL)
        n->settings.expand(n->settings.context, made);
    return made;
}

/* The words of the log for the recipient and the subject of the notification. */
static const char *
notified(const struct dsn *n)
{
    if (n->is_delay)
        return "sender notified of the delay";
    if (!n->has_failure)
        return "sender notified of the delivery";
    return n->envelope->sender.length == 0 ? "sender is null; postmaster notified"
                                           : "sender notified";
}

static void
log_refused(const struct dsn_settings *settings, struct id message, const char *why)
{
    char id[ID_LENGTH + 1];
    id_format(message, id);
    log_say(event_hub_log(settings->events), LOG_LEVEL_WARNING, "queue", id,
            "cannot write the notification now: %s", why);
}

static const char *
notification_kind(const struct dsn *n)
{
    if (n->is_delay)
        return "delay";
    if (!n->has_failure)
        return "success";
    return n->envelope->sender.length == 0 ? "postmaster" : "failure";
}

static void
tell_notified(const struct dsn *n, const struct envelope *made)
{
    struct event_hub *events = n->settings.events;
    char id[MESSAGE_ID_MAX];
    event_tell(events, &(struct event){.kind = EVENT_MADE,
                                       .id = made->id,
                                       .other = n->envelope->id,
                                       .recipient = made->recipients[0].address,
                                       .size = made->content_size,
                                       .recipients = made->count,
                                       .message_id = dsn_message_id(n, id),
                                       .reason = "notification",
                                       .text = TEXT("notification stored")});
    event_tell(events, &(struct event){.kind = EVENT_NOTIFIED,
                                       .id = n->envelope->id,
                                       .other = made->id,
                                       .recipient = made->recipients[0].address,
                                       .reason = notification_kind(n),
                                       .text = text_from(notified(n))});
}

static bool dsn_go_on(struct dsn *n, struct envelope **made);

/* Only now it is certain that there is one. The owner may free the envelope. */
static void
dsn_stored(void *context, struct envelope *made, const struct outcome *refusal)
{
    struct dsn *n = context;
    *n->under_way = NULL;
    if (refusal != NULL)
        log_refused(&n->settings, n->envelope->id, refusal->text);
    else
        tell_notified(n, made);
    if (refusal != NULL || !dsn_go_on(n, &made))
        n->stored(n->context, made, refusal);
    /* Nothing is freed inside its own callback. */
    loop_release(n->settings.loop, dsn_free, n);
}

static void
dsn_commit(struct dsn *n)
{
    struct envelope *made = dsn_envelope(n);
    struct text next;
    queue_name(n->draft, made);
    /* The note says of all failures that they are reported. */
    if (!n->is_delay && !dsn_next(n->envelope, &n->to, &next))
        queue_reports(n->draft, n->envelope);
    queue_commit(&n->draft, &made, dsn_stored, n);
}

static void
dsn_write_some(void *context)
{
    struct dsn *n = context;
    struct queue *queue = n->settings.queue;
    struct loop *loop = n->settings.loop;
    struct id before = queue_enter(queue, n->envelope->id);
    if (report_begin(&n->report, &n->written, LOOKS_PER_TURN, write_to_draft,
                     n->draft)) {
        write_original(n);
        report_end(&n->report, write_to_draft, n->draft);
        dsn_commit(n);
    } else {
        loop_post(loop, &n->task, dsn_write_some, n);
    }
    queue_leave(queue, before);
}

/* Starts the draft of a composed notification. */
static enum dsn_result
dsn_begin_draft(struct dsn *n, struct dsn **under_way, queue_stored *stored,
                void *context)
{
    const struct envelope *e = n->envelope;
    struct outcome refusal;
    if (n->report.count == 0) {
        dsn_free(n);
        return DSN_NOTHING;
    }
    int64_t size = n->is_delay ? 0 : e->content_size;
    n->draft = queue_begin_own(n->settings.queue, size, &refusal);
    if (n->draft == NULL) {
        log_refused(&n->settings, e->id, refusal.text);
        dsn_free(n);
        return DSN_REFUSED;
    }
    choose_form(n);
    n->under_way = under_way;
    n->stored = stored;
    n->context = context;
    *under_way = n;
    dsn_write_some(n);
    return DSN_BEGUN;
}

static enum dsn_result
dsn_begin_to(const struct dsn_settings *settings, const struct envelope *e,
             struct text to, struct dsn **under_way, queue_stored *stored,
             void *context)
{
    struct dsn *n = compose(settings, e, to);
    add_failures(n);
    return dsn_begin_draft(n, under_way, stored, context);
}

/* Begins the next notification of the round. True: stored will be called for it, or has
 * been, and this one has been given away. */
static bool
dsn_go_on(struct dsn *n, struct envelope **made)
{
    struct text next;
    if (n->is_delay || !dsn_next(n->envelope, &n->to, &next))
        return false;
    if (n->settings.accept != NULL)
        n->settings.accept(n->settings.context, *made);
    else
        envelope_free(made);
    *made = NULL;
    if (dsn_begin_to(&n->settings, n->envelope, next, n->under_way, n->stored,
                     n->context) != DSN_BEGUN) {
        /* The round is reported later, with the recipients reported now. */
        struct outcome full = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 452,
                                           "4.3.1", "the queue takes no mail now");
        n->stored(n->context, NULL, &full);
    }
    return true;
}

enum dsn_result
dsn_begin(const struct dsn_settings *settings, const struct envelope *e,
          struct dsn **under_way, queue_stored *stored, void *context)
{
    struct text to;
    if (e->delivery.failure_count == 0)
        return DSN_NOTHING;
    if (e->double_bounce || !dsn_next(e, NULL, &to))
        return DSN_NOTHING;
    return dsn_begin_to(settings, e, to, under_way, stored, context);
}

enum dsn_result
dsn_begin_delay(const struct dsn_settings *settings, const struct envelope *e,
                const struct dsn_delay *delays, size_t count, struct dsn **under_way,
                queue_stored *stored, void *context)
{
    if (count == 0 || e->sender.length == 0)
        return DSN_NOTHING;
    struct dsn *n = compose(settings, e, e->sender);
    add_delays(n, delays, count);
    return dsn_begin_draft(n, under_way, stored, context);
}
