/* Files of users and passwords, and words of AUTH. */
#include "t/roof/login.h"

#include "base/crypto/base64.h"
#include "base/crypto/verifier.h"
#include "t/roof/host.h"

#include <stdio.h>
#include <stdlib.h>

enum { FILE_MAX = 4096, NAME_MAX_HERE = 32 };

static void
write_users(void)
{
    struct buffer all;
    buffer_init(&all, FILE_MAX);
    for (unsigned i = 0; i < LOGIN_CLIENTS; i++) {
        char password[NAME_MAX_HERE];
        struct verifier v;
        snprintf(password, sizeof(password), "secret of c%u", i);
        verifier_make(&v, text_from(password), TEXT("0123456789abcdef"),
                      VERIFIER_ITERATIONS_MIN);
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
