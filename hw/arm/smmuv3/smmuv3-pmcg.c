/*
 * Arm SMMUv3: performance monitor counter group
 *
 * One group of 32-bit counters in a page of the SMMU's own, each with its
 * StreamID filter. IHI 0070, chapter 10.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/timer.h"
#include "hw/irq.h"
#include "hw/registerfields.h"
#include "hw/sysbus.h"
#include "migration/vmstate.h"
#include "hw/arm/smmuv3.h"
#include "smmuv3-ext.h"
#include "trace.h"

#define COUNTERS SMMUV3_PMCG_COUNTERS
#define COUNTERS_MASK MAKE_64BIT_MASK(0, COUNTERS)

/* Offset of each counter's copy of a register: 4 * n */
#define A_EVCNTR   0x000
#define A_EVTYPER  0x400
#define A_SVR      0x600
#define A_SMR      0xa00
#define ARRAY_BYTES (COUNTERS * 4)

/* Bits, one a counter; 64 bits wide */
#define A_CNTENSET 0xc00
#define A_CNTENCLR 0xc20
#define A_INTENSET 0xc40
#define A_INTENCLR 0xc60
#define A_OVSCLR   0xc80
#define A_OVSSET   0xcc0

REG32(EVTYPER_, 0x400)
    FIELD(EVTYPER_, EVENT, 0, 16)
    FIELD(EVTYPER_, FILTER_SID_SPAN, 29, 1)
#define EVTYPER_BITS (R_EVTYPER__EVENT_MASK | R_EVTYPER__FILTER_SID_SPAN_MASK)
REG32(PMCG_CFGR, 0xe00)
    FIELD(PMCG_CFGR, NCTR, 0, 6)
    FIELD(PMCG_CFGR, SIZE, 8, 6)
REG32(PMCG_CR, 0xe04)
    FIELD(PMCG_CR, E, 0, 1)
REG32(PMCG_CEID0, 0xe20)
REG32(PMCG_IRQ_CTRL, 0xe50)
    FIELD(PMCG_IRQ_CTRL, IRQEN, 0, 1)
REG32(PMCG_IRQ_CTRLACK, 0xe54)
REG32(PMCG_PMDEVARCH, 0xfbc)
REG32(PMCG_PMDEVTYPE, 0xfcc)

#define PMDEVARCH 0x47702a56
#define PMDEVTYPE 0x56

/* Event 0, of a clock of 1 GHz: nanoseconds of the virtual clock */
#define EVENT_CYCLES 0

struct SMMUPmcg {
    MemoryRegion mmio;
    SMMUv3State *s;
    QEMUTimer *timer;      /* next overflow of a counter of cycles */
    qemu_irq irq;          /* pulsed when a counter overflows */
    uint32_t ceid;         /* events that there are */

    uint32_t cnt[COUNTERS];
    uint32_t typer[COUNTERS];
    uint32_t smr[COUNTERS];
    uint64_t enabled;      /* CNTENSET */
    uint64_t inten;        /* INTENSET */
    uint64_t overflow;     /* OVSSET */
    uint32_t cr;
    uint32_t irq_ctrl;
    int64_t cycles_at;     /* when counters of cycles were brought up to date */

    uint32_t counted;      /* events that an enabled counter counts */
    uint64_t total[SMMU_EVENTS];  /* since reset; read-only QOM properties */
};

static bool sid_matches(const SMMUPmcg *p, unsigned n, uint32_t sid)
{
    uint32_t any = 0;

    if (FIELD_EX32(p->typer[n], EVTYPER_, FILTER_SID_SPAN)) {
        /* the lowest 0 and the 1s below it match anything */
        any = p->smr[n] ^ (p->smr[n] + 1);
    }
    return !((sid ^ p->smr[n]) & ~any);
}

static void update(SMMUPmcg *p)
{
    p->counted = 0;
    if (!FIELD_EX32(p->cr, PMCG_CR, E)) {
        return;
    }
    for (unsigned n = 0; n < COUNTERS; n++) {
        uint32_t event = FIELD_EX32(p->typer[n], EVTYPER_, EVENT);

        if (extract64(p->enabled, n, 1) && event < SMMU_EVENTS) {
            p->counted |= 1u << event;
        }
    }
    p->counted &= p->ceid;
}

static void overflowed(SMMUPmcg *p, unsigned n)
{
    trace_smmuv3_pmcg_overflow(n, FIELD_EX32(p->typer[n], EVTYPER_, EVENT));
    if (!extract64(p->overflow, n, 1)) {
        p->overflow |= BIT_ULL(n);
        if (extract64(p->inten, n, 1) &&
            FIELD_EX32(p->irq_ctrl, PMCG_IRQ_CTRL, IRQEN)) {
            qemu_irq_pulse(p->irq);
        }
    }
}

/* Cycles are of no stream: filters do not matter (10.4). */
static bool counts_cycles(SMMUPmcg *p, unsigned n)
{
    return (p->counted & BIT(EVENT_CYCLES)) && extract64(p->enabled, n, 1) &&
           FIELD_EX32(p->typer[n], EVTYPER_, EVENT) == EVENT_CYCLES;
}

/* Call before anything reads or changes the counters. */
static void cycles_pass(SMMUPmcg *p)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    uint64_t passed = MAX(now - p->cycles_at, 0);

    p->cycles_at = now;
    for (unsigned n = 0; n < COUNTERS; n++) {
        if (counts_cycles(p, n)) {
            uint64_t v = p->cnt[n] + passed;

            p->cnt[n] = v;
            if (v > UINT32_MAX) {
                overflowed(p, n);
            }
        }
    }
}

static void cycles_arm(SMMUPmcg *p)
{
    int64_t left = INT64_MAX;

    for (unsigned n = 0; n < COUNTERS; n++) {
        if (counts_cycles(p, n)) {
            left = MIN(left, (int64_t)UINT32_MAX + 1 - p->cnt[n]);
        }
    }
    if (left == INT64_MAX) {
        timer_del(p->timer);
    } else {
        timer_mod(p->timer, p->cycles_at + left);
    }
}

static void cycles_overflow(void *opaque)
{
    SMMUPmcg *p = opaque;

    qemu_mutex_lock(&p->s->mutex);
    cycles_pass(p);
    cycles_arm(p);
    qemu_mutex_unlock(&p->s->mutex);
}

void smmu_pmcg_count(SMMUPmcg *p, SMMUCountedEvent event, uint32_t sid)
{
    p->total[event]++;
    if (!(p->counted >> event & 1)) {
        return;
    }
    for (unsigned n = 0; n < COUNTERS; n++) {
        if (!extract64(p->enabled, n, 1) ||
            FIELD_EX32(p->typer[n], EVTYPER_, EVENT) != event ||
            !sid_matches(p, n, sid) || ++p->cnt[n]) {
            continue;
        }
        overflowed(p, n);
    }
}

/* Which of the bit registers, and how a write changes it */
static uint64_t *bits_reg(SMMUPmcg *p, hwaddr offset, bool *set)
{
    switch (offset & ~7ull) {
    case A_CNTENSET:
    case A_CNTENCLR:
        *set = (offset & ~7ull) == A_CNTENSET;
        return &p->enabled;
    case A_INTENSET:
    case A_INTENCLR:
        *set = (offset & ~7ull) == A_INTENSET;
        return &p->inten;
    case A_OVSSET:
    case A_OVSCLR:
        *set = (offset & ~7ull) == A_OVSSET;
        return &p->overflow;
    default:
        return NULL;
    }
}

static uint32_t *array_reg(SMMUPmcg *p, hwaddr offset)
{
    if (offset < A_EVCNTR + ARRAY_BYTES) {
        return &p->cnt[offset / 4];
    }
    if (offset >= A_EVTYPER && offset < A_EVTYPER + ARRAY_BYTES) {
        return &p->typer[(offset - A_EVTYPER) / 4];
    }
    if (offset >= A_SMR && offset < A_SMR + ARRAY_BYTES) {
        return &p->smr[(offset - A_SMR) / 4];
    }
    return NULL;
}

static uint32_t read32(SMMUPmcg *p, hwaddr offset)
{
    uint32_t *reg = array_reg(p, offset);
    uint64_t *bits;
    bool set;

    if (reg) {
        return *reg;
    }
    bits = bits_reg(p, offset, &set);
    if (bits) {
        return extract64(*bits, (offset & 4) * 8, 32);
    }
    switch (offset) {
    case A_PMCG_CFGR:
        return FIELD_DP32(COUNTERS - 1, PMCG_CFGR, SIZE, 31);
    case A_PMCG_CR:
        return p->cr;
    case A_PMCG_CEID0:
        return p->ceid;
    case A_PMCG_IRQ_CTRL:
    case A_PMCG_IRQ_CTRLACK:
        return p->irq_ctrl;
    case A_PMCG_PMDEVARCH:
        return PMDEVARCH;
    case A_PMCG_PMDEVTYPE:
        return PMDEVTYPE;
    default:
        return 0;
    }
}

static void write32(SMMUPmcg *p, hwaddr offset, uint32_t v)
{
    uint32_t *reg = array_reg(p, offset);
    uint64_t *bits;
    bool set;

    if (reg) {
        *reg = offset >= A_EVTYPER && offset < A_SMR ? v & EVTYPER_BITS : v;
        return;
    }
    bits = bits_reg(p, offset, &set);
    if (bits) {
        uint64_t mask = ((uint64_t)v << (offset & 4) * 8) & COUNTERS_MASK;

        *bits = set ? *bits | mask : *bits & ~mask;
        return;
    }
    switch (offset) {
    case A_PMCG_CR:
        p->cr = v & R_PMCG_CR_E_MASK;
        return;
    case A_PMCG_IRQ_CTRL:
        p->irq_ctrl = v & R_PMCG_IRQ_CTRL_IRQEN_MASK;
        return;
    default:
        qemu_log_mask(LOG_UNIMP, "smmuv3-pmcg: write to 0x%" HWADDR_PRIx
                      " ignored\n", offset);
    }
}

static uint64_t pmcg_read(void *opaque, hwaddr offset, unsigned size)
{
    SMMUPmcg *p = opaque;
    uint64_t v;

    qemu_mutex_lock(&p->s->mutex);
    cycles_pass(p);               /* the next overflow stays when it was */
    v = read32(p, offset);
    if (size == 8) {
        v |= (uint64_t)read32(p, offset + 4) << 32;
    }
    qemu_mutex_unlock(&p->s->mutex);
    trace_smmuv3_pmcg_read(offset, v, size);
    return v;
}

static void pmcg_write(void *opaque, hwaddr offset, uint64_t v, unsigned size)
{
    SMMUPmcg *p = opaque;

    trace_smmuv3_pmcg_write(offset, v, size);
    qemu_mutex_lock(&p->s->mutex);
    cycles_pass(p);
    write32(p, offset, v);
    if (size == 8) {
        write32(p, offset + 4, v >> 32);
    }
    update(p);
    cycles_arm(p);
    qemu_mutex_unlock(&p->s->mutex);
}

static const MemoryRegionOps pmcg_ops = {
    .read = pmcg_read,
    .write = pmcg_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 8 },
    .impl = { .min_access_size = 4, .max_access_size = 8 },
};

void smmuv3_pmcg_realize(SMMUv3State *s)
{
    static const char *const name[SMMU_EVENTS] = {
        [SMMU_EVENT_TRANSACTION] = "transactions",
        [SMMU_EVENT_TLB_MISS] = "tlb-misses",
        [SMMU_EVENT_CONFIG_MISS] = "config-misses",
        [SMMU_EVENT_WALK_ACCESS] = "walk-accesses",
        [SMMU_EVENT_CONFIG_ACCESS] = "config-accesses",
        [SMMU_EVENT_ATS_REQUEST] = "ats-requests",
        [SMMU_EVENT_TRANSLATED] = "translated-transactions",
    };
    SMMUPmcg *p;

    if (!s->feat.pmcg) {
        return;
    }
    p = g_new0(SMMUPmcg, 1);
    p->s = s;
    p->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, cycles_overflow, p);
    p->ceid = BIT(EVENT_CYCLES);
    for (int i = 0; i < SMMU_EVENTS; i++) {
        if (!name[i] || (!s->feat.ats && i >= SMMU_EVENT_ATS_REQUEST)) {
            continue;
        }
        p->ceid |= 1u << i;
        object_property_add_uint64_ptr(OBJECT(s), name[i], &p->total[i],
                                       OBJ_PROP_FLAG_READ);
    }
    memory_region_init_io(&p->mmio, OBJECT(s), &pmcg_ops, p, "smmuv3-pmcg",
                          SMMUV3_PMCG_SIZE);
    memory_region_add_subregion(&s->smmu_state.iomem, SMMUV3_PMCG_OFFSET,
                                &p->mmio);
    sysbus_init_irq(SYS_BUS_DEVICE(s), &p->irq);
    s->smmu_state.pmcg = p;
}

/* Counters and filters are unknown after a reset: they keep their values. */
void smmuv3_pmcg_reset(SMMUv3State *s)
{
    SMMUPmcg *p = s->smmu_state.pmcg;

    if (p) {
        cycles_pass(p);
        p->cr = 0;
        p->irq_ctrl = 0;
        p->enabled = 0;
        p->inten = 0;
        p->overflow = 0;
        memset(p->total, 0, sizeof(p->total));
        update(p);
        cycles_arm(p);
    }
}

static int pmcg_post_load(void *opaque, int version_id)
{
    update(opaque);
    cycles_arm(opaque);
    return 0;
}

static const VMStateDescription vmstate_pmcg_state = {
    .name = "smmuv3/pmcg/state",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = pmcg_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32_ARRAY(cnt, SMMUPmcg, COUNTERS),
        VMSTATE_UINT32_ARRAY(typer, SMMUPmcg, COUNTERS),
        VMSTATE_UINT32_ARRAY(smr, SMMUPmcg, COUNTERS),
        VMSTATE_UINT64(enabled, SMMUPmcg),
        VMSTATE_UINT64(inten, SMMUPmcg),
        VMSTATE_UINT64(overflow, SMMUPmcg),
        VMSTATE_UINT32(cr, SMMUPmcg),
        VMSTATE_UINT32(irq_ctrl, SMMUPmcg),
        VMSTATE_INT64(cycles_at, SMMUPmcg),
        VMSTATE_END_OF_LIST()
    }
};

static bool pmcg_needed(void *opaque)
{
    SMMUv3State *s = opaque;

    return s->feat.pmcg;
}

const VMStateDescription vmstate_smmuv3_pmcg = {
    .name = "smmuv3/pmcg",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = pmcg_needed,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(smmu_state.pmcg, SMMUv3State,
                               vmstate_pmcg_state, SMMUPmcg),
        VMSTATE_END_OF_LIST()
    }
};
