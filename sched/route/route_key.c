/* The key of the destination that a target leads to. */
#include "sched/route/peers.h"
#include "sched/route/route.h"
#include "sched/route/target.h"

#include "base/buffer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    OPTIONS_MAX = 16 + sizeof("&bind=&helo=&cert=&family=ipv4&requiretls=yes") +
                  BIND_ADDRESS_TEXT_MAX + 2 * TARGET_HOST_MAX
};

static void
option_add(char out[OPTIONS_MAX], const char *key, const char *value)
{
    size_t length = strlen(out);
    int written = snprintf(out + length, OPTIONS_MAX - length, "%c%s=%s",
                           length > 0 ? '&' : '?', key, value);
    assert(written > 0 && length + (size_t)written < OPTIONS_MAX);
}

/* "?tls=verify", unless the scheme implies it, and the options that make the receiver
 * see another client. */
static const char *
key_options(const struct target *target, char out[OPTIONS_MAX])
{
    enum target_tls usual = target->kind == TARGET_LMTP ? TARGET_TLS_NONE
                            : target->tls_implicit      ? TARGET_TLS_VERIFY
                                                        : TARGET_TLS_MAY;
    char bind[BIND_ADDRESS_TEXT_MAX];
    const char *certificate, *private_key;
    out[0] = '\0';
    if (target->tls != usual)
        option_add(out, "tls", target_tls_word(target->tls));
    bind_address_format(&target->bind, bind);
    if (bind[0] != '\0')
        option_add(out, "bind", bind);
    if (target_helo(target) != NULL)
        option_add(out, "helo", target_helo(target));
    if (target_certificate(target, &certificate, &private_key))
        option_add(out, "cert", certificate);
    if (target->family != TARGET_FAMILY_UNSET)
        option_add(out, "family", target_families[target->family - TARGET_FAMILY_ANY]);
    if (target->asks == TARGET_REQUIRES_TLS)
        option_add(out, "requiretls", "yes");
    return out;
}

/* "[HOST]:PORT" */
static bool
key_add_host(struct buffer *key, struct text host, bool is_bracketed, unsigned port)
{
    return (!is_bracketed || buffer_add_byte(key, '[')) && buffer_add(key, host) &&
           (!is_bracketed || buffer_add_byte(key, ']')) && buffer_add_byte(key, ':') &&
           buffer_add_number(key, port);
}

/* Lists that differ only beyond the end of the key have the same key; their targets
 * tell them apart. */
static size_t
host_key(const struct target *target, const char *scheme, const char *options,
         char out[ROUTE_KEY_MAX])
{
    struct buffer key;
    buffer_init(&key, ROUTE_KEY_MAX - 1 - strlen(options));
    bool fits = buffer_add(&key, text_from(scheme)) && buffer_add_byte(&key, ':');
    if (target->kind == TARGET_LMTP || target->look_up_mx)
        fits = fits && key_add_host(&key, text_from(target->host), !target->look_up_mx,
                                    target->port);
    for (size_t i = 0; fits && i < target_host_count(target) && !target->look_up_mx;
         i++) {
        struct target_host h = target_host(target, i);
        size_t whole = key.length;
        fits = (i == 0 || buffer_add_byte(&key, '|')) && buffer_add(&key, h.user) &&
               (h.user.length == 0 || buffer_add_byte(&key, '@')) &&
               key_add_host(&key, h.host, true, (unsigned)h.port);
        if (!fits)
            key.length = whole;
    }
    text_lower(key.at, key.length);
    size_t length = key.length, more = strlen(options);
    memcpy(out, key.at, length);
    memcpy(out + length, options, more + 1);
    buffer_free(&key);
    return length + more;
}

/* Paths are case-sensitive. */
static size_t
http_key(const struct target *target, char out[ROUTE_KEY_MAX])
{
    struct text user = target_user(target);
    int length = snprintf(out, ROUTE_KEY_MAX, "%s:%.*s%s[%s]:%u%s",
                          target->tls_implicit ? "https" : "http", TEXT_ARGS(user),
                          user.length > 0 ? "@" : "", target->host,
                          (unsigned)target->port, target->path + target->url);
    return length < ROUTE_KEY_MAX ? (size_t)length : ROUTE_KEY_MAX - 1;
}

size_t
route_key(const struct target *target, struct text domain, char out[ROUTE_KEY_MAX])
{
    int length = 0;
    char options[OPTIONS_MAX], peer[sizeof("defrag:") + PEERS_NAME_MAX];
    const char *scheme = target->kind == TARGET_LMTP ? "lmtp"
                         : target->tls_implicit      ? "smtps"
                                                     : "smtp";
    switch (target->kind) {
    case TARGET_MX:
        length = snprintf(out, ROUTE_KEY_MAX, "smtp:%.*s%s", TEXT_ARGS(domain),
                          key_options(target, options));
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
        return host_key(target, scheme, key_options(target, options), out);
    case TARGET_MAILDIR:
        return (size_t)snprintf(out, ROUTE_KEY_MAX, "maildir");
    case TARGET_HTTP:
        return http_key(target, out);
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
