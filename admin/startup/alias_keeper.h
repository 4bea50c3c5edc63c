/* Keeps the table of aliases and the secrets of SRS: gives them to the code that expands,
 * and reads the files of aliases again when they have changed, some lines in each turn, and
 * the secret until it can be read. Until the new table is complete the old one counts. */
#ifndef ADMIN_STARTUP_ALIAS_KEEPER_H
#define ADMIN_STARTUP_ALIAS_KEEPER_H

#include "admin/startup/configuration.h"
#include "base/loop/loop.h"

enum { ALIAS_KEEPER_EVERY_MS = 10 * 1000 };

/* The first part is set by the owner. */
struct alias_keeper {
    struct loop *loop;
    struct log *log;
    struct manager *manager;
    struct listener *listener;
    /* Private. */
    const struct configuration *configuration;
    struct aliases *table;
    struct alias_files *files;
    struct srs *srs;
    int srs_error; /* why it is blind, as it was logged; 0: it is not */
    struct loop_timer timer;
    struct alias_files_reading *reading; /* files that have changed */
    struct buffer errors;                /* of these */
    struct loop_task task;
};

/* At startup and reload; takes table and files of the configuration, which must stay. */
void alias_keeper_use(struct alias_keeper *keeper, struct configuration *configuration);
/* After the manager and the listener have stopped. */
void alias_keeper_stop(struct alias_keeper *keeper);

#endif
