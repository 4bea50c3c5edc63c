/* Asks for the status in rounds, and obeys keys between them. */
#include "admin/command/top.h"

#include "admin/command/screen.h"
#include "admin/command/top_view.h"
#include "admin/control/control_client.h"
#include "admin/control/json_field.h"
#include "admin/control/status.h"
#include "admin/settings/complaint.h"
#include "base/settings/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

enum {
    DELAY_MS = 1000, /* by default */
    DELAY_MIN_MS = 100,
    DELAY_MAX_MS = 3600 * 1000,
    ROUNDS_MAX = 1000000,
    SITES_MAX = 2000, /* of more, only those with most mail are asked for */
    PAGE = 10,        /* sites that a page key passes over */
    TROUBLE_MAX = 600
};

struct top {
    struct loop *loop;
    const struct options *options;
    struct top_view view;
    int64_t delay_ms;
    uint64_t rounds; /* 0: until a key ends it */
    char trouble[TROUBLE_MAX];
};

/* --- Questions -------------------------------------------------------------------- */

/* status has the sites with most mail. */
static bool
top_wants_all(const json_t *status)
{
    const json_t *totals = json_object_get(status, "site_totals");
    int64_t sites = json_field_number(totals, "sites");
    size_t shown = json_array_size(json_object_get(status, "sites"));
    return sites > (int64_t)shown && sites <= SITES_MAX;
}

/* Takes the status, unless it is no answer. */
static bool
top_take(struct top *t, struct control_client *daemon, json_t *status)
{
    bool good = json_field_is_true(status, "ok") &&
                (!top_wants_all(status) || status_fetch_sites(daemon, status));
    if (good)
        top_view_take(&t->view, status, loop_monotonic_ms(t->loop));
    else
        json_decref(status);
    return good;
}

/* Each round is a connection of its own: the daemon may be another one by then. */
static bool
top_ask(struct top *t)
{
    char error[TROUBLE_MAX / 2] = "";
    struct control_client *daemon =
        control_client_new(t->loop, t->options->control, error, sizeof(error));
    bool good = false;
    if (daemon == NULL) {
        snprintf(t->trouble, sizeof(t->trouble), "%s%s",
                 errno == EACCES ? "" : "no daemon answers: ", error);
    } else {
        control_client_be_brief(daemon);
        good = top_take(
            t, daemon,
            control_client_question(daemon, json_pack("{s:s}", "command", "status")));
        if (!good)
            snprintf(t->trouble, sizeof(t->trouble), "%s",
                     control_client_trouble(daemon));
    }
    if (!good)
        t->view.trouble = t->trouble;
    control_client_free(&daemon);
    return good;
}

/* --- Without a terminal ----------------------------------------------------------- */

static void
top_print(struct top *t)
{
    struct buffer out;
    buffer_init(&out, TOP_LINES_MAX);
    top_view_draw(&t->view, 0, loop_now_ms(t->loop), &out);
    fwrite(out.at, 1, out.length, stdout);
    fflush(stdout);
    buffer_free(&out);
}

static void
top_sleep(struct top *t)
{
    int64_t end_ms = loop_monotonic_ms(t->loop) + t->delay_ms, left;
    while ((left = end_ms - loop_monotonic_ms(t->loop)) > 0)
        loop_turn(t->loop, left);
}

/* Rates need two answers. */
static int
top_run_plain(struct top *t)
{
    for (uint64_t i = 0; i < (t->rounds > 0 ? t->rounds : 1); i++) {
        top_sleep(t);
        if (!top_ask(t)) {
            fprintf(stderr, "petrel top: %s\n", t->trouble);
            return EX_UNAVAILABLE;
        }
        if (i > 0)
            putchar('\n');
        top_print(t);
    }
    return ferror(stdout) ? EX_IOERR : 0;
}

/* --- On a terminal ---------------------------------------------------------------- */

static void
top_scroll(struct top *t, int by)
{
    size_t *at = &t->view.scroll;
    if (by < 0)
        *at = *at > (size_t)-by ? *at - (size_t)-by : 0;
    else
        *at += (size_t)by; /* the view knows the end */
}

/* False: the end. */
static bool
top_obey(struct top *t, enum screen_key key)
{
    switch (key) {
    case SCREEN_QUIT:
        return false;
    case SCREEN_ORDER:
        t->view.order = (enum top_order)((t->view.order + 1) % TOP_ORDERS);
        t->view.scroll = 0;
        break;
    case SCREEN_PAUSE:
        t->view.paused = !t->view.paused;
        break;
    case SCREEN_UP:
        top_scroll(t, -1);
        break;
    case SCREEN_DOWN:
        top_scroll(t, 1);
        break;
    case SCREEN_PAGE_UP:
        top_scroll(t, -PAGE);
        break;
    case SCREEN_PAGE_DOWN:
        top_scroll(t, PAGE);
        break;
    case SCREEN_NONE:
    case SCREEN_RESIZED:
        break;
    }
    return true;
}

static void
top_show(struct top *t)
{
    struct buffer out;
    int rows = screen_rows();
    buffer_init(&out, TOP_LINES_MAX);
    top_view_draw(&t->view, (size_t)rows, loop_now_ms(t->loop), &out);
    screen_show(buffer_text(&out), rows);
    buffer_free(&out);
}

/* Until the next round is due. False: the end. */
static bool
top_wait(struct top *t, struct screen *screen)
{
    int64_t end_ms = loop_monotonic_ms(t->loop) + t->delay_ms, left = t->delay_ms;
    while (left > 0) {
        enum screen_key key = screen_wait(screen, (int)left);
        if (!top_obey(t, key))
            return false;
        if (key != SCREEN_NONE)
            top_show(t);
        loop_turn(t->loop, 0); /* the time changes between turns */
        left = end_ms - loop_monotonic_ms(t->loop);
    }
    return true;
}

static int
top_run_screen(struct top *t, struct screen *screen)
{
    for (uint64_t done = 0; t->rounds == 0 || done < t->rounds; done++) {
        top_show(t);
        if (!top_wait(t, screen))
            break;
        if (!t->view.paused)
            (void)!top_ask(t); /* it is shown, and asked again */
    }
    return 0;
}

/* --- Arguments -------------------------------------------------------------------- */

static bool
top_set(struct top *t, char flag, const char *value)
{
    if (flag == 'n')
        return text_number(text_from(value), ROUNDS_MAX, &t->rounds) && t->rounds > 0;
    return settings_parse_duration(text_from(value), &t->delay_ms) &&
           t->delay_ms >= DELAY_MIN_MS && t->delay_ms <= DELAY_MAX_MS;
}

/* "-d 1s" or "-d1s". */
static bool
top_parse(struct top *t, int count, char **arguments)
{
    for (int i = 0; i < count; i++) {
        const char *flag = arguments[i];
        if (strncmp(flag, "-d", 2) != 0 && strncmp(flag, "-n", 2) != 0)
            return false;
        const char *value = flag[2] ? flag + 2 : i + 1 < count ? arguments[++i] : "";
        if (!top_set(t, flag[1], value)) {
            complaint_say("petrel top", EX_USAGE,
                          flag[1] == 'n' ? "-n needs a number, at least 1"
                                         : "-d needs a time from 100ms to 1h",
                          value);
            return false;
        }
    }
    return true;
}

int
top_command(int count, char **arguments, const struct options *options)
{
    struct top t = {.options = options, .delay_ms = DELAY_MS};
    struct screen screen;
    int code = EX_UNAVAILABLE;
    if (!top_parse(&t, count, arguments)) {
        fputs("usage: petrel top [-d TIME] [-n ROUNDS]\n", stderr);
        return EX_USAGE;
    }
    t.loop = loop_new();
    if (!top_ask(&t)) {
        fprintf(stderr, "petrel top: %s\n", t.trouble);
    } else if (screen_begin(&screen)) {
        code = top_run_screen(&t, &screen);
        screen_end(&screen);
    } else {
        code = top_run_plain(&t);
    }
    top_view_end(&t.view);
    loop_free(&t.loop);
    return code;
}
