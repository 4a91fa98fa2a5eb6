/* The engine's functions for threads of the interpreter, of engine/hooks/python.c: the boundary
 * between the engine, which knows nothing of Python, and pythreads/native, which knows nothing of
 * schedules. */
#ifndef PULSAR_ML_PYTHREADS_FIBERS_H
#define PULSAR_ML_PYTHREADS_FIBERS_H

#include <stddef.h>
#include <stdint.h>

/* Exit status of a process in which the stack of a Python thread was exhausted; see child.py. */
enum { STACK_EXHAUSTED = 87 };

/* Kinds of pml_python_fail(). */
enum { PYTHON_EXCEPTION, PYTHON_ASSERTION, PYTHON_UNCONTROLLED };

void pml_python_attach(void (*after)(int ended), void (*enter)(int number), void *(*state)(int number),
                       int (*exhausted)(uintptr_t address), int orders);
uintptr_t pml_python_lock(void);
void pml_python_start(void);
void pml_python_quiet(int on);
void pml_python_allocated(uintptr_t address, size_t bytes);
void pml_python_begin(char *top);
void pml_python_end(void);
int pml_python_number(void);
int pml_python_recording(void);
uint64_t pml_python_random(void);
int64_t pml_python_clock(int step);
void pml_python_point(uintptr_t address, int writes);
void pml_python_access(uintptr_t address, uintptr_t shadow, int writes, uint64_t value, uint64_t pc);
void pml_python_acquired(uintptr_t address, int owned, uint64_t pc);
void pml_python_released(uintptr_t address, uint64_t pc);
void pml_python_forget(uintptr_t address);
int pml_python_wait(uintptr_t address, int64_t span, int64_t *deadline, uint64_t pc);
void pml_python_sleep(int64_t span);
int pml_python_spawn(void *(*body)(void *), void *argument, char *top, uint64_t pc);
int pml_python_join(int number, int64_t span, uint64_t pc);
int pml_python_ended(int number);
void pml_python_stack(const uint64_t *places, int n);
void pml_python_fail(int kind, const char *rule, const char *message) __attribute__((noreturn));
void pml_python_complete(void) __attribute__((noreturn));
void pml_python_on_stack(char *top, void (*body)(void));

#endif
