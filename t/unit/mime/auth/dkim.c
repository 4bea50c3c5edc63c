/* DKIM: the vectors of RFC 6376 and RFC 8463, a slow twin of the body hash, the choice
 * of fields, and the form of DKIM-Signature. */
#include "mime/auth/dkim.h"

#include "base/crypto/base64.h"
#include "base/crypto/sign.h"
#include "t/support/dkim_twin.h"
#include "t/support/tap.h"

#include <stdlib.h>

#define EMPTY_BODY "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

static struct text
in_base64(const unsigned char digest[DIGEST_SIZE])
{
    static struct buffer out;
    buffer_free(&out);
    buffer_init(&out, 100);
    ok(base64_encode(text_of(digest, DIGEST_SIZE), &out));
    return buffer_text(&out);
}

static void
hash_body(struct text body, size_t piece, unsigned char out[DIGEST_SIZE])
{
    struct dkim_body b;
    dkim_body_start(&b);
    for (; body.length > 0; body = text_after(body, piece))
        dkim_body_add(&b, text_before(body, piece));
    dkim_body_end(&b, out);
}

static void
is_body(const char *body, const char *canonical, const char *name)
{
    unsigned char want[DIGEST_SIZE], got[DIGEST_SIZE];
    digest_plain(text_from(canonical), want);
    bool same = true;
    for (size_t piece = 1; piece < 9; piece++) {
        hash_body(text_from(body), piece, got);
        same = same && digest_same(want, got, DIGEST_SIZE);
    }
    dkim_twin_body(text_from(body), got);
    same = same && digest_same(want, got, DIGEST_SIZE);
    ok_named(same, name);
}

TEST(bodies)
{
    unsigned char out[DIGEST_SIZE];
    hash_body(TEXT(""), 1, out);
    is_text(in_base64(out), TEXT(EMPTY_BODY), "RFC 6376 §3.4.4: an empty body");
    hash_body(TEXT("Hi.\r\n\r\n" "We lost the game.  Are you hungry yet?\r\n\r\nJoe.\r\n"), 5,
              out);
    is_text(in_base64(out), TEXT("2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8="),
            "RFC 8463 appendix A: bh=");
    is_body(" C \r\nD \t E\r\n\r\n\r\n", " C\r\nD E\r\n", "RFC 6376 §3.4.5");
    is_body("\r\n", "", "an empty line is nothing");
    is_body("\r\n\r\n\r\n", "", "and so are many");
    is_body(" \t\r\n \r\n", "", "lines of white space are empty");
    is_body("   ", "", "white space alone");
    is_body("a", "a\r\n", "a line end is added");
    is_body("a \t", "a\r\n", "behind white space, too");
    is_body("\r\n\r\na\r\n \r\n", "\r\n\r\na\r\n", "empty lines in front count");
    is_body("a\r\n\r\n\r\nb\r\n\r\n", "a\r\n\r\n\r\nb\r\n", "and within");
    is_body("a\rb\nc\r\n", "a\rb\nc\r\n", "a lone CR or LF is text");
    is_body("a\r", "a\r\r\n", "at the end, too");
    is_body("a \r\r\n", "a \r\r\n", "white space before a lone CR stays");
    is_body("\r\r\n", "\r\r\n", "a line of a CR is not empty");
    is_body("\n", "\n\r\n", "nor one of an LF");
    is_body("a\r\n\n\r\n", "a\r\n\n\r\n", "at the end");
    is_body(".\r\n..\r\n", ".\r\n..\r\n", "dots are text");
}

/* All texts of up to 6 of the bytes that matter, and long ones. */
TEST(twin)
{
    static const char bytes[] = "\r\n \ta";
    unsigned char want[DIGEST_SIZE], got[DIGEST_SIZE];
    int wrong = 0;
    for (unsigned n = 0; n < 5 * 5 * 5 * 5 * 5 * 5; n++) {
        char t[6];
        unsigned rest = n;
        for (size_t i = 0; i < sizeof(t); i++, rest /= 5)
            t[i] = bytes[rest % 5];
        dkim_twin_body(text_of(t, sizeof(t)), want);
        hash_body(text_of(t, sizeof(t)), 1 + n % 3, got);
        wrong += !digest_same(want, got, DIGEST_SIZE);
    }
    is_number(wrong, 0, "every short body has the hash of the twin");
    char *large = malloc(100000);
    srand(1);
    for (int round = 0; round < 200; round++) {
        size_t size = (size_t)rand() % 5000;
        for (size_t i = 0; i < size; i++)
            large[i] = rand() % 3 ? bytes[rand() % 5] : 'b';
        dkim_twin_body(text_of(large, size), want);
        hash_body(text_of(large, size), 1 + (size_t)rand() % 700, got);
        wrong += !digest_same(want, got, DIGEST_SIZE);
    }
    is_number(wrong, 0, "and every long one");
    free(large);
}

/* The header fields of RFC 8463 appendix A, in their canonical form, signed by its key. */
TEST(rfc8463)
{
    static const char signed_text[] =
        "from:Joe SixPack <joe@football.example.com>\r\n"
        "to:Suzie Q <suzie@shopping.example.net>\r\n"
        "subject:Is dinner ready?\r\n"
        "date:Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r\n"
        "message-id:<20030712040037.46341.5F8J@football.example.com>\r\n"
        "dkim-signature:v=1; a=ed25519-sha256; c=relaxed/relaxed;"
        " d=football.example.com; i=@football.example.com;"
        " q=dns/txt; s=brisbane; t=1528637909; h=from : to :"
        " subject : date : message-id : from : subject : date;"
        " bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=; b=";
    unsigned char digest[DIGEST_SIZE], out[SIGN_SIZE_MAX];
    size_t length;
    const char *why;
    struct buffer written;
    struct sign_random *randomness = sign_random_new();
    struct sign_key *key = sign_key_read(
        randomness, TEXT("nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="), &why);
    if (key != NULL) {
        buffer_init(&written, 200);
        digest_plain(text_from(signed_text), digest);
        ok(sign_digest(key, digest, out, &length));
        ok(base64_encode(text_of(out, length), &written));
        is_text(buffer_text(&written),
                TEXT("/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11BusFa3bT3FY5"
                     "OsU7ZbnKELq+eXdp1Q1Dw=="),
                "RFC 8463 appendix A: b=");
        buffer_free(&written);
        sign_key_free(&key);
    }
    sign_random_free(&randomness);
}

#define ALWAYS "from:from:reply-to:subject:date:to:cc"

static void
is_names(const char *header, const char *want)
{
    struct dkim_header h;
    const char *why = NULL;
    if (!dkim_header_read(&h, text_from(header), &why)) {
        is_string(why, want, header);
        return;
    }
    is_text(buffer_text(&h.names), text_from(want), header);
    dkim_header_free(&h);
}

TEST(names)
{
    is_names("From: a@b\r\n\r\n", ALWAYS);
    is_names("From: a@b\r\n", ALWAYS);
    is_names("From: a@b", ALWAYS);
    is_names("FROM : a@b\r\nSubject: 1\r\nsUBJECT: 2\r\nMessage-ID: <1@b>\r\n\r\n",
             "from:from:reply-to:subject:subject:subject:date:to:cc:message-id:message-"
             "id");
    is_names("Sender: x@y\r\nList-Id: <l>\r\nList-Unsubscribe: <u>\r\nFrom: a@b\r\n\r\n",
             ALWAYS ":list-unsubscribe:list-unsubscribe:sender:list-id");
    is_names("Received: x\r\nReturn-Path: <>\r\nDKIM-Signature: v=1\r\nX-A: b\r\n"
             "Bcc: c@d\r\nAuthentication-Results: x\r\nARC-Seal: y\r\nFrom: a@b\r\n\r\n",
             ALWAYS);
    is_names("Subject: none\r\n\r\n", "it has no From");
    is_names("From: a@b\r\nFrom: a@b\r\n\r\n", "it has more than one From");
    is_names("From: \r\n\r\n", "its From is malformed");
    is_names("From: <<>>\r\n\r\n", "its From is malformed");
    is_names("From: a@b, <c\r\n\r\n", "its From is malformed");
    is_names("From: a@b\n\n", "its header has a bare CR or LF, or a NUL");
    is_names("From: a@b\r\nTo: a\rb\r\n", "its header has a bare CR or LF, or a NUL");
    is_names("From: a@b\r\nnonsense\r\n\r\n",
             "its header has a line that is not a field");
    is_names("From me today\r\nFrom: a@b\r\n\r\n",
             "its header has a line that is not a field");
}

TEST(limits)
{
    struct dkim_header h;
    const char *why;
    FIXTURE(buffer, t, buffer_init, buffer_free, 1024 * 1024);
    ok(buffer_add(&t, TEXT("From: a@b\r\n")));
    for (int i = 0; i < DKIM_INSTANCES_MAX; i++)
        ok(buffer_add(&t, TEXT("Subject: x\r\n")));
    ok_named(dkim_header_read(&h, buffer_text(&t), &why), "10 of a field are signed");
    dkim_header_free(&h);
    ok(buffer_add(&t, TEXT("Subject: x\r\n")));
    ok(!dkim_header_read(&h, buffer_text(&t), &why));
    is_string(why, "it has a field more than 10 times that is signed", "11 are not");
    buffer_clear(&t);
    ok(buffer_add(&t, TEXT("From: a@b\r\n")));
    while (t.length < DKIM_HEADER_MAX)
        ok(buffer_add(&t, TEXT("Received: from here by there with nothing at all; and "
                               "so on and on and on and on and on and on\r\n")));
    ok(!dkim_header_read(&h, buffer_text(&t), &why));
    is_string(why, "its header is longer than 256 KiB", "nor a large header");
}

static void
digest_of(const char *header, struct buffer *field, unsigned char digest[DIGEST_SIZE])
{
    struct dkim_header h;
    const char *why;
    unsigned char body[DIGEST_SIZE] = {0};
    struct dkim_tags tags = {.algorithm = "rsa-sha256",
                             .domain = "example.org",
                             .selector = "s1",
                             .time_s = 1700000000,
                             .body = body};
    buffer_free(field);
    buffer_init(field, DKIM_FIELD_MAX);
    ok(dkim_header_read(&h, text_from(header), &why));
    dkim_field_begin(&h, &tags, field, digest);
    dkim_header_free(&h);
}

/* The canonical text is written by hand here (§3.4.2, §3.7, §5.4.2). */
TEST(digest)
{
    unsigned char want[DIGEST_SIZE], got[DIGEST_SIZE], other[DIGEST_SIZE];
    struct buffer field = {0};
    digest_of("To:a@b\r\nSubject: \t one\r\n two  \t three \r\nFrom\t:  a@b \r\n"
              "SUBJECT: first\r\nSubject:\r\n\r\n",
              &field, got);
    digest_plain(
        TEXT("from:a@b\r\nsubject:\r\nsubject:first\r\nsubject:one two three\r\n"
             "to:a@b\r\ndkim-signature:v=1; a=rsa-sha256; c=relaxed/relaxed; "
             "d=example.org; s=s1; t=1700000000; "
             "h=from:from:reply-to:subject:subject:subject:subject:date: to:to:cc; "
             "bh=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=; b="),
        want);
    ok_named(digest_same(got, want, DIGEST_SIZE), "the digest of the canonical text");
    is_text(buffer_text(&field),
            TEXT("DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=example.org; "
                 "s=s1;\r\n"
                 "\tt=1700000000; h=from:from:reply-to:subject:subject:subject:subject:"
                 "date:\r\n"
                 "\tto:to:cc; bh=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=;\r\n"
                 "\tb="),
            "the field, folded");
    digest_of("From: a@b\r\n\r\n", &field, got);
    digest_of("From: a@b\r\nX-Other: c\r\n\r\n", &field, other);
    ok_named(digest_same(got, other, DIGEST_SIZE), "a field that is not signed is free");
    digest_of("From: a@c\r\n\r\n", &field, other);
    ok_named(!digest_same(got, other, DIGEST_SIZE), "one that is signed is not");
    buffer_free(&field);
}

TEST(field_end)
{
    struct buffer field = {0};
    unsigned char digest[DIGEST_SIZE], signature[SIGN_SIZE_MAX] = {0};
    digest_of("From: a@b\r\n\r\n", &field, digest);
    dkim_field_end(&field, text_of(signature, 256));
    struct text rest = buffer_text(&field), line;
    size_t longest = 0;
    while (text_cut(&rest, '\n', &line))
        longest = line.length > longest ? line.length : longest;
    is_number(longest, 76, "no line has more than 75 columns and its CR");
    ok(text_ends_nocase(buffer_text(&field), TEXT("A==\r\n")));
    buffer_free(&field);
}

TEST(author)
{
    static const struct {
        const char *from, *author;
    } rows[] = {
        {"Joe <joe@example.org>", "joe@example.org"},
        {"a@b, c@d", "a@b"},
        {"team: x@y, z@w;", "x@y"},
        {"\"<evil@x>\" <good@y>", "good@y"},
        {"(evil@x) good@y", "good@y"},
        {"Joe\r\n <joe@example.org>", "joe@example.org"},
        {"root", "root"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct dkim_header h;
        const char *why;
        char header[200];
        snprintf(header, sizeof(header), "From: %s\r\n\r\n", rows[i].from);
        ok(dkim_header_read(&h, text_from(header), &why));
        is_text(buffer_text(&h.author), text_from(rows[i].author), rows[i].from);
        dkim_header_free(&h);
    }
}

/* --- Published records beside a key ----------------------------------------------- */

/* Published records beside a key: those that fit, and each way in which one does
 * not. */

static const struct {
    const char *text;
    enum dkim_record want;
} records[] = {
    {"v=DKIM1; k=rsa; p=AbCd/+==",                                  DKIM_RECORD_FITS      },
    {"p=AbCd/+==",                                                  DKIM_RECORD_FITS      },
    {" v = DKIM1 ;\tk = RSA ; p = AbC d/\r\n\t+== ; ",              DKIM_RECORD_FITS      },
    {"v=DKIM1; h=sha1:sha256; s=email; t=y; n=a note; p=AbCd/+==;", DKIM_RECORD_FITS      },
    {"v=DKIM1; s=other:*; x=y; p=AbCd/+==",                         DKIM_RECORD_FITS      },
    {"v=DKIM1; k=rsa; p=",                                          DKIM_RECORD_REVOKED   },
    {"v=DKIM1; k=ed25519; p=",                                      DKIM_RECORD_REVOKED   },
    {"v=DKIM1; k=ed25519; p=AbCd/+==",                              DKIM_RECORD_OTHER_KIND},
    {"v=DKIM1; k=; p=AbCd/+==",                                     DKIM_RECORD_OTHER_KIND},
    {"v=DKIM1; k=rsa; p=AbCd/+=",                                   DKIM_RECORD_OTHER_KEY },
    {"v=DKIM1; k=rsa; p=AbCd/+==x",                                 DKIM_RECORD_OTHER_KEY },
    {"v=DKIM1; k=rsa; p=abcd/+==",                                  DKIM_RECORD_OTHER_KEY },
    {"v=DKIM1; h=sha1; p=AbCd/+==",                                 DKIM_RECORD_OTHER_USE },
    {"v=DKIM1; s=other; p=AbCd/+==",                                DKIM_RECORD_OTHER_USE },
    {"v=DKIM1; s=; p=AbCd/+==",                                     DKIM_RECORD_OTHER_USE },
    {"v=DKIM1; k=rsa",                                              DKIM_RECORD_MALFORMED },
    {"v=DKIM2; p=AbCd/+==",                                         DKIM_RECORD_MALFORMED },
    {"v=dkim1; p=AbCd/+==",                                         DKIM_RECORD_MALFORMED },
    {"V=DKIM1; P=AbCd/+==",                                         DKIM_RECORD_MALFORMED },
    {"p=AbCd/+==; v=DKIM1",                                         DKIM_RECORD_MALFORMED },
    {"v=DKIM1; p=AbCd/+==; p=AbCd/+==",                             DKIM_RECORD_MALFORMED },
    {"v=DKIM1;; p=AbCd/+==",                                        DKIM_RECORD_MALFORMED },
    {"v=DKIM1; =x; p=AbCd/+==",                                     DKIM_RECORD_MALFORMED },
    {"v=spf1 include:x.test ~all",                                  DKIM_RECORD_MALFORMED },
    {"AbCd/+==",                                                    DKIM_RECORD_MALFORMED },
    {"",                                                            DKIM_RECORD_MALFORMED },
    {";",                                                           DKIM_RECORD_MALFORMED },
};

TEST(dkim_record_tests)
{
    struct text two[2] = {TEXT("p=AbCd/+=="), TEXT("p=AbCd/+==")};
    struct text key = TEXT("AbCd/+==");
    for (size_t i = 0; i < sizeof(records) / sizeof(*records); i++) {
        struct text text = text_from(records[i].text);
        is_number(dkim_record_judge(&text, 1, TEXT("rsa"), key), records[i].want,
                  records[i].text);
        ok(dkim_record_words(records[i].want)[0] != '\0');
    }
    is_number(dkim_record_judge(two, 2, TEXT("rsa"), key), DKIM_RECORD_SEVERAL,
              "two records, even if they are the same");
    is_number(dkim_record_judge(NULL, 0, TEXT("rsa"), key), DKIM_RECORD_NONE, "none");
    struct text nul = text_of("v=DKIM1; p=Ab\0Cd/+==", 21);
    is_number(dkim_record_judge(&nul, 1, TEXT("rsa"), key), DKIM_RECORD_OTHER_KEY,
              "with a NUL");
}
