/* mime: how fast the structure of messages is read, by mime/structure and, in turn with
 * it and asked for the same, by GMime where that is there. */
#include "mime/parts/structure.h"

#include "base/buffer.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef HAVE_GMIME
#include <gmime/gmime.h>
#endif

enum {
    TOTAL = 50 * 1000 * 1000, /* bytes, of each case and round */
    PIECE = 64 * 1024,
    ROUNDS = 7,
    BAR_MB = 500
};

/* The counts that both must find. */
struct found {
    uint64_t leaves, base64, offsets, bytes; /* offsets: their sum */
    uint64_t texts;                          /* of type text/plain */
};

static double
now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- The messages ----------------------------------------------------------------- */

static void
put(struct buffer *b, const char *text)
{
    if (!buffer_add(b, text_from(text)))
        abort();
}

static void
put_lines(struct buffer *b, size_t size)
{
    static const char line[] =
        "SGVsbG8sIGhlcmUgaXMgYSBsaW5lIG9mIGJhc2U2NCB0aGF0IGlzIGFz"
        "IGxvbmcgYXMgdGhleSBh\r\n";
    for (size_t end = b->length + size; b->length < end;)
        put(b, line);
}

static void
put_top(struct buffer *b, const char *boundary)
{
    put(b, "From: a@x.test\r\nTo: b@y.test\r\nSubject: a message\r\n"
           "Date: Sat, 21 Nov 2026 03:05:08 +0000\r\nMessage-ID: <1@x.test>\r\n"
           "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"");
    put(b, boundary);
    put(b, "\"\r\n\r\n");
}

static void
make_attachment(struct buffer *b)
{
    put_top(b, "=_one");
    put(b, "--=_one\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nSee there.\r\n"
           "--=_one\r\nContent-Type: application/octet-stream; name=\"a.bin\"\r\n"
           "Content-Transfer-Encoding: base64\r\n"
           "Content-Disposition: attachment; filename=\"a.bin\"\r\n\r\n");
    put_lines(b, TOTAL);
    put(b, "--=_one--\r\n");
}

/* As many as mime/structure looks at. */
static void
make_small_parts(struct buffer *b)
{
    put_top(b, "=_small");
    for (int i = 0; i < 900; i++) {
        put(b, "--=_small\r\nContent-Type: text/plain; charset=us-ascii\r\n"
               "Content-Transfer-Encoding: 7bit\r\n\r\n");
        put_lines(b, 800);
    }
    put(b, "--=_small--\r\n");
}

static void
make_nested(struct buffer *b)
{
    char line[200];
    enum { DEPTH = 60, FIELDS = 30 };
    put_top(b, "=_level0");
    for (int depth = 0; depth < DEPTH; depth++) {
        snprintf(line, sizeof(line), "--=_level%d\r\n", depth);
        put(b, line);
        for (int i = 0; i < FIELDS; i++) {
            snprintf(line, sizeof(line),
                     "X-Field-%d: some value that is as long as values are,\r\n"
                     "\tand goes on in a second line; number=%d\r\n",
                     i, depth);
            put(b, line);
        }
        snprintf(line, sizeof(line),
                 "Content-Type: multipart/mixed; boundary=\"=_level%d\"\r\n\r\n",
                 depth + 1);
        put(b, line);
    }
    for (int depth = DEPTH; depth >= 0; depth--) {
        snprintf(line, sizeof(line), "--=_level%d\r\nContent-Type: text/plain\r\n\r\n",
                 depth);
        put(b, line);
        put_lines(b, 800);
        snprintf(line, sizeof(line), "--=_level%d--\r\n", depth);
        put(b, line);
    }
}

/* --- Petrel ----------------------------------------------------------------------- */

struct ours {
    struct found found;
    uint64_t body_at;
    bool is_leaf;
};

static void
on_event(void *context, const struct structure_event *e)
{
    struct ours *o = context;
    if (e->kind == STRUCTURE_HEADER) {
        o->is_leaf = e->part->holds == STRUCTURE_LEAF;
        o->body_at = e->part->body_at;
        o->found.leaves += o->is_leaf;
        o->found.base64 += o->is_leaf && e->part->encoding == ENCODING_BASE64;
        o->found.texts += parameters_is(e->part->type, "text", "plain");
    } else if (e->kind == STRUCTURE_END && o->is_leaf) {
        o->found.offsets += o->body_at;
        o->found.bytes += e->offset - o->body_at;
        o->is_leaf = false;
    }
}

static void
read_ours(struct text message, struct found *found)
{
    struct ours o = {.found = *found};
    struct structure *s = structure_new(on_event, &o);
    for (; message.length > 0; message = text_after(message, PIECE))
        structure_add(s, text_before(message, PIECE));
    structure_end(s);
    structure_free(&s);
    *found = o.found;
}

/* --- GMime ------------------------------------------------------------------------ */

#ifdef HAVE_GMIME
static GByteArray *gmime_bytes;

static void
on_object(GMimeObject *parent, GMimeObject *object, gpointer context)
{
    struct found *found = context;
    (void)parent;
    if (!GMIME_IS_PART(object))
        return;
    GMimePart *part = (GMimePart *)object;
    GMimeStream *stream = g_mime_data_wrapper_get_stream(g_mime_part_get_content(part));
    found->leaves++;
    found->base64 +=
        g_mime_part_get_content_encoding(part) == GMIME_CONTENT_ENCODING_BASE64;
    GMimeContentType *type = g_mime_object_get_content_type(object);
    found->texts += g_mime_content_type_is_type(type, "text", "plain") ? 1 : 0;
    found->offsets += (uint64_t)stream->bound_start;
    found->bytes += (uint64_t)(stream->bound_end - stream->bound_start);
}

static void
read_theirs(struct text message, struct found *found)
{
    (void)message; /* has been copied, untimed */
    GMimeStream *stream = g_mime_stream_mem_new();
    g_mime_stream_mem_set_owner((GMimeStreamMem *)stream, FALSE);
    g_mime_stream_mem_set_byte_array((GMimeStreamMem *)stream, gmime_bytes);
    GMimeParser *parser = g_mime_parser_new_with_stream(stream);
    GMimeMessage *whole = g_mime_parser_construct_message(parser, NULL);
    g_mime_message_foreach(whole, on_object, found);
    g_object_unref(whole);
    g_object_unref(parser);
    g_object_unref(stream);
}
#endif

/* --- In turn ---------------------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

/* MB/s over all of it. */
static double
measure(struct text message, void (*read)(struct text, struct found *),
        struct found *found)
{
    size_t times = message.length < TOTAL ? TOTAL / message.length : 1;
    *found = (struct found){0};
    double start = now_s();
    for (size_t i = 0; i < times; i++)
        read(message, found);
    return (double)(times * message.length) / 1e6 / (now_s() - start);
}

static void
run(const char *name, void (*make)(struct buffer *b))
{
    struct buffer b;
    struct found ours, theirs;
    double our_speed[ROUNDS], their_speed[ROUNDS];
    buffer_init(&b, (size_t)2 * TOTAL);
    make(&b);
    struct text message = buffer_text(&b);
    bool differ = false;
#ifdef HAVE_GMIME
    gmime_bytes = g_byte_array_sized_new((guint)message.length);
    g_byte_array_append(gmime_bytes, (const guint8 *)message.at, (guint)message.length);
#endif
    for (int i = 0; i < ROUNDS; i++) {
        our_speed[i] = measure(message, read_ours, &ours);
        theirs = ours;
        their_speed[i] = 0;
#ifdef HAVE_GMIME
        their_speed[i] = measure(message, read_theirs, &theirs);
#endif
        differ = differ || memcmp(&ours, &theirs, sizeof(ours)) != 0;
    }
    qsort(our_speed, ROUNDS, sizeof(our_speed[0]), compare);
    qsort(their_speed, ROUNDS, sizeof(their_speed[0]), compare);
    double middle = our_speed[ROUNDS / 2], other = their_speed[ROUNDS / 2];
    printf("%-34s %6.0f MB/s (%.0f-%.0f), the bar is %d: %s", name, middle,
           our_speed[0], our_speed[ROUNDS - 1], BAR_MB,
           middle >= BAR_MB ? "ok" : "MISSED");
    if (other > 0)
        printf("; GMime %.0f (%.0f-%.0f), %.2fx: %s", other, their_speed[0],
               their_speed[ROUNDS - 1], middle / other,
               middle > other ? "ok" : "MISSED");
    puts(differ ? "; they differ" : "");
    if (differ)
        printf("  leaves %llu %llu, base64 %llu %llu, texts %llu %llu, offsets %llu "
               "%llu, bytes %llu %llu\n",
               (unsigned long long)ours.leaves, (unsigned long long)theirs.leaves,
               (unsigned long long)ours.base64, (unsigned long long)theirs.base64,
               (unsigned long long)ours.texts, (unsigned long long)theirs.texts,
               (unsigned long long)ours.offsets, (unsigned long long)theirs.offsets,
               (unsigned long long)ours.bytes, (unsigned long long)theirs.bytes);
#ifdef HAVE_GMIME
    g_byte_array_unref(gmime_bytes);
#endif
    buffer_free(&b);
}

int
main(void)
{
#ifdef HAVE_GMIME
    g_mime_init();
    printf("The structure of 50 MB, Petrel and GMime %d.%d.%d in turn, %d rounds\n",
           GMIME_MAJOR_VERSION, GMIME_MINOR_VERSION, GMIME_MICRO_VERSION, ROUNDS);
#else
    printf("The structure of 50 MB (gmime-3.0 is not there: Petrel alone), %d rounds\n",
           ROUNDS);
#endif
    run("one attachment of 50 MB", make_attachment);
    run("900 small parts, many times", make_small_parts);
    run("60 levels, many fields, many times", make_nested);
    puts("");
    return 0;
}
