/* The description of a message: members, offsets, odd bytes. */
#include "admin/mime.h"

#include "t/tap.h"

static json_t *
part_of(json_t *description, size_t index)
{
    json_t *message = json_object_get(description, "message");
    return json_array_get(json_object_get(message, "parts"), index);
}

static const char *
word(json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

static int64_t
number(json_t *object, const char *member)
{
    return json_integer_value(json_object_get(object, member));
}

static void
test_parts(void)
{
    static const char content[] =
        "Content-Type: Multipart/Mixed; boundary=b\r\n\r\n--b\r\n"
        "Content-Type: text/plain; name=\"a\xc3\xa9\xff\"\r\n"
        "Content-Disposition: Attachment; filename=x\r\nContent-Disposition: inline\r\n"
        "Content-Transfer-Encoding: BASE64\r\n\r\nYQ==\r\n--b\r\nodd\r\n";
    json_t *d = mime_describe(TEXT(content)), *part = part_of(d, 0);
    is_number(number(d, "size"), sizeof(content) - 1, "size");
    json_t *message = json_object_get(d, "message");
    is_string(word(message, "type"), "multipart/mixed", "type");
    is_string(word(json_object_get(message, "parameters"), "boundary"), "b", "boundary");
    is_number(json_array_size(json_object_get(message, "parts")), 2, "two parts");
    is_string(word(part, "type"), "text/plain", "type of the first");
    is_string(word(part, "encoding"), "base64", "its encoding");
    is_string(word(part, "disposition"), "attachment", "its first disposition");
    is_string(word(json_object_get(part, "disposition_parameters"), "filename"), "x",
              "its file name");
    is_string(word(json_object_get(part, "parameters"), "name"), "a\xc3\xa9\\xff",
              "what is no UTF-8 is escaped");
    const char *body = strstr(content, "YQ==");
    is_number(number(part, "header_at"), strstr(content, "--b") + 5 - content, "header");
    is_number(number(part, "body_at"), body - content, "body");
    is_number(number(part, "end_at"), body + 4 - content, "end");
    is_string(json_string_value(json_array_get(
                  json_object_get(part_of(d, 1), "problems"), 0)),
              "a line that is no field ends the header", "a problem of the second");
    is_string(json_string_value(json_array_get(json_object_get(message, "problems"), 0)),
              "the closing boundary is missing", "a problem of the whole");
    json_decref(d);
}

static void
test_conversion(void)
{
    static const struct {
        const char *content, *verdict, *reason;
    } rows[] = {
        {"\r\nx\r\n", "not needed", NULL},
        {"\r\n\xe9\r\n", "convertible", NULL},
        {"X: \xe9\r\n", "forbidden", "a header field holds what no hop without 8BITMIME takes"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *d = mime_describe(text_from(rows[i].content));
        json_t *to = json_object_get(d, "to_7bit");
        is_string(word(to, "verdict"), rows[i].verdict, "the verdict");
        is_string(word(to, "reason"), rows[i].reason, "the reason");
        ok((number(to, "size_max") > 0) == (i == 1));
        json_decref(d);
    }
}

/* Every level that is looked into, and no byte at all. */
static void
test_limits(void)
{
    static char content[200 * 30 + 1];
    for (size_t i = 0; i < 200; i++)
        memcpy(content + i * 30, "Content-Type: message/rfc822\n\n", 30);
    json_t *d = mime_describe(text_of(content, sizeof(content) - 1));
    json_t *part = json_object_get(d, "message");
    size_t depth = 0;
    for (; part != NULL; depth++)
        part = json_array_get(json_object_get(part, "parts"), 0);
    is_number(depth, 101, "as deep as is looked into");
    json_decref(d);
    d = mime_describe(TEXT(""));
    is_string(word(json_object_get(d, "message"), "type"), "text/plain", "an empty message");
    json_decref(d);
}

int
main(void)
{
    test_parts();
    test_conversion();
    test_limits();
    return done();
}
