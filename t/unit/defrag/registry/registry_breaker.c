/* defrag/registry/registry.c, the breaker: how often, how long, and when it closes again. */
#include "defrag/registry/registry_internal.h"

#include "t/support/tap.h"

int
main(void)
{
    struct registry_breaker three = {
        .failures_max = 3, .retry_ms = 50, .pause_ms = 5000, .pause_max_ms = 5000};
    struct registry_breaker one = {.failures_max = 1, .pause_ms = 5, .pause_max_ms = 18};
    ok_named(!registry_breaker_is_open(&three), "closed to begin with");
    is_number(registry_breaker_failed(&three), 50, "a failure");
    is_number(registry_breaker_failed(&three), 50, "another");
    ok_named(!registry_breaker_is_open(&three), "two do not open it");
    registry_breaker_good(&three);
    is_number(registry_breaker_failed(&three), 50, "an answer between makes them count anew");
    is_number(registry_breaker_failed(&three), 50, "two");
    is_number(registry_breaker_failed(&three), 5000, "three");
    ok_named(registry_breaker_is_open(&three), "open");
    is_number(registry_breaker_failed(&three), 5000, "a try that fails does not make it longer");
    registry_breaker_good(&three);
    ok_named(!registry_breaker_is_open(&three), "one answer closes it");
    is_number(registry_breaker_failed(&one), 5, "one failure is enough");
    is_number(registry_breaker_failed(&one), 10, "twice as long");
    is_number(registry_breaker_failed(&one), 18, "up to the limit");
    is_number(registry_breaker_failed(&one), 18, "and no longer");
    registry_breaker_good(&one);
    is_number(registry_breaker_failed(&one), 5, "from the start");
    return done();
}
