/* The daemon: all parts and their order at startup, reload and stop.
 *
 * A process may start and stop daemons several times, also several of them side by side:
 * nothing here is of the process. Its identity, signals and sandbox are mta.c's.
 *
 * Startup has a fixed order. Settings are checked as a whole before anything is
 * touched. The log is made before net and queue, whose hooks at the end of a turn must
 * run after its own (log.h). The queue is opened before the first client can connect.
 * daemon_stop() takes everything down in the reverse order, also after a failed start.
 *
 * The functions that return an int return 0, or a sysexits code with one line in error,
 * which has DAEMON_ERROR_MAX bytes. */
#ifndef ADMIN_STARTUP_DAEMON_H
#define ADMIN_STARTUP_DAEMON_H

#include "admin/control/control_server.h"
#include "admin/control/flush.h"
#include "admin/startup/alias_keeper.h"
#include "admin/startup/certificate_keeper.h"
#include "admin/startup/channel_wiring.h"
#include "admin/startup/cluster_wiring.h"
#include "admin/startup/configuration.h"
#include "admin/startup/control_wiring.h"
#include "admin/startup/drain.h"
#include "admin/startup/event_wiring.h"
#include "admin/startup/findings_wiring.h"
#include "admin/startup/give_wiring.h"
#include "admin/startup/group_wiring.h"
#include "admin/startup/history_wiring.h"
#include "admin/startup/http_wiring.h"
#include "admin/startup/listening.h"
#include "admin/startup/notify.h"
#include "admin/startup/peer_wiring.h"
#include "admin/startup/readiness.h"
#include "admin/startup/reload.h"
#include "admin/startup/sts_wiring.h"
#include "admin/startup/token_keeper.h"
#include "admin/startup/upstream_wiring.h"
#include "queue/manager/local.h"

enum { DAEMON_ERROR_MAX = 512 };

/* All but the first part is zeroed before daemon_read(). */
struct daemon {
    /* Set by the owner. */
    struct options_sources sources; /* what they point to must stay */
    struct loop *loop;              /* the daemon frees it */
    /* To be read by the owner. */
    struct configuration *configuration;
    struct configuration *started; /* some of it is in force until a restart */
    struct log *log;
    struct event_hub *events;
    struct net *net;
    struct dns *dns;
    struct manager *manager;
    struct local *local;
    struct channel_wiring channel;
    struct group_wiring group;
    struct peer_wiring peer;
    struct give_wiring give;
    struct cluster_wiring cluster;
    struct delivery *delivery;
    struct token_keeper keeper;
    struct sts_wiring sts;
    struct event_wiring kept;
    struct alias_keeper aliases;
    struct certificate_keeper certificates;
    struct listener *listener;
    struct listening listening;
    struct control_server *control;
    struct trials *trials;
    struct health health;
    struct readiness readiness;
    struct control_wiring wiring;
    struct http_wiring http;
    struct history *history;
    struct findings_wiring findings;
    struct flush *flush;
    struct sandbox *sandbox;
    struct reload reload;
    struct notify notify;
    struct drain drain;
    bool hands_over; /* SIGTERM has come, and siblings take the queue */
    struct upstream_wiring upstreams;
    unsigned draining;
};

/* False: the settings have errors, which are on standard error, and nothing was made. */
bool daemon_read(struct daemon *d);
/* The parts without files of their own: log, net. */
int daemon_open(struct daemon *d, char *error);
/* As the user to whom the spool belongs: recovery, and the way of mail out. */
int daemon_start_queue(struct daemon *d, char *error);
/* With the rights that ports and keys need: listeners. */
int daemon_start_doors(struct daemon *d, char *error);
/* As the final user: the rest, and the plan of d->sandbox, which the owner may enter. */
void daemon_prepare(struct daemon *d);
/* The daemon runs: all that is left is to run its loop until it ends. */
void daemon_begin(struct daemon *d);
/* Also after one of these has failed. ran: it had begun. */
void daemon_stop(struct daemon *d, bool ran);

/* The wishes of signals, once it runs: to read the settings anew; to end, open work
 * first; to end soon, and the second time immediately. The loop then stops. */
void daemon_reload(void *daemon);
void daemon_terminate(void *daemon);
void daemon_interrupt(void *daemon);

#endif
