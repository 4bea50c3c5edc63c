/* sink: an SMTP and LMTP server that takes all mail, or refuses it as told, and counts.
 */
#include "t/bench/control.h"

#include <getopt.h>
#include <signal.h>

static const char HELP[] =
    "sink: an SMTP server for tests and measurements.\n"
    "  --listen ADDRESS:PORT   default 127.0.0.1:0; also unix:PATH; says \"listening\n"
    "                          ADDRESS\"\n"
    "  --address ADDRESS:PORT[,KEY=VALUE...]\n"
    "                          one more, with limits of its own (keys: see below); "
    "may\n"
    "                          come often; says \"address ADDRESS\"\n"
    "  --control ADDRESS:PORT  says \"control ADDRESS\"; takes lines, see below\n"
    "  --count-file FILE       the counters go there too, on SIGUSR1 and at the end\n"
    "  --directory DIR         keep messages: N.eml (content), N.envelope (X-Sink "
    "lines)\n"
    "  --capture               keep what each connection sent: connection.N.raw\n"
    "  --tls FILE              TLS from the first byte; PEM, key and certificate\n"
    "  --lmtp                  LHLO, one reply for each recipient\n"
    "  --no-ehlo --no-pipelining --no-8bitmime --no-dsn\n"
    "  --size N                offer SIZE N and hold it\n"
    "  --max-messages N        for each connection, then 421\n"
    "  --fail STAGE:CODE[:COUNT]  refuse there; banner helo mail rcpt data dot\n"
    "  --fail-rcpt PART:CODE[:COUNT]   refuse addresses that contain PART\n"
    "  --fail-lmtp PART:CODE[:COUNT]   the same behind the final dot (LMTP)\n"
    "  --delay STAGE:MS        reply late; also body\n"
    "  --close STAGE[:COUNT]   drop the connection there; also body. At dot the "
    "message\n"
    "                          is kept\n"
    "STAGE=CODE and PART=CODE are understood too, --code as --fail, --reject-rcpt as\n"
    "--fail-rcpt. These hold for all addresses.\n"
    "SIGUSR1 prints the counters as a line of JSON; SIGTERM prints them and ends.\n"
    "\n"
    "Keys of an address:\n"
    "  sessions=N              places: so many are served at once, others hear 421\n"
    "  delay.STAGE=MS          reply late, each time; also body\n"
    "\n"
    "Control port; each answer is a line of JSON:\n"
    "  stats                   all addresses together\n"
    "  site ADDRESS            its line; also behind set KEY=VALUE...\n"
    "  reset                   count from 0\n"
    "  wait N SECONDS          until N messages have come\n"
    "  hurry                   who waits for a late reply has it\n";

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

static void
parse_address(struct text at, struct net_address *to, const char *argument)
{
    if (!net_address_parse(at, 0, to))
        die("not an address", argument);
}

/* "ADDRESS:PORT,KEY=VALUE..." */
static void
add_site(struct sink *sink, const char *argument)
{
    struct text settings = text_from(argument), at = TEXT("");
    if (sink->site_count == SITES_MAX)
        die("too many addresses", argument);
    struct site *site = &sink->sites[sink->site_count++];
    *site = (struct site){.sink = sink, .total = &sink->total, .set.sessions = -1};
    text_cut(&settings, ',', &at);
    parse_address(at, &site->address, argument);
    if (settings.at != NULL && !site_set(site, settings))
        die("not a setting of an address", argument);
}

static void
read_tls(struct sink *sink, const char *file)
{
    struct tls_pair pair = {file, file};
    char error[TLS_ERROR_MAX];
    struct tls *tls = tls_new(error, sizeof(error));
    if (tls != NULL)
        sink->tls = tls_server_new(tls, &pair, 1, error, sizeof(error));
    if (sink->tls == NULL)
        die("no TLS", error);
    tls_free(&tls);
}

static const struct option options[] = {
    {"listen",        required_argument, NULL, 'l'},
    {"address",       required_argument, NULL, 'a'},
    {"control",       required_argument, NULL, 'c'},
    {"count-file",    required_argument, NULL, 'n'},
    {"directory",     required_argument, NULL, 'd'},
    {"capture",       no_argument,       NULL, 'r'},
    {"tls",           required_argument, NULL, 'T'},
    {"lmtp",          no_argument,       NULL, 'L'},
    {"no-ehlo",       no_argument,       NULL, 'E'},
    {"no-pipelining", no_argument,       NULL, 'P'},
    {"no-8bitmime",   no_argument,       NULL, '8'},
    {"no-dsn",        no_argument,       NULL, 'N'},
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
    sink->no_dsn |= option == 'N';
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
        parse_address(text_from(value), &sink->sites[0].address, value);
        return;
    case 'a':
        add_site(sink, value);
        return;
    case 'T':
        read_tls(sink, value);
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

static void
say_address(const char *word, const struct net_address *address)
{
    char text[NET_ADDRESS_TEXT_MAX];
    net_address_format(address, text);
    printf("%s %s\n", word, text);
}

/* Listens there for once in any case, since port 0 must become a real one. */
static void
open_site(struct site *site, size_t number)
{
    char error[DOOR_ERROR_MAX];
    if (!door_open(site, error))
        die("cannot open an address", error);
    say_address(number == 0 ? "listening" : "address", &site->address);
}

static struct net_listener *
open_control(struct server *server)
{
    struct net_address address;
    char error[DOOR_ERROR_MAX];
    if (server->control == NULL)
        return NULL;
    parse_address(text_from(server->control), &address, server->control);
    struct net_listener *l = net_listen(server->sink.net, &address, 0666,
                                        control_accept, server, error, sizeof(error));
    if (l == NULL)
        die(server->control, error);
    say_address("control", net_listener_address(l));
    return l;
}

static void
on_term(void *context)
{
    struct server *server = context;
    loop_stop(server->sink.loop);
}

static void
serve(struct server *server)
{
    struct sink *sink = &server->sink;
    sink->loop = loop_new();
    sink->net = net_new(sink->loop);
    sink->arrived = on_arrived;
    loop_on_signal(sink->loop, SIGTERM, on_term, server);
    loop_on_signal(sink->loop, SIGINT, on_term, server);
    loop_on_signal(sink->loop, SIGUSR1, print_counters, server);
    for (size_t i = 0; i < sink->site_count; i++)
        open_site(&sink->sites[i], i);
    struct net_listener *control = open_control(server);
    fflush(stdout);
    loop_run(sink->loop);
    print_counters(server);
    for (size_t i = 0; i < sink->site_count; i++)
        door_close(&sink->sites[i]);
    while (server->controls != NULL)
        control_end(server->controls);
    net_listener_free(&control);
    loop_turn(sink->loop, 0); /* frees them */
    net_free(&sink->net);
    tls_server_free(&sink->tls);
    loop_free(&sink->loop);
}

int
main(int argc, char **argv)
{
    struct server server = {0};
    struct sink *sink = &server.sink;
    int option;
    add_site(sink, "127.0.0.1:0"); /* --listen changes it */
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
    serve(&server);
    disk_close(&sink->directory);
    for (size_t i = 0; i < sink->fault_count; i++)
        free(sink->faults[i].pattern);
    return 0;
}
