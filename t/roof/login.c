/* Files of users and passwords, and words of AUTH. */
#include "t/roof/login.h"

#include "base/crypto/base64.h"
#include "base/crypto/digest.h"
#include "base/crypto/verifier.h"
#include "t/roof/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 4096, NAME_MAX_HERE = 32, KNOWN_MAX = 16 };

/* --- Passwords are stretched once: the linker puts this in the place of the function
 * (--wrap), which is milliseconds of work for each login --- */

bool __real_digest_stretch_go(struct digest_stretch *s, unsigned count);
bool __wrap_digest_stretch_go(struct digest_stretch *s, unsigned count);

static struct {
    struct known {
        struct digest_stretch before, after;
        unsigned count;
    } rows[KNOWN_MAX];
    size_t used;
} known;

bool
__wrap_digest_stretch_go(struct digest_stretch *s, unsigned count)
{
    for (size_t i = 0; i < known.used; i++)
        if (known.rows[i].count == count &&
            memcmp(&known.rows[i].before, s, sizeof(*s)) == 0) {
            *s = known.rows[i].after;
            return s->left == 0;
        }
    struct known row = {.before = *s, .count = count};
    bool ended = __real_digest_stretch_go(s, count);
    row.after = *s;
    if (known.used < KNOWN_MAX)
        known.rows[known.used++] = row;
    return ended;
}

/* --- Files --- */

static void
make_verifier(struct verifier *v, unsigned client)
{
    char password[NAME_MAX_HERE];
    snprintf(password, sizeof(password), "secret of c%u", client);
    verifier_make(v, text_from(password), TEXT("0123456789abcdef"),
                  VERIFIER_ITERATIONS_MIN);
}

void
login_prepare(void)
{
    for (unsigned i = 0; i < LOGIN_CLIENTS; i++) {
        struct verifier v;
        make_verifier(&v, i);
    }
}

static void
write_users(void)
{
    struct buffer all;
    buffer_init(&all, FILE_MAX);
    for (unsigned i = 0; i < LOGIN_CLIENTS; i++) {
        struct verifier v;
        make_verifier(&v, i);
        if (!buffer_format(&all, "c%u:", i) || !verifier_write(&v, &all) ||
            !buffer_add(&all, TEXT("\n")))
            abort();
    }
    host_write_file(&host, HOST_FOLDER, "users", buffer_text(&all));
    buffer_free(&all);
}

void
login_begin(const char *const *hops, unsigned count)
{
    struct buffer all;
    write_users();
    buffer_init(&all, FILE_MAX);
    for (unsigned i = 0; i < count; i++)
        if (!buffer_format(&all, "%s h%u secret of h%u\n", hops[i], i, i))
            abort();
    host_write_file(&host, HOST_FOLDER, "passwords", buffer_text(&all));
    buffer_free(&all);
}

void
login_word(char who, unsigned number, enum login_part part, bool is_right,
           char out[LOGIN_WORD_MAX])
{
    struct buffer clear, word;
    bool fits = true;
    buffer_init(&clear, NAME_MAX_HERE * 2);
    buffer_init(&word, LOGIN_WORD_MAX - 1);
    if (part == LOGIN_PLAIN)
        fits = buffer_add_byte(&clear, '\0');
    if (part != LOGIN_PASSWORD)
        fits = fits && buffer_format(&clear, "%c%u", who, number);
    if (part == LOGIN_PLAIN)
        fits = fits && buffer_add_byte(&clear, '\0');
    if (part != LOGIN_USER)
        fits = fits && (is_right ? buffer_format(&clear, "secret of %c%u", who, number)
                                 : buffer_add(&clear, TEXT("guessed")));
    if (!fits || !base64_encode(buffer_text(&clear), &word))
        abort();
    text_copy(out, LOGIN_WORD_MAX, buffer_text(&word));
    buffer_free(&clear);
    buffer_free(&word);
}
