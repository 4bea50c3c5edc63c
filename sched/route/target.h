/* One TARGET of a route, as written (petrel.conf(5), ROUTES). Internal to sched/. */
#ifndef SCHED_ROUTE_TARGET_H
#define SCHED_ROUTE_TARGET_H

#include "sched/route/route.h"

enum { TARGET_PROBLEM_MAX = 320 };

/* "mx", "smtp://host:port?opts", "smtp+starttls://...", "submission://...",
 * "submission+starttls://...", "smtps://...", "submissions://...", "lmtp://...",
 * "maildir:/path/%u", "hold", "discard", "error:5.1.1 text", "[1.2.3.4]:port",
 * "host:port", "https://[user@]host/path?opts". A scheme whose name promises TLS
 * verifies, and ?tls= lowers it to encrypt at most. Hosts for SMTP may have user@
 * (percent-encoded) in front, which makes verify the default of smtp://, too, unless
 * the host is our own. In a list "smtp://a|smtp://b" all have the options behind the
 * last. Sets no secret. False:
 * problem states the error and the valid form, without a line end. */
bool target_parse(struct text t, uint16_t smtp_port,
                  const struct transport_params *base, struct target *out,
                  char problem[TARGET_PROBLEM_MAX]) __attribute__((warn_unused_result));

/* Whether the name or address is this machine. */
bool target_is_loopback(struct text host);

/* "none", "may", "encrypt", "verify". */
const char *target_tls_word(enum target_tls tls);

#endif
