/* TAP for C: ok(), is_text(), done(). One test program per module, run by prove. */
#ifndef T_TAP_H
#define T_TAP_H

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 1: slow, and what was freed is kept for a while. gcc and clang say it differently. */
#if defined(__SANITIZE_ADDRESS__)
#define TAP_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TAP_ADDRESS_SANITIZER 1
#endif
#endif
#ifndef TAP_ADDRESS_SANITIZER
#define TAP_ADDRESS_SANITIZER 0
#endif

static int tap_count, tap_failed;

static inline bool
tap_result(bool good, const char *name, const char *file, int line)
{
    tap_count++;
    printf("%s %d - %s\n", good ? "ok" : "not ok", tap_count, name);
    if (!good) {
        tap_failed++;
        printf("# failed at %s:%d\n", file, line);
    }
    fflush(stdout);
    return good;
}

static inline bool
tap_number(int64_t got, int64_t want, const char *name, const char *file, int line)
{
    if (!tap_result(got == want, name, file, line))
        printf("#   got %" PRId64 ", want %" PRId64 "\n", got, want);
    return got == want;
}

static inline bool
tap_text(struct text got, struct text want, const char *name, const char *file, int line)
{
    bool good = text_equal(got, want);
    if (!tap_result(good, name, file, line))
        printf("#   got  '%.*s'\n#   want '%.*s'\n", TEXT_ARGS(got), TEXT_ARGS(want));
    return good;
}

/* The condition names itself unless a name says what it proves. */
#define ok(condition) tap_result((condition), #condition, __FILE__, __LINE__)
#define ok_named(condition, name) tap_result((condition), (name), __FILE__, __LINE__)
#define is_number(got, want, name)                                                       \
    tap_number((int64_t)(got), (int64_t)(want), (name), __FILE__, __LINE__)
#define is_text(got, want, name) tap_text((got), (want), (name), __FILE__, __LINE__)
#define is_string(got, want, name)                                                       \
    tap_text(text_from(got), text_from(want), (name), __FILE__, __LINE__)

/* The last line of main: the plan and the exit code. */
static inline int
done(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed != 0;
}

#endif
