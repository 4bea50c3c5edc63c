/* A step after the other: each adds to `made`, which is handed out before the next. */
#include "queue/poster/poster_json.h"

#include "base/crypto/base64.h"
#include "mime/header.h"

#include <string.h>

static struct json_writer
json_of(struct poster_json *j)
{
    return (struct json_writer){.out = &j->made};
}

/* --- Content ------------------------------------------------------------------------ */

/* Octets at the end that a character may need with others behind them. */
static size_t
poster_json_open_end(struct text t)
{
    for (size_t back = 1, whole; back <= 3 && back <= t.length; back++)
        if (text_character_start(text_after(t, t.length - back), &whole) == back &&
            whole > back)
            return back;
    return 0;
}

/* Without CR: lines end in LF. */
static void
poster_json_put_text(struct poster_json *j, struct text t)
{
    struct json_writer w = json_of(j);
    char character[4];
    bool is_latin = j->leaves.list[j->leaf].charset == LEAF_LATIN;
    while (t.length > 0) {
        size_t run = 0;
        while (run < t.length && t.at[run] != '\r' &&
               !(is_latin && (unsigned char)t.at[run] >= 0x80))
            run++;
        json_put_escaped(&w, text_before(t, run));
        t = text_after(t, run);
        if (t.length > 0 && t.at[0] != '\r')
            json_put(&w, text_of(character,
                                 leaves_from_latin((unsigned char)t.at[0], character)));
        t = text_after(t, 1);
    }
}

/* The decoder's: what is held from before, and the bytes, but for an end that must wait. */
static void
poster_json_sink(void *context, struct text bytes)
{
    struct poster_json *j = context;
    const struct leaf *leaf = &j->leaves.list[j->leaf];
    char all[DECODE_CHUNK + sizeof(j->held)];
    memcpy(all, j->held, j->held_length);
    memcpy(all + j->held_length, bytes.at, bytes.length);
    struct text t = text_of(all, j->held_length + bytes.length);
    size_t keep = leaf->role == LEAF_FILE      ? t.length % 3
                  : leaf->charset == LEAF_UTF8 ? poster_json_open_end(t)
                                               : 0;
    struct text whole = text_before(t, t.length - keep);
    if (leaf->role == LEAF_FILE)
        (void)!base64_encode(whole, &j->made);
    else
        poster_json_put_text(j, whole);
    memcpy(j->held, whole.at + whole.length, keep);
    j->held_length = keep;
}

static void
poster_json_open_leaf(struct poster_json *j)
{
    const struct leaf *leaf = &j->leaves.list[j->leaf];
    j->in_leaf = true;
    j->at = (int64_t)leaf->from;
    j->held_length = 0;
    decode_start(&j->decode, leaf->encoding, poster_json_sink, j);
}

/* True at its end. */
static bool
poster_json_close_leaf(struct poster_json *j)
{
    const struct leaf *leaf = &j->leaves.list[j->leaf];
    if (j->at < (int64_t)leaf->to)
        return false;
    decode_end(&j->decode);
    if (leaf->role == LEAF_FILE)
        (void)!base64_encode(text_of(j->held, j->held_length), &j->made);
    else
        poster_json_put_text(j, text_of(j->held, j->held_length));
    j->in_leaf = false;
    return true;
}

/* A piece of the message up to `to` goes to the leaves, or to the decoder. */
static bool
poster_json_read(struct poster_json *j, int64_t to)
{
    struct buffer piece;
    int64_t left = to - j->at;
    buffer_init(&piece, left < POSTER_JSON_READ ? (size_t)left : POSTER_JSON_READ);
    bool good = j->read(j->context, j->at, &piece) && piece.length > 0;
    j->at += (int64_t)piece.length;
    if (good && j->step == POSTER_JSON_SCAN)
        leaves_add(&j->leaves, buffer_text(&piece));
    else if (good)
        decode_add(&j->decode, buffer_text(&piece));
    buffer_free(&piece);
    return good;
}

/* --- Steps -------------------------------------------------------------------------- */

static bool
poster_json_scan(struct poster_json *j)
{
    if (j->at < j->size)
        return poster_json_read(j, j->size);
    leaves_end(&j->leaves);
    poster_json_rewind(j);
    return true;
}

static void
poster_json_put_subject(struct poster_json *j, struct json_writer *w)
{
    struct text rest = j->header;
    struct header_field f;
    struct buffer flat, plain;
    while (header_next(&rest, &f)) {
        if (!text_equal_nocase(f.name, TEXT("Subject")))
            continue;
        buffer_init(&flat, POSTER_JSON_FIELD_MAX);
        buffer_init(&plain, POSTER_JSON_FIELD_MAX);
        if (header_unfold(text_before(f.value, POSTER_JSON_FIELD_MAX), &flat))
            leaves_decode_words(text_trim(buffer_text(&flat)), &plain);
        json_put_string(w, TEXT(",\"subject\":"), buffer_text(&plain));
        buffer_free(&flat);
        buffer_free(&plain);
        return;
    }
}

static void
poster_json_put_begin(struct poster_json *j)
{
    struct json_writer w = json_of(j);
    json_put(&w, TEXT("{"));
    json_put(&w, j->envelope);
    json_put_number(&w, TEXT("\"size\":"), j->size);
    poster_json_put_subject(j, &w);
    json_put(&w, TEXT(",\"headers\":["));
    j->fields = j->header;
    j->is_first = true;
    j->step = POSTER_JSON_FIELDS;
}

static void
poster_json_next_step(struct poster_json *j)
{
    struct json_writer w = json_of(j);
    j->step++;
    j->leaf = 0;
    j->is_first = true;
    if (j->step == POSTER_JSON_FILES)
        json_put(&w, TEXT(",\"attachments\":["));
    if (j->step != POSTER_JSON_OVER)
        return;
    json_put(&w, TEXT("]"));
    if (j->leaves.omitted > 0)
        json_put_number(&w, TEXT(",\"omitted\":"), (int64_t)j->leaves.omitted);
    json_put(&w, TEXT("}"));
}

static void
poster_json_put_field(struct poster_json *j)
{
    struct json_writer w = json_of(j);
    struct header_field f;
    struct buffer flat;
    if (!header_next(&j->fields, &f)) {
        json_put(&w, TEXT("]"));
        poster_json_next_step(j);
        return;
    }
    buffer_init(&flat, POSTER_JSON_FIELD_MAX);
    (void)!header_unfold(text_before(f.value, POSTER_JSON_FIELD_MAX), &flat);
    json_put_string(&w, j->is_first ? TEXT("[") : TEXT(",["), f.name);
    json_put_string(&w, TEXT(","), text_trim(buffer_text(&flat)));
    json_put(&w, TEXT("]"));
    buffer_free(&flat);
    j->is_first = false;
}

static void
poster_json_put_member(struct poster_json *j, struct json_writer *w, struct text before,
                       size_t text)
{
    if (text > 0)
        json_put_string(w, before, leaves_text(&j->leaves, text));
}

/* Up to the content of the leaf. */
static void
poster_json_put_leaf(struct poster_json *j)
{
    const struct leaf *leaf = &j->leaves.list[j->leaf];
    struct json_writer w = json_of(j);
    if (leaf->role == LEAF_FILE) {
        json_put_string(&w, j->is_first ? TEXT("{\"type\":") : TEXT(",{\"type\":"),
                        leaves_text(&j->leaves, leaf->type));
        poster_json_put_member(j, &w, TEXT(",\"charset\":"), leaf->charset_name);
        poster_json_put_member(j, &w, TEXT(",\"name\":"), leaf->name);
        poster_json_put_member(j, &w, TEXT(",\"id\":"), leaf->id);
        json_put(&w, leaf->is_inline ? TEXT(",\"inline\":true,\"content\":\"")
                                     : TEXT(",\"inline\":false,\"content\":\""));
    } else {
        json_put(&w,
                 leaf->role == LEAF_TEXT ? TEXT(",\"text\":\"") : TEXT(",\"html\":\""));
    }
    j->is_first = false;
    poster_json_open_leaf(j);
}

static bool
poster_json_put_leaves(struct poster_json *j)
{
    enum leaf_role role = j->step == POSTER_JSON_TEXT   ? LEAF_TEXT
                          : j->step == POSTER_JSON_PAGE ? LEAF_PAGE
                                                        : LEAF_FILE;
    struct json_writer w = json_of(j);
    if (j->in_leaf) {
        if (!poster_json_close_leaf(j))
            return poster_json_read(j, (int64_t)j->leaves.list[j->leaf].to);
        json_put(&w, role == LEAF_FILE ? TEXT("\"}") : TEXT("\""));
        j->leaf++;
    }
    while (j->leaf < j->leaves.count && j->leaves.list[j->leaf].role != role)
        j->leaf++;
    if (j->leaf < j->leaves.count)
        poster_json_put_leaf(j);
    else
        poster_json_next_step(j);
    return true;
}

static bool
poster_json_go_on(struct poster_json *j)
{
    switch (j->step) {
    case POSTER_JSON_SCAN:
        return poster_json_scan(j);
    case POSTER_JSON_BEGIN:
        poster_json_put_begin(j);
        return true;
    case POSTER_JSON_FIELDS:
        poster_json_put_field(j);
        return true;
    case POSTER_JSON_TEXT:
    case POSTER_JSON_PAGE:
    case POSTER_JSON_FILES:
        return poster_json_put_leaves(j);
    case POSTER_JSON_OVER:
        break;
    }
    return true;
}

/* --- Public ------------------------------------------------------------------------- */

void
poster_json_begin(struct poster_json *j)
{
    j->step = POSTER_JSON_SCAN;
    j->at = 0;
    j->taken = 0;
    buffer_init(&j->made, POSTER_JSON_MADE_MAX);
    leaves_begin(&j->leaves);
}

void
poster_json_rewind(struct poster_json *j)
{
    j->step = POSTER_JSON_BEGIN;
    j->in_leaf = false;
    j->taken = 0;
    buffer_clear(&j->made);
}

bool
poster_json_is_over(const struct poster_json *j)
{
    return j->step == POSTER_JSON_OVER && j->taken == j->made.length;
}

bool
poster_json_next(struct poster_json *j, struct buffer *out)
{
    bool good = true, scans = j->step == POSTER_JSON_SCAN;
    size_t steps = 0; /* which may give nothing: white space in Base64 */
    while (good && out->length < out->limit && steps < POSTER_JSON_STEPS &&
           !poster_json_is_over(j)) {
        struct text some = text_after(buffer_text(&j->made), j->taken);
        some = text_before(some, out->limit - out->length);
        good = buffer_add(out, some);
        j->taken += some.length;
        if (j->taken < j->made.length || j->step == POSTER_JSON_OVER)
            continue;
        j->taken = 0;
        buffer_clear(&j->made);
        good = good && poster_json_go_on(j);
        steps += scans ? POSTER_JSON_STEPS : 1;
    }
    return good;
}

void
poster_json_free(struct poster_json *j)
{
    leaves_free(&j->leaves);
    buffer_free(&j->made);
}
