/* `petrel passwd`: reads a password and prints its hash for auth_users. */
#include "admin/tool/passwd.h"

#include "admin/tool/prompt.h"
#include "admin/settings/complaint.h"
#include "base/loop/loop.h"
#include "base/crypto/verifier.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

enum { NAME_MAX_BYTES = 128, INTERRUPTED = 130 };

static const char program[] = "petrel passwd";

/* As smtp/access/users.c reads them. */
static const char *
name_error(struct text name)
{
    if (name.length == 0 || name.length > NAME_MAX_BYTES)
        return "a user's name has 1 to 128 bytes";
    if (text_has_control(name) || !text_is_utf8(name))
        return "a user's name is UTF-8 without control characters";
    if (name.at[0] == '#' || text_find(name, ':') != TEXT_NONE ||
        text_trim(name).length != name.length)
        return "a user's name has no colon, and neither # nor spaces at its ends";
    return NULL;
}

static int
passwd_print_line(const char *name, struct text password)
{
    uint64_t salt[VERIFIER_SALT / sizeof(uint64_t)];
    struct verifier v;
    struct buffer out;
    struct loop *loop = loop_new();
    for (size_t i = 0; i < sizeof(salt) / sizeof(*salt); i++)
        salt[i] = loop_random(loop);
    loop_free(&loop);
    verifier_make(&v, password, text_of(salt, sizeof(salt)), VERIFIER_ITERATIONS);
    buffer_init(&out, VERIFIER_WRITTEN_MAX);
    if (verifier_write(&v, &out))
        printf("%s:%.*s\n", name, TEXT_ARGS(buffer_text(&out)));
    buffer_free(&out);
    digest_forget(&v, sizeof(v));
    return fflush(stdout) != 0 || ferror(stdout) ? EX_IOERR : 0;
}

/* The password, asked for twice on a terminal. */
static int
passwd_make(const char *name, char first[PROMPT_LINE_MAX], char second[PROMPT_LINE_MAX])
{
    struct text password, again;
    bool asks = prompt_is_possible();
    enum prompt_result result =
        prompt_ask(asks ? "Password: " : "", asks, first, &password);
    if (result == PROMPT_INTERRUPTED)
        return INTERRUPTED;
    if (result != PROMPT_GOOD)
        return complaint_say(program, EX_DATAERR,
                             "no password, or one that is far too long", "");
    const char *error = verifier_password_error(password);
    if (error)
        return complaint_say(program, EX_DATAERR, error, "");
    if (asks) {
        result = prompt_ask("Again: ", true, second, &again);
        if (result == PROMPT_INTERRUPTED)
            return INTERRUPTED;
        if (result != PROMPT_GOOD || !text_equal(password, again))
            return complaint_say(program, EX_DATAERR, "the two differ", "");
    }
    return passwd_print_line(name, password);
}

int
passwd_command(int count, char **arguments)
{
    char first[PROMPT_LINE_MAX], second[PROMPT_LINE_MAX];
    if (count != 1 || arguments[0][0] == '-') {
        fputs("usage: petrel passwd USER\n", stderr);
        return EX_USAGE;
    }
    const char *error = name_error(text_from(arguments[0]));
    if (error)
        return complaint_say(program, EX_DATAERR, error, arguments[0]);
    int code = passwd_make(arguments[0], first, second);
    digest_forget(first, sizeof(first));
    digest_forget(second, sizeof(second));
    return code;
}
