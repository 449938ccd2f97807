/* What the files that answer the front end share. */
#ifndef MODULE_EMBEDDER_H
#define MODULE_EMBEDDER_H

#include "core.h"

/* ---- embedder.c ---- */

/* Puts the current exception aside; the first one wins. */
void hold_back(embedding *e);
/* Hands a new reference to `keep` and returns it as borrowed. NULL stays NULL; a failure is held
 * back. */
PyObject *kept(embedding *e, PyObject *object);
/* An attribute, kept. */
PyObject *attribute(embedding *e, PyObject *object, const char *name);
/* The same, but it may be missing: NULL without anything held back. */
PyObject *optional_attribute(embedding *e, PyObject *object, const char *name);
/* The string in a str attribute, borrowed from `keep`; NULL when there is none. */
const char *optional_text(embedding *e, PyObject *object, const char *name);
pld_plane plane_of(embedding *e, PyObject *jit);

/* ---- embedded_names.c ---- */

/* frontend_embedder.resolve */
name_value embed_resolve(void *context, arena *a, int32_t function, const char *name);

#endif
