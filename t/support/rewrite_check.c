/* Compares the header before and after with what the table says, address by address, and
 * rewrites it once more. */
#include "t/support/rewrite_check.h"

#include "mime/address.h"
#include "mime/header.h"
#include "mime/rewrite.h"
#include "sched/route/rewrites.h"
#include "t/support/must.h"

#include <stdlib.h>
#include <string.h>

static const char hostname[] = "h.test";

/* Tables for which to rewrite twice is to rewrite once: no replacement is replaced. */
static const char *const tables[REWRITE_CHECK_TABLES] = {
    "local all@example.org\nx.test all@example.org",
    "* @relay.test",
    "example.org =\n* one@example.org",
    "a@x.test \"b c\"@example.org\nexample.org =\n.test @example.org\n* =?@example.org",
};

static const struct rewrites *
table_of(int which)
{
    static struct rewrites *made[REWRITE_CHECK_TABLES];
    struct buffer errors;
    struct rewrites_settings settings = {.hostname = hostname};
    if (which < 0 || made[which] != NULL)
        return which < 0 ? NULL : made[which];
    settings.table = text_from(tables[which]);
    buffer_init(&errors, 1000);
    made[which] = rewrites_new(&settings, &errors);
    must(made[which] != NULL);
    buffer_free(&errors);
    return made[which];
}

static void
find(const void *table, struct text address, struct rewrite_answer *answer)
{
    struct rewrites_answer found;
    rewrites_find(table, address, &found);
    answer->by_local = found.by_local;
    answer->local = found.local;
    memcpy(answer->address, found.address, sizeof(answer->address));
}

/* --- Fields ------------------------------------------------------------------------- */

enum kind { OTHER, GONE, ORIGIN, REPLIES, TARGET };

static enum kind
kind_of(struct text name)
{
    static const struct {
        const char *name;
        enum kind kind;
    } rows[] = {
        {"Bcc",                         GONE   },
        {"Resent-Bcc",                  GONE   },
        {"Return-Path",                 GONE   },
        {"X-Petrel-Tag",                GONE   },
        {"From",                        ORIGIN },
        {"Sender",                      ORIGIN },
        {"Errors-To",                   ORIGIN },
        {"Resent-From",                 ORIGIN },
        {"Resent-Sender",               ORIGIN },
        {"Return-Receipt-To",           ORIGIN },
        {"Disposition-Notification-To", ORIGIN },
        {"Reply-To",                    REPLIES},
        {"To",                          TARGET },
        {"Cc",                          TARGET },
        {"Resent-To",                   TARGET },
        {"Resent-Cc",                   TARGET },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (text_equal_nocase(name, text_from(rows[i].name)))
            return rows[i].kind;
    return OTHER;
}

static size_t
longest_line(struct text t)
{
    size_t longest = 0;
    struct text line;
    while (t.length > 0 && text_cut(&t, '\n', &line))
        longest = line.length > longest ? line.length : longest;
    return longest;
}

/* --- Addresses ---------------------------------------------------------------------- */

struct listing {
    const struct rewrites
        *table; /* NULL: what is there is listed; else what it becomes */
    bool becomes;
    enum kind kind;
    size_t count, names;
    struct buffer out;
};

static void
note_place(void *context, const struct address_place *place)
{
    struct listing *l = context;
    struct address parsed;
    struct rewrites_answer answer = {.local = false};
    struct buffer normal;
    bool bare = !address_parse(place->mailbox, &parsed), replaced = false;
    l->count++;
    l->names += place->has_name;
    buffer_init(&normal, REWRITES_ADDRESS_MAX);
    must(bare || address_write(&parsed, &normal));
    if (l->becomes && l->table != NULL) {
        struct text asked = bare ? place->mailbox : buffer_text(&normal);
        rewrites_find(l->table, asked, &answer);
        replaced = answer.address[0] != '\0' &&
                   !text_equal(asked, text_from(answer.address)) &&
                   (l->kind == ORIGIN ||
                    (l->kind == REPLIES ? answer.local : answer.by_local));
    }
    /* A dot behind the domain goes. */
    bool dotted = l->becomes && !bare &&
                  place->mailbox.at[place->mailbox.length - 1] == '.';
    if (replaced)
        must(buffer_format(&l->out, "%s\n", answer.address));
    else
        must(buffer_format(&l->out, "%.*s%s%s\n",
                           TEXT_ARGS(text_before(place->mailbox,
                                                 place->mailbox.length - dotted)),
                           l->becomes && bare ? "@" : "",
                           l->becomes && bare ? hostname : ""));
    buffer_free(&normal);
}

static size_t
list_field(struct listing *l, struct text value)
{
    buffer_init(&l->out, 4 * 1024 * 1024);
    return address_list_read(value, note_place, NULL, l);
}

/* One field before and after. */
static void
check_field(const struct header_field *old, const struct header_field *new,
            const struct rewrites *table)
{
    enum kind kind = kind_of(old->name);
    struct listing want = {.table = table, .becomes = true, .kind = kind},
                   got = {.kind = kind};
    /* The last line may get an end. */
    struct text behind_old = text_without_line_end(
        text_after(old->whole, (size_t)(old->value.at - old->whole.at)));
    struct text behind_new =
        text_without_line_end(text_after(new->whole, old->name.length + 1));
    must(text_equal(old->name, new->name) && new->whole.at[new->name.length] == ':');
    if (kind == OTHER) {
        must(text_equal(behind_old, behind_new));
        return;
    }
    size_t broken = list_field(&want, old->value);
    if (broken > 0 || want.count > REWRITE_ADDRESSES_MAX ||
        old->value.length > REWRITE_FIELD_MAX) {
        must(text_equal(behind_old, behind_new));
    } else {
        must(list_field(&got, new->value) == 0);
        must(got.count == want.count && got.names >= want.names);
        must(text_equal(buffer_text(&want.out), buffer_text(&got.out)));
        /* Lines are folded before addresses; what is long behind one stays. */
        must(longest_line(new->whole) <= 999 || longest_line(old->whole) > 800);
    }
    buffer_free(&want.out);
    buffer_free(&got.out);
}

static bool
next_kept(struct text *rest, struct header_field *f)
{
    while (header_next(rest, f))
        if (kind_of(f->name) != GONE)
            return true;
    return false;
}

/* Field by field; a From or Reply-To that was added, and a Sender that has gone, are
 * passed over. One of several Senders may have gone: any of them. */
static void
check_fields(struct text before, struct text after, const struct rewrites *table)
{
    struct header_field old, new;
    bool has_from = false, has_reply = false, added_from = false, added_reply = false;
    unsigned senders = 0;
    for (struct text rest = before; header_next(&rest, &old);) {
        has_from = has_from || text_equal_nocase(old.name, TEXT("From"));
        has_reply = has_reply || text_equal_nocase(old.name, TEXT("Reply-To"));
        senders += text_equal_nocase(old.name, TEXT("Sender"));
    }
    while (senders < 2 && next_kept(&before, &old)) {
        struct text rest = after;
        bool more = header_next(&after, &new);
        if (more && !has_from && !added_from && text_equal(new.name, TEXT("From"))) {
            added_from = true;
            rest = after;
            more = header_next(&after, &new);
        }
        if (more && !has_reply && !added_reply &&
            text_equal(new.name, TEXT("Reply-To"))) {
            added_reply = true;
            rest = after;
            more = header_next(&after, &new);
        }
        if (text_equal_nocase(old.name, TEXT("Sender")) &&
            (!more || !text_equal(new.name, old.name))) {
            after = rest;
            continue;
        }
        must(more && kind_of(new.name) != GONE);
        check_field(&old, &new, table);
    }
}

static void
nothing(void *context, const struct address_place *place)
{
    (void)place;
    ++*(size_t *)context;
}

/* The first From, which was made anew, can be parsed. */
static void
check_made_from(struct text after)
{
    struct header_field f;
    size_t count = 0;
    do
        must(header_next(&after, &f));
    while (!text_equal_nocase(f.name, TEXT("From")));
    must(address_list_read(f.value, nothing, NULL, &count) == 0 && count > 0);
}

void
rewrite_check(struct text sender, struct text header, int which)
{
    const struct rewrites *table = table_of(which);
    struct rewrite r = {.hostname = text_from(hostname),
                        .sender = sender,
                        .find = table != NULL ? find : NULL,
                        .table = table};
    struct buffer once, twice;
    buffer_init(&once,
                64 * header.length + 2000); /* each "e;" gets a name and a domain */
    buffer_init(&twice, 64 * header.length + 2000);
    must(rewrite_header(&r, header, &once));
    if (r.made_from || r.quoted_name)
        check_made_from(buffer_text(&once));
    else
        check_fields(header, buffer_text(&once), table);
    must(rewrite_header(&r, buffer_text(&once), &twice));
    must(text_equal(buffer_text(&once), buffer_text(&twice)));
    buffer_free(&once);
    buffer_free(&twice);
}
