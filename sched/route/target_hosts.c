/* The hosts of a target, and their users.
 *
 * The names of users and further hosts are in target->path, one behind the other, and
 * the target has their offsets. So a target has no pointers: it can be compared and
 * copied as bytes. */
#include "sched/route/target_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* [1.2.3.4], [::1], [IPv6:::1], or a name in brackets as in Postfix. The tag IPv6: is
 * optional, as operators write addresses without it. */
static bool
literal_parse(struct text inner, struct text *host)
{
    char literal[TARGET_HOST_MAX + 8];
    if (text_starts_nocase(inner, TEXT("IPv6:")))
        inner = text_after(inner, 5);
    *host = inner;
    if (inner.length >= TARGET_HOST_MAX)
        return false;
    bool ipv6 = text_find(inner, ':') != TEXT_NONE;
    int length = snprintf(literal, sizeof(literal), "[%s%.*s]", ipv6 ? "IPv6:" : "",
                          TEXT_ARGS(inner));
    return address_is_domain(text_of(literal, (size_t)length)) ||
           address_is_domain(inner);
}

/* The text between :// and the end or the next |; borrowed. */
struct host_part {
    struct text user; /* still encoded; at NULL: no user */
    struct text host;
    uint16_t port;
};

static bool
is_scheme(struct text t)
{
    return text_equal_nocase(t, TEXT("smtp")) || text_equal_nocase(t, TEXT("smtps")) ||
           text_equal_nocase(t, TEXT("submission")) ||
           text_equal_nocase(t, TEXT("lmtp")) || text_equal_nocase(t, TEXT("https"));
}

/* host, host:port, [literal], [literal]:port, and any of them with user@ in front. The
 * last @ separates: a user's name often is a mail address. */
static bool
host_parse(struct target_parser *p, struct text t, uint16_t port, struct host_part *out)
{
    struct text rest;
    uint64_t number = port;
    size_t at = text_find_last(t, '@');
    out->user = at == TEXT_NONE ? (struct text){NULL, 0} : text_before(t, at);
    t = at == TEXT_NONE ? t : text_after(t, at + 1);
    if (t.length > 0 && t.at[0] == '[') {
        size_t end = text_find(t, ']');
        if (end == TEXT_NONE)
            return target_complain(p, "']' is missing");
        if (!literal_parse(text_after(text_before(t, end), 1), &out->host))
            return target_complain(p, "no address or name in the brackets");
        rest = text_after(t, end + 1);
    } else {
        size_t colon = text_find(t, ':');
        /* More than one colon: a scheme without slashes, or an IPv6 address without
         * brackets. */
        if (colon != text_find_last(t, ':') && is_scheme(text_before(t, colon)))
            return target_complain(
                p, "write '%.*s://%.*s'", TEXT_ARGS(text_before(t, colon)),
                TEXT_ARGS(text_before(text_after(t, colon + 1), 60)));
        if (colon != text_find_last(t, ':'))
            return target_complain(p, "put an IPv6 address in brackets: [::1]:25");
        out->host = text_before(t, colon);
        rest = text_after(t, colon);
        /* The dot that ends a full name, as in zone files and Kubernetes. */
        if (out->host.length > 1 && out->host.at[out->host.length - 1] == '.')
            out->host.length--;
        if (!address_is_domain(out->host))
            return target_complain(p, "'%.*s' is not a host name or [address]",
                                   TEXT_ARGS(text_before(out->host, 60)));
    }
    if (rest.length > 0 &&
        (rest.at[0] != ':' || !text_number(text_after(rest, 1), 65535, &number) ||
         !number))
        return target_complain(
            p, "'%.*s' after the host is not a port: write :1 to :65535",
            TEXT_ARGS(text_before(rest, 60)));
    out->port = (uint16_t)number;
    return out->host.length < TARGET_HOST_MAX ||
           target_complain(p, "the host name is too long");
}

uint16_t
target_add_name(struct target_parser *p, struct text name)
{
    uint16_t at = p->names ? p->names : 1; /* offset 0 is the empty name */
    if (name.length >= (size_t)(TARGET_PATH_MAX - at))
        return 0;
    text_copy(p->target->path + at, TARGET_PATH_MAX - at, name);
    p->names = (uint16_t)(at + name.length + 1);
    return at;
}

/* %40 is @ (RFC 3986 §2.1). */
bool
target_decode(struct text t, char *to, size_t size, size_t *length)
{
    *length = 0;
    for (size_t i = 0; i < t.length; i++) {
        int c = (unsigned char)t.at[i];
        if (c == '%') {
            int high = i + 2 < t.length ? text_hex_digit(t.at[i + 1]) : -1;
            int low = i + 2 < t.length ? text_hex_digit(t.at[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = 16 * high + low;
            i += 2;
        }
        if (*length == size)
            return false;
        to[(*length)++] = (char)c;
    }
    return *length > 0;
}

/* Its offset in path; 0: an error was reported. Routes are shown in logs and by
 * commands, so a password is not accepted in one. */
static uint16_t
user_parse(struct target_parser *p, struct text t)
{
    char user[SECRETS_USER_MAX];
    size_t length;
    if (text_find(t, ':') != TEXT_NONE) {
        target_complain(p,
                        "no password is allowed here, where it would be visible: use "
                        "relay_password or auth_passwords (a ':' of the user is %%3A)");
        return 0;
    }
    if (!target_decode(t, user, sizeof(user), &length) ||
        text_has_control(text_of(user, length)) ||
        !text_is_utf8(text_of(user, length))) {
        target_complain(
            p, "the user before @ is empty, too long, or badly encoded (%%40 is @, "
               "%%25 is %%)");
        return 0;
    }
    uint16_t at = target_add_name(p, text_of(user, length));
    if (at == 0)
        target_complain(p, "the names in it are too long");
    return at;
}

static bool
more_add(struct target_parser *p, const struct host_part *part, uint16_t user)
{
    struct target *t = p->target;
    if (t->more_count == TARGET_HOSTS_MAX - 1)
        return target_complain(p, "more than %d hosts", TARGET_HOSTS_MAX);
    uint16_t host = target_add_name(p, part->host);
    if (host == 0)
        return target_complain(p, "the names in it are too long");
    text_lower(t->path + host, part->host.length);
    struct target_more *more = &t->more[t->more_count++];
    more->host = host;
    more->user = user;
    more->port = part->port;
    return true;
}

static bool
host_add(struct target_parser *p, const struct host_part *part, bool is_first)
{
    struct target *t = p->target;
    uint16_t user = 0;
    if (part->user.at && t->kind != TARGET_SMTP && t->kind != TARGET_HTTP)
        return target_complain(p, "LMTP has no AUTH: remove user@");
    if (part->user.at && (user = user_parse(p, part->user)) == 0)
        return false;
    if (!is_first)
        return more_add(p, part, user);
    t->user = user;
    t->port = part->port;
    text_copy(t->host, TARGET_HOST_MAX, part->host);
    text_lower(t->host, part->host.length);
    return true;
}

bool
target_add_host(struct target_parser *p, struct text t, uint16_t port, bool is_first)
{
    struct host_part part = {0};
    return host_parse(p, t, port, &part) && host_add(p, &part, is_first);
}

bool
target_is_loopback(struct text host)
{
    if (text_equal_nocase(host, TEXT("localhost")) || text_equal(host, TEXT("::1")))
        return true;
    for (size_t i = 0; i < host.length; i++) /* 127.example is a name */
        if (!strchr("0123456789.", host.at[i]))
            return false;
    return text_starts(host, TEXT("127."));
}

/* A password to our own host does not cross a network, so it needs no TLS. */
bool
target_has_distant_user(const struct target *t)
{
    for (size_t i = 0; i < target_host_count(t); i++) {
        struct target_host h = target_host(t, i);
        if (h.user.length > 0 && !target_is_loopback(h.host))
            return true;
    }
    return false;
}

size_t
target_host_count(const struct target *target)
{
    return target->kind == TARGET_SMTP   ? target->more_count + (size_t)1
           : target->kind == TARGET_HTTP ? 1
                                         : 0;
}

bool
target_has_user(const struct target *target)
{
    bool has_user = target->user > 0;
    for (size_t i = 0; i < target->more_count; i++)
        has_user = has_user || target->more[i].user > 0;
    return has_user;
}

const char *
target_peer(const struct target *target)
{
    return target->peer > 0 ? target->path + target->peer : NULL;
}

const char *
target_helo(const struct target *target)
{
    return target->helo > 0 ? target->path + target->helo : NULL;
}

bool
target_certificate(const struct target *target, const char **certificate,
                   const char **key)
{
    if (target->cert == 0)
        return false;
    *certificate = target->path + target->cert;
    *key = target->path + target->key;
    return true;
}

bool
target_signs(const struct target *target)
{
    if (target->dkim != TARGET_DKIM_UNSET)
        return target->dkim == TARGET_DKIM_YES;
    for (size_t i = 0; i < target_host_count(target); i++)
        if (text_ends_nocase(target_host(target, i).host, TEXT(".amazonaws.com")))
            return false;
    return true;
}

struct target_host
target_host(const struct target *target, size_t at)
{
    assert(at < target_host_count(target));
    if (at == 0)
        return (struct target_host){text_from(target->host),
                                    text_from(target->path + target->user),
                                    target->port};
    const struct target_more *more = &target->more[at - 1];
    return (struct target_host){text_from(target->path + more->host),
                                text_from(target->path + more->user), more->port};
}
