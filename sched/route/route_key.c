/* The key of the destination that a target leads to. */
#include "sched/route/peers.h"
#include "sched/route/route.h"
#include "sched/route/target.h"

#include "base/buffer.h"

#include <assert.h>
#include <stdio.h>

/* "?tls=verify", unless the scheme implies it. */
static const char *
key_tls(const struct target *target, char out[16])
{
    enum target_tls usual = target->kind == TARGET_LMTP ? TARGET_TLS_NONE
                            : target->tls_implicit      ? TARGET_TLS_VERIFY
                                                        : TARGET_TLS_MAY;
    out[0] = '\0';
    if (target->tls != usual)
        snprintf(out, 16, "?tls=%s", target_tls_word(target->tls));
    return out;
}

/* Lists that differ only beyond the end of the key have the same key; their targets
 * tell them apart. */
static size_t
host_key(const struct target *target, const char *scheme, const char *tls,
         char out[ROUTE_KEY_MAX])
{
    struct buffer key;
    buffer_init(&key, ROUTE_KEY_MAX - 16);
    bool fits = buffer_format(&key, "%s:", scheme);
    if (target->kind == TARGET_LMTP || target->look_up_mx)
        fits = fits && buffer_format(&key, target->look_up_mx ? "%s:%u" : "[%s]:%u",
                                     target->host, target->port);
    for (size_t i = 0; fits && i < target_host_count(target) && !target->look_up_mx;
         i++) {
        struct target_host h = target_host(target, i);
        fits = buffer_format(&key, "%s%.*s%s[%.*s]:%u", i > 0 ? "|" : "",
                             TEXT_ARGS(h.user), h.user.length > 0 ? "@" : "",
                             TEXT_ARGS(h.host), (unsigned)h.port);
    }
    text_lower(key.at, key.length);
    int length =
        snprintf(out, ROUTE_KEY_MAX, "%.*s%s", TEXT_ARGS(buffer_text(&key)), tls);
    assert(length > 0 && length < ROUTE_KEY_MAX);
    buffer_free(&key);
    return (size_t)length;
}

size_t
route_key(const struct target *target, struct text domain, char out[ROUTE_KEY_MAX])
{
    int length = 0;
    char tls[16], peer[sizeof("defrag:") + PEERS_NAME_MAX];
    const char *scheme = target->kind == TARGET_LMTP ? "lmtp"
                         : target->tls_implicit      ? "smtps"
                                                     : "smtp";
    switch (target->kind) {
    case TARGET_MX:
        length = snprintf(out, ROUTE_KEY_MAX, "smtp:%.*s%s", TEXT_ARGS(domain),
                          key_tls(target, tls));
        break;
    case TARGET_SMTP:
    case TARGET_LMTP:
        if (target_peer(target)) {
            /* Mail for the peer itself differs from mail through it. */
            snprintf(peer, sizeof(peer), "defrag:%s", target_peer(target));
            scheme = peer;
        }
        if (target->host[0] == '\0')
            /* Paths are case-sensitive. */
            return (size_t)snprintf(out, ROUTE_KEY_MAX, "%s:unix:%s", scheme,
                                    target->path);
        return host_key(target, scheme, key_tls(target, tls), out);
    case TARGET_MAILDIR:
        return (size_t)snprintf(out, ROUTE_KEY_MAX, "maildir");
    case TARGET_HOLD:
        return (size_t)snprintf(out, ROUTE_KEY_MAX, "hold");
    case TARGET_DISCARD:
        return (size_t)snprintf(out, ROUTE_KEY_MAX, "discard");
    case TARGET_ERROR:
        return (size_t)snprintf(out, ROUTE_KEY_MAX, "error:%s", target->enhanced);
    case TARGET_UNKNOWN:
        return (size_t)snprintf(out, ROUTE_KEY_MAX, "unknown");
    }
    assert(length > 0 && length < ROUTE_KEY_MAX);
    text_lower(out, (size_t)length);
    return (size_t)length;
}
