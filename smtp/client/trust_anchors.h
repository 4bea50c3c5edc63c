/* Trust anchors of outgoing TLS: tls_ca, or the system's CA bundle. */
#ifndef SMTP_TRUST_ANCHORS_H
#define SMTP_TRUST_ANCHORS_H

#include "base/tls/tls.h"

struct log;

enum { TRUST_ANCHORS_PLACE_MAX = 512 };

/* tls_ca: a file of PEM certificates or a directory of such files. Empty: the first of
 * the usual places that can be read; none is an error only when needed. place tells
 * which, "" when there are none. NULL with one line in error. Reads files: call it
 * at start and reload only. */
struct tls_client *trust_anchors_read(struct text tls_ca, bool needed,
                                      char place[TRUST_ANCHORS_PLACE_MAX], char *error,
                                      size_t error_size);
/* What became of it, at a start. */
void trust_anchors_say(const char *place, struct log *log);

#endif
