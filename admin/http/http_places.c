/* Reads the setting `http`. */
#include "admin/http/http_places.h"

#include <stdio.h>

static const char separators[] = ", \t\r\n";

bool
http_place_is_safe(const struct http_place *place)
{
    return place->access == HTTP_MAY_NOTHING || place->address.family == NET_UNIX ||
           net_address_is_loopback(&place->address);
}

static const char *
http_read_access(struct http_place *place, struct text value)
{
    if (text_equal(value, TEXT("key")))
        place->access = HTTP_MAY_NOTHING;
    else if (text_equal(value, TEXT("read")))
        place->access = HTTP_MAY_READ;
    else if (text_equal(value, TEXT("operate")))
        place->access = HTTP_MAY_OPERATE;
    else
        return "say access=key, access=read or access=operate";
    /* The address of a passed socket is not known yet: http_place_is_safe(). */
    return place->address.family == NET_PASSED || http_place_is_safe(place)
               ? NULL
               : HTTP_PLACE_UNSAFE;
}

/* NULL, or the error of the option. */
static const char *
http_read_option(struct http_place *place, struct text option)
{
    if (text_starts(option, TEXT("access=")))
        return http_read_access(place, text_after(option, 7));
    if (text_starts(option, TEXT("mode=")) || text_starts(option, TEXT("uid=")))
        return net_users_read(&place->users, &place->address, option);
    if (text_equal(option, TEXT("tls")))
        place->tls = true;
    else if (text_equal(option, TEXT("page=no")))
        place->no_page = true;
    else if (text_equal(option, TEXT("metrics=no")))
        place->no_metrics = true;
    else if (!text_equal(option, TEXT("page=yes")) &&
             !text_equal(option, TEXT("metrics=yes")))
        return "unknown option; write tls, page=no, metrics=no, access=read, "
               "access=operate, mode=0660 or uid=NUMBER";
    return NULL;
}

static bool
http_read_place(struct http_place *place, struct text word, struct buffer *errors)
{
    struct text options = word, address, option;
    bool good = text_cut(&options, '?', &address);
    const struct text all = options;
    if (!good || !net_address_parse_listening(address, &place->address))
        return buffer_add_error(errors, "http", word,
                                "not an address (127.0.0.1:8025, [::1]:8025 or "
                                "unix:/path)");
    while (text_word(&options, "&", &option)) {
        const char *why = net_option_is_repeated(all, option)
                              ? "given twice"
                              : http_read_option(place, option);
        if (why != NULL)
            good = buffer_add_error(errors, "http", option, why);
    }
    return good;
}

bool
http_places_read(struct text http, struct http_places *out, struct buffer *errors)
{
    struct text word;
    bool good = true;
    *out = (struct http_places){.count = 0};
    while (text_word(&http, separators, &word)) {
        if (out->count == HTTP_PLACES_MAX)
            return buffer_add_error(errors, "http", word, "too many addresses");
        struct http_place *place = &out->list[out->count];
        good = http_read_place(place, word, errors) && good;
        for (size_t i = 0; good && i < out->count; i++)
            if (net_address_is_taken(&out->list[i].address, &place->address))
                good = buffer_add_error(errors, "http", word, "given twice");
        out->count++;
    }
    return good;
}

static bool
http_is_name(struct text name)
{
    for (size_t i = 0; i < name.length; i++) {
        char c = name.at[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !text_is_digit(c) &&
            c != '-' && c != '_' && c != '.')
            return false;
    }
    return name.length > 0;
}

bool
http_names_check(struct text names, struct buffer *errors)
{
    struct text word;
    bool good = true;
    while (text_word(&names, separators, &word))
        if (!text_equal(word, TEXT("*")) && !http_is_name(word))
            good = buffer_add_error(errors, "http_names", word,
                                    "not a host name (without port), nor *");
    return good;
}
