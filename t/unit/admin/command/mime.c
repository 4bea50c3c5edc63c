/* The description of a message: members, offsets, odd bytes. */
#include "admin/command/mime.h"

#include "t/support/tap.h"

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
        "MIME-Version: 1.0\r\n"
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

/* All problems of a part, each behind a "|". */
static void
is_troubled(json_t *part, const char *wanted, const char *name)
{
    char all[2000] = "";
    size_t i, length = 0;
    json_t *problem;
    json_array_foreach (json_object_get(part, "problems"), i, problem)
        length += (size_t)snprintf(all + length, sizeof(all) - length, "|%s",
                                   json_string_value(problem));
    is_string(all, wanted, name);
}

/* clang-format off */
static const struct sample {
    const char *header, *member, *wanted, *problems;
} samples[] = {
    {"Subject: plain", "subject", "plain", ""},
    {"Subject:\r\n =?utf-8?Q?gr=C3=BCne?=\r\n =?iso-8859-1?B?IFb2Z2Vs?= ", "subject", "gr\xc3\xbcne V\xc3\xb6gel", ""},
    {"Subject: folded\r\n\tby a tab", "subject", "folded by a tab", ""},
    {"X: y", "subject", NULL, ""},
    {"Subject: a\nSubject: b", "subject", "a", "|subject: the field is there twice"},
    {"Subject: =?utf-8?Q?a b?=", "subject", "=?utf-8?Q?a b?=", "|subject: an encoded-word is malformed"},
    {"Subject: =?utf-8?Q?=00=0A=1B[0m?=", "subject", "\\x00\\x0a\\x1b[0m", "|subject: control characters are hidden in it"},
    {"Subject: \xff", "subject", "\\xff", "|subject: bytes that are neither ASCII nor UTF-8"},
    {"Content-Description: =?koi8-r?B?8NLJ?=", "description", "\xd0\x9f\xd1\x80\xd0\xb8", ""},
    {"Content-Disposition: attachment; filename=x.txt", "filename", "x.txt", ""},
    {"MIME-Version: 1.0\nContent-Type: text/plain; name=y.txt", "filename", "y.txt", ""},
    {"MIME-Version: 1.0\nContent-Type: text/plain; name=y\nContent-Disposition: inline; filename=x", "filename", "x", ""},
    {"Content-Disposition: inline; filename=x\nMIME-Version: 1.0\nContent-Type: text/plain; name=y", "filename", "x", ""},
    {"Content-Disposition: inline\nMIME-Version: 1.0\nContent-Type: text/plain; name=y", "filename", "y", ""},
    {"Content-Disposition: inline\nContent-Disposition: inline; filename=x", "filename", NULL, "|two fields Content-Disposition"},
    {"Content-Disposition: inline; filename=x; filename*=utf-8''%c3%bc", "filename", "\xc3\xbc", ""},
    {"Content-Disposition: inline; filename=\"=?utf-8?Q?=C3=BC?=\"", "filename", "\xc3\xbc", "|filename: an encoded-word stands where none may be"},
    {"Content-Disposition: inline; filename*=x''%ff", "filename", "\\xff", "|filename: a charset is unknown|filename: bytes that are neither ASCII nor UTF-8"},
    {"Content-Disposition: inline; filename", "filename", NULL, "|Content-Disposition is malformed"},
    {"Content-Transfer-Encoding: (a) base64 (b)", "encoding", "base64", ""},
    {"Content-Transfer-Encoding: base64; x=y", "encoding", "base64", "|Content-Transfer-Encoding is malformed"},
    {"Content-Transfer-Encoding: 8bit 7bit", "encoding", "8bit", "|Content-Transfer-Encoding is malformed"},
    {"Content-Type: text/plain", "type", "text/plain", "|MIME-Version is missing"},
};
/* clang-format on */

static void
test_words(void)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        json_t *d = mime_describe(text_from(samples[i].header));
        json_t *message = json_object_get(d, "message");
        is_string(word(message, samples[i].member), samples[i].wanted, samples[i].header);
        is_troubled(message, samples[i].problems, "problems");
        json_decref(d);
    }
    static const char inner[] = "Subject: =?utf-8?q?outer?=\nContent-Type: message/rfc822\n"
                                "Content-Description: it\n\nSubject: =?utf-8?q?inner?=\n\nx";
    json_t *d = mime_describe(TEXT(inner));
    is_string(word(part_of(d, 0), "subject"), "inner", "a message within has its own");
    is_string(word(json_object_get(d, "message"), "subject"), "outer", "and the whole");
    json_decref(d);
    static const char parts[] = "MIME-Version: 1\nContent-Type: multipart/x; boundary=b\n\n--b\n"
                                "Subject: none\n\n\n--b\nContent-Type: a/b; p*=iso-8859-1''%fc; q=\"=?utf-8?q?a?=\"\n\n--b--";
    d = mime_describe(TEXT(parts));
    ok_named(word(part_of(d, 0), "subject") == NULL, "other parts have none");
    json_t *given = json_object_get(part_of(d, 1), "parameters");
    is_string(word(given, "p"), "\xc3\xbc", "a parameter in its charset");
    is_string(word(given, "q"), "=?utf-8?q?a?=", "others as written");
    json_decref(d);
}

static void
test_bodies(void)
{
    static const struct {
        const char *content;
        long long size;
        const char *problems;
    } rows[] = {
        {"Content-Transfer-Encoding: base64\n\nYWJj\nZA==\n", 4, ""},
        {"Content-Transfer-Encoding: base64\n\nYWJj\nZA*", 4,
         "|base64 with bytes that mean nothing in it|base64 is not padded as it should be"},
        {"Content-Transfer-Encoding: quoted-printable\n\na=3D=\nb \n", 4, ""},
        {"Content-Transfer-Encoding: quoted-printable\n\n=z\xff", 3,
         "|quoted-printable with '=' that is no escape|quoted-printable with bytes that need encoding"},
        {"Content-Transfer-Encoding: 8bit\n\n=z", -1, ""},
        {"Content-Transfer-Encoding: base64", 0, ""},
        {"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\nMIME-Version: 1.0\n\nYTpi", 3,
         "|a multipart or message is labelled as encoded"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *d = mime_describe(text_from(rows[i].content));
        json_t *message = json_object_get(d, "message");
        json_t *size = json_object_get(message, "decoded_size");
        is_number(size == NULL ? -1 : json_integer_value(size), rows[i].size, rows[i].content);
        is_troubled(message, rows[i].problems, "problems");
        json_decref(d);
    }
}

static void
test_boundary(void)
{
    char content[300];
    for (int length = 70; length <= 71; length++) {
        snprintf(content, sizeof(content),
                 "MIME-Version: 1.0\nContent-Type: multipart/x; boundary=%0*d\n\n--%0*d--",
                 length, 0, length, 0);
        json_t *d = mime_describe(text_from(content));
        is_troubled(json_object_get(d, "message"),
                    length == 70 ? "" : "|the boundary is longer than 70 bytes", content);
        json_decref(d);
    }
}

/* For any bytes it is JSON, which is UTF-8, and reads as it was. */
static void
test_any_bytes(void)
{
    unsigned seed = 7;
    for (int round = 0; round < 200; round++) {
        char content[600] = "Subject: =?utf-8?Q?";
        for (size_t i = strlen(content); i < sizeof(content); i++) {
            seed = seed * 1103515245 + 12345;
            content[i] = (char)(seed >> 16);
            if (i % 37 == 0)
                memcpy(content + i - 12, "\n \"=?big5?q?", 12);
        }
        static const char odd[] = "?=\nContent-Disposition: \xff; filename*=koi8-r''%";
        memcpy(content + 300, odd, sizeof(odd) - 1);
        json_t *d = mime_describe(text_of(content, sizeof(content)));
        char *dumped = json_dumps(d, 0);
        json_t *back = dumped == NULL ? NULL : json_loads(dumped, 0, NULL);
        ok(back != NULL && json_equal(back, d));
        json_decref(back);
        free(dumped);
        json_decref(d);
    }
}

static void
test_conversion(void)
{
    static const struct {
        const char *content, *verdict, *reason;
    } rows[] = {
        {"\r\nx\r\n", "not needed", NULL},
        {"\r\n\xe9\r\n", "convertible", NULL},
        {"X: \xe9\r\n", "forbidden", "a header field has bytes that no hop without 8BITMIME takes"},
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
    test_words();
    test_bodies();
    test_boundary();
    test_any_bytes();
    test_conversion();
    test_limits();
    return done();
}
