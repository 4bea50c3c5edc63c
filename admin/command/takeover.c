/* Has the daemon take over a slice, and waits until its mail is safe there. */
#include "admin/command/takeover.h"

#include "admin/control/control_client.h"
#include "base/id.h"

#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

enum { ERROR_MAX = 512 };

static int
takeover_show(const struct control_client *daemon, const json_t *answer, unsigned slice,
              unsigned slices)
{
    const char *error = json_string_value(json_object_get(answer, "error"));
    if (!json_is_true(json_object_get(answer, "ok"))) {
        fprintf(stderr, "petrel queue adopt: %s\n",
                error ? error : control_client_trouble(daemon));
        return EX_UNAVAILABLE;
    }
    printf("slice %u of %u belongs to this daemon until it stops; messages from its "
           "journal: %" JSON_INTEGER_FORMAT "\n",
           slice, slices, json_integer_value(json_object_get(answer, "messages")));
    return fflush(stdout) == 0 ? 0 : EX_IOERR;
}

static int
take_over(struct control_client *daemon, unsigned slice, unsigned slices)
{
    json_t *answer = control_client_question(
        daemon, json_pack("{s:s,s:i}", "command", "adopt", "slice", (int)slice));
    while (answer && json_object_get(answer, "seen")) {
        json_decref(answer);
        answer = control_client_next(daemon);
    }
    int code = takeover_show(daemon, answer, slice, slices);
    json_decref(answer);
    return code;
}

int
command_takeover(int count, char **arguments, const struct options *options)
{
    char error[ERROR_MAX] = "no answer";
    uint64_t slice;
    if (count != 1 ||
        !text_number(text_from(arguments[0]), ID_SLICES_MAX - 1, &slice)) {
        fputs("usage: petrel queue adopt SLICE\n", stderr);
        return EX_USAGE;
    }
    struct loop *loop = loop_new();
    struct control_client *daemon =
        control_client_new(loop, options->control, error, sizeof(error));
    int code = daemon == NULL
                   ? control_client_refused("petrel queue adopt", error)
                   : take_over(daemon, (unsigned)slice, options->manager.queue.slices);
    control_client_free(&daemon);
    loop_free(&loop);
    return code;
}
