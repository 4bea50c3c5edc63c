/* Which replies suppress an address, for whom, and for how long. */
#include "queue/suppression/suppression.h"

#include "base/memory.h"
#include "mime/date.h"
#include "queue/spool/appended_file.h"
#include "queue/suppression/suppression_record.h"
#include "sched/limits/refusal.h"
#include "sched/limits/reply_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FULL_SAY_MS = 3600 * 1000,
    SAME_S = 5 /* that times of one entry may differ at two hosts */
};
/* Nobody's clock may make an entry that outlasts all others. A clock that says less than
 * CLOCK_SET_S (2025) has not been set since the machine started, and judges no other; a
 * change that follows another is up to some seconds ahead (suppression_put()). */
#define CLOCK_SET_S INT64_C(1735689600)
enum { AHEAD_S = 60 };
#define REMOVED_MS (INT64_C(30) * 24 * 3600 * 1000)

struct suppression {
    struct loop *loop;
    struct log *log;
    struct suppression_settings settings;
    struct suppression_list list;
    struct appended_file file;
    size_t written; /* in the list: a file that is written anew has what is before */
    struct suppression_counts counts; /* since startup */
    int64_t full_ms;                  /* monotonic: when that was logged; 0: never */
    bool is_shared;
    size_t ahead; /* lines of the file with a time to come */
    size_t page;  /* entries before SUPPRESSION_MARK_PAGE; 0: unknown */
};

/* --- Replies ----------------------------------------------------------------------- */

/* The class of the words alone: some receivers say 5.1.1 when they refuse us. */
static enum refusal_class
reply_judge_words(const struct outcome *o, const struct outcome_sentence *said)
{
    struct outcome plain = *o;
    struct text rest = said->reply, word, words;
    char reply[OUTCOME_TEXT_MAX + 8];
    (void)!text_word(&rest, " ", &word);
    words = rest;
    if (text_word(&words, " ", &word) && word.length > 0 && word.at[0] == '5' &&
        text_find(word, '.') != TEXT_NONE)
        rest = words;
    snprintf(reply, sizeof(reply), "%03d %.*s", o->code, TEXT_ARGS(text_trim(rest)));
    outcome_say_reply(&plain, "", text_from(reply), "in reply to RCPT TO command");
    return refusal_classify(&plain);
}

static bool reply_blames_recipient(enum refusal_class class)
{
    switch (class) {
    case REFUSAL_OTHER:
    case REFUSAL_NO_USER:
    case REFUSAL_NO_DOMAIN:
        return true;
    case REFUSAL_FULL:
    case REFUSAL_TOO_BIG:
    case REFUSAL_AUTH:
    case REFUSAL_PTR:
    case REFUSAL_REPUTATION:
    case REFUSAL_CONTENT:
    case REFUSAL_SENDER:
    case REFUSAL_LOGIN:
    case REFUSAL_QUOTA:
    case REFUSAL_TLS:
    case REFUSAL_FORM:
    case REFUSAL_RELAY:
    case REFUSAL_POLICY:
    case REFUSAL_CLASSES:
        break;
    }
    return false;
}

/* Words about the sender, the client or the pace: an "unknown user" beside them may be ours. */
static bool
reply_speaks_of_us(const struct outcome_sentence *said)
{
    static const char *const phrases[] = {
        " sender",       " mail from",   " from address",    " return path",
        " helo",         " ehlo",        " callout",         " callback",
        " your account", " your domain", " your address",    " your host",
        " your ip",      " your server", " too many",        " too quickly",
        " rate limit",   " temporarily", " password",        " login",
        " client host",  " you are ",    " policy violation"};
    struct reply_words words;
    reply_words_make(&words, said->reply);
    for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++)
        if (reply_words_have(&words, phrases[i], NULL))
            return true;
    return false;
}

/* A refusal without a known meaning: with a status about the mailbox, or without any. */
static bool
reply_is_doubtful(const struct outcome *o, const struct outcome_sentence *said)
{
    struct text rest = said->reply, word;
    (void)!text_word(&rest, " ", &word);
    bool has_status =
        text_word(&rest, " ", &word) &&
        (text_starts(word, TEXT("5.")) || text_starts(word, TEXT("4."))) &&
        text_find_last(word, '.') > 1 && text_find_last(word, '.') != TEXT_NONE;
    return has_status
               ? text_starts(word, TEXT("5.2.")) || text_equal(word, TEXT("5.1.0"))
               : o->code == 550;
}

static bool
reply_is_of_rcpt(const struct outcome *o)
{
    return text_ends_nocase(text_from(o->text), TEXT("(in reply to RCPT TO command)"));
}

/* A reply to the content may be about its words, and counts less. */
enum suppression_class
suppression_judge(const struct outcome *o)
{
    struct outcome_sentence said;
    bool is_of_rcpt = reply_is_of_rcpt(o);
    if (o->verdict != VERDICT_FAILED || o->code < 500 || o->code > 599 ||
        o->blame != BLAME_MESSAGE || !outcome_reply_read(o, &said))
        return SUPPRESSION_NONE;
    enum refusal_class class = refusal_classify(o);
    if (!reply_blames_recipient(class) ||
        !reply_blames_recipient(reply_judge_words(o, &said)) ||
        reply_speaks_of_us(&said))
        return SUPPRESSION_NONE;
    if (class == REFUSAL_NO_USER)
        return is_of_rcpt ? SUPPRESSION_HARD : SUPPRESSION_DOUBTFUL;
    if (!is_of_rcpt)
        return SUPPRESSION_NONE;
    return class == REFUSAL_NO_DOMAIN || reply_is_doubtful(o, &said)
               ? SUPPRESSION_DOUBTFUL
               : SUPPRESSION_NONE;
}

/* "550 5.1.1 User unknown", without words that are an address: they differ each time. */
static void
reply_shorten(struct text text, char out[SUPPRESSION_REASON_MAX + 1])
{
    struct outcome_sentence said;
    struct text word, rest = outcome_sentence_read(text, &said) ? said.reply : text;
    struct buffer words;
    buffer_init(&words, SUPPRESSION_REASON_MAX);
    while (text_word(&rest, " \t\r\n", &word))
        if (text_find(word, '@') == TEXT_NONE &&
            (words.length == 0 || buffer_add_byte(&words, ' ')) &&
            !buffer_add(&words, word))
            break;
    suppression_reason(buffer_text(&words), out);
    buffer_free(&words);
}

/* --- Entries ----------------------------------------------------------------------- */

static int64_t
entry_until_s(const struct suppression *s, const struct suppression_entry *e)
{
    const struct suppression_settings *o = &s->settings;
    int64_t ms = e->class == SUPPRESSION_MANUAL      ? 0
                 : e->class == SUPPRESSION_REMOVED   ? REMOVED_MS
                 : e->class == SUPPRESSION_COMPLAINT ? o->complaint_ms
                                                     : o->hard_ms;
    return ms > 0 ? e->at_s + ms / 1000 : 0;
}

static int64_t
entry_time_s(const struct suppression *s, const struct suppression_entry *e)
{
    int64_t now_s = loop_now_ms(s->loop) / 1000;
    return now_s >= CLOCK_SET_S && e->at_s > now_s + AHEAD_S ? now_s : e->at_s;
}

static bool
entry_is_over(const struct suppression *s, const struct suppression_entry *e)
{
    int64_t until_s = entry_until_s(s, e);
    return until_s != 0 && until_s <= loop_now_ms(s->loop) / 1000;
}

static bool
entry_suppresses(const struct suppression *s, const struct suppression_entry *e)
{
    return (e->class != SUPPRESSION_DOUBTFUL || e->strikes >= SUPPRESSION_STRIKES) &&
           e->class != SUPPRESSION_REMOVED && !entry_is_over(s, e);
}

/* Those that are over go when room is needed. */
static void
suppression_sweep(struct suppression *s)
{
    struct suppression_entry e;
    for (size_t at = 0; suppression_list_next(&s->list, &at, &e);)
        if (entry_is_over(s, &e)) {
            e.class = SUPPRESSION_NONE;
            (void)!suppression_list_put(&s->list, &e);
        }
}

static bool
suppression_has_room(struct suppression *s)
{
    int64_t now_ms = loop_monotonic_ms(s->loop);
    if (s->list.count < (size_t)s->settings.limit)
        return true;
    /* Not for each bounce: a full list has few that are over. */
    if (s->full_ms != 0 && now_ms - s->full_ms < FULL_SAY_MS)
        return false;
    suppression_sweep(s);
    if (s->list.count < (size_t)s->settings.limit)
        return true;
    s->full_ms = now_ms;
    log_say(s->log, LOG_LEVEL_WARNING, "queue", NULL,
            "the list of suppressed addresses is full (suppress_limit = %" PRId64
            "): others are tried again",
            s->settings.limit);
    return false;
}

static bool
suppression_enter(struct suppression *s, const struct suppression_entry *entry)
{
    struct suppression_entry old;
    bool is_new = !suppression_list_get(&s->list, entry->address, entry->domain, &old);
    if (is_new && (entry->class == SUPPRESSION_NONE || !suppression_has_room(s)))
        return false;
    if (!suppression_list_put(&s->list, entry))
        return false;
    appended_file_note(&s->file,
                       suppression_record_write(entry, appended_file_lines(&s->file)));
    return true;
}

/* A change of this host. A removal is newer than what it removes, and what follows it is
 * newer than the removal: other hosts have no other order. */
static bool
suppression_put(struct suppression *s, const struct suppression_entry *entry)
{
    struct suppression_entry e = *entry, old;
    if (suppression_list_get(&s->list, e.address, e.domain, &old) &&
        (e.class == SUPPRESSION_REMOVED) != (old.class == SUPPRESSION_REMOVED) &&
        e.at_s <= old.at_s)
        e.at_s = old.at_s + 1;
    e.is_news = true;
    return suppression_enter(s, &e);
}

/* --- Questions --------------------------------------------------------------------- */

struct suppression_search {
    const struct suppression *s;
    struct text domain;
    struct suppression_entry found;
};

static struct text
sender_domain(struct text sender, char out[SUPPRESSION_DOMAIN_MAX + 1])
{
    size_t at = text_find_last(sender, '@');
    struct text domain = at == TEXT_NONE ? sender : text_after(sender, at + 1);
    (void)!text_copy(out, SUPPRESSION_DOMAIN_MAX + 1, domain);
    text_lower(out, strlen(out));
    return text_from(out);
}

static bool
search_try(void *context, const struct suppression_entry *entry)
{
    struct suppression_search *search = context;
    search->found = *entry;
    return (!search->s->settings.by_domain || entry->domain.length == 0 ||
            text_equal(entry->domain, search->domain)) &&
           entry_suppresses(search->s, entry);
}

static void
search_explain(const struct suppression_entry *e, struct outcome *refusal)
{
    static const char *const words[SUPPRESSION_CLASSES] = {
        [SUPPRESSION_NONE] = "",
        [SUPPRESSION_DOUBTFUL] = "after three bounces in a row",
        [SUPPRESSION_HARD] = "after a hard bounce",
        [SUPPRESSION_COMPLAINT] = "after a complaint",
        [SUPPRESSION_MANUAL] = "by the operator",
        [SUPPRESSION_REMOVED] = ""};
    char date[DATE_TEXT_MAX];
    date_format_utc(e->at_s * 1000, date);
    *refusal = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1",
                            "the address is suppressed since %.10s %s%s%.*s%s: `petrel "
                            "suppress rm ADDRESS` "
                            "lifts it",
                            date, words[e->class], e->reason.length > 0 ? " (" : "",
                            TEXT_ARGS(e->reason), e->reason.length > 0 ? ")" : "");
}

bool
suppression_refuses(const struct suppression *s, struct text sender,
                    struct text recipient, struct outcome *refusal)
{
    char address[SUPPRESSION_ADDRESS_MAX + 1], domain[SUPPRESSION_DOMAIN_MAX + 1];
    if (s == NULL || s->list.count == 0 || !suppression_normal(recipient, address))
        return false;
    struct suppression_search search = {.s = s,
                                        .domain = sender_domain(sender, domain)};
    if (!suppression_list_find(&s->list, text_from(address), search_try, &search))
        return false;
    search_explain(&search.found, refusal);
    return true;
}

void
suppression_used(struct suppression *s, bool at_rcpt)
{
    if (at_rcpt)
        s->counts.refused++;
    else
        s->counts.failed++;
}

struct suppression_counts
suppression_count(const struct suppression *s)
{
    struct suppression_counts counts = s->counts;
    counts.entries = s->list.count - s->list.removed;
    counts.news = s->list.news;
    counts.walked = s->list.walked;
    counts.memory = suppression_list_memory(&s->list);
    counts.limit = s->settings.limit;
    counts.is_full = s->list.count >= (size_t)s->settings.limit;
    return counts;
}

size_t
suppression_each(struct suppression *s, size_t from, size_t count,
                 bool (*each)(void *context, const struct suppression_entry *entry,
                              int64_t until_ms),
                 void *context)
{
    struct suppression_entry e;
    size_t *at = &s->list.marks[SUPPRESSION_MARK_PAGE], wanted = 0;
    if (from == 0 || from != s->page)
        s->page = *at = 0;
    while (wanted < count && suppression_list_next(&s->list, at, &e))
        if (e.class != SUPPRESSION_REMOVED && !entry_is_over(s, &e) &&
            s->page++ >= from)
            wanted += each(context, &e, entry_until_s(s, &e) * 1000);
    return wanted == count ? s->page : 0;
}

/* --- Changes ----------------------------------------------------------------------- */

/* postmaster of every domain takes mail (RFC 5321 4.5.1). */
static bool
suppression_spares(const char *address)
{
    return text_starts(text_from(address), TEXT("postmaster@"));
}

static bool
scope_count(void *context, const struct suppression_entry *entry)
{
    (void)entry;
    return ++*(unsigned *)context >= SUPPRESSION_SCOPES_MAX;
}

/* Clients that make up senders cannot make a long row of entries for one address. */
static struct text
suppression_scope(const struct suppression *s, struct text sender, const char *address,
                  char domain[SUPPRESSION_DOMAIN_MAX + 1])
{
    unsigned entries = 0;
    if (!s->settings.by_domain ||
        suppression_list_find(&s->list, text_from(address), scope_count, &entries))
        return TEXT("");
    return sender_domain(sender, domain);
}

/* A complaint outlasts a bounce, and a bounce a doubt. */
static bool
suppression_weighs_more(const struct suppression *s,
                        const struct suppression_entry *old,
                        enum suppression_class class)
{
    return entry_suppresses(s, old) && old->class >= class;
}

bool
suppression_note(struct suppression *s, struct text sender, struct text recipient,
                 enum suppression_class class, struct text reason,
                 struct suppression_entry *entry)
{
    char address[SUPPRESSION_ADDRESS_MAX + 1], domain[SUPPRESSION_DOMAIN_MAX + 1],
        words[SUPPRESSION_REASON_MAX + 1];
    struct suppression_entry old;
    if (class == SUPPRESSION_NONE || !suppression_normal(recipient, address) ||
        suppression_spares(address))
        return false;
    struct text scope = suppression_scope(s, sender, address, domain);
    bool was_there = suppression_list_get(&s->list, text_from(address), scope, &old);
    /* A notification has no domain of a sender to count for. */
    if ((s->settings.by_domain && sender.length == 0) ||
        (was_there && suppression_weighs_more(s, &old, class)))
        return false;
    bool counts_on =
        was_there && old.class == SUPPRESSION_DOUBTFUL && !entry_is_over(s, &old);
    reply_shorten(reason, words);
    *entry = (struct suppression_entry){.address = text_from(address),
                                        .domain = scope,
                                        .reason = text_from(words),
                                        .at_s = loop_now_ms(s->loop) / 1000,
                                        .class = class,
                                        .strikes = counts_on ? old.strikes + 1 : 1};
    if (!suppression_put(s, entry) || !entry_suppresses(s, entry) ||
        !suppression_list_get(&s->list, entry->address, scope, entry))
        return false;
    s->counts.added++;
    return true;
}

/* Mail that arrives ends a row of doubtful bounces. */
static void
suppression_clear_doubt(struct suppression *s, struct text sender,
                        struct text recipient)
{
    char address[SUPPRESSION_ADDRESS_MAX + 1], domain[SUPPRESSION_DOMAIN_MAX + 1];
    struct suppression_entry e;
    if (s->list.count == 0 || !suppression_normal(recipient, address))
        return;
    struct text scope =
        s->settings.by_domain ? sender_domain(sender, domain) : TEXT("");
    if (!suppression_list_get(&s->list, text_from(address), scope, &e) ||
        e.class != SUPPRESSION_DOUBTFUL || e.strikes >= SUPPRESSION_STRIKES)
        return;
    e.class = SUPPRESSION_NONE;
    (void)!suppression_put(s, &e);
}

bool
suppression_hear(struct suppression *s, struct text sender, struct text recipient,
                 bool is_alone, const struct outcome *outcome,
                 struct suppression_entry *entry)
{
    bool is_own = is_alone || reply_is_of_rcpt(outcome);
    if (outcome->verdict == VERDICT_DELIVERED)
        suppression_clear_doubt(s, sender, recipient);
    return suppression_note(s, sender, recipient,
                            is_own ? suppression_judge(outcome) : SUPPRESSION_NONE,
                            text_from(outcome->text), entry);
}

const char *
suppression_add(struct suppression *s, const struct suppression_entry *added)
{
    char address[SUPPRESSION_ADDRESS_MAX + 1];
    struct suppression_entry old, e = *added, *entry = &e;
    e.at_s = entry_time_s(s, &e);
    if (!text_copy(address, sizeof(address), entry->address))
        return "the address is too long";
    if (suppression_spares(address))
        return "postmaster must be reached, and is never suppressed";
    if (entry_is_over(s, entry))
        return "it is older than its lifetime: see suppress_bounce_lifetime";
    /* An old list shortens nothing: there may have been a complaint since. */
    if (suppression_list_get(&s->list, entry->address, entry->domain, &old) &&
        suppression_weighs_more(s, &old, entry->class) &&
        (old.class > entry->class || old.at_s > entry->at_s))
        return NULL;
    if (!suppression_put(s, entry))
        return "the list is full: see suppress_limit";
    return NULL;
}

static bool
suppression_first(void *context, const struct suppression_entry *entry)
{
    return entry->class != SUPPRESSION_REMOVED &&
           text_copy(context, SUPPRESSION_DOMAIN_MAX + 1, entry->domain);
}

size_t
suppression_remove(struct suppression *s, struct text address)
{
    char domain[SUPPRESSION_DOMAIN_MAX + 1];
    size_t count = 0;
    for (; suppression_list_find(&s->list, address, suppression_first, domain);
         count++) {
        struct suppression_entry e = {.address = address,
                                      .domain = text_from(domain),
                                      .at_s = loop_now_ms(s->loop) / 1000,
                                      .class = SUPPRESSION_REMOVED,
                                      .strikes = SUPPRESSION_REMOVED_STRIKES};
        if (!suppression_put(s, &e))
            break;
    }
    return count;
}

/* --- Other hosts ------------------------------------------------------------------- */

static bool
entry_is_told(const struct suppression *s, const struct suppression_entry *e)
{
    return e->class == SUPPRESSION_REMOVED ? !entry_is_over(s, e)
                                           : entry_suppresses(s, e);
}

bool
suppression_is_shared(const struct suppression *s)
{
    return s->is_shared;
}

void
suppression_share(struct suppression *s)
{
    struct suppression_entry e;
    s->is_shared = true;
    for (size_t at = 0; suppression_list_next(&s->list, &at, &e);) {
        e.is_news = true;
        (void)!suppression_list_put(&s->list, &e);
    }
}

static void
suppression_is_known(struct suppression *s, struct suppression_entry *e)
{
    e->is_news = false;
    (void)!suppression_list_put(&s->list, e);
}

void
suppression_each_news(struct suppression *s,
                      bool (*each)(void *context,
                                   const struct suppression_entry *entry),
                      void *context)
{
    struct suppression_entry e;
    size_t *begin = &s->list.marks[SUPPRESSION_MARK_NEWS], at = *begin;
    bool has_news = false;
    while (s->list.news > 0 && suppression_list_next(&s->list, &at, &e)) {
        if (e.is_news && !entry_is_told(s, &e))
            suppression_is_known(s, &e); /* nobody else need know it */
        else if (e.is_news && !each(context, &e))
            return;
        else
            has_news = has_news || e.is_news;
        if (!has_news)
            *begin = at;
    }
}

/* Between removals the gravest counts, else the newest; of two of one second that of the
 * others, which have it all in one order, unless ours is to follow. Without an order all
 * come to the same end by a rule. */
static bool
suppression_replaces(const struct suppression *s, const struct suppression_entry *e,
                     const struct suppression_entry *old, bool is_ordered)
{
    bool removes = e->class == SUPPRESSION_REMOVED,
         was_removed = old->class == SUPPRESSION_REMOVED;
    if (was_removed ? entry_is_over(s, old) : !entry_suppresses(s, old))
        return true;
    if (removes != was_removed)
        return e->at_s > old->at_s ||
               (e->at_s == old->at_s && (is_ordered ? !old->is_news : removes));
    return e->class > old->class || (e->class == old->class && e->at_s > old->at_s);
}

void
suppression_learn(struct suppression *s, const struct suppression_entry *learnt,
                  bool is_ordered)
{
    char address[SUPPRESSION_ADDRESS_MAX + 1];
    struct suppression_entry old, e = *learnt, *entry = &e;
    e.at_s = entry_time_s(s, &e);
    if (!text_copy(address, sizeof(address), entry->address) ||
        suppression_spares(address) || entry->class == SUPPRESSION_NONE ||
        !entry_is_told(s, entry))
        return;
    bool was_there =
        suppression_list_get(&s->list, entry->address, entry->domain, &old);
    if (was_there && old.class == entry->class && old.at_s - entry->at_s <= SAME_S &&
        entry->at_s - old.at_s <= SAME_S && entry_is_told(s, &old))
        suppression_is_known(s, &old);
    else if (!was_there || suppression_replaces(s, entry, &old, is_ordered))
        (void)!suppression_enter(s, entry);
}

/* --- Its life ---------------------------------------------------------------------- */

static bool
suppression_read(void *context, struct text line)
{
    struct suppression *s = context;
    struct suppression_record record;
    if (!suppression_record_read(line, &record))
        return false;
    int64_t at_s = entry_time_s(s, &record.entry);
    s->ahead += at_s != record.entry.at_s;
    record.entry.at_s = at_s;
    return suppression_list_put(&s->list, &record.entry);
}

/* The next start would read them once more as made then. */
static void
suppression_correct(struct suppression *s)
{
    struct suppression_entry e;
    int64_t now_s = loop_now_ms(s->loop) / 1000;
    for (size_t at = 0; s->ahead > 0 && suppression_list_next(&s->list, &at, &e);)
        if (e.at_s == now_s)
            appended_file_note(
                &s->file, suppression_record_write(&e, appended_file_lines(&s->file)));
    if (s->ahead > 0)
        log_say(s->log, LOG_LEVEL_WARNING, "queue", NULL,
                "%s: %zu lines have a time to come: they count from now on",
                s->file.path, s->ahead);
}

static bool
suppression_write(void *context, bool begins, struct buffer *out)
{
    struct suppression *s = context;
    struct suppression_entry entry;
    s->written = begins ? 0 : s->written;
    return suppression_list_next(&s->list, &s->written, &entry) &&
           suppression_record_write(&entry, out);
}

static size_t
suppression_entries(const void *context)
{
    const struct suppression *s = context;
    return s->list.count;
}

static void
suppression_hold(void *context, bool held)
{
    struct suppression *s = context;
    s->list.pinned = held;
}

static const struct appended_kind suppression_kind = {
    .title = TEXT(SUPPRESSION_TITLE),
    .program = "queue",
    .loss = "addresses that were suppressed since may be tried again",
    .sync_ms = SUPPRESSION_SYNC_MS,
    .read = suppression_read,
    .write = suppression_write,
    .count = suppression_entries,
    .hold = suppression_hold};

struct suppression *
suppression_new(struct loop *loop, struct log *log, struct disk *disk, const char *path,
                const struct suppression_settings *settings)
{
    struct suppression *s = memory_new(sizeof(*s));
    s->loop = loop;
    s->log = log;
    s->settings = *settings;
    suppression_list_init(&s->list, loop_random(loop));
    s->file = (struct appended_file){.disk = disk,
                                     .loop = loop,
                                     .log = log,
                                     .kind = &suppression_kind,
                                     .context = s};
    (void)!text_copy(s->file.path, sizeof(s->file.path), text_from(path));
    appended_file_open(&s->file);
    suppression_correct(s);
    return s;
}

void
suppression_set(struct suppression *s, const struct suppression_settings *settings)
{
    s->settings = *settings;
    s->full_ms = 0;
}

bool
suppression_settle(struct suppression *s)
{
    return appended_file_settle(&s->file);
}

void
suppression_free(struct suppression **suppression)
{
    struct suppression *s = *suppression;
    *suppression = NULL;
    if (s == NULL)
        return;
    appended_file_close(&s->file);
    suppression_list_free(&s->list);
    free(s);
}
