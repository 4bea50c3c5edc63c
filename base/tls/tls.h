/* Transport security: who we are to those who call us, whom we believe when we call.
 *
 * The files base/tls*.c are the only space that knows mbedTLS, of which they take 2.28
 * and 3.6 (with TLS 1.3). Nothing here touches a socket: base/net/net.h carries it
 * (net_start_tls()). TLS 1.2 at least, ECDHE with AEAD only, no renegotiation. A server
 * and a client are made once and never changed: reloading makes new ones, connections
 * keep the old ones alive. */
#ifndef BASE_TLS_H
#define BASE_TLS_H

#include "base/text.h"

enum { TLS_ERROR_MAX = 512, TLS_NAME_MAX = 255 };

/* "mbedTLS 2.28.3" of the library that runs. */
const char *tls_version(void);

/* The random generator that all below share, seeded here from the system; one for a
 * process. NULL with one line in error. */
struct tls;
struct tls *tls_new(char *error, size_t error_size);
/* Servers, clients and connections made from it may outlive this call. */
void tls_free(struct tls **tls);

/* --- Those who are called ------------------------------------------------------ */

enum { TLS_PAIRS_MAX = 64, TLS_FILE_MAX = 4 * 1024 * 1024 };
/* PEM files; the certificate's file goes on with its intermediates. May be one file. */
struct tls_pair {
    const char *certificate, *key;
};
struct tls_server;

/* 1 to TLS_PAIRS_MAX pairs. A client that names a host (SNI) gets the pair with that
 * name, else the one with a wildcard for it, else the first. Reads the files; NULL with
 * one line in error that names the file. Tickets of one server are good for no other
 * one, not even for its successor; their key changes every few hours. */
struct tls_server *tls_server_new(struct tls *tls, const struct tls_pair *pairs,
                                  size_t count, char *error, size_t error_size);
void tls_server_free(struct tls_server **server); /* connections keep it */
/* When the first of its certificates expires, ms since the epoch. */
int64_t tls_server_expires_ms(const struct tls_server *server);

/* --- Those who call ------------------------------------------------------------ */

enum {
    TLS_SESSIONS_MAX = 512, /* remembered by a client; of more the oldest goes */
    TLS_SESSION_SIZE_MAX = 16 * 1024,
    TLS_ANCHOR_FILES_MAX = 4096
};
struct tls_client;

/* anchors: a file of PEM certificates, or a directory of such files (what is none in it
 * is passed over); NULL trusts nobody, enough for TLS_LEVEL_NONE. NULL with one line in
 * error when nothing can be read from it. Remembers sessions, to resume them. */
struct tls_client *tls_client_new(struct tls *tls, const char *anchors, char *error,
                                  size_t error_size);
void tls_client_free(struct tls_client **client); /* connections keep it */

enum tls_level {
    TLS_LEVEL_NONE,  /* any certificate: safe from listeners only */
    TLS_LEVEL_VERIFY /* a chain to an anchor, in its time, with one of the names */
};

/* What a client wants of one host; borrowed during the call. */
struct tls_client_options {
    enum tls_level level;
    /* A host name, told as SNI, or an IP literal without brackets (looked for among the
     * certificate's addresses). Sessions are resumed with the same level, host and
     * names. Empty only for TLS_LEVEL_NONE. */
    struct text host;
    /* Other names to accept instead of host (RFC 6125: the leftmost label of the
     * certificate's name may be "*"); none = host. */
    const struct text *names;
    size_t name_count;
};

/* Whether a name in a certificate stands for host: no case, a trailing dot of host
 * ignored, "*." for exactly one label before at least two. */
bool tls_name_matches(struct text pattern, struct text host);

#endif
