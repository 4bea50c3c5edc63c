/* The form of /etc/aliases (aliases(5)). Pure: it opens no file.
 *
 *   NAME: ADDRESS, ADDRESS ...
 *
 * A line that begins with a blank continues the one before; # begins a comment line.
 * NAME: user, user@domain, @domain, * (the catch-all of all local domains); in any case,
 * quoted if need be. ADDRESS: user,
 * user@domain, \user (the user, without its alias), :include:/PATH. A program, a file or
 * another word with a colon is an error: Petrel starts no programs and writes no files
 * here. */
#ifndef MIME_ALIAS_H
#define MIME_ALIAS_H

#include "base/text.h"

enum {
    ALIAS_NAME_MAX = 512,   /* bytes of a name or an address, in normal form */
    ALIAS_PATH_MAX = 1024,  /* of :include: */
    ALIAS_FIELD_MAX = 2048, /* of one address as written */
    ALIAS_ERROR_MAX = 360
};

enum alias_kind {
    ALIAS_ADDRESS,
    ALIAS_EXACT,  /* \user: it has no alias here */
    ALIAS_INCLUDE /* the path of a file of addresses */
};

/* Receives the entries, in the order of the file; lines count from 1. Texts are
 * borrowed. An address and a name are in normal form: the domain as address_write() has
 * it, a name in lower case. */
struct alias_reader {
    /* False: the name's addresses are not wanted. */
    bool (*on_name)(void *context, struct text name, unsigned line);
    void (*on_value)(void *context, enum alias_kind kind, struct text value,
                     unsigned line);
    /* what: a few words about the error, without the place. */
    void (*on_error)(void *context, unsigned line, const char *what);
    void *context;
};

/* A file is read in steps: it can have 100,000 names, and a loop others to serve. */
struct alias_reading {
    /* Private. */
    const struct alias_reader *reader;
    struct text lines, values; /* the unread rest: of the file, of its line */
    unsigned line;             /* of the line that is read */
    unsigned started;          /* the line of the name */
    bool has_name;             /* a line may be continued */
    bool has_value;            /* the name has one */
    bool wanted;               /* its name is */
    bool in_include;           /* the file of :include: */
};
/* The text and the reader must stay. */
void alias_begin(struct alias_reading *reading, struct text file,
                 const struct alias_reader *reader);
/* A file that :include: names: addresses, with commas or line ends between them. It cannot
 * include another. */
void alias_begin_include(struct alias_reading *reading, struct text file,
                         const struct alias_reader *reader);
/* Each line and each address is a step, and takes one off *steps. True: the file is
 * read. False: *steps is 0. */
bool alias_go_on(struct alias_reading *reading, size_t *steps)
    __attribute__((warn_unused_result));
/* One address, as in the setting `root`: user or user@domain. False, with the error, if
 * it is none. */
bool alias_read_address(struct text value, char address[ALIAS_NAME_MAX],
                        char error[ALIAS_ERROR_MAX])
    __attribute__((warn_unused_result));
/* The address in lower case, with the domain in normal form: as names are compared.
 * False: it does not fit. */
bool alias_key(struct text address, char key[ALIAS_NAME_MAX])
    __attribute__((warn_unused_result));

#endif
