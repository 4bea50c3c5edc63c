/* sendmail(1): its code as another process on the host's disk. */
#ifndef T_ROOF_INJECTOR_H
#define T_ROOF_INJECTOR_H

#include "t/roof/model.h"

enum { INJECTOR_PROCESS = 2 };

void injector_run(struct model_message *m);

#endif
