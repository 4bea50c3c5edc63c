/* base/breaker.c, the breaker: how often, how long, and when it closes again. */
#include "base/breaker.h"

#include "t/support/tap.h"

int
main(void)
{
    struct breaker three = {
        .failures_max = 3, .retry_ms = 50, .pause_ms = 5000, .pause_max_ms = 5000};
    struct breaker one = {.failures_max = 1, .pause_ms = 5, .pause_max_ms = 18};
    ok_named(!breaker_is_open(&three), "closed to begin with");
    is_number(breaker_failed(&three), 50, "a failure");
    is_number(breaker_failed(&three), 50, "another");
    ok_named(!breaker_is_open(&three), "two do not open it");
    breaker_good(&three);
    is_number(breaker_failed(&three), 50, "an answer between makes them count anew");
    is_number(breaker_failed(&three), 50, "two");
    is_number(breaker_failed(&three), 5000, "three");
    ok_named(breaker_is_open(&three), "open");
    is_number(breaker_failed(&three), 5000, "a try that fails does not make it longer");
    breaker_good(&three);
    ok_named(!breaker_is_open(&three), "one answer closes it");
    is_number(breaker_failed(&one), 5, "one failure is enough");
    is_number(breaker_failed(&one), 10, "twice as long");
    is_number(breaker_failed(&one), 18, "up to the limit");
    is_number(breaker_failed(&one), 18, "and no longer");
    breaker_good(&one);
    is_number(breaker_failed(&one), 5, "from the start");
    return done();
}
