/* SPDX-License-Identifier: Apache-2.0
 *
 * Deciding what is recorded under a limit, see limit.h.
 */
#include "mtprof/record/limit/limit.h"

#include "mtprof/record/hot/writer.h"

#include <math.h>

#define DOWN_PART 0.9 /* of the limit: what a lower level may be predicted to cost */
#define UP_PART   0.7 /* likewise a higher one */
#define MARK_PART 0.7 /* of a begin and its end: what a mark costs */
#define OFF_PART  0.6 /* of a skipped begin: what one costs that the gate does not want */

enum {
    MS = 1000 * 1000,
    TURN_NS = 50 * MS,
    IDLE_NS = 200 * MS,   /* of a program that hardly computes */
    FULL_NS = 1000 * MS,  /* of the program's time: what the account holds at most is its part */
    HOLD_NS = 1000 * MS,  /* LM2 */
    TRIED_MS = 20 * 1000, /* an upward step that lasted as long has not failed */
    HALF_LIFE_MS = 2000,
    HALF_LIFE_MAX_MS = 60 * 1000,
    IDLE_PART = 10, /* a program that computes less than this part of a core counts as that much */
    FEW = 1000      /* events a turn; the helper's work for fewer is not theirs */
};

void mtprof__limit_init(mtprof__limit *limit, uint32_t ppm, mtprof__limit_costs cost)
{
    *limit = (mtprof__limit){
        .limit = ppm / 1e6,
        .cost = cost,
        .width = 1,
        .half_life_ns = HALF_LIFE_MS * 1e6,
        .fade = 1,
    };
}

/* Half of it new, half as before. */
static double blend(double before, double now)
{
    return before == 0 ? now : (before + now) / 2;
}

/* What the limit leaves for what levels change. */
static double room(const mtprof__limit *m)
{
    return fmax(m->limit - m->fixed, m->limit / 4);
}

/* The part of the program's time that recording on a level is predicted to take, without `fixed`.
 * What the present level hides counts less with time. */
static double predict(const mtprof__limit *m, uint32_t level)
{
    double pair = m->cost.pair + m->helper;
    double mark = m->cost.pair * MARK_PART + m->helper;
    double payload = m->payload * (m->level >= MTPROF_LIMIT_PAYLOADS ? m->fade : 1);
    double marks = m->marks * (m->level >= MTPROF_LIMIT_SCOPES_SAMPLED ? m->fade : 1) * mark;
    double ops = m->ops * (m->level >= MTPROF_LIMIT_OPS_OFF ? m->fade : 1);
    double scopes = m->scopes;
    switch (level) {
    case MTPROF_LIMIT_NONE: return payload + (ops + scopes) * pair + marks;
    case MTPROF_LIMIT_PAYLOADS: return (ops + scopes) * pair + marks;
    case MTPROF_LIMIT_OPS_SAMPLED:
        return ops * m->cost.skip + scopes * (pair + m->cost.skip) + marks;
    case MTPROF_LIMIT_OPS_OFF: return ops * m->cost.skip * OFF_PART + scopes * pair + marks;
    case MTPROF_LIMIT_SCOPES_SAMPLED: return (ops + scopes) * m->cost.skip;
    default: return 0;
    }
}

/* Begins whose kind is not known count as ops, which are cheaper to do without: the next level
 * tells. */
static void learn_begins(mtprof__limit *m, double begins)
{
    double before = m->ops + m->scopes;
    if (!m->split || before <= 0) {
        m->ops = blend(m->ops, begins);
        m->scopes = 0;
        return;
    }
    double change = blend(before, begins) / before;
    m->ops *= change;
    m->scopes *= change;
}

/* Takes rates from what this level lets us see. */
static void learn(mtprof__limit *m, const mtprof__load *load, double base)
{
    bool sampling = m->level == MTPROF_LIMIT_OPS_SAMPLED || m->level >= MTPROF_LIMIT_SCOPES_SAMPLED;
    uint64_t events = load->begins + load->marks;
    if (events >= FEW) {
        m->helper =
            fmin(blend(m->helper, (double)load->helper_ns / (double)events), 10 * m->cost.pair);
    } else {
        m->fixed = blend(m->fixed, (double)load->helper_ns / base);
    }
    m->fade *= exp2(-(double)load->wall_ns / m->half_life_ns);
    if (m->level == MTPROF_LIMIT_STRETCHES && !m->open) {
        return; /* scopes are seen in the stretches */
    }
    if (m->level == MTPROF_LIMIT_NONE) {
        m->payload = blend(m->payload, (double)load->payload_ns / base);
    }
    if (m->level < MTPROF_LIMIT_SCOPES_SAMPLED) {
        m->marks = blend(m->marks, (double)load->marks / base);
    }
    if (m->level < MTPROF_LIMIT_OPS_SAMPLED) {
        learn_begins(m, (double)load->begins / base);
        return;
    }
    double scopes = (double)(sampling ? load->scopes : load->begins) / base;
    if (m->level == MTPROF_LIMIT_OPS_SAMPLED) {
        double ops = (double)load->ops / base;
        m->ops = m->split ? blend(m->ops, ops) : ops;
    } else if (!m->split) {
        m->ops = fmax(m->ops - scopes, 0);
    }
    m->scopes = m->split ? blend(m->scopes, scopes) : scopes;
    m->split = true;
}

/* What this turn cost, in nanoseconds. */
static double cost_of(const mtprof__limit *m, const mtprof__load *load, double base)
{
    double cost =
        (double)load->helper_ns + (double)load->payload_ns + (double)load->begins * m->cost.pair +
        (double)load->marks * m->cost.pair * MARK_PART + (double)load->skipped * m->cost.skip;
    if (load->ops + load->scopes > load->skipped) { /* kept by sampling, which had to look first */
        cost += (double)(load->ops + load->scopes - load->skipped) * m->cost.skip;
    }
    if (m->level == MTPROF_LIMIT_OPS_OFF) {
        cost += m->ops * base * m->cost.skip * OFF_PART;
    }
    return cost;
}

static void change(mtprof__limit *m, uint32_t level)
{
    bool up = level < m->level;
    bool failed = !up && m->trying;
    if (failed) {
        m->half_life_ns = fmin(m->half_life_ns * 2, HALF_LIFE_MAX_MS * 1e6);
    }
    m->fade = up ? m->fade : 1;
    m->trying = up;
    m->level = level;
    m->open = false;
    m->since_ns = 0;
}

static void step_down(mtprof__limit *m)
{
    uint32_t level = m->level + 1;
    while (level < MTPROF_LIMIT_STRETCHES && predict(m, level) > DOWN_PART * room(m)) {
        level++;
    }
    change(m, level);
}

void mtprof__limit_turn(mtprof__limit *m, const mtprof__load *load)
{
    double least = (double)load->wall_ns / IDLE_PART;
    double base = fmax(fmax((double)load->cpu_ns, least), 1);
    double cost = cost_of(m, load, base);
    if (load->wall_ns == 0) {
        return;
    }
    m->width = blend(m->width, base / (double)load->wall_ns);
    double full = m->limit * m->width * FULL_NS;
    m->share = cost / base;
    m->cost_ns += cost;
    m->base_ns += base;
    m->credit_ns = fmin(m->credit_ns + m->limit * base - cost, full);
    m->since_ns += load->wall_ns;
    learn(m, load, base);
    if (m->trying && m->since_ns > TRIED_MS * (uint64_t)MS) {
        m->trying = false;
        m->half_life_ns = HALF_LIFE_MS * 1e6;
    }
    if (m->level == MTPROF_LIMIT_STRETCHES) {
        double stretch = fmin(
            predict(m, MTPROF_LIMIT_SCOPES_SAMPLED) * m->width * MTPROF__LIMIT_SOON_NS, full * 0.8);
        m->open = m->open ? m->credit_ns > 0 : m->credit_ns > stretch;
    } else if (m->credit_ns < 0 && predict(m, m->level) > room(m)) {
        step_down(m);
        return;
    }
    if (m->level > 0 && m->since_ns >= HOLD_NS && m->credit_ns > full / 2 &&
        predict(m, m->level - 1) <= UP_PART * room(m)) {
        change(m, m->level - 1);
    }
}

uint64_t mtprof__limit_wait_ns(const mtprof__limit *m, const mtprof__load *load)
{
    if (m->open || m->since_ns == 0) {
        return MTPROF__LIMIT_SOON_NS;
    }
    return load->cpu_ns * IDLE_PART < load->wall_ns ? IDLE_NS : TURN_NS;
}

uint32_t mtprof__limit_wants(const mtprof__limit *m, uint32_t wants, bool functions)
{
    const uint32_t ops =
        (uint32_t)MTPROF_WANT_OPS | (uint32_t)MTPROF_WANT_RUNTIME | (uint32_t)MTPROF_WANT_DEVICE;
    if (m->limit == 0) {
        return wants;
    }
    uint32_t bits = MTPROF__LIMITED;
    if (m->level >= MTPROF_LIMIT_PAYLOADS) {
        wants &= ~(uint32_t)MTPROF__LIMIT_PAYLOADS;
    }
    if (m->level >= MTPROF_LIMIT_OPS_OFF) {
        wants &= ~ops;
    }
    if (m->level >= MTPROF_LIMIT_SCOPES_SAMPLED) {
        wants &= ~(uint32_t)MTPROF_WANT_MARKS;
        bits |= MTPROF__SAMPLING;
    } else if (m->level == MTPROF_LIMIT_OPS_SAMPLED ||
               (m->level == MTPROF_LIMIT_OPS_OFF && functions)) {
        bits |= MTPROF__SAMPLE_OPS;
    }
    if (m->level == MTPROF_LIMIT_STRETCHES && !m->open) {
        wants = 0;
        bits = MTPROF__LIMITED | MTPROF__STEPS_ONLY;
    }
    return wants | bits;
}
