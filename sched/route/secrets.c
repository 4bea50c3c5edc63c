/* The table of passwords for next hops.
 *
 * Errors name a line but show none of its text, and the copies in memory are
 * overwritten when the table is freed. The key of a line has host, port and user: a
 * password is sent to the host of its line only. */
#include "sched/route/secrets.h"

#include "base/crypto/digest.h"
#include "base/memory.h"
#include "mime/address.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { HOST_MAX = SECRETS_HOST_MAX, KEY_MAX = SECRETS_KEY_MAX };

static const char blanks[] = " \t\r";

struct line {
    UT_hash_handle hh;
    struct secret secret;
    struct text host, user; /* in key */
    uint16_t port;
    char *key, *value;
};

struct secrets {
    struct line *lines; /* by "host:port user" */
};

size_t
secrets_key(struct text host, uint16_t port, struct text user,
            char key[SECRETS_KEY_MAX])
{
    if (host.length == 0 || host.length > HOST_MAX || user.length > SECRETS_USER_MAX)
        return 0;
    int length = snprintf(key, KEY_MAX, "%.*s:%u ", TEXT_ARGS(host), (unsigned)port);
    assert(length > 0 && (size_t)length + user.length < KEY_MAX);
    text_lower(key, (size_t)length);
    memcpy(key + length, user.at, user.length);
    return (size_t)length + user.length;
}

static struct line *
line_find(const struct secrets *secrets, struct text host, uint16_t port,
          struct text user)
{
    char key[KEY_MAX];
    struct line *line = NULL;
    size_t length = secrets_key(host, port, user, key);
    if (length > 0)
        HASH_FIND(hh, secrets->lines, key, length, line);
    return line;
}

/* False: there is one already. */
static bool
line_add(struct secrets *secrets, struct text host, uint16_t port, struct text user,
         const struct secret *secret)
{
    char key[KEY_MAX];
    if (line_find(secrets, host, port, user))
        return false;
    size_t length = secrets_key(host, port, user, key);
    assert(length > 0);
    struct line *line = memory_new(sizeof(*line));
    line->key = text_string(text_of(key, length));
    line->host = text_of(line->key, host.length);
    line->user = text_of(line->key + length - user.length, user.length);
    line->port = port;
    line->value = text_string(secret->value);
    line->secret = *secret;
    line->secret.value = text_of(line->value, secret->value.length);
    HASH_ADD_KEYPTR(hh, secrets->lines, line->key, length, line);
    return true;
}

const char *
secrets_error(struct text password)
{
    if (password.length == 0)
        return "is empty";
    if (password.length > SECRETS_PASSWORD_MAX)
        return "is longer than 1024 bytes";
    if (text_has_control(password))
        return "has control characters";
    return text_is_utf8(password) ? NULL : "is not UTF-8";
}

/* host, host:port, [address], [address]:port; port 0: none. The form is that of
 * targets, so that both settings name a host in the same way. */
static bool
host_read(struct text t, struct text *host, uint16_t *port)
{
    uint64_t number = 0;
    bool brackets = t.length > 0 && t.at[0] == '[';
    size_t end = text_find(t, brackets ? ']' : ':');
    struct text rest = TEXT("");
    if (brackets && end == TEXT_NONE)
        return false;
    *host = text_before(t, end);
    if (brackets) {
        *host = text_after(*host, 1);
        if (text_starts_nocase(*host, TEXT("IPv6:")))
            *host = text_after(*host, 5);
        rest = text_after(t, end + 1);
    } else if (end != TEXT_NONE) {
        rest = text_after(t, end);
    }
    if (rest.length > 0 &&
        (rest.at[0] != ':' || !text_number(text_after(rest, 1), 65535, &number) ||
         number == 0))
        return false;
    *port = (uint16_t)number;
    return host->length > 0 && host->length <= HOST_MAX &&
           (brackets ? !text_has_control(*host) : address_is_domain(*host));
}

/* NULL, or the error in the line. A value that begins with "@" is a token's file or an
 * escape, so that such a password can still be written. */
static const char *
value_read(struct text value, struct secret *secret)
{
    secret->from = "auth_passwords";
    if (text_starts(value, TEXT("@@")))
        value = text_after(value, 1);
    else if (text_starts(value, TEXT("@/")))
        secret->is_token = true;
    else if (text_starts(value, TEXT("@")))
        return "@ needs the absolute path of a token file; write a password that "
               "begins "
               "with @ with a second @ in front";
    secret->value = secret->is_token ? text_after(value, 1) : value;
    return NULL;
}

static const char *
secrets_line_read(struct secrets *secrets, struct text line)
{
    struct text word, user, host;
    struct secret secret = {0};
    uint16_t port;
    if (!text_word(&line, blanks, &word) || !text_word(&line, blanks, &user))
        return "write HOST[:PORT] USER PASSWORD";
    if (!host_read(word, &host, &port))
        return "begin with the host: a name or [address], perhaps with :PORT";
    if (user.length > SECRETS_USER_MAX || text_has_control(user) || !text_is_utf8(user))
        return "the user's name is too long, not UTF-8 or has control characters";
    const char *error = value_read(text_trim(line), &secret);
    if (error)
        return error;
    if (secret.value.length == 0)
        return "the password is missing; write HOST[:PORT] USER PASSWORD";
    if (secrets_error(secret.value))
        return "the password is longer than 1024 bytes, not UTF-8 or has control "
               "characters";
    if (!line_add(secrets, host, port, user, &secret))
        return "duplicate of a line above for this host and user; remove one";
    return NULL;
}

struct secrets *
secrets_new(struct text table, struct buffer *errors)
{
    struct secrets *secrets = memory_new(sizeof(*secrets));
    struct text line;
    bool bad = false;
    if (text_starts(table, TEXT("\xef\xbb\xbf"))) /* an editor's byte order mark */
        table = text_after(table, 3);
    for (unsigned number = 1; table.length > 0 && text_cut(&table, '\n', &line);
         number++) {
        line = text_trim(line);
        if (line.length == 0 || line.at[0] == '#')
            continue;
        const char *error = secrets_line_read(secrets, line);
        if (!error)
            continue;
        bad = true;
        /* A full buffer has enough errors. */
        (void)!buffer_format(errors, "auth_passwords: line %u: %s\n", number, error);
    }
    if (bad)
        secrets_free(&secrets);
    return secrets;
}

void
secrets_free(struct secrets **secrets)
{
    struct secrets *s = *secrets;
    struct line *line, *next;
    if (!s)
        return;
    *secrets = NULL;
    HASH_ITER (hh, s->lines, line, next) {
        HASH_DELETE(hh, s->lines, line);
        digest_forget(line->value, line->secret.value.length);
        free(line->value);
        free(line->key);
        free(line);
    }
    free(s);
}

bool
secrets_add(struct secrets *secrets, struct text host, uint16_t port, struct text user,
            struct text password, const char *from)
{
    struct secret secret = {.value = password, .from = from};
    return !secrets_error(password) && line_add(secrets, host, port, user, &secret);
}

/* Without a port a line is for all ports. */
static bool
line_overlaps(const struct line *line, struct text host, uint16_t port,
              struct text user)
{
    return text_equal_nocase(line->host, host) && text_equal(line->user, user) &&
           (line->port == 0 || port == 0 || line->port == port);
}

/* Two ways to log in are ambiguous; but one of two accounts of a user may be for a
 * port. */
static bool
account_is_new(const struct secrets *secrets, const struct secrets_account *a)
{
    for (const struct line *line = secrets->lines; line; line = line->hh.next)
        if (!line->secret.is_account && line_overlaps(line, a->host, a->port, a->user))
            return false;
    return a->host.length <= HOST_MAX && a->user.length <= SECRETS_USER_MAX;
}

bool
secrets_add_account(struct secrets *secrets, const struct secrets_account *a,
                    struct buffer *errors)
{
    struct secret secret = {.is_account = true, .value = a->name, .from = "oauth"};
    if (account_is_new(secrets, a) &&
        line_add(secrets, a->host, a->port, a->user, &secret))
        return true;
    (void)!buffer_format(
        errors,
        "oauth: the user %.*s at %.*s has a second line, here or in auth_passwords: "
        "remove one\n",
        TEXT_ARGS(text_before(a->user, SECRETS_USER_MAX)),
        TEXT_ARGS(text_before(a->host, HOST_MAX)));
    return false;
}

/* The line of the port is more specific than that of all ports. */
const struct secret *
secrets_find(const struct secrets *secrets, struct text host, uint16_t port,
             struct text user)
{
    if (!secrets || user.length == 0)
        return NULL;
    const struct line *line = line_find(secrets, host, port, user);
    if (!line)
        line = line_find(secrets, host, 0, user);
    return line ? &line->secret : NULL;
}

void
secrets_each_file(const struct secrets *secrets,
                  void (*each)(void *context, const char *path), void *context)
{
    if (secrets != NULL)
        for (const struct line *line = secrets->lines; line; line = line->hh.next)
            if (line->secret.is_token)
                each(context, line->value);
}

/* A part of a digest: a target must change with its password but not contain it. For a
 * token the path is digested, since its file is read anew for each attempt. */
uint64_t
secrets_mark(const struct secret *secret)
{
    unsigned char digest[DIGEST_SIZE];
    uint64_t mark;
    digest_plain(secret->value, digest);
    memcpy(&mark, digest, sizeof(mark));
    mark = (mark & ~UINT64_C(1)) | secret->is_token;
    return mark ? mark : 2;
}
