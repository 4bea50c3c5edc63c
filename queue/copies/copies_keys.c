/* Writes the names of keys and fields of copies. */
#include "queue/copies/copies_keys.h"

#include <stdio.h>
#include <string.h>

/* The slices of a host, whatever their number is, have one hash of owners. */
struct text
copies_key_group(const struct copies_settings *settings)
{
    struct text host = text_from(settings->host);
    const char *dot = strrchr(settings->host, '.');
    if (settings->group[0] != '\0')
        return text_from(settings->group);
    return settings->slices > 1 && dot != NULL
               ? text_before(host, (size_t)(dot - settings->host))
               : host;
}

void
copies_name(const char *host, const char *identity, char out[COPIES_NAME_MAX + 1])
{
    snprintf(out, COPIES_NAME_MAX + 1, "%s:%s", host, identity);
}

void
copies_key(const struct copies_settings *settings, const char *name,
           char out[COPIES_KEY_MAX + 1])
{
    snprintf(out, COPIES_KEY_MAX + 1, COPIES_PREFIX "{%.*s}:%s",
             TEXT_ARGS(copies_key_group(settings)), name);
}

void
copies_key_chunks(const struct copies_settings *settings, const char *name,
                  struct id id, char out[COPIES_KEY_MAX + 1])
{
    char field[ID_LENGTH + 1];
    id_format(id, field);
    snprintf(out, COPIES_KEY_MAX + 1, COPIES_PREFIX "{%.*s}:%s:%s",
             TEXT_ARGS(copies_key_group(settings)), name, field);
}

void
copies_key_owner(const struct copies_settings *settings, char out[COPIES_KEY_MAX + 1])
{
    copies_key(settings, "owner", out);
}

bool
copies_read_field(struct text value, uint64_t *batch, struct text *form)
{
    struct text number;
    *form = value;
    return text_cut(form, '\n', &number) && form->at != NULL &&
           text_number(number, UINT64_MAX, batch);
}
