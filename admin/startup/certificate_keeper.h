/* Watches the files of tls_certificate and tls_key, and takes up new ones.
 *
 * Each minute the state of every file is asked for. Files that have changed and are the
 * same five seconds later are read. If all of them parse, fit each other and are valid
 * now, they serve connections that do not have TLS yet, and the event `certificate`
 * says so. Otherwise the old ones stay, certificate_keeper_trouble() says why, and the
 * files are read again each minute. */
#ifndef ADMIN_STARTUP_CERTIFICATE_KEEPER_H
#define ADMIN_STARTUP_CERTIFICATE_KEEPER_H

#include "base/disk/disk.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/event/event.h"
#include "smtp/session/listener_tls.h"

enum {
    CERTIFICATE_LOOK_MS = 60 * 1000,
    CERTIFICATE_SETTLED_MS = 5 * 1000,
    CERTIFICATE_WHY_MAX = 600,
    CERTIFICATE_FILES_MAX = 2 * TLS_PAIRS_MAX
};

/* A file as it was at some time. */
struct certificate_file {
    int result; /* 0 or -errno */
    struct disk_info info;
};

struct certificate_keeper { /* zeroed before its first use */
    struct loop *loop;
    struct log *log;
    struct event_hub *events;
    struct listener *listener;
    void (*changed)(void *context); /* of certificate_keeper_trouble() */
    void *context;
    /* Private. */
    struct listener_pairs pairs;
    /* The files as they were when those in use were read, when files were last read,
     * and when they were last looked at. */
    struct certificate_file used[CERTIFICATE_FILES_MAX], judged[CERTIFICATE_FILES_MAX],
        seen[CERTIFICATE_FILES_MAX];
    struct loop_timer timer;
    char why[CERTIFICATE_WHY_MAX];
};

/* Before the listener reads the files of the settings, at startup and reload. */
void certificate_keeper_note(struct certificate_keeper *keeper,
                             const struct listener_settings *settings);
/* After it has, as the daemon's user. */
void certificate_keeper_watch(struct certificate_keeper *keeper);
void certificate_keeper_stop(struct certificate_keeper *keeper);

/* Why the files are not used as they are now; NULL: they are. */
const char *certificate_keeper_trouble(const struct certificate_keeper *keeper);
/* The file of the certificate with that index of tls_server_certificate(); "": none. */
const char *certificate_keeper_file(const struct certificate_keeper *keeper,
                                    size_t index);

#endif
