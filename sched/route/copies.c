/* Reads the table `copy_to`, and finds by hash the entries that match a message. */
#include "sched/route/copies.h"

#include "base/memory.h"
#include "mime/address.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { COPIES_KEY_MAX = 600 };

struct copies_row {
    UT_hash_handle hh;
    unsigned addresses; /* bits */
    char key[];
};

struct copies {
    struct copies_row *rows; /* by "sender:PATTERN" and so on, in lower case */
    unsigned all;            /* the addresses of all mail */
    char *addresses[COPIES_ADDRESSES_MAX];
    unsigned count;
};

static const struct text of_sender = TEXT("sender:"), of_recipient = TEXT("recipient:");

/* --- The table -------------------------------------------------------------------- */

static bool
copies_write_pattern(struct text pattern, struct buffer *key)
{
    struct address address;
    bool is_below = text_starts(pattern, TEXT("."));
    struct text domain = text_after(pattern, is_below ? 1 : 0);
    if (text_find(pattern, '@') != TEXT_NONE)
        return address_parse(pattern, &address) && address_write(&address, key);
    return address_is_domain(domain) && (!is_below || buffer_add_byte(key, '.')) &&
           address_write_domain(domain, key);
}

/* False: it is none. An empty key is that of all mail. */
static bool
copies_read_whose(struct text whose, struct buffer *key)
{
    bool is_sender = text_starts(whose, of_sender);
    struct text kind = is_sender ? of_sender : of_recipient;
    if (whose.length == 0 || text_equal(whose, TEXT("*")))
        return true;
    if (!text_starts(whose, kind) || !buffer_add(key, kind) ||
        !copies_write_pattern(text_after(whose, kind.length), key))
        return false;
    text_lower(key->at, key->length);
    return true;
}

static struct text
copies_at(const struct copies *c, unsigned index)
{
    return text_from(c->addresses[index]);
}

/* Its bit; 0: there are others too many. */
static unsigned
copies_bit(struct copies *c, struct text address)
{
    unsigned i = 0;
    while (i < c->count && !text_equal_nocase(copies_at(c, i), address))
        i++;
    if (i == COPIES_ADDRESSES_MAX)
        return 0;
    if (i == c->count)
        c->addresses[c->count++] = text_string(address);
    return 1U << i;
}

static const char *
copies_add_row(struct copies *c, struct text key, unsigned bit)
{
    struct copies_row *row;
    if (key.length == 0) {
        c->all |= bit;
        return NULL;
    }
    HASH_FIND(hh, c->rows, key.at, key.length, row);
    if (row == NULL) {
        if (HASH_COUNT(c->rows) == COPIES_ROWS_MAX)
            return "is one entry too many";
        row = memory_new(sizeof(*row) + key.length);
        memcpy(row->key, key.at, key.length);
        HASH_ADD_KEYPTR(hh, c->rows, row->key, key.length, row);
    }
    row->addresses |= bit;
    return NULL;
}

static const char *
copies_read_words(struct copies *c, struct text whose, struct text mailbox)
{
    struct address address;
    struct buffer key, normal;
    const char *why = NULL;
    unsigned bit = 0;
    buffer_init(&key, COPIES_KEY_MAX);
    buffer_init(&normal, COPIES_KEY_MAX);
    if (!copies_read_whose(whose, &key))
        why =
            "begins with neither sender:PATTERN nor recipient:PATTERN nor *; a PATTERN "
            "is user@domain, domain or .domain";
    else if (!address_parse(mailbox, &address) || !address_write(&address, &normal))
        why = "ends with no address user@domain";
    else if ((bit = copies_bit(c, buffer_text(&normal))) == 0)
        why = "has the 17th address; 16 may get copies";
    else
        why = copies_add_row(c, buffer_text(&key), bit);
    buffer_free(&key);
    buffer_free(&normal);
    return why;
}

static bool
copies_read_entry(struct copies *c, struct text entry, struct buffer *errors)
{
    struct text rest = text_trim(entry), first, second;
    const char *why;
    if (!text_word(&rest, " \t", &first))
        return true;
    if (!text_word(&rest, " \t", &second))
        why = copies_read_words(c, TEXT(""), first);
    else if (text_trim(rest).length > 0)
        why = "has more than two words; write one entry per line, or separate with "
              "commas";
    else
        why = copies_read_words(c, first, second);
    return why == NULL || buffer_add_error(errors, "copy_to", text_trim(entry), why);
}

struct copies *
copies_new(struct text table, struct buffer *errors)
{
    struct copies *c = memory_new(sizeof(*c));
    struct text line, entry;
    bool good = true;
    while (table.length > 0 && text_cut(&table, '\n', &line)) {
        line = text_trim(line);
        while (line.length > 0 && line.at[0] != '#' && text_cut(&line, ',', &entry))
            good = copies_read_entry(c, entry, errors) && good;
    }
    if (!good)
        copies_free(&c);
    return c;
}

void
copies_free(struct copies **copies)
{
    struct copies *c = *copies;
    struct copies_row *row, *next;
    *copies = NULL;
    if (c == NULL)
        return;
    HASH_ITER (hh, c->rows, row, next) {
        HASH_DEL(c->rows, row);
        free(row);
    }
    for (unsigned i = 0; i < c->count; i++)
        free(c->addresses[i]);
    free(c);
}

bool
copies_are_empty(const struct copies *c)
{
    return c == NULL || c->count == 0;
}

bool
copies_address(const struct copies *c, unsigned index, struct text *address)
{
    if (index >= c->count)
        return false;
    *address = copies_at(c, index);
    return true;
}

/* --- A message -------------------------------------------------------------------- */

static void
copies_look(const struct copies *c, struct copies_match *match, struct buffer *key,
            size_t kind, struct text pattern)
{
    struct copies_row *row;
    key->length = kind;
    if (!buffer_add(key, pattern))
        return;
    HASH_FIND(hh, c->rows, key->at, key->length, row);
    if (row != NULL)
        match->wanted |= row->addresses;
}

/* The address, its domain, and the domains above. */
static void
copies_look_all(const struct copies *c, struct copies_match *match, struct text kind,
                struct text address)
{
    char lower[COPIES_KEY_MAX];
    struct buffer key;
    if (c->rows == NULL || !text_copy(lower, sizeof(lower), address))
        return;
    text_lower(lower, address.length);
    address.at = lower;
    struct text domain = text_after(address, text_find_last(address, '@') + 1);
    buffer_init(&key, COPIES_KEY_MAX);
    if (buffer_add(&key, kind)) {
        copies_look(c, match, &key, kind.length, address);
        copies_look(c, match, &key, kind.length, domain);
        for (size_t at = 1; at < domain.length; at++)
            if (domain.at[at] == '.')
                copies_look(c, match, &key, kind.length, text_after(domain, at));
    }
    buffer_free(&key);
}

void
copies_add_sender(const struct copies *c, struct copies_match *match,
                  struct text address)
{
    if (address.length > 0)
        copies_look_all(c, match, of_sender, address);
}

void
copies_add_recipient(const struct copies *c, struct copies_match *match,
                     struct text address)
{
    unsigned i = 0;
    while (i < c->count && !text_equal_nocase(copies_at(c, i), address))
        i++;
    if (i < c->count)
        match->given |= 1U << i;
    else
        match->others = true;
    copies_look_all(c, match, of_recipient, address);
}

bool
copies_next(const struct copies *c, const struct copies_match *match, unsigned *at,
            struct text *address)
{
    unsigned wanted = match->others ? (c->all | match->wanted) & ~match->given : 0;
    while (*at < c->count && (wanted & 1U << *at) == 0)
        ++*at;
    return copies_address(c, (*at)++, address);
}
