/* TAP for C: TEST(), ok(), is_text(), done(). One test program per module, run by prove. */
#ifndef T_SUPPORT_TAP_H
#define T_SUPPORT_TAP_H

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

extern int tap_count, tap_failed;

bool tap_result(bool good, const char *name, const char *file, int line);

bool tap_number(int64_t got, int64_t want, const char *name, const char *file, int line);

bool tap_text(struct text got, struct text want, const char *name, const char *file, int line);

/* The condition names itself unless a name says what it proves. */
#define ok(condition) tap_result((condition), #condition, __FILE__, __LINE__)
#define ok_named(condition, name) tap_result((condition), (name), __FILE__, __LINE__)
#define is_number(got, want, name)                                                       \
    tap_number((int64_t)(got), (int64_t)(want), (name), __FILE__, __LINE__)
#define is_text(got, want, name) tap_text((got), (want), (name), __FILE__, __LINE__)
#define is_string(got, want, name)                                                       \
    tap_text(text_from(got), text_from(want), (name), __FILE__, __LINE__)

/* A test of a file. They run in the order of their lines. */
struct tap_test {
    const char *name;
    void (*run)(void);
    int line;
    struct tap_test *next;
};

void tap_register(struct tap_test *test);

#define TEST(name)                                                                       \
    static void test_##name(void);                                                       \
    __attribute__((constructor)) static void register_##name(void)                       \
    {                                                                                    \
        static struct tap_test test = {#name, test_##name, __LINE__, NULL};              \
        tap_register(&test);                                                             \
    }                                                                                    \
    static void test_##name(void)

/* A struct of this scope: begin(&name, ...) now, and end(&name) behind its last line. */
#define FIXTURE(type, name, begin, end, ...)                                             \
    __attribute__((cleanup(end))) struct type name;                                      \
    begin(&(name), ##__VA_ARGS__)

/* A program without main() runs all, or those whose names contain its argument. */
void tap_tests(const char *part);

/* The last line of main: the plan and the exit code. */
int done(void);

#endif
