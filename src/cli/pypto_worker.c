/* The pypto-worker program: one device's worker process, started by the library with the control socket as
 * descriptor 3 (process/process.h). Not for use by hand. */
#include <pypto/worker.h>

#define CONTROL_FD 3

int main(void)
{
    return pypto_worker_main(CONTROL_FD);
}
