/* Runs a subcommand: by the table, or by the room that has more to know for it. */
#include "admin/dispatch/dispatch.h"

#include "admin/command/command.h"
#include "admin/command/command_table.h"
#include "admin/command/complete.h"
#include "admin/command/oauth_command.h"
#include "admin/import/import_command.h"
#include "admin/sendmail/sendmail.h"
#include "admin/settings/about.h"
#include "admin/setup/init_command.h"
#include "admin/setup/test_command.h"
#include "admin/startup/commands.h"
#include "admin/startup/configuration.h"
#include "base/redis/redis.h"
#include "base/settings/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

enum { ANCHORS_ERROR_MAX = 512 };

static int
with_options(const struct options_sources *sources, const struct command_row *row,
             int count, char **arguments)
{
    static const struct sendmail_helpers helpers = {.serve =
                                                        configuration_serve_standard};
    struct options_sources without = *sources;
    struct options options;
    int code;
    without.without_secrets = true;
    struct settings *settings = about_read(&without, &options);
    if (settings == NULL)
        return EX_CONFIG;
    if (row->kind == COMMAND_SENDMAIL)
        code = sendmail_main(count - 1, arguments + 1, &options, &helpers);
    else if (row->kind == COMMAND_TEST)
        code = test_command(count - 1, arguments + 1, &options);
    else
        code = row->run(count - 1, arguments + 1, &options);
    settings_free(&settings);
    return code;
}

/* With all settings, since accounts have secrets. */
static int
with_accounts(const struct options_sources *sources, int count, char **arguments)
{
    struct configuration *c = configuration_new(sources);
    char error[ANCHORS_ERROR_MAX];
    int code = EX_CONFIG;
    if (c == NULL)
        return code;
    if (!oauth_command_asks(count, arguments) ||
        configuration_trust(c, NULL, error, sizeof(error)))
        code = oauth_command(count, arguments, &c->options, &c->accounts, c->anchors,
                             login_trial_run, c);
    else
        fprintf(stderr, "petrel oauth: %s\n", error);
    configuration_free(&c);
    return code;
}

int
dispatch_sendmail(const struct options_sources *sources, int count, char **arguments)
{
    return with_options(sources, command_find("sendmail"), count, arguments);
}

static int
examine(const struct options_sources *sources)
{
    return doctor_command(0, NULL, sources);
}

static const struct init_helpers init_helpers = {configuration_is_good, examine};

int
dispatch_command(const struct options_sources *sources, int count, char **arguments,
                 int (*run)(const struct options_sources *sources))
{
    const char *name = count > 0 ? arguments[0] : "run";
    const struct command_row *row = command_find(name);
    if (row == NULL)
        return command_refuse(name);
    if (command_wants_help(count, arguments))
        return command_help(1, arguments);
    switch (row->kind) {
    case COMMAND_OPTIONS:
    case COMMAND_SENDMAIL:
    case COMMAND_TEST:
        return with_options(sources, row, count, arguments);
    case COMMAND_BARE:
        return row->run(count - 1, arguments + 1, NULL);
    case COMMAND_HELP:
        return command_help(count - 1, arguments + 1);
    case COMMAND_RUN:
        return count > 1 ? command_refuse_all() : run(sources);
    case COMMAND_CHECK:
        return check_command(count - 1, arguments + 1, sources);
    case COMMAND_COMPLETE:
        return complete_command(count - 1, arguments + 1, sources);
    case COMMAND_VERSION:
        return command_version(count - 1, arguments + 1, redis_version());
    case COMMAND_DOCTOR:
        return doctor_command(count - 1, arguments + 1, sources);
    case COMMAND_INIT:
        return init_command(count - 1, arguments + 1, sources, &init_helpers);
    case COMMAND_IMPORT:
        return import_command(count - 1, arguments + 1, &init_helpers);
    case COMMAND_OAUTH:
        return with_accounts(sources, count - 1, arguments + 1);
    }
    abort(); /* a kind that does not exist */
}
