/* The users that may log in, and decoys for unknown names.
 *
 * A client must not learn which names exist: neither from a reply, nor from its time,
 * nor from the salt of SCRAM. So an unknown name goes through the same steps as a user,
 * with a decoy that is derived from a secret and the name, and fails at the end. */
#include "smtp/access/users.h"

#include "smtp/access/tables_internal.h"

#include "base/disk/disk.h"
#include "base/memory.h"
#include "smtp/sasl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct user {
    char name[SASL_NAME_MAX + 1];
    size_t line;
    struct verifier verifier;
    bool proven; /* the password of this digest was right */
    unsigned char digest[DIGEST_SIZE];
    UT_hash_handle hh;
};

struct users {
    struct user *table;
    struct user **list; /* in the order of the file: decoys are chosen by index */
    size_t count, capacity, plain, crypt;
    unsigned char secret[DIGEST_SIZE];
};

struct reading {
    struct users *users;
    const char *file;
    size_t line;
    struct buffer *errors;
};

/* name: "" or a valid name. Errors beyond the limit of the buffer are dropped. */
static void
users_add_error(struct reading *r, struct text name, const char *what)
{
    if (name.length > 0)
        (void)!buffer_format(r->errors, "%s:%zu: user '%.*s': %s\n", r->file, r->line,
                             TEXT_ARGS(name), what);
    else
        (void)!buffer_format(r->errors, "%s:%zu: %s\n", r->file, r->line, what);
}

static struct user *
users_find(const struct users *users, struct text name)
{
    struct user *user;
    HASH_FIND(hh, users->table, name.at, name.length, user);
    return user;
}

/* Derives 32 secret bytes from the secret, a purpose and a name. All that a name gets
 * is derived from the secret, not from chance, so that a client which asks twice gets
 * the same answer. Otherwise a changed salt would tell that the name is unknown. */
static void
derive(const struct users *users, const char *purpose, struct text name,
       unsigned char out[DIGEST_SIZE])
{
    unsigned char key[DIGEST_SIZE];
    digest_keyed(text_of(users->secret, DIGEST_SIZE), text_from(purpose), key);
    digest_keyed(text_of(key, DIGEST_SIZE), name, out);
}

/* Keys are computed at startup, with few iterations: hence the limit on such lines. The
 * salt is derived, too, or each reload would change it. */
static const char *
make_from_plain(struct users *users, struct text name, struct text password,
                struct verifier *verifier)
{
    unsigned char salt[DIGEST_SIZE];
    const char *error = verifier_password_error(password);
    if (error)
        return error;
    if (++users->plain > USERS_PLAIN_MAX)
        return "more than 100 users with {PLAIN}: make lines with `petrel passwd USER`";
    derive(users, "salt", name, salt);
    verifier_make(verifier, password, text_of(salt, VERIFIER_SALT),
                  VERIFIER_ITERATIONS_MIN);
    return NULL;
}

static void
add_user(struct users *users, struct text name, const struct verifier *verifier,
         size_t line)
{
    struct user *user = memory_new(sizeof(*user));
    bool whole = text_copy(user->name, sizeof(user->name), name);
    assert(whole);
    user->verifier = *verifier;
    user->line = line;
    if (users->count == users->capacity) {
        users->capacity = users->capacity ? users->capacity * 2 : 16;
        users->list =
            memory_resize(users->list, users->capacity * sizeof(struct user *));
    }
    users->list[users->count++] = user;
    users->crypt += verifier->kind == VERIFIER_CRYPT;
    HASH_ADD(hh, users->table, name, name.length, user);
}

static const char *
read_verifier(struct users *users, struct text name, struct text value,
              struct verifier *verifier)
{
    static const struct text plain = TEXT("{PLAIN}");
    if (text_starts_nocase(value, plain))
        return make_from_plain(users, name, text_after(value, plain.length), verifier);
    return verifier_parse(verifier, text_trim(value));
}

static void
users_read_line(struct reading *r, struct text line)
{
    struct text name, value = line;
    struct verifier verifier;
    text_cut(&value, ':', &name);
    if (value.at == NULL || !sasl_is_name(name) || name.at[0] == ' ' ||
        name.at[name.length - 1] == ' ') {
        users_add_error(r, TEXT(""),
                        value.at == NULL ? "expected 'user:verifier'"
                                         : "not a valid user name");
        return;
    }
    const struct user *other = users_find(r->users, name);
    if (other) {
        char what[64];
        snprintf(what, sizeof(what), "is already in line %zu", other->line);
        users_add_error(r, name, what);
        return;
    }
    const char *error = read_verifier(r->users, name, value, &verifier);
    if (error == NULL && r->users->count == USERS_MAX)
        error = "more than 20000 users";
    if (error)
        users_add_error(r, name, error);
    else
        add_user(r->users, name, &verifier, r->line);
    digest_forget(&verifier, sizeof(verifier));
}

/* All errors are reported together, and a file with one of them is refused as a whole:
 * a user missing because of a typing error is worse than a reload that fails. */
struct users *
users_new(struct text content, const char *file,
          const unsigned char secret[DIGEST_SIZE], struct buffer *errors)
{
    struct users *users = memory_new(sizeof(*users));
    struct reading r = {.users = users, .file = file, .errors = errors};
    size_t before = errors->length;
    struct text rest = content, line;
    memcpy(users->secret, secret, DIGEST_SIZE);
    /* A byte order mark would be a part of the first name. */
    if (text_starts(rest, TEXT("\xef\xbb\xbf")))
        rest = text_after(rest, 3);
    while (text_cut(&rest, '\n', &line)) {
        r.line++;
        if (line.length > 0 && line.at[line.length - 1] == '\r')
            line.length--;
        if (text_trim(line).length > 0 && line.at[0] != '#')
            users_read_line(&r, line);
    }
    if (errors->length > before)
        users_free(&users);
    return users;
}

void
users_free(struct users **users)
{
    struct users *u = *users;
    if (u == NULL)
        return;
    HASH_CLEAR(hh, u->table);
    for (size_t i = 0; i < u->count; i++) {
        digest_forget(u->list[i], sizeof(*u->list[i]));
        free(u->list[i]);
    }
    free(u->list);
    digest_forget(u, sizeof(*u));
    free(u);
    *users = NULL;
}

struct users *
users_read(const char *path, const unsigned char secret[DIGEST_SIZE],
           struct buffer *errors)
{
    char *content, why[DISK_REASON_MAX];
    size_t length;
    int error = disk_read_regular(path, USERS_FILE_MAX, &content, &length);
    if (error != 0) {
        (void)!buffer_format(errors, "auth_users: cannot read %s: %s\n", path,
                             disk_explain_file(path, error, why));
        return NULL;
    }
    struct users *users = users_new(text_of(content, length), path, secret, errors);
    digest_forget(content, length); /* it has the passwords of {PLAIN} */
    free(content);
    return users;
}

size_t
users_count(const struct users *users)
{
    return users->count;
}

/* SCRAM is offered for all names or for none: it is offered before the name is known,
 * and a client that prefers it could not log in as a user with SHA-512 crypt. */
bool
users_have_scram(const struct users *users)
{
    return users->count > 0 && users->crypt == 0;
}

/* The decoy of an unknown name, always the same for a name. The decoy has the kind and
 * the cost of a real user's verifier, so that the time of the answer does not tell
 * unknown names from known ones. */
static void
lend(const struct users *users, struct text name, struct verifier *decoy)
{
    unsigned char chance[DIGEST_SIZE];
    uint64_t number;
    derive(users, "model", name, chance);
    memcpy(&number, chance, sizeof(number));
    if (users->count > 0)
        *decoy = users->list[number % users->count]->verifier;
    else
        *decoy = (struct verifier){.iterations = VERIFIER_ITERATIONS,
                                   .salt_length = VERIFIER_SALT};
}

bool
users_have(const struct users *users, struct text name)
{
    return users_find(users, name) != NULL;
}

/* The digest of a password that was right makes the next login of this user cheap: a
 * mail program logs in for every message, and each check costs milliseconds. */
static enum verifier_finding
users_found(struct users_check *c, enum verifier_finding finding)
{
    if (finding != VERIFIER_RIGHT)
        return finding;
    /* Only now: a decoy's password, though right for another user, proves nothing. */
    if (c->user == NULL)
        return VERIFIER_WRONG;
    c->user->proven = true;
    memcpy(c->user->digest, c->digest, DIGEST_SIZE);
    return VERIFIER_RIGHT;
}

/* The digest is keyed, and compared in constant time. It is never on disk. */
enum verifier_finding
users_check_start(const struct users *users, struct text name, struct text password,
                  struct users_check *c)
{
    unsigned char key[DIGEST_SIZE];
    *c = (struct users_check){.user = users_find(users, name)};
    derive(users, "password", name, key);
    digest_keyed(text_of(key, DIGEST_SIZE), password, c->digest);
    digest_forget(key, sizeof(key));
    if (c->user && c->user->proven &&
        digest_same(c->digest, c->user->digest, DIGEST_SIZE))
        return VERIFIER_RIGHT;
    password = text_before(password, sizeof(c->password));
    if (password.length > 0)
        memcpy(c->password, password.at, password.length);
    c->length = password.length;
    lend(users, name, &c->check.verifier); /* for users, too: equal time */
    if (c->user)
        c->check.verifier = c->user->verifier;
    return VERIFIER_UNFINISHED;
}

/* The copy of the password is overwritten as soon as the first step has used it. */
enum verifier_finding
users_check_go(struct users_check *c)
{
    if (c->begun)
        return users_found(c, verifier_check_go(&c->check));
    struct verifier verifier = c->check.verifier;
    c->begun = true;
    enum verifier_finding finding =
        verifier_check_start(&c->check, &verifier, text_of(c->password, c->length));
    digest_forget(&verifier, sizeof(verifier));
    digest_forget(c->password, sizeof(c->password));
    return users_found(c, finding);
}

/* An unknown name goes through the whole exchange with keys that no password fits. */
bool
users_scram(const struct users *users, struct text name, struct verifier *keys)
{
    const struct user *user = users_find(users, name);
    unsigned char salt[DIGEST_SIZE];
    lend(users, name, keys);
    derive(users, "salt", name, salt);
    if (keys->kind != VERIFIER_SCRAM)
        *keys = (struct verifier){.kind = VERIFIER_SCRAM,
                                  .iterations = VERIFIER_ITERATIONS,
                                  .salt_length = VERIFIER_SALT};
    memcpy(keys->salt, salt, keys->salt_length);
    derive(users, "stored key", name, keys->stored_key);
    derive(users, "server key", name, keys->server_key);
    if (user == NULL || user->verifier.kind != VERIFIER_SCRAM)
        return false;
    *keys = user->verifier;
    return true;
}
