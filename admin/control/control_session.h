/* A session with the daemon: the requests of the control protocol (control_server.h), one
 * at a time, and the lines that answer them. It knows no connection: the control socket and
 * the peer door (sibling_ask.h) carry its lines, each in its way.
 *
 * A sibling, another host of the group, may look, and may retry, hold and release mail; all
 * else is refused, and its questions are never passed on to other hosts. */
#ifndef ADMIN_CONTROL_CONTROL_SESSION_H
#define ADMIN_CONTROL_CONTROL_SESSION_H

#include "admin/answer/questions.h"
#include "admin/answer/trial.h"

struct control_session;
struct cluster_hosts;

/* The service that all sessions answer from. Plain data; the owner sets it, and clears none
 * of it while there are sessions. */
struct control_service {
    struct loop *loop;
    struct log *log;
    struct manager *manager;
    struct questions *questions;
    struct trials *trials; /* NULL: nobody sends test messages */
    /* The hosts that a request with "cluster": true asks (cluster_answer.h); NULL:
     * there is no group. */
    const struct cluster_hosts *cluster;
    /* Private. */
    struct control_session *sessions;
    unsigned asked; /* questions of siblings that are not dropped */
};

struct control_transport {
    void *context;
    /* A line of an answer, without its end. */
    void (*line)(void *context, struct text json);
    /* No more lines now: much waits to be sent, or the client has gone. After that
     * control_session_resume(). */
    bool (*is_full)(void *context);
    /* All lines are sent: a sign of life has a use. */
    bool (*is_idle)(void *context);
    /* The request that control_session_take() has begun is answered, in a later turn. The
     * session may be freed there. */
    void (*done)(void *context);
    /* The request wants the connection itself for HTTP. False, or NULL: there is none. */
    bool (*http)(void *context);
    bool is_sibling;
    /* Bytes of a line; 0: any. A longer line lacks items of its lists, as shorten.h
     * says. */
    size_t line_max;
};

/* Nothing is called before it returns. */
struct control_session *control_session_new(struct control_service *service,
                                            const struct control_transport *transport);
/* A request, without its line end, while the session is not busy. True: the last line has
 * been written; else done() comes. */
bool control_session_take(struct control_session *session, struct text line);
bool control_session_is_busy(const struct control_session *session);
/* The transport is no longer full. */
void control_session_resume(struct control_session *session);
/* Ends a request under way; an operation ends between two messages. Also within done(),
 * but not within line(). */
void control_session_free(struct control_session **session);
/* A line of an answer, by the transport itself. Takes the object. */
void control_session_reply(struct control_session *session, json_t *object);

/* To all sessions that wait for the answer of the question with that name: those for whom
 * questions_answer() had none. Takes the answer. */
void control_session_answer_all(struct control_service *service, const char *name,
                                json_t *answer);
/* The other hosts cannot be asked any more: questions to them under way are refused. */
void control_session_part(struct control_service *service);
/* A line of the history was written: wakes sessions that follow the message. */
void control_session_wake_all(struct control_service *service, struct id id);

#endif
