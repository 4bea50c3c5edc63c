/* A Petrel with sockets and a queue but without a way out, and clients that visit it.
 */
#ifndef T_SUPPORT_LISTENER_WORLD_H
#define T_SUPPORT_LISTENER_WORLD_H

#include "smtp/session/listener.h"

#include "base/log/log.h"
#include "base/loop/loop.h"
#include "queue/queue_operator.h"
#include "t/support/folder.h"
#include "t/support/port.h"
#include "t/support/dialog.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/event/event.h"

enum { PATIENCE_MS = 60000, TURN_MS = 5 };

/* --- A Petrel without a way out ----------------------------------------------- */

struct world {
    struct loop *loop;
    struct net *net;
    struct log *log;
    struct event_hub *events;
    struct buffer lines;
    struct manager *manager;
    struct route_table *routes;
    struct listener *listener;
    struct listener_settings settings;
    char spool[64], listen[160], error[300];
    unsigned port;
    bool drained;
    struct text defrag_peers;
};

void make_routes(struct world *w);

/* peers: defrag_peers, which lives as long as the world. */
void world_start_among(struct world *w, const struct server_rules *rules, bool lmtp, bool may_relay, const char *peers);

void listener_world_start(struct world *w, const struct server_rules *rules, bool lmtp, bool may_relay);

void listener_world_end(struct world *w);

/* For patience alone: no test stops this one. */
int64_t listener_now_ms(void);

/* --- A client ----------------------------------------------------------------- */

struct visitor {
    struct world *world;
    int socket;
    struct buffer heard;
    size_t read;
    bool closed;
};

void visitor_on(struct visitor *v, struct world *w, int socket_number);

void visit(struct visitor *v, struct world *w);

void leave(struct visitor *v);

void hear(struct visitor *v);

void turn(struct visitor *v, int64_t wait_ms);

void say(struct visitor *v, struct text bytes, size_t piece);

/* The next line of the server, without its CRLF. */
bool next_line(struct visitor *v, struct text *line);

bool hears(struct visitor *v, struct text want);

bool is_closed(struct visitor *v);

/* One command and the last line of its reply. */
bool asks(struct visitor *v, const char *command, const char *reply);

void listener_turns(struct world *w, unsigned count);

/* --- Its queue ---------------------------------------------------------------- */

enum { STORED_MAX = 32 };
struct stored {
    struct world *world;
    struct {
        struct envelope *envelope;
        struct buffer content;
        bool shown;
    } messages[STORED_MAX];
    size_t count;
};

bool collect(void *context, struct id id, enum queue_place place);

/* For listener_drain(); context is the world. */
void on_drained(void *context);

/* How often the log has these words. */
unsigned world_times_logged(const struct world *w, const char *words);

#endif
