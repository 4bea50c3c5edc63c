/* `petrel import`: the settings of another program, line by line, and the settings of
 * Petrel made of them. It only reads; import_command.c writes.
 *
 * A program is a table: a row for each name that its files can have, with the act that
 * makes a setting of its value or says why not. Each line of the source ends with a
 * fate, so that nothing is dropped in silence. Everything read is bounded, and all of
 * it may be hostile: a value goes into a setting, and `petrel check` judges the
 * settings before anybody uses them. */
#ifndef ADMIN_IMPORT_IMPORT_H
#define ADMIN_IMPORT_IMPORT_H

#include "base/buffer.h"

enum {
    IMPORT_FILE_MAX = 1024 * 1024,
    IMPORT_LINES_MAX = 20000,      /* of all files together */
    IMPORT_FILES_MAX = 100,        /* with those that they name */
    IMPORT_VALUE_MAX = 64 * 1024,  /* of a value with its continuation lines */
    IMPORT_TEXT_MAX = 1024 * 1024, /* of a setting, and of each file that is made */
    IMPORT_SETTINGS_MAX = 64
};

enum import_fate {
    IMPORT_UNKNOWN,  /* no such name is known here */
    IMPORT_TAKEN,    /* it is in a setting */
    IMPORT_NEEDLESS, /* Petrel does it anyway, or has nothing of the kind */
    IMPORT_LEFT      /* a person has to decide; why says what to write */
};

struct import_row;
/* Plain data; its strings live as long as the import. */
struct import_line {
    const char *file;
    unsigned number;
    const char *name, *value;
    const char *of; /* the setting whose file has it; NULL: a line of the settings */
    bool is_login;  /* import_take_login() */
    const struct import_row
        *row; /* whose act is done; of an entry: that of its setting */
    enum import_fate fate;
    const char *setting; /* of TAKEN; whether there is one is known in the end */
    const char *why;     /* NULL: nothing to say */
};

struct import_setting {
    const char *key;     /* of a row of options_rows */
    struct buffer value; /* entries, one a line */
    const char *error;   /* not NULL: `petrel check` refuses it */
};

struct import;
typedef void import_act(struct import *im, struct import_line *line);
struct import_row {
    const char *name; /* words, in any case; one that ends with * : begins so */
    import_act *act;
    const char *with, *why; /* as the act has them */
};

struct import_kind {
    const char *name, *files; /* words: names that its files have */
    void (*read)(struct import *im, const char *file, struct text content);
    const struct import_row *rows;
    void (*begin)(struct import *im), (*end)(struct import *im); /* around the acts */
    bool only_relays; /* it never looks up an MX: without a relay mail is kept */
};
extern const struct import_kind import_postfix, import_msmtp, import_ssmtp,
    import_nullmailer, import_dma, import_opensmtpd, import_exim;

struct import {
    const struct import_kind *kind;
    const char *directory; /* where the settings will be */
    struct import_line *lines;
    size_t count;
    struct import_setting settings[IMPORT_SETTINGS_MAX];
    size_t setting_count;
    struct buffer passwords, aliases; /* the contents of files */
    const char *lacks_password;       /* a login whose password is not here */
    const char *beside;               /* of read(): a file in the same directory */
    /* Private: */
    unsigned files, names;
    char **kept;
    size_t kept_count, kept_capacity;
};

void import_init(struct import *im, const char *directory);
void import_free(struct import *im); /* overwrites passwords */

/* A copy that lives as long as the import. */
const char *import_keep(struct import *im, struct text t);
const char *import_format(struct import *im, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The content of a file, borrowed. False: why, for a person, borrowed. A relative path
 * is beside the file `beside` (NULL: the working directory). */
bool import_read(struct import *im, const char *beside, const char *path,
                 struct text *content, const char **name, const char **why)
    __attribute__((warn_unused_result));
/* A line of the source; the last one that there is room for says so. NULL: none. */
struct import_line *import_add(struct import *im, const char *file, unsigned number,
                               struct text name, struct text value);
/* Lines of NAME VALUE, of NAME=VALUE, and of either. */
void import_read_words(struct import *im, const char *file, struct text content);
void import_read_equals(struct import *im, const char *file, struct text content);
void import_read_either(struct import *im, const char *file, struct text content);
/* ... whose value goes on in lines that begin with a blank. */
void import_read_long(struct import *im, const char *file, struct text content);
/* The lines of a file that line names, each with its fate by the act `each`; a separator
 * ends the name in a line. False: it cannot be read, and the line is LEFT. */
bool import_entries(struct import *im, struct import_line *line, struct text path,
                    const char *separators, import_act *each);

/* The last line of the settings with that name; NULL: none. Its value without quotes;
 * "": none. */
struct import_line *import_find(const struct import *im, const char *name);
struct text import_value(const struct import *im, const char *name);
bool import_is_yes(struct text value);
/* The row of a name; NULL: none. */
const struct import_row *import_row_of(const struct import_row *rows, struct text name);
struct text import_unquote(struct text value);
/* The next word, which may be in quotes. */
bool import_word(struct text *rest, struct text *word);

/* Adds an entry to a setting (of a list; otherwise it is the value). line: NULL, or it is
 * TAKEN. An entry that is there already is not added again. */
void import_put(struct import *im, struct import_line *line, const char *key,
                const char *entry);
bool import_has(const struct import *im, const char *key);
void import_say(struct import_line *line, enum import_fate fate, const char *why);
/* An address, or "all", "loopback-only" and names that begin with lo: for `listen`. */
void import_listen(struct import *im, struct import_line *line, struct text host,
                   struct text port, const char *options);

/* A next hop, as all these programs have it. */
enum import_tls {
    IMPORT_TLS_MAY,
    IMPORT_TLS_ENCRYPT, /* any certificate */
    IMPORT_TLS_START,
    IMPORT_TLS_FIRST
};
struct import_hop {
    struct text host, port; /* without brackets; a number or a service, "": default */
    struct text user, password; /* user "": no login */
    enum import_tls tls;        /* MAY with a login to another host: START */
    struct text options;        /* "mx=yes&..." */
};
/* Splits [HOST]:PORT, HOST:PORT and HOST. False: it is none. */
bool import_split_host(struct text t, struct import_hop *hop);
/* A target of a route; its password goes into the file of passwords. */
const char *import_target(struct import *im, const struct import_hop *hop);
/* For import_entries(): HOST USER:PASSWORD. Needless until somebody finds it. */
void import_take_login(struct import *, struct import_line *);
bool import_find_login(struct import *im, struct text host, struct import_hop *hop);

/* Acts of rows. The setting `with`, its value by a template: why is NULL (as it is),
 * "A%B" (% stands for it), or "+d" (the unit of a bare number). */
void import_as(struct import *, struct import_line *);
/* Likewise each word, and each word of a file or a map that is named. */
void import_words(struct import *, struct import_line *);
void import_networks(struct import *, struct import_line *);
void import_needless(struct import *, struct import_line *);
void import_leave(struct import *, struct import_line *);
/* TAKEN by the setting `with` if there is one in the end; else NEEDLESS. */
void import_share(struct import *, struct import_line *);
/* NEEDLESS with one of the values in `with` (words), else LEFT. */
void import_unless(struct import *, struct import_line *);
/* A file of aliases: what Petrel cannot read in it is named, and left out of a copy. */
void import_aliases(struct import *, struct import_line *);
void import_alias_file(struct import *im, struct import_line *line, struct text path);
/* Likewise the text that was put together for the file of aliases. */
void import_clean_aliases(struct import *im);
/* The sender of this host's mail: an address or a domain. */
void import_sender(struct import *, struct import_line *);
/* hostname, from a file if it is a path. */
void import_name(struct import *, struct import_line *);

/* Which program the file is of: by its name, else by what is in it. NULL: unknown. */
const struct import_kind *import_guess(const char *path, struct text content);
const struct import_kind *import_named(struct text name);
/* Lines become settings. */
void import_run(struct import *im);
/* The settings have their errors: the lines get their last fate. */
void import_settle(struct import *im);
/* No smarthost came of the lines of a program that sends to nothing else: mail is kept. */
bool import_lacks_relay(const struct import *im);
/* Settings that wait for a password are comments, and mail is kept. */
bool import_waits(const struct import *im, const struct import_setting *s);
/* petrel.conf, without the settings that have errors. */
void import_write(const struct import *im, struct buffer *out);

#endif
