# Triggers of delayed messages: called without a lock, by one thread at a time for each view.

from pulsar_ml.sync.atomics cimport i32_exchange_acquire, i32_load_relaxed


# Marks a view for the fire that is under way; the views' Python side is called after it.
cdef void delay_told(void* context, int64_t argument) noexcept nogil:
    i32_store_relaxed(<pml_i32*>argument, 1)


# A thread that calls a view's trigger. No lock is held meanwhile; `done` is set afterwards.
@cython.final
@cython.internal
cdef class TriggerRun:
    cdef InMemoryTopicDelayedDeliveryTrackerView view
    cdef object thread
    cdef object done


# Guards the runs and the marks of views. Held for moments.
cdef GatedLock calling = GatedLock.__new__(GatedLock)
cdef set trigger_runs = set()


# In a child of a fork: the triggers of other threads do not run here.
cdef int forget_triggers() except -1:
    cdef TriggerRun run
    for value in list(trigger_runs):
        run = <TriggerRun>value
        if run.thread != threading.get_ident():
            with calling:
                end_trigger(run)
    return 0


# The caller holds `calling`.
cdef int end_trigger(TriggerRun run) except -1:
    run.view.run = None
    trigger_runs.discard(run)
    run.done.set()
    return 0


# Calls the trigger of a view for as long as it is marked. A mark that comes while it runs, in
# this thread or another, makes it run once more afterwards. Returns what it raised.
cdef list call_trigger(InMemoryTopicDelayedDeliveryTrackerView view):
    cdef TriggerRun run
    cdef list errors = []
    with calling:
        if view.run is not None or not i32_load_relaxed(&view.triggered):
            return errors
        run = TriggerRun.__new__(TriggerRun)
        run.view = view
        run.thread = threading.get_ident()
        run.done = threading.Event()
        view.run = run
        trigger_runs.add(run)
    pml_calls.triggers += 1
    try:
        while True:
            with calling:
                trigger = view.trigger
                if not (i32_exchange_acquire(&view.triggered, 0) and i32_load_relaxed(&view.open)
                        and trigger is not None):
                    end_trigger(run)
                    return errors
            try:
                trigger()
            except BaseException as error:
                errors.append(error)
    finally:
        pml_calls.triggers -= 1
        with calling:
            if view.run is run:
                end_trigger(run)


cdef int raise_all(list errors) except -1:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise BaseExceptionGroup(f"{len(errors)} triggers raised", errors)
    return 0
