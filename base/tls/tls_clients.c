/* Certificates of clients that count: the table of fingerprints and authorities, and the
 * verdict on the one that a client has presented.
 *
 * The verdict is ours, after the handshake: mbedTLS would end a handshake, or trust each
 * authority for each name. A session of a client that has presented one is never resumed,
 * since a ticket has no certificate (tls_server_ask()). */
#include "base/tls/tls_internal.h"

#include "base/memory.h"

#include <mbedtls/oid.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* The key is a fingerprint, or the number of an authority and a name. */
struct tls_clients_row {
    UT_hash_handle hh;
    char *name; /* of the client */
    size_t length;
    char key[];
};

struct tls_clients_authority {
    char *path;
    mbedtls_x509_crt chain;
};

struct tls_clients {
    struct tls_clients_row *rows;
    struct tls_clients_authority authorities[TLS_CLIENTS_AUTHORITIES_MAX];
    size_t authority_count;
};

struct tls_clients_reading {
    struct tls_clients *clients;
    const char *path;
    size_t line;
    struct buffer *errors;
};

static const char tls_clients_blanks[] = " \t\r";

static void __attribute__((format(printf, 2, 3)))
tls_clients_complain(struct tls_clients_reading *r, const char *format, ...)
{
    char what[TLS_ERROR_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof(what), format, list);
    va_end(list);
    /* Beyond the limit of the buffer, enough errors are reported. */
    (void)!buffer_format(r->errors, "relay_client_certificates: %s:%zu: %s\n", r->path,
                         r->line, what);
}

static void
tls_clients_add(struct tls_clients_reading *r, struct text key, struct text name)
{
    struct tls_clients *c = r->clients;
    struct tls_clients_row *row;
    if (name.length == 0 || name.length > TLS_CLIENT_NAME_MAX || !text_is_utf8(name) ||
        text_has_control(name)) {
        tls_clients_complain(r, "not a valid name, of 1 to %d bytes",
                             TLS_CLIENT_NAME_MAX);
        return;
    }
    HASH_FIND(hh, c->rows, key.at, key.length, row);
    if (row != NULL || HASH_COUNT(c->rows) == TLS_CLIENTS_MAX) {
        tls_clients_complain(r,
                             row != NULL ? "is in a line above"
                                         : "more than %d certificates and names",
                             TLS_CLIENTS_MAX);
        return;
    }
    row = memory_new(sizeof(*row) + key.length);
    memcpy(row->key, key.at, key.length);
    row->length = key.length;
    row->name = text_string(name);
    HASH_ADD_KEYPTR(hh, c->rows, row->key, row->length, row);
}

/* 64 hexadecimal digits, or with colons as openssl writes them. */
static bool
tls_clients_read_fingerprint(struct text word, unsigned char out[DIGEST_SIZE])
{
    size_t step = word.length == 3 * DIGEST_SIZE - 1 ? 3 : 2;
    if (word.length != (step == 3 ? 3 * DIGEST_SIZE - 1 : 2 * DIGEST_SIZE))
        return false;
    for (size_t i = 0; i < DIGEST_SIZE; i++) {
        int high = text_hex_digit(word.at[step * i]),
            low = text_hex_digit(word.at[step * i + 1]);
        bool parted = step == 2 || i + 1 == DIGEST_SIZE || word.at[3 * i + 2] == ':';
        if (high < 0 || low < 0 || !parted)
            return false;
        out[i] = (unsigned char)(16 * high + low);
    }
    return true;
}

/* The number of the authority of that file; false: an error was reported. */
static bool
tls_clients_read_authority(struct tls_clients_reading *r, struct text path, size_t *at)
{
    struct tls_clients *c = r->clients;
    char error[TLS_ERROR_MAX], *content;
    size_t length;
    for (*at = 0; *at < c->authority_count; (*at)++)
        if (text_equal(path, text_from(c->authorities[*at].path)))
            return true;
    if (path.length == 0 || path.at[0] != '/' || *at == TLS_CLIENTS_AUTHORITIES_MAX) {
        tls_clients_complain(r,
                             *at == TLS_CLIENTS_AUTHORITIES_MAX
                                 ? "more than %d authorities"
                                 : "ca: needs the absolute path of a PEM file",
                             TLS_CLIENTS_AUTHORITIES_MAX);
        return false;
    }
    struct tls_clients_authority *a = &c->authorities[c->authority_count++];
    a->path = text_string(path);
    mbedtls_x509_crt_init(&a->chain);
    bool good = tls_read_file(a->path, &content, &length, error, sizeof(error));
    if (good) {
        good = tls_parse_certificates(&a->chain, a->path, content, length, error,
                                      sizeof(error));
        tls_forget_file(content, length);
    }
    if (!good)
        tls_clients_complain(r, "%s", error);
    return good;
}

/* "N:name" in lower case: names in certificates have none. */
static struct text
tls_clients_key(size_t authority, struct text name, char out[TLS_NAME_MAX + 8])
{
    int length = snprintf(out, TLS_NAME_MAX + 8, "%zu:%.*s", authority,
                          TEXT_ARGS(text_before(name, TLS_NAME_MAX)));
    text_lower(out, (size_t)length);
    return text_of(out, (size_t)length);
}

static void
tls_clients_read_line(struct tls_clients_reading *r, struct text line)
{
    static const struct text prefix = TEXT("ca:");
    unsigned char digest[DIGEST_SIZE];
    struct text word, name, rest = line;
    size_t authority, count = 0;
    if (!text_word(&rest, tls_clients_blanks, &word) || word.at[0] == '#')
        return;
    if (!text_starts(word, prefix)) {
        if (tls_clients_read_fingerprint(word, digest))
            tls_clients_add(r, text_of(digest, DIGEST_SIZE), text_trim(rest));
        else
            tls_clients_complain(r,
                                 "write a SHA-256 fingerprint and a name, or ca:FILE "
                                 "and names");
        return;
    }
    if (!tls_clients_read_authority(r, text_after(word, prefix.length), &authority))
        return;
    for (; text_word(&rest, tls_clients_blanks, &name); count++) {
        char key[TLS_NAME_MAX + 8];
        tls_clients_add(r, tls_clients_key(authority, name, key), name);
    }
    if (count == 0)
        tls_clients_complain(r, "no names follow: each certificate of this authority "
                                "would do");
}

struct tls_clients *
tls_clients_read(const char *path, struct buffer *errors)
{
    char error[TLS_ERROR_MAX], *content;
    size_t length, before = errors->length;
    if (!tls_read_file(path, &content, &length, error, sizeof(error))) {
        (void)!buffer_format(errors, "relay_client_certificates: %s\n", error);
        return NULL;
    }
    struct tls_clients *clients = memory_new(sizeof(*clients));
    struct tls_clients_reading r = {clients, path, 0, errors};
    struct text rest = text_of(content, length), line;
    if (text_starts(rest, TEXT("\xef\xbb\xbf"))) /* an editor's byte order mark */
        rest = text_after(rest, 3);
    while (rest.length > 0 && text_cut(&rest, '\n', &line)) {
        r.line++;
        tls_clients_read_line(&r, line);
    }
    free(content);
    if (errors->length > before)
        tls_clients_free(&clients);
    return clients;
}

void
tls_clients_free(struct tls_clients **clients)
{
    struct tls_clients *c = *clients;
    struct tls_clients_row *row, *next;
    *clients = NULL;
    if (c == NULL)
        return;
    HASH_ITER (hh, c->rows, row, next) {
        HASH_DELETE(hh, c->rows, row);
        free(row->name);
        free(row);
    }
    for (size_t i = 0; i < c->authority_count; i++) {
        mbedtls_x509_crt_free(&c->authorities[i].chain);
        free(c->authorities[i].path);
    }
    free(c);
}

void
tls_clients_each_file(const char *path, void (*each)(void *context, const char *path),
                      void *context)
{
    struct buffer unused; /* errors are reported where the table is used */
    buffer_init(&unused, TLS_ERROR_MAX);
    struct tls_clients *clients = tls_clients_read(path, &unused);
    buffer_free(&unused);
    for (size_t i = 0; clients != NULL && i < clients->authority_count; i++)
        each(context, clients->authorities[i].path);
    tls_clients_free(&clients);
}

/* --- The verdict ------------------------------------------------------------------ */

struct tls_clients_search {
    const struct tls_clients *clients;
    size_t authority;
    const struct tls_clients_row *found;
};

static void
tls_clients_try_name(void *context, const char *name)
{
    struct tls_clients_search *search = context;
    char key[TLS_NAME_MAX + 8];
    struct text wanted = tls_clients_key(search->authority, text_from(name), key);
    if (search->found == NULL)
        HASH_FIND(hh, search->clients->rows, wanted.at, wanted.length, search->found);
}

/* RFC 5280 §4.2.1.12: a certificate without usages is for all. */
static bool
tls_clients_is_for_clients(const mbedtls_x509_crt *certificate)
{
    return mbedtls_x509_crt_check_extended_key_usage(
               certificate, MBEDTLS_OID_CLIENT_AUTH,
               MBEDTLS_OID_SIZE(MBEDTLS_OID_CLIENT_AUTH)) == 0;
}

/* A fingerprint is of one certificate, which its line trusts until it is removed: dates
 * and usages are the words of an authority, and count below one. */
static const struct tls_clients_row *
tls_clients_find(const struct tls_clients *c, mbedtls_x509_crt *chain,
                 const unsigned char digest[DIGEST_SIZE])
{
    struct tls_clients_search search = {.clients = c};
    HASH_FIND(hh, c->rows, digest, (size_t)DIGEST_SIZE, search.found);
    if (search.found != NULL || !tls_clients_is_for_clients(chain))
        return search.found;
    for (size_t i = 0; i < c->authority_count && search.found == NULL; i++) {
        mbedtls_x509_crt *trusted =
            (mbedtls_x509_crt *)(uintptr_t)&c->authorities[i].chain;
        uint32_t flags = 0;
        int code =
            mbedtls_x509_crt_verify(chain, trusted, NULL, NULL, &flags, NULL, NULL);
        search.authority = i;
        if (code == 0 && flags == 0)
            tls_certificate_each_name(chain, tls_clients_try_name, &search);
    }
    return search.found;
}

enum tls_client_standing
tls_clients_judge(const struct tls_clients *clients, const mbedtls_x509_crt *peer,
                  char out[TLS_CLIENT_TEXT_MAX])
{
    unsigned char digest[DIGEST_SIZE];
    char hex[2 * DIGEST_SIZE + 1], name[TLS_NAME_MAX + 1];
    if (peer == NULL || peer->raw.len == 0)
        return TLS_CLIENT_ANONYMOUS;
    mbedtls_x509_crt chain = *peer; /* mbedTLS verifies none that is const */
    digest_plain(text_of(peer->raw.p, peer->raw.len), digest);
    const struct tls_clients_row *row =
        clients != NULL ? tls_clients_find(clients, &chain, digest) : NULL;
    if (row != NULL) {
        text_copy(out, TLS_CLIENT_TEXT_MAX, text_from(row->name));
        return TLS_CLIENT_KNOWN;
    }
    text_hex(digest, DIGEST_SIZE, hex);
    tls_copy_name(name, sizeof(name),
                  text_before(tls_certificate_name(peer), TLS_NAME_MAX));
    snprintf(out, TLS_CLIENT_TEXT_MAX, "%s of %s", hex, name);
    return TLS_CLIENT_UNKNOWN;
}
