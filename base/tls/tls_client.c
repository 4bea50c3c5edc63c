/* The client's role: trust anchors, and sessions to resume.
 *
 * A resumed session shows no certificate: the verdict on the one of its full handshake
 * is stored with it (struct tls_worth). So a session is resumed only for the same
 * level, host and names, which are its key. Stored sessions hold secrets, and are
 * overwritten before they are freed. */
#include "base/tls/tls_internal.h"

#include "base/crypto/digest.h"
#include "base/disk/disk.h"
#include "base/memory.h"

#include <assert.h>
#include <mbedtls/platform_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* One session for each key: the latest, and it is used once. */
struct tls_memory {
    UT_hash_handle hh;
    char *key;
    unsigned char *session; /* as mbedtls_ssl_session_save() wrote it */
    size_t length;
    struct tls_worth worth;
};

/* Certificates read so far: directories have links to their own files. */
struct reading {
    struct tls_client *client;
    const char *directory;
    size_t count;
    unsigned char seen[TLS_ANCHOR_FILES_MAX][DIGEST_SIZE];
};

static bool
is_seen(struct reading *r, struct text content)
{
    /* In the next free place, where a new one stays. */
    unsigned char *digest = r->seen[r->count];
    digest_plain(content, digest);
    for (size_t i = 0; i < r->count; i++)
        if (memcmp(r->seen[i], digest, DIGEST_SIZE) == 0)
            return true;
    r->count++;
    return false;
}

static bool
add_anchors(struct tls_client *client, const char *path, struct reading *r, char *error,
            size_t error_size)
{
    char *content;
    size_t length;
    bool good;
    if (!tls_read_file(path, &content, &length, error, error_size))
        return false;
    good = (r && is_seen(r, text_of(content, length))) ||
           tls_parse_certificates(&client->anchors->chain, path, content, length, error,
                                  error_size);
    free(content);
    return good;
}

/* Files without certificates are skipped: directories of anchors have others, too. */
static bool
tls_client_read_one(void *context, const char *name)
{
    struct reading *r = context;
    char path[4096], error[TLS_ERROR_MAX];
    if (snprintf(path, sizeof(path), "%s/%s", r->directory, name) < (int)sizeof(path))
        add_anchors(r->client, path, r, error, sizeof(error));
    return r->count < TLS_ANCHOR_FILES_MAX;
}

static bool
read_anchors(struct tls_client *client, const char *path, char *error,
             size_t error_size)
{
    struct reading *r;
    struct disk *directory;
    int result;
    /* A file; or an error, which add_anchors() meets again. */
    if (disk_open(&directory, path, false) < 0)
        return add_anchors(client, path, NULL, error, error_size);
    r = memory_new(sizeof(*r));
    r->client = client;
    r->directory = path;
    result = disk_list(directory, ".", tls_client_read_one, r);
    disk_close(&directory);
    free(r);
    /* The first certificate of a chain is within its head: version 0 is none. */
    if (result == 0 && tls_client_has_anchors(client))
        return true;
    if (result == 0)
        snprintf(error, error_size, "no certificates in the directory %s", path);
    else
        snprintf(error, error_size, "cannot read %s: %s", path, strerror(-result));
    return false;
}

/* One configuration for each level, since mbedTLS keeps the demand for a valid
 * certificate there. */
static int
tls_client_configure(struct tls_client *client, enum tls_level level)
{
    mbedtls_ssl_config *config = &client->config[level];
    int code = tls_configure(client->tls, config, MBEDTLS_SSL_IS_CLIENT);
    /* Always verified: errors are logged even where the level ignores them. */
    mbedtls_ssl_conf_authmode(config, level == TLS_LEVEL_VERIFY
                                          ? MBEDTLS_SSL_VERIFY_REQUIRED
                                          : MBEDTLS_SSL_VERIFY_OPTIONAL);
    mbedtls_ssl_conf_ca_chain(config, &client->anchors->chain, NULL);
    if (code == 0 && client->own != NULL)
        code = mbedtls_ssl_conf_own_cert(config, &client->own->certificate,
                                         &client->own->key);
    mbedtls_ssl_conf_session_tickets(config, MBEDTLS_SSL_SESSION_TICKETS_ENABLED);
#ifdef MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED
    mbedtls_ssl_conf_tls13_enable_signal_new_session_tickets(
        config, MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED);
#endif
    return code;
}

static struct tls_client *
tls_client_make(struct tls *tls, struct tls_anchors *anchors)
{
    struct tls_client *client = memory_new(sizeof(*client));
    client->references = 1;
    client->tls = tls;
    tls->references++;
    client->anchors = anchors;
    anchors->references++;
    mbedtls_ssl_config_init(&client->config[TLS_LEVEL_NONE]);
    mbedtls_ssl_config_init(&client->config[TLS_LEVEL_VERIFY]);
    return client;
}

static bool
tls_client_set_up(struct tls_client *client, char *error, size_t error_size)
{
    int code = tls_client_configure(client, TLS_LEVEL_NONE);
    if (code == 0)
        code = tls_client_configure(client, TLS_LEVEL_VERIFY);
    return code == 0 || tls_fail(error, error_size, "cannot set up TLS", code);
}

struct tls_client *
tls_client_new(struct tls *tls, const char *anchors, char *error, size_t error_size)
{
    struct tls_anchors *chain = memory_new(sizeof(*chain));
    mbedtls_x509_crt_init(&chain->chain);
    struct tls_client *client = tls_client_make(tls, chain);
    if ((anchors && !read_anchors(client, anchors, error, error_size)) ||
        !tls_client_set_up(client, error, error_size))
        tls_client_free(&client);
    return client;
}

/* --- Certificates of our own ------------------------------------------------------ */

/* A client of its own for each pair: neither configuration nor remembered sessions are
 * those of another. */
struct tls_client *
tls_client_read_own(struct tls_client *client, const struct tls_pair *pair, char *error,
                    size_t error_size)
{
    struct tls_client *with = tls_client_make(client->tls, client->anchors);
    with->own = memory_new(sizeof(*with->own));
    with->certificate = memory_string(pair->certificate);
    with->key = memory_string(pair->key);
    if (!tls_own_read(client->tls, with->own, pair, error, error_size) ||
        !tls_client_set_up(with, error, error_size))
        tls_client_free(&with);
    return with;
}

/* The place in the list of the one with that pair, or the end of the list. */
static struct tls_client **
tls_client_own_place(struct tls_client *client, const struct tls_pair *pair)
{
    struct tls_client **at = &client->with_own;
    while (*at != NULL && (strcmp((*at)->certificate, pair->certificate) != 0 ||
                           strcmp((*at)->key, pair->key) != 0))
        at = &(*at)->next;
    return at;
}

void
tls_client_take_own(struct tls_client *client, struct tls_client **with)
{
    const struct tls_pair pair = {(*with)->certificate, (*with)->key};
    struct tls_client **at = tls_client_own_place(client, &pair), *old = *at;
    if (old != NULL) {
        (*with)->next = old->next;
        old->next = NULL;
        tls_client_release(old);
    }
    *at = *with;
    *with = NULL;
}

struct tls_client *
tls_client_with(struct tls_client *client, const struct tls_pair *pair)
{
    return pair->certificate == NULL ? client : *tls_client_own_place(client, pair);
}

bool
tls_client_certificate(const struct tls_client *client, size_t index,
                       struct tls_certificate *out)
{
    const struct tls_client *with = client->with_own;
    for (size_t i = 0; with != NULL && i < index; i++)
        with = with->next;
    if (with != NULL)
        tls_own_describe(with->own, out);
    return with != NULL;
}

void
tls_client_describe_own(const struct tls_client *with, struct tls_certificate *out)
{
    tls_own_describe(with->own, out);
}

static void
memory_forget(struct tls_client *client, struct tls_memory *m)
{
    HASH_DEL(client->sessions, m);
    mbedtls_platform_zeroize(m->session, m->length);
    free(m->session);
    free(m->key);
    free(m);
}

static void
tls_anchors_release(struct tls_anchors *anchors)
{
    if (anchors == NULL || --anchors->references > 0)
        return;
    mbedtls_x509_crt_free(&anchors->chain);
    free(anchors);
}

void
tls_client_release(struct tls_client *client)
{
    assert(client->references > 0);
    if (--client->references)
        return;
    for (struct tls_client *with = client->with_own, *next; with; with = next) {
        next = with->next;
        tls_client_release(with);
    }
    while (client->sessions)
        memory_forget(client, client->sessions);
    mbedtls_ssl_config_free(&client->config[TLS_LEVEL_NONE]);
    mbedtls_ssl_config_free(&client->config[TLS_LEVEL_VERIFY]);
    if (client->own != NULL)
        tls_own_free(client->own);
    free(client->own);
    free(client->certificate);
    free(client->key);
    tls_anchors_release(client->anchors);
    tls_release(client->tls);
    free(client);
}

struct tls_client *
tls_client_keep(struct tls_client *client)
{
    client->references++;
    return client;
}

void
tls_client_free(struct tls_client **client)
{
    if (*client)
        tls_client_release(*client);
    *client = NULL;
}

bool
tls_client_has_anchors(const struct tls_client *client)
{
    return client->anchors != NULL && client->anchors->chain.version != 0;
}

void
tls_client_forget(struct tls_client *client, const char *key)
{
    struct tls_memory *m;
    HASH_FIND_STR(client->sessions, key, m);
    if (m)
        memory_forget(client, m);
}

bool
tls_client_recall(struct tls_client *client, const char *key, mbedtls_ssl_context *ssl,
                  struct tls_worth *worth)
{
    mbedtls_ssl_session session;
    struct tls_memory *m;
    bool good;
    HASH_FIND_STR(client->sessions, key, m);
    if (!m)
        return false;
    mbedtls_ssl_session_init(&session);
    good = mbedtls_ssl_session_load(&session, m->session, m->length) == 0 &&
           mbedtls_ssl_set_session(ssl, &session) == 0;
    mbedtls_ssl_session_free(&session);
    *worth = m->worth;
    /* Used once (RFC 8446 §C.4); the server sends a new one. */
    memory_forget(client, m);
    return good;
}

static bool
save(const mbedtls_ssl_context *ssl, unsigned char **out, size_t *length)
{
    mbedtls_ssl_session session;
    bool good;
    *out = NULL;
    mbedtls_ssl_session_init(&session);
    good = mbedtls_ssl_get_session(ssl, &session) == 0;
    /* The size is the server's choice, since it makes the ticket. Without a buffer
     * mbedtls_ssl_session_save() reports the size alone. */
    if (good)
        mbedtls_ssl_session_save(&session, NULL, 0, length);
    good = good && *length <= TLS_SESSION_SIZE_MAX;
    if (good) {
        *out = memory_new(*length);
        good = mbedtls_ssl_session_save(&session, *out, *length, length) == 0;
    }
    mbedtls_ssl_session_free(&session);
    if (!good)
        free(*out);
    return good;
}

void
tls_client_remember(struct tls_client *client, const char *key,
                    const mbedtls_ssl_context *ssl, const struct tls_worth *worth)
{
    struct tls_memory *m;
    unsigned char *session;
    size_t length = 0;
    tls_client_forget(client, key);
    if (!save(ssl, &session, &length))
        return;
    /* uthash keeps the order of adding: the first one is the oldest. */
    if (HASH_COUNT(client->sessions) == TLS_SESSIONS_MAX)
        memory_forget(client, client->sessions);
    m = memory_new(sizeof(*m));
    m->key = memory_string(key);
    m->session = session;
    m->length = length;
    m->worth = *worth;
    HASH_ADD_KEYPTR(hh, client->sessions, m->key, strlen(m->key), m);
}
