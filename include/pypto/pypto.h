/* Everything a C program that runs PyPTO programs needs: types, errors, the device API, program
 * tables, worker sets. */
#ifndef PYPTO_PYPTO_H
#define PYPTO_PYPTO_H

#include <pypto/pld.h>
#include <pypto/program.h>
#include <pypto/status.h>
#include <pypto/types.h>
#include <pypto/worker.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the library, "MAJOR.MINOR.PATCH". */
PYPTO_API const char *pypto_version(void);

#ifdef __cplusplus
}
#endif
#endif
