/* Finds what looks like an address, from '@' to '@'. */
#include "base/log/log_mask.h"

#include <assert.h>
#include <string.h>

/* Prefixes of ours in sentences, which are no part of the address behind them. */
static const struct text own_words[] = {
    {"sasl_username=", sizeof("sasl_username=") - 1}
};

static bool
mask_is_delimiter(char c)
{
    return (unsigned char)c <= ' ' || strchr("<>()[],;:\"\\\x7f", c) != NULL;
}

/* The end of what may be the domain behind the '@' at t.at[-1]. */
static size_t
mask_domain_length(struct text t)
{
    size_t end = 0;
    if (t.length > 0 && t.at[0] == '[') {
        end = text_find(t, ']');
        bool is_literal =
            end != TEXT_NONE && text_find(text_before(t, end), '@') == TEXT_NONE;
        return is_literal ? end + 1 : 0;
    }
    while (end < t.length && !mask_is_delimiter(t.at[end]) &&
           strchr("@'`{}|*?!/", t.at[end]) == NULL)
        end++;
    while (end > 0 && t.at[end - 1] == '.') /* of the sentence */
        end--;
    return end;
}

/* The last of several '@' without white space between them counts: "a@b"@c. */
static size_t
mask_last_at(struct text t, size_t at)
{
    size_t end = at + 1;
    while (end < t.length &&
           (!mask_is_delimiter(t.at[end]) ||
            (t.at[end] == '"' && end + 1 < t.length && t.at[end + 1] == '@'))) {
        if (t.at[end] == '@')
            at = end;
        end++;
    }
    return at;
}

/* The place of the quote that opens the string which ends before at, or at. */
static size_t
mask_open_quote(struct text t, size_t at)
{
    for (size_t i = at - 1; i-- > 0;) {
        size_t backslashes = 0;
        while (t.at[i] == '"' && backslashes < i && t.at[i - 1 - backslashes] == '\\')
            backslashes++;
        if (t.at[i] == '"' && backslashes % 2 == 0)
            return i;
    }
    return at;
}

/* The place at which the local part before *at begins; *at moves to the '@' that ends
 * it. t begins behind the address before. */
static size_t
mask_begin(struct text t, size_t *at)
{
    size_t open = text_find_last(text_before(t, *at), '<'), begin = *at;
    if (open != TEXT_NONE &&
        text_find(text_of(t.at + open, *at - open), '>') == TEXT_NONE) {
        size_t close = text_find(text_after(t, open), '>');
        struct text inside = text_before(text_after(t, open), close);
        *at = open + text_find_last(inside, '@');
        return open + 1;
    }
    *at = mask_last_at(t, *at);
    if (begin > 0 && t.at[begin - 1] == '"')
        begin = mask_open_quote(t, begin);
    while (begin > 0 && !mask_is_delimiter(t.at[begin - 1]))
        begin--;
    for (size_t i = 0; i < sizeof(own_words) / sizeof(*own_words); i++)
        if (text_starts(text_after(t, begin), own_words[i]))
            begin += own_words[i].length;
    while (begin < *at && strchr("'`{|=/", t.at[begin]) != NULL)
        begin++;
    return begin;
}

static bool
mask_add_name(const struct log_mask *mask, struct text local, struct text domain,
              struct buffer *out)
{
    unsigned char digest[DIGEST_SIZE];
    char hex[LOG_MASK_HASH + 1];
    struct buffer whole;
    if (local.length == 0)
        return true;
    if (mask->form != LOG_ADDRESSES_HASH || !mask->has_key)
        return buffer_add(out, TEXT("***"));
    buffer_init(&whole, local.length + 1 + domain.length);
    bool fits = buffer_add(&whole, local) && buffer_add_byte(&whole, '@') &&
                buffer_add(&whole, domain);
    assert(fits);
    text_lower(whole.at, whole.length);
    digest_keyed(text_of((const char *)mask->key, sizeof(mask->key)),
                 buffer_text(&whole), digest);
    buffer_free(&whole);
    text_hex(digest, LOG_MASK_HASH / 2, hex);
    return buffer_add(out, text_from(hex));
}

/* A text that was cut within the brackets of an address. */
static bool
mask_add_rest(struct text t, struct buffer *out)
{
    size_t open = text_find_last(t, '<');
    struct text name = text_after(t, open == TEXT_NONE ? t.length : open + 1);
    bool is_cut = name.length > 0 && text_find(name, ' ') == TEXT_NONE &&
                  text_find(name, '>') == TEXT_NONE;
    return buffer_add(out, text_before(t, t.length - (is_cut ? name.length : 0))) &&
           (!is_cut || buffer_add(out, TEXT("***")));
}

struct text
log_mask_text(const struct log_mask *mask, struct text t, struct buffer *out)
{
    bool fits = true;
    size_t at;
    buffer_init(out, t.length * (LOG_MASK_HASH + 1) + LOG_MASK_HASH);
    if (mask->form == LOG_ADDRESSES_FULL ||
        (text_find(t, '@') == TEXT_NONE && text_find(t, '<') == TEXT_NONE))
        return t;
    while (fits && (at = text_find(t, '@')) != TEXT_NONE) {
        size_t begin = mask_begin(t, &at);
        struct text behind = text_after(t, at + 1);
        struct text domain = text_before(behind, mask_domain_length(behind));
        fits = buffer_add(out, text_before(t, begin)) &&
               mask_add_name(mask, text_of(t.at + begin, at - begin), domain, out) &&
               buffer_add_byte(out, '@') && buffer_add(out, domain);
        t = text_after(behind, domain.length);
    }
    fits = fits && mask_add_rest(t, out);
    assert(fits);
    return buffer_text(out);
}

struct text
log_mask_name(const struct log_mask *mask, struct text name, struct buffer *out)
{
    struct text local = text_before(name, text_find_last(name, '@'));
    struct text rest = text_after(name, local.length);
    buffer_init(out, LOG_MASK_HASH + name.length);
    if (mask->form == LOG_ADDRESSES_FULL)
        return name;
    bool fits =
        mask_add_name(mask, local, text_after(rest, 1), out) && buffer_add(out, rest);
    assert(fits);
    return buffer_text(out);
}

struct text
log_mask_address(const struct log_mask *mask, struct text address, struct buffer *out)
{
    return text_find(address, ' ') != TEXT_NONE ? log_mask_text(mask, address, out)
                                                : log_mask_name(mask, address, out);
}

struct text
log_mask_relay(const struct log_mask *mask, const char *relay)
{
    return mask->form != LOG_ADDRESSES_FULL && relay[0] == '/' ? TEXT("maildir")
                                                               : text_from(relay);
}
