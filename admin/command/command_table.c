/* The table of commands, with their texts for usage and help. */
#include "admin/command/command_table.h"

#include "admin/tool/cert_command.h"
#include "admin/command/command.h"
#include "admin/command/daemon_command.h"
#include "admin/command/help_text.h"
#include "admin/tool/dkim_key.h"
#include "admin/tool/post_key.h"
#include "admin/tool/page_command.h"
#include "admin/tool/passwd.h"
#include "admin/settings/synonyms.h"
#include "admin/command/suppress_command.h"
#include "admin/command/trace_command.h"
#include "admin/view/status.h"
#include "base/settings/settings_value.h"

#include <string.h>
#include <sysexits.h>

static int
row_passwd(int count, char **arguments, const struct options *options)
{
    (void)options;
    return passwd_command(count, arguments);
}

/* The name of the command is before its arguments. */
static int
row_daemon(int count, char **arguments, const struct options *options)
{
    return daemon_command(count + 1, arguments - 1, options);
}

static const char help_check[] =
    "  --changed  only settings that are not at their defaults\n"
    "  --example  all settings with their defaults and meanings\n";

static const char help_page[] =
    "  --read    a key that may only look\n"
    "  --port N  listen there (8025), and carry the page to the daemon\n"
    "  Over ssh: ssh -t -L 8025:127.0.0.1:8025 root@vps petrel page\n";

static const char arguments_status[] =
    "[--sites | --site NAME] [--quotas] [--cluster] [--json | --watch]";

static const char help_status[] =
    "  --sites      all sites, not only the 20 with most mail\n"
    "  --site NAME  the sites of that name, and the last conversation that failed\n"
    "  --quotas     the use of quotas, and when the next recipient may pass\n"
    "  --cluster    all hosts of the group, and the sites whose limits they share\n"
    "  --watch      the same text each second, until Ctrl-C\n"
    "  Exit code: 0; 75: mail is not accepted, or a host does not answer; 69: no\n"
    "  daemon answers; 77: only root and the daemon's user may ask.\n";

static const char help_drain[] =
    "  --wait TIME     how long to wait, and to give mail to other hosts (100s)\n"
    "  --empty         deliver waiting mail first, but accept no mail\n"
    "  --to HOST,...   in a group: give the queue to these hosts; otherwise to all\n"
    "  --keep          in a group: give it to nobody\n"
    "  --cancel        accept and deliver mail again\n"
    "  Exit code: 0: nothing is left; 75: messages are left, or the time is over.\n";

static const char help_cluster[] =
    "  forget HOST  its part of the limits is free\n"
    "  adopt HOST   it is lost: its mail is taken from its copies\n";
static const char help_suppress[] =
    "  ls [--json] [TEXT]    all of them, or those whose address has TEXT\n"
    "  add ADDRESS [REASON]  until it is removed\n"
    "  rm ADDRESS...         they are tried again\n"
    "  import [FILE]         lines of ADDRESS[,REASON[,DATE[,CLASS[,DOMAIN]]]]\n"
    "  export                the same\n";

static const char help_trace[] =
    "  QUERY is an id, an address, a domain, or a Message-ID.\n"
    "  -f  follow new events\n";

static const char help_cert[] = "  NAME             a host, *.DOMAIN or an address\n"
                                "  --out DIRECTORY  the place of its files\n"
                                "  --force          replace them\n";

static const char help_key[] =
    "  add NAME SENDER...  a new key; it is printed once\n"
    "  ls                  names and senders\n"
    "  rm NAME             the key is no longer one\n"
    "  SENDER is an address, a domain, .domain (subdomains) or *.\n";

static const char help_dkim_key[] =
    "  --bits 1024..4096 | --ed25519  the kind of key\n"
    "  --directory DIRECTORY          the place of its file\n"
    "  --show                         the record of a key that exists\n";

static const char help_oauth[] = "  login [--browser] HOST[:PORT] USER\n"
                                 "  status [--json]\n"
                                 "  forget HOST[:PORT] USER\n";

static const char help_queue[] =
    "       " COMMAND_QUEUE_USES
    "  ls, shape       a line for each message; how much waits for which domains\n"
    "  show, cat       its recipients, attempts and events; the message itself\n"
    "  why             why it waits, and until when\n"
    "  hold, release   it is not delivered until it is released\n"
    "  retry           it is tried now\n"
    "  bounce, rm      it fails, and its sender is notified; it is gone, and nobody "
    "is\n"
    "  adopt           takes over the slice of a dead daemon\n";

static const char help_doctor[] =
    "  DOMAIN         that mail is sent from; without any: all of the settings\n"
    "  ADDRESS        whether mail for it could go there, and with what TLS\n"
    "  --blocklists   ask lists of spammers for our addresses\n"
    "  Exit code: 0; 1: there is an error.\n";

static const char help_init[] =
    "  --yes      ask nothing: without a flag the default counts\n"
    "  --print    print the settings, and write nothing\n"
    "  --force    replace settings; the old ones stay as petrel.conf.old\n"
    "  --hostname NAME       the name of this host\n"
    "  --relay WHERE         a provider's name, a URL, mx, or hold\n"
    "  --relay-user USER     the user for the login there\n"
    "  --password-file FILE  its only line is the password; it is copied\n"
    "  --listen WHO          local, or networks that may send mail here\n"
    "  --root ADDRESS        gets the mail of root and cron\n"
    "  --sender ADDRESS      the sender with which their mail leaves, or none; by\n"
    "                        default the user there, or else the one of --root\n"
    "  --http ADDRESS        health checks and metrics; none by default\n";

static const char help_import[] =
    "  --from KIND    postfix, msmtp, ssmtp, nullmailer, dma, opensmtpd, exim; by\n"
    "                 default what the file is called or has in it\n"
    "  --output FILE  write the settings there, and passwords beside it (0600)\n"
    "  --force        replace files that are there\n"
    "  --json         the report, and the settings without --output\n"
    "  FILE names others (maps, aliases, logins), which are read, too.\n";

static const char help_test[] =
    "  -v              the message, where it goes, and a conversation that failed\n"
    "  --from ADDRESS  the sender; by default the user who calls\n"
    "  --for TIME      how long to follow it (60s)\n"
    "  Exit code: 0: delivered; 69: it failed; 75: it waits, or no daemon runs.\n";

static const struct command_row command_table[] = {
    {
     .name = "run",
     .arguments = "",
     .about = "the daemon, in the foreground (default)",
     .help = "",
     .example = "petrel -c /etc/petrel/petrel.conf run",
     .kind = COMMAND_RUN,
     },
    {
     .name = "check",
     .arguments = "[--changed] [--json] | --example",
     .about = "print the settings in effect, or their errors",
     .help = help_check,
     .example = "petrel check --changed",
     .kind = COMMAND_CHECK,
     },
    {
     .name = "doctor",
     .arguments = "[--json] [--blocklists] [DOMAIN | ADDRESS]...",
     .about = "why mail might not arrive, and what to do",
     .help = help_doctor,
     .example = "petrel doctor example.org",
     .kind = COMMAND_DOCTOR,
     },
    {
     .name = "init",
     .arguments = "[--yes] [--print] [--force] [--relay WHERE] ...",
     .about = "ask some questions, and write the settings",
     .help = help_init,
     .example = "petrel init --relay mx --root you@example.org",
     .kind = COMMAND_INIT,
     },
    {
     .name = "import",
     .arguments = "[--from KIND] [--output FILE] [--force] [--json] FILE...",
     .about = "settings of Postfix, msmtp and others",
     .help = help_import,
     .example = "petrel import /etc/postfix/main.cf",
     .kind = COMMAND_IMPORT,
     },
    {
     .name = "test",
     .arguments = "[-v] ADDRESS [--from ADDRESS] [--for TIME]",
     .about = "send a short message, and follow it",
     .help = help_test,
     .example = "petrel test you@example.org",
     .kind = COMMAND_TEST,
     },
    {
     .name = "version",
     .arguments = "[--json]",
     .about = "version, libraries",
     .help = "",
     .example = "petrel version",
     .kind = COMMAND_VERSION,
     },
    {
     .name = "help",
     .arguments = "[COMMAND | SETTING]",
     .about = "the commands, one of them, or a setting",
     .help = "",
     .example = "petrel help relay_from",
     .kind = COMMAND_HELP,
     },
    {
     .name = "sendmail",
     .arguments = "ARGS...",
     .about = "submit a message: see sendmail(1)",
     .help = "",
     .example = "petrel sendmail -t < message",
     .kind = COMMAND_SENDMAIL,
     },
    {
     .name = "status",
     .arguments = arguments_status,
     .about = "state of the daemon, and the sites it delivers to",
     .help = help_status,
     .example = "petrel status --sites",
     .kind = COMMAND_OPTIONS,
     .run = status_command,
     },
    {
     .name = "trace",
     .arguments = "[--json] [--since AGE] [-n N] [-f] QUERY...",
     .about = "search the history of mail",
     .help = help_trace,
     .example = "petrel trace --since 2d you@example.org",
     .kind = COMMAND_OPTIONS,
     .run = trace_command,
     },
    {
     .name = "health",
     .arguments = "[--live]",
     .about = "whether mail is accepted: exit code 0 or 1",
     .help = "",
     .example = "petrel health",
     .kind = COMMAND_OPTIONS,
     .run = row_daemon,
     },
    {
     .name = "reload",
     .arguments = "",
     .about = "read the settings again, as SIGHUP does",
     .help = "",
     .example = "petrel reload",
     .kind = COMMAND_OPTIONS,
     .run = row_daemon,
     },
    {
     .name = "drain",
     .arguments = "[--wait TIME] [--empty] [--to HOST,... | --keep] | --cancel",
     .about = "take the daemon out of service, or back",
     .help = help_drain,
     .example = "petrel drain --empty --wait 5m",
     .kind = COMMAND_OPTIONS,
     .run = row_daemon,
     },
    {
     .name = "page",
     .arguments = "[--read] [--port N]",
     .about = "an address of the page for a browser",
     .help = help_page,
     .example = "petrel page --read",
     .kind = COMMAND_OPTIONS,
     .run = page_command,
     },
    {
     .name = "log-level",
     .arguments = "[error|warning|info|debug [--for TIME]]",
     .about = "the level of the log, for some time",
     .help = "  --for TIME  1h by default; 0: until a reload\n",
     .example = "petrel log-level debug --for 10m",
     .kind = COMMAND_OPTIONS,
     .run = row_daemon,
     },
    {
     .name = "unlock",
     .arguments = "[CLIENT...]",
     .about = "clients that are locked out, or their release",
     .help = "",
     .example = "petrel unlock 192.0.2.7",
     .kind = COMMAND_OPTIONS,
     .run = row_daemon,
     },
    {
     .name = "quota",
     .arguments = "reset WHO...",
     .about = "forget the use of the quota of WHO",
     .help = "  WHO is as `petrel status --quotas` has it.\n",
     .example = "petrel quota reset user:alice",
     .kind = COMMAND_OPTIONS,
     .run = row_daemon,
     },
    {
     .name = "suppress",
     .arguments = "ls|add|rm|import|export ...",
     .about = "addresses that are not tried again",
     .help = help_suppress,
     .example = "petrel suppress rm alice@example.org",
     .kind = COMMAND_OPTIONS,
     .run = suppress_command,
     },
    {
     .name = "cluster",
     .arguments = "[--json] | forget|adopt HOST",
     .about = "the group of hosts that share limits",
     .help = help_cluster,
     .example = "petrel cluster forget relay3",
     .kind = COMMAND_OPTIONS,
     .run = row_daemon,
     },
    {
     .name = "passwd",
     .arguments = "USER",
     .about = "a line for auth_users; asks for the password",
     .help = "",
     .example = "petrel passwd alice",
     .kind = COMMAND_BARE,
     .run = row_passwd,
     },
    {
     .name = "key",
     .arguments = "add NAME SENDER... | ls | rm NAME",
     .about = "keys of programs that send mail by HTTP",
     .help = help_key,
     .example = "petrel key add shop shop@example.org",
     .kind = COMMAND_OPTIONS,
     .run = post_key_command,
     },
    {
     .name = "cert",
     .arguments = "[--out DIRECTORY] [--force] [--ecdsa] NAME...",
     .about = "make a certificate that signs itself, for old devices",
     .help = help_cert,
     .example = "petrel cert --out /etc/petrel mail.example.org",
     .kind = COMMAND_OPTIONS,
     .run = cert_command,
     },
    {
     .name = "dkim-key",
     .arguments = "DOMAIN [SELECTOR]",
     .about = "make a key for dkim_keys, and print its record",
     .help = help_dkim_key,
     .example = "petrel dkim-key example.org --directory /etc/petrel/dkim",
     .kind = COMMAND_OPTIONS,
     .run = dkim_key_command,
     },
    {
     .name = "oauth",
     .arguments = "login|status|forget ...",
     .about = "logins at smarthosts with OAuth2",
     .help = help_oauth,
     .example = "petrel oauth login smtp.example.org alice@example.org",
     .kind = COMMAND_OAUTH,
     },
    {
     .name = "queue",
     .arguments = "ls|show|why|cat|shape|hold|release|retry|rm|bounce|adopt ...",
     .about = "look at queued mail and change it",
     .help = help_queue,
     .example = "petrel queue ls --to example.org --older 1h",
     .kind = COMMAND_OPTIONS,
     .run = command_queue,
     },
    {
     .name = "complete",
     .arguments = "-- WORD...",
     .about = "the completions of the last word, for a shell",
     .help = "  The scripts for bash, zsh and fish ask it: see petrel(8).\n",
     .example = "petrel complete -- queue sh",
     .kind = COMMAND_COMPLETE,
     },
    {.name = NULL                                                         },
};

enum {
    COMMAND_COUNT = sizeof(command_table) / sizeof(*command_table),
    COMMAND_HELP_MAX = 64 * 1024
};

const struct command_row *
command_rows(void)
{
    return command_table;
}

const struct command_row *
command_find(const char *name)
{
    for (const struct command_row *row = command_table; row->name != NULL; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

/* A verb, as of `petrel queue`, may stand between. */
bool
command_wants_help(int count, char **arguments)
{
    const struct command_row *row = count > 0 ? command_find(arguments[0]) : NULL;
    if (row == NULL || count < 2 || count > 3)
        return false;
    const char *last = arguments[count - 1];
    return (strcmp(last, "--help") == 0 || strcmp(last, "-h") == 0) &&
           (count == 2 || (arguments[1][0] >= 'a' && arguments[1][0] <= 'z' &&
                           strstr(row->arguments, arguments[1]) != NULL));
}

static void
command_print_usage(FILE *out)
{
    fputs("usage: petrel [-c FILE] [-o KEY=VALUE]... [COMMAND]\n"
          "       petrel -h | --help | -V | --version\n"
          "petrel is a mail transfer agent in one program.\n",
          out);
    for (const struct command_row *row = command_table; row->name != NULL; row++)
        fprintf(out, "  %-10s %s\n", row->name, row->about);
    fputs(
        "`petrel help COMMAND` explains one of them, `petrel help SETTING` a setting.\n"
        "examples:\n"
        "  petrel check             are the settings correct?\n"
        "  petrel doctor            will receivers accept our mail?\n"
        "  petrel status            is mail accepted and delivered?\n"
        "  petrel queue why ID      why does this message wait?\n",
        out);
}

static void
command_print_help(const struct command_row *row)
{
    bool bare = row->arguments[0] == '\0';
    printf("usage: petrel %s%s%s\n%s\n%s", row->name, bare ? "" : " ", row->arguments,
           row->about, row->help);
    printf("example: %s\n", row->example);
}

/* The paragraph of petrel.conf(5) behind a title; another name, as of Postfix, leads to
 * it. False: there is none, and nothing is printed. */
static bool
command_print_setting(const char *name, const char *title)
{
    struct buffer out;
    const struct setting_synonym *s = synonyms_rows;
    while (s->name != NULL && strcasecmp(s->name, name) != 0)
        s++;
    buffer_init(&out, COMMAND_HELP_MAX);
    bool found = help_text_find(text_from(s->key != NULL ? s->key : name), &out) ||
                 (s->name != NULL && s->help != NULL &&
                  buffer_format(&out, "%s: %s\n", name, s->help));
    if (found)
        printf("%s%.*s", title, (int)out.length, (const char *)out.at);
    buffer_free(&out);
    return found;
}

int
command_help(int count, char **arguments)
{
    const struct command_row *row = NULL;
    if (count > 1) {
        fputs("usage: petrel help [COMMAND | SETTING]\n", stderr);
        return EX_USAGE;
    }
    if (count == 1 && (row = command_find(arguments[0])) == NULL &&
        !command_print_setting(arguments[0], "")) {
        const struct setting *near =
            settings_guess(options_rows, text_from(arguments[0]));
        if (near == NULL)
            return command_refuse(arguments[0]);
        fprintf(stderr, "petrel: %.60s: unknown setting (did you mean '%s'?)\n",
                arguments[0], near->key);
        return EX_USAGE;
    }
    if (row == NULL && count == 0)
        command_print_usage(stdout);
    if (row != NULL) {
        command_print_help(row);
        (void)command_print_setting(row->name, "\nThe setting of that name:\n");
    }
    return fflush(stdout) == 0 ? 0 : EX_IOERR;
}

/* Commands of earlier builds. A script or a habit that names one learns what to do. */
static const struct {
    const char *name, *instead;
} commands_gone[] = {
    {"mime",     "no longer a command; the source has it as build/t/bench/mime_tree"       },
    {"top",      "no longer a command; `petrel status --watch` shows the state each second"},
    {"simulate",
     "no longer a command; scenarios of the scheduler are tests of the source, "
     "run by build/t/bench/simulate there"                                                 },
};

int
command_refuse(const char *name)
{
    for (size_t i = 0; i < sizeof(commands_gone) / sizeof(*commands_gone); i++)
        if (strcmp(commands_gone[i].name, name) == 0) {
            fprintf(stderr, "petrel: %s: %s\n", name, commands_gone[i].instead);
            return EX_USAGE;
        }
    struct setting names[COMMAND_COUNT] = {{0}};
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i].key = command_table[i].name;
    const struct setting *near = settings_guess(names, text_from(name));
    fprintf(stderr, "petrel: %.60s: unknown command%s%s%s; `petrel help` lists all\n",
            name, near ? " (did you mean '" : "", near ? near->key : "",
            near ? "'?)" : "");
    return EX_USAGE;
}

int
command_refuse_all(void)
{
    command_print_usage(stderr);
    return EX_USAGE;
}
