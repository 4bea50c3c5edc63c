/* The table of aliases, and its expansion. */
#include "sched/route/aliases.h"

#include "base/arena.h"
#include "base/memory.h"
#include "sched/route/route.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum {
    /* All names are expanded once when the table is made, and that takes no longer than
     * this. */
    ALIASES_STEPS_MAX = 20 * 1000 * 1000,
    ALIASES_ERRORS_MAX = 50
};

static const struct text owner_prefix = TEXT("owner-");

struct aliases_value {
    struct aliases_value *next;
    bool exact;
    struct text address; /* empty: before the text that :include: has read */
};

struct aliases_name {
    UT_hash_handle hh;
    const char *name; /* as alias_go_on() reports it; "" is the setting root */
    const char *file;
    unsigned line;
    bool is_owned;                /* owner-NAME exists */
    struct aliases_value *values; /* in their order */
    struct aliases_value **end;
    uint64_t walked; /* the last walk that has visited it */
};

struct aliases {
    struct arena arena; /* all names and values */
    struct aliases_name *names;
    struct aliases_name root;       /* the setting; values NULL: unset */
    struct aliases_name *catch_all; /* "*"; or NULL */
    bool has_local;
    /* Whether there are names of these forms: if not, no look-up. */
    bool has_domains, has_wildcards, has_owners;
    size_t value_count;
    uint64_t walks;
};

/* --- Looking up ------------------------------------------------------------------- */

static struct aliases_name *
aliases_find(const struct aliases *a, struct text key)
{
    struct aliases_name *found;
    HASH_FIND(hh, a->names, key.at, key.length, found);
    return found;
}

/* The local part without +tag; all of it if it has none. */
static struct text
without_tag(struct text local)
{
    size_t plus =
        local.length > 0 && local.at[0] != '"' ? text_find(local, '+') : TEXT_NONE;
    return plus == TEXT_NONE || plus == 0 ? local : text_before(local, plus);
}

/* LOCAL@DOMAIN and, in a local domain, LOCAL. */
static struct aliases_name *
aliases_find_user(const struct aliases *a, struct text local, struct text domain,
                  bool is_local)
{
    char key[ALIAS_NAME_MAX];
    struct aliases_name *found = NULL;
    size_t length = local.length + 1 + domain.length;
    if (a->has_domains && length < sizeof(key)) {
        memcpy(key, local.at, local.length);
        key[local.length] = '@';
        memcpy(key + local.length + 1, domain.at, domain.length);
        found = aliases_find(a, text_of(key, length));
    }
    return found == NULL && is_local ? aliases_find(a, local) : found;
}

static bool
is_of_root(struct text user)
{
    return text_equal(user, TEXT("root")) || text_equal(user, TEXT("postmaster")) ||
           text_equal(user, TEXT("abuse"));
}

/* A local user that has neither a mailbox nor a route: "*" alone matches. */
static bool
is_unclaimed(const struct aliases *a, const struct route_table *routes,
             struct text address)
{
    static const struct address elsewhere = {.local = TEXT("x"),
                                             .domain = TEXT("invalid")};
    struct address parsed;
    if (a->has_local || !address_parse(address, &parsed))
        return false;
    const struct target *target = route_find(routes, &parsed);
    return target->kind == TARGET_UNKNOWN || target == route_find(routes, &elsewhere);
}

/* NULL: it has no alias. key: in lower case. */
static struct aliases_name *
aliases_look_up(struct aliases *a, const struct aliases_question *q, struct text key)
{
    size_t at = text_find_last(key, '@');
    if (at == TEXT_NONE)
        return NULL;
    struct text local = text_before(key, at), domain = text_after(key, at + 1);
    struct text user = without_tag(local);
    bool is_local = route_is_local_domain(q->routes, domain);
    struct aliases_name *found = aliases_find_user(a, local, domain, is_local);
    if (found == NULL && user.length < local.length)
        found = aliases_find_user(a, user, domain, is_local);
    if (found == NULL && a->has_wildcards)
        found = aliases_find(a, text_after(key, at));
    bool is_rooted = is_local && a->root.values != NULL;
    if (found == NULL && is_rooted && is_of_root(user))
        found = &a->root;
    if (found == NULL && is_local)
        found = a->catch_all;
    if (found == NULL && is_rooted && q->ours && is_unclaimed(a, q->routes, key))
        found = &a->root;
    return found;
}

/* --- Expanding -------------------------------------------------------------------- */

enum walk_trouble { WALK_GOOD, WALK_CIRCLE, WALK_DEEP, WALK_MANY, WALK_LONG };

struct aliases_walk {
    struct aliases *aliases;
    const struct aliases_question *question;
    aliases_each *each;
    void *context;
    uint64_t number;
    const struct aliases_name *path[ALIASES_DEPTH_MAX];
    unsigned depth;
    size_t members, look_ups;
    uint64_t *steps; /* counted here; NULL: not */
    bool ended;      /* each() wants no more */
    enum walk_trouble trouble;
    const struct aliases_name *troubled;
};

static void
walk_fail(struct aliases_walk *w, enum walk_trouble trouble,
          const struct aliases_name *at)
{
    if (w->trouble == WALK_GOOD)
        w->troubled = at;
    w->trouble = w->trouble == WALK_GOOD ? trouble : w->trouble;
    w->ended = true;
}

static void
walk_member(struct aliases_walk *w, struct text address, struct text owner)
{
    if (w->members++ >= ALIASES_MEMBERS_MAX)
        walk_fail(w, WALK_MANY, w->path[0]);
    else if (w->each != NULL &&
             !w->each(w->context,
                      &(struct aliases_member){.address = address, .owner = owner}))
        w->ended = true;
}

static bool
walk_is_on_path(const struct aliases_walk *w, const struct aliases_name *name)
{
    for (unsigned i = 0; i < w->depth; i++)
        if (w->path[i] == name)
            return true;
    return false;
}

/* The address of a value with its domain. False: too long for an address. */
static bool
walk_qualify(const struct aliases_walk *w, struct text value, char out[ALIAS_NAME_MAX])
{
    struct text first = route_first_local_domain(w->question->routes);
    bool has_domain = value.at[0] != '"' ? text_find(value, '@') != TEXT_NONE
                                         : value.at[value.length - 1] != '"';
    int length =
        snprintf(out, ALIAS_NAME_MAX, "%.*s%s%.*s", TEXT_ARGS(value),
                 has_domain ? "" : "@", has_domain ? 0 : (int)first.length, first.at);
    return length > 0 && length < ALIAS_NAME_MAX;
}

/* key: the address by which the name was found. */
static struct text
walk_owner(const struct aliases_name *name, struct text key, char out[ALIAS_NAME_MAX])
{
    struct text plain = text_from(name->name);
    plain = text_before(plain, text_find_last(plain, '@'));
    int length = snprintf(out, ALIAS_NAME_MAX, "owner-%.*s%.*s", TEXT_ARGS(plain),
                          TEXT_ARGS(text_after(key, text_find_last(key, '@'))));
    return length > 0 && length < ALIAS_NAME_MAX ? text_from(out) : TEXT("");
}

/* Recursion is as deep as the path: ALIASES_DEPTH_MAX. A name is visited once in a walk,
 * so that the work is bounded by the table; key is the address that led there. */
static void
walk_name(struct aliases_walk *w, struct aliases_name *name, struct text key,
          struct text owner)
{
    char address[ALIAS_NAME_MAX], lower[ALIAS_NAME_MAX], owned[ALIAS_NAME_MAX];
    if (w->depth == ALIASES_DEPTH_MAX) {
        walk_fail(w, WALK_DEEP, name);
        return;
    }
    name->walked = w->number;
    w->path[w->depth++] = name;
    if (name->is_owned)
        owner = walk_owner(name, key, owned);
    for (const struct aliases_value *v = name->values; v != NULL && !w->ended;
         v = v->next) {
        if (w->steps != NULL)
            ++*w->steps;
        if (w->look_ups++ >= ALIASES_LOOK_UPS_MAX) {
            walk_fail(w, WALK_LONG, w->path[0]);
            break;
        }
        if (v->address.length == 0 || !walk_qualify(w, v->address, address) ||
            !alias_key(text_from(address), lower))
            continue;
        struct aliases_name *next =
            v->exact ? NULL
                     : aliases_look_up(w->aliases, w->question, text_from(lower));
        if (next == NULL || next == name)
            walk_member(w, text_from(address), owner);
        else if (walk_is_on_path(w, next))
            walk_fail(w, WALK_CIRCLE, next);
        else if (next->walked != w->number)
            walk_name(w, next, text_from(lower), owner);
    }
    w->depth--;
}

static void
walk_begin(struct aliases_walk *w, struct aliases_name *name, struct text key)
{
    w->number = ++w->aliases->walks;
    walk_name(w, name, key, TEXT(""));
}

static enum aliases_answer
aliases_answer(const struct aliases_name *name, const struct aliases_walk *w)
{
    if (w->trouble != WALK_GOOD)
        return ALIASES_TOO_MANY;
    if (w->members == 0)
        return ALIASES_EMPTY;
    if (name->is_owned)
        return ALIASES_LIST;
    return w->members > 1 ? ALIASES_SEVERAL : ALIASES_ONE;
}

enum aliases_answer
aliases_expand(struct aliases *a, const struct aliases_question *question,
               aliases_each *each, void *context)
{
    char key[ALIAS_NAME_MAX];
    if (aliases_are_empty(a) || !alias_key(question->address, key))
        return ALIASES_NONE;
    struct aliases_name *name = aliases_look_up(a, question, text_from(key));
    if (name == NULL)
        return ALIASES_NONE;
    struct aliases_walk w = {
        .aliases = a, .question = question, .each = each, .context = context};
    walk_begin(&w, name, text_from(key));
    return aliases_answer(name, &w);
}

/* --- Reading ---------------------------------------------------------------------- */

/* A file that a name includes: its addresses come behind this empty value. */
struct aliases_include {
    struct aliases_include *next;
    struct aliases_value *place;
    const char *path, *file;
    unsigned line;
};

enum aliases_phase {
    ALIASES_FILES,
    ALIASES_INCLUDES, /* read when no name can have more values */
    ALIASES_OWNERS,
    ALIASES_CHECKS, /* every name is expanded once: errors are found now, not by mail */
    ALIASES_COMPLETE
};

struct aliases_making {
    struct aliases *aliases;
    struct aliases_settings settings;
    struct buffer *errors;
    unsigned error_count;
    bool full;
    enum aliases_phase phase;
    struct alias_reader reader;
    struct alias_reading reading;
    bool is_open;     /* a file is being read */
    size_t next_file; /* of the settings */
    const char *file;
    struct aliases_name *name;        /* values are its */
    struct aliases_include *includes; /* not yet read, in their order */
    struct aliases_include **includes_end;
    char *content;                  /* of the first of them, while it is open */
    struct aliases_name *next_name; /* of the last two phases */
    uint64_t walked;                /* steps of all walks */
};

static void __attribute__((format(printf, 4, 5)))
aliases_complain(struct aliases_making *r, const char *file, unsigned line,
                 const char *format, ...)
{
    char what[ALIAS_ERROR_MAX + ALIAS_PATH_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof(what), format, list);
    va_end(list);
    if (r->error_count++ >= ALIASES_ERRORS_MAX)
        return;
    if (line > 0)
        (void)!buffer_format(r->errors, "aliases: %s:%u: %s\n", file, line, what);
    else
        (void)!buffer_format(r->errors, "%s: %s\n", file, what);
}

static void
aliases_fill_up(struct aliases_making *r, unsigned line)
{
    if (!r->full)
        aliases_complain(r, r->file, line, "more than %d names, or too large in all",
                         ALIASES_NAMES_MAX);
    r->full = true;
}

/* NULL: there is no more room, which has been reported. */
static const char *
aliases_keep(struct aliases_making *r, struct text t, unsigned line)
{
    const char *kept = arena_copy(&r->aliases->arena, t).at;
    if (kept == NULL)
        aliases_fill_up(r, line);
    return kept;
}

static bool
aliases_on_name(void *context, struct text name, unsigned line)
{
    struct aliases_making *r = context;
    struct aliases *a = r->aliases;
    const struct aliases_name *known = aliases_find(a, name);
    r->name = NULL;
    if (known != NULL && known->file == r->file)
        aliases_complain(r, r->file, line,
                         "duplicate name '%.*s': the other is in line %u; remove one",
                         TEXT_ARGS(text_before(name, 60)), known->line);
    if (known != NULL || r->full)
        return false;
    struct aliases_name *made = arena_get(&a->arena, sizeof(*made));
    const char *kept = aliases_keep(r, name, line);
    if (made == NULL || kept == NULL || HASH_COUNT(a->names) >= ALIASES_NAMES_MAX) {
        aliases_fill_up(r, line);
        return false;
    }
    *made = (struct aliases_name){.name = kept, .file = r->file, .line = line};
    made->end = &made->values;
    HASH_ADD_KEYPTR(hh, a->names, made->name, name.length, made);
    a->has_domains = a->has_domains || text_find(name, '@') != TEXT_NONE;
    a->has_wildcards = a->has_wildcards || name.at[0] == '@';
    a->has_owners = a->has_owners || text_starts(name, owner_prefix);
    if (text_equal(name, TEXT("*")))
        a->catch_all = made;
    r->name = made;
    return true;
}

/* NULL: there is no more room. */
static struct aliases_value *
aliases_new_value(struct aliases_making *r, bool exact, struct text address,
                  unsigned line)
{
    struct aliases_value *v = arena_get(&r->aliases->arena, sizeof(*v));
    const char *kept = v != NULL ? aliases_keep(r, address, line) : NULL;
    if (v == NULL || kept == NULL) {
        aliases_fill_up(r, line);
        return NULL;
    }
    *v = (struct aliases_value){.exact = exact,
                                .address = text_of(kept, address.length)};
    return v;
}

/* NULL: there is no more room. */
static struct aliases_value *
aliases_add_value(struct aliases_making *r, struct aliases_name *name, bool exact,
                  struct text address, unsigned line)
{
    struct aliases_value *v = aliases_new_value(r, exact, address, line);
    if (v == NULL)
        return NULL;
    *name->end = v;
    name->end = &v->next;
    r->aliases->value_count += address.length > 0;
    return v;
}

static void
aliases_add_include(struct aliases_making *r, struct text path, unsigned line)
{
    struct aliases_include *made = arena_get(&r->aliases->arena, sizeof(*made));
    struct aliases_value *place = aliases_add_value(r, r->name, true, TEXT(""), line);
    const char *kept = made != NULL ? aliases_keep(r, path, line) : NULL;
    if (place == NULL || kept == NULL)
        return;
    *made = (struct aliases_include){
        .place = place, .path = kept, .file = r->file, .line = line};
    *r->includes_end = made;
    r->includes_end = &made->next;
}

static void
aliases_on_value(void *context, enum alias_kind kind, struct text value, unsigned line)
{
    struct aliases_making *r = context;
    if (r->name == NULL || r->full)
        return;
    if (kind == ALIAS_INCLUDE)
        aliases_add_include(r, value, line);
    else
        (void)aliases_add_value(r, r->name, kind == ALIAS_EXACT, value, line);
}

static void
aliases_on_included(void *context, enum alias_kind kind, struct text value,
                    unsigned line)
{
    struct aliases_making *r = context;
    struct aliases_include *from = r->includes;
    struct aliases_value *v =
        r->full ? NULL : aliases_new_value(r, kind == ALIAS_EXACT, value, line);
    if (v == NULL)
        return;
    v->next = from->place->next;
    from->place->next = v;
    from->place = v;
    r->aliases->value_count++;
}

static void
aliases_on_error(void *context, unsigned line, const char *what)
{
    struct aliases_making *r = context;
    aliases_complain(r, r->file, line, "%s", what);
}

/* --- In steps --------------------------------------------------------------------- */

/* True: there is no other. */
static bool
aliases_next_file(struct aliases_making *r)
{
    const struct aliases_settings *s = &r->settings;
    while (r->next_file < s->file_count) {
        const struct aliases_file *file = &s->files[r->next_file++];
        r->name = NULL;
        r->file = aliases_keep(r, text_from(file->path), 0);
        r->is_open = r->file != NULL;
        alias_begin(&r->reading, file->content, &r->reader);
        if (r->is_open)
            return false;
    }
    return true;
}

static void
aliases_next_include(struct aliases_making *r)
{
    char error[ALIASES_ERROR_MAX] = "cannot be read here";
    size_t length = 0;
    const struct aliases_settings *s = &r->settings;
    const struct aliases_include *i = r->includes;
    if (r->full || s->include == NULL ||
        !s->include(s->context, i->path, &r->content, &length, error)) {
        if (!r->full)
            aliases_complain(r, i->file, i->line, ":include:%s: %s", i->path, error);
        r->includes = i->next;
        return;
    }
    r->is_open = true;
    r->file = i->path;
    alias_begin_include(&r->reading, text_of(r->content, length), &r->reader);
}

static void
aliases_close(struct aliases_making *r)
{
    r->is_open = false;
    if (r->phase == ALIASES_INCLUDES) {
        free(r->content);
        r->content = NULL;
        r->includes = r->includes->next;
    }
}

static void
aliases_read_root(struct aliases_making *r)
{
    char address[ALIAS_NAME_MAX], error[ALIAS_ERROR_MAX];
    struct aliases *a = r->aliases;
    a->root = (struct aliases_name){.name = "", .file = "root", .line = 0};
    a->root.end = &a->root.values;
    if (text_trim(r->settings.root).length == 0)
        return;
    if (alias_read_address(r->settings.root, address, error)) {
        if (aliases_add_value(r, &a->root, false, text_from(address), 0) != NULL)
            a->value_count--; /* it stands in no file */
        return;
    }
    r->error_count++;
    (void)!buffer_add_error(r->errors, "root", r->settings.root, error);
}

/* "owner-list" for "list", "owner-list@domain" or "owner-list" for "list@domain". */
static void
aliases_find_owner(const struct aliases *a, struct aliases_name *name)
{
    char key[ALIAS_NAME_MAX + 8];
    struct text plain = text_from(name->name), owner = owner_prefix;
    size_t at = text_find_last(plain, '@');
    if (at == 0 || text_starts(plain, owner))
        return;
    snprintf(key, sizeof(key), "owner-%s", name->name);
    name->is_owned = aliases_find(a, text_from(key)) != NULL;
    if (name->is_owned || at == TEXT_NONE)
        return;
    key[owner.length + at] = '\0';
    name->is_owned = aliases_find(a, text_from(key)) != NULL;
}

static const char *
aliases_title(const struct aliases_name *name)
{
    return name->name[0] != '\0' ? name->name : "root";
}

static void
aliases_tell_trouble(struct aliases_making *r, const struct aliases_name *name,
                     const struct aliases_walk *w)
{
    switch (w->trouble) {
    case WALK_GOOD:
        break;
    case WALK_CIRCLE:
        /* Each name of a circle finds it: one line is enough. */
        if (w->troubled == name)
            aliases_complain(r, name->file, name->line,
                             "'%s' leads back to itself through other names",
                             aliases_title(name));
        else
            r->error_count++;
        break;
    case WALK_DEEP:
        aliases_complain(r, name->file, name->line,
                         "'%s' leads through more than %d names", aliases_title(name),
                         ALIASES_DEPTH_MAX);
        break;
    case WALK_MANY:
        aliases_complain(r, name->file, name->line, "'%s' has more than %d addresses",
                         aliases_title(name), ALIASES_MEMBERS_MAX);
        break;
    case WALK_LONG:
        aliases_complain(r, name->file, name->line,
                         "'%s' leads to more than %d names and addresses, with those "
                         "that are repeated",
                         aliases_title(name), ALIASES_LOOK_UPS_MAX);
        break;
    }
}

static void
aliases_check_name(struct aliases_making *r, struct aliases_name *n)
{
    struct aliases_question q = {.routes = r->settings.routes, .ours = true};
    struct aliases_walk w = {
        .aliases = r->aliases, .question = &q, .steps = &r->walked};
    struct text key = text_from(n == &r->aliases->root ? "root" : n->name);
    char whole[ALIAS_NAME_MAX];
    if (key.at[0] == '@')
        walk_begin(&w, n, key);
    else if (walk_qualify(&w, key, whole))
        walk_begin(&w, n, text_from(whole));
    aliases_tell_trouble(r, n, &w);
}

static void
aliases_check_next(struct aliases_making *r)
{
    struct aliases_name *n = r->next_name, *root = &r->aliases->root;
    if (n != NULL && r->walked > ALIASES_STEPS_MAX) {
        aliases_complain(r, n->file, n->line, "too many names lead to too many others");
        r->phase = ALIASES_COMPLETE;
        return;
    }
    if (n != NULL) {
        r->next_name = n->hh.next;
        aliases_check_name(r, n);
        return;
    }
    if (root->values != NULL)
        aliases_check_name(r, root);
    r->phase = ALIASES_COMPLETE;
}

/* One file, include or name; those that are read take their work off *steps. */
static void
aliases_do(struct aliases_making *r, size_t *steps)
{
    struct aliases *a = r->aliases;
    uint64_t before = r->walked;
    if (r->is_open) {
        if (alias_go_on(&r->reading, steps))
            aliases_close(r);
        return;
    }
    --*steps;
    switch (r->phase) {
    case ALIASES_FILES:
        if (aliases_next_file(r)) {
            aliases_read_root(r);
            r->reader.on_value = aliases_on_included;
            r->phase = ALIASES_INCLUDES;
        }
        break;
    case ALIASES_INCLUDES:
        if (r->includes != NULL) {
            aliases_next_include(r);
        } else {
            r->next_name = a->has_owners ? a->names : NULL;
            r->phase = ALIASES_OWNERS;
        }
        break;
    case ALIASES_OWNERS:
        if (r->next_name != NULL) {
            aliases_find_owner(a, r->next_name);
            r->next_name = r->next_name->hh.next;
        } else {
            r->next_name = a->names;
            r->phase = r->error_count == 0 ? ALIASES_CHECKS : ALIASES_COMPLETE;
        }
        break;
    case ALIASES_CHECKS:
        aliases_check_next(r);
        *steps -= r->walked - before < *steps ? (size_t)(r->walked - before) : *steps;
        break;
    case ALIASES_COMPLETE:
        break;
    }
}

struct aliases_making *
aliases_begin(const struct aliases_settings *settings, struct buffer *errors)
{
    struct aliases_making *r = memory_new(sizeof(*r));
    struct aliases *a = r->aliases = memory_new(sizeof(*a));
    r->settings = *settings;
    r->errors = errors;
    r->includes_end = &r->includes;
    r->reader = (struct alias_reader){.on_name = aliases_on_name,
                                      .on_value = aliases_on_value,
                                      .on_error = aliases_on_error,
                                      .context = r};
    a->has_local = settings->has_local;
    arena_init(&a->arena, ALIASES_BYTES_MAX);
    return r;
}

bool
aliases_go_on(struct aliases_making *r)
{
    size_t steps = ALIASES_STEPS_PER_TURN;
    while (steps > 0 && r->phase != ALIASES_COMPLETE)
        aliases_do(r, &steps);
    return r->phase == ALIASES_COMPLETE;
}

struct aliases *
aliases_end(struct aliases_making **making)
{
    struct aliases_making *r = *making;
    struct aliases *a = r->aliases;
    if (r->error_count > ALIASES_ERRORS_MAX)
        (void)!buffer_format(r->errors, "aliases: %u more errors\n",
                             r->error_count - ALIASES_ERRORS_MAX);
    if (r->error_count > 0 || r->phase != ALIASES_COMPLETE)
        aliases_free(&a);
    free(r->content);
    free(r);
    *making = NULL;
    return a;
}

void
aliases_free(struct aliases **aliases)
{
    struct aliases *a = *aliases;
    *aliases = NULL;
    if (a == NULL)
        return;
    HASH_CLEAR(hh, a->names);
    arena_free(&a->arena);
    free(a);
}

bool
aliases_are_empty(const struct aliases *a)
{
    return a == NULL || (a->names == NULL && a->root.values == NULL);
}

size_t
aliases_names(const struct aliases *a)
{
    return a != NULL ? HASH_COUNT(a->names) : 0;
}

size_t
aliases_values(const struct aliases *a)
{
    return a != NULL ? a->value_count : 0;
}

void
aliases_each_foreign(const struct aliases *a, const struct route_table *routes,
                     void (*each)(void *context, const char *file, unsigned line,
                                  const char *name),
                     void *context)
{
    for (const struct aliases_name *n = a != NULL ? a->names : NULL; n != NULL;
         n = n->hh.next) {
        struct text name = text_from(n->name);
        size_t at = text_find_last(name, '@');
        if (at != TEXT_NONE && name.at[name.length - 1] != '"' &&
            !route_is_local_domain(routes, text_after(name, at + 1)))
            each(context, n->file, n->line, n->name);
    }
}
