/* Reads where a fragment came from, and makes the key of its set. */
#include "defrag/reassembly/origin.h"

#include "defrag/set/set.h"

#include <assert.h>
#include <string.h>

enum {
    BATV_TAG = 10, /* KDDDSSSSSS */
    KEY_ID = 2,    /* the first byte that is hashed; 1 is fragment_key()'s */
    KEY_STRICT = 3
};

/* prvs=TAG=local@domain becomes local@domain: the tag changes each day. With the tag in
 * the key, fragments that were sent on two days would never meet. */
static struct text
without_batv(struct text sender)
{
    static const struct text mark = TEXT("prvs=");
    struct text rest = text_after(sender, mark.length);
    if (!text_starts_nocase(sender, mark) || rest.length < BATV_TAG + 2 ||
        rest.at[BATV_TAG] != '=' || rest.at[BATV_TAG + 1] == '@')
        return sender;
    for (size_t i = 0; i < BATV_TAG; i++)
        if (strchr("0123456789abcdefABCDEF", rest.at[i]) == NULL || rest.at[i] == '\0')
            return sender;
    return text_after(rest, BATV_TAG + 1);
}

void
origin_read(struct text trust, struct text sender, struct origin *out)
{
    static const struct text mark = TEXT(" net:"), login = TEXT("auth:");
    *out = (struct origin){.sender = without_batv(sender)};
    /* From the end: the part before it may be the name of a user. */
    size_t space = text_find_last(trust, ' ');
    if (space != TEXT_NONE && text_starts(text_after(trust, space), mark)) {
        out->network = text_after(trust, space + mark.length);
        trust = text_before(trust, space);
    }
    if (text_starts(trust, login)) {
        out->trust = FRAGMENT_LOGIN;
        out->login = text_after(trust, login.length);
    } else if (trust.length > 0 && !text_equal(trust, TEXT("ext"))) {
        out->trust = FRAGMENT_INTERNAL;
    }
}

uint64_t
origin_client(const struct origin *o)
{
    uint64_t hash = text_hash_nocase(TEXT_HASH, o->network);
    /* A hash that happens to be SET_NOBODY would have no quota. */
    return o->network.length == 0 ? SET_NOBODY : hash != SET_NOBODY ? hash : 1;
}

void
origin_key(enum origin_keying keying, const struct origin *o, struct text id,
           unsigned char key[DIGEST_SIZE])
{
    unsigned char whose[DIGEST_SIZE];
    switch (keying) {
    case ORIGIN_BY_SENDER:
        fragment_key(o->trust, o->login, o->sender, id, key);
        break;
    case ORIGIN_BY_ID:
        fragment_hash(KEY_ID, &id, 1, key);
        break;
    case ORIGIN_STRICT:
        fragment_key(o->trust, o->login, o->sender, id, whose);
        fragment_hash(KEY_STRICT,
                      (struct text[]){text_of(whose, sizeof(whose)), o->network}, 2,
                      key);
        break;
    }
}
