/* Targets as settings have them. */
#include "t/support/target_kit.h"

bool
target_kit_parse(const char *written, struct target *t, char problem[TARGET_PROBLEM_MAX])
{
    struct transport_params base;
    transport_params_default(&base);
    problem[0] = '\0';
    return target_parse(text_from(written), 25, &base, t, problem);
}
