/* Submission keys: which programs may post messages by HTTP (setting `http_keys`).
 *
 * A line of the file is "NAME DIGEST SENDER...": the SHA-256 of the key in hex, then the
 * senders that it may use (user@domain, domain, .domain, *); # begins a comment line. A key
 * is 256 random bits, so its digest needs no salt. `petrel key` makes the lines. */
#ifndef ADMIN_POST_POST_KEYS_H
#define ADMIN_POST_POST_KEYS_H

#include "base/buffer.h"
#include "base/crypto/digest.h"

enum {
    POST_KEYS_MAX = 1000,
    POST_KEY_NAME_MAX = 64,
    POST_KEY_FILE_MAX = 1024 * 1024,
    POST_KEY_TOKEN_SIZE = 51 /* "petrel_", 43 characters of base64url, and a NUL */
};
#define POST_KEY_USER "key:" /* before its name, as the user of its messages */

struct post_key {
    char name[POST_KEY_NAME_MAX + 1];
    unsigned char digest[DIGEST_SIZE];
};

struct senders;
/* Shared by the messages that are under way; freed by its last user. */
struct post_keys {
    unsigned users;
    size_t count;
    struct senders *senders; /* of POST_KEY_USER and the name */
    struct post_key list[];
};

/* domains: of `sender_domains`, which hold for keys, too. NULL with a line per error. */
struct post_keys *post_keys_new(struct text content, const char *file,
                                struct text domains, struct buffer *errors);
struct post_keys *post_keys_read(const char *file, struct text domains,
                                 struct buffer *errors);
void post_keys_release(struct post_keys **keys);

/* In a time that does not depend on the token. NULL: no such key. */
const struct post_key *post_keys_find(const struct post_keys *keys, struct text token);

bool post_key_is_name(struct text name);
/* A new key, from these random bytes. */
void post_key_write(const unsigned char random[DIGEST_SIZE],
                    char token[POST_KEY_TOKEN_SIZE]);

#endif
