/* Access to HTTP: keys that open a session once, sessions, and the tokens of programs.
 *
 * All of it is in memory and is over with the daemon. There is no default password: a
 * key comes from the control socket, a token from the settings. Secrets are compared in
 * a time that does not depend on them. */
#ifndef ADMIN_HTTP_HTTP_KEYS_H
#define ADMIN_HTTP_HTTP_KEYS_H

#include "admin/http/http_places.h"

struct loop;
struct http_keys;

enum {
    HTTP_KEYS_MAX = 16, /* not yet used; then the oldest is dropped */
    HTTP_KEY_MS = 5 * 60 * 1000,
    HTTP_SESSIONS_MAX = 32, /* then the one that was idle longest is dropped */
    HTTP_SESSION_IDLE_MS = 12 * 60 * 60 * 1000,
    HTTP_SECRET_SIZE = 23, /* 128 bits in base64url, and a NUL */
    HTTP_TOKEN_MIN = 16    /* characters of `http_token` */
};

struct http_keys *http_keys_new(struct loop *loop);
void http_keys_free(struct http_keys **keys);

/* A new key, valid once, for HTTP_KEY_MS. */
void http_keys_make(struct http_keys *keys, enum http_may may,
                    char out[HTTP_SECRET_SIZE]);
/* A session in exchange for the key, and the value of its cookie. NOTHING: no such
 * key. */
enum http_may http_keys_open(struct http_keys *keys, struct text key,
                             char cookie[HTTP_SECRET_SIZE]);
/* The access of the session of that cookie; it is no longer idle. */
enum http_may http_keys_session(struct http_keys *keys, struct text cookie);
void http_keys_close(struct http_keys *keys, struct text cookie);

/* The values of `http_token` and `http_read_token`; empty: none. They are copied as
 * digests. */
void http_keys_set_tokens(struct http_keys *keys, struct text operate,
                          struct text read);
enum http_may http_keys_token(const struct http_keys *keys, struct text token);

#endif
