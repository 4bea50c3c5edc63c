/* load: sends many messages by SMTP over many connections and says how fast they were
 * taken. */
#include "t/bench/sender.h"

#include "base/memory.h"

#include <getopt.h>
#include <signal.h>
#include <stdlib.h>

static const char HELP[] =
    "load: sends messages by SMTP and prints one line of JSON.\n"
    "  --to ADDRESS:PORT      where to; also unix:PATH\n"
    "  --messages N           1000\n"
    "  --connections C        10\n"
    "  --size BYTES           1024: of each message's content, header included\n"
    "  --recipients R         1 for each message\n"
    "  --from ADDRESS         load@example.org; empty for <>\n"
    "  --rcpt PATTERN         user%d@example.com; %d becomes a running number\n"
    "  --per-connection M     messages before QUIT and a new connection; 0 = all\n"
    "  --partial N            each N messages are one message in N fragments, for\n"
    "                         --rcpt without %d\n"
    "  --pipeline             MAIL, RCPT and DATA together, the next message with the "
    "dot\n"
    "  --tls                  from the first byte, whatever the certificate\n"
    "  --rate N               messages a second at most\n"
    "  --answers FILE         a line \"NUMBER CODE text\" for each message answered\n"
    "  --give-up SECONDS      30 without any answer; then the exit code is 1\n"
    "latency is from MAIL to the answer to the dot. lost: sent, never answered.\n";

/* Wakes those that the rate made wait; ends when nobody answers any more. */
static void
on_clock(void *context)
{
    struct load *l = context;
    for (long i = 0; i < l->connections && l->rate > 0; i++) {
        struct sender *s = &l->senders[i];
        if (s->connection != NULL && s->step == STEP_NONE && !s->has_content)
            start_message(s);
    }
    if (now_us() - l->answered_us > l->give_up_s * 1000000)
        loop_stop(l->loop);
    loop_timer_start(l->loop, &l->clock, l->rate > 0 ? 2 : 200, on_clock, l);
}

static void
on_term(void *context)
{
    struct load *l = context;
    loop_stop(l->loop);
}

static int
compare_latency(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

static double
latency_ms(const struct load *l, double share)
{
    if (l->accepted == 0)
        return 0;
    long at = (long)((double)l->accepted * share);
    return l->latency_us[at < l->accepted ? at : l->accepted - 1] / 1000.0;
}

static void
print_result(struct load *l)
{
    if (!is_over(l))
        l->end_us = now_us();
    double seconds = (double)(l->end_us - l->start_us) / 1e6;
    qsort(l->latency_us, (size_t)l->accepted, sizeof(*l->latency_us), compare_latency);
    printf("{\"messages\": %ld, \"accepted\": %ld, \"refused\": %ld, \"lost\": %ld, "
           "\"seconds\": %.3f, \"per_second\": %.1f, \"latency_ms\": {\"p50\": %.3f, "
           "\"p99\": %.3f, \"max\": %.3f}}\n",
           l->messages, l->accepted, l->refused, l->lost, seconds,
           seconds > 0 ? (double)l->accepted / seconds : 0, latency_ms(l, 0.5),
           latency_ms(l, 0.99), latency_ms(l, 1));
}

static void
die(const char *what, const char *about)
{
    fprintf(stderr, "load: %s: %s\n", what, about);
    exit(64);
}

static const struct option options[] = {
    {"to",             required_argument, NULL, 't'},
    {"messages",       required_argument, NULL, 'm'},
    {"connections",    required_argument, NULL, 'c'},
    {"size",           required_argument, NULL, 's'},
    {"recipients",     required_argument, NULL, 'r'},
    {"per-connection", required_argument, NULL, 'p'},
    {"rate",           required_argument, NULL, 'R'},
    {"partial",        required_argument, NULL, 'n'},
    {"give-up",        required_argument, NULL, 'g'},
    {"from",           required_argument, NULL, 'f'},
    {"rcpt",           required_argument, NULL, 'T'},
    {"answers",        required_argument, NULL, 'a'},
    {"pipeline",       no_argument,       NULL, 'P'},
    {"tls",            no_argument,       NULL, 'S'},
    {"help",           no_argument,       NULL, 'h'},
    {NULL,             0,                 NULL, 0  },
};

static void
read_number(struct load *l, int option, const char *value)
{
    const struct {
        int option;
        long *at, min, max;
    } numbers[] = {
        {'m', &l->messages,       1, 100000000},
        {'c', &l->connections,    1, 100000   },
        {'s', &l->size,           0, 1L << 40 },
        {'r', &l->recipients,     1, 100000   },
        {'p', &l->per_connection, 0, 1L << 40 },
        {'R', &l->rate,           0, 10000000 },
        {'n', &l->partial,        1, 100000   },
        {'g', &l->give_up_s,      1, 1000000  },
    };
    uint64_t number;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (numbers[i].option == option) {
            if (!text_number(text_from(value), (uint64_t)numbers[i].max, &number) ||
                (long)number < numbers[i].min)
                die("not a number in range", value);
            *numbers[i].at = (long)number;
        }
}

static void
read_option(struct load *l, int option, const char *value, bool *has_to)
{
    switch (option) {
    case 't':
        *has_to = net_address_parse(text_from(value), 0, &l->to);
        if (!*has_to)
            die("not an address", value);
        return;
    case 'f':
        l->from = value;
        return;
    case 'T':
        l->rcpt = value;
        return;
    case 'a':
        l->answers_file = value;
        return;
    case 'P':
        l->pipeline = true;
        return;
    case 'S':
        l->with_tls = true;
        return;
    case 'h':
        fputs(HELP, stdout);
        exit(0);
    default:
        read_number(l, option, value);
    }
}

static void
prepare_tls(struct load *l)
{
    char error[TLS_ERROR_MAX];
    struct tls *tls = tls_new(error, sizeof(error));
    if (tls != NULL)
        l->tls = tls_client_new(tls, NULL, error, sizeof(error));
    if (l->tls == NULL)
        die("no TLS", error);
    tls_free(&tls);
}

static void
prepare(struct load *l)
{
    if (strlen(l->from) > 320 || strlen(l->rcpt) > 320 ||
        text_has_control(text_from(l->from)) || text_has_control(text_from(l->rcpt)))
        die("too long or odd", "--from or --rcpt");
    if (l->answers_file != NULL && (l->answers = fopen(l->answers_file, "w")) == NULL)
        die("cannot write", l->answers_file);
    for (size_t at = 0; at < FILL_SIZE; at++)
        l->fill[at] = at % 78 == 76   ? '\r'
                      : at % 78 == 77 ? '\n'
                                      : (char)('a' + at % 78 % 26);
    l->latency_us = memory_array((size_t)l->messages, sizeof(*l->latency_us));
    l->senders = memory_array((size_t)l->connections, sizeof(*l->senders));
    l->loop = loop_new();
    l->net = net_new(l->loop);
    l->reopen = open_connection;
    if (l->with_tls)
        prepare_tls(l);
    loop_on_signal(l->loop, SIGTERM, on_term, l);
    loop_on_signal(l->loop, SIGINT, on_term, l);
    l->start_us = l->answered_us = now_us();
    for (long i = 0; i < l->connections; i++) {
        l->senders[i] = (struct sender){.load = l, .number = -1, .next = -1};
        loop_timer_start(l->loop, &l->senders[i].timer, 0, open_connection,
                         &l->senders[i]);
    }
    loop_timer_start(l->loop, &l->clock, 2, on_clock, l);
}

int
main(int argc, char **argv)
{
    struct load *l = memory_new(sizeof(*l));
    bool has_to = false;
    int option;
    *l = (struct load){.messages = 1000,
                       .connections = 10,
                       .size = 1024,
                       .recipients = 1,
                       .give_up_s = 30,
                       .from = "load@example.org",
                       .rcpt = "user%d@example.com"};
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == '?')
            return 64;
        read_option(l, option, optarg, &has_to);
    }
    if (optind < argc || !has_to)
        die("wanted", "--to ADDRESS:PORT and options only; see --help");
    prepare(l);
    loop_run(l->loop);
    print_result(l);
    bool whole = is_over(l) && l->lost == 0;
    if (l->answers != NULL)
        fclose(l->answers);
    net_free(&l->net);
    tls_client_free(&l->tls);
    loop_free(&l->loop);
    free(l->senders);
    free(l->latency_us);
    free(l);
    return whole ? 0 : 1;
}
