/* Relations over at most 32 events: a row of bits for each event. */
#ifndef MEMORY_MODEL_RELATIONS_HPP
#define MEMORY_MODEL_RELATIONS_HPP

#include <cstdint>

namespace model {

enum { EVENTS = 32 };

template <class Visit> inline void each(uint32_t set, Visit visit)
{
    for (; set; set &= set - 1)
        visit(__builtin_ctz(set));
}

/* Rows of events outside `domain` are empty. */
struct Relation {
    uint32_t domain;
    uint32_t rows[EVENTS] = {};

    explicit Relation(uint32_t events) : domain(events) {}
    uint32_t &operator[](int event) { return rows[event]; }
    uint32_t operator[](int event) const { return rows[event]; }

    Relation &operator|=(const Relation &other)
    {
        each(domain, [&](int i) { rows[i] |= other.rows[i]; });
        return *this;
    }
    friend Relation operator|(Relation first, const Relation &second) { return first |= second; }

    /* First this relation, then the other. */
    Relation then(const Relation &other) const
    {
        Relation found(domain);
        each(domain, [&](int i) { each(rows[i], [&](int j) { found.rows[i] |= other.rows[j]; }); });
        return found;
    }
    Relation closure() const
    {
        Relation found = *this;
        each(domain, [&](int k) {
            uint32_t reached = found.rows[k];
            if (reached)
                each(domain, [&](int i) {
                    if (found.rows[i] >> k & 1)
                        found.rows[i] |= reached;
                });
        });
        return found;
    }
    Relation reflexive() const
    {
        Relation found = *this;
        each(domain, [&](int i) { found.rows[i] |= 1u << i; });
        return found;
    }
    /* The pairs from `left` to `right`. */
    Relation between(uint32_t left, uint32_t right) const
    {
        Relation found(domain);
        each(domain & left, [&](int i) { found.rows[i] = rows[i] & right; });
        return found;
    }
    bool has_loop() const
    {
        bool found = false;
        each(domain, [&](int i) { found |= rows[i] >> i & 1; });
        return found;
    }
    bool has_cycle() const { return closure().has_loop(); }
};

}  // namespace model

#endif
