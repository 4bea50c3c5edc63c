/* Verifiers of passwords: RFC 7677's example, every accepted form, every error, and the
 * cost of a check. */
#include "base/crypto/verifier.h"

#include "base/crypto/base64.h"
#include "t/support/tap.h"

#include <time.h>

#define SALT   "W22ZaJ0SNY7soEsUEjb6gQ=="
#define STORED "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
#define SERVER "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
#define HASH                                                                           \
    "TC.srYZRdhUNd1hUaX8BXmGPkCpq7TP8IIfBuwlVqWVsOskMwYShHaSiuvPe57wq5SGBJgI8u2TksJeC" \
    "/Zaz50"

static const char hashed[] = "$6$saltsaltsaltsalt$" HASH; /* "pencil" */

/* In as many slices as it takes. */
static bool
verifier_check(const struct verifier *v, struct text password)
{
    struct verifier_check c;
    enum verifier_finding finding = verifier_check_start(&c, v, password);
    while (finding == VERIFIER_UNFINISHED)
        finding = verifier_check_go(&c);
    return finding == VERIFIER_RIGHT;
}

TEST(forms)
{
    static const char *const forms[] = {
        "SCRAM-SHA-256$4096:" SALT "$" STORED ":" SERVER,
        "scram-sha-256$4096:" SALT "$" STORED ":" SERVER,
        "{SCRAM-SHA-256}4096," SALT "," STORED "," SERVER,
        "$6$saltsaltsaltsalt$" HASH,
        "{SHA512-CRYPT}$6$saltsaltsaltsalt$" HASH,
        "{CRYPT}$6$saltsaltsaltsalt$" HASH,
    };
    struct verifier v;
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        is_string(verifier_parse(&v, text_from(forms[i])), NULL, forms[i]);
        is_number(v.kind, i < 3 ? VERIFIER_SCRAM : VERIFIER_CRYPT, "its kind");
        ok(verifier_check(&v, TEXT("pencil")));
        ok(!verifier_check(&v, TEXT("pencil ")));
        ok(!verifier_check(&v, TEXT("Pencil")));
        ok(!verifier_check(&v, TEXT("")));
    }
}

TEST(written)
{
    struct verifier v, again;
    struct buffer out;
    char salt[VERIFIER_SALT];
    size_t length;
    buffer_init(&out, VERIFIER_WRITTEN_MAX);
    ok(base64_decode(TEXT(SALT), salt, sizeof(salt), &length));
    verifier_make(&v, TEXT("pencil"), text_of(salt, length),
                  VERIFIER_ITERATIONS_MIN);
    ok(verifier_write(&v, &out));
    is_text(buffer_text(&out), TEXT("SCRAM-SHA-256$4096:" SALT "$" STORED ":" SERVER),
            "RFC 7677's user");
    ok(verifier_parse(&again, buffer_text(&out)) == NULL);
    ok(memcmp(&v, &again, sizeof(v)) == 0);
    buffer_free(&out);
    buffer_init(&out, 100);
    ok_named(!verifier_write(&v, &out), "not beyond a limit");
    buffer_free(&out);
}

static void
is_mistake(const char *form, const char *want)
{
    struct verifier v;
    is_string(verifier_parse(&v, text_from(form)), want, form);
}

TEST(mistakes)
{
    const char *parts = "SCRAM-SHA-256 needs iterations, salt, stored key and server key",
               *key = "a key is not Base64 of 32 bytes",
               *salt = "the salt is not Base64 of 8 to 32 bytes",
               *shape = "not $6$salt$ and 86 characters of SHA-512 crypt",
               *costly = "bcrypt, yescrypt, scrypt, Argon2 and their like take too long "
                         "for each check: make a line with `petrel passwd USER`",
               *what = "neither SCRAM-SHA-256 nor SHA512-CRYPT: make a line with "
                       "`petrel passwd USER`";
    is_mistake("SCRAM-SHA-256$", parts);
    is_mistake("SCRAM-SHA-256$4096:" SALT "$" STORED, parts);
    is_mistake("{SCRAM-SHA-256}4096:" SALT "$" STORED ":" SERVER, parts);
    is_mistake("SCRAM-SHA-256$many:" SALT "$" STORED ":" SERVER,
               "the number of iterations is no number");
    is_mistake("SCRAM-SHA-256$4095:" SALT "$" STORED ":" SERVER,
               "fewer than 4096 iterations");
    is_mistake("SCRAM-SHA-256$1000000:" SALT "$" STORED ":" SERVER, NULL);
    is_mistake("SCRAM-SHA-256$1000001:" SALT "$" STORED ":" SERVER,
               "more than 1000000 iterations: a check would take too long");
    is_mistake("SCRAM-SHA-256$99999999999:" SALT "$" STORED ":" SERVER,
               "the number of iterations is no number");
    is_mistake("SCRAM-SHA-256$4096:c2FsdA==$" STORED ":" SERVER, salt);
    is_mistake("SCRAM-SHA-256$4096:" SALT "A$" STORED ":" SERVER, salt);
    is_mistake("SCRAM-SHA-256$4096:" STORED STORED "$" STORED ":" SERVER, salt);
    is_mistake("SCRAM-SHA-256$4096:" SALT "$" STORED ":" SERVER " ", key);
    is_mistake("SCRAM-SHA-256$4096:" SALT "$" SALT ":" SERVER, key);
    is_mistake("$6$$" HASH, shape);
    is_mistake("$6$salt", shape);
    is_mistake("$6$salt$" HASH "1", shape);
    is_mistake("$6$saltsaltsaltsalts$" HASH, shape);
    is_mistake("$6$sa:t$" HASH, shape);
    is_mistake("$6$rounds=5001$salt$" HASH,
               "more than 5000 rounds: a check would take too long");
    is_mistake("$6$rounds=999$salt$" HASH, "rounds= needs a number of at least 1000");
    is_mistake("$6$rounds=$salt$" HASH, "rounds= needs a number of at least 1000");
    is_mistake("$2b$12$abcdefghijklmnopqrstuv", costly);
    is_mistake("{BLF-CRYPT}$2y$05$x", costly);
    is_mistake("{CRYPT}$y$j9T$x", costly);
    is_mistake("{ARGON2ID}$argon2id$v=19$x", costly);
    is_mistake("$argon2id$v=19$x", costly);
    is_mistake("{MD5}x", what);
    is_mistake("$5$salt$x", what);
    is_mistake("secret", what);
    is_mistake("", what);
}

TEST(passwords)
{
    struct verifier v;
    char longest[VERIFIER_PASSWORD_MAX + 1];
    memset(longest, 'x', sizeof(longest));
    ok(verifier_password_error(TEXT("p\xc3\xa4ss word")) == NULL);
    ok(verifier_password_error(text_of(longest, VERIFIER_PASSWORD_MAX)) == NULL);
    ok(verifier_password_error(text_of(longest, sizeof(longest))) != NULL);
    ok(verifier_password_error(TEXT("")) != NULL);
    ok(verifier_password_error(TEXT("a\0b")) != NULL);
    ok(verifier_password_error(TEXT("a\tb")) != NULL);
    ok(verifier_password_error(TEXT("a\x7f")) != NULL);
    ok(verifier_password_error(TEXT("a\xff")) != NULL);
    ok(verifier_parse(&v, text_from(hashed)) == NULL);
    ok_named(!verifier_check(&v, TEXT("pencil\0x")), "a NUL does not end a password");
    ok(!verifier_check(&v, text_of(longest, sizeof(longest))));
}

TEST(slices)
{
    struct verifier v;
    struct verifier_check c;
    char salt[VERIFIER_SALT_MIN] = {1, 2, 3};
    unsigned slices = 1;
    verifier_make(&v, TEXT("x"), text_of(salt, sizeof(salt)), VERIFIER_ITERATIONS);
    enum verifier_finding finding = verifier_check_start(&c, &v, TEXT("x"));
    for (; finding == VERIFIER_UNFINISHED; slices++)
        finding = verifier_check_go(&c);
    ok(finding == VERIFIER_RIGHT);
    is_number(slices, VERIFIER_ITERATIONS / VERIFIER_SLICE, "much work, little at a time");
    finding = verifier_check_start(&c, &v, TEXT("y"));
    ok(finding == VERIFIER_UNFINISHED);
    while (finding == VERIFIER_UNFINISHED)
        finding = verifier_check_go(&c);
    ok(finding == VERIFIER_WRONG);
    ok(verifier_check_start(&c, &v, TEXT("")) == VERIFIER_WRONG);
    ok_named(VERIFIER_ITERATIONS >= 60000, "a stolen file is dear to guess at");
    ok_named(VERIFIER_ITERATIONS <= 65536, "Cyrus SASL logs in all the same");
}

/* Microseconds of this process for the fastest of some slices. */
static int64_t
cost_us(const struct verifier *v)
{
    char password[VERIFIER_PASSWORD_MAX];
    int64_t best = INT64_MAX;
    memset(password, 'x', sizeof(password));
    for (int i = 0; i < 5; i++) {
        struct verifier_check c;
        clock_t start = clock();
        (void)!verifier_check_start(&c, v, text_of(password, sizeof(password)));
        int64_t took = (int64_t)(clock() - start) * 1000000 / CLOCKS_PER_SEC;
        best = took < best ? took : best;
    }
    return best;
}

/* The bound is loose, for slow machines and sanitizers; the numbers are told. */
TEST(costs)
{
    struct verifier v = {.iterations = VERIFIER_ITERATIONS_MAX, .salt_length = 16};
    int64_t slice = cost_us(&v);
    ok(verifier_parse(&v, text_from(hashed)) == NULL);
    int64_t crypt = cost_us(&v);
    printf("# us: a slice of SCRAM %" PRId64 ", crypt with the longest password %" PRId64
           "\n",
           slice, crypt);
    ok(slice < 100000 && crypt < 200000);
}
