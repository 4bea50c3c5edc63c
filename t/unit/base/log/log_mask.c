/* Which part of a text is an address, and what stands in its place. */
#include "base/log/log_mask.h"

/* link: t/sim/loop.c */
#include "base/log/log_internal.h"
#include "t/support/tap.h"

static const struct {
    const char *from, *to;
} texts[] = {
    {"", ""},
    {"250 2.0.0 Ok", "250 2.0.0 Ok"},
    {"550 <joe@example.org>: no such user", "550 <***@example.org>: no such user"},
    {"no user joe.doe+x@example.org.", "no user ***@example.org."},
    {"mailto:joe@example.org, ann@example.net", "mailto:***@example.org, ***@example.net"},
    {"'joe@example.org' (joe@example.org)", "'***@example.org' (***@example.org)"},
    {"<joe doe@example.org>", "<***@example.org>"},
    {"<@a.example,@b.example:joe@example.org>", "<***@example.org>"},
    {"<\"joe\\\" doe\"@example.org> x", "<***@example.org> x"},
    {"user \"joe \\\\\\\" doe\"@example.org x", "user ***@example.org x"},
    {"\"joe@doe\"@example.org", "\"***@example.org"},
    {"b+t=joe=example.net@example.org", "***@example.org"},
    {"J\xc3\xb6rg@b\xc3\xbc" "cher.example", "***@b\xc3\xbc" "cher.example"},
    {"joe@[192.0.2.1] said", "***@[192.0.2.1] said"},
    {"joe@", "***@"},
    {"@example.org", "@example.org"},
    {"a @ b", "a @ b"},
    {"joe@a@b.example", "***@b.example"},
    {"https://joe@mail.example:443/x", "https://***@mail.example:443/x"},
    {"sasl_method=PLAIN, sasl_username=joe@example.org", "sasl_method=PLAIN, sasl_username=***@example.org"},
    {"552 refused: <joe.do", "552 refused: <***"},
    {"1 < 2", "1 < 2"},
    {"<joe@example.org> and <ann.b", "<***@example.org> and <***"},
    {"x\"@example.org", "x\"@example.org"},
};

TEST(texts_of_peers)
{
    const struct log_mask mask = {.form = LOG_ADDRESSES_DOMAIN}, none = {0};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct buffer out, again;
        struct text made = log_mask_text(&mask, text_from(texts[i].from), &out);
        is_text(made, text_from(texts[i].to), texts[i].from);
        is_text(log_mask_text(&mask, made, &again), made, "again");
        buffer_free(&again);
        buffer_free(&out);
        is_text(log_mask_text(&none, text_from(texts[i].from), &out), text_from(texts[i].from), "full");
        buffer_free(&out);
    }
}

static struct text
address(const struct log_mask *mask, const char *t, char out[200])
{
    struct buffer b;
    struct text made = log_mask_address(mask, text_from(t), &b);
    (void)text_copy(out, 200, made);
    buffer_free(&b);
    return text_from(out);
}

TEST(addresses)
{
    const struct log_mask mask = {.form = LOG_ADDRESSES_DOMAIN};
    char out[200];
    is_text(address(&mask, "joe@example.org", out), TEXT("***@example.org"), "usual");
    is_text(address(&mask, "root", out), TEXT("***"), "without a domain");
    is_text(address(&mask, "", out), TEXT(""), "of a bounce");
    is_text(address(&mask, "\"joe doe\"@example.org", out), TEXT("***@example.org"), "quoted");
    is_text(address(&mask, "\"joe@doe\"@example.org", out), TEXT("***@example.org"), "with an at");
    is_text(address(&mask, "write the URL", out), TEXT("write the URL"), "a sentence is none");
    is_text(log_mask_relay(&mask, "/var/mail/joe/Maildir"), TEXT("maildir"), "a Maildir");
    is_text(log_mask_relay(&mask, "mx.example[192.0.2.1]:25"), TEXT("mx.example[192.0.2.1]:25"), "a host");
}

TEST(names)
{
    static const char *const rows[][2] = {
        {"joe", "***"}, {"joe smith", "***"}, {"joe@b.example", "***@b.example"}, {"joe smith@b.example", "***@b.example"}, {"", ""}};
    struct log_mask mask = {.form = LOG_ADDRESSES_DOMAIN};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buffer out;
        is_text(log_mask_name(&mask, text_from(rows[i][0]), &out), text_from(rows[i][1]), "the name of a login");
        buffer_free(&out);
    }
    mask = (struct log_mask){.form = LOG_ADDRESSES_HASH, .has_key = true};
    struct buffer one, other;
    struct text a = log_mask_name(&mask, TEXT("Joe"), &one), b = log_mask_name(&mask, TEXT("joe"), &other);
    ok_named(a.length == LOG_MASK_HASH && text_equal(a, b), "its hash, in any case of its letters");
    buffer_free(&one);
    buffer_free(&other);
    mask.form = LOG_ADDRESSES_FULL;
    is_text(log_mask_name(&mask, TEXT("joe"), &one), TEXT("joe"), "whole");
    buffer_free(&one);
}

TEST(hashes)
{
    struct log_mask mask = {.form = LOG_ADDRESSES_HASH}, other;
    char a[200], b[200];
    is_text(address(&mask, "joe@example.org", a), TEXT("***@example.org"), "no key, no hash");
    mask.has_key = true;
    memset(mask.key, 7, sizeof(mask.key));
    other = mask;
    other.key[0]++;
    address(&mask, "joe@example.org", a);
    ok(strlen(a) == strlen("0123456789@example.org") && strspn(a, "0123456789abcdef") == LOG_MASK_HASH);
    ok(strcmp(a + LOG_MASK_HASH, "@example.org") == 0);
    address(&mask, "Joe@Example.ORG", b);
    ok_named(strncmp(a, b, LOG_MASK_HASH) == 0, "in any case");
    ok_named(strncmp(a, address(&mask, "ann@example.org", b).at, LOG_MASK_HASH) != 0, "another name");
    ok_named(strncmp(a, address(&mask, "joe@example.net", b).at, LOG_MASK_HASH) != 0, "another domain");
    ok_named(strncmp(a, address(&other, "joe@example.org", b).at, LOG_MASK_HASH) != 0, "another key");
    struct buffer out;
    is_text(log_mask_text(&mask, TEXT("<joe@example.org>"), &out), text_from((snprintf(b, sizeof(b), "<%s>", a), b)), "in texts the same");
    buffer_free(&out);
}

/* Every way into a line. */
TEST(lines)
{
    static const enum log_style styles[] = {LOG_STYLE_PETREL, LOG_STYLE_POSTFIX, LOG_STYLE_JSON};
    static const char *const want[] = {
        "to=<***@b.example>, k=x <***@b.example>, f=***@b.example (no ***@b.example)\np: gone: ***@b.example\np: of ***@b.example\n",
        "to=<***@b.example>, k=x <***@b.example>, f=***@b.example (no ***@b.example)\n",
        "\"to\":\"***@b.example\",\"k\":\"x <***@b.example>\",\"f\":\"***@b.example\",\"text\":\"no ***@b.example\"}\n"};
    for (size_t i = 0; i < 3; i++) {
        struct buffer out;
        struct log_line line;
        struct log *log = log_new(NULL, styles[i], LOG_LEVEL_INFO);
        buffer_init(&out, 1 << 16);
        log_capture(log, &out);
        log_mask_by(log, LOG_ADDRESSES_DOMAIN, NULL);
        log_start(&line, log, LOG_LEVEL_INFO, "p", NULL);
        log_field_address(&line, "to", TEXT("joe@b.example"));
        log_field(&line, "k", TEXT("x <joe@b.example>"));
        log_field_format(&line, "f", "%s@%s", "joe", "b.example");
        log_remark(&line, TEXT("no joe@b.example"));
        log_end(&line);
        log_say(log, LOG_LEVEL_INFO, "p", NULL, "gone: %s", "joe@b.example");
        log_start(&line, log, LOG_LEVEL_INFO, "p", NULL);
        log_sentence(&line, "of %s", "joe@b.example");
        log_end(&line);
        ok(strstr(out.at, want[i]) != NULL && memmem(out.at, out.length, "joe", 3) == NULL);
        buffer_free(&out);
        log_free(&log);
    }
}
