/* AArch64: the axiomatic model of the Arm Architecture Reference Manual, chapter B2, of loads,
 * stores, exchanges, compare-and-swaps and barriers. Pulte, Flur, Deacon, French, Sarkar and
 * Sewell, "Simplifying ARM concurrency", POPL 2018; Alglave, Deacon, Grisenthwaite, Hacquard and
 * Maranget, "Armed cats", TOPLAS 2021; names are those of its aarch64.cat.
 *
 * Every candidate execution is made: a source for each read, and an order of each cell's writes.
 * Unlike the construction of graphs.hpp this also reaches cycles of program order and reads-from,
 * load buffering, which RC11 has not. A candidate is a Graph, which both models judge. */
#ifndef MEMORY_MODEL_ARM_HPP
#define MEMORY_MODEL_ARM_HPP

#include "graphs.hpp"

namespace model {

/* The properties of a call's instructions; tests/memory_model/arm/a64.py has the same bits. */
enum : unsigned {
    ACQUIRES = 1, ACQUIRES_PC = 2, RELEASES = 4,   /* LDAR, LDAXR; LDAPR; STLR, STLXR: A, Q, L */
    IS_ONE = 8,                            /* an exchange by one instruction: SWP, CAS */
    IS_FULL = 16, IS_LD = 32, IS_ST = 64,  /* DMB ISH, ISHLD, ISHST */
    BY_ADDRESS = 128, BY_DATA = 256, BY_CONTROL = 512  /* depends on the thread's last load */
};

/* Rules that a model with a defect leaves out; compare.py has their names. */
enum : unsigned {
    INTERNAL = 1, RFE = 2, FRE = 4, COE = 8, LWS = 16, ADDR = 32, DATA = 64, CTRL = 128, ADDR_PO_W = 256,
    FED_RFI = 512, RMW_RFI = 1024, A_PO = 2048, PO_L = 4096, L_PO_A = 8192, AMO = 1 << 14, DMB_FULL = 1 << 15,
    DMB_LD = 1 << 16, DMB_ST = 1 << 17
};

struct Assembly {
    std::array<std::vector<unsigned>, THREADS> calls;
    unsigned omitted = 0;
    void add(int thread, unsigned properties) { calls[thread].push_back(properties); }
};

/* The effects of a program's instructions, and what orders them in each of its executions. An event
 * has one effect, an exchange two: its load and its store. */
struct ArmShape {
    const GraphShape &graphs;
    unsigned omitted;
    uint8_t load_of[EVENTS] = {}, store_of[EVENTS] = {};   /* effects, by event */
    uint32_t effects = (1u << LOCATIONS) - 1, loads = 0, stores = effects, acquires = 0, acquires_pc = 0;
    uint32_t own[EVENTS] = {};                             /* the effects of an effect's thread */
    Relation at_location{~0u}, local{~0u}, fed{~0u};

    ArmShape(const GraphShape &shape, const Assembly &assembly) : graphs(shape), omitted(assembly.omitted)
    {
        const Program &p = shape.p;
        uint32_t releases = 0, complete = 0, full = 0, ld = 0, st = 0, at[LOCATIONS] = {};
        Relation program(~0u), address(~0u), data(~0u), control(~0u);
        for (int i = 0; i < LOCATIONS; i++) {
            store_of[i] = uint8_t(i);
            at[i] = 1u << i;
        }
        int n = LOCATIONS;
        for (int t = 0; t < p.threads; t++) {
            uint32_t mine = 0;
            for (size_t i = 0; i < p.calls[t].size(); i++) {
                const Call &call = p.calls[t][i];
                unsigned is = assembly.calls[t][i];
                if (call.kind > FENCE || n + 3 > EVENTS)
                    throw std::length_error("the program is not of accesses and fences, or too long");
                int event = shape.slots[t][i];
                uint32_t before = mine & loads, load = 0, store = 0;
                if (call.kind == FENCE) {
                    uint32_t barrier = 1u << n++;
                    mine |= barrier;
                    full |= is & IS_FULL ? barrier : 0;
                    ld |= is & IS_LD ? barrier : 0;
                    st |= is & IS_ST ? barrier : 0;
                    continue;
                }
                if (call.kind != STORE) {
                    load_of[event] = uint8_t(n);
                    load = 1u << n++;
                }
                if (call.kind != LOAD) {
                    store_of[event] = uint8_t(n);
                    store = 1u << n++;
                }
                mine |= load | store;
                loads |= load;
                stores |= store;
                at[call.cell] |= load | store;
                acquires |= is & ACQUIRES ? load : 0;
                acquires_pc |= is & ACQUIRES_PC ? load : 0;
                releases |= is & RELEASES ? store : 0;
                if (is & IS_ONE && is & ACQUIRES && is & RELEASES)
                    complete |= store;
                int last = before ? 31 - __builtin_clz(before) : -1;
                if (last >= 0 && is & BY_ADDRESS)
                    address[last] |= load | store;
                if (last >= 0 && is & BY_DATA)
                    data[last] |= store;
                if (last >= 0 && is & BY_CONTROL)
                    control[last] |= (load | store) | (~0u << n);
            }
            each(mine, [&](int i) {
                own[i] = mine;
                program[i] = mine & (~0u << i) & ~(1u << i);
                control[i] &= mine;
            });
            effects |= mine;
        }
        for (uint32_t here : at)
            each(here, [&](int i) { at_location[i] = program[i] & here; });
        Relation dob = rule(ADDR, address) | rule(DATA, data) | rule(CTRL, control.between(~0u, stores)) |
                       rule(ADDR_PO_W, address.then(program).between(~0u, stores));
        Relation bob = rule(A_PO, program.between(acquires | acquires_pc, ~0u)) |
                       rule(PO_L, program.between(~0u, releases)) |
                       rule(L_PO_A, program.between(releases, acquires)) |
                       rule(AMO, program.between(complete, ~0u)) |
                       rule(DMB_FULL, program.between(~0u, full).then(program)) |
                       rule(DMB_LD, program.between(loads, ld).then(program)) |
                       rule(DMB_ST, program.between(stores, st).then(program).between(~0u, stores));
        local = rule(LWS, at_location.between(~0u, stores)) | dob | bob;
        fed = (address | data).between(~0u, stores);
    }

    Relation rule(unsigned bit, const Relation &relation) const
    {
        return omitted & bit ? Relation(~0u) : relation;
    }
    bool allows(const Graph &graph) const;
};

/* Internal visibility: coherence. External visibility: no cycle of what is ordered; the order of an
 * exchange's load and store is among those of a location. Atomicity is the candidates': an exchange
 * directly follows the write that it reads. */
inline bool ArmShape::allows(const Graph &graph) const
{
    uint32_t present = effects;
    Relation reads_from(~0u), order(~0u), from_reads(~0u), exchanged(~0u);
    each(graphs.swaps & ~graph.writes, [&](int i) { present &= ~(1u << store_of[i]); });
    for (int where = 0; where < CELLS; where++) {
        uint32_t later = 0;
        for (int i = graph.count[where]; i--;) {
            int store = store_of[graph.modification[where][i]];
            order[store] = later;
            later |= 1u << store;
        }
    }
    each(graph.reads, [&](int i) {
        int source = store_of[graph.source[i]];
        reads_from[source] |= 1u << load_of[i];
        from_reads[load_of[i]] = order[source];
        if (graph.writes >> i & 1)
            exchanged[load_of[i]] |= 1u << store_of[i];
    });
    Relation seen = reads_from | order | from_reads;
    if (rule(INTERNAL, at_location.between(present, present) | seen).has_cycle())
        return false;
    Relation forwarded(~0u), observed = rule(RFE, reads_from) | rule(FRE, from_reads) | rule(COE, order);
    each(present, [&](int i) {
        forwarded[i] = reads_from[i] & own[i];
        observed[i] &= ~own[i];
    });
    Relation early = rule(FED_RFI, fed.then(forwarded)) |
                     rule(RMW_RFI, exchanged.then(forwarded).between(~0u, acquires | acquires_pc));
    return !(observed | local.between(present, present) | early).has_cycle();
}

/* All executions of a program that give each read a source, and each cell's writes an order in
 * which an exchange directly follows the write that it reads. */
template <class Visit> class Candidates {
  public:
    Candidates(const GraphShape &of_program, Visit visitor) : shape(of_program), visit(visitor)
    {
        std::memset(static_cast<void *>(&graph), 0, sizeof graph);
        graph.begin(shape);
        for (int t = 0; t < shape.p.threads; t++)
            for (size_t i = 0; i < shape.p.calls[t].size(); i++) {
                const Call &call = shape.p.calls[t][i];
                int event = shape.slots[t][i];
                graph.present |= 1u << event;
                expected[event] = call.expected;
                if (call.kind == STORE)
                    graph.writes |= 1u << event;
                if (call.kind != STORE && call.kind != FENCE)
                    readers.push_back(event);
                if (call.kind == LOAD)
                    loads |= 1u << event;
            }
        choose(0);
    }

  private:
    const GraphShape &shape;
    Visit visit;
    Graph graph;
    std::vector<int> readers;
    uint32_t loads = 0, placed = shape.initial;
    uint8_t expected[EVENTS] = {};

    void choose(size_t at)
    {
        if (at == readers.size()) {
            uint32_t sources = 0;
            each(graph.reads, [&](int i) { sources |= 1u << graph.source[i]; });
            if (!(sources & ~graph.writes))
                place(0);
            return;
        }
        int event = readers[at];
        uint32_t here = 1u << event, writers = shape.at[shape.location[event]] & ~loads & ~here;
        each(writers, [&](int from) {
            bool fails = shape.swaps & here && shape.value[from] != expected[event];
            graph.read(event, from);
            graph.writes = fails || loads & here ? graph.writes & ~here : graph.writes | here;
            choose(at + 1);
        });
    }

    void place(int where)
    {
        if (where == CELLS)
            return visit(graph);
        uint32_t left = graph.writes & shape.at[where] & ~placed, next = 0;
        if (!left)
            return place(where + 1);
        uint8_t &count = graph.count[where];
        int last = graph.modification[where][count - 1];
        each(left & graph.reads, [&](int i) { next |= graph.source[i] == last ? 1u << i : 0; });
        each(next ? next : left & ~graph.reads, [&](int i) {
            graph.modification[where][count++] = uint8_t(i);
            placed |= 1u << i;
            place(where);
            placed &= ~(1u << i);
            count--;
        });
    }
};

/* Outcomes and executions of a program: compare.py says which. */
struct Verdicts {
    std::set<Outcome> arm, buffering, c11, engine;
    size_t allowed = 0, buffered = 0, graphs = 0, forbidden = 0;
};

inline bool is_buffering(const GraphShape &shape, const Graph &graph)
{
    Relation order = graph.present_pairs(shape.sequenced);
    each(graph.reads, [&](int i) { order[graph.source[i]] |= 1u << i; });
    return order.has_cycle();
}

inline Outcome outcome_of(const GraphShape &shape, const Graph &graph)
{
    Outcome outcome;
    for (int t = 0; t < shape.p.threads; t++)
        for (size_t i = 0; i < shape.p.calls[t].size(); i++) {
            int event = shape.slots[t][i];
            bool reads = graph.reads >> event & 1, fails = shape.swaps >> event & ~(graph.writes >> event) & 1;
            uint64_t value = reads ? shape.value[graph.source[event]] | (fails ? FAILED_CAS : 0) : 0;
            outcome.results[t] |= (value & 15) << 4 * i;
        }
    outcome.finals = graph.finals(shape);
    return outcome;
}

inline Verdicts judge(const Program &program, const Assembly &assembly)
{
    Program strengthened = program;
    strengthened.strengthened = true;
    GraphShape shape(program), strong(strengthened);
    ArmShape arm(shape, assembly);
    Verdicts found;
    Candidates(shape, [&](const Graph &graph) {
        bool shown = arm.allows(graph), in_c11 = graph.consistent(shape);
        if (!shown && !in_c11)
            return;
        bool buffers = is_buffering(shape, graph);
        Outcome outcome = outcome_of(shape, graph);
        if (in_c11)
            found.c11.insert(outcome);
        if (in_c11 && graph.consistent(strong))
            found.engine.insert(outcome);
        if (shown)
            (buffers ? found.buffering : found.arm).insert(outcome);
        found.allowed += shown;
        found.buffered += shown && buffers;
        found.graphs += in_c11;
        found.forbidden += shown && !buffers && !in_c11;
    });
    return found;
}

}  // namespace model

#endif
