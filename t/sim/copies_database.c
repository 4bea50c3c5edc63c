/* Hashes and lists, and the scripts of queue/copies/. */
#include "t/sim/copies_database.h"

#include "base/crypto/digest.h"
#include "base/id.h"
#include "base/memory.h"
#include "queue/copies/adoption_scripts.h"
#include "queue/copies/copies_scripts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { SCRIPTS = 9 };

/* A field of a hash, or of a list, whose names are numbers from 0 on. */
struct field {
    UT_hash_handle hh;
    char *name, *bytes;
    size_t length;
    uint64_t number; /* rising in the order of the hash */
};

struct key {
    UT_hash_handle hh;
    char *name;
    struct field *fields;
};

struct copies_database {
    struct key *keys;
    uint64_t fields;
};

/* The words of a call. */
struct call {
    struct copies_database *d;
    const struct text *keys, *args; /* as Lua counts them, from 1 on */
    size_t arg_count;
    struct buffer *out;
    bool has_fence; /* the script has COPIES_FENCE */
};

/* --- Data -------------------------------------------------------------------------- */

static char *
copy_of(struct text t)
{
    char *bytes = memory_new(t.length + 1);
    memcpy(bytes, t.at, t.length);
    return bytes;
}

static void
field_free(struct key *k, struct field *f)
{
    HASH_DEL(k->fields, f);
    free(f->name);
    free(f->bytes);
    free(f);
}

static struct key *
key_find(const struct copies_database *d, struct text name)
{
    struct key *k;
    HASH_FIND(hh, d->keys, name.at, name.length, k);
    return k;
}

static void
key_drop(struct copies_database *d, struct text name)
{
    struct key *k = key_find(d, name);
    struct field *f, *next;
    if (k == NULL)
        return;
    HASH_ITER (hh, k->fields, f, next)
        field_free(k, f);
    HASH_DEL(d->keys, k);
    free(k->name);
    free(k);
}

static void
key_rename(struct copies_database *d, struct text from, struct text to)
{
    struct key *k = key_find(d, from);
    key_drop(d, to);
    HASH_DEL(d->keys, k);
    free(k->name);
    k->name = copy_of(to);
    HASH_ADD_KEYPTR(hh, d->keys, k->name, to.length, k);
}

static struct field *
field_find(const struct copies_database *d, struct text key, struct text name)
{
    struct key *k = key_find(d, key);
    struct field *f = NULL;
    if (k != NULL)
        HASH_FIND(hh, k->fields, name.at, name.length, f);
    return f;
}

static struct text
get(const struct copies_database *d, struct text key, struct text name)
{
    const struct field *f = field_find(d, key, name);
    return f != NULL ? text_of(f->bytes, f->length) : (struct text){0};
}

static void
set(struct copies_database *d, struct text key, struct text name, struct text bytes)
{
    struct key *k = key_find(d, key);
    struct field *f = field_find(d, key, name);
    char *fresh = copy_of(bytes);
    if (k == NULL) {
        k = memory_new(sizeof(*k));
        k->name = copy_of(key);
        HASH_ADD_KEYPTR(hh, d->keys, k->name, key.length, k);
    }
    if (f == NULL) {
        f = memory_new(sizeof(*f));
        f->name = copy_of(name);
        f->number = ++d->fields;
        HASH_ADD_KEYPTR(hh, k->fields, f->name, name.length, f);
    }
    free(f->bytes);
    f->bytes = fresh;
    f->length = bytes.length;
}

/* As in Redis, a hash without fields is none. */
static void
unset(struct copies_database *d, struct text key, struct text name)
{
    struct field *f = field_find(d, key, name);
    struct key *k = key_find(d, key);
    if (f != NULL)
        field_free(k, f);
    if (k != NULL && k->fields == NULL)
        key_drop(d, key);
}

static size_t
size_of(const struct copies_database *d, struct text key)
{
    const struct key *k = key_find(d, key);
    return k != NULL ? HASH_COUNT(k->fields) : 0;
}

struct copies_database *
copies_database_new(void)
{
    return memory_new(sizeof(struct copies_database));
}

struct copies_database *
copies_database_copy(const struct copies_database *d)
{
    struct copies_database *copy = copies_database_new();
    for (const struct key *k = d->keys; k != NULL; k = k->hh.next)
        for (const struct field *f = k->fields; f != NULL; f = f->hh.next)
            set(copy, text_from(k->name), text_from(f->name),
                text_of(f->bytes, f->length));
    return copy;
}

void
copies_database_flush(struct copies_database *d)
{
    while (d->keys != NULL)
        key_drop(d, text_from(d->keys->name));
}

void
copies_database_free(struct copies_database **d)
{
    if (*d != NULL)
        copies_database_flush(*d);
    free(*d);
    *d = NULL;
}

static bool
is_message(const char *name)
{
    return strcmp(name, "n") != 0 && strchr(name, ':') == NULL;
}

void
copies_database_each(const struct copies_database *d,
                     void (*met)(void *context, const char *key, const char *id,
                                 struct text field),
                     void *context)
{
    struct id id;
    for (const struct key *k = d->keys; k != NULL; k = k->hh.next)
        for (const struct field *f = k->fields; f != NULL; f = f->hh.next)
            if (strstr(k->name, ":adopted") == NULL && is_message(f->name) &&
                id_parse(text_from(f->name), &id))
                met(context, k->name, f->name, text_of(f->bytes, f->length));
}

static void
count_one(void *context, const char *key, const char *id, struct text field)
{
    size_t *count = context;
    (void)key;
    (void)id;
    (void)field;
    ++*count;
}

size_t
copies_database_count(const struct copies_database *d)
{
    size_t count = 0;
    copies_database_each(d, count_one, &count);
    return count;
}

struct text
copies_database_field(const struct copies_database *d, const char *key,
                      const char *field)
{
    return get(d, text_from(key), text_from(field));
}

void
copies_database_set(struct copies_database *d, const char *key, const char *field,
                    const char *bytes)
{
    set(d, text_from(key), text_from(field), text_from(bytes));
}

void
copies_database_drop(struct copies_database *d, const char *key, const char *field)
{
    unset(d, text_from(key), text_from(field));
}

/* --- Steps of scripts ---------------------------------------------------------------- */

static void
say(struct call *c, struct text t)
{
    bool fits = buffer_add(c->out, t);
    assert(fits);
}

static struct text
joined(struct text a, const char *b, char *out, size_t size)
{
    int length = snprintf(out, size, "%.*s%s", TEXT_ARGS(a), b);
    assert(length > 0 && (size_t)length < size);
    return text_of(out, (size_t)length);
}

static bool
fenced(struct call *c, struct text owner)
{
    buffer_clear(c->out);
    say(c, TEXT(COPIES_FENCED));
    say(c, owner.at != NULL ? owner : TEXT("nobody"));
    return false;
}

static struct text
owner_of(const struct call *c)
{
    return get(c->d, c->keys[1], c->args[2]);
}

static bool
is_owner(const struct call *c)
{
    struct text owner = owner_of(c);
    return owner.at != NULL && text_equal(owner, c->args[1]);
}

static uint64_t
number_of(struct text t)
{
    uint64_t number = 0;
    bool good = text_number(t, UINT64_MAX, &number);
    assert(good);
    return number;
}

/* RPUSH, of which what is at that place and behind it is replaced. */
static bool
push(struct copies_database *d, struct text key, uint64_t at, struct text bytes)
{
    char name[24];
    size_t count = at == 0 ? 0 : size_of(d, key);
    if (at == 0)
        key_drop(d, key);
    for (; count > at; count--) {
        snprintf(name, sizeof(name), "%zu", count - 1);
        unset(d, key, text_from(name));
    }
    snprintf(name, sizeof(name), "%" PRIu64, at);
    set(d, key, text_from(name), bytes);
    return size_of(d, key) == at + 1;
}

static void
join_list(const struct copies_database *d, struct text key, struct buffer *out)
{
    char name[24];
    for (size_t i = 0; i < size_of(d, key); i++) {
        snprintf(name, sizeof(name), "%zu", i);
        bool fits = buffer_add(out, get(d, key, text_from(name)));
        assert(fits);
    }
}

/* --- The scripts ------------------------------------------------------------------- */

static void
store_form(struct call *c, struct text id, struct text form, bool is_change)
{
    char key[1024];
    struct buffer parts, changed;
    struct text was = get(c->d, c->keys[2], id), number;
    buffer_init(&parts, SIZE_MAX / 2);
    buffer_init(&changed, SIZE_MAX / 2);
    snprintf(key, sizeof(key), "%.*s:%.*s:e", TEXT_ARGS(c->keys[2]), TEXT_ARGS(id));
    if (form.length == 0) {
        join_list(c->d, text_from(key), &parts);
        key_drop(c->d, text_from(key));
        form = buffer_text(&parts);
    }
    size_t head = text_find(form, '\n');
    if (is_change && head != TEXT_NONE && text_cut(&was, '\n', &number)) {
        bool fits = buffer_add(&changed, number) &&
                    buffer_add(&changed, text_of(form.at + head, form.length - head));
        assert(fits);
        form = buffer_text(&changed);
    }
    set(c->d, c->keys[2], id, form);
    buffer_free(&parts);
    buffer_free(&changed);
}

/* How many words the operation has. 0: a part is missing. */
static size_t
store_one(struct call *c, size_t i, struct buffer *missing)
{
    char op = c->args[i].at[0], chunks[1024], fresh[1024], parts[1024], content[64];
    struct text id = c->args[i + 1];
    snprintf(chunks, sizeof(chunks), "%.*s:%.*s", TEXT_ARGS(c->keys[2]), TEXT_ARGS(id));
    joined(text_from(chunks), ":n", fresh, sizeof(fresh));
    joined(text_from(chunks), ":e", parts, sizeof(parts));
    joined(id, ":c", content, sizeof(content));
    switch (op) {
    case 'E':
        unset(c->d, c->keys[2], id);
        unset(c->d, c->keys[2], text_from(content));
        key_drop(c->d, text_from(chunks));
        key_drop(c->d, text_from(fresh));
        key_drop(c->d, text_from(parts));
        return 2;
    case 'L':
    case 'P':
        return push(c->d, text_from(op == 'L' ? fresh : parts),
                    number_of(c->args[i + 2]), c->args[i + 3])
                   ? 4
                   : 0;
    case 'C':
        set(c->d, c->keys[2], text_from(content), c->args[i + 2]);
        key_drop(c->d, text_from(chunks));
        key_drop(c->d, text_from(fresh));
        return 3;
    default:
        if (op == 'S' || field_find(c->d, c->keys[2], id) != NULL)
            store_form(c, id, c->args[i + 2], op == 'M');
        if (op == 'S' && size_of(c->d, text_from(fresh)) > 0) {
            key_rename(c->d, text_from(fresh), text_from(chunks));
            unset(c->d, c->keys[2], text_from(content));
        }
        if (op != 'S' && field_find(c->d, c->keys[2], id) == NULL &&
            !buffer_format(missing, " %.*s", TEXT_ARGS(id)))
            abort();
        return 3;
    }
}

/* COPIES_FENCE. */
static struct text
fence_of(const struct call *c)
{
    char adopted[300];
    struct text owner = owner_of(c);
    snprintf(adopted, sizeof(adopted), "%.*s:adopted", TEXT_ARGS(c->keys[2]));
    return owner.at == NULL && key_find(c->d, text_from(adopted)) != NULL ? TEXT("somebody") : owner;
}

static bool
run_store(struct call *c)
{
    struct text owner = fence_of(c);
    struct buffer missing;
    if (c->has_fence && owner.at != NULL && !text_equal(owner, c->args[1]))
        return fenced(c, owner);
    struct text was = get(c->d, c->keys[2], TEXT("n"));
    if (was.length > 0 && number_of(was) >= number_of(c->args[3])) {
        say(c, TEXT(COPIES_STALE));
        return false;
    }
    if (owner.at == NULL)
        set(c->d, c->keys[1], c->args[2], c->args[1]);
    say(c, get(c->d, c->keys[2], TEXT("n")));
    buffer_init(&missing, 1 << 20);
    for (size_t i = 4, used; i <= c->arg_count; i += used)
        if ((used = store_one(c, i, &missing)) == 0) {
            buffer_free(&missing);
            buffer_clear(c->out);
            say(c, TEXT("ERR user_script: a part is missing"));
            return false;
        }
    set(c->d, c->keys[2], TEXT("n"), c->args[3]);
    say(c, TEXT(" "));
    say(c, c->args[3]);
    say(c, buffer_text(&missing));
    buffer_free(&missing);
    return true;
}

static bool
run_farewell(struct call *c)
{
    char adopted[1024];
    struct text owner = fence_of(c);
    if (c->has_fence && owner.at != NULL && !text_equal(owner, c->args[1]))
        return fenced(c, owner);
    snprintf(adopted, sizeof(adopted), "%.*s:adopted", TEXT_ARGS(c->keys[2]));
    if (size_of(c->d, text_from(adopted)) == 0 &&
        size_of(c->d, c->keys[2]) == (get(c->d, c->keys[2], TEXT("n")).at != NULL))
        unset(c->d, c->keys[1], c->args[2]);
    return true;
}

static bool
run_beat(struct call *c)
{
    const struct key *owners = key_find(c->d, c->keys[1]);
    if (c->args[3].length == 0)
        unset(c->d, c->keys[2], c->args[1]);
    else
        set(c->d, c->keys[2], c->args[1], c->args[3]);
    for (const struct field *f = owners != NULL ? owners->fields : NULL; f != NULL;
         f = f->hh.next) {
        struct text owner = text_of(f->bytes, f->length),
                    beat = get(c->d, c->keys[2], owner);
        bool fits = buffer_format(c->out, "%s%s %.*s %.*s",
                                  f != owners->fields ? "\n" : "", f->name,
                                  TEXT_ARGS(owner), (int)(beat.at ? beat.length : 1),
                                  beat.at ? beat.at : "-");
        assert(fits);
    }
    return true;
}

static bool
run_claim(struct call *c)
{
    struct text owner = owner_of(c), beat = TEXT("-");
    if (owner.at != NULL && get(c->d, c->keys[3], owner).at != NULL)
        beat = get(c->d, c->keys[3], owner);
    if (!is_owner(c)) {
        if (!text_equal(owner, c->args[3]) ||
            (owner.at != NULL && !text_equal(beat, c->args[4])))
            return fenced(c, owner);
        if (owner.at != NULL)
            unset(c->d, c->keys[3], owner);
        set(c->d, c->keys[1], c->args[2], c->args[1]);
    }
    struct text number = get(c->d, c->keys[2], TEXT("n"));
    bool fits = buffer_format(c->out, "%.*s %zu", (int)(number.at ? number.length : 1),
                              number.at ? number.at : "-", size_of(c->d, c->keys[4]));
    assert(fits);
    return true;
}

/* So many fields a page, in the order of the hash: the cursor is the number of the first. As in
 * Redis, those that are there all the time are seen. */
static bool
run_page(struct call *c)
{
    const struct key *k = key_find(c->d, c->keys[2]);
    uint64_t from = number_of(c->args[3]), most = number_of(c->args[4]), next = 0;
    struct buffer page;
    if (!is_owner(c))
        return fenced(c, owner_of(c));
    buffer_init(&page, 1 << 20);
    for (const struct field *f = k != NULL ? k->fields : NULL; f != NULL; f = f->hh.next) {
        struct text bytes = text_of(f->bytes, f->length);
        struct text word = text_before(bytes, text_find(bytes, '\n'));
        if (f->number < from)
            continue;
        if (most-- == 0) {
            next = f->number;
            break;
        }
        if (is_message(f->name) &&
            !buffer_format(&page, " %s %.*s", f->name, TEXT_ARGS(word)))
            abort();
    }
    bool fits = buffer_format(c->out, "%" PRIu64 "%.*s", next,
                              TEXT_ARGS(buffer_text(&page)));
    assert(fits);
    buffer_free(&page);
    return true;
}

static bool
run_piece(struct call *c)
{
    struct buffer chunks;
    char name[64];
    if (!is_owner(c))
        return fenced(c, owner_of(c));
    buffer_init(&chunks, SIZE_MAX / 2);
    bool is_form = text_equal(c->args[4], TEXT("form"));
    struct text all = get(c->d, c->keys[2],
                          is_form ? c->args[3]
                                  : joined(c->args[3], ":c", name, sizeof(name)));
    if (!is_form && all.at == NULL) {
        join_list(c->d, c->keys[3], &chunks);
        all = buffer_text(&chunks);
    }
    say(c, text_before(text_after(all, number_of(c->args[5])), number_of(c->args[6])));
    buffer_free(&chunks);
    return true;
}

static bool
run_taken(struct call *c)
{
    struct text there = get(c->d, c->keys[3], c->args[3]);
    char name[1024];
    if (!is_owner(c) && there.at == NULL)
        there = get(c->d, joined(c->keys[3], ":past", name, sizeof(name)), c->args[3]);
    if (there.at != NULL && text_equal(there, c->args[4])) {
        say(c, TEXT("ours"));
        return true;
    }
    if (!is_owner(c) || there.at != NULL) {
        struct text number = get(c->d, c->keys[2], TEXT("n"));
        bool is_theirs = there.at != NULL || field_find(c->d, c->keys[2], c->args[3]) ||
                         (c->args[5].length > 0 && number.length > 0 &&
                          number_of(number) >= number_of(c->args[5]));
        say(c, is_theirs ? TEXT("theirs") : TEXT("nobody's"));
        return true;
    }
    set(c->d, c->keys[3], c->args[3], c->args[4]);
    unset(c->d, c->keys[2], c->args[3]);
    unset(c->d, c->keys[2], joined(c->args[3], ":c", name, sizeof(name)));
    key_drop(c->d, c->keys[4]);
    key_drop(c->d, joined(c->keys[4], ":e", name, sizeof(name)));
    say(c, TEXT("ours"));
    return true;
}

static bool
run_done(struct call *c)
{
    if (!is_owner(c))
        return fenced(c, owner_of(c));
    if (size_of(c->d, c->keys[2]) >
        (size_t)(field_find(c->d, c->keys[2], TEXT("n")) != NULL)) {
        if (c->args[4].length > 0)
            set(c->d, c->keys[1], c->args[2], c->args[4]);
        say(c, TEXT("more"));
        return true;
    }
    key_drop(c->d, c->keys[2]);
    unset(c->d, c->keys[1], c->args[2]);
    set(c->d, c->keys[3], TEXT(":"), TEXT(""));
    say(c, TEXT("done"));
    return true;
}

static bool
run_forget(struct call *c)
{
    if (!is_owner(c))
        return fenced(c, owner_of(c));
    char past[1024];
    if (key_find(c->d, c->keys[2]) != NULL)
        key_rename(c->d, c->keys[2], joined(c->keys[2], ":past", past, sizeof(past)));
    say(c, TEXT("done"));
    return true;
}

static struct known {
    const char *text;
    bool (*run)(struct call *c);
    char sum[41];
} known[SCRIPTS];

static void
know(void)
{
    size_t count = 0;
    const struct known all[SCRIPTS] = {
        {copies_script_store,          run_store,   ""},
        {copies_script_farewell,       run_farewell, ""},
        {adoption_script_beat.text,    run_beat,    ""},
        {adoption_script_claim.text,   run_claim,   ""},
        {adoption_script_page.text,    run_page,    ""},
        {adoption_script_piece.text,   run_piece,   ""},
        {adoption_script_taken.text,   run_taken,   ""},
        {adoption_script_done.text,    run_done,    ""},
        {adoption_script_forget.text,  run_forget,  ""},
    };
    for (; count < SCRIPTS; count++) {
        known[count] = all[count];
        digest_sha1_hex(text_from(known[count].text), known[count].sum);
    }
}

static struct known *
find_known(const char *word, bool by_sum)
{
    if (known[0].text == NULL)
        know();
    for (size_t i = 0; i < SCRIPTS; i++)
        if (strcmp(by_sum ? known[i].sum : known[i].text, word) == 0)
            return &known[i];
    return NULL;
}

const char *
copies_database_script(const char *word, bool by_sum)
{
    const struct known *k = find_known(word, by_sum);
    return k != NULL ? k->text : NULL;
}

bool
copies_database_run(struct copies_database *d, const char *script,
                    const struct text *words, size_t count, struct buffer *reply)
{
    const struct known *k = find_known(script, false);
    assert(k != NULL && count > 0);
    size_t keys = (size_t)number_of(words[0]);
    assert(keys < count);
    struct call c = {.d = d,
                     .keys = words,
                     .args = words + keys,
                     .arg_count = count - 1 - keys,
                     .out = reply,
                     .has_fence = strstr(script, COPIES_FENCE) != NULL};
    return k->run(&c);
}
