/* Makes a message from standard input fit for the queue: header, recipients, prefix. */
#include "admin/sendmail/submission.h"

#include "base/loop/loop.h"
#include "base/memory.h"
#include "mime/date.h"
#include "mime/header.h"
#include "mime/parts/compose.h"
#include "queue/queue_operator.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { PREFIX_MAX = 8192, PIECE = 16 * 1024 };

/* A line of a mailbox file, as it is and as it was quoted in one. */
#define MBOX_LINE   TEXT("From ")
#define MBOX_QUOTED TEXT(">From ")

enum part {
    PART_START, /* until it is clear that there is no mbox line */
    PART_MBOX,  /* in that line */
    PART_HEADER,
    PART_BODY
};

struct submission {
    struct submission_settings settings;
    struct loop *loop;
    struct queue *queue;
    struct recipients *recipients;
    /* with the same content, one for each envelope; the others follow when the header
     * has named all recipients. */
    struct queue_draft *drafts[RECIPIENTS_ENVELOPES_MAX];
    unsigned draft_count;
    bool eight_bit;
    struct {
        bool in_header;
        bool over; /* nothing more counts */
        bool after_cr;
        bool has_byte; /* the current line is not empty */
        bool lone_dot; /* ... and is a dot so far, not yet put */
    } lines;
    enum part part;
    struct buffer header;    /* until it is complete, and a little more */
    struct header_scan scan; /* of it */
    struct buffer out;       /* one piece of the body */
    unsigned stored;
    int code; /* sysexits */
    char error[1024];
    char id[ID_LENGTH + 1];
};

static void
submission_fail(struct submission *s, int code, const char *what)
{
    if (s->code == 0) {
        s->code = code;
        snprintf(s->error, sizeof(s->error), "%s", what);
    }
    s->lines.over = true;
}

/* The text has the remedy for users, or for their administrator. */
static void
submission_refuse(struct submission *s, const struct outcome *refusal)
{
    char space[QUEUE_SPACE_MAX], what[QUEUE_SPACE_MAX + OUTCOME_TEXT_MAX + 2];
    if (refusal->code != 452) {
        submission_fail(s, EX_TEMPFAIL, refusal->text);
        return;
    }
    queue_describe_space(s->queue, space);
    snprintf(what, sizeof(what), "%s: %s", refusal->text, space);
    submission_fail(s, EX_TEMPFAIL, what);
}

static void
submission_write_out(struct submission *s, struct text bytes)
{
    if (bytes.length == 0 || s->code != 0)
        return;
    int64_t size = queue_draft_size(s->drafts[0]) + (int64_t)bytes.length;
    if (size > s->settings.message_size_limit) {
        submission_fail(s, EX_DATAERR, "the message is larger than message_size_limit");
        return;
    }
    if (!text_is_ascii(bytes))
        s->eight_bit = true;
    for (unsigned i = 0; i < s->draft_count; i++)
        (void)!queue_write(s->drafts[i], bytes); /* reported at commit */
}

/* --- The header ------------------------------------------------------------------- */

static bool
is_field(const struct header_field *f, const char *name)
{
    return text_equal_nocase(f->name, text_from(name));
}

static bool
names_recipients(const struct header_field *f, bool resent)
{
    if (resent)
        return is_field(f, "Resent-To") || is_field(f, "Resent-Cc") ||
               is_field(f, "Resent-Bcc");
    return is_field(f, "To") || is_field(f, "Cc") || is_field(f, "Bcc");
}

static bool
has_resent(struct text header)
{
    struct header_field f;
    while (header_next(&header, &f))
        if (names_recipients(&f, true))
            return true;
    return false;
}

static void
take_recipients(struct submission *s, const struct header_field *f)
{
    struct buffer unfolded;
    char what[256];
    buffer_init(&unfolded, SUBMISSION_LIST_MAX);
    bool whole = header_unfold(f->value, &unfolded);
    assert(whole); /* it is part of a header within the limit */
    s->recipients->returns_broken = true;
    if (!recipients_add(s->recipients, buffer_text(&unfolded))) {
        snprintf(what, sizeof(what), "%.*s: %s", TEXT_ARGS(f->name),
                 s->recipients->error);
        submission_fail(s, EX_DATAERR, what);
    }
    buffer_free(&unfolded);
}

static void
begin_draft(struct submission *s)
{
    struct outcome refusal;
    struct queue_draft *draft = queue_begin(s->queue, 0, &refusal);
    if (draft == NULL)
        submission_refuse(s, &refusal);
    else
        s->drafts[s->draft_count++] = draft;
}

static void
take_all_recipients(struct submission *s, struct text header)
{
    struct header_field f;
    bool resent = s->settings.from_header && has_resent(header);
    while (s->settings.from_header && header_next(&header, &f))
        if (names_recipients(&f, resent))
            take_recipients(s, &f);
    while (s->code == 0 && s->draft_count <= s->recipients->full_count)
        begin_draft(s);
}

static void
submission_take_header(struct submission *s, struct text header)
{
    struct header_field f;
    take_all_recipients(s, header);
    while (header_next(&header, &f))
        if (!is_field(&f, "Bcc") && !is_field(&f, "Resent-Bcc"))
            submission_write_out(s, f.whole);
    if (header.length > 0 && s->code == 0)
        submission_fail(s, EX_DATAERR, "the header cannot be read");
}

/* Adds the empty line after a header that lacks it. */
static void
header_complete(struct submission *s)
{
    struct text whole = buffer_text(&s->header);
    struct text rest = text_after(whole, s->scan.length);
    s->part = PART_BODY;
    s->lines.in_header = false;
    submission_take_header(s, text_before(whole, s->scan.length));
    if (!text_starts(rest, TEXT("\r\n")))
        submission_write_out(s, TEXT("\r\n"));
    submission_write_out(s, rest);
    buffer_clear(&s->header);
}

static void
put_header(struct submission *s, struct text bytes)
{
    if (!buffer_add(&s->header, bytes)) {
        submission_fail(s, EX_DATAERR,
                        s->settings.from_header ? "the header is larger than 64 MB"
                                                : "the header is larger than 1 MB");
        return;
    }
    header_scan_add(&s->scan, bytes);
    if (s->scan.ended)
        header_complete(s);
}

static bool
has_line_end(struct text t)
{
    return text_find(t, '\n') != TEXT_NONE;
}

/* Enough has come to tell an mbox line from a header. */
static void
begin_header(struct submission *s)
{
    char start[4 * 6];
    struct text whole = buffer_text(&s->header);
    if (text_starts(whole, MBOX_LINE) || text_starts(whole, MBOX_QUOTED)) {
        s->part = has_line_end(whole) ? PART_HEADER : PART_MBOX;
        buffer_clear(&s->header);
        return;
    }
    s->part = PART_HEADER;
    if (!text_copy(start, sizeof(start), whole))
        assert(false && "the start is short");
    whole = text_of(start, whole.length);
    buffer_clear(&s->header);
    put_header(s, whole);
}

/* --- The body --------------------------------------------------------------------- */

static void
submission_flush(struct submission *s)
{
    submission_write_out(s, buffer_text(&s->out));
    buffer_clear(&s->out);
}

static void
put_body(struct submission *s, struct text bytes)
{
    if (s->out.length + bytes.length > PIECE)
        submission_flush(s);
    if (bytes.length > PIECE)
        submission_write_out(s, bytes);
    else if (!buffer_add(&s->out, bytes))
        assert(false && "a piece has space for it");
}

/* --- The stream ------------------------------------------------------------------- */

static void
put_start(struct submission *s, struct text bytes)
{
    struct text front = text_before(bytes, MBOX_QUOTED.length);
    if (!buffer_add(&s->header, front))
        assert(false && "the start is short");
    if (s->header.length >= MBOX_QUOTED.length || has_line_end(front))
        begin_header(s);
    bytes = text_after(bytes, front.length);
    if (bytes.length > 0 && s->part == PART_HEADER)
        put_header(s, bytes);
    else if (bytes.length > 0 && s->part == PART_BODY)
        put_body(s, bytes);
}

static void
submission_put(struct submission *s, struct text bytes)
{
    switch (s->part) {
    case PART_START:
        put_start(s, bytes);
        break;
    case PART_MBOX:
        if (has_line_end(bytes))
            s->part = PART_HEADER;
        break;
    case PART_HEADER:
        put_header(s, bytes);
        break;
    case PART_BODY:
        put_body(s, bytes);
        break;
    }
}

/* --- Lines ------------------------------------------------------------------------ */

/* LF and CRLF end lines, with any number of CRs; the last line needs no end; NULs
 * vanish. A CR by itself ends a line of the body (programs print progress bars); in the
 * header it is a space, since one field of a program must not become two. */

static void
put_line_end(struct submission *s)
{
    if (s->lines.lone_dot)
        submission_put(s, TEXT("."));
    s->lines.has_byte = s->lines.lone_dot = false;
    if (!s->lines.over)
        submission_put(s, TEXT("\r\n"));
}

static void
submission_end_line(struct submission *s)
{
    s->lines.after_cr = false;
    if (s->lines.lone_dot && s->settings.dot_ends)
        s->lines.over = true;
    else
        put_line_end(s);
}

static void
put_run(struct submission *s, struct text run)
{
    bool dot = !s->lines.has_byte && text_equal(run, TEXT("."));
    if (s->lines.lone_dot)
        submission_put(s, TEXT("."));
    s->lines.lone_dot = dot;
    s->lines.has_byte = true;
    if (!dot && !s->lines.over)
        submission_put(s, run);
}

static void
stray_cr(struct submission *s)
{
    s->lines.after_cr = false;
    if (s->lines.in_header)
        put_run(s, TEXT(" "));
    else
        put_line_end(s);
}

/* Bytes at the front that stand for themselves. */
static size_t
run_length(struct text t)
{
    size_t length = 0;
    while (length < t.length && t.at[length] != '\n' && t.at[length] != '\r' &&
           t.at[length] != '\0')
        length++;
    return length;
}

bool
submission_add(struct submission *s, struct text bytes)
{
    while (bytes.length > 0 && !s->lines.over) {
        size_t length = run_length(bytes);
        if (length == 0) {
            if (bytes.at[0] == '\n')
                submission_end_line(s);
            else if (bytes.at[0] == '\r')
                s->lines.after_cr = true;
            bytes = text_after(bytes, 1);
            continue;
        }
        if (s->lines.after_cr)
            stray_cr(s);
        if (!s->lines.over)
            put_run(s, text_before(bytes, length));
        bytes = text_after(bytes, length);
    }
    return !s->lines.over;
}

/* --- The end ---------------------------------------------------------------------- */

static bool
write_from(const struct submission *s, struct buffer *out)
{
    struct text sender = s->recipients->envelope->sender, name = s->settings.full_name;
    bool good = compose_name(out, TEXT("From"), name) && buffer_add(out, TEXT(" <"));
    if (sender.length > 0)
        good = good && buffer_add(out, sender);
    else
        good = good && buffer_format(out, "MAILER-DAEMON@%.255s", s->settings.hostname);
    return good && buffer_add(out, TEXT(">\r\n"));
}

/* All messages that come of one have the same Message-ID. */
static void
compose_prefix(struct submission *s, struct envelope *e)
{
    struct buffer out;
    char date[DATE_TEXT_MAX], id[ID_LENGTH + 1];
    buffer_init(&out, PREFIX_MAX);
    id_format(e->id, id);
    date_format(loop_now_ms(s->loop), date);
    bool good = buffer_format(
        &out, "Received: by %.255s (Petrel, from userid %u)\r\n\tid %s; %s\r\n",
        s->settings.hostname, s->settings.uid, id, date);
    if (!s->scan.has_from)
        good = good && write_from(s, &out);
    if (!s->scan.has_date)
        good = good && buffer_format(&out, "Date: %s\r\n", date);
    if (!s->scan.has_message_id)
        good = good && buffer_format(&out, "Message-ID: <%s@%.255s>\r\n", s->id,
                                     s->settings.hostname);
    if (s->scan.has_resent && !s->scan.has_resent_date)
        good = good && buffer_format(&out, "Resent-Date: %s\r\n", date);
    if (s->scan.has_resent && !s->scan.has_resent_message_id)
        good = good && buffer_format(&out, "Resent-Message-ID: <%s.resent@%.255s>\r\n",
                                     s->id, s->settings.hostname);
    assert(good); /* every part is bounded */
    e->prefix = envelope_text(e, buffer_text(&out));
    buffer_free(&out);
}

static void
submission_on_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    struct submission *s = context;
    if (refusal)
        submission_refuse(s, refusal);
    else
        s->stored++;
    envelope_free(&e);
}

static void
note_utf8(struct envelope *e)
{
    e->utf8 = !text_is_ascii(e->sender);
    for (unsigned i = 0; i < e->count && !e->utf8; i++)
        e->utf8 = !text_is_ascii(e->recipients[i].address);
}

/* Bcc has been removed, but not Return-Path; From is added by the prefix. */
static void
note_submitter(const struct submission *s, struct envelope *e)
{
    char uid[24];
    snprintf(uid, sizeof(uid), "uid:%u", s->settings.uid);
    e->ours = true;
    e->submitter = envelope_text(e, text_from(uid));
    e->header_needs =
        (s->scan.has_private || s->scan.has_odd_name ? HEADER_NEEDS_REMOVAL : 0) |
        (header_scan_has_bare(&s->scan) ? HEADER_NEEDS_DOMAIN : 0);
}

static void
submission_commit(struct submission *s)
{
    queue_commit_begin(s->queue);
    for (unsigned i = 0; i < s->draft_count; i++) {
        struct envelope **e = recipients_envelope(s->recipients, i);
        note_utf8(*e);
        (*e)->eight_bit = s->eight_bit;
        note_submitter(s, *e);
        if (header_scan_waives_tls(&s->scan))
            (*e)->tls = ENVELOPE_TLS_WAIVED;
        queue_name(s->drafts[i], *e);
        if (i == 0)
            id_format((*e)->id, s->id);
        compose_prefix(s, *e);
        if (s->scan.is_message) /* perhaps a fragment: clients cannot add to its set */
            (*e)->trust = TEXT("int");
        queue_commit(&s->drafts[i], e, submission_on_stored, s);
    }
    queue_commit_end(s->queue);
    /* An injector's commit is not deferred. */
    assert(s->stored == s->draft_count || s->code != 0);
}

/* True: all recipients are entries that are no addresses. */
static bool
submission_has_none(const struct submission *s)
{
    return recipients_count(s->recipients) == s->recipients->broken_count;
}

static void
submission_fail_at(struct submission *s, const char *entry)
{
    char what[RECIPIENTS_ADDRESS_MAX + 64];
    snprintf(what, sizeof(what), "not a mail address, and there is no other: %s",
             entry);
    submission_fail(s, EX_DATAERR, what);
}

int
submission_finish(struct submission *s, char id[ID_LENGTH + 1], char *error,
                  size_t error_size)
{
    if (!s->lines.over && (s->lines.has_byte || s->lines.after_cr))
        submission_end_line(s);
    if (s->code == 0 && s->part == PART_START)
        begin_header(s);
    if (s->code == 0 && s->part != PART_BODY)
        header_complete(s);
    submission_flush(s);
    if (s->code == 0 && recipients_count(s->recipients) > 0 && submission_has_none(s))
        submission_fail_at(s, s->recipients->broken);
    if (s->code == 0 && recipients_count(s->recipients) == 0)
        submission_fail(s, EX_USAGE,
                        "no recipients: name them, or use -t with To, Cc or Bcc");
    if (s->code == 0)
        submission_commit(s);
    memcpy(id, s->id, sizeof(s->id));
    snprintf(error, error_size, "%s", s->error);
    return s->code;
}

bool
submission_is_refused(const struct submission *s)
{
    return s->code != 0;
}

struct submission *
submission_new(const struct submission_settings *settings, struct loop *loop,
               struct queue *queue, struct recipients *recipients)
{
    struct submission *s = memory_new(sizeof(*s));
    s->settings = *settings;
    s->loop = loop;
    s->queue = queue;
    s->recipients = recipients;
    buffer_init(&s->header,
                settings->from_header ? SUBMISSION_LIST_MAX : SUBMISSION_HEADER_MAX);
    buffer_init(&s->out, PIECE);
    header_scan_start(&s->scan);
    s->lines.in_header = true;
    begin_draft(s);
    return s;
}

void
submission_free(struct submission **submission)
{
    struct submission *s = *submission;
    if (s == NULL)
        return;
    *submission = NULL;
    for (unsigned i = 0; i < s->draft_count; i++)
        queue_discard(&s->drafts[i]);
    buffer_free(&s->header);
    buffer_free(&s->out);
    free(s);
}
