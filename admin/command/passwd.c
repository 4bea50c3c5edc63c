/* `petrel passwd`: reads a password and prints its hash for auth_users. */
#include "admin/command/passwd.h"

#include "admin/settings/complaint.h"
#include "base/loop/loop.h"
#include "base/crypto/verifier.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <termios.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 128, LINE_MAX_BYTES = 512, INTERRUPT = 3, INTERRUPTED = 130 };

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

/* A line without its end. Byte by byte: the rest of the input is left for others. False
 * at the end of the input or when the line is longer than any password. */
static bool
passwd_read_line(char line[LINE_MAX_BYTES], struct text *read_so)
{
    size_t used = 0;
    ssize_t got;
    while (used < LINE_MAX_BYTES) {
        got = read(STDIN_FILENO, line + used, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 && used == 0)
            return false;
        if (got <= 0 || line[used] == '\n')
            break;
        if (line[used++] == INTERRUPT)
            break;
    }
    bool whole = used < LINE_MAX_BYTES;
    if (used > 0 && line[used - 1] == '\r')
        used--;
    *read_so = text_of(line, used);
    return whole;
}

/* No signal ends us while nothing is shown: ^C ends the line instead. */
static bool
read_hidden(const char *prompt, char line[LINE_MAX_BYTES], struct text *read_so)
{
    struct termios before, hidden;
    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return false;
    hidden = before;
    hidden.c_lflag &= (tcflag_t) ~(ECHO | ECHONL | ISIG);
    hidden.c_lflag |= ICANON;
    hidden.c_cc[VEOL] = INTERRUPT;
    if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden) != 0)
        return false;
    /* Now: input that a program types at the prompt would be flushed, or shown. */
    fputs(prompt, stderr);
    bool good = passwd_read_line(line, read_so);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    fputc('\n', stderr);
    return good;
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

static bool
is_interrupted(struct text line)
{
    return line.length > 0 && line.at[line.length - 1] == INTERRUPT;
}

static int
passwd_make(const char *name, char first[LINE_MAX_BYTES], char second[LINE_MAX_BYTES])
{
    struct text password, again;
    bool asked = isatty(STDIN_FILENO);
    if (asked ? !read_hidden("Password: ", first, &password)
              : !passwd_read_line(first, &password))
        return complaint_say(program, EX_DATAERR,
                             "no password, or one that is far too long", "");
    if (asked && is_interrupted(password))
        return INTERRUPTED;
    const char *error = verifier_password_error(password);
    if (error)
        return complaint_say(program, EX_DATAERR, error, "");
    if (asked) {
        bool read_it = read_hidden("Again: ", second, &again);
        if (read_it && is_interrupted(again))
            return INTERRUPTED;
        if (!read_it || !text_equal(password, again))
            return complaint_say(program, EX_DATAERR, "the two differ", "");
    }
    return passwd_print_line(name, password);
}

int
command_passwd(int count, char **arguments)
{
    char first[LINE_MAX_BYTES], second[LINE_MAX_BYTES];
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
