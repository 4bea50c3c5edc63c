/* Reads the targets of requests. */
#include "base/http/http_target.h"

#include <assert.h>

enum { TARGET_BAD = 400, TARGET_TOO_LONG = 414 };

/* The octet at the start of *rest, an escape or not, is cut off. -1: a bad escape. */
static int
http_target_octet(struct text *rest)
{
    int high, low;
    if (rest->at[0] != '%') {
        int plain = (unsigned char)rest->at[0];
        *rest = text_after(*rest, 1);
        return plain;
    }
    if (rest->length < 3)
        return -1;
    high = text_hex_digit(rest->at[1]);
    low = text_hex_digit(rest->at[2]);
    *rest = text_after(*rest, 3);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static const char *
http_target_read_path(struct text path, struct http_target *out)
{
    size_t length = 0;
    while (path.length > 0) {
        bool escaped = path.at[0] == '%';
        int octet = http_target_octet(&path);
        if (octet <= 0 || (escaped && octet == '/'))
            return octet < 0 ? "the target has a bad escape"
                             : "the target has an escape that is not allowed";
        out->room[length++] = (char)octet;
    }
    out->room[length] = '\0';
    out->path = text_of(out->room, length);
    return NULL;
}

static bool
http_target_has_dots(struct text path)
{
    struct text segment;
    while (text_cut(&path, '/', &segment))
        if (text_equal(segment, TEXT(".")) || text_equal(segment, TEXT("..")))
            return true;
    return false;
}

static const char *
http_target_check_query(struct text query)
{
    while (query.length > 0) {
        int octet = http_target_octet(&query);
        if (octet <= 0)
            return octet < 0 ? "the target has a bad escape"
                             : "the target has an escape that is not allowed";
    }
    return NULL;
}

unsigned
http_target_read(struct text target, struct http_target *out, const char **why)
{
    size_t end = text_find(target, '?');
    struct text path = end == TEXT_NONE ? target : text_before(target, end);
    out->query = text_after(target, end == TEXT_NONE ? target.length : end + 1);
    if (target.length > HTTP_TARGET_MAX) {
        *why = "the target is too long";
        return TARGET_TOO_LONG;
    }
    *why = "the target is not a path";
    if (path.length == 0 || path.at[0] != '/' || text_find(target, '#') != TEXT_NONE)
        return TARGET_BAD;
    *why = http_target_read_path(path, out);
    if (*why == NULL && http_target_has_dots(out->path))
        *why = "the target has a segment of dots";
    if (*why == NULL)
        *why = http_target_check_query(out->query);
    return *why == NULL ? 0 : TARGET_BAD;
}

bool
http_parameter_next(struct text *rest, struct http_parameter *out)
{
    struct text pair;
    size_t equals, length = 0;
    do {
        if (!text_cut(rest, '&', &pair))
            return false;
    } while (pair.length == 0);
    equals = text_find(pair, '=');
    out->name = equals == TEXT_NONE ? pair : text_before(pair, equals);
    pair = text_after(pair, equals == TEXT_NONE ? pair.length : equals + 1);
    while (pair.length > 0) {
        bool plus = pair.at[0] == '+';
        int octet = http_target_octet(&pair);
        assert(octet > 0 && length < HTTP_TARGET_MAX); /* http_target_read() */
        out->room[length++] = plus ? ' ' : (char)octet;
    }
    out->room[length] = '\0';
    out->value = text_of(out->room, length);
    return true;
}
