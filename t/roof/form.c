/* Forms: text, page and files, their MIME, and the same in JSON. */
#include "t/roof/form.h"

#include "base/crypto/base64.h"
#include "base/memory.h"
#include "t/roof/roof.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum {
    FILES_MAX = 3,
    PART_MAX = 4 << 20,
    EXPANDS = 4, /* a part in its encoding, at most, with JSON's and others beside it */
    SUBJECT_CHARACTERS = 9,
    BASE64_LINE = 76,
    QUOTED_LINE = 70
};
#define BOUNDARY "=_roof"
#define INNER    "=_inner"

struct form {
    char subject[80], title[80]; /* as in the header, and what it says */
    struct buffer text, page, files[FILES_MAX];
    bool has_page, text_is_quoted;
    size_t file_count;
    char end[12];
};

/* --- Its parts -------------------------------------------------------------------- */

static void
draw_characters(struct buffer *to, size_t octets, uint64_t *chance)
{
    static const char *const characters[] = {"a",
                                             "b",
                                             "Z",
                                             "0",
                                             ".",
                                             "=",
                                             "-",
                                             " ",
                                             "\n",
                                             "\"",
                                             "\\",
                                             "\x01",
                                             "\xc3\xa9",
                                             "\xe2\x82\xac",
                                             "\xf0\x9f\x98\x80",
                                             "\t"};
    size_t end = to->length + octets;
    while (to->length < end) {
        uint64_t random = roof_random_of(chance);
        for (int i = 0; i < 16 && to->length < end; i++, random >>= 4)
            if (!buffer_add(to, text_from(characters[random & 15])))
                abort();
    }
}

static void
draw_octets(struct buffer *to, size_t octets, uint64_t *chance)
{
    while (to->length < octets) {
        uint64_t random = roof_random_of(chance);
        size_t some = octets - to->length < 8 ? octets - to->length : 8;
        if (!buffer_add(to, text_of((const char *)&random, some)))
            abort();
    }
}

static void
draw_subject(struct form *f, uint64_t *chance)
{
    static const char *const characters[] = {"x", "Y", "\xc3\xa9", "\xe2\x82\xac"};
    struct buffer said, coded;
    buffer_init(&said, sizeof(f->title) - 1);
    buffer_init(&coded, sizeof(f->subject) - 16);
    for (int i = 0; i < SUBJECT_CHARACTERS; i++)
        (void)!buffer_add(&said, text_from(characters[roof_below_of(chance, 4)]));
    if (!base64_encode(buffer_text(&said), &coded))
        abort();
    snprintf(f->title, sizeof(f->title), "%.*s", TEXT_ARGS(buffer_text(&said)));
    snprintf(f->subject, sizeof(f->subject),
             "=?utf-8?B?%.*s?=", TEXT_ARGS(buffer_text(&coded)));
    buffer_free(&said);
    buffer_free(&coded);
}

struct form *
form_draw(size_t size, uint64_t *chance)
{
    if (roof_below_of(chance, 4) == 0)
        return NULL;
    struct form *f = memory_new(sizeof(*f));
    f->file_count = roof_below_of(chance, FILES_MAX + 1);
    f->has_page = roof_below_of(chance, 3) == 0;
    f->text_is_quoted = roof_below_of(chance, 2) == 0;
    size_t each = size / EXPANDS / (1 + f->has_page + f->file_count);
    draw_subject(f, chance);
    buffer_init(&f->text, PART_MAX);
    buffer_init(&f->page, PART_MAX);
    draw_characters(&f->text, each, chance);
    if (f->has_page)
        draw_characters(&f->page, each, chance);
    for (size_t i = 0; i < f->file_count; i++) {
        buffer_init(&f->files[i], PART_MAX);
        draw_octets(&f->files[i], roof_below_of(chance, (unsigned)each + 4), chance);
    }
    snprintf(f->end, sizeof(f->end), "end %06x", roof_below_of(chance, 1 << 24));
    return f;
}

/* --- As MIME ---------------------------------------------------------------------- */

static void
put(struct buffer *to, const char *words)
{
    if (!buffer_add(to, text_from(words)))
        abort();
}

static void
put_base64(struct buffer *to, struct text octets)
{
    struct buffer coded;
    buffer_init(&coded, 2 * PART_MAX);
    if (!base64_encode(octets, &coded))
        abort();
    for (size_t at = 0; at < coded.length; at += BASE64_LINE) {
        struct text line =
            text_before(text_after(buffer_text(&coded), at), BASE64_LINE);
        if (!buffer_add(to, line) || !buffer_add(to, TEXT("\r\n")))
            abort();
    }
    buffer_free(&coded);
}

/* A space at the end of a line would be lost. */
static void
put_quoted(struct buffer *to, struct text t)
{
    size_t column = 0;
    for (size_t i = 0; i < t.length; i++) {
        unsigned char c = (unsigned char)t.at[i];
        bool is_plain = (c > ' ' && c < 0x7f && c != '=') ||
                        (c == ' ' && i + 1 < t.length && t.at[i + 1] > ' ');
        char coded[4] = {(char)c};
        if (c == '\n') {
            put(to, "\r\n");
            column = 0;
            continue;
        }
        if (!is_plain)
            snprintf(coded, sizeof(coded), "=%02X", c);
        if (column > QUOTED_LINE) {
            put(to, "=\r\n");
            column = 0;
        }
        put(to, coded);
        column += strlen(coded);
    }
    put(to, "\r\n");
}

/* Lines of a text end in CRLF. */
static void
put_lines_in_base64(struct buffer *to, struct text t)
{
    struct buffer lines;
    buffer_init(&lines, 2 * PART_MAX);
    for (size_t i = 0; i < t.length; i++)
        if (!buffer_add(&lines, t.at[i] == '\n' ? TEXT("\r\n") : text_of(t.at + i, 1)))
            abort();
    put_base64(to, buffer_text(&lines));
    buffer_free(&lines);
}

static void
put_text(struct buffer *to, const char *boundary, const char *type, struct text t,
         bool is_quoted)
{
    if (!buffer_format(to,
                       "--%s\r\nContent-Type: %s; charset=utf-8\r\n"
                       "Content-Transfer-Encoding: %s\r\n\r\n",
                       boundary, type, is_quoted ? "quoted-printable" : "base64"))
        abort();
    if (is_quoted)
        put_quoted(to, t);
    else
        put_lines_in_base64(to, t);
}

const char *
form_subject(const struct form *f)
{
    return f->subject;
}

void
form_write(const struct form *f, struct buffer *content)
{
    put(content,
        "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"" BOUNDARY
        "\"\r\n\r\n");
    if (f->has_page)
        put(content, "--" BOUNDARY "\r\nContent-Type: multipart/alternative; "
                     "boundary=\"" INNER "\"\r\n\r\n");
    put_text(content, f->has_page ? INNER : BOUNDARY, "text/plain",
             buffer_text((struct buffer *)&f->text), f->text_is_quoted);
    if (f->has_page) {
        put_text(content, INNER, "text/html", buffer_text((struct buffer *)&f->page),
                 !f->text_is_quoted);
        put(content, "--" INNER "--\r\n");
    }
    for (size_t i = 0; i < f->file_count; i++) {
        if (!buffer_format(content,
                           "--" BOUNDARY "\r\nContent-Type: application/octet-stream; "
                           "name=\"f%zu.bin\"\r\nContent-Transfer-Encoding: base64\r\n"
                           "Content-Disposition: attachment\r\n\r\n",
                           i))
            abort();
        put_base64(content, buffer_text((struct buffer *)&f->files[i]));
    }
    if (!buffer_format(content, "--" BOUNDARY "--\r\n%s\r\n", f->end))
        abort();
}

/* --- As JSON ---------------------------------------------------------------------- */

static bool
says(const json_t *value, struct text want)
{
    return json_is_string(value) &&
           text_equal(text_of(json_string_value(value), json_string_length(value)),
                      want);
}

/* Lines without CR. */
static bool
says_lines(const json_t *value, struct text want)
{
    struct buffer lines;
    buffer_init(&lines, PART_MAX + 1);
    for (size_t i = 0; i < want.length; i++)
        if (want.at[i] != '\r' && !buffer_add(&lines, text_of(want.at + i, 1)))
            abort();
    bool same = says(value, buffer_text(&lines));
    buffer_free(&lines);
    return same;
}

static bool
has_file(const json_t *value, const struct form *f, size_t at)
{
    struct buffer coded;
    char name[32];
    buffer_init(&coded, 2 * PART_MAX);
    if (!base64_encode(buffer_text((struct buffer *)&f->files[at]), &coded))
        abort();
    snprintf(name, sizeof(name), "f%zu.bin", at);
    bool same =
        says(json_object_get(value, "content"), buffer_text(&coded)) &&
        says(json_object_get(value, "name"), text_from(name)) &&
        says(json_object_get(value, "type"), TEXT("application/octet-stream")) &&
        json_is_false(json_object_get(value, "inline"));
    buffer_free(&coded);
    return same;
}

/* The last ones: trace fields stand before them. */
static bool
has_fields(const json_t *list, struct text header)
{
    size_t count = 0, at = json_array_size(list);
    struct text line, name, rest = header;
    while (text_cut(&rest, '\n', &line))
        count++;
    if (count > at)
        return false;
    for (at -= count; text_cut(&header, '\n', &line); at++) {
        const json_t *field = json_array_get(list, at);
        text_cut(&line, ':', &name);
        if (!says(json_array_get(field, 0), name) ||
            !says(json_array_get(field, 1), text_trim(line)))
            return false;
    }
    return true;
}

static const char *
differs_in_parts(const struct form *f, struct text body, const json_t *root)
{
    const json_t *files = json_object_get(root, "attachments");
    if (!says_lines(json_object_get(root, "text"),
                    f != NULL ? buffer_text((struct buffer *)&f->text) : body))
        return "the text is another one";
    if (f != NULL && f->has_page ? !says(json_object_get(root, "html"),
                                         buffer_text((struct buffer *)&f->page))
                                 : json_object_get(root, "html") != NULL)
        return "the page is another one";
    if (json_array_size(files) != (f != NULL ? f->file_count : 0))
        return "there are more files, or fewer";
    for (size_t i = 0; i < json_array_size(files); i++)
        if (!has_file(json_array_get(files, i), f, i))
            return "a file is another one";
    return NULL;
}

static const char *
differs_in(const struct form *f, struct text content, const char *const *recipients,
           size_t count, const json_t *root)
{
    static const struct text subject = TEXT("\r\nSubject: "), empty = TEXT("\r\n\r\n");
    const char *at = memmem(content.at, content.length, subject.at, subject.length),
               *end = memmem(content.at, content.length, empty.at, empty.length);
    assert(at != NULL && end != NULL);
    struct text header = text_before(content, (size_t)(end - content.at));
    struct text title,
        rest = text_after(content, (size_t)(at - content.at) + subject.length);
    const json_t *to = json_object_get(root, "to");
    text_cut(&rest, '\r', &title);
    if (!says(json_object_get(root, "subject"),
              f != NULL ? text_from(f->title) : title))
        return "the subject is another one";
    if (json_array_size(to) != count)
        return "there are more recipients, or fewer";
    for (size_t i = 0; i < count; i++)
        if (!says(json_array_get(to, i), text_from(recipients[i])))
            return "a recipient is another one";
    if (!has_fields(json_object_get(root, "headers"), header))
        return "the header is another one";
    return differs_in_parts(f, text_after(content, header.length + empty.length), root);
}

const char *
form_differs(const struct form *f, struct text content, const char *const *recipients,
             size_t count, struct text json)
{
    json_error_t error;
    json_t *root = json_loadb(json.at, json.length, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        return "what the application got is no JSON";
    const char *why = differs_in(f, content, recipients, count, root);
    json_decref(root);
    return why;
}
