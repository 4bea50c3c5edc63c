/* Typed settings from defaults, a file, the environment and the command line.
 *
 * One table of rows describes every key (petrel.conf(5)). The file is flat `key =
 * value`; `#` starts a comment line; an indented line continues the value. Precedence:
 * command line, environment PREFIX_KEY, file, default. For every key `key_file`
 * (PREFIX_KEY_FILE) names a file whose content, without the trailing newline, is the
 * value. inih is not used: Debian's build cuts lines at 200 bytes and takes ` ;` for a
 * comment. The meaning of a value beyond its type is the caller's. */
#ifndef BASE_SETTINGS_SETTINGS_H
#define BASE_SETTINGS_SETTINGS_H

#include "base/buffer.h"

enum setting_kind {
    SETTING_STRING, /* char *, NULL when unset; or struct text, empty when unset */
    SETTING_LIST,   /* likewise; config.example and check show one entry per line */
    SETTING_WORD,   /* int, an enum or bool: min is the first of `words`, and so on */
    SETTING_BOOL,   /* bool, or int: yes no true false on off 1 0 */
    SETTING_NUMBER, /* within [min, max]: int64_t, or a smaller type that can hold max */
    SETTING_SIZE,   /* likewise, bytes; K M G */
    SETTING_DURATION /* likewise, milliseconds; ms s m h d w, plain number = seconds */
};

struct setting {
    const char *key;
    enum setting_kind kind;
    size_t offset;            /* offset of the field in the caller's struct */
    const char *preset;       /* the default as a user writes it; NULL = unset */
    int64_t min, max;         /* NUMBER, SIZE and DURATION; max 0 = no bound */
    bool secret;              /* shown as ******** */
    const char *help;         /* for config.example: one or more lines */
    size_t size;              /* of the field; 0: char *, bool or int64_t */
    const char *const *words; /* of a WORD; NULL ends them */
};

/* Another name for the setting key, of other software. */
struct setting_synonym {
    const char *name; /* in any case; NULL ends the table */
    const char *key;  /* of a row; NULL: the name is refused with help */
    bool (*takes)(struct text value); /* NULL, or false: refused with help */
    const char *help;                 /* one line */
};

struct settings;

/* target is zeroed memory that the rows' offsets describe; its strings are owned by the
 * settings. prefix e.g. "PETREL". rows end with key == NULL. */
struct settings *settings_new(const struct setting *rows, const char *prefix,
                              void *target);
void settings_free(struct settings **s);

/* Leaves secrets unset and the files of their values unread: for commands that need no
 * secrets and may not read them. Before settings_apply(). */
void settings_leave_secrets(struct settings *s);
/* For a daemon that runs: only regular files are read as the file of settings, too. A
 * program that begins waits for a FIFO and the standard input. Files that values name
 * are always regular ones (disk_read_regular()). */
void settings_never_wait(struct settings *s);

/* Further accepted names, also with _file behind them; the table is borrowed. One
 * source may not set a setting by two of its names. Before any source is read. */
void settings_accept_names(struct settings *s, const struct setting_synonym *synonyms);

/* Each step may be repeated; the order of calls does not matter, precedence does.
 * Errors are collected, not returned. */
void settings_read_file(struct settings *s, const char *path);
/* An error in place of the file's settings. */
void settings_refuse_file(struct settings *s, const char *path, const char *why);
/* PREFIX_CONFIG is not a setting. An unknown PREFIX_X is an error if it resembles a key,
 * else a warning, but for PREFIX_SERVICE_HOST, PREFIX_PORT_25_TCP_ADDR and the like:
 * Kubernetes sets them in containers, for a service of that name. */
void settings_read_environment(struct settings *s, char *const *environment);
/* "key=value" */
void settings_read_argument(struct settings *s, const char *key_value);
/* "key=value" in place of the row's default, as the machine suggests. The key must
 * exist; a string in target from the old default is valid until settings_apply(). */
void settings_read_preset(struct settings *s, const char *key_value);
/* Adds an error of the value, found by the caller ("file:line: key: what"), unless the
 * key has an error already. */
void settings_complain(struct settings *s, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The source of key's value ("file:line", "environment", ...). NULL: the default, or no
 * such key. */
const char *settings_origin(const struct settings *s, struct text key);
/* key's value as its source has it, borrowed. NULL: as settings_origin(). */
const char *settings_written(const struct settings *s, struct text key);

/* The value of a STRING or LIST row in target. */
struct text settings_text(const struct setting *row, const void *target);

/* Converts everything into target. Returns the number of errors so far. May be called
 * again after more was read; each error counts once. */
size_t settings_apply(struct settings *s);
/* One line per error: file:line or the name of the source, the key, the error, and the
 * key probably meant. */
struct text settings_errors(const struct settings *s);
/* One line for each old name in use, and for each unknown variable that is no error, in
 * the form of an error. */
struct text settings_warnings(const struct settings *s);
/* "key = value   # source" for every row, secrets masked. */
void settings_print(const struct settings *s, struct buffer *out);
/* Prints the rows whose value was set and is not the default. */
void settings_print_changed(const struct settings *s, struct buffer *out);

/* One setting as it is in effect; strings are borrowed. */
struct setting_view {
    const char *key;
    const char *value, *preset; /* NULL: unset; the value of a secret is masked */
    const char *source;         /* as settings_origin(), or "default" */
    bool is_changed;
};
void settings_each(const struct settings *s,
                   void (*each)(void *context, const struct setting_view *view),
                   void *context);
/* Calls each with every file that was to be read: settings and key_file. */
void settings_each_file(const struct settings *s,
                        void (*each)(void *context, const char *path), void *context);
/* Calls each with the files that hold the values of secret rows. */
void settings_each_secret(const struct settings *s,
                          void (*each)(void *context, const char *key,
                                       const char *path),
                          void *context);
/* Writes config.example: every key with its help and its default, commented out. */
void settings_example(const struct setting *rows, struct buffer *out);

/* One number, one unit: "1h30m" is not accepted. */
bool settings_parse_duration(struct text t, int64_t *ms);
bool settings_parse_size(struct text t, int64_t *bytes);

#endif
