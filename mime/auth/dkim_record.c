/* A tag-list (RFC 6376 §3.2) is read tag by tag; unknown tags are ignored. */
#include "mime/auth/dkim_record.h"

static const char spaces[] = " \t\r\n";

struct key_tags {
    struct text version, kind, key, hashes, services;
};

/* The name of a tag counts in its case (§3.2). False: it is not a tag, or twice there. */
static bool
take_tag(struct key_tags *tags, struct text item, unsigned *seen)
{
    static const char names[] = "vkphs";
    struct text *const places[] = {&tags->version, &tags->kind, &tags->key,
                                   &tags->hashes, &tags->services};
    size_t equals = text_find(item, '=');
    struct text name = text_trim(text_before(item, equals));
    if (equals == TEXT_NONE || name.length == 0)
        return false;
    for (unsigned i = 0; name.length == 1 && i < sizeof(names) - 1; i++) {
        if (name.at[0] != names[i])
            continue;
        if (*seen & 1U << i)
            return false;
        *seen |= 1U << i;
        *places[i] = text_trim(text_after(item, equals + 1));
    }
    return true;
}

/* v= must be the first one (§3.6.1). */
static bool
read_key_tags(struct text record, struct key_tags *tags)
{
    struct text item;
    unsigned seen = 0;
    *tags = (struct key_tags){.version = TEXT("DKIM1"),
                              .kind = TEXT("rsa"),
                              .hashes = TEXT("sha256"),
                              .services = TEXT("*")};
    for (bool first = true; text_cut(&record, ';', &item); first = false) {
        bool had_version = seen & 1U;
        if (text_trim(item).length == 0 && record.at == NULL) /* behind the last ; */
            break;
        if (!take_tag(tags, item, &seen) || (!first && !had_version && seen & 1U))
            return false;
    }
    return text_equal(tags->version, TEXT("DKIM1")) && seen & 1U << 2;
}

/* White space within a key does not count. */
static bool
is_same_key(struct text published, struct text key)
{
    struct text word;
    while (text_word(&published, spaces, &word)) {
        if (!text_starts(key, word))
            return false;
        key = text_after(key, word.length);
    }
    return key.length == 0;
}

/* A list with colons has one of them. */
static bool
list_has(struct text list, struct text one, struct text other)
{
    struct text item;
    while (text_cut(&list, ':', &item)) {
        item = text_trim(item);
        if (text_equal_nocase(item, one) || text_equal_nocase(item, other))
            return true;
    }
    return false;
}

enum dkim_record
dkim_record_judge(const struct text *texts, size_t count, struct text kind,
                  struct text key)
{
    struct key_tags tags;
    if (count != 1)
        return count == 0 ? DKIM_RECORD_NONE : DKIM_RECORD_SEVERAL;
    if (!read_key_tags(texts[0], &tags))
        return DKIM_RECORD_MALFORMED;
    if (tags.key.length == 0)
        return DKIM_RECORD_REVOKED;
    if (!text_equal_nocase(tags.kind, kind))
        return DKIM_RECORD_OTHER_KIND;
    if (!is_same_key(tags.key, key))
        return DKIM_RECORD_OTHER_KEY;
    if (!list_has(tags.hashes, TEXT("sha256"), TEXT("sha256")) ||
        !list_has(tags.services, TEXT("email"), TEXT("*")))
        return DKIM_RECORD_OTHER_USE;
    return DKIM_RECORD_FITS;
}

const char *
dkim_record_words(enum dkim_record r)
{
    static const char *const words[] = {
        [DKIM_RECORD_FITS] = "fits the key",
        [DKIM_RECORD_NONE] = "has no TXT record",
        [DKIM_RECORD_SEVERAL] = "has more than one TXT record",
        [DKIM_RECORD_MALFORMED] = "has a TXT record that is not one of DKIM",
        [DKIM_RECORD_REVOKED] = "has a revoked key (p= is empty)",
        [DKIM_RECORD_OTHER_KIND] = "has a key of another kind (k=)",
        [DKIM_RECORD_OTHER_KEY] = "has another key (p=)",
        [DKIM_RECORD_OTHER_USE] = "has a key that is not for mail (h=, s=)",
    };
    return words[r];
}
