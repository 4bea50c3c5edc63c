/* Finds the words, and replaces them. */
#include "base/settings/credential.h"

static const char credential_separators[] = ", \t\r\n";
static const char credential_prefix[] = "credential:";

enum { CREDENTIAL_NAME_MAX = 255 };

static bool
is_separator(char c)
{
    for (const char *s = credential_separators; *s != '\0'; s++)
        if (c == *s)
            return true;
    return false;
}

bool
credential_is_in(struct text value)
{
    struct text word;
    while (text_word(&value, credential_separators, &word))
        if (text_starts(word, text_from(credential_prefix)))
            return true;
    return false;
}

/* As systemd has them: names of files. */
static bool
credential_is_name(struct text name)
{
    return name.length > 0 && name.length <= CREDENTIAL_NAME_MAX &&
           text_find(name, '/') == TEXT_NONE && !text_equal(name, TEXT(".")) &&
           !text_equal(name, TEXT("..")) && !text_has_control(name);
}

const char *
credential_expand(struct text value, const char *directory, struct buffer *out)
{
    while (value.length > 0) {
        size_t length = 0;
        while (length < value.length && !is_separator(value.at[length]))
            length++;
        struct text word = text_before(value, length), name = word;
        if (text_starts(word, text_from(credential_prefix))) {
            name = text_after(word, sizeof(credential_prefix) - 1);
            if (!credential_is_name(name))
                return "credential:NAME needs the name of a file, without a slash";
            if (directory == NULL || directory[0] != '/')
                return "CREDENTIALS_DIRECTORY is not set: credential:NAME is for "
                       "LoadCredential= in a unit of systemd";
            if (!buffer_add(out, text_from(directory)) || !buffer_add_byte(out, '/'))
                return "it is too long";
        }
        size_t with = length < value.length ? length + 1 : length;
        if (!buffer_add(out, name) ||
            !buffer_add(out, text_after(text_before(value, with), length)))
            return "it is too long";
        value = text_after(value, with);
    }
    return NULL;
}
