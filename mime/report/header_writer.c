/* Collects the text of a report; escapes all bytes from peers.
 *
 * Replies and addresses of peers become part of a message that is sent to others.
 * Without escapes a control byte could begin a header field or a delimiter of its own;
 * without folding a line could exceed the 998 bytes of RFC 5322. */
#include "mime/report/header_writer.h"

#include "base/log/log.h"

#include <assert.h>
#include <string.h>

void
header_writer_start(struct header_writer *e, bool utf8,
                    void (*write)(void *context, struct text bytes), void *context)
{
    assert(write != NULL);
    e->write = write;
    e->context = context;
    e->utf8 = utf8;
    e->used = e->column = 0;
}

void
header_writer_end(struct header_writer *e)
{
    if (e->used > 0)
        e->write(e->context, text_of(e->chunk, e->used));
    e->used = 0;
}

void
header_writer_put(struct header_writer *e, struct text own)
{
    while (own.length > 0) {
        size_t space = sizeof(e->chunk) - e->used;
        struct text part = text_before(own, space);
        memcpy(e->chunk + e->used, part.at, part.length);
        e->used += part.length;
        size_t end = text_find_last(part, '\n');
        e->column = end == TEXT_NONE ? e->column + part.length : part.length - end - 1;
        /* The words of our own are short; a failure here would be a peer's text that
         * was not cut. */
        assert(e->column < 998);
        own = text_after(own, part.length);
        if (e->used == sizeof(e->chunk))
            header_writer_end(e);
    }
}

void
header_writer_say(struct header_writer *e, const char *own)
{
    header_writer_put(e, text_from(own));
}

static bool
header_writer_is_plain(struct text t)
{
    for (size_t at = 0; at < t.length; at++)
        if (t.at[at] < ' ' || t.at[at] > '~')
            return false;
    return true;
}

/* Without control characters, and only ASCII unless utf8: t itself, or a copy in a
 * buffer, which the caller frees in either case. */
static struct text
header_writer_clean(const struct header_writer *e, struct text peer, struct buffer *out)
{
    struct buffer escaped;
    *out = (struct buffer){0};
    if (header_writer_is_plain(peer)) /* nearly always, and a report may have many */
        return peer;
    buffer_init(&escaped, peer.length * 4); /* every byte as \xNN */
    buffer_init(out, peer.length * 4);
    bool fits = log_escape(peer, &escaped);
    struct text t = buffer_text(&escaped);
    for (size_t at = 0; at < t.length && fits; at++) {
        unsigned char c = (unsigned char)t.at[at];
        fits = c < 0x80 || e->utf8 ? buffer_add_byte(out, (char)c)
                                   : buffer_format(out, "\\x%02X", c);
    }
    assert(fits && !text_has_control(buffer_text(out)));
    buffer_free(&escaped);
    return buffer_text(out);
}

/* Cuts t to at most max bytes, and not within a UTF-8 character. */
static struct text
header_writer_cut(struct text t, size_t max)
{
    if (t.length <= max)
        return t;
    while (max > 0 && ((unsigned char)t.at[max] & 0xc0) == 0x80)
        max--;
    return text_before(t, max);
}

/* An address is not folded: white space within would change it. */
void
header_writer_put_address(struct header_writer *e, struct text peer)
{
    struct buffer cleaned;
    struct text t =
        header_writer_clean(e, text_before(peer, HEADER_WRITER_WORD_MAX), &cleaned);
    header_writer_put(e, header_writer_cut(t, HEADER_WRITER_WORD_MAX));
    buffer_free(&cleaned);
}

/* Only spaces separate words: other white space is a control and was escaped. */
void
header_writer_put_words(struct header_writer *e, struct text peer, const char *indent)
{
    struct buffer cleaned;
    struct text rest = header_writer_clean(e, peer, &cleaned), word;
    bool first = true;
    while (text_word(&rest, " ", &word)) {
        while (word.length > 0) {
            struct text part = header_writer_cut(word, HEADER_WRITER_WORD_MAX);
            word = text_after(word, part.length);
            if (!first && e->column + 1 + part.length > HEADER_WRITER_FOLD) {
                header_writer_say(e, "\r\n");
                header_writer_say(e, indent);
            } else if (!first) {
                header_writer_say(e, " ");
            }
            header_writer_put(e, part);
            first = false;
        }
    }
    buffer_free(&cleaned);
}

/* The fields of RFC 3464 need a value, so an empty one is omitted. */
void
header_writer_field(struct header_writer *e, const char *name, const char *prefix,
                    struct text peer)
{
    if (text_trim(peer).length == 0)
        return;
    header_writer_say(e, name);
    header_writer_say(e, ": ");
    header_writer_say(e, prefix);
    header_writer_put_words(e, peer, " ");
    header_writer_say(e, "\r\n");
}
