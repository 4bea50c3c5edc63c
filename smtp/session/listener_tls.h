/* The certificates of the settings: the files, and their use. */
#ifndef SMTP_SESSION_LISTENER_TLS_H
#define SMTP_SESSION_LISTENER_TLS_H

#include "smtp/session/listener.h"

/* The files of tls_certificate, each with that of its key. */
struct listener_pairs {
    struct tls_pair list[TLS_PAIRS_MAX];
    size_t count;
    bool old; /* TLS 1.0 and 1.1 for old devices */
};
/* False: not as many in tls_key, or too many. listener_pairs_free() in either case. */
bool listener_pairs_read(const struct listener_settings *settings,
                         struct listener_pairs *pairs);
void listener_pairs_free(struct listener_pairs *pairs);
/* Reads the files of one pair or more; NULL with one line in error. */
struct tls_server *listener_pairs_serve(const struct listener_pairs *pairs, char *error,
                                        size_t error_size);

/* All of the settings. False: a line is added to errors. */
bool listener_read_tls(const struct listener_settings *settings,
                       struct tls_server **server, struct buffer *errors);
/* One line about tls_certificate; false. */
bool listener_complain_tls(struct buffer *errors, const char *what);

#endif
