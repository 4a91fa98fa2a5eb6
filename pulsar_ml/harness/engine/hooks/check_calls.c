/* The calls behind pulsar_ml/check.h: values that the engine chooses, assumptions, notes for the
 * trace, and names for locations. Outside executions they do nothing. */

enum { NOTE_BYTES = 160, NAME_BYTES = 64, MOST_NAMES = 256, MOST_OPTIONS = UINT16_MAX };
/* The kinds of values of a note; check.h has them, too. */
enum { NOTED_NOTHING, NOTED_SIGNED, NOTED_UNSIGNED, NOTED_DOUBLE, NOTED_TEXT, NOTED_POINTER };

static uint32_t choose_value(const Thread *t, uint32_t options)
{
    if (E.strategy->row.kind == STRATEGY_FOLLOWS)
        return replay_value(t->number, t->values, CHOOSE_VALUE, options);
    if (searching())
        return past_turns(t) ? 0 : search_choose(options);
    return draw_below(options);
}

/* A number from 0 to options - 1. */
EXPORT uint32_t pml_engine_choose(uint32_t options)
{
    Thread *t = current;
    uint32_t chosen = 0;
    if (t == NULL)
        return 0;
    if (options == 0 || options > MOST_OPTIONS)
        assertion("check::choose() takes a number of options from 1 to 65535", PC);
    settle(t);
    if (options > 1)
        chosen = choose_value(t, options);
    if (unlikely(E.recording)) {
        if (chosen)
            add_decision((EngineDecision){t->values, (uint8_t)t->number, CHOOSE_VALUE, (uint16_t)chosen});
        trace_event(t, OP_CHOOSE, options, 0, chosen, PC);
    }
    t->values++;
    t->watch_lost = 1;            /* the next turn of its loop may differ */
    hash_step(((uint64_t)chosen << 32 | options) + t->salt);
    E.class_hash += mix64((uint64_t)t->number << 48 ^ (uint64_t)t->values << 16 ^ chosen);
    if (unlikely(++E.step == E.step_check))
        step_limit(t);
    return chosen;
}

/* An assumption does not hold: the execution ends here and counts for nothing. */
EXPORT void pml_engine_discard(void)
{
    if (current == NULL)
        return;
    E.failure.kind = END_DISCARDED;
    E.failure.pc = PC;
    abandon();
}

SHARED struct { char text[NOTE_BYTES]; } *notes;
SHARED uint64_t notes_room;

static int note_room(void)
{
    uint64_t room = notes_room ? 2 * notes_room : 64;
    void *more;
    if (n_notes < notes_room)
        return 1;
    more = realloc(notes, room * sizeof *notes);
    if (more == NULL)
        return 0;
    notes = more;
    notes_room = room;
    return 1;
}

/* A line of the trace, with a value of this kind; kept only while a trace is. */
EXPORT void pml_engine_note(const char *text, int kind, uint64_t value)
{
    Thread *t = current;
    char *to;
    double number;
    int used;
    if (t == NULL || likely(!E.recording) || !note_room())
        return;
    to = notes[n_notes].text;
    used = snprintf(to, NOTE_BYTES, "%s%s", text, kind == NOTED_NOTHING ? "" : " ");
    to += used < NOTE_BYTES ? used : NOTE_BYTES - 1;
    size_t left = (size_t)(notes[n_notes].text + NOTE_BYTES - to);
    memcpy(&number, &value, sizeof number);
    switch (kind) {
    case NOTED_SIGNED: snprintf(to, left, "%lld", (long long)value); break;
    case NOTED_UNSIGNED: snprintf(to, left, "%llu", (unsigned long long)value); break;
    case NOTED_DOUBLE: snprintf(to, left, "%g", number); break;
    case NOTED_TEXT: snprintf(to, left, "%s", value ? (const char *)(uintptr_t)value : "(null)"); break;
    case NOTED_POINTER: snprintf(to, left, "%#llx", (unsigned long long)value); break;
    default: break;
    }
    trace_event(t, OP_NOTE, 0, 0, n_notes++, PC);
}

const char *engine_note(uint64_t number) { return number < n_notes ? notes[number].text : ""; }

static struct { uintptr_t address; size_t bytes; char text[NAME_BYTES]; } names[MOST_NAMES];

/* Names a location in traces; the last name of an address holds. */
EXPORT void pml_engine_name(const void *at, size_t bytes, const char *text)
{
    if (current == NULL || likely(!E.recording) || n_names == MOST_NAMES)
        return;
    names[n_names].address = (uintptr_t)at;
    names[n_names].bytes = bytes;
    snprintf(names[n_names++].text, NAME_BYTES, "%s", text);
}

/* The name of the smallest named object around an address, or NULL. */
const char *engine_name(uint64_t address, uint64_t *offset, uint64_t *size)
{
    const char *found = NULL;
    *size = UINT64_MAX;
    for (uint32_t i = n_names; i > 0; i--)
        if (address - names[i - 1].address < names[i - 1].bytes && names[i - 1].bytes < *size) {
            found = names[i - 1].text;
            *size = names[i - 1].bytes;
            *offset = address - names[i - 1].address;
        }
    return found;
}
