/* Scripts for tests of the compiler: a module in the DSL as text, read without Python.
 *
 * script_parse() understands as much of Python's grammar as DSL modules need and makes the syntax trees
 * that python/module makes from Python's own parser, spans included; script_embedder() answers the
 * front end's questions from the module's imports, constants and functions:
 *
 *     script *s = script_parse(a, "quick.py", "import pypto.language as pl\n...");
 *     frontend_embedder e = script_embedder(s);
 *     frontend_lower(a, &e, script_function(s, "orchestrator"), NULL, 0, &result);
 *
 * What script_parse() cannot read ends the test program with a message: tests write their own scripts.
 * script_try() returns NULL instead; the fuzzer's texts are anybody's. */
#ifndef TESTS_SCRIPT_H
#define TESTS_SCRIPT_H

#include "frontend/frontend.h"

typedef struct script script;

script *script_parse(arena *a, const char *file, const char *source);
script *script_try(arena *a, const char *file, const char *source);
frontend_embedder script_embedder(script *s);
/* The number of a function of the module. */
int32_t script_function(const script *s, const char *name);
/* All of them: numbers run from 0. */
int32_t script_function_count(const script *s);

#endif
