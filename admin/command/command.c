/* `petrel queue`: shows the queue to the operator, and changes it. */
#include "admin/command/command.h"

#include "admin/command/cluster_queue.h"
#include "admin/view/control_client.h"
#include "admin/command/queue_command.h"
#include "admin/command/offline.h"
#include "admin/command/shape.h"
#include "admin/command/counter.h"
#include "admin/answer/filter.h"
#include "base/json_field.h"
#include "admin/view/listing.h"
#include "admin/answer/request.h"
#include "admin/view/trace_print.h"
#include "admin/view/terminal.h"
#include "admin/view/why.h"
#include "admin/history/trace.h"
#include "base/memory.h"
#include "base/settings/settings_value.h"
#include "queue/queue.h"
#include "queue/manager/deferral_reasons.h"
#include "queue/queue_operator.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum {
    PIECE = 32 * 1024,
    PATIENCE_MS = 10 * 1000,
    TRY_MS = 100,
    SHOWN_LIVES_MAX = 20,
    /* Limits of one question to the daemon: */
    BATCH_MAX = 250,
    BATCH_RECIPIENTS_MAX = 10000
};

/* A message that was found, and waits for its turn to be shown. */
struct visited {
    struct envelope *envelope;
    enum queue_place place;
};

/* One run of a queue command. */
struct visit {
    struct loop *loop;
    struct log *log;
    struct queue *queue;
    struct control_client *daemon;    /* NULL: not running; reasons of its last run */
    struct deferral_reasons *reasons; /* why mail waits; else NULL */
    struct filter filter;
    const struct verb *verb;
    struct visited batch[BATCH_MAX];
    size_t batched, recipients;
    size_t done;
    struct counter counter;
    struct shape *shape; /* of `queue shape`, by: */
    enum shape_by by;
    int code;
    bool stop;     /* nothing more can be done */
    bool is_mailq; /* which says so when there is no mail */
    bool quiet;    /* about a message that is not there */
};

struct verb {
    const char *name;
    const char *question; /* to the daemon, about each message */
    bool needs_choice;    /* ids, a filter or --all: never everything by accident */
    void (*run)(struct visit *v, const struct envelope *e, const json_t *listing);
    void (*run_corrupt)(struct visit *v, struct id id);
};

static void
command_complain(struct visit *v, struct id id, int code, const char *what)
{
    char name[ID_LENGTH + 1];
    counter_hide(&v->counter);
    id_format(id, name);
    fprintf(stderr, "petrel queue: %s: %s\n", name, what);
    if (v->code == 0)
        v->code = code;
}

static void
run_ls(struct visit *v, const struct envelope *e, const json_t *listing)
{
    (void)e;
    if (v->filter.json)
        json_field_print_line(listing);
    else
        listing_print_line(listing, loop_now_ms(v->loop));
}

/* For named messages only: a search reads the whole history. */
static void
show_history(const struct visit *v, struct id id)
{
    if (v->filter.id_count == 0 || v->filter.id_count > SHOWN_LIVES_MAX)
        return;
    json_t *life = trace_life(queue_disk(v->queue), id);
    if (life != NULL) {
        puts("history:");
        trace_print_events(life, stdout);
    }
    json_decref(life);
}

static void
run_show(struct visit *v, const struct envelope *e, const json_t *listing)
{
    if (v->filter.json) {
        run_ls(v, e, listing);
        return;
    }
    if (v->done > 0)
        putchar('\n');
    listing_print_page(listing, loop_now_ms(v->loop));
    show_history(v, e->id);
}

static void
run_why(struct visit *v, const struct envelope *e, const json_t *listing)
{
    if (v->filter.json) {
        run_ls(v, e, listing);
        return;
    }
    if (v->done > 0)
        putchar('\n');
    why_print(listing, loop_now_ms(v->loop));
}

static void
run_cat(struct visit *v, const struct envelope *e, const json_t *listing)
{
    (void)listing;
    int content = queue_content_open(v->queue, e);
    if (content < 0) {
        command_complain(v, e->id, EX_IOERR, strerror(-content));
        return;
    }
    char *piece = memory_new(PIECE);
    int64_t offset = 0, got;
    struct terminal terminal;
    terminal_start(&terminal, stdout, isatty(STDOUT_FILENO));
    terminal_write(&terminal, e->prefix);
    while ((got = queue_content_read(v->queue, content, offset, piece, PIECE)) > 0) {
        terminal_write(&terminal, text_of(piece, (size_t)got));
        offset += got;
    }
    terminal_end(&terminal);
    if (got < 0)
        command_complain(v, e->id, EX_IOERR, strerror((int)-got));
    free(piece);
    queue_content_close(v->queue, content);
}

static json_t *
ask_about(struct visit *v, const char *command, struct id id)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    json_t *answer = control_client_question(
        v->daemon, json_pack("{s:s,s:s}", "command", command, "id", name));
    if (answer == NULL) {
        command_complain(v, id, EX_UNAVAILABLE, control_client_trouble(v->daemon));
        v->stop = true;
    }
    return answer;
}

/* Why it is in hold/ or corrupt/, and since when. */
static void
add_note(struct visit *v, json_t *listing, struct id id, enum queue_place place)
{
    char note[QUEUE_NOTE_MAX];
    if (queue_note(v->queue, id, place, note) == 0)
        listing_add_note(listing, note);
}

static void
list_corrupt(struct visit *v, struct id id)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    json_t *listing = json_pack("{s:s,s:s}", "queue_name", "corrupt", "queue_id", name);
    add_note(v, listing, id, QUEUE_CORRUPT);
    run_ls(v, NULL, listing);
    json_decref(listing);
}

static void
refuse_corrupt(struct visit *v, struct id id)
{
    if (v->filter.id_count > 0)
        command_complain(v, id, EX_DATAERR, "is damaged: its files are in corrupt/");
}

static void
run_waits(struct visit *v, const struct envelope *e, const json_t *listing)
{
    (void)e;
    why_print_now(listing, loop_now_ms(v->loop));
}

static void
run_shape(struct visit *v, const struct envelope *e, const json_t *listing)
{
    shape_add_message(v->shape, v->by, e, json_object_get(listing, "why"),
                      loop_now_ms(v->loop));
}

/* Its recipients cannot be read. */
static void
shape_corrupt(struct visit *v, struct id id)
{
    (void)v, (void)id;
}

static const struct verb verbs[] = {
    {"ls",    "state", false, run_ls,    list_corrupt  },
    {"show",  "state", true,  run_show,  list_corrupt  },
    {"why",   "why",   true,  run_why,   list_corrupt  },
    {"cat",   "state", true,  run_cat,   refuse_corrupt},
    {"shape", "state", false, run_shape, shape_corrupt },
};

static const struct verb shape_sites = {"shape", "why", false, run_shape,
                                        shape_corrupt};

static const char *
command_place_on_disk(enum queue_place place, const struct envelope *e)
{
    bool is_open =
        place == QUEUE_MAILDROP || place == QUEUE_INCOMING || place == QUEUE_DEFERRED;
    if (is_open && e->storage.preprocessed)
        place = QUEUE_DEFERRED;
    else if (place == QUEUE_DEFERRED)
        place = QUEUE_INCOMING;
    return listing_disk_place(place);
}

static void
visit_corrupt(struct visit *v, struct id id)
{
    if (!filter_matches_place(&v->filter, "corrupt"))
        return;
    counter_hide(&v->counter);
    v->verb->run_corrupt(v, id);
    v->done++;
    counter_done(&v->counter);
}

/* Takes the state; NULL: there is no answer about it. */
static void
show_envelope(struct visit *v, struct envelope *e, enum queue_place place,
              json_t *state)
{
    const char *disk = command_place_on_disk(place, e);
    const char *now_at = json_string_value(json_object_get(state, "place"));
    bool told = now_at && strcmp(now_at, "unknown") != 0;
    bool gone = now_at && strcmp(now_at, "gone") == 0; /* its files follow */
    if (gone)
        filter_lose_id(&v->filter, e->id);
    if (!v->stop && !gone &&
        filter_matches(&v->filter, e, told ? now_at : disk, loop_now_ms(v->loop))) {
        json_t *listing = listing_make(e, told ? "" : disk, state);
        if (place == QUEUE_HOLD)
            add_note(v, listing, e->id, place);
        if (v->daemon && state && strcmp(v->verb->question, "why") == 0)
            json_object_set(listing, "why", state);
        if (v->shape == NULL)
            counter_hide(&v->counter);
        v->verb->run(v, e, listing);
        v->done++;
        counter_done(&v->counter);
        json_decref(listing);
    }
    json_decref(state);
}

/* The scheduler does not know held messages. */
static bool
is_asked(const struct visit *v, const struct visited *row)
{
    return v->daemon != NULL && row->place != QUEUE_HOLD;
}

/* States of the messages from `from` on, perhaps not of all. NULL: ask for each. */
static json_t *
ask_states(struct visit *v, size_t from)
{
    char name[ID_LENGTH + 1];
    json_t *ids = json_array();
    if (strcmp(v->verb->question, "state") != 0) {
        json_decref(ids);
        return NULL;
    }
    for (size_t i = from; i < v->batched; i++) {
        id_format(v->batch[i].envelope->id, name);
        if (is_asked(v, &v->batch[i]))
            json_array_append_new(ids, json_string(name));
    }
    json_t *answer = control_client_question(
        v->daemon, json_pack("{s:s,s:o}", "command", "states", "ids", ids));
    json_t *states = json_incref(json_object_get(answer, "states"));
    json_decref(answer);
    return states;
}

/* As the daemon would tell it after a start. */
static json_t *
last_state(const struct visit *v, const struct visited *row)
{
    const char *reason = v->reasons && row->place != QUEUE_HOLD
                             ? deferral_reasons_find(v->reasons, row->envelope->id)
                             : "";
    return reason[0] ? json_pack("{s:[o]}", "reasons", listing_text(text_from(reason)))
                     : NULL;
}

/* The next state of the answer, which is asked for when there is none left. */
static json_t *
next_state(struct visit *v, size_t index, json_t **states, size_t *used)
{
    if (*used == json_array_size(*states)) {
        json_decref(*states);
        *states = ask_states(v, index);
        *used = 0;
    }
    json_t *state = json_array_get(*states, *used);
    if (state == NULL)
        return ask_about(v, v->verb->question, v->batch[index].envelope->id);
    ++*used;
    return json_incref(state);
}

static void
show_batch(struct visit *v)
{
    json_t *states = NULL;
    size_t used = 0;
    for (size_t i = 0; i < v->batched; i++) {
        struct visited *row = &v->batch[i];
        json_t *state = !v->stop && is_asked(v, row) ? next_state(v, i, &states, &used)
                                                     : last_state(v, row);
        if (!v->stop)
            show_envelope(v, row->envelope, row->place, state);
        else
            json_decref(state);
        envelope_free(&row->envelope);
    }
    json_decref(states);
    v->batched = v->recipients = 0;
}

/* Its place may change, the rest does not. */
static bool
may_match(struct visit *v, const struct envelope *e)
{
    const char *place = v->filter.place ? v->filter.place : "";
    return filter_matches(&v->filter, e, place, loop_now_ms(v->loop));
}

static bool
command_visit(void *context, struct id id, enum queue_place place)
{
    struct visit *v = context;
    if (!filter_wants_id(&v->filter, id))
        return true;
    counter_look(&v->counter);
    if (place == QUEUE_CORRUPT) {
        show_batch(v); /* all in the order of their age */
        visit_corrupt(v, id);
        return !v->stop;
    }
    /* Damaged content is refused, never shown in part. */
    bool whole = v->verb->run == run_cat;
    struct envelope *e =
        whole ? queue_load(v->queue, id) : queue_peek(v->queue, id, place);
    if (e == NULL)
        return true; /* it was delivered meanwhile */
    if (!may_match(v, e)) {
        envelope_free(&e);
        return true;
    }
    v->batch[v->batched++] = (struct visited){e, place};
    v->recipients += e->count;
    if (v->batched == BATCH_MAX || v->recipients >= BATCH_RECIPIENTS_MAX)
        show_batch(v);
    return !v->stop;
}

static const struct verb *
find_verb(const char *name)
{
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

static int
command_usage(void)
{
    fputs("usage: " COMMAND_QUEUE_USES, stderr);
    return EX_USAGE;
}

static int
command_refuse_verb(const char *name)
{
    enum { LOOKS = sizeof(verbs) / sizeof(*verbs), CHANGES = MANAGER_REMOVE + 1 };
    struct setting names[LOOKS + CHANGES + 1] = {{0}};
    for (size_t i = 0; i < LOOKS; i++)
        names[i].key = verbs[i].name;
    for (size_t i = 0; i < CHANGES; i++)
        names[LOOKS + i].key = request_word((enum manager_verb)i);
    const struct setting *near = settings_guess(names, text_from(name));
    if (near == NULL)
        return command_usage();
    fprintf(stderr, "petrel queue: %.60s: unknown (did you mean '%s'?)\n", name,
            near->key);
    return EX_USAGE;
}

/* Without a daemon looking still works. One that does not answer yet may be starting;
 * and a command that has the queue for a moment looks like one. */
static int
find_daemon(struct visit *v, const struct options *options)
{
    char error[512] = "";
    int64_t end_ms = loop_monotonic_ms(v->loop) + PATIENCE_MS;
    while (queue_has_daemon(v->queue)) {
        v->daemon = control_client_new(v->loop, options->control, error, sizeof(error));
        if (v->daemon)
            return 0;
        if (errno == EACCES) {
            fprintf(stderr, "petrel queue: %s\n", error);
            return EX_NOPERM;
        }
        if (loop_monotonic_ms(v->loop) >= end_ms) {
            fprintf(stderr, "petrel queue: a daemon runs, but: %s\n", error);
            return EX_UNAVAILABLE;
        }
        loop_turn(v->loop, TRY_MS);
    }
    if (v->verb == &shape_sites) {
        fputs("petrel queue: --by site needs the daemon, which knows the sites\n",
              stderr);
        return EX_UNAVAILABLE;
    }
    v->reasons = reasons_read_all(queue_disk(v->queue));
    return 0;
}

/* Scripts look for it: mailq prints it on standard output, as others do. */
static void
say_none(const struct visit *v)
{
    if (v->is_mailq)
        puts("Mail queue is empty");
    else if (!filter_is_open(&v->filter) && !v->filter.json)
        fputs("petrel queue: no message matches\n", stderr);
}

static bool
is_in_history(const struct visit *v, struct id id)
{
    json_t *life = trace_life(queue_disk(v->queue), id);
    json_decref(life);
    return life != NULL;
}

static void
print_shape(struct visit *v)
{
    if (!v->filter.json) {
        shape_print(v->shape, stdout);
        return;
    }
    json_t *all = shape_make(v->shape);
    json_object_set_new(all, "by", json_string(shape_word(v->by)));
    json_field_print_line(all);
    json_decref(all);
}

static int
walk(struct visit *v, const struct options *options)
{
    char name[ID_LENGTH + 1];
    int code = find_daemon(v, options);
    if (code != 0)
        return code;
    int error = queue_each(v->queue, command_visit, v);
    show_batch(v);
    counter_hide(&v->counter);
    if (error != 0) {
        fprintf(stderr, "petrel queue: cannot read '%s': %s\n", options->spool,
                strerror(-error));
        return EX_NOPERM;
    }
    const struct id *missing = v->stop || v->quiet ? NULL : filter_missing(&v->filter);
    if (missing) {
        id_format(*missing, name);
        if (is_in_history(v, *missing))
            fprintf(stderr,
                    "petrel queue: %s: no such message; `petrel trace %s` says what "
                    "became of it\n",
                    name, name);
        else
            fprintf(stderr, "petrel queue: %s: no such message\n", name);
        return v->code ? v->code : EX_DATAERR;
    }
    if (v->shape != NULL && v->code == 0 && !v->stop)
        print_shape(v);
    else if (v->done == 0 && v->code == 0 && !v->stop)
        say_none(v);
    return v->code;
}

static int
command_look(struct visit *v, const struct options *options)
{
    char error[512];
    unsigned owner;
    struct queue_settings settings = options->manager.queue;
    counter_start_here(&v->counter, v->verb->run != run_cat);
    v->loop = loop_new();
    v->log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_WARNING);
    int code = offline_find(options->spool, &owner, error, sizeof(error));
    if (code == 0)
        code = queue_open_injector(&v->queue, v->log, &settings, error, sizeof(error));
    if (code == 0) {
        code = walk(v, options);
        control_client_free(&v->daemon);
        deferral_reasons_free(&v->reasons);
        queue_close(&v->queue);
    } else {
        fprintf(stderr, "petrel queue: %s\n", error);
    }
    log_free(&v->log);
    loop_free(&v->loop);
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == 0)
        code = EX_IOERR;
    if (v->verb->run == run_ls && !v->stop && code == 0)
        counter_end(&v->counter, v->done, "");
    return code;
}

/* In verbs[] it has the question of the other groupings. */
static int
command_shape(struct visit *v, int count, char **arguments,
              const struct options *options)
{
    if (!shape_parse(&count, arguments, &v->by) ||
        !filter_parse(&v->filter, count, arguments))
        return EX_USAGE;
    if (v->filter.cluster)
        return cluster_queue_command("shape", &v->filter, options);
    if (v->by == SHAPE_BY_SITE)
        v->verb = &shape_sites;
    v->shape = shape_new();
    int code = command_look(v, options);
    shape_free(&v->shape);
    return code;
}

int
command_mailq(const struct options *options)
{
    struct visit v = {.verb = find_verb("ls"), .is_mailq = true};
    filter_clear(&v.filter);
    return command_look(&v, options);
}

int
command_queue(int count, char **arguments, const struct options *options)
{
    struct visit v = {0};
    enum manager_verb verb;
    if (count > 0 && strcmp(arguments[0], "adopt") == 0)
        return queue_command_adopt(count - 1, arguments + 1, options);
    bool changes = count > 0 && request_find_verb(arguments[0], &verb);
    v.verb = count > 0 ? find_verb(arguments[0]) : NULL;
    if (v.verb == NULL && !changes)
        return count > 0 ? command_refuse_verb(arguments[0]) : command_usage();
    if (!changes && v.verb->run == run_shape)
        return command_shape(&v, count - 1, arguments + 1, options);
    if (changes && verb == MANAGER_RETRY && count > 2 &&
        strcmp(arguments[1], "--forget-limits") == 0)
        return queue_command_forget_limits(count - 2, arguments + 2, options);
    if (!filter_parse(&v.filter, count - 1, arguments + 1))
        return EX_USAGE;
    if (v.filter.cluster &&
        (!filter_is_open(&v.filter) || strcmp(arguments[0], "ls") == 0))
        return cluster_queue_command(arguments[0], &v.filter, options);
    if ((changes || v.verb->needs_choice) && filter_is_open(&v.filter))
        return command_usage();
    return changes ? queue_command_messages(verb, &v.filter, options)
                   : command_look(&v, options);
}

void
command_queue_waits(const char *id, const struct options *options)
{
    static const struct verb waits = {"waits", "why", true, run_waits, refuse_corrupt};
    struct visit *v = memory_new(sizeof(*v));
    char *arguments[] = {memory_string(id)};
    v->verb = &waits;
    v->quiet = true;
    if (filter_parse(&v->filter, 1, arguments))
        (void)command_look(v, options);
    free(arguments[0]);
    free(v);
}

struct ids_wanted {
    struct text begin;
    size_t left;
};

static bool
print_id(void *context, struct id id, enum queue_place place)
{
    struct ids_wanted *wanted = context;
    char name[ID_LENGTH + 1];
    (void)place;
    id_format(id, name);
    if (text_starts(text_from(name), wanted->begin)) {
        puts(name);
        wanted->left--;
    }
    return wanted->left > 0;
}

void
command_queue_ids(const struct options *options, struct text begin, size_t limit)
{
    char error[512];
    struct ids_wanted wanted = {begin, limit};
    struct queue_settings settings = options->manager.queue;
    struct queue *queue;
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    /* The Tab key makes no spool, which would be root's. */
    if (access(options->spool, F_OK) == 0 &&
        queue_open_injector(&queue, log, &settings, error, sizeof(error)) == 0) {
        (void)!queue_each(queue, print_id, &wanted);
        queue_close(&queue);
    }
    log_free(&log);
}
