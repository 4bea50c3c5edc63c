/* The users who may log in: read from `auth_users`, looked up, checked.
 *
 * A line is `name:VERIFIER` (base/crypto/verifier.h) or `name:{PLAIN}password`; blank lines
 * and lines that start with # are skipped. A name nobody has costs the same and looks
 * the same as a wrong password: one of the users, chosen by a secret and the name,
 * lends the shape. */
#ifndef SMTP_SERVER_USERS_H
#define SMTP_SERVER_USERS_H

#include "base/crypto/verifier.h"

enum {
    USERS_FILE_MAX = 4 * 1024 * 1024, /* for disk_read_whole() */
    USERS_MAX = 20000,
    USERS_PLAIN_MAX = 100 /* {PLAIN}: 2 ms each when they are read */
};

struct users;

/* Reads the content of a file called `file`. secret: random, kept over reloads and
 * restarts, so that a decoy does not change. NULL with a line "FILE:LINE: ..." for each
 * error; no line shows any part of a verifier. */
struct users *users_new(struct text content, const char *file,
                        const unsigned char secret[DIGEST_SIZE], struct buffer *errors);
/* Verifiers are overwritten. */
void users_free(struct users **users);
/* The same from the file itself. */
struct users *users_read(const char *path, const unsigned char secret[DIGEST_SIZE],
                         struct buffer *errors);
size_t users_count(const struct users *users);

/* Every user has SCRAM keys (and there is one): a client that prefers SCRAM could not
 * log in with a SHA-512 crypt, so it is not offered to anybody then. */
bool users_have_scram(const struct users *users);

bool users_have(const struct users *users, struct text name);

/* A check, slice by slice, each up to 5 ms; names are compared byte by byte. A password
 * that was right before is known by its digest, and accepted immediately: clients that log in
 * for each message cost no more than the first time. Borrows users until its end.
 * Secrets: overwrite it then (digest_forget). */
struct users_check {
    struct verifier_check check;
    bool begun;
    /* One byte more than a password can have shows that it is none. */
    char password[VERIFIER_PASSWORD_MAX + 1];
    size_t length;
    struct user *user; /* NULL: nobody */
    unsigned char digest[DIGEST_SIZE];
};
enum verifier_finding users_check_start(const struct users *users, struct text name,
                                        struct text password, struct users_check *c)
    __attribute__((warn_unused_result));
/* After VERIFIER_UNFINISHED. */
enum verifier_finding users_check_go(struct users_check *c)
    __attribute__((warn_unused_result));

/* The keys for SCRAM; for others than those who have some false, and keys that nothing
 * can prove. */
bool users_scram(const struct users *users, struct text name, struct verifier *keys);

#endif
