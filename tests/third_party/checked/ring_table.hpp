// The ring's table for the harness: two operations, each of one thread only.
#pragma once
#include <cstring>

#include "pulsar_ml/harness/subject.h"
#include "ring.hpp"

template <std::memory_order Publish>
struct RingTable {
    struct State {
        Ring<int64_t, 2, Publish> ring;
        int64_t pushed = 0, popped = 0;   // of the producer, of the consumer
    };

    static void *create(const int64_t *, int32_t) { return new State; }
    static void apply(void *instance, int32_t, const PmlCall *call, PmlResult *result, PmlViolation *violation) {
        State *state = static_cast<State *>(instance);
        int64_t value = 0;
        if (call->code == 0) {
            result->status = state->ring.push(state->pushed + 1);
            state->pushed += result->status;
        } else if (state->ring.pop(value)) {
            result->status = 1;
            result->words[0] = value;
            if (value != ++state->popped) {
                violation->found = 1;
                std::strcpy(violation->invariant, "R1");
                std::strcpy(violation->message, "values should come out in the order they went in");
            }
        }
    }
    static void check(void *, PmlViolation *) {}
    static void destroy(void *instance) { delete static_cast<State *>(instance); }
};

static const PmlOperation RING_OPERATIONS[2] = {{"push", 1, 1, 0, 0, {}}, {"pop", 1, 2, 0, 0, {}}};
static const PmlArgument RING_SETTINGS[1] = {};

template <std::memory_order Publish>
static PmlSubject ring_subject(const char *name) {
    using Table = RingTable<Publish>;
    return {PML_SUBJECT_ABI, 2, 0, 2, name, "a bounded ring", RING_OPERATIONS, RING_SETTINGS,
            Table::create, Table::apply, Table::check, Table::destroy};
}

static const PmlSubject RING_RELAXED = ring_subject<std::memory_order_relaxed>("ring_relaxed");
static const PmlSubject RING_RELEASE = ring_subject<std::memory_order_release>("ring_release");
