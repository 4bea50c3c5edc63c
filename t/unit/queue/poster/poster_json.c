/* The JSON of a message: its members, in the same octets for every size of pieces, and twice; whatever the message, jansson
 * reads it. */
#include "queue/poster/poster_json.h"

#include "t/support/tap.h"

#include <jansson.h>

static struct text message;
static size_t octets_read;

static bool
read_message(void *context, int64_t at, struct buffer *out)
{
    (void)context;
    octets_read += out->limit - out->length;
    return buffer_add(out, text_before(text_after(message, (size_t)at), out->limit - out->length));
}

static void
write_all(struct poster_json *j, size_t size, struct buffer *all)
{
    while (!poster_json_is_over(j)) {
        struct buffer piece;
        buffer_init(&piece, size);
        bool good = poster_json_next(j, &piece) && buffer_add(all, buffer_text(&piece));
        buffer_free(&piece);
        if (!good)
            break;
    }
}

static struct buffer
written(struct text t, size_t size)
{
    struct buffer all, again;
    struct poster_json j = {.read = read_message, .size = (int64_t)t.length, .envelope = TEXT("\"id\":\"x\","), .header = t};
    message = t;
    buffer_init(&all, 1 << 22);
    buffer_init(&again, 1 << 22);
    poster_json_begin(&j);
    write_all(&j, size, &all);
    poster_json_rewind(&j);
    write_all(&j, size, &again);
    ok_named(text_equal(buffer_text(&all), buffer_text(&again)), "twice the same");
    poster_json_free(&j);
    buffer_free(&again);
    return all;
}

static json_t *
parsed(struct text t)
{
    struct buffer whole = written(t, 16384);
    json_t *object = json_loadb(whole.at, whole.length, 0, NULL);
    ok_named(object != NULL, "jansson reads it");
    for (size_t size = 1; size < 40; size += 7) {
        struct buffer other = written(t, size);
        ok_named(text_equal(buffer_text(&other), buffer_text(&whole)), "in pieces of any size");
        buffer_free(&other);
    }
    buffer_free(&whole);
    return object;
}

static const char *
member(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "(none)";
}

TEST(members)
{
    json_t *object = parsed(TEXT("Subject: =?utf-8?q?a_=C3=A4?=\r\n =?utf-8?b?YmM=?= =?koi8-r?q?x?=\r\nX: 1\r\n\t2\r\n"
                                 "Content-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\n\r\na\xe2\x82\xac\r\n\"\\\x01\xff\r\n--m\r\n"
                                 "Content-Type: text/html; charset=windows-1252\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=80\r\n--m\r\n"
                                 "Content-Type: a/b; name=n.bin\r\nContent-ID: <i@x>\r\nContent-Transfer-Encoding: base64\r\n\r\nAAEC/w==\r\n--m--\r\n"));
    is_text(text_from(member(object, "subject")), TEXT("a \xc3\xa4" "bc =?koi8-r?q?x?="), "a subject");
    is_text(text_from(member(object, "text")), TEXT("a\xe2\x82\xac\n\"\\\x01\xef\xbf\xbd"), "a text");
    is_text(text_from(member(object, "html")), TEXT("\xe2\x82\xac"), "a page");
    const json_t *file = json_array_get(json_object_get(object, "attachments"), 0);
    is_text(text_from(member(file, "type")), TEXT("a/b"), "a type");
    is_text(text_from(member(file, "name")), TEXT("n.bin"), "a name");
    is_text(text_from(member(file, "id")), TEXT("i@x"), "an id");
    is_text(text_from(member(file, "content")), TEXT("AAEC/w=="), "a content");
    const json_t *field = json_array_get(json_object_get(object, "headers"), 1);
    is_text(text_from(json_string_value(json_array_get(field, 1))), TEXT("1\t2"), "a field, unfolded");
    json_decref(object);
}

TEST(odd_messages)
{
    static const struct text odd[] = {
        {"", 0}, {"x", 1}, {"\r\n", 2}, {"a: \0\xff\r\n\r\n\0", 10},
        {"Content-Type: message/rfc822\n\nContent-Type: multipart/x; boundary=b\n\n--b\n\nx", 73},
        {"Content-Transfer-Encoding: base64\n\n****\xe2", 40},
        {"Content-Type: text/plain; charset=utf-16\n\n\0a", 44},
        {"Content-Type: multipart/mixed; boundary=b\n\n--b\n--b--\n--b", 56},
    };
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
        json_decref(parsed(odd[i]));
}

static bool
read_nothing(void *context, int64_t at, struct buffer *out)
{
    (void)context, (void)at, (void)out;
    return false;
}

TEST(unreadable)
{
    struct poster_json j = {.read = read_nothing, .size = 10, .envelope = TEXT("\"id\":\"x\","), .header = TEXT("")};
    struct buffer out;
    buffer_init(&out, 100);
    poster_json_begin(&j);
    ok(!poster_json_next(&j, &out));
    poster_json_free(&j);
    buffer_free(&out);
}

/* In both passes: much white space in Base64 makes no octet, and must not take a whole turn. */
TEST(white_space)
{
    enum { SIZE = 1024 * 1024 };
    static const char head[] = "Content-Type: a/b\r\nContent-Transfer-Encoding: base64\r\n\r\nAAEC";
    char *big = malloc(SIZE);
    if (big == NULL)
        abort();
    memset(big, ' ', SIZE);
    memcpy(big, head, sizeof(head) - 1);
    memcpy(big + SIZE - 4, "AAEC", 4);
    message = text_of(big, SIZE);
    struct poster_json j = {.read = read_message, .size = SIZE, .envelope = TEXT("\"id\":\"x\","), .header = TEXT("")};
    struct buffer piece, all;
    size_t worst = 0;
    buffer_init(&all, 1000);
    poster_json_begin(&j);
    while (!poster_json_is_over(&j)) {
        buffer_init(&piece, 16384);
        octets_read = 0;
        if (!poster_json_next(&j, &piece) || !buffer_add(&all, buffer_text(&piece)))
            abort();
        worst = octets_read > worst ? octets_read : worst;
        buffer_free(&piece);
    }
    ok_named(worst <= POSTER_JSON_STEPS * POSTER_JSON_READ, "few octets at a time");
    ok(memmem(all.at, all.length, "\"AAECAAEC\"", 10) != NULL);
    poster_json_free(&j);
    buffer_free(&all);
    free(big);
}

/* A multipart whose boundary never comes is an attachment, as it is; parts beyond the limit of parts are omitted. */
TEST(parts_that_are_not_there)
{
    json_t *object = parsed(TEXT("Content-Type: multipart/mixed; boundary=b\r\n\r\nhello\r\n"));
    const json_t *file = json_array_get(json_object_get(object, "attachments"), 0);
    is_text(text_from(member(file, "type")), TEXT("multipart/mixed"), "a type");
    is_text(text_from(member(file, "content")), TEXT("aGVsbG8NCg=="), "all of it");
    json_decref(object);
}
