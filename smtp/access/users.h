/* The users that may log in: read from `auth_users`, looked up, checked.
 *
 * A line is `name:VERIFIER` (base/crypto/verifier.h) or `name:{PLAIN}password`; blank lines
 * and lines that start with # are skipped. An unknown name takes the same time and
 * gets the same reply as a wrong password: its decoy has the parameters of a user chosen
 * by a secret and the name. */
#ifndef SMTP_ACCESS_USERS_H
#define SMTP_ACCESS_USERS_H

#include "base/crypto/verifier.h"

enum {
    USERS_FILE_MAX = 4 * 1024 * 1024, /* for disk_read_regular() */
    USERS_MAX = 20000,
    USERS_PLAIN_MAX = 100 /* {PLAIN}: each takes 2 ms to read */
};

struct users;

/* Reads the file at path. secret: random, kept over reloads and restarts, so that a
 * decoy does not change. NULL with a line "FILE:LINE: ..." for each error; no line shows
 * any part of a verifier. */
struct users *users_read(const char *path, const unsigned char secret[DIGEST_SIZE],
                         struct buffer *errors);
/* Verifiers are overwritten. */
void users_free(struct users **users);

/* True: there are users, and all have SCRAM keys. Otherwise SCRAM is not offered: a client
 * that prefers SCRAM could not log in as a user with SHA-512 crypt. */
bool users_have_scram(const struct users *users);

bool users_have(const struct users *users, struct text name);

/* A check in slices of up to 5 ms; names are compared byte by byte. A password that was
 * right before is accepted by its digest immediately, because some clients log in for each
 * message. Borrows users until its end; overwrite its secrets then (digest_forget). */
struct users_check {
    struct verifier_check check;
    bool begun;
    /* One byte more than a password may have detects a longer one. */
    char password[VERIFIER_PASSWORD_MAX + 1];
    size_t length;
    struct user *user; /* NULL: unknown */
    unsigned char digest[DIGEST_SIZE];
};
enum verifier_finding users_check_start(const struct users *users, struct text name,
                                        struct text password, struct users_check *c)
    __attribute__((warn_unused_result));
/* After VERIFIER_UNFINISHED. */
enum verifier_finding users_check_go(struct users_check *c)
    __attribute__((warn_unused_result));

/* The keys for SCRAM. False for a name without SCRAM keys: keys is a decoy that no
 * password proves. */
bool users_scram(const struct users *users, struct text name, struct verifier *keys);

#endif
