/* Composed fields and structures: known answers, lengths of lines, what is refused. */
#include "mime/parts/compose.h"

#include "t/support/tap.h"

#define TEN "0123456789"
#define FIFTY TEN TEN TEN TEN TEN

enum { LIMIT = 1 << 20 };

/* clang-format off */
static const struct {
    const char *value, *field;
} fields[] = {
    {"", "Subject: \r\n"},
    {"plain", "Subject: plain\r\n"},
    {"  two  words ", "Subject: two  words\r\n"},
    {FIFTY " " FIFTY, "Subject: " FIFTY "\r\n " FIFTY "\r\n"},
    {FIFTY FIFTY, "Subject:\r\n " FIFTY FIFTY "\r\n"},
    {"gr\xc3\xbcn", "Subject: =?UTF-8?B?Z3LDvG4=?=\r\n"},
    {"a =?x?= b", "Subject: =?UTF-8?B?YSA9P3g/PSBi?=\r\n"},
    {"\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
     "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac",
     "Subject: =?UTF-8?B?4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs?=\r\n =?UTF-8?B?4oKs?=\r\n"},
};
static const struct {
    const char *given, *field, *address;
} mailboxes[] = {
    {"a@b.example", "To: a@b.example\r\n", "a@b.example"},
    {" <a@b.example> ", "To: a@b.example\r\n", "a@b.example"},
    {"Ann Bee <a@b.example>", "To: Ann Bee <a@b.example>\r\n", "a@b.example"},
    {"Bee, Ann <a@b.example>", "To: \"Bee, Ann\" <a@b.example>\r\n", "a@b.example"},
    {"\"Bee, \\\"A\\\"\" <a@b.example>", "To: \"Bee, \\\"A\\\"\" <a@b.example>\r\n", "a@b.example"},
    {"A. Bee <a@b.example>", "To: \"A. Bee\" <a@b.example>\r\n", "a@b.example"},
    {"a <x> b <a@b.example>", "To: \"a <x> b\" <a@b.example>\r\n", "a@b.example"},
    {"J\xc3\xb6rg <a@b.example>", "To: =?UTF-8?B?SsO2cmc=?= <a@b.example>\r\n", "a@b.example"},
    {"j\xc3\xb6rg@b.example", "To: j\xc3\xb6rg@b.example\r\n", "j\xc3\xb6rg@b.example"},
};
/* clang-format on */

/* The longest line, or LIMIT if there is a bare CR, a bare LF, or a line of blanks alone. */
static size_t
longest_line(struct text t)
{
    size_t longest = 0, end;
    while (t.length > 0) {
        end = text_find(t, '\n');
        if (end == TEXT_NONE || end == 0 || t.at[end - 1] != '\r')
            return LIMIT;
        struct text line = text_before(t, end - 1);
        if (text_find(line, '\r') != TEXT_NONE || (line.length > 0 && text_trim(line).length == 0))
            return LIMIT;
        longest = line.length > longest ? line.length : longest;
        t = text_after(t, end + 1);
    }
    return longest;
}

TEST(fields)
{
    struct buffer out;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        buffer_init(&out, LIMIT);
        ok_named(compose_field(&out, TEXT("Subject"), text_from(fields[i].value)), "it fits");
        is_text(buffer_text(&out), text_from(fields[i].field), "a field");
        buffer_free(&out);
    }
}

TEST(mailboxes)
{
    struct buffer out;
    struct compose_mailbox m;
    for (size_t i = 0; i < sizeof(mailboxes) / sizeof(mailboxes[0]); i++) {
        buffer_init(&out, LIMIT);
        ok_named(compose_mailbox_read(text_from(mailboxes[i].given), &m) == NULL, mailboxes[i].given);
        is_text(m.address, text_from(mailboxes[i].address), "its address");
        ok_named(compose_mailboxes(&out, TEXT("To"), &m, 1), "it fits");
        is_text(buffer_text(&out), text_from(mailboxes[i].field), "a field of a mailbox");
        buffer_free(&out);
    }
    static const char *const bad[] = {"", "  ", "x <>", "x < >", "a@b>", "<a@b", "a\r\nBcc: b@c", "a@b\n", "\xff@b", "a\x7f@b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(compose_mailbox_read(text_from(bad[i]), &m) != NULL, "no mailbox");
}

TEST(many_mailboxes_are_folded)
{
    struct compose_mailbox list[40];
    struct buffer out;
    for (size_t i = 0; i < 40; i++)
        (void)!compose_mailbox_read(TEXT("Ann Bee <ann.bee@department.example>"), &list[i]);
    buffer_init(&out, LIMIT);
    ok(compose_mailboxes(&out, TEXT("Cc"), list, 40));
    ok(longest_line(buffer_text(&out)) <= COMPOSE_COLUMN);
    buffer_free(&out);
}

TEST(what_is_refused)
{
    static const char *const names[] = {"",          "From",      "bcc",          "Content-Type", "X Y",
                                        "X:Y",       "X\r\nY",    "Resent-To",    "Received",     "mime-version",
                                        "X\xc3\xbc", "Reply-To",  "X-Petrel-Tag", FIFTY TEN "x"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ok_named(compose_judge_name(text_from(names[i])) != NULL, names[i]);
    ok(compose_judge_name(TEXT("X-Campaign")) == NULL && compose_judge_name(TEXT("List-Unsubscribe")) == NULL);
    static const char *const types[] = {"", "text", "text/", "/x", "multipart/mixed", "Message/RFC822", "a/b\r\nX: y",
                                        "a b/c", "text/pl\xc3\xa4in"};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        ok_named(compose_judge_type(text_from(types[i])) != NULL, types[i]);
    ok(compose_judge_type(TEXT("text/csv; charset=utf-8")) == NULL);
    ok(compose_judge_id(TEXT("logo@x")) == NULL && compose_judge_id(TEXT("a b")) != NULL);
    ok(compose_judge_id(TEXT("")) != NULL && compose_judge_id(TEXT("a>")) != NULL);
    ok(compose_judge_value(TEXT("a\rb")) != NULL && compose_judge_value(TEXT("a\tb")) != NULL);
    ok(compose_judge_value(text_of("a\0b", 3)) != NULL && compose_judge_value(TEXT("\xc3")) != NULL);
}

/* Contents become "{N}". */
static void
lay_out(const struct compose_part *parts, size_t count, struct buffer *out)
{
    struct compose c;
    buffer_init(out, LIMIT);
    ok_named(compose_structure(&c, parts, count, TEXT("B"), LIMIT), "it fits");
    for (size_t i = 0; i < c.count; i++) {
        struct text literal = text_of(c.literals.at + c.steps[i].from, c.steps[i].to - c.steps[i].from);
        (void)!buffer_add(out, literal);
        if (c.steps[i].part >= 0)
            (void)!buffer_format(out, "{%d}", c.steps[i].part);
    }
    is_number(c.steps[c.count - 1].part, -1, "the last step has no part");
    compose_free(&c);
}

#define TEXT_PART {.role = COMPOSE_TEXT}
#define HTML_PART {.role = COMPOSE_HTML, .base64 = true}
#define PLAIN_HEAD "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
#define HTML_HEAD "Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n"

TEST(one_text)
{
    struct compose_part parts[] = {TEXT_PART};
    struct buffer out;
    lay_out(parts, 1, &out);
    is_text(buffer_text(&out), TEXT("MIME-Version: 1.0\r\n" PLAIN_HEAD "{0}\r\n"), "a text alone");
    buffer_free(&out);
}

TEST(all_kinds)
{
    struct compose_part parts[] = {
        {.role = COMPOSE_ATTACHED, .base64 = true, .file_name = TEXT("a \"b\".pdf"), .type = TEXT("application/pdf")},
        HTML_PART,
        TEXT_PART,
        {.role = COMPOSE_INLINE, .base64 = true, .id = TEXT("logo"), .type = TEXT("image/png")}};
    struct buffer out;
    lay_out(parts, 4, &out);
    is_text(buffer_text(&out),
            TEXT("MIME-Version: 1.0\r\n"
                 "Content-Type: multipart/mixed;\r\n boundary=\"=_Bm\"\r\n\r\n"
                 "\r\n--=_Bm\r\n"
                 "Content-Type: multipart/alternative;\r\n boundary=\"=_Ba\"\r\n\r\n"
                 "\r\n--=_Ba\r\n" PLAIN_HEAD "{2}"
                 "\r\n--=_Ba\r\n"
                 "Content-Type: multipart/related;\r\n boundary=\"=_Br\"\r\n\r\n"
                 "\r\n--=_Br\r\n" HTML_HEAD "{1}"
                 "\r\n--=_Br\r\n"
                 "Content-Type: image/png\r\nContent-Transfer-Encoding: base64\r\nContent-ID: <logo>\r\n"
                 "Content-Disposition: inline\r\n\r\n{3}"
                 "\r\n--=_Br--\r\n"
                 "\r\n--=_Ba--\r\n"
                 "\r\n--=_Bm\r\n"
                 "Content-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n"
                 "Content-Disposition: attachment;\r\n filename=\"a \\\"b\\\".pdf\"\r\n\r\n{0}"
                 "\r\n--=_Bm--\r\n"),
            "text, page, image and file");
    buffer_free(&out);
}

static bool
has(struct text all, const char *part)
{
    return memmem(all.at, all.length, part, strlen(part)) != NULL;
}

TEST(file_names)
{
    struct compose_part parts[] = {{.role = COMPOSE_ATTACHED, .base64 = true, .file_name = TEXT("gr\xc3\xbcn.txt")},
                                   {.role = COMPOSE_ATTACHED, .base64 = true, .file_name = TEXT(FIFTY FIFTY FIFTY)}};
    struct buffer out;
    lay_out(parts, 2, &out);
    struct text all = buffer_text(&out);
    ok_named(has(all, ";\r\n filename*0*=UTF-8''gr%C3%BCn.txt\r\n"), "RFC 2231");
    ok_named(has(all, ";\r\n filename*2*="), "in pieces");
    ok(longest_line(all) <= COMPOSE_COLUMN);
    buffer_free(&out);
}

TEST(limits)
{
    struct compose_part parts[] = {TEXT_PART};
    struct compose c;
    struct buffer out;
    ok(!compose_structure(&c, parts, 1, TEXT("B"), 20));
    compose_free(&c);
    buffer_init(&out, 10);
    ok(!compose_field(&out, TEXT("Subject"), TEXT("something")));
    ok(!compose_field(&out, TEXT("Subject"), TEXT("gr\xc3\xbcn")));
    buffer_free(&out);
}
