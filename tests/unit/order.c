/* Making an order among threads; see order.h. */
#include "order.h"

#include "child.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_poll
#define WAITS SYS_poll
#else
#define WAITS SYS_ppoll
#endif

void order_until_it_polls(_Atomic pid_t *thread)
{
    char path[64], line[32] = "";
    bool told_of = true;
    while (atomic_load(thread) == 0)
        usleep(1000);
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)atomic_exchange(thread, 0));
    bool waits = false;
    for (int i = 0; i < PATIENCE_MS && told_of && !waits; i++) {
        usleep(1000);
        FILE *file = fopen(path, "re");
        told_of = file != NULL && fgets(line, sizeof line, file) != NULL;
        if (file != NULL)
            fclose(file);
        waits = told_of && strtol(line, NULL, 10) == WAITS;
    }
    if (!told_of)
        usleep(20000);
}
