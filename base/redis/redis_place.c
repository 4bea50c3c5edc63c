/* Reads where Redis is from a URL. */
#include "base/net_address.h"
#include "base/redis/redis.h"

#include <stdio.h>
#include <string.h>

enum { REDIS_PORT = 6379, DATABASE_MAX = 65535 };

bool
redis_is_name(struct text name)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789-_.";
    for (size_t i = 0; i < name.length; i++)
        if (name.at[i] == '\0' || strchr(good, name.at[i]) == NULL)
            return false;
    return name.length > 0 && name.length <= REDIS_HOST_MAX;
}

/* %XX decoded. False when the result is too long, or a % encodes nothing or a NUL: the
 * commands for Redis are made of strings, and AUTH would send the part before it. */
static bool
redis_decode(struct text t, char out[REDIS_SECRET_MAX + 1])
{
    size_t length = 0;
    for (size_t i = 0; i < t.length; i++) {
        int byte = (unsigned char)t.at[i];
        if (t.at[i] == '%') {
            int high = i + 2 < t.length ? text_hex_digit(t.at[i + 1]) : -1;
            int low = i + 2 < t.length ? text_hex_digit(t.at[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            byte = high * 16 + low;
            i += 2;
        }
        if (byte == 0 || length == REDIS_SECRET_MAX)
            return false;
        out[length++] = (char)byte;
    }
    out[length] = '\0';
    return true;
}

/* "user", "user:password" or ":password". NULL: good. */
static const char *
redis_read_login(struct text login, struct redis_place *place)
{
    struct text user = login;
    bool has_password = text_find(login, ':') != TEXT_NONE;
    login = TEXT("");
    if (has_password)
        login = text_after(user, text_find(user, ':') + 1);
    user = text_before(user, text_find(user, ':'));
    if (has_password ? login.length == 0 : user.length == 0)
        return "before the @ there must be user, user:password or :password";
    if (!redis_decode(user, place->user) || !redis_decode(login, place->password))
        return "user and password are at most 256 bytes, and % is written %25";
    return NULL;
}

const char *
redis_server_parse(struct text server, struct redis_place *place)
{
    struct text host = server, port = TEXT("");
    struct net_address literal;
    uint64_t number = REDIS_PORT;
    bool bracket = text_starts(server, TEXT("["));
    size_t end = text_find(server, bracket ? ']' : ':');
    if (bracket && end == TEXT_NONE)
        return "a [ without a ]";
    if (end != TEXT_NONE) {
        host = text_before(server, end);
        port = text_after(server, end + (bracket ? 1 : 0));
    }
    if (bracket)
        host = text_after(host, 1);
    if (bracket ? !net_address_parse_ip(host, &literal) : !redis_is_name(host))
        return "the host must be a name, an address, or an IPv6 address in brackets";
    if (port.length > 0 &&
        (port.at[0] != ':' || !text_number(text_after(port, 1), UINT16_MAX, &number) ||
         number == 0))
        return "the port must be a number from 1 to 65535";
    place->port = (uint16_t)number;
    return text_copy(place->host, sizeof(place->host), host) ? NULL : "a long host";
}

static const char *
redis_read(struct text rest, struct redis_place *place)
{
    size_t slash, at;
    uint64_t database = 0;
    const char *wrong = NULL;
    /* The last @ ends the login: a password may have an @ or a / that is not
     * encoded. */
    at = text_find_last(rest, '@');
    slash = text_find(text_after(rest, at == TEXT_NONE ? 0 : at), '/');
    if (at != TEXT_NONE) {
        wrong = redis_read_login(text_before(rest, at), place);
        rest = text_after(rest, at + 1);
        slash -= slash == TEXT_NONE ? 0 : 1;
    }
    if (slash != TEXT_NONE) {
        struct text number = text_after(rest, slash + 1);
        if (number.length > 0 && !text_number(number, DATABASE_MAX, &database))
            return "behind the / there must be the number of a database";
        rest = text_before(rest, slash);
    }
    place->database = (unsigned)database;
    return wrong != NULL ? wrong : redis_server_parse(rest, place);
}

bool
redis_is_url(struct text url)
{
    return text_starts(url, TEXT("redis://")) || text_starts(url, TEXT("rediss://"));
}

/* No error quotes the URL: it may have a password. */
const char *
redis_place_parse(struct text url, struct redis_place *place)
{
    *place = (struct redis_place){.tls = text_starts(url, TEXT("rediss://"))};
    if (url.length >= REDIS_URL_MAX)
        return "it is too long";
    if (!redis_is_url(url))
        return "it must be redis://host or rediss://host";
    if (*redis_version() == '\0')
        return "this petrel was built without hiredis, which redis needs";
    return redis_read(text_after(url, place->tls ? 9 : 8), place);
}

void
redis_place_text(const struct redis_place *place, char out[REDIS_URL_MAX])
{
    bool bracket = strchr(place->host, ':') != NULL;
    snprintf(out, REDIS_URL_MAX, "redis%s://%s%s%s:%u/%u", place->tls ? "s" : "",
             bracket ? "[" : "", place->host, bracket ? "]" : "", place->port,
             place->database);
}
