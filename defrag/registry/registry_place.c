/* Reads where the registry is from its setting. */
#include "defrag/registry/registry.h"

#include <stdio.h>
#include <string.h>

/* registry_dir.c writes the name before numbers, with a space between them: so a name
 * has none. */
bool
registry_is_host(struct text name)
{
    return redis_is_name(name);
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
    place->kind = REGISTRY_REDIS;
    if (!redis_is_url(setting))
        return "it must be local, dir:/path, redis://host or rediss://host";
    return redis_place_parse(setting, &place->redis);
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
    if (place->redis.password[0] != '\0')
        wrong = "write the password in defrag_registry_password_file or "
                "defrag_registry_password, not here";
    else if (password.length > 0 && place->kind != REGISTRY_REDIS)
        wrong = "only Redis has a password (defrag_registry_password)";
    else if (password.length == 0 && place->redis.user[0] != '\0')
        wrong = "a user needs defrag_registry_password";
    else if (!text_copy(place->redis.password, sizeof(place->redis.password), password))
        wrong = "defrag_registry_password is longer than 256 bytes";
    if (wrong != NULL)
        snprintf(error, error_size, "%s", wrong);
    return wrong == NULL;
}

void
registry_place_text(const struct registry_place *place, char out[REGISTRY_SETTING_MAX])
{
    switch (place->kind) {
    case REGISTRY_LOCAL:
        snprintf(out, REGISTRY_SETTING_MAX, "local");
        break;
    case REGISTRY_DIR:
        snprintf(out, REGISTRY_SETTING_MAX, "dir:%.*s", REGISTRY_SETTING_MAX - 5,
                 place->path);
        break;
    case REGISTRY_REDIS:
        redis_place_text(&place->redis, out);
        break;
    }
}
