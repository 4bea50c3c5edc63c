/* Reads the header of a message, which is part prefix and part content, and makes the one
 * that leaves. */
#include "smtp/client/outgoing.h"

#include "base/memory.h"
#include "mime/rewrite.h"
#include "queue/manager/message_head.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { REWRITTEN_MAX = 2 * MESSAGE_HEAD_MAX };

static void
find_address(const void *table, struct text address, struct rewrite_answer *answer)
{
    struct rewrites_answer found;
    static_assert(sizeof(found.address) == sizeof(answer->address), "one length");
    rewrites_find(table, address, &found);
    answer->by_local = found.by_local;
    answer->local = found.local;
    memcpy(answer->address, found.address, sizeof(answer->address));
}

/* Bounces of the next hop come to the new address, ours go to the old one. A sender
 * made by SRS leads back here as it is. */
static void
replace_sender(struct outgoing *o, const struct envelope *e,
               const struct recipient_way *way, const struct outgoing_rules *rules)
{
    struct rewrites_answer found = {.local = false};
    bool has_own = way != NULL && way->sender.length > 0;
    struct text sender = envelope_way_sender(e, way);
    o->null_sender = sender.length == 0;
    if (rules != NULL && e->ours && rules->rewrites != NULL && sender.length > 0 &&
        !(has_own && envelope_is_srs(sender)))
        rewrites_find(rules->rewrites, sender, &found);
    if (found.address[0] == '\0' && has_own)
        text_copy(found.address, sizeof(found.address), sender);
    if (!text_equal(e->sender, text_from(found.address)))
        memcpy(o->sender, found.address, sizeof(o->sender));
}

/* The mark by which this host recognises mail that it has forwarded before. */
static bool
write_delivered_to(struct outgoing *o, const struct recipient_way *way)
{
    return !text_is_ascii(way->origin) || text_has_control(way->origin) ||
           buffer_format(&o->header, "Delivered-To: %.*s\r\n", TEXT_ARGS(way->origin));
}

/* For the one who reads the mail of all: a redirect has taken the recipient. */
static bool
write_original_to(struct outgoing *o, const struct outgoing_rules *rules)
{
    struct text original = rules != NULL ? rules->original : TEXT("");
    return original.length == 0 || !text_is_ascii(original) ||
           text_has_control(original) ||
           buffer_format(&o->header, "X-Original-To: %.*s\r\n", TEXT_ARGS(original));
}

static void
log_rewritten(const struct envelope *e, const struct rewrite *r, struct log *log)
{
    char id[ID_LENGTH + 1];
    id_format(e->id, id);
    if (r->breaks_dkim)
        log_say(log, LOG_LEVEL_INFO, "smtp", id,
                "addresses in the header are rewritten; its DKIM signature breaks");
    if (r->made_from)
        log_say(log, LOG_LEVEL_INFO, "smtp", id,
                "From is empty or cannot be parsed: the sender takes its place, and it "
                "leaves as X-Original-From");
    if (r->unparsed > 0)
        log_say(log, LOG_LEVEL_INFO, "smtp", id,
                "%.*s leaves as it is: its addresses cannot be parsed%s",
                TEXT_ARGS(r->odd), r->unparsed > 1 ? "; so do other fields" : "");
}

/* A reader behind us would take the line that ends the header for a part of it, and a
 * signature covers no such line. */
static bool
outgoing_separate(struct outgoing *o, const struct header_scan *scan)
{
    return !scan->unseparated || buffer_add(&o->header, TEXT("\r\n"));
}

/* A header that ends within the prefix: the message came without one. */
static bool
write_header(struct outgoing *o, const struct message_head *h, const struct envelope *e,
             const struct outgoing_rules *rules, struct log *log)
{
    struct rewrite r = {.hostname = text_from(rules->hostname),
                        .sender = e->sender,
                        .find = rules->rewrites != NULL ? find_address : NULL,
                        .table = rules->rewrites};
    struct text all = buffer_text(&h->bytes);
    size_t length = h->scan.length;
    bool good = rewrite_header(&r, text_before(all, length), &o->header);
    log_rewritten(e, &r, log);
    if (length < e->prefix.length)
        return good && buffer_add(&o->header, text_after(e->prefix, length));
    o->skip = (int64_t)(length - e->prefix.length);
    return good && outgoing_separate(o, &h->scan);
}

static void
outgoing_log_unchanged(const struct envelope *e, int limit, const char *when,
                       struct log *log)
{
    char id[ID_LENGTH + 1];
    id_format(e->id, id);
    log_say(log, LOG_LEVEL_WARNING, "smtp", id,
            "the header is longer than %d bytes%s: it leaves unchanged", limit, when);
}

static void
outgoing_close(struct queue *queue, int content)
{
    if (content >= 0)
        queue_content_close(queue, content);
}

static bool
outgoing_make(struct outgoing *o, struct queue *queue, const struct envelope *e,
              const struct outgoing_rules *rules, struct log *log)
{
    struct message_head h;
    int content = queue_content_open(queue, e);
    bool read = message_head_read(&h, queue, content, e);
    bool made = read && write_header(o, &h, e, rules, log);
    o->error = h.error;
    if (made) {
        o->size = e->content_size - o->skip + (int64_t)o->header.length;
        o->utf8_header = envelope_has_utf8_header(e) &&
                         (h.scan.composite || !text_is_ascii(buffer_text(&o->header)));
    } else if (read) {
        outgoing_log_unchanged(e, REWRITTEN_MAX, " when it is rewritten", log);
    } else if (h.scan.length > MESSAGE_HEAD_MAX) {
        outgoing_log_unchanged(e, MESSAGE_HEAD_MAX, "", log);
    }
    message_head_free(&h);
    outgoing_close(queue, content);
    return made;
}

static bool
outgoing_is_rewritten(const struct envelope *e, const struct outgoing_rules *rules)
{
    return rules != NULL && !rules->to_mailbox && e->ours &&
           (e->header_needs != 0 || rules->rewrites != NULL);
}

static bool
outgoing_may_change(const struct envelope *e, const struct outgoing_rules *rules)
{
    return outgoing_is_rewritten(e, rules) || (rules != NULL && rules->to_mailbox);
}

/* To the queue it stays a notification: what the next hop says of it is reported to nobody
 * but postmaster. */
static bool
outgoing_is_bounce(const struct envelope *e, const struct recipient_way *way,
                   const struct outgoing_rules *rules)
{
    return rules != NULL && rules->bounce_sender != NULL &&
           envelope_way_sender(e, way).length == 0;
}

/* Appends the header as it is stored to o. */
static bool
outgoing_keep_header(struct outgoing *o, const struct envelope *e, size_t before)
{
    o->header.length = before;
    o->skip = 0;
    o->utf8_header = envelope_has_utf8_header(e);
    bool kept = buffer_add(&o->header, e->prefix);
    o->size = e->content_size + (int64_t)o->header.length;
    return kept;
}

/* The same as a mailbox gets it. False: it is as it is stored. */
static bool
outgoing_make_for_mailbox(struct outgoing *o, struct queue *queue,
                          const struct envelope *e)
{
    size_t before = o->header.length;
    int content = queue_content_open(queue, e);
    int64_t used = message_head_for_mailbox(queue, content, e, &o->header);
    outgoing_close(queue, content);
    o->error = used < 0 ? (int)used : 0;
    o->skip = used;
    o->size = e->content_size - used + (int64_t)o->header.length;
    o->utf8_header = envelope_has_utf8_header(e);
    return used >= 0 && o->header.length - before != e->prefix.length + (size_t)used;
}

/* False: the header is as it is stored. */
static bool
outgoing_make_header(struct outgoing *o, struct queue *queue, const struct envelope *e,
                     const struct outgoing_rules *rules, struct log *log)
{
    if (rules != NULL && rules->to_mailbox)
        return outgoing_make_for_mailbox(o, queue, e);
    return outgoing_is_rewritten(e, rules) && outgoing_make(o, queue, e, rules, log);
}

/* --- Fields that the route changes -------------------------------------------------- */

static bool
outgoing_has(const char *list)
{
    return list != NULL && list[0] != '\0';
}

/* Appends the whole header as it is stored. False: it is too long, or cannot be read. */
static bool
outgoing_read_header(struct outgoing *o, struct queue *queue, const struct envelope *e,
                     size_t before, struct log *log)
{
    struct message_head h;
    int content = queue_content_open(queue, e);
    bool read = message_head_read(&h, queue, content, e);
    struct text all = buffer_text(&h.bytes);
    size_t length = h.scan.ended ? h.scan.length : all.length;
    o->header.length = before;
    o->error = h.error;
    bool good = read && length >= e->prefix.length && length <= MESSAGE_HEAD_MAX &&
                buffer_add(&o->header, text_before(all, length));
    if (good) {
        o->skip = (int64_t)(length - e->prefix.length);
        o->size = e->content_size - o->skip + (int64_t)o->header.length;
        o->utf8_header = envelope_has_utf8_header(e);
    } else if (h.scan.length > MESSAGE_HEAD_MAX) {
        outgoing_log_unchanged(e, MESSAGE_HEAD_MAX, "", log);
    }
    message_head_free(&h);
    outgoing_close(queue, content);
    return good;
}

static bool
outgoing_is_removed(const char *list, struct text name)
{
    struct text rest = text_from(list), one;
    while (text_cut(&rest, ',', &one))
        if (text_equal_nocase(one, name))
            return true;
    return false;
}

/* Fields that the route adds, in the first `before` bytes, may have the name of one that it
 * removes. */
static bool
outgoing_remove(struct outgoing *o, size_t before, const char *list)
{
    struct buffer left;
    struct header_field f;
    struct text all = buffer_text(&o->header), rest = text_after(all, before);
    buffer_init(&left, o->header.limit);
    bool good = buffer_add(&left, text_before(all, before));
    while (header_next(&rest, &f))
        if (!outgoing_is_removed(list, f.name))
            good = good && buffer_add(&left, f.whole);
    good = good && buffer_add(&left, rest);
    o->size += (int64_t)left.length - (int64_t)o->header.length;
    buffer_free(&o->header);
    o->header = left;
    return good;
}

struct outgoing *
outgoing_new(struct queue *queue, const struct envelope *e,
             const struct recipient_way *way, const struct outgoing_rules *rules,
             struct log *log)
{
    bool is_bounce = outgoing_is_bounce(e, way, rules);
    bool is_redirect = rules != NULL && rules->original.length > 0;
    bool adds = rules != NULL && outgoing_has(rules->add_header);
    bool removes = rules != NULL && outgoing_has(rules->remove_header);
    bool changes = way != NULL || is_bounce || is_redirect || adds || removes;
    if (!outgoing_may_change(e, rules) && !changes)
        return NULL;
    struct outgoing *o = memory_new(sizeof(*o));
    buffer_init(&o->header, REWRITTEN_MAX);
    bool good =
        (way == NULL || write_delivered_to(o, way)) && write_original_to(o, rules);
    good = good && (!adds || buffer_add(&o->header, text_from(rules->add_header)));
    size_t before = o->header.length;
    bool is_new = outgoing_make_header(o, queue, e, rules, log);
    bool is_whole = is_new || (good && removes && o->error == 0 &&
                               outgoing_read_header(o, queue, e, before, log));
    if (!is_whole)
        good = (changes || o->error != 0) && good && outgoing_keep_header(o, e, before);
    if (good && removes && is_whole)
        good = outgoing_remove(o, before, rules->remove_header);
    if (good)
        replace_sender(o, e, way, is_new ? rules : NULL);
    if (good && is_bounce)
        (void)!text_copy(o->sender, sizeof(o->sender), text_from(rules->bounce_sender));
    if (!good)
        outgoing_free(&o);
    return o;
}

static bool
outgoing_is_tagged(const struct envelope *e, const struct recipient *r,
                   const struct outgoing_rules *rules)
{
    return rules != NULL && rules->verp != NULL && e->ours && e->sender.length > 0 &&
           (r->way == NULL || r->way->sender.length == 0) &&
           (r->notify & NOTIFY_SUCCESS) == 0 && e->trust.length == 0;
}

void
outgoing_tag(struct outgoing **o, const struct envelope *e, const struct recipient *r,
             const struct outgoing_rules *rules, int64_t now_ms)
{
    char tagged[ADDRESS_MAX + 1];
    struct buffer header;
    if (!outgoing_is_tagged(e, r, rules) ||
        !verp_make(rules->verp, e->id, r->address, now_ms, tagged))
        return;
    struct outgoing *made = *o;
    if (made == NULL) {
        made = memory_new(sizeof(*made));
        buffer_init(&made->header, REWRITTEN_MAX);
        if (!outgoing_keep_header(made, e, 0))
            outgoing_free(&made);
    }
    buffer_init(&header, REWRITTEN_MAX);
    if (made != NULL &&
        verp_stamp(rules->verp, text_from(tagged), e->sender, r->address, &header)) {
        made->size += (int64_t)header.length;
        if (buffer_add(&header, buffer_text(&made->header))) {
            buffer_free(&made->header);
            made->header = header;
            buffer_init(&header, 0);
            text_copy(made->sender, sizeof(made->sender), text_from(tagged));
            *o = made;
            return;
        }
        made->size -= (int64_t)header.length;
    }
    buffer_free(&header);
    if (*o == NULL)
        outgoing_free(&made);
}

void
outgoing_free(struct outgoing **o)
{
    if (*o == NULL)
        return;
    buffer_free(&(*o)->header);
    free(*o);
    *o = NULL;
}

struct text
outgoing_sender(const struct outgoing *o, const struct envelope *e)
{
    if (o == NULL || (o->sender[0] == '\0' && !o->null_sender))
        return e->sender;
    return text_from(o->sender);
}

int64_t
outgoing_size(const struct outgoing *o, const struct envelope *e)
{
    return o != NULL ? o->size : e->content_size + (int64_t)e->prefix.length;
}

struct text
outgoing_header(const struct outgoing *o)
{
    return o != NULL ? buffer_text(&o->header) : TEXT("");
}

bool
outgoing_has_utf8_header(const struct outgoing *o, const struct envelope *e)
{
    return o != NULL ? o->utf8_header : envelope_has_utf8_header(e);
}
