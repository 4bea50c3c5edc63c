/* Trust anchors of outgoing TLS: tls_ca, or the system's CA bundle. */
#ifndef SMTP_TRUST_TRUST_ANCHORS_H
#define SMTP_TRUST_TRUST_ANCHORS_H

#include "base/tls/tls.h"

struct log;

enum { TRUST_ANCHORS_PLACE_MAX = 512 };

/* tls_ca: a file of PEM certificates or a directory of such files. Empty: the first of
 * the usual places that can be read; if there is none, this is an error only if needed.
 * place: the one that was read, or "". NULL with one line in error. Reads files: to be
 * called at startup and reload only. */
struct tls_client *trust_anchors_read(struct text tls_ca, bool needed,
                                      char place[TRUST_ANCHORS_PLACE_MAX], char *error,
                                      size_t error_size);
/* Logs at startup which one is used. */
void trust_anchors_say(const char *place, struct log *log);

#endif
