/* SRS: senders of forwarded mail there and back, foreign ones, forged and old ones. */
#include "mime/srs.h"

#include "mime/address.h"
#include "base/buffer.h"
#include "t/support/tap.h"

#define FIRST_HASH  "XREJES"
#define QUOTED_HASH "ZHA2KF"

static const int64_t day_ms = INT64_C(24) * 3600 * 1000;
static const int64_t now_ms = INT64_C(20000) * 24 * 3600 * 1000 + 5000;

static struct srs *
srs_of(const char *domain, const char *first, const char *second)
{
    struct text secrets[2] = {text_from(first), text_from(second)};
    return srs_new(text_from(domain), secrets, second != NULL ? 2 : 1);
}

static void
goes(const struct srs *s, const char *sender, const char *want)
{
    char out[SRS_ADDRESS_MAX];
    bool good = srs_forward(s, text_from(sender), now_ms, out);
    is_string(good ? out : "too long", want, sender);
}

static void
comes_at(const struct srs *s, const char *address, int64_t at_ms, const char *want)
{
    char out[SRS_ADDRESS_MAX];
    enum srs_answer answer = srs_back(s, text_from(address), at_ms, out);
    is_string(answer == SRS_GOOD  ? out
              : answer == SRS_BAD ? "bad"
                                  : "no",
              want, address);
}

static void
comes(const struct srs *s, const char *address, const char *want)
{
    comes_at(s, address, now_ms, want);
}

/* Computed with Python: base64.b32encode(hmac.digest(b"0123456789abcdef",
 * b"ra=far.test=ann", "sha256"))[:6]. Day 20000 % 1024 = 544 = 17 * 32 + 0. */
TEST(form)
{
    struct srs *s = srs_of("d.test", "0123456789abcdef", NULL);
    is_text(srs_domain(s), TEXT("d.test"), "its domain");
    goes(s, "ann@far.test", "SRS0=" FIRST_HASH "=RA=far.test=ann@d.test");
    goes(s, "\"a b\"@far.test", "\"SRS0=" QUOTED_HASH "=RA=far.test=a b\"@d.test");
    comes(s, "SRS0=" FIRST_HASH "=RA=far.test=ann@d.test", "ann@far.test");
    comes(s, "srs0=" FIRST_HASH "=ra=far.test=ann@D.TEST", "ann@far.test");
    comes(s, "SRS0-" FIRST_HASH "=RA=far.test=ann@d.test", "ann@far.test");
    comes(s, "SRS0+" FIRST_HASH "=RA=far.test=ann@d.test", "ann@far.test");
    comes(s, "SRS0=" FIRST_HASH "=RA=far.test=bob@d.test", "bad");
    comes(s, "SRS0=" FIRST_HASH "=RB=far.test=ann@d.test", "bad");
    comes(s, "SRS0=AAAAAA=RA=far.test=ann@d.test", "bad");
    comes(s, "SRS0=@d.test", "no");
    comes(s, "SRS0=x@d.test", "bad");
    comes(s, "SRS1=x@d.test", "bad");
    comes(s, "SRS0=" FIRST_HASH "=RA=far.test=ann@e.test", "no");
    comes(s, "ann@d.test", "no");
    comes(s, "not an address", "no");
    srs_free(&s);
    ok(s == NULL);
}

TEST(foreign)
{
    struct srs *s = srs_of("d.test", "0123456789abcdef", NULL);
    struct srs *next = srs_of("e.test", "fedcba9876543210", NULL);
    static const char *const foreign[] = {"SRS0=xxxx=yy=far.test=ann@mid.test",
                                          "SRS0+xxxx=yy=far.test=ann@mid.test",
                                          "srs0-xxxx=yy=far.test=ann@mid.test"};
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        char once[SRS_ADDRESS_MAX], twice[SRS_ADDRESS_MAX], back[SRS_ADDRESS_MAX];
        char want[100];
        ok(srs_forward(s, text_from(foreign[i]), now_ms, once));
        ok_named(text_starts(text_from(once), TEXT("SRS1=")), once);
        ok_named(strstr(once, "=mid.test") != NULL, "it names the host");
        ok(srs_forward(next, text_from(once), now_ms, twice));
        ok_named(strlen(twice) == strlen(once), "a third host adds nothing");
        snprintf(want, sizeof(want), "SRS0%s", foreign[i] + 4);
        ok(srs_back(s, text_from(once), now_ms, back) == SRS_GOOD);
        is_string(back, want, "back to the first host");
        ok(srs_back(next, text_from(twice), now_ms + 900 * day_ms, back) == SRS_GOOD);
        is_string(back, want, "from the third, too, and SRS1 has no age");
    }
    srs_free(&s);
    srs_free(&next);
}

/* Ours, then another host's, then ours again, as in a circle of two hosts. */
TEST(again)
{
    struct srs *s = srs_of("d.test", "0123456789abcdef", NULL);
    struct srs *next = srs_of("e.test", "fedcba9876543210", NULL);
    char first[SRS_ADDRESS_MAX], second[SRS_ADDRESS_MAX], third[SRS_ADDRESS_MAX];
    char want[SRS_ADDRESS_MAX + 20];
    ok(srs_forward(s, TEXT("ann@far.test"), now_ms, first));
    ok(srs_forward(next, text_from(first), now_ms, second));
    ok(srs_forward(s, text_from(second), now_ms, third));
    ok_named(text_starts(text_from(third), TEXT("SRS1=")) &&
                 strstr(third, "=d.test==") != NULL,
             third);
    comes(s, third, "ann@far.test");
    text_lower(third, strlen(third));
    comes(s, third, "ann@far.test");
    comes_at(s, third, now_ms + 21 * day_ms, "ann@far.test");
    comes_at(s, third, now_ms + 22 * day_ms, "bad"); /* the age is that of SRS0 */
    snprintf(want, sizeof(want), "%s", first);
    comes(next, second, want);
    /* SRS0 behind it is not ours, for any host it names. */
    ok(srs_forward(s, TEXT("SRS0=AAAAAA=RA=far.test=ann@d.test"), now_ms, third));
    comes(s, third, "bad");
    ok(srs_forward(s, TEXT("SRS0=x@d.test"), now_ms, third));
    comes(s, third, "bad");
    srs_free(&s);
    srs_free(&next);
}

TEST(age)
{
    struct srs *s = srs_of("d.test", "0123456789abcdef", NULL);
    char out[SRS_ADDRESS_MAX];
    ok(srs_forward(s, TEXT("ann@far.test"), now_ms, out));
    comes_at(s, out, now_ms + 21 * day_ms, "ann@far.test");
    comes_at(s, out, now_ms + 22 * day_ms, "bad");
    comes_at(s, out, now_ms - day_ms, "ann@far.test");
    comes_at(s, out, now_ms - 2 * day_ms, "bad");
    comes_at(s, out, now_ms + 1024 * day_ms, "ann@far.test");
    /* Over the end of the round of 1024 days. */
    int64_t end_ms = INT64_C(1023) * day_ms;
    ok(srs_forward(s, TEXT("ann@far.test"), end_ms, out));
    comes_at(s, out, end_ms + 20 * day_ms, "ann@far.test");
    comes_at(s, out, end_ms + 22 * day_ms, "bad");
    srs_free(&s);
}

TEST(secrets)
{
    struct srs *old = srs_of("d.test", "0123456789abcdef", NULL);
    struct srs *both = srs_of("d.test", "fedcba9876543210", "0123456789abcdef");
    struct srs *new = srs_of("d.test", "fedcba9876543210", NULL);
    char out[SRS_ADDRESS_MAX];
    ok(srs_forward(old, TEXT("ann@far.test"), now_ms, out));
    comes(both, out, "ann@far.test");
    comes(new, out, "bad");
    ok(srs_forward(both, TEXT("ann@far.test"), now_ms, out));
    comes(new, out, "ann@far.test");
    comes(old, out, "bad");
    srs_free(&old);
    srs_free(&both);
    srs_free(&new);
}

/* Without a secret nothing is rewritten, and what may be ours is neither good nor bad. */
TEST(blind)
{
    struct srs *s = srs_new(TEXT("d.test"), NULL, 0);
    struct srs *sees = srs_of("d.test", "0123456789abcdef", NULL);
    char out[SRS_ADDRESS_MAX];
    ok(srs_is_blind(s) && !srs_is_blind(sees));
    ok(!srs_forward(s, TEXT("ann@far.test"), now_ms, out));
    ok(!srs_forward(s, TEXT("SRS0=x=y=far.test=ann@mid.test"), now_ms, out));
    ok(srs_forward(sees, TEXT("ann@far.test"), now_ms, out));
    ok(srs_back(s, text_from(out), now_ms, out) == SRS_BLIND);
    ok(srs_back(s, TEXT("srs1-x@d.test"), now_ms, out) == SRS_BLIND);
    comes(s, "ann@d.test", "no");
    comes(s, "SRS0=x=y=far.test=ann@e.test", "no");
    srs_free(&s);
    srs_free(&sees);
}

TEST(length)
{
    struct srs *s = srs_of("d.test", "0123456789abcdef", NULL);
    char sender[300], out[SRS_ADDRESS_MAX];
    memset(sender, 'l', 64);
    int at = 64;
    sender[at++] = '@';
    for (int i = 0; i < 172; i++)
        sender[at++] = i % 50 == 49 ? '.' : 'x';
    strcpy(sender + at, ".test");
    ok_named(!srs_forward(s, text_from(sender), now_ms, out), "a long one stays");
    sender[64 + 1 + 49] = '\0';
    ok(srs_forward(s, text_from(sender), now_ms, out));
    ok(strlen(out) <= ADDRESS_MAX);
    comes(s, out, sender);
    srs_free(&s);
}

static char
random_byte(uint64_t *state, const char *of)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return of[(*state >> 33) % strlen(of)];
}

/* Each there and back, also as a host writes it that changes the case; and with one
 * character of it changed. */
TEST(random)
{
    struct srs *s = srs_of("forward.test", "0123456789abcdef", NULL);
    struct buffer normal;
    uint64_t state = 7;
    unsigned wrong = 0, tampered = 0;
    buffer_init(&normal, SRS_ADDRESS_MAX);
    for (unsigned i = 0; i < 10000; i++) {
        char sender[100] = "", out[SRS_ADDRESS_MAX], back[SRS_ADDRESS_MAX];
        struct address parsed;
        size_t local = 1 + i % 20, at = 0;
        while (at < local)
            sender[at++] = random_byte(&state, "abcdeXYZ019+=-_!#$%&'*/?^`{|}~");
        strcpy(sender + at, i % 3 ? "@far-away.test" : "@SRS0.example");
        buffer_clear(&normal);
        if (!address_parse(text_from(sender), &parsed) ||
            !address_write(&parsed, &normal))
            abort();
        wrong += !srs_forward(s, buffer_text(&normal), now_ms, out) ||
                 srs_back(s, text_from(out), now_ms, back) != SRS_GOOD ||
                 !text_equal(text_from(back), buffer_text(&normal));
        size_t change = 5 + (size_t)i % 6; /* in the hash */
        out[change] = out[change] == 'A' ? 'B' : 'A';
        tampered += srs_back(s, text_from(out), now_ms, back) == SRS_GOOD;
    }
    is_number(wrong, 0, "10,000 senders there and back");
    is_number(tampered, 0, "none with another hash");
    buffer_free(&normal);
    srs_free(&s);
}
