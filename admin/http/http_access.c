/* Judges Host, Sec-Fetch-Site, Origin, X-Petrel and Content-Type. */
#include "admin/http/http_access.h"

enum { FORBIDDEN = 403, UNSUPPORTED = 415, MISDIRECTED = 421 };

static const char name_separators[] = ", \t\r\n";

/* "name", "name:port", "[::1]:port": without the port; *port stays if there is none.
 * False: malformed. */
static bool
http_host_part(struct text value, struct text *host, uint64_t *port)
{
    bool six = value.length > 0 && value.at[0] == '[';
    size_t end = six ? text_find(value, ']') : text_find(value, ':');
    if (six && end == TEXT_NONE)
        return false;
    *host = text_before(value, end == TEXT_NONE ? value.length : six ? end + 1 : end);
    value = text_after(value, host->length);
    return host->length > 0 &&
           (value.length == 0 ||
            (value.at[0] == ':' && text_number(text_after(value, 1), 65535, port)));
}

static bool
http_host_is_literal(struct text host)
{
    struct net_address address;
    bool six = host.at[0] == '[';
    if (six)
        host = text_before(text_after(host, 1), host.length - 2);
    return net_address_parse_ip(host, &address) && (address.family == NET_IPV6) == six;
}

static bool
http_host_is_clean(struct text host)
{
    for (size_t i = 0; i < host.length; i++) {
        char c = host.at[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !text_is_digit(c) &&
            c != '-' && c != '_' && c != '.')
            return false;
    }
    return true;
}

/* These lead to the host itself, or into a cluster, for every resolver. */
static bool
http_host_is_fixed(struct text host)
{
    return text_equal_nocase(host, TEXT("localhost")) ||
           (host.length > 10 && text_ends_nocase(host, TEXT(".localhost"))) ||
           (host.length > 4 && text_ends_nocase(host, TEXT(".svc")));
}

/* Names below these cannot be registered by anybody. But a neighbour in the network can
 * answer for them, by multicast or by a router that takes names of hosts. */
static bool
http_host_is_private(struct text host)
{
    static const char *const ends[] = {".local", ".internal", ".lan", ".home.arpa"};
    if (text_find(host, '.') == TEXT_NONE)
        return true;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct text end = text_from(ends[i]);
        if (host.length > end.length && text_ends_nocase(host, end))
            return true;
    }
    return false;
}

static bool
http_host_is_listed(struct text host, struct text names)
{
    struct text name;
    while (text_word(&names, name_separators, &name))
        if (text_equal_nocase(name, host))
            return true;
    return false;
}

static bool
http_allows_any(struct text names)
{
    struct text name;
    while (text_word(&names, name_separators, &name))
        if (text_equal(name, TEXT("*")))
            return true;
    return false;
}

unsigned
http_access_host(const struct http_reader *request, const struct http_names *names,
                 const char **why)
{
    uint64_t port = 0;
    struct text host, value = http_reader_field(request, TEXT("Host"));
    *why = "this host name is not ours: add it to http_names";
    if (value.at == NULL || !http_host_part(value, &host, &port))
        return MISDIRECTED;
    if (http_allows_any(names->more) || http_host_is_literal(host))
        return 0;
    return http_host_is_clean(host) &&
                   (http_host_is_fixed(host) ||
                    (!names->no_key && http_host_is_private(host)) ||
                    text_equal_nocase(host, names->hostname) ||
                    http_host_is_listed(host, names->more))
               ? 0
               : MISDIRECTED;
}

/* "*" is about the host alone: with it any page could act. */
static bool
http_origin_is_ours(const struct http_reader *request, const struct http_names *names,
                    struct text origin)
{
    struct text host, own;
    bool secure = text_starts_nocase(origin, TEXT("https://"));
    uint64_t port = secure ? 443 : 80, own_port = port;
    if (!secure && !text_starts_nocase(origin, TEXT("http://")))
        return false;
    origin = text_after(origin, secure ? 8 : 7);
    return http_host_part(origin, &host, &port) &&
           ((http_host_part(http_reader_field(request, TEXT("Host")), &own,
                            &own_port) &&
             text_equal_nocase(host, own) && port == own_port) ||
            (http_host_is_clean(host) && http_host_is_listed(host, names->more)));
}

/* From a bookmark, a terminal or a proxy's login page. */
static bool
http_opens_page(const struct http_reader *request, struct text path)
{
    return text_equal(request->method, TEXT("GET")) && text_equal(path, TEXT("/")) &&
           text_equal_nocase(http_reader_field(request, TEXT("Sec-Fetch-Mode")),
                             TEXT("navigate"));
}

unsigned
http_access_origin(const struct http_reader *request, const struct http_names *names,
                   struct text path, const char **why)
{
    struct text rest = http_reader_fields(request), name, value;
    while (http_field_next(&rest, &name, &value)) {
        *why = "the request comes from another site: open the page itself";
        if (text_equal_nocase(name, TEXT("Sec-Fetch-Site")) &&
            !text_equal_nocase(value, TEXT("same-origin")) &&
            !http_opens_page(request, path))
            return FORBIDDEN;
        *why = "the request comes from another origin: add its host to http_names";
        if (text_equal_nocase(name, TEXT("Origin")) &&
            !http_origin_is_ours(request, names, value))
            return FORBIDDEN;
    }
    return 0;
}

unsigned
http_access_fields(const struct http_reader *request, enum http_area area,
                   const char **why)
{
    struct text type = http_reader_field(request, TEXT("Content-Type"));
    if (area == HTTP_AREA_MAIL)
        return 0;
    bool acts = text_equal(request->method, TEXT("POST")) ||
                text_equal(request->method, TEXT("DELETE"));
    *why = "the request has neither X-Petrel: 1 nor Authorization: Bearer: send one of "
           "them";
    if (area == HTTP_AREA_DATA && http_access_bearer(request).at == NULL &&
        !text_equal(http_reader_field(request, TEXT("X-Petrel")), TEXT("1")))
        return FORBIDDEN;
    type = text_trim(text_before(type, text_find(type, ';')));
    *why = "the request has not Content-Type: application/json: send it";
    return acts && !text_equal_nocase(type, TEXT("application/json")) ? UNSUPPORTED : 0;
}

struct text
http_access_bearer(const struct http_reader *request)
{
    struct text value = http_reader_field(request, TEXT("Authorization"));
    if (value.at == NULL || !text_starts_nocase(value, TEXT("Bearer ")))
        return (struct text){NULL, 0};
    return text_trim(text_after(value, 7));
}

struct text
http_access_cookie(const struct http_reader *request, struct text name)
{
    struct text rest = http_reader_fields(request), field, value, pair, key;
    while (http_field_next(&rest, &field, &value)) {
        if (!text_equal_nocase(field, TEXT("Cookie")))
            continue;
        while (text_word(&value, "; ", &pair))
            if (text_cut(&pair, '=', &key) && text_equal(key, name) && pair.at != NULL)
                return pair;
    }
    return (struct text){NULL, 0};
}
