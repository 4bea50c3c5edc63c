/* Reads a line of a person. */
#include "admin/tool/prompt.h"

#include <errno.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

enum { PROMPT_INTERRUPT = 3 };

bool
prompt_is_possible(void)
{
    return isatty(STDIN_FILENO) == 1;
}

/* Byte by byte: the input after the line is left for others. */
static enum prompt_result
prompt_read(char line[PROMPT_LINE_MAX], struct text *out)
{
    size_t used = 0;
    bool fits = true;
    char c = '\0';
    ssize_t got = 0;
    while (c != '\n' && c != PROMPT_INTERRUPT) {
        got = read(STDIN_FILENO, &c, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        if (c == '\n' || c == PROMPT_INTERRUPT)
            continue;
        fits = fits && used < PROMPT_LINE_MAX;
        if (fits)
            line[used++] = c;
    }
    if (used > 0 && line[used - 1] == '\r')
        used--;
    *out = text_of(line, used);
    if (got > 0 && c == PROMPT_INTERRUPT)
        return PROMPT_INTERRUPTED;
    if (got <= 0 && used == 0)
        return PROMPT_ENDED;
    return fits ? PROMPT_GOOD : PROMPT_LONG;
}

enum prompt_result
prompt_ask(const char *question, bool hides, char line[PROMPT_LINE_MAX],
           struct text *out)
{
    struct termios before, hidden;
    *out = text_of(line, 0);
    hides = hides && tcgetattr(STDIN_FILENO, &before) == 0;
    if (hides) {
        /* No signal ends us while nothing is shown: ^C ends the line instead. Before
         * the question, so that nobody answers too early. */
        hidden = before;
        hidden.c_lflag &= (tcflag_t) ~(ECHO | ECHONL | ISIG);
        hidden.c_lflag |= ICANON;
        hidden.c_cc[VEOL] = PROMPT_INTERRUPT;
        if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden) != 0)
            return PROMPT_ENDED;
    }
    fputs(question, stderr);
    (void)fflush(stderr);
    if (!hides)
        return prompt_read(line, out);
    enum prompt_result result = prompt_read(line, out);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    fputc('\n', stderr);
    return result;
}
