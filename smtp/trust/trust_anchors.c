/* Finds and reads the certificates of authorities (CA). */
#include "smtp/trust/trust_anchors.h"

#include "base/log/log.h"

#include <stdio.h>

static const char *const usual[] = {
    "/etc/ssl/certs/ca-certificates.crt", /* Debian, Alpine, Arch, Gentoo */
    "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, RHEL */
    "/etc/ssl/ca-bundle.pem",             /* SUSE */
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs", /* a directory of them */
};

static struct tls_client *
read_usual(struct tls *tls, char place[TRUST_ANCHORS_PLACE_MAX], char *error,
           size_t error_size)
{
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        struct tls_client *client = tls_client_new(tls, usual[i], error, error_size);
        if (client != NULL) {
            text_copy(place, TRUST_ANCHORS_PLACE_MAX, text_from(usual[i]));
            return client;
        }
    }
    return NULL;
}

static struct tls_client *
trust_anchors_read_place(struct tls *tls, const char *place, char *error,
                         size_t error_size)
{
    char why[TLS_ERROR_MAX] = "";
    struct tls_client *client = tls_client_new(tls, place, why, sizeof(why));
    if (client == NULL)
        snprintf(error, error_size, "tls_ca: %s", why);
    return client;
}

struct tls_client *
trust_anchors_read(struct text tls_ca, bool needed, char place[TRUST_ANCHORS_PLACE_MAX],
                   char *error, size_t error_size)
{
    struct tls *tls = tls_new(error, error_size);
    struct tls_client *client = NULL;
    if (tls == NULL)
        return NULL;
    place[0] = '\0';
    if (tls_ca.length >= TRUST_ANCHORS_PLACE_MAX) {
        snprintf(error, error_size, "tls_ca: the path is too long");
    } else if (tls_ca.length > 0) {
        text_copy(place, TRUST_ANCHORS_PLACE_MAX, tls_ca);
        client = trust_anchors_read_place(tls, place, error, error_size);
    } else {
        client = read_usual(tls, place, error, error_size);
        if (client == NULL && needed)
            snprintf(
                error, error_size,
                "tls_ca: unset, the system has no CA bundle (%s and others; Debian: "
                "apt-get install ca-certificates), and a route demands tls=verify",
                usual[0]);
        else if (client == NULL)
            /* Levels below verify encrypt without anchors. */
            client = tls_client_new(tls, NULL, error, error_size);
    }
    tls_free(&tls);
    return client;
}

void
trust_anchors_say(const char *place, struct log *log)
{
    if (place[0] != '\0')
        log_say(log, LOG_LEVEL_DEBUG, "main", NULL, "tls_ca: %s", place);
    else
        log_say(log, LOG_LEVEL_INFO, "main", NULL,
                "tls_ca is unset and the system has no CA bundle: certificates of next "
                "hops are not verified");
}
