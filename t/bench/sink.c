/* sink: an SMTP and LMTP server that takes all mail, or refuses it as told, and counts.
 */
#include "t/bench/session.h"

#include <getopt.h>
#include <signal.h>

static const char HELP[] =
    "sink: an SMTP server for tests and measurements.\n"
    "  --listen ADDRESS:PORT   default 127.0.0.1:0; also unix:PATH; prints \"listening "
    "ADDRESS\"\n"
    "  --control ADDRESS:PORT  prints \"control ADDRESS\"; answers stats, reset, wait "
    "N SECONDS\n"
    "  --count-file FILE       the counters go there too, on SIGUSR1 and at the end\n"
    "  --directory DIR         keep messages: N.eml (content), N.envelope (X-Sink "
    "lines)\n"
    "  --capture               keep what each connection sent: connection.N.raw\n"
    "  --lmtp                  LHLO, one reply for each recipient\n"
    "  --no-ehlo --no-pipelining --no-8bitmime\n"
    "  --size N                offer SIZE N and hold it\n"
    "  --max-messages N        for each connection, then 421\n"
    "  --fail STAGE:CODE[:COUNT]  refuse there; banner helo mail rcpt data dot\n"
    "  --fail-rcpt PART:CODE[:COUNT]   refuse addresses that contain PART\n"
    "  --fail-lmtp PART:CODE[:COUNT]   the same behind the final dot (LMTP)\n"
    "  --delay STAGE:MS        reply late; also body\n"
    "  --close STAGE[:COUNT]   drop the connection there; also body. At dot the "
    "message is kept\n"
    "STAGE=CODE and PART=CODE are understood too, --code as --fail, --reject-rcpt as "
    "--fail-rcpt.\n"
    "SIGUSR1 prints the counters as a line of JSON; SIGTERM prints them and ends.\n";

static const char *const stage_names[STAGES] = {"banner", "helo", "mail", "rcpt",
                                                "data",   "body", "dot"};

enum { CONTROL_LINE_MAX = 256 };

/* A client of the control port. */
struct control {
    struct server *server;
    struct net_connection *connection;
    struct loop_timer timer;
    bool waiting;
    unsigned long long wanted;
    struct control *prev, *next;
};

struct server {
    struct sink sink;
    const char *listen, *control, *count_file, *directory;
    struct control *controls;
};

static void
format_counters(const struct server *server, char *out, size_t size)
{
    const struct counters *c = &server->sink.counters;
    snprintf(out, size,
             "{\"messages\": %llu, \"recipients\": %llu, \"bytes\": %llu, "
             "\"connections\": %llu, \"refused\": %llu, \"open\": %zu}\n",
             c->messages, c->recipients, c->bytes, c->connections, c->refused,
             net_connections(server->sink.net));
}

static void
print_counters(void *context)
{
    struct server *server = context;
    char line[300];
    format_counters(server, line, sizeof(line));
    /* The file first: who has read the line finds it written. */
    FILE *file = server->count_file ? fopen(server->count_file, "w") : NULL;
    if (file != NULL) {
        fputs(line, file);
        fclose(file);
    }
    fputs(line, stdout);
    fflush(stdout);
}

/* --- Control port --- */

static void
control_end(struct control *c)
{
    DL_DELETE(c->server->controls, c);
    loop_timer_stop(c->server->sink.loop, &c->timer);
    net_close(&c->connection);
    loop_release(c->server->sink.loop, free, c);
}

static void
control_answer(struct control *c)
{
    char line[300];
    format_counters(c->server, line, sizeof(line));
    net_send(c->connection, text_from(line));
}

static void
on_wait_over(void *context)
{
    struct control *c = context;
    c->waiting = false;
    loop_timer_stop(c->server->sink.loop, &c->timer);
    control_answer(c);
    net_want_input(c->connection, true);
}

static void
on_arrived(struct sink *sink)
{
    struct server *server = memory_container(sink, struct server, sink);
    struct control *c, *next;
    DL_FOREACH_SAFE(server->controls, c, next)
    {
        if (c->waiting && sink->counters.messages >= c->wanted)
            on_wait_over(c);
    }
}

static void
control_command(struct control *c, struct text line)
{
    struct text verb = TEXT(""), count = TEXT(""), seconds = TEXT("");
    uint64_t wanted, wait_s;
    text_word(&line, " \t", &verb);
    text_word(&line, " \t", &count);
    text_word(&line, " \t", &seconds);
    if (text_equal(verb, TEXT("stats"))) {
        control_answer(c);
    } else if (text_equal(verb, TEXT("reset"))) {
        c->server->sink.counters = (struct counters){.messages = 0};
        control_answer(c);
    } else if (text_equal(verb, TEXT("wait")) &&
               text_number(count, INT64_MAX, &wanted) &&
               text_number(seconds, 1000000, &wait_s)) {
        c->wanted = wanted;
        c->waiting = true;
        net_want_input(c->connection, false);
        loop_timer_start(c->server->sink.loop, &c->timer, (int64_t)wait_s * 1000,
                         on_wait_over, c);
        on_arrived(&c->server->sink);
    } else {
        net_send(c->connection,
                 TEXT("{\"error\": \"stats, reset or wait N SECONDS\"}\n"));
    }
}

static void
on_control_event(void *context, enum net_event event)
{
    struct control *c = context;
    if (event == NET_CONNECTED || event == NET_DRAINED)
        return;
    if (event != NET_INPUT) {
        control_end(c);
        return;
    }
    while (!c->waiting) {
        struct text in = net_input(c->connection);
        size_t end = text_find(in, '\n');
        if (end == TEXT_NONE || end > CONTROL_LINE_MAX) {
            if (in.length > CONTROL_LINE_MAX)
                control_end(c);
            return;
        }
        char line[CONTROL_LINE_MAX + 1];
        text_copy(line, sizeof(line), text_trim(text_before(in, end)));
        net_consume(c->connection, end + 1);
        control_command(c, text_from(line));
    }
}

static void
control_accept(void *context, struct net_connection *connection)
{
    struct server *server = context;
    struct control *c = memory_new(sizeof(*c));
    c->server = server;
    c->connection = connection;
    DL_APPEND(server->controls, c);
    net_attach(connection, on_control_event, c);
}

/* --- Start --- */

static void
die(const char *what, const char *about)
{
    fprintf(stderr, "sink: %s: %s\n", what, about);
    exit(64);
}

static enum stage
stage_named(struct text name, const char *argument)
{
    for (int stage = 0; stage < STAGES; stage++)
        if (text_equal(name, text_from(stage_names[stage])))
            return (enum stage)stage;
    die("no such stage", argument);
    return STAGES;
}

static long
number_in(struct text t, long max, const char *argument)
{
    uint64_t number = 0;
    if (!text_number(t, (uint64_t)max, &number))
        die("not a number in range", argument);
    return (long)number;
}

/* "HEAD:NUMBER[:COUNT]"; the head may hold colons and stands alone for CLOSE. */
static void
add_fault(struct sink *sink, enum fault_kind kind, const char *argument)
{
    struct text fields[3] = {text_from(argument), TEXT(""), TEXT("")};
    size_t count = 1, numbers = kind == FAULT_CLOSE ? 1 : 2;
    struct fault f = {.kind = kind, .stage = STAGE_RCPT, .left = -1};
    uint64_t number;
    while (count <= numbers) {
        size_t colon = text_find_last(fields[0], ':'),
               equals = text_find_last(fields[0], '=');
        size_t end = colon == TEXT_NONE || (equals != TEXT_NONE && equals > colon)
                         ? equals
                         : colon;
        if (end == TEXT_NONE ||
            !text_number(text_after(fields[0], end + 1), 1000000000, &number))
            break;
        fields[2] = fields[1];
        fields[1] = text_after(fields[0], end + 1);
        fields[0] = text_before(fields[0], end);
        count++;
    }
    if (kind != FAULT_CLOSE && count < 2)
        die("wants X:NUMBER", argument);
    if (kind == FAULT_DELAY)
        f.delay_ms = number_in(fields[1], 1000000000, argument);
    else if (kind != FAULT_CLOSE)
        f.code = (int)number_in(fields[1], 599, argument);
    if (kind != FAULT_CLOSE && kind != FAULT_DELAY && f.code < 400)
        die("a code is 400 to 599", argument);
    struct text times = kind == FAULT_CLOSE ? fields[1] : fields[2];
    if (times.length > 0)
        f.left = number_in(times, 1000000000, argument);
    if (kind == FAULT_RCPT || kind == FAULT_LMTP)
        f.pattern = text_string(fields[0]);
    else
        f.stage = stage_named(fields[0], argument);
    if (kind == FAULT_LMTP)
        f.stage = STAGE_DOT;
    if (sink->fault_count == FAULTS_MAX)
        die("too many of these", argument);
    sink->faults[sink->fault_count++] = f;
}

static const struct option options[] = {
    {"listen",        required_argument, NULL, 'l'},
    {"control",       required_argument, NULL, 'c'},
    {"count-file",    required_argument, NULL, 'n'},
    {"directory",     required_argument, NULL, 'd'},
    {"capture",       no_argument,       NULL, 'r'},
    {"lmtp",          no_argument,       NULL, 'L'},
    {"no-ehlo",       no_argument,       NULL, 'E'},
    {"no-pipelining", no_argument,       NULL, 'P'},
    {"no-8bitmime",   no_argument,       NULL, '8'},
    {"size",          required_argument, NULL, 's'},
    {"max-messages",  required_argument, NULL, 'm'},
    {"fail",          required_argument, NULL, 'f'},
    {"code",          required_argument, NULL, 'f'},
    {"fail-rcpt",     required_argument, NULL, 'R'},
    {"reject-rcpt",   required_argument, NULL, 'R'},
    {"fail-lmtp",     required_argument, NULL, 'D'},
    {"delay",         required_argument, NULL, 'w'},
    {"close",         required_argument, NULL, 'x'},
    {"help",          no_argument,       NULL, 'h'},
    {NULL,            0,                 NULL, 0  },
};

static void
read_flag(struct sink *sink, int option)
{
    sink->capture |= option == 'r';
    sink->lmtp |= option == 'L';
    sink->no_ehlo |= option == 'E';
    sink->no_pipelining |= option == 'P';
    sink->no_8bitmime |= option == '8';
    if (option == 'h') {
        fputs(HELP, stdout);
        exit(0);
    }
}

static void
read_option(struct server *server, int option, const char *value)
{
    struct sink *sink = &server->sink;
    switch (option) {
    case 'l':
        server->listen = value;
        return;
    case 'c':
        server->control = value;
        return;
    case 'n':
        server->count_file = value;
        return;
    case 'd':
        server->directory = value;
        return;
    case 's':
        sink->size = number_in(text_from(value), INT64_MAX, value);
        return;
    case 'm':
        sink->max_messages = number_in(text_from(value), 1000000000, value);
        return;
    case 'f':
        add_fault(sink, FAULT_CODE, value);
        return;
    case 'R':
        add_fault(sink, FAULT_RCPT, value);
        return;
    case 'D':
        add_fault(sink, FAULT_LMTP, value);
        return;
    case 'w':
        add_fault(sink, FAULT_DELAY, value);
        return;
    case 'x':
        add_fault(sink, FAULT_CLOSE, value);
        return;
    default:
        read_flag(sink, option);
    }
}

static struct net_listener *
open_listener(struct server *server, const char *at, const char *word,
              net_accepted *on_accept, void *context)
{
    struct net_address address;
    char error[256], text[NET_ADDRESS_TEXT_MAX];
    if (!net_address_parse(text_from(at), 0, &address))
        die("not an address", at);
    struct net_listener *l = net_listen(server->sink.net, &address, 0666, on_accept,
                                        context, error, sizeof(error));
    if (l == NULL)
        die(at, error);
    net_address_format(net_listener_address(l), text);
    printf("%s %s\n", word, text);
    return l;
}

static void
on_term(void *context)
{
    struct server *server = context;
    loop_stop(server->sink.loop);
}

int
main(int argc, char **argv)
{
    struct server server = {.listen = "127.0.0.1:0"};
    struct sink *sink = &server.sink;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == '?')
            return 64;
        read_option(&server, option, optarg);
    }
    if (optind < argc)
        die("no such argument", argv[optind]);
    if (server.directory != NULL &&
        disk_open(&sink->directory, server.directory, true) < 0)
        die("cannot open", server.directory);
    if (sink->capture && sink->directory == NULL)
        die("--capture", "wants a --directory");
    sink->loop = loop_new();
    sink->net = net_new(sink->loop);
    sink->arrived = on_arrived;
    loop_on_signal(sink->loop, SIGTERM, on_term, &server);
    loop_on_signal(sink->loop, SIGINT, on_term, &server);
    loop_on_signal(sink->loop, SIGUSR1, print_counters, &server);
    struct net_listener *smtp =
        open_listener(&server, server.listen, "listening", session_accept, sink);
    struct net_listener *control = NULL;
    if (server.control != NULL)
        control =
            open_listener(&server, server.control, "control", control_accept, &server);
    fflush(stdout);
    loop_run(sink->loop);
    print_counters(&server);
    while (sink->open != NULL)
        session_end(sink->open, true);
    while (server.controls != NULL)
        control_end(server.controls);
    loop_turn(sink->loop, 0); /* frees them */
    net_listener_free(&smtp);
    if (control != NULL)
        net_listener_free(&control);
    net_free(&sink->net);
    loop_free(&sink->loop);
    disk_close(&sink->directory);
    for (size_t i = 0; i < sink->fault_count; i++)
        free(sink->faults[i].pattern);
    return 0;
}
