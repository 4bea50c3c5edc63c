/* Finds the pairs of files in the settings, and makes a server of them. */
#include "smtp/session/listener_tls.h"

#include <stdio.h>
#include <stdlib.h>

bool
listener_complain_tls(struct buffer *errors, const char *what)
{
    bool added = buffer_format(errors, "tls_certificate: %s\n", what);
    (void)added;
    return false;
}

/* Without tls_key each file of tls_certificate has its key, too, as most tools write
 * them. */
bool
listener_pairs_read(const struct listener_settings *settings,
                    struct listener_pairs *pairs)
{
    struct text certificates = settings->tls_certificate, keys = settings->tls_key;
    struct text file, key;
    bool has_keys = text_trim(keys).length > 0;
    pairs->count = 0;
    pairs->old = settings->tls_legacy;
    while (text_word(&certificates, ", \t\r\n", &file)) {
        if (pairs->count == TLS_PAIRS_MAX ||
            (has_keys && !text_word(&keys, ", \t\r\n", &key)))
            return false;
        pairs->list[pairs->count++] = (struct tls_pair){
            text_string(file), has_keys ? text_string(key) : text_string(file)};
    }
    return !text_word(&keys, ", \t\r\n", &key);
}

void
listener_pairs_free(struct listener_pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        free((void *)(uintptr_t)pairs->list[i].certificate);
        free((void *)(uintptr_t)pairs->list[i].key);
    }
    pairs->count = 0;
}

struct tls_server *
listener_pairs_serve(const struct listener_pairs *pairs, char *error, size_t error_size)
{
    struct tls *tls = tls_new(error, error_size);
    struct tls_server *server =
        tls != NULL ? tls_server_new(tls, pairs->list, pairs->count, error, error_size)
                    : NULL;
    if (server != NULL && pairs->old && !tls_server_allow_old(server)) {
        snprintf(error, error_size,
                 "tls_legacy = yes: %s has no TLS 1.0 and 1.1; remove the line, "
                 "TLS 1.2 of old devices works without it",
                 tls_version());
        tls_server_free(&server);
    }
    tls_free(&tls);
    return server;
}

/* Without certificates *server stays NULL. */
bool
listener_read_tls(const struct listener_settings *settings, struct tls_server **server,
                  struct buffer *errors)
{
    struct listener_pairs pairs;
    char error[TLS_ERROR_MAX];
    bool good = listener_pairs_read(settings, &pairs);
    if (!good) {
        (void)listener_complain_tls(errors,
                                    "must name as many files as tls_key, at most 64");
    } else if (pairs.count > 0) {
        *server = listener_pairs_serve(&pairs, error, sizeof(error));
        good = *server != NULL || listener_complain_tls(errors, error);
    }
    listener_pairs_free(&pairs);
    return good;
}
