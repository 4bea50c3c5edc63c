/* Reads where the registry is from its setting. */
#include "base/net_address.h"
#include "defrag/registry/registry.h"

#include <stdio.h>
#include <string.h>

enum { REDIS_PORT = 6379, DATABASE_MAX = 65535 };

/* registry_dir.c writes the name before numbers, with a space between them: so a name
 * has none. */
bool
registry_is_host(struct text name)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789-_.";
    for (size_t i = 0; i < name.length; i++)
        if (name.at[i] == '\0' || strchr(good, name.at[i]) == NULL)
            return false;
    return name.length > 0 && name.length <= REGISTRY_HOST_MAX;
}

/* %XX decoded. False when the result is too long, or a % encodes nothing or a NUL: the
 * commands for Redis are made of strings, and AUTH would send what is before it. */
static bool
decode(struct text t, char out[REGISTRY_SECRET_MAX + 1])
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
        if (byte == 0 || length == REGISTRY_SECRET_MAX)
            return false;
        out[length++] = (char)byte;
    }
    out[length] = '\0';
    return true;
}

/* "user", "user:password" or ":password". NULL: good. */
static const char *
read_login(struct text login, struct registry_place *place)
{
    struct text user = login;
    bool has_password = text_find(login, ':') != TEXT_NONE;
    login = TEXT("");
    if (has_password)
        login = text_after(user, text_find(user, ':') + 1);
    user = text_before(user, text_find(user, ':'));
    if (has_password ? login.length == 0 : user.length == 0)
        return "before the @ there must be user, user:password or :password";
    if (!decode(user, place->user) || !decode(login, place->password))
        return "user and password are at most 256 bytes, and % is written %25";
    return NULL;
}

/* "host", "host:port", "[::1]:port". */
static const char *
read_server(struct text server, struct registry_place *place)
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
    if (bracket ? !net_address_parse_ip(host, &literal) : !registry_is_host(host))
        return "the host must be a name, an address, or an IPv6 address in brackets";
    if (port.length > 0 &&
        (port.at[0] != ':' || !text_number(text_after(port, 1), UINT16_MAX, &number) ||
         number == 0))
        return "the port must be a number from 1 to 65535";
    place->port = (uint16_t)number;
    return text_copy(place->host, sizeof(place->host), host) ? NULL : "a long host";
}

static const char *
read_redis(struct text rest, struct registry_place *place)
{
    size_t slash, at;
    uint64_t database = 0;
    const char *wrong = NULL;
    /* The last @ ends the login: a password may have an @ or a / that is not
     * encoded. */
    at = text_find_last(rest, '@');
    slash = text_find(text_after(rest, at == TEXT_NONE ? 0 : at), '/');
    place->kind = REGISTRY_REDIS;
    if (at != TEXT_NONE) {
        wrong = read_login(text_before(rest, at), place);
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
    return wrong != NULL ? wrong : read_server(rest, place);
}

static const char *
registry_place_read_place(struct text setting, struct registry_place *place)
{
    if (text_equal(setting, TEXT("local")))
        return NULL;
    if (text_starts(setting, TEXT("dir:"))) {
        struct text path = text_after(setting, 4);
        place->kind = REGISTRY_DIR;
        if (!text_starts(path, TEXT("/")) || text_has_control(path))
            return "behind dir: there must be an absolute path";
        return text_copy(place->path, sizeof(place->path), path) ? NULL : "a long path";
    }
    place->tls = text_starts(setting, TEXT("rediss://"));
    if (!place->tls && !text_starts(setting, TEXT("redis://")))
        return "it must be local, dir:/path, redis://host or rediss://host";
    if (*registry_redis_version() == '\0')
        return "this petrel was built without hiredis, which redis needs";
    return read_redis(text_after(setting, place->tls ? 9 : 8), place);
}

/* No error quotes the setting: it may have a password. */
bool
registry_parse(struct text setting, struct registry_place *place, char *error,
               size_t error_size)
{
    *place = (struct registry_place){.kind = REGISTRY_LOCAL};
    const char *wrong = setting.length >= REGISTRY_SETTING_MAX
                            ? "it is too long"
                            : registry_place_read_place(setting, place);
    if (wrong != NULL)
        snprintf(error, error_size, "%s", wrong);
    return wrong == NULL;
}

bool
registry_configure(struct text setting, struct text password,
                   struct registry_place *place, char *error, size_t error_size)
{
    const char *wrong = NULL;
    if (!registry_parse(setting, place, error, error_size))
        return false;
    /* defrag_registry is not a secret: `petrel check` would print the password. */
    if (place->password[0] != '\0')
        wrong = "write the password in defrag_registry_password_file or "
                "defrag_registry_password, not here";
    else if (password.length > 0 && place->kind != REGISTRY_REDIS)
        wrong = "only Redis has a password (defrag_registry_password)";
    else if (password.length == 0 && place->user[0] != '\0')
        wrong = "a user needs defrag_registry_password";
    else if (!text_copy(place->password, sizeof(place->password), password))
        wrong = "defrag_registry_password is longer than 256 bytes";
    if (wrong != NULL)
        snprintf(error, error_size, "%s", wrong);
    return wrong == NULL;
}

void
registry_place_text(const struct registry_place *place, char out[REGISTRY_SETTING_MAX])
{
    bool bracket = strchr(place->host, ':') != NULL;
    switch (place->kind) {
    case REGISTRY_LOCAL:
        snprintf(out, REGISTRY_SETTING_MAX, "local");
        break;
    case REGISTRY_DIR:
        snprintf(out, REGISTRY_SETTING_MAX, "dir:%.*s", REGISTRY_SETTING_MAX - 5,
                 place->path);
        break;
    case REGISTRY_REDIS:
        snprintf(out, REGISTRY_SETTING_MAX, "redis%s://%s%s%s:%u/%u",
                 place->tls ? "s" : "", bracket ? "[" : "", place->host,
                 bracket ? "]" : "", place->port, place->database);
        break;
    }
}
