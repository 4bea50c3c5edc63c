/* Makes tagged senders and their stamps, and verifies them. */
#include "mime/verp.h"

#include "base/crypto/base64.h"
#include "base/crypto/digest.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ID_DIGITS = ID_LENGTH - 1,
    RECIPIENT_DIGITS = 6,
    MAC_DIGITS = 10,
    SIGNED_LENGTH = ID_DIGITS + SRS_DAY_DIGITS + RECIPIENT_DIGITS,
    PAYLOAD_MAX = ADDRESS_MAX + 1 + ADDRESS_DOMAIN_MAX,
    KEYED_MAX = PAYLOAD_MAX + 64
};

struct verp {
    char *mark, *domain; /* "LOCAL+" */
    struct srs *keys;
};

bool
verp_fits(struct text address)
{
    struct address a;
    if (!address_parse(address, &a) || a.local.length == 0 ||
        a.local.length > VERP_LOCAL_MAX)
        return false;
    for (size_t i = 0; i < a.local.length; i++) {
        char c = a.local.at[i];
        if (!(text_is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
              strchr(".-_", c) != NULL))
            return false;
    }
    return true;
}

struct verp *
verp_new(struct text address, struct srs *keys)
{
    struct verp *v = memory_new(sizeof(*v));
    size_t at = text_find_last(address, '@');
    v->mark = text_string(text_before(address, at + 1));
    v->mark[at] = '+';
    v->domain = text_string(text_after(address, at + 1));
    v->keys = keys;
    return v;
}

void
verp_free(struct verp **verp)
{
    struct verp *v = *verp;
    *verp = NULL;
    if (v == NULL)
        return;
    srs_free(&v->keys);
    free(v->mark);
    free(v->domain);
    free(v);
}

bool
verp_is_blind(const struct verp *v)
{
    return srs_is_blind(v->keys);
}

struct text
verp_mark(const struct verp *v)
{
    return text_from(v->mark);
}

/* Digits of a keyed hash: use keeps the kinds apart. False: there is no such key. */
static bool
verp_hash(const struct verp *v, size_t key, const char *use, struct text t,
          unsigned digits, char *out)
{
    char keyed[KEYED_MAX];
    int length = snprintf(keyed, sizeof(keyed), "verp-%s:%.*s", use, TEXT_ARGS(t));
    return length > 0 && (size_t)length < sizeof(keyed) &&
           srs_digits(v->keys, key, text_of(keyed, (size_t)length), digits, out);
}

/* --- Making ------------------------------------------------------------------------ */

bool
verp_make(const struct verp *v, struct id id, struct text recipient, int64_t now_ms,
          char out[ADDRESS_MAX + 1])
{
    char name[ID_LENGTH + 1], tag[VERP_TAG_LENGTH + 1];
    char *hyphen = strchr(id_format(id, name), '-');
    memmove(hyphen, hyphen + 1, strlen(hyphen));
    memcpy(tag, name, ID_DIGITS);
    srs_day(now_ms, tag + ID_DIGITS);
    if (!verp_hash(v, 0, "to", recipient, RECIPIENT_DIGITS,
                   tag + ID_DIGITS + SRS_DAY_DIGITS) ||
        !verp_hash(v, 0, "tag", text_of(tag, SIGNED_LENGTH), MAC_DIGITS,
                   tag + SIGNED_LENGTH))
        return false;
    int length = snprintf(out, ADDRESS_MAX + 1, "%s%.*s@%s", v->mark, VERP_TAG_LENGTH,
                          tag, v->domain);
    return length > 0 && length <= ADDRESS_MAX;
}

bool
verp_stamp(const struct verp *v, struct text tagged, struct text sender,
           struct text recipient, struct buffer *out)
{
    char payload[PAYLOAD_MAX + 1], keyed[KEYED_MAX], mac[MAC_DIGITS];
    struct text tag =
        text_before(text_after(tagged, strlen(v->mark)), (size_t)VERP_TAG_LENGTH);
    struct text domain = text_after(sender, text_find_last(sender, '@') + 1);
    int length = snprintf(payload, sizeof(payload), "%.*s %.*s", TEXT_ARGS(recipient),
                          TEXT_ARGS(domain));
    if (length <= 0 || (size_t)length >= sizeof(payload))
        return false;
    int whole = snprintf(keyed, sizeof(keyed), "%.*s %s", TEXT_ARGS(tag), payload);
    return whole > 0 && (size_t)whole < sizeof(keyed) &&
           verp_hash(v, 0, "stamp", text_of(keyed, (size_t)whole), MAC_DIGITS, mac) &&
           buffer_add(out, TEXT(VERP_STAMP ": ")) &&
           base64_encode(text_of(payload, (size_t)length), out) &&
           buffer_format(out, ".%.*s\r\n", MAC_DIGITS, mac);
}

/* --- Reading ----------------------------------------------------------------------- */

enum verp_answer
verp_read_tag(const struct verp *v, struct text text, int64_t now_ms,
              struct verp_tag *tag)
{
    char mac[MAC_DIGITS];
    bool good = false;
    if (text.length != VERP_TAG_LENGTH ||
        !id_read(text_before(text, ID_DIGITS), &tag->id))
        return VERP_FORGED;
    for (size_t i = 0; i < VERP_TAG_LENGTH; i++) {
        char c = text.at[i];
        tag->text[i] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    tag->text[VERP_TAG_LENGTH] = '\0';
    if (srs_is_blind(v->keys))
        return VERP_BLIND;
    for (size_t key = 0;
         !good &&
         verp_hash(v, key, "tag", text_of(tag->text, SIGNED_LENGTH), MAC_DIGITS, mac);
         key++) {
        good = digest_same(mac, tag->text + SIGNED_LENGTH, MAC_DIGITS);
        tag->key = key;
    }
    if (!good)
        return VERP_FORGED;
    return srs_is_young(text_of(tag->text + ID_DIGITS, SRS_DAY_DIGITS), now_ms)
               ? VERP_GOOD
               : VERP_OLD;
}

enum verp_answer
verp_read(const struct verp *v, const struct address *address, int64_t now_ms,
          struct verp_tag *tag)
{
    struct text mark = verp_mark(v), local = address->local;
    if (!text_equal_nocase(address->domain, text_from(v->domain)))
        return VERP_NO;
    if (text_equal_nocase(local, text_before(mark, mark.length - 1)))
        return VERP_PLAIN;
    return text_starts_nocase(local, mark)
               ? verp_read_tag(v, text_after(local, mark.length), now_ms, tag)
               : VERP_NO;
}

bool
verp_is_for(const struct verp *v, const struct verp_tag *tag, struct text recipient)
{
    char hash[RECIPIENT_DIGITS];
    return verp_hash(v, tag->key, "to", recipient, RECIPIENT_DIGITS, hash) &&
           digest_same(hash, tag->text + ID_DIGITS + SRS_DAY_DIGITS, RECIPIENT_DIGITS);
}

bool
verp_read_stamp(const struct verp *v, const struct verp_tag *tag, struct text stamp,
                char recipient[ADDRESS_MAX + 1], char domain[ADDRESS_DOMAIN_MAX + 1])
{
    char payload[PAYLOAD_MAX + 4], keyed[KEYED_MAX], mac[MAC_DIGITS];
    size_t dot = text_find(stamp, '.'), length;
    if (dot == TEXT_NONE || stamp.length - dot - 1 != MAC_DIGITS ||
        !base64_decode(text_before(stamp, dot), payload, PAYLOAD_MAX, &length))
        return false;
    int whole =
        snprintf(keyed, sizeof(keyed), "%s %.*s", tag->text, (int)length, payload);
    struct text rest = text_of(payload, length), first;
    return whole > 0 && (size_t)whole < sizeof(keyed) && !text_has_control(rest) &&
           verp_hash(v, tag->key, "stamp", text_of(keyed, (size_t)whole), MAC_DIGITS,
                     mac) &&
           digest_same(mac, stamp.at + dot + 1, MAC_DIGITS) &&
           text_cut(&rest, ' ', &first) && verp_is_for(v, tag, first) &&
           text_copy(recipient, ADDRESS_MAX + 1, first) &&
           text_copy(domain, ADDRESS_DOMAIN_MAX + 1, rest);
}
