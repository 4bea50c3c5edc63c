/* Splits lines of the authentication server, escapes values for it. */
#include "smtp/access/dovecot_line.h"

#include <string.h>

/* Dovecot's escapes: \001 and one of these. */
static const struct {
    char escaped, byte;
} escapes[] = {
    {'0', '\0'  },
    {'1', '\001'},
    {'t', '\t'  },
    {'r', '\r'  },
    {'n', '\n'  },
};

/* False: the value is broken, or too long. */
static bool
dovecot_unescape(struct text value, char *to, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; i < value.length; i++) {
        char byte = value.at[i];
        if (byte == '\001') {
            size_t e = 0;
            if (++i == value.length)
                return false;
            while (e < sizeof(escapes) / sizeof(*escapes) &&
                   escapes[e].escaped != value.at[i])
                e++;
            if (e == sizeof(escapes) / sizeof(*escapes))
                return false;
            byte = escapes[e].byte;
        }
        if (length + 1 >= size)
            return false;
        to[length++] = byte;
    }
    to[length] = '\0';
    return strlen(to) == length;
}

bool
dovecot_line_add(struct buffer *line, const char *key, struct text value)
{
    bool good = buffer_format(line, "\t%s=", key);
    for (size_t i = 0; good && i < value.length; i++) {
        char byte = value.at[i];
        for (size_t e = 0; e < sizeof(escapes) / sizeof(*escapes); e++)
            if (escapes[e].byte == value.at[i]) {
                good = buffer_add_byte(line, '\001');
                byte = escapes[e].escaped;
            }
        good = good && buffer_add_byte(line, byte);
    }
    return good;
}

static void
dovecot_read_fields(struct text rest, struct dovecot_line *out)
{
    struct text field;
    while (rest.length > 0 && text_cut(&rest, '\t', &field)) {
        if (text_starts(field, TEXT("user=")) &&
            (!dovecot_unescape(text_after(field, 5), out->user, sizeof(out->user)) ||
             !sasl_is_name(text_from(out->user))))
            out->user[0] = '\0';
        out->temporary = out->temporary || text_equal(field, TEXT("temp")) ||
                         text_equal(field, TEXT("code=temp_fail"));
    }
}

void
dovecot_line_read(struct text line, struct dovecot_line *out)
{
    static const struct {
        struct text name;
        enum dovecot_verb verb;
    } verbs[] = {
        {TEXT("VERSION"), DOVECOT_VERSION },
        {TEXT("MECH"),    DOVECOT_MECH    },
        {TEXT("DONE"),    DOVECOT_DONE    },
        {TEXT("OK"),      DOVECOT_OK      },
        {TEXT("CONT"),    DOVECOT_CONTINUE},
        {TEXT("FAIL"),    DOVECOT_FAIL    },
    };
    struct text word, rest = line;
    uint64_t number = 0;
    *out = (struct dovecot_line){.verb = DOVECOT_OTHER};
    if (line.length == 0 || !text_cut(&rest, '\t', &word))
        return;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
        if (text_equal(word, verbs[i].name))
            out->verb = verbs[i].verb;
    if (out->verb == DOVECOT_OTHER || out->verb == DOVECOT_DONE)
        return;
    word = TEXT("");
    if (rest.length > 0)
        (void)text_cut(&rest, '\t', &word);
    else
        rest = TEXT("");
    if (out->verb == DOVECOT_MECH) {
        out->data = word;
        return;
    }
    if (!text_number(word, UINT32_MAX, &number)) {
        out->verb = DOVECOT_BROKEN;
        return;
    }
    out->number = (uint32_t)number;
    if (out->verb == DOVECOT_CONTINUE && rest.length > 0)
        (void)text_cut(&rest, '\t', &out->data);
    else if (out->verb == DOVECOT_OK || out->verb == DOVECOT_FAIL)
        dovecot_read_fields(rest, out);
    if (out->verb == DOVECOT_OK && out->user[0] == '\0')
        out->verb = DOVECOT_BROKEN;
}
