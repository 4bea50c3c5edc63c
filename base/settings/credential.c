/* Finds the words, and replaces them. */
#include "base/settings/credential.h"

#include <stdlib.h>
#include <string.h>

static const char credential_separators[] = ", \t\r\n";
static const char credential_prefix[] = "credential:";

enum {
    CREDENTIAL_NAME_MAX = 255,
    CREDENTIAL_VALUE_MAX = 4 * 1024 * 1024 /* as a settings file */
};

static bool
is_separator(char c)
{
    for (const char *s = credential_separators; *s != '\0'; s++)
        if (c == *s)
            return true;
    return false;
}

/* Where it begins in a word: at its start, or behind "@" there or in KEY=@, as files with
 * secrets are written in tables. user@credential:25 is another thing. */
static size_t
credential_start(struct text word)
{
    for (size_t at = 0; at < word.length; at++) {
        bool may =
            at == 0 || (word.at[at - 1] == '@' && (at == 1 || word.at[at - 2] == '='));
        if (may && text_starts(text_after(word, at), text_from(credential_prefix)))
            return at;
    }
    return TEXT_NONE;
}

bool
credential_is_in(struct text value)
{
    struct text word;
    while (text_word(&value, credential_separators, &word))
        if (credential_start(word) != TEXT_NONE)
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
        size_t start = credential_start(word);
        if (start != TEXT_NONE) {
            name = text_after(word, start + sizeof(credential_prefix) - 1);
            if (!credential_is_name(name))
                return "credential:NAME needs the name of a file, without a slash";
            if (directory == NULL || directory[0] != '/')
                return "CREDENTIALS_DIRECTORY is not set: credential:NAME is for "
                       "LoadCredential= in a unit of systemd";
            if (!buffer_add(out, text_before(word, start)) ||
                !buffer_add(out, text_from(directory)) || !buffer_add_byte(out, '/'))
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

const char *
credential_replace(char **value, const char *directory)
{
    struct buffer out;
    size_t length = strlen(*value);
    const char *why = "it is too long";
    buffer_init(&out, CREDENTIAL_VALUE_MAX);
    /* At the limit from the beginning: a buffer that grows leaves copies. */
    if (buffer_reserve(&out, CREDENTIAL_VALUE_MAX) != NULL)
        why = credential_expand(text_of(*value, length), directory, &out);
    explicit_bzero(*value, length);
    free(*value);
    *value = text_string(buffer_text(&out));
    if (out.at != NULL)
        explicit_bzero(out.at, out.length);
    buffer_free(&out);
    return why;
}
