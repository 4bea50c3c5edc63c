/* Takes from names what no header field may have. */
#include "admin/sendmail/display_name.h"

struct text
display_name_clean(struct text name, struct buffer *out)
{
    bool fits = true;
    while (fits && name.length > 0) {
        uint32_t code = 0;
        size_t size = text_character(name, &code);
        bool control = size > 0 && (code < 0x20 || (code >= 0x7f && code < 0xa0));
        struct text one = size > 0 ? text_before(name, size) : TEXT("?");
        fits = control || buffer_add(out, one);
        name = text_after(name, one.length);
    }
    return text_trim(buffer_text(out));
}

bool
display_name_from_gecos(struct text gecos, struct text login, struct buffer *out)
{
    struct text full = text_before(gecos, text_find(gecos, ','));
    for (size_t i = 0; i < full.length; i++) {
        bool good = full.at[i] == '&' ? buffer_add(out, login)
                                      : buffer_add_byte(out, full.at[i]);
        if (!good)
            return false;
        if (full.at[i] == '&' && login.length > 0) {
            char *first = out->at + out->length - login.length;
            if (*first >= 'a' && *first <= 'z')
                *first = (char)(*first - 'a' + 'A');
        }
    }
    return true;
}
