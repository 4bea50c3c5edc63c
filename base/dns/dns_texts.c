/* A table of names in the order of their last use. */
#include "base/dns/dns_texts.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct dns_kept {
    UT_hash_handle hh; /* uthash keeps the order of adding */
    char name[DNS_NAME_MAX];
    int64_t until_ms;
    enum dns_status status;
    bool secure;
    char *reason; /* when not DNS_FOUND */
    size_t count, lengths[DNS_TEXTS_MAX];
    size_t size; /* of octets */
    char octets[];
};

struct dns_texts {
    struct dns_kept *table;
    size_t bytes;
};

static void
dns_texts_drop(struct dns_texts *texts, struct dns_kept *kept)
{
    texts->bytes -= kept->size;
    HASH_DEL(texts->table, kept);
    free(kept->reason);
    free(kept);
}

static size_t
dns_texts_size(const struct dns_answer *answer)
{
    size_t size = 0;
    for (size_t i = 0; answer->status == DNS_FOUND && i < answer->count; i++)
        size += answer->texts[i].length;
    return size;
}

static struct dns_kept *
dns_texts_copy(const struct dns_answer *answer)
{
    size_t size = dns_texts_size(answer);
    struct dns_kept *kept = memory_new(sizeof(*kept) + size);
    kept->status = answer->status;
    kept->secure = answer->secure;
    kept->reason = answer->status == DNS_FOUND ? NULL : memory_string(answer->reason);
    for (; answer->status == DNS_FOUND && kept->count < answer->count; kept->count++) {
        struct text t = answer->texts[kept->count];
        if (t.length > 0)
            memcpy(kept->octets + kept->size, t.at, t.length);
        kept->lengths[kept->count] = t.length;
        kept->size += t.length;
    }
    return kept;
}

struct dns_texts *
dns_texts_new(void)
{
    return memory_new(sizeof(struct dns_texts));
}

void
dns_texts_free(struct dns_texts **texts)
{
    while (*texts != NULL && (*texts)->table != NULL)
        dns_texts_drop(*texts, (*texts)->table);
    free(*texts);
    *texts = NULL;
}

void
dns_texts_keep(struct dns_texts *texts, const char *name,
               const struct dns_answer *answer, int64_t now_ms)
{
    struct dns_kept *kept;
    int64_t ttl_s = answer->status == DNS_FOUND ? (int64_t)answer->ttl_s : 0;
    if (answer->status == DNS_TRY_AGAIN)
        return;
    HASH_FIND_STR(texts->table, name, kept);
    if (kept != NULL)
        dns_texts_drop(texts, kept);
    kept = dns_texts_copy(answer);
    text_copy(kept->name, sizeof(kept->name), text_from(name));
    if (ttl_s < DNS_TEXTS_KEPT_MIN_S)
        ttl_s = DNS_TEXTS_KEPT_MIN_S;
    if (ttl_s > DNS_TEXTS_KEPT_MAX_S)
        ttl_s = DNS_TEXTS_KEPT_MAX_S;
    kept->until_ms = now_ms + ttl_s * 1000;
    HASH_ADD_STR(texts->table, name, kept);
    texts->bytes += kept->size;
    while (HASH_COUNT(texts->table) > DNS_TEXTS_KEPT_MAX ||
           texts->bytes > DNS_TEXTS_BYTES_MAX)
        dns_texts_drop(texts, texts->table);
}

char *
dns_texts_find(struct dns_texts *texts, const char *name, int64_t now_ms,
               struct dns_answer *answer)
{
    struct dns_kept *kept;
    char *octets, *at;
    HASH_FIND_STR(texts->table, name, kept);
    if (kept != NULL && kept->until_ms <= now_ms) {
        dns_texts_drop(texts, kept);
        kept = NULL;
    }
    if (kept == NULL)
        return NULL;
    HASH_DEL(texts->table, kept); /* the last one now */
    HASH_ADD_STR(texts->table, name, kept);
    memset(answer, 0, sizeof(*answer));
    answer->status = kept->status;
    answer->secure = kept->secure;
    answer->ttl_s = (unsigned)((kept->until_ms - now_ms) / 1000);
    if (kept->reason != NULL)
        text_copy(answer->reason, sizeof(answer->reason), text_from(kept->reason));
    octets = at = memory_new(kept->size + 1);
    memcpy(octets, kept->octets, kept->size);
    for (; answer->count < kept->count; answer->count++) {
        answer->texts[answer->count] = text_of(at, kept->lengths[answer->count]);
        at += kept->lengths[answer->count];
    }
    return octets;
}
