/* Reads the table of quotas, and counts the recipients of each name. */
#include "sched/route/quotas.h"

#include "base/memory.h"
#include "mime/address.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { FORGET_PART = 16 }; /* of the names, when there is no space */

static const char *const prefixes[QUOTAS_KINDS] = {[QUOTAS_USER] = "user:",
                                                   [QUOTAS_UID] = "uid:",
                                                   [QUOTAS_SENDER] = "sender:",
                                                   [QUOTAS_DOMAIN] = "domain:",
                                                   [QUOTAS_ALL] = "all"};

struct quotas_row {
    UT_hash_handle hh;
    size_t rank; /* in the table */
    struct quota quota;
    char key[];
};

struct quotas_name {
    UT_hash_handle hh;
    unsigned claims;
    int64_t told_until_ms; /* the operator knows until then */
    struct quota_use use;
    char key[];
};

struct quotas {
    struct quotas_row *rows;
    struct quotas_name *names;
};

struct quotas_key {
    size_t length;
    char at[QUOTAS_NAME_MAX];
};

/* --- The table -------------------------------------------------------------------- */

/* False: it is too long. */
static bool
key_make(struct quotas_key *key, enum quotas_kind kind, struct text value)
{
    struct text prefix = text_from(prefixes[kind]);
    key->length = prefix.length + value.length;
    if (key->length >= sizeof(key->at))
        return false;
    memcpy(key->at, prefix.at, prefix.length);
    if (value.length > 0)
        memcpy(key->at + prefix.length, value.at, value.length);
    key->at[key->length] = '\0';
    if (kind == QUOTAS_SENDER || kind == QUOTAS_DOMAIN)
        text_lower(key->at, key->length);
    return true;
}

/* QUOTAS_KINDS: it is of none. *value: the text after the prefix. */
static enum quotas_kind
kind_of(struct text who, struct text *value)
{
    for (enum quotas_kind k = 0; k < QUOTAS_ALL; k++) {
        struct text prefix = text_from(prefixes[k]);
        *value = text_after(who, prefix.length);
        if (text_starts(who, prefix))
            return value->length > 0 ? k : QUOTAS_KINDS;
    }
    *value = TEXT("");
    return text_equal(who, TEXT("all")) ? QUOTAS_ALL : QUOTAS_KINDS;
}

static bool
write_sender(struct text value, struct buffer *normal)
{
    struct address address;
    if (text_find(value, '@') == TEXT_NONE)
        return address_is_domain(value) && address_write_domain(value, normal);
    return address_parse(value, &address) && address_write(&address, normal);
}

/* NULL, or the error. */
static const char *
read_who(struct text who, struct quotas_key *key)
{
    struct text value;
    struct buffer normal;
    uint64_t number;
    const char *why = NULL;
    enum quotas_kind kind = kind_of(who, &value);
    if (kind == QUOTAS_KINDS)
        return "is not one of user:NAME, uid:NUMBER, sender:ADDRESS, sender:DOMAIN, "
               "domain:DOMAIN (* for each) and all";
    buffer_init(&normal, QUOTAS_NAME_MAX);
    bool any = text_equal(value, TEXT("*"));
    if (kind == QUOTAS_UID && !any &&
        (!text_number(value, UINT32_MAX - 1, &number) ||
         !buffer_format(&normal, "%u", (unsigned)number)))
        why = "is not the number of a user";
    else if (kind == QUOTAS_SENDER && !any && !write_sender(value, &normal))
        why = "is neither an address nor a domain";
    else if (kind == QUOTAS_DOMAIN && !any &&
             (!address_is_domain(value) || !address_write_domain(value, &normal)))
        why = "is not a domain";
    else if (!key_make(key, kind, normal.length > 0 ? buffer_text(&normal) : value))
        why = "is too long";
    buffer_free(&normal);
    return why;
}

static const char *
add_row(struct quotas *q, const struct quotas_key *key, const struct quota *quota)
{
    struct quotas_row *row;
    HASH_FIND(hh, q->rows, key->at, key->length, row);
    if (row != NULL)
        return "stands above already";
    if (HASH_COUNT(q->rows) == QUOTAS_ROWS_MAX)
        return "is one entry too many";
    row = memory_new(sizeof(*row) + key->length + 1);
    row->rank = HASH_COUNT(q->rows);
    row->quota = *quota;
    memcpy(row->key, key->at, key->length + 1);
    HASH_ADD_KEYPTR(hh, q->rows, row->key, key->length, row);
    return NULL;
}

static void
read_entry(struct quotas *q, struct text entry, struct buffer *errors)
{
    struct text rest = text_trim(entry), who;
    struct quotas_key key;
    struct quota quota;
    if (!text_word(&rest, " \t", &who))
        return;
    const char *why = read_who(who, &key);
    if (why == NULL && !quota_parse(rest, &quota))
        why = "the limit is none of N/s, N/m, N/h, N/d, several of them with commas "
              "between, and none";
    if (why == NULL)
        why = add_row(q, &key, &quota);
    if (why != NULL)
        buffer_add_error(errors, "quotas", text_trim(entry), why);
}

/* A piece after a comma belongs to the limits before it, unless it has a blank, which
 * each entry has between WHO and its limits. */
static void
quotas_read_line(struct quotas *q, struct text line, struct buffer *errors)
{
    while (line.length > 0) {
        size_t end = 0;
        do {
            size_t comma = text_find(text_after(line, end), ',');
            end = comma == TEXT_NONE ? line.length : end + comma + 1;
            struct text piece = text_after(line, end);
            piece = text_trim(text_before(piece, text_find(piece, ',')));
            if (text_find(piece, ' ') != TEXT_NONE ||
                text_find(piece, '\t') != TEXT_NONE)
                break;
        } while (end < line.length);
        struct text entry = text_trim(text_before(line, end));
        if (text_ends_nocase(entry, TEXT(",")))
            entry.length--;
        read_entry(q, entry, errors);
        line = text_after(line, end);
    }
}

static void
free_rows(struct quotas_row **rows)
{
    struct quotas_row *row, *next;
    HASH_ITER (hh, *rows, row, next) {
        HASH_DEL(*rows, row);
        free(row);
    }
}

bool
quotas_set(struct quotas *q, struct text table, struct buffer *errors)
{
    struct quotas fresh = {.rows = NULL};
    struct text line;
    size_t before = errors->length;
    while (text_cut(&table, '\n', &line)) {
        line = text_trim(line);
        if (line.length > 0 && line.at[0] != '#')
            quotas_read_line(&fresh, line, errors);
    }
    if (errors->length > before) {
        free_rows(&fresh.rows);
        return false;
    }
    free_rows(&q->rows);
    q->rows = fresh.rows;
    return true;
}

bool
quotas_are_empty(const struct quotas *q)
{
    return q->rows == NULL;
}

static void
try_row(const struct quotas *q, enum quotas_kind kind, struct text value,
        const struct quotas_row **best)
{
    struct quotas_key key;
    struct quotas_row *row;
    if (!key_make(&key, kind, value))
        return;
    HASH_FIND(hh, q->rows, key.at, key.length, row);
    if (row != NULL && (*best == NULL || row->rank < (*best)->rank))
        *best = row;
}

/* The first row of the table that matches; NULL: none. */
static const struct quota *
find_quota(const struct quotas *q, enum quotas_kind kind, struct text value)
{
    const struct quotas_row *best = NULL;
    try_row(q, kind, value, &best);
    if (kind == QUOTAS_SENDER)
        try_row(q, kind, text_after(value, text_find_last(value, '@') + 1), &best);
    if (kind != QUOTAS_ALL)
        try_row(q, kind, TEXT("*"), &best);
    return best != NULL && !quota_is_none(&best->quota) ? &best->quota : NULL;
}

/* --- Names ------------------------------------------------------------------------ */

struct quotas *
quotas_new(void)
{
    return memory_new(sizeof(struct quotas));
}

static void
forget_name(struct quotas *q, struct quotas_name *name)
{
    assert(name->claims == 0);
    HASH_DEL(q->names, name);
    free(name);
}

void
quotas_free(struct quotas **quotas)
{
    struct quotas *q = *quotas;
    struct quotas_name *name, *next;
    *quotas = NULL;
    if (q == NULL)
        return;
    HASH_ITER (hh, q->names, name, next)
        forget_name(q, name);
    free_rows(&q->rows);
    free(q);
}

struct quotas_rank {
    struct quotas_name *name;
    uint32_t used;
};

static int
by_use(const void *a, const void *b)
{
    const struct quotas_rank *x = a, *y = b;
    return (x->used > y->used) - (x->used < y->used);
}

/* Many at a time: sorting is dear. */
static void
forget_least(struct quotas *q, int64_t now_ms)
{
    struct quotas_rank *ranks = memory_array(HASH_COUNT(q->names), sizeof(*ranks));
    struct quotas_name *name, *next;
    size_t count = 0;
    HASH_ITER (hh, q->names, name, next)
        if (name->claims == 0)
            ranks[count++] =
                (struct quotas_rank){name, quota_used(&name->use, QUOTA_DAY, now_ms)};
    qsort(ranks, count, sizeof(*ranks), by_use);
    for (size_t i = 0; i < count; i++)
        if (ranks[i].used == 0 || i < QUOTAS_NAMES_MAX / FORGET_PART)
            forget_name(q, ranks[i].name);
    free(ranks);
}

/* NULL: all names are of messages under way. */
static struct quotas_name *
get_name(struct quotas *q, const struct quotas_key *key, int64_t now_ms)
{
    struct quotas_name *name;
    HASH_FIND(hh, q->names, key->at, key->length, name);
    if (name != NULL)
        return name;
    if (HASH_COUNT(q->names) >= QUOTAS_NAMES_MAX)
        forget_least(q, now_ms);
    if (HASH_COUNT(q->names) >= QUOTAS_NAMES_MAX)
        return NULL;
    name = memory_new(sizeof(*name) + key->length + 1);
    name->told_until_ms = INT64_MIN;
    memcpy(name->key, key->at, key->length + 1);
    HASH_ADD_KEYPTR(hh, q->names, name->key, key->length, name);
    return name;
}

/* --- Claims ----------------------------------------------------------------------- */

void
quotas_format_time(int64_t ms, char out[QUOTAS_TIME_MAX])
{
    long long s = (long long)(ms > 0 ? (ms + 999) / 1000 : 1);
    if (s < 60)
        snprintf(out, QUOTAS_TIME_MAX, "%llds", s);
    else if (s < 3600)
        snprintf(out, QUOTAS_TIME_MAX, "%lldm %llds", s / 60, s % 60);
    else
        snprintf(out, QUOTAS_TIME_MAX, "%lldh %lldm", (s + 59) / 3600,
                 (s + 59) / 60 % 60);
}

/* "user:alice" as "user alice"; "all" as "all senders". */
static void
quotas_describe(const char *key, char out[QUOTAS_NAME_MAX])
{
    struct text name = text_from(key);
    size_t colon = text_find(name, ':');
    if (colon == TEXT_NONE)
        snprintf(out, QUOTAS_NAME_MAX, "all senders");
    else
        snprintf(out, QUOTAS_NAME_MAX, "%.*s %.300s", (int)colon, key, key + colon + 1);
}

/* "500 recipients a day of user alice" */
static void
quotas_refuse(struct quotas_name *name, const struct quota *quota,
              enum quota_period period, int64_t ready_ms, int64_t now_ms,
              struct quotas_refusal *refusal)
{
    char who[QUOTAS_NAME_MAX], wait[QUOTAS_TIME_MAX];
    const char *word = quota_period_word(period);
    const char *article = period == QUOTA_HOUR ? "an" : "a";
    uint32_t amount = quota->amounts[period];
    quotas_describe(name->key, who);
    text_copy(refusal->name, sizeof(refusal->name), text_from(name->key));
    refusal->ready_ms = ready_ms;
    refusal->first = now_ms >= name->told_until_ms;
    if (refusal->first) /* a second's would fill the log */
        name->told_until_ms =
            now_ms + quota_period_ms(period > QUOTA_HOUR ? period : QUOTA_HOUR);
    quotas_format_time(ready_ms - now_ms, wait);
    if (ready_ms == INT64_MAX)
        refusal->outcome =
            outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.7.1",
                         "Quota: more recipients than the %u %s %s of %s", amount,
                         article, word, who);
    else
        refusal->outcome =
            outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 450, "4.7.1",
                         "Quota: %u recipient%s %s %s of %s are used; the next in %s",
                         amount, amount == 1 ? "" : "s", article, word, who, wait);
}

struct quotas_look {
    struct quotas_name *name;
    const struct quota *quota; /* NULL: none of that kind */
};

/* False: no quota of that kind concerns the sender. */
static bool
value_of(const struct quotas_sender *sender, enum quotas_kind kind, char number[16],
         struct text *value)
{
    *value = TEXT("");
    switch (kind) {
    case QUOTAS_USER:
        *value = sender->user;
        return value->length > 0;
    case QUOTAS_UID:
        snprintf(number, 16, "%u", sender->uid);
        *value = text_from(number);
        return sender->uid != QUOTAS_NO_UID;
    case QUOTAS_SENDER:
        *value = sender->address;
        return value->length > 0;
    case QUOTAS_DOMAIN:
        *value = text_after(sender->address, text_find_last(sender->address, '@') + 1);
        return text_find(sender->address, '@') != TEXT_NONE;
    case QUOTAS_ALL:
        return true;
    case QUOTAS_KINDS:
        break;
    }
    return false;
}

static struct quotas_look
quotas_look_up(struct quotas *q, const struct quotas_sender *sender,
               enum quotas_kind kind, int64_t now_ms)
{
    struct quotas_look look = {NULL, NULL};
    char number[16];
    struct text value;
    struct quotas_key key;
    if (!value_of(sender, kind, number, &value) || !key_make(&key, kind, value))
        return look;
    look.quota = find_quota(q, kind, value);
    if (look.quota != NULL)
        look.name = get_name(q, &key, now_ms);
    return look;
}

/* False with the refusal. A message that has all of a quota, and needs more, would never
 * pass. */
static bool
quotas_permit(const struct quotas_look *look, uint32_t has, uint32_t count,
              int64_t now_ms, struct quotas_refusal *refusal)
{
    enum quota_period period = QUOTA_SECOND;
    const struct quota_use nothing = {.reserved = 0};
    if (look->name == NULL)
        return true;
    int64_t ever = quota_ready_ms(&nothing, look->quota, has + count, now_ms, &period);
    int64_t ready = ever == INT64_MAX ? ever
                                      : quota_ready_ms(&look->name->use, look->quota,
                                                       count, now_ms, &period);
    if (ready > now_ms)
        quotas_refuse(look->name, look->quota, period, ready, now_ms, refusal);
    return ready <= now_ms;
}

/* All or nothing: a refusal by one kind must not use up another's. A name is in use
 * before the next is made, which may forget others. */
bool
quotas_take(struct quotas *q, const struct quotas_sender *sender, uint32_t count,
            int64_t now_ms, struct quotas_claim *claim, struct quotas_refusal *refusal)
{
    struct quotas_look looks[QUOTAS_KINDS];
    bool good = true;
    for (enum quotas_kind k = 0; k < QUOTAS_KINDS; k++) {
        looks[k] = quotas_look_up(q, sender, k, now_ms);
        if (looks[k].name != NULL)
            looks[k].name->claims++;
    }
    for (enum quotas_kind k = 0; good && k < QUOTAS_KINDS; k++)
        good = quotas_permit(&looks[k], claim->parts[k].count, count, now_ms, refusal);
    for (enum quotas_kind k = 0; k < QUOTAS_KINDS; k++) {
        struct quotas_part *part = &claim->parts[k];
        if (looks[k].name == NULL)
            continue;
        looks[k].name->claims--;
        if (!good)
            continue;
        if (part->name == NULL) {
            part->name = looks[k].name;
            part->name->claims++;
        }
        part->count += count;
        quota_reserve(&part->name->use, count);
    }
    return good;
}

void
quotas_settle(struct quotas *q, struct quotas_claim *claim, uint32_t sent,
              int64_t now_ms)
{
    (void)q;
    for (enum quotas_kind k = 0; k < QUOTAS_KINDS; k++) {
        struct quotas_part *part = &claim->parts[k];
        if (part->name == NULL)
            continue;
        quota_settle(&part->name->use, part->count,
                     sent < part->count ? sent : part->count, now_ms);
        part->name->claims--;
    }
    *claim = (struct quotas_claim){.parts = {{NULL, 0}}};
}

/* --- For operators, and over a restart --------------------------------------------- */

bool
quotas_reset(struct quotas *q, struct text who)
{
    struct quotas_name *name;
    struct quotas_key key;
    if (read_who(who, &key) != NULL)
        return false;
    HASH_FIND(hh, q->names, key.at, key.length, name);
    if (name == NULL)
        return false;
    uint32_t reserved = name->use.reserved;
    name->use = (struct quota_use){.reserved = reserved};
    name->told_until_ms = INT64_MIN;
    if (name->claims == 0)
        forget_name(q, name);
    return true;
}

/* The longest period of its quota. */
static bool
has_used(const struct quota *quota, const struct quota_use *use, int64_t now_ms)
{
    for (enum quota_period p = QUOTA_PERIODS; p-- > 0;)
        if (quota->amounts[p] > 0)
            return quota_used(use, p, now_ms) > 0;
    return false;
}

void
quotas_each(const struct quotas *q, int64_t now_ms,
            void (*each)(void *context, const struct quotas_state *state),
            void *context)
{
    struct quotas_name *name, *next;
    HASH_ITER (hh, q->names, name, next) {
        struct text value;
        enum quotas_kind kind = kind_of(text_from(name->key), &value);
        const struct quota *quota = find_quota(q, kind, value);
        if (quota != NULL && has_used(quota, &name->use, now_ms))
            each(context, &(struct quotas_state){name->key, quota, &name->use});
    }
}

struct quota_use *
quotas_recall(struct quotas *q, struct text who)
{
    struct text value;
    struct quotas_key key;
    enum quotas_kind kind = kind_of(who, &value);
    if (kind == QUOTAS_KINDS || !key_make(&key, kind, value) ||
        find_quota(q, kind, value) == NULL || HASH_COUNT(q->names) >= QUOTAS_NAMES_MAX)
        return NULL;
    struct quotas_name *name = get_name(q, &key, 0);
    return name != NULL ? &name->use : NULL;
}
