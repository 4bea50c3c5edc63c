/* sendmail(1): flags of forty years, and a message into the spool without a daemon. */
#include "admin/sendmail/sendmail.h"

#include "admin/command/queue_command.h"
#include "admin/command/command.h"
#include "admin/settings/alias_files.h"
#include "admin/settings/complaint.h"
#include "admin/sendmail/flags.h"
#include "admin/sendmail/display_name.h"
#include "admin/sendmail/submission.h"
#include "base/sandbox/identity.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "mime/address.h"
#include "queue/spool/spool_owner.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum {
    ROUTES_ERRORS_MAX = 64 * 1024, /* bytes */
    PIECE = 32 * 1024,
    SHOWN_MAX = 1024,
    FULL_NAME_MAX = 250,
    ENVELOPE_ID_MAX = 100, /* RFC 3461 §4.4 */
    /* Older drafts are removed (doc/dev/design.md "Crash rules"). */
    PATIENCE_MS = 24 * 3600 * 1000,
    BACKSTOP_S = 25 * 3600 /* a disk that hangs */
};

/* --- Envelope and name ------------------------------------------------------------ */

static int
set_sender(struct envelope *e, const char *sender, const char *hostname)
{
    struct buffer normal;
    int code = 0;
    if (sender[0] == '\0' || strcmp(sender, "<>") == 0)
        return 0;
    buffer_init(&normal, RECIPIENTS_ADDRESS_MAX);
    if (recipients_qualify_sender(text_from(sender), hostname, &normal))
        e->sender = envelope_text(e, buffer_text(&normal));
    else
        code = complaint_say("sendmail", EX_DATAERR, "the sender is not a mail address",
                             sender);
    buffer_free(&normal);
    return code;
}

/* An argument is an address, or a list of them. A word that begins with '-' was to be a
 * flag, which comes before the recipients; a line end would smuggle something
 * somewhere. */
static int
set_recipients(struct recipients *to, const struct flags *f)
{
    for (int i = 0; i < f->recipient_count; i++) {
        const char *given = f->recipients[i];
        unsigned before = recipients_count(to);
        if (given[0] == '-' || text_has_control(text_from(given)))
            return complaint_say("sendmail", EX_DATAERR,
                                 "the recipient is not a mail address", given);
        if (!recipients_add(to, text_from(given)))
            return complaint_say("sendmail", EX_DATAERR, to->error, given);
        if (recipients_count(to) == before && text_trim(text_from(given)).length == 0)
            return complaint_say("sendmail", EX_DATAERR, "a recipient is empty", "");
    }
    return 0;
}

static int
set_envelope_id(struct envelope *e, const char *id)
{
    struct buffer coded;
    int code = 0;
    if (id == NULL)
        return 0;
    buffer_init(&coded, ENVELOPE_ID_MAX);
    if (text_has_control(text_from(id)) || !xtext_write(text_from(id), &coded))
        code = complaint_say("sendmail", EX_USAGE,
                             "-V needs at most 100 printable characters", "");
    else
        e->envelope_id = envelope_text(e, buffer_text(&coded));
    buffer_free(&coded);
    return code;
}

/* The name from -F, else from the password entry. */
static struct text
take_full_name(const struct flags *f, const struct passwd *who, struct buffer *out)
{
    struct buffer plain;
    buffer_init(&plain, SHOWN_MAX);
    if (f->full_name == NULL && who)
        (void)!display_name_from_gecos(text_from(who->pw_gecos),
                                       text_from(who->pw_name), &plain);
    struct text name = f->full_name ? text_from(f->full_name) : buffer_text(&plain);
    name = display_name_clean(name, out);
    buffer_free(&plain);
    return name;
}

/* --- The message ------------------------------------------------------------------ */

/* Standard input: the message. */
struct sendmail_input {
    struct loop *loop;
    int64_t end_ms; /* monotonic: the message has to end by then */
    bool over;      /* at its end, or nothing more is expected */
};

/* Reads the next piece of standard input. Returns its length, 0 at the end, or -errno;
 * -ETIME after the timeout. */
static ssize_t
sendmail_read_piece(struct sendmail_input *in, char *piece)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    ssize_t got;
    int ready;
    do {
        loop_turn(in->loop, 0); /* reads the clock */
        int64_t left_ms = in->end_ms - loop_monotonic_ms(in->loop);
        ready = left_ms > 0 ? poll(&input, 1, (int)left_ms) : 0;
        if (ready == 0)
            return -ETIME;
        got = ready < 0 ? -1 : read(STDIN_FILENO, piece, PIECE);
    } while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

/* A program that writes the message before it asks for the exit code would see EPIPE,
 * and not why it is refused. A person at a terminal is not asked for the rest. */
static void
sendmail_read_rest(struct sendmail_input *in, int64_t most)
{
    char *piece = memory_new(PIECE);
    ssize_t got = 1;
    in->over |= isatty(STDIN_FILENO) == 1;
    while (!in->over && got > 0 && most > 0) {
        got = sendmail_read_piece(in, piece);
        most -= got;
    }
    free(piece);
}

static int
read_message(struct submission *s, const struct flags *f, const struct recipients *to,
             struct sendmail_input *in)
{
    char *piece = memory_new(PIECE);
    char id[ID_LENGTH + 1], error[512];
    ssize_t got;
    while ((got = sendmail_read_piece(in, piece)) > 0 &&
           submission_add(s, text_of(piece, (size_t)got)))
        ;
    free(piece);
    in->over = got <= 0 || !submission_is_refused(s); /* behind a dot nothing comes */
    if (got == -ETIME)
        return complaint_say("sendmail", EX_TEMPFAIL, "the message did not end in time",
                             "");
    if (got < 0)
        return complaint_say("sendmail", EX_IOERR,
                             "cannot read the message: ", strerror((int)-got));
    int code = submission_finish(s, id, error, sizeof(error));
    if (code != 0)
        return complaint_say("sendmail", code, error, "");
    if (to->broken_count > 0)
        (void)complaint_say("sendmail", 0,
                            "not a mail address, it is returned to the sender",
                            to->broken);
    if (f->verbose && to->full_count > 0)
        printf("queued as %s and %u more\n", id, to->full_count);
    else if (f->verbose)
        printf("queued as %s\n", id);
    return 0;
}

/* The envelope is complete but for the facts of the header. */
static int
sendmail_submit(const struct flags *f, const struct options *o, struct recipients *to,
                const struct passwd *who, struct queue *queue,
                struct sendmail_input *in)
{
    struct buffer name;
    buffer_init(&name, FULL_NAME_MAX);
    struct submission_settings settings = {
        .hostname = o->hostname,
        .message_size_limit = o->message_size_limit,
        .from_header = f->from_header,
        .dot_ends = !f->ignore_dots,
        .full_name = take_full_name(f, who, &name),
        .uid = (unsigned)getuid(),
    };
    struct submission *s = submission_new(&settings, in->loop, queue, to);
    int code = read_message(s, f, to, in);
    submission_free(&s);
    buffer_free(&name);
    return code;
}

static int
inject(const struct flags *f, const struct options *o, struct queue *queue,
       struct sendmail_input *in)
{
    const struct passwd *who = getpwuid(getuid());
    char user[64];
    struct envelope *e = envelope_new();
    struct recipients to = {
        .envelope = e, .hostname = o->hostname, .notify = f->notify};
    if (who)
        snprintf(user, sizeof(user), "%s", who->pw_name);
    else
        snprintf(user, sizeof(user), "uid%u", (unsigned)getuid());
    int code = set_sender(e, f->sender ? f->sender : user, o->hostname);
    if (code == 0)
        code = set_envelope_id(e, f->envelope_id);
    e->ret = f->ret;
    if (code == 0)
        code = set_recipients(&to, f);
    if (code == 0)
        code = sendmail_submit(f, o, &to, who, queue, in);
    recipients_free(&to);
    return code;
}

void
sendmail_give_spool(const struct options *o)
{
    struct identity who;
    unsigned owner = spool_owner_of(o->spool);
    bool known = geteuid() == 0 && o->user != NULL && identity_find(&who, o->user);
    if (!known && geteuid() == 0 && owner != 0)
        known = identity_find_number(&who, owner);
    if (known && who.uid != 0)
        (void)!spool_owner_give(o->spool, who.uid, who.gid);
}

/* The message into the spool, which is opened, and made where it is missing. */
static int
inject_into_spool(const struct flags *f, const struct options *o,
                  struct sendmail_input *in)
{
    char error[1024];
    struct queue *queue;
    struct queue_settings settings = o->manager.queue;
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_WARNING);
    sendmail_give_spool(o);
    int code = queue_open_injector(&queue, log, &settings, error, sizeof(error));
    if (code == 0) {
        code = inject(f, o, queue, in);
        queue_close(&queue);
    } else {
        complaint_say("sendmail", code, error, "");
    }
    log_free(&log);
    return code;
}

static int
send_message(const struct flags *f, const struct options *o,
             const struct sendmail_helpers *helpers)
{
    struct loop *loop = loop_new();
    int64_t patience_ms = helpers->patience_ms ? helpers->patience_ms : PATIENCE_MS;
    struct sendmail_input in = {loop, loop_monotonic_ms(loop) + patience_ms, false};
    alarm(BACKSTOP_S);
    int code = f->recipient_count == 0 && !f->from_header
                   ? complaint_say("sendmail", EX_USAGE,
                                   "no recipients: name them, or use -t", "")
                   : inject_into_spool(f, o, &in);
    if (code != 0)
        sendmail_read_rest(&in, o->message_size_limit);
    loop_free(&loop);
    return code;
}

/* --- Modes ------------------------------------------------------------------------ */

/* -q: Postfix's flush, of all, of a destination, a sender, a message. */
static int
sendmail_retry(const struct flags *f, const struct options *o)
{
    struct id id;
    struct filter *filter = memory_new(sizeof(*filter));
    filter_clear(filter);
    filter->to = f->queue_to;
    filter->from =
        f->queue_from && strcmp(f->queue_from, "<>") == 0 ? "" : f->queue_from;
    filter->everything = !f->queue_to && !f->queue_from && !f->queue_id;
    int code = 0;
    if (f->queue_id &&
        !(id_read(text_from(f->queue_id), &id) && filter_add_id(filter, id)))
        code = complaint_say("sendmail", EX_USAGE, "not a message id", f->queue_id);
    if (code == 0)
        code = queue_command_flush(filter, f->verbose, o);
    free(filter);
    return code;
}

/* newaliases(1): nothing is compiled, as the daemon reads the files when they change. It
 * reports the names that the daemon will find. */
static int
newaliases(const struct options *o)
{
    struct buffer errors;
    struct aliases *table = NULL;
    struct alias_files *files = NULL;
    buffer_init(&errors, ROUTES_ERRORS_MAX);
    struct route_table *routes = options_routes(o, &errors);
    bool good = routes != NULL && alias_files_read(o, routes, &table, &files, &errors);
    complaint_write(&errors);
    if (good && table == NULL)
        puts("aliases is not set: no file is read");
    else if (good)
        printf("%s: %zu name%s, %zu address%s%s%s\n",
               o->aliases != NULL ? o->aliases : "no file", aliases_names(table),
               aliases_names(table) == 1 ? "" : "s", aliases_values(table),
               aliases_values(table) == 1 ? "" : "es",
               o->root != NULL ? "; root: " : "", o->root != NULL ? o->root : "");
    alias_files_free(&files);
    aliases_free(&table);
    route_free(&routes);
    buffer_free(&errors);
    if (!good)
        return EX_CONFIG;
    return fflush(stdout) == 0 ? 0 : EX_IOERR;
}

/* -bv: the routes of addresses, and where they lead. */
static void
print_target(const struct target *target)
{
    if (target->to[0] != '\0')
        printf("redirected to %s: ", target->to);
    switch (target->kind) {
    case TARGET_MX:
        puts("deliverable: mx");
        break;
    case TARGET_SMTP:
    case TARGET_LMTP:
        printf("deliverable: %s ", target->kind == TARGET_SMTP ? "smtp" : "lmtp");
        if (target->host[0])
            printf("%s:%u\n", target->host, (unsigned)target->port);
        else
            printf("unix:%s\n", target->path);
        break;
    case TARGET_MAILDIR:
        printf("deliverable: maildir %s\n", target->path);
        break;
    case TARGET_HTTP:
        printf("deliverable: http %s:%u%s\n", target->host, (unsigned)target->port,
               target->path + target->url);
        break;
    case TARGET_HOLD:
        puts("deliverable: held until an operator releases it");
        break;
    case TARGET_DISCARD:
        puts("deliverable: discarded");
        break;
    case TARGET_ERROR:
        printf("refused: %s %s\n", target->enhanced, target->path);
        break;
    case TARGET_UNKNOWN:
        puts("refused: 5.1.1 unknown user");
        break;
    }
}

static int
verify(const struct route_table *routes, struct text normal)
{
    struct address address;
    if (!address_parse(normal, &address)) {
        printf("%.*s... refused: 5.1.3 not an address\n", TEXT_ARGS(normal));
        return EX_NOUSER;
    }
    const struct target *target = route_find(routes, &address);
    printf("%.*s... ", TEXT_ARGS(normal));
    print_target(target);
    return target->kind == TARGET_ERROR || target->kind == TARGET_UNKNOWN ? EX_NOUSER
                                                                          : 0;
}

static int
verify_list(const struct route_table *routes, const char *list, const char *hostname)
{
    int code = 0;
    struct envelope **e;
    struct recipients r = {.envelope = envelope_new(), .hostname = hostname};
    struct text given = text_from(list);
    if (text_has_control(given) || !recipients_add(&r, given) ||
        recipients_count(&r) == 0) {
        fputs("sendmail: an argument is not a mail address\n", stderr);
        code = EX_DATAERR;
    }
    for (unsigned n = 0; (e = recipients_envelope(&r, n)) != NULL; n++)
        for (unsigned i = 0; i < (*e)->count; i++) {
            int one = verify(routes, (*e)->recipients[i].address);
            code = code ? code : one;
        }
    recipients_free(&r);
    return code;
}

int
sendmail_verify(int count, char **addresses, const struct options *options)
{
    struct buffer errors;
    int code = 0;
    buffer_init(&errors, ROUTES_ERRORS_MAX);
    struct route_table *routes = options_routes(options, &errors);
    if (routes == NULL)
        code = EX_CONFIG;
    for (int i = 0; i < count && routes; i++) {
        int one = verify_list(routes, addresses[i], options->hostname);
        code = code ? code : one;
    }
    complaint_write(&errors);
    route_free(&routes);
    buffer_free(&errors);
    return code;
}

/* The flag that a program's name stands for: NULL when the name is not one of ours. */
static char *
sendmail_named(const char *name)
{
    static struct {
        const char *name;
        char flag[4]; /* main's arguments are not const */
    } names[] = {
        {"sendmail",   ""   },
        {"mailq",      "-bp"},
        {"newaliases", "-bi"}
    };
    const char *base = strrchr(name, '/');
    base = base ? base + 1 : name;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(base, names[i].name) == 0)
            return names[i].flag;
    return NULL;
}

char **
sendmail_called(const char *file, int count, char **arguments, int *used)
{
    static char sendmail[] = "sendmail";
    char *flag = sendmail_named(count > 0 ? arguments[0] : "");
    if (flag == NULL && file != NULL)
        flag = sendmail_named(file); /* mpack calls it "l" */
    if (flag == NULL)
        return NULL;
    char **all = memory_array((size_t)count + 3, sizeof(*all));
    *used = 0;
    all[(*used)++] = sendmail;
    if (*flag != '\0')
        all[(*used)++] = flag;
    for (int i = 1; i < count; i++)
        all[(*used)++] = arguments[i];
    return all;
}

int
sendmail_main(int count, char **arguments, const struct options *options,
              const struct sendmail_helpers *helpers)
{
    struct flags f;
    int code = flags_parse(&f, count, arguments);
    if (code != 0)
        return code;
    switch (f.mode) {
    case 'p':
        return command_mailq(options);
    case 's':
        sendmail_give_spool(options);
        return helpers->serve(options);
    case 'q':
        return sendmail_retry(&f, options);
    case 'i':
        return newaliases(options);
    case 'v':
        return sendmail_verify(f.recipient_count, f.recipients, options);
    default:
        break;
    }
    return send_message(&f, options, helpers);
}
