/* Memory is zeroed, never NULL, and an impossible request ends the process. */
#include "base/memory.h"
#include "t/support/tap.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct owner {
    int before;
    char member;
};

static bool
is_zero(const char *at, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (at[i] != 0)
            return false;
    return true;
}

static void
overflow(void)
{
    volatile size_t huge = SIZE_MAX / 2;
    free(memory_array(huge, 4));
}

static void
too_much(void)
{
    volatile size_t huge = SIZE_MAX / 2;
    free(memory_new(huge));
}

static void
resize_too_much(void)
{
    volatile size_t huge = SIZE_MAX / 2;
    free(memory_resize(NULL, huge));
}

/* True if the process does not survive it. */
static bool
is_fatal(void (*run)(void))
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(0);
        run();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) || WEXITSTATUS(status) != 0;
}

static size_t
resident(void)
{
    size_t all = 0, now = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%zu %zu", &all, &now) != 2)
        ok_named(false, "the memory of this process");
    if (file != NULL)
        fclose(file);
    return now * (size_t)sysconf(_SC_PAGESIZE);
}

/* A block that is used, and one above it that stays. */
TEST(return_large)
{
    enum { MOST = 24 << 20, BLOCK = 12 << 20 };
    memory_return_large();
    char *most = memory_new(MOST);
    memset(most, 1, MOST);
    free(most);
    size_t before = resident();
    char *block = memory_resize(NULL, BLOCK);
    memset(block, 1, BLOCK);
    char *above = memory_new(1000);
    size_t used = resident();
    free(block);
    size_t after = resident();
    ok_named(used > before + BLOCK / 2, "a block that is used is resident");
    if (TAP_ADDRESS_SANITIZER)
        printf("# this build keeps what was freed\n");
    else
        ok_named(after < before + BLOCK / 2, "and given back, even below another one");
    free(above);
}

/* Blocks that were used once, and one above them that stays. */
TEST(trim)
{
#ifdef __GLIBC__
    enum { BLOCKS = 2000, BLOCK = 8000 }; /* more than the hole of the test before */
#else
    enum { BLOCKS = 400, BLOCK = 8000 }; /* musl gives 4 MiB in a row back without it */
#endif
    static char *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = memory_new(BLOCK);
        memset(blocks[i], 1, BLOCK);
    }
    char *above = memory_new(1000);
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    size_t before = resident();
    memory_trim();
    if (TAP_ADDRESS_SANITIZER)
        printf("# this build keeps what was freed\n");
    else
        ok_named(resident() < before - BLOCKS * BLOCK / 2,
                 "small blocks that were freed are given back below another one");
    free(above);
}

int
main(void)
{
    char *at = memory_new(1000);
    ok_named(is_zero(at, 1000), "new memory is zeroed");
    memset(at, 'x', 1000);
    at = memory_resize(at, 5000);
    ok_named(at[0] == 'x' && at[999] == 'x', "resizing keeps what was there");
    at = memory_resize(at, 0);
    ok_named(at != NULL, "nothing at all is memory too: resize");
    free(at);

    at = memory_new(0);
    ok_named(at != NULL, "nothing at all is memory too: new");
    free(at);
    at = memory_array(0, 8);
    ok_named(at != NULL, "nothing at all is memory too: array");
    free(at);
    at = memory_array(100, 8);
    ok_named(is_zero(at, 800), "an array is zeroed");
    free(at);

    at = memory_string("petrel");
    is_string(at, "petrel", "a string is copied with its end");
    free(at);

    struct owner owner = {0};
    ok(memory_container(&owner.member, struct owner, member) == &owner);

    ok_named(is_fatal(overflow), "count * size that overflows ends the process");
    ok_named(is_fatal(too_much), "a size that nobody has ends the process");
    ok_named(is_fatal(resize_too_much), "so it does when resizing");
    tap_tests("");
    return done();
}
