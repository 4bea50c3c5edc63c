/* Turns U-labels of domain names into A-labels. */
#include "base/dns/idna.h"

#ifdef HAVE_LIBIDN2
#include <idn2.h>
#include <string.h>

const char *
idna_version(void)
{
    return "libidn2 " IDN2_VERSION;
}

static bool
idna_convert(const char *name, char out[IDNA_NAME_MAX])
{
    uint8_t *found = NULL;
    int flags = IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL;
    bool good = idn2_lookup_u8((const uint8_t *)name, &found, flags) == IDN2_OK &&
                strlen((const char *)found) < IDNA_NAME_MAX;
    if (good)
        text_copy(out, IDNA_NAME_MAX, text_from((const char *)found));
    idn2_free(found);
    /* A name that maps to ASCII may have other characters than letters, digits and
     * hyphens. */
    return good && text_is_ascii(text_from(out)) && !text_has_control(text_from(out));
}
#else
const char *
idna_version(void)
{
    return NULL;
}

static bool
idna_convert(const char *name, char out[IDNA_NAME_MAX])
{
    (void)name;
    (void)out;
    return false;
}
#endif

bool
idna_to_ascii(struct text name, char out[IDNA_NAME_MAX])
{
    char whole[IDNA_NAME_MAX];
    if (name.length >= sizeof(whole))
        return false;
    text_copy(whole, sizeof(whole), name);
    if (!text_is_ascii(name))
        return text_is_utf8(name) && !text_has_control(name) &&
               idna_convert(whole, out);
    text_lower(whole, name.length);
    text_copy(out, IDNA_NAME_MAX, text_from(whole));
    return true;
}
