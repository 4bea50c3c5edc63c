/* Reads the settings of second copies. */
#include "queue/copies/copies_settings.h"

#include "base/crypto/digest.h"

#include <stdio.h>
#include <string.h>

/* The URL may have a password: it is not quoted. */
static bool
copies_settings_place(struct text url, struct text password, struct redis_place *place,
                      struct buffer *errors)
{
    const char *wrong = redis_place_parse(url, place);
    if (wrong == NULL && place->password[0] != '\0')
        wrong = "write the password in copies_password_file or copies_password, not "
                "here";
    else if (wrong == NULL && place->user[0] != '\0' && password.length == 0)
        wrong = "a user needs copies_password";
    else if (wrong == NULL &&
             !text_copy(place->password, sizeof(place->password), password))
        wrong = "copies_password is longer than 256 bytes";
    if (wrong != NULL)
        (void)!buffer_format(errors, "copies: %s\n", wrong);
    return wrong == NULL;
}

/* The name of this host where there is no group: a slice is a host of its own. */
static bool
copies_settings_host(struct text host, unsigned slice, unsigned slices,
                     struct copies_settings *out)
{
    char whole[GROUP_HOST_MAX + 32];
    if (!redis_is_name(host))
        return false;
    snprintf(whole, sizeof(whole), slices > 1 ? "%.*s.%u" : "%.*s", TEXT_ARGS(host),
             slice);
    out->slices = slices;
    return group_name_read(text_from(whole), out->host, sizeof(out->host));
}

static bool
copies_settings_places(const struct copies_options *o, struct copies_settings *out,
                       struct buffer *errors)
{
    struct text rest = text_from(o->copies), word;
    bool good = true;
    while (text_word(&rest, " \t\r\n,", &word)) {
        if (out->place_count == REDIS_PLACES_MAX) {
            (void)!buffer_format(errors, "copies: at most %d servers\n",
                                 REDIS_PLACES_MAX);
            return false;
        }
        good &= copies_settings_place(word, text_from(o->password),
                                      &out->places[out->place_count], errors);
        out->place_count++;
    }
    return good;
}

bool
copies_settings_read(const struct copies_options *o, const struct group_settings *group,
                     struct text host, unsigned slice, unsigned slices,
                     struct copies_settings *out, struct buffer *errors)
{
    *out = (struct copies_settings){.required = o->required,
                                    .replicas = (unsigned)o->replicas,
                                    .message_max = o->message_max,
                                    .adopt_after_ms = o->adopt_after_ms};
    bool good = copies_settings_places(o, out, errors);
    if (out->place_count > 0 && !copies_settings_host(host, slice, slices, out)) {
        (void)!buffer_format(errors, "copies: set cluster_host to a name of this host: "
                                     "letters, digits, '-', '_' and '.'\n");
        good = false;
    }
    /* That of slices alone is no group of hosts. */
    if (!group->has_lead)
        (void)text_copy(out->group, sizeof(out->group), text_from(group->name));
    if (!good)
        copies_settings_forget(out);
    return good;
}

bool
copies_need_tls(const struct copies_settings *settings)
{
    for (size_t i = 0; i < settings->place_count; i++)
        if (settings->places[i].tls)
            return true;
    return false;
}

void
copies_settings_forget(struct copies_settings *settings)
{
    digest_forget(settings, sizeof(*settings));
}
