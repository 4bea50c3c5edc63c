/* TLS: our certificates as a server, the trust anchors as a client, sessions of both.
 *
 * The files of this directory are the only ones that use mbedTLS for TLS: 2.28, or 3.6
 * with TLS 1.3. They never touch a socket: base/net/ carries the records
 * (net_start_tls()). TLS 1.2 or later, ECDHE with AEAD only, no renegotiation; but for
 * old devices, which get what the library has. A server
 * and a client are never changed: a reload makes new ones, and connections keep the old
 * ones alive. */
#ifndef BASE_TLS_TLS_H
#define BASE_TLS_TLS_H

#include "base/buffer.h"

enum { TLS_ERROR_MAX = 512, TLS_NAME_MAX = 255 };

/* The library at run time: "mbedTLS 2.28.3". */
const char *tls_version(void);

/* The random generator that servers and clients share, seeded from the system; one for
 * a process. NULL with one line in error. */
struct tls;
struct tls *tls_new(char *error, size_t error_size);
/* Servers, clients and connections made with it may outlive this call. */
void tls_free(struct tls **tls);

/* --- Server
 * ------------------------------------------------------------------------ */

enum { TLS_PAIRS_MAX = 64, TLS_FILE_MAX = 4 * 1024 * 1024 };
/* PEM files; intermediates follow the certificate. Both may be the same file. */
struct tls_pair {
    const char *certificate, *key;
};
struct tls_server;

/* The protocol under TLS: a client that offers only other protocols (ALPN, RFC 7301) is
 * refused, so that no browser can be made to speak to the mail ports, nor the other way
 * round (ALPACA). */
enum tls_protocol {
    TLS_MAIL,
    TLS_HTTP,
    TLS_OLD_MAIL, /* of old devices: also CBC, and RSA for the key exchange */
    TLS_PROTOCOLS
};

/* 1 to TLS_PAIRS_MAX pairs. A client that names a host (SNI) gets the pair with that
 * name, else the one with a wildcard for it, else the first. Reads the files; NULL with
 * one line in error that names the file. Tickets of one server are not valid for
 * another, nor for its successor after a reload; their key changes every few hours. */
struct tls_server *tls_server_new(struct tls *tls, const struct tls_pair *pairs,
                                  size_t count, char *error, size_t error_size);
void tls_server_free(struct tls_server **server); /* connections keep it */
/* TLS_OLD_MAIL takes TLS 1.0 and 1.1, too. False: the library has neither (mbedTLS 3). */
bool tls_server_allow_old(struct tls_server *server);

/* A certificate of ours, as operators see it. False: index is behind the last. */
struct tls_certificate {
    char name[TLS_NAME_MAX + 1]; /* the first of its names, printable */
    int64_t from_ms, until_ms;   /* since 1970 */
};
bool tls_server_certificate(const struct tls_server *server, size_t index,
                            struct tls_certificate *out);
/* Calls each with all names and addresses of a certificate; without any, with its
 * common name, which clients do not accept. name is printable, and borrowed until the
 * call returns. */
void tls_server_each_name(const struct tls_server *server, size_t index,
                          void (*each)(void *context, const char *name), void *context);

/* Certificates of clients that count, and the names of these clients. */
enum {
    TLS_CLIENTS_MAX = 10000, /* fingerprints, and names below authorities */
    TLS_CLIENTS_AUTHORITIES_MAX = 16,
    TLS_CLIENT_NAME_MAX = 128,
    TLS_CLIENT_TEXT_MAX = 400
};
struct tls_clients;
/* The file has lines "FINGERPRINT NAME", the SHA-256 of a certificate, and "ca:FILE
 * NAME...": a valid certificate below an authority of that file, with one of these names,
 * exactly. NULL with a line for each error. */
struct tls_clients *tls_clients_read(const char *path, struct buffer *errors);
void tls_clients_free(struct tls_clients **clients);
/* Calls each with the files of authorities that the file names. */
void tls_clients_each_file(const char *path,
                           void (*each)(void *context, const char *path),
                           void *context);
/* From now on clients of TLS_MAIL are asked for a certificate. Nobody is refused for the
 * lack of one, or for another one. There are no tickets then: they would not have it.
 * *clients becomes NULL. */
void tls_server_ask(struct tls_server *server, struct tls_clients **clients);

enum tls_client_standing {
    TLS_CLIENT_ANONYMOUS, /* it has presented none */
    TLS_CLIENT_UNKNOWN,
    TLS_CLIENT_KNOWN
};

/* --- Client
 * ------------------------------------------------------------------------ */

enum {
    /* sessions that a client remembers; then the oldest is dropped */
    TLS_SESSIONS_MAX = 512,
    TLS_SESSION_SIZE_MAX = 16 * 1024,
    TLS_ANCHOR_FILES_MAX = 4096
};
struct tls_client;

/* anchors: a file of PEM certificates, or a directory of such files (other
 * files in it are skipped). anchors NULL: no trust anchors, enough for TLS_LEVEL_NONE.
 * Returns NULL, with one line in error, if no certificate can be read. The client
 * remembers sessions, to resume them. */
struct tls_client *tls_client_new(struct tls *tls, const char *anchors, char *error,
                                  size_t error_size);
/* One more owner, who frees it, too. */
struct tls_client *tls_client_keep(struct tls_client *client);
void tls_client_free(struct tls_client **client); /* connections keep it */
bool tls_client_has_anchors(const struct tls_client *client);

/* A client that presents the certificate to servers that ask for one, and is like the
 * client otherwise. NULL with one line in error. */
struct tls_client *tls_client_read_own(struct tls_client *client,
                                       const struct tls_pair *pair, char *error,
                                       size_t error_size);
/* Connections with its pair in their options have it from now on: *with becomes NULL, and
 * the one before is replaced. */
void tls_client_take_own(struct tls_client *client, struct tls_client **with);
/* Those that were taken; false: index is behind the last. */
bool tls_client_certificate(const struct tls_client *client, size_t index,
                            struct tls_certificate *out);
/* with: from tls_client_read_own(). */
void tls_client_describe_own(const struct tls_client *with,
                             struct tls_certificate *out);

enum tls_level {
    TLS_LEVEL_NONE,  /* any certificate: protects against passive attackers only */
    TLS_LEVEL_VERIFY /* a valid chain to an anchor, for one of the names */
};

/* A TLSA record (RFC 6698 §2.1), secure by DNSSEC. */
enum { TLS_DANE_RECORDS_MAX = 32 };
struct tls_dane_record {
    unsigned char usage, selector, matching;
    struct text data;
};

/* The requirements of a client for one host; borrowed during the call. */
struct tls_client_options {
    enum tls_level level;
    /* A host name, sent as SNI, or an IP literal without brackets (compared with the
     * certificate's addresses). Sessions are resumed with the same level, host and
     * names only. May be empty for TLS_LEVEL_NONE. */
    struct text host;
    /* Other names to accept instead of host (RFC 6125: the leftmost label of the
     * certificate's name may be "*"); none = host. */
    const struct text *names;
    size_t name_count;
    /* DANE (RFC 7672): one of the usable records must prove the certificate; the names
     * and TLS_LEVEL_VERIFY are required in addition. Without a usable one nothing is
     * proven (see tls_dane.h). */
    const struct tls_dane_record *dane;
    size_t dane_count;
    /* Names that a certificate below a trust anchor of DANE (usage 2) may have. */
    const struct text *dane_names;
    size_t dane_name_count;
    /* Presented to a server that asks; certificate NULL: none. The handshake fails when
     * tls_client_take_own() has not had the pair. Sessions are resumed with the same pair
     * only. */
    struct tls_pair own;
};

/* --- Shared secret
 * ------------------------------------------------------------------ */

enum {
    TLS_SECRETS_MAX = 8,
    TLS_GROUP_MAX = 63,
    TLS_SECRET_DIGITS = 8 /* hex digits of its SHA-256, in the identity */
};

/* Both sides have a secret (PSK), none has a certificate: TLS 1.2 with
 * ECDHE-PSK-CHACHA20-POLY1305 and nothing else, for mbedTLS 2.28 knows no TLS 1.3, and
 * hosts with 2.28 and 3.6 speak with each other. Forward secrecy; no tickets, no sessions
 * to resume. The identity "GROUP/DIGITS" goes in cleartext and says which secret it is. A
 * server accepts all secrets, a client has the first one. Borrowed during the call; the
 * kept copy is overwritten at the end. */
struct tls_shared {
    const char *group; /* at most TLS_GROUP_MAX bytes */
    struct text secrets[TLS_SECRETS_MAX];
    size_t count; /* 1 to TLS_SECRETS_MAX */
};
/* Serves every protocol. NULL with one line in error. */
struct tls_server *tls_server_new_shared(struct tls *tls,
                                         const struct tls_shared *shared, char *error,
                                         size_t error_size);
/* For TLS_LEVEL_NONE without a host. NULL with one line in error. */
struct tls_client *tls_client_new_shared(struct tls *tls,
                                         const struct tls_shared *shared, char *error,
                                         size_t error_size);

/* --- The facts of a handshake -------------------------------------------------------- */

struct tls_facts {
    const char *version; /* "TLSv1.3" */
    const char *cipher;  /* its name at IANA: "TLS_AES_256_GCM_SHA384" */
    /* Clients. The name in the server's certificate that matched, else its first: at most
     * TLS_NAME_MAX bytes of printable ASCII. */
    const char *peer_name;
    bool is_verified; /* the server's chain, dates and name are valid, at any level */
    bool is_dane;     /* a TLSA record has proven it */
    bool is_resumed;
};

#endif
