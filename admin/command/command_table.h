/* The table of commands: their names, arguments, help, and functions. Usage, `help` and
 * the caller of commands read it; a new command is one row in command_table.c. */
#ifndef ADMIN_COMMAND_COMMAND_TABLE_H
#define ADMIN_COMMAND_COMMAND_TABLE_H

#include "admin/settings/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum command_kind {
    COMMAND_OPTIONS, /* run() with the options, without secrets */
    COMMAND_BARE,    /* run() with NULL for options: reads no settings */
    COMMAND_HELP,
    /* By the main program: */
    COMMAND_RUN,
    COMMAND_CHECK,
    COMMAND_VERSION,
    COMMAND_SENDMAIL,
    COMMAND_TEST,
    COMMAND_COMPLETE,
    COMMAND_OAUTH,
    COMMAND_DOCTOR,
    COMMAND_INIT,
    COMMAND_IMPORT
};

/* Plain data. */
struct command_row {
    const char *name;
    const char *arguments; /* "" if it has none */
    const char *about;     /* one line */
    const char *help;      /* more lines, each indented; "" for none */
    const char *example;   /* a command line; "" for none */
    enum command_kind kind;
    /* NULL: not by this table. arguments begin behind the name. A sysexits code. */
    int (*run)(int count, char **arguments, const struct options *options);
};

/* In the order of the usage; ends with a row without a name. */
const struct command_row *command_rows(void);
/* NULL: no such command. */
const struct command_row *command_find(const char *name);
/* True: these arguments (the first is the name) ask for help about a command. */
bool command_wants_help(int count, char **arguments);

/* `help [COMMAND | SETTING]`, on standard output. arguments behind "help". Returns 0, or EX_USAGE
 * with one line on standard error. */
int command_help(int count, char **arguments);
/* Names an unknown command, and the nearest, on standard error. Returns EX_USAGE. */
int command_refuse(const char *name);
/* Usage on standard error. Returns EX_USAGE. */
int command_refuse_all(void);

#endif
