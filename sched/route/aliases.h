/* Aliases: whose mail goes to other addresses. The table of the files that `aliases` names
 * and of `root`, and how an address is expanded. Pure: the caller reads the files.
 *
 * For user+tag@domain these names are looked up, the first that exists counts:
 * user+tag@domain, user+tag, user@domain, user, @domain. `user` and `user+tag` count in
 * local domains only. Behind the files comes `root`: for root, postmaster and abuse in a
 * local domain and, in mail that is ours where `local` is unset, for every local user to
 * whom no route leads but `*`.
 *
 * An address without a domain is one of the first local domain. A name that lists itself
 * means the user there: "ann: ann, bob". \user is never looked up. Longer circles, more
 * than ALIASES_DEPTH_MAX steps, more than ALIASES_MEMBERS_MAX addresses and more than
 * ALIASES_LOOK_UPS_MAX look-ups are errors of the file. Where owner-NAME exists, the
 * members of NAME have it as their sender. */
#ifndef SCHED_ROUTE_ALIASES_H
#define SCHED_ROUTE_ALIASES_H

#include "base/buffer.h"
#include "mime/alias.h"

struct aliases;
struct route_table;

enum {
    ALIASES_NAMES_MAX = 100000,
    ALIASES_DEPTH_MAX = 10,
    ALIASES_MEMBERS_MAX = 1000,   /* of a name, when expanded */
    ALIASES_LOOK_UPS_MAX = 10000, /* for that, of names and members, some repeated */
    ALIASES_BYTES_MAX = 64 * 1024 * 1024,
    ALIASES_STEPS_PER_TURN = 2000, /* each takes one to four microseconds */
    ALIASES_ERROR_MAX = 200
};

/* A file, whole. */
struct aliases_file {
    const char *path;
    struct text content;
};

struct aliases_settings {
    const struct aliases_file *files; /* the first that has a name counts */
    size_t file_count;
    struct text root; /* the setting; empty: unset */
    bool has_local;   /* the setting `local` is set */
    const struct route_table *routes;
    /* The content of a file that :include: names; *content is malloc'ed. False: error
     * says why, in a few words. NULL: none can be read. */
    bool (*include)(void *context, const char *path, char **content, size_t *length,
                    char error[ALIASES_ERROR_MAX]);
    void *context;
};

/* A table is made in steps, for a loop that serves others. The settings with all that they
 * name, and errors must stay. */
struct aliases_making;
struct aliases_making *aliases_begin(const struct aliases_settings *settings,
                                     struct buffer *errors);
/* True: the table is complete, or has errors. False: ALIASES_STEPS_PER_TURN lines, names
 * and addresses have been read or checked. A file of :include: is opened as one step. */
bool aliases_go_on(struct aliases_making *making) __attribute__((warn_unused_result));
/* Sets *making to NULL. NULL with one line per error: "FILE:LINE: ..." or "root: ...";
 * NULL as well if it was given up early. The table has one owner. */
struct aliases *aliases_end(struct aliases_making **making);
void aliases_free(struct aliases **aliases);
/* True: no address has an alias. aliases may be NULL, here and below. */
bool aliases_are_empty(const struct aliases *aliases);
/* The names in the files, and the addresses that stand behind them. */
size_t aliases_names(const struct aliases *aliases);
size_t aliases_values(const struct aliases *aliases);

/* An address that mail goes to. Borrowed until `each` returns. */
struct aliases_member {
    struct text address; /* local@domain, in normal form */
    struct text owner;   /* owner-NAME@domain: its sender; or empty */
};
/* False: the rest is not wanted. */
typedef bool aliases_each(void *context, const struct aliases_member *member);

struct aliases_question {
    const struct route_table *routes;
    struct text address; /* local@domain, in normal form */
    bool ours;           /* of mail that is ours */
};
enum aliases_answer {
    ALIASES_NONE,    /* it has no alias: nothing was called */
    ALIASES_ONE,     /* it has one with one address: a user elsewhere */
    ALIASES_SEVERAL, /* more than one address stands behind the name */
    ALIASES_LIST,    /* a name with an owner */
    ALIASES_EMPTY,   /* it has one without any: an :include: of nobody, or too long */
    ALIASES_TOO_MANY /* the routes have changed, and limits do not hold any more */
};
/* An address may be reported twice. */
enum aliases_answer aliases_expand(struct aliases *aliases,
                                   const struct aliases_question *question,
                                   aliases_each *each, void *context);

/* Names that mail cannot come to, for warnings: user@domain and @domain where the domain
 * is not local. */
void aliases_each_foreign(const struct aliases *aliases,
                          const struct route_table *routes,
                          void (*each)(void *context, const char *file, unsigned line,
                                       const char *name),
                          void *context);

#endif
