/* A spool of a test's own for commands of the operator, and what they print. */
#ifndef T_SUPPORT_COMMAND_WORLD_H
#define T_SUPPORT_COMMAND_WORLD_H

#include "admin/settings/options.h"
#include "base/id.h"

#include <stdio.h>
#include <sys/types.h>

struct command_world {
    char folder[64], spool[100], control[100];
    /* The output of the last command: */
    char output[16384], errors[16384];
    int saved[2];
    FILE *files[2];
};

void command_world_begin(struct command_world *w, const char *name);

void command_world_end(struct command_world *w);

/* Borrows the paths. */
struct options command_world_options(struct command_world *w);

/* As sendmail(1) leaves it: from ann@a.test, one small content. */
struct id command_world_inject(struct command_world *w, const char *to);

/* Text printed between the two comes out in `output` and `errors`. */
void command_world_listen(struct command_world *w);

void command_world_heard(struct command_world *w);

/* The words of a line as the shell gives them to a command; what it prints is heard, in
 * the world that was begun last. */
int run(int (*command)(int, char **, const struct options *), const char *line);

/* The output has this part, on standard output or standard error, and nothing is on the
 * other. Three assertions. */
void is_printed(int got, int code, const char *part);

void is_refused(int got, int code, const char *part);

/* A daemon at the control socket, whose directory must be there: a process that answers each
 * request with the next of the answers, which a '|' parts, until its client goes. */
pid_t command_world_daemon(const struct command_world *w, const char *answers);

/* The question to that one. */
const char *command_world_asked(const struct command_world *w);

/* One of a few static texts, by turns. */
const char *command_world_name(struct id id);

#endif
