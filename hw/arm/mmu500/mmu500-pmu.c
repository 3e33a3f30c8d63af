/*
 * MMU-500: performance monitors (IHI 0062 chapter 6)
 *
 * One counter group for each TBU, four counters in a group. A group filters
 * by nothing, by StreamID or by context bank; as in the part, no event
 * crosses groups.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "mmu500-internal.h"
#include "trace.h"

#define N MMU500_PMU_COUNTERS

static bool bit(const uint32_t *map, unsigned n)
{
    return map[n / 32] & (1u << (n % 32));
}

static bool group_filter(const MMU500PMUGroup *g, const MMU500Txn *txn)
{
    uint32_t id = extract32(g->cgsmr, 0, 15);
    uint32_t mask = extract32(g->cgsmr, 16, 15);

    switch (FIELD_EX32(g->cgcr, PMCGCR0, TCEFCFG)) {
    case 0:
        return true;
    case 1:
        return !((txn->sid ^ id) & ~mask);
    case 2:
        return txn->cb == FIELD_EX32(g->cgcr, PMCGCR0, NDX);
    default:
        return false;
    }
}

void mmu500_pmu_event(MMU500State *s, const MMU500Txn *txn, unsigned event)
{
    MMU500PMUGroup *g = &s->pmu[txn->tbu];
    unsigned i;

    if (txn->paid ||
        !FIELD_EX32(s->pmcr, PMCR, E) || !FIELD_EX32(g->cgcr, PMCGCR0, E) ||
        !group_filter(g, txn)) {
        return;
    }
    for (i = 0; i < N; i++) {
        unsigned n = txn->tbu * N + i;

        if (bit(s->pmcnten, n) &&
            FIELD_EX32(g->evtyper[i], PMEVTYPER0, EVENT) == event) {
            if (++g->counter[i] == 0) {
                s->pmovs[n / 32] |= 1u << (n % 32);
            }
        }
    }
}

bool mmu500_pmu_irq(const MMU500State *s)
{
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(s->pmovs); i++) {
        if (s->pmovs[i] & s->pminten[i]) {
            return true;
        }
    }
    return false;
}

void mmu500_pmu_reset(MMU500State *s)
{
    memset(s->pmu, 0, sizeof(s->pmu));
    memset(s->pmcnten, 0, sizeof(s->pmcnten));
    memset(s->pminten, 0, sizeof(s->pminten));
    memset(s->pmovs, 0, sizeof(s->pmovs));
    s->pmcr = 0;
}

/* Counters that exist, as a mask over word @idx of the bit arrays. */
static uint32_t counter_mask(MMU500State *s, int idx)
{
    int left = s->num_tbu * N - idx * 32;

    return left <= 0 ? 0 : left >= 32 ? UINT32_MAX : (1u << left) - 1;
}

static uint64_t evcntr_read(MMU500State *s, int page, int n)
{
    return s->pmu[n / N].counter[n % N];
}

static void evcntr_write(MMU500State *s, int page, int n, uint64_t val)
{
    if (n < s->num_tbu * N) {
        s->pmu[n / N].counter[n % N] = val;
    }
}

static uint64_t evtyper_read(MMU500State *s, int page, int n)
{
    return s->pmu[n / N].evtyper[n % N];
}

static void evtyper_write(MMU500State *s, int page, int n, uint64_t val)
{
    if (n < s->num_tbu * N) {
        s->pmu[n / N].evtyper[n % N] =
            val & (R_PMEVTYPER0_EVENT_MASK | R_PMEVTYPER0_U_MASK |
                   R_PMEVTYPER0_P_MASK);
    }
}

static uint64_t cgcr_read(MMU500State *s, int page, int n)
{
    uint32_t val;

    if (n >= s->num_tbu) {
        return 0;
    }
    val = s->pmu[n].cgcr;
    val = FIELD_DP32(val, PMCGCR0, CGNC, N);
    return FIELD_DP32(val, PMCGCR0, SIDG, n);
}

static void cgcr_write(MMU500State *s, int page, int n, uint64_t val)
{
    if (n < s->num_tbu) {
        s->pmu[n].cgcr = val & (R_PMCGCR0_TCEFCFG_MASK | R_PMCGCR0_NDX_MASK |
                                R_PMCGCR0_CBAEN_MASK | R_PMCGCR0_X_MASK |
                                R_PMCGCR0_E_MASK);
    }
}

static uint64_t cgsmr_read(MMU500State *s, int page, int n)
{
    return s->pmu[n].cgsmr;
}

static void cgsmr_write(MMU500State *s, int page, int n, uint64_t val)
{
    if (n < s->num_tbu) {
        s->pmu[n].cgsmr = val & 0x7fff7fff;
    }
}

static uint64_t cnten_read(MMU500State *s, int page, int n)
{
    return s->pmcnten[n];
}

static void cntenset_write(MMU500State *s, int page, int n, uint64_t val)
{
    s->pmcnten[n] |= val & counter_mask(s, n);
}

static void cntenclr_write(MMU500State *s, int page, int n, uint64_t val)
{
    s->pmcnten[n] &= ~val;
}

static uint64_t inten_read(MMU500State *s, int page, int n)
{
    return s->pminten[n];
}

static void intenset_write(MMU500State *s, int page, int n, uint64_t val)
{
    s->pminten[n] |= val & counter_mask(s, n);
}

static void intenclr_write(MMU500State *s, int page, int n, uint64_t val)
{
    s->pminten[n] &= ~val;
}

static uint64_t ovs_read(MMU500State *s, int page, int n)
{
    return s->pmovs[n];
}

static void ovsset_write(MMU500State *s, int page, int n, uint64_t val)
{
    s->pmovs[n] |= val & counter_mask(s, n);
}

static void ovsclr_write(MMU500State *s, int page, int n, uint64_t val)
{
    s->pmovs[n] &= ~val;
}

static uint64_t cfgr_read(MMU500State *s, int page, int n)
{
    /* groups - 1, width - 1, counters - 1 */
    return (uint64_t)(s->num_tbu - 1) << 24 | 31u << 8 | (s->num_tbu * N - 1);
}

static uint64_t pmcr_read(MMU500State *s, int page, int n)
{
    return s->pmcr;
}

static void pmcr_write(MMU500State *s, int page, int n, uint64_t val)
{
    if (FIELD_EX32(val, PMCR, P)) {
        for (unsigned i = 0; i < s->num_tbu; i++) {
            memset(s->pmu[i].counter, 0, sizeof(s->pmu[i].counter));
        }
    }
    s->pmcr = val & (R_PMCR_E_MASK | R_PMCR_X_MASK);
}

static uint64_t ceid0_read(MMU500State *s, int page, int n)
{
    return 1u << PMU_EVENT_TLB_ALLOC | 1u << PMU_EVENT_TLB_RD |
           1u << PMU_EVENT_TLB_WR | 1u << PMU_EVENT_ACCESS |
           1u << PMU_EVENT_ACCESS_RD | 1u << PMU_EVENT_ACCESS_WR;
}

#define COUNTERS (MMU500_MAX_TBU * MMU500_PMU_COUNTERS)

static const MMU500Reg pm_regs[] = {
    { "PMEVCNTR", A_PMEVCNTR0, COUNTERS, 4,
      .read = evcntr_read, .write = evcntr_write },
    { "PMEVTYPER", A_PMEVTYPER0, COUNTERS, 4,
      .read = evtyper_read, .write = evtyper_write },
    { "PMCGCR", A_PMCGCR0, MMU500_MAX_TBU, 4,
      .read = cgcr_read, .write = cgcr_write },
    { "PMCGSMR", A_PMCGSMR0, MMU500_MAX_TBU, 4,
      .read = cgsmr_read, .write = cgsmr_write },
    { "PMCNTENSET", A_PMCNTENSET0, COUNTERS / 32, 4,
      .read = cnten_read, .write = cntenset_write },
    { "PMCNTENCLR", A_PMCNTENCLR0, COUNTERS / 32, 4,
      .read = cnten_read, .write = cntenclr_write },
    { "PMINTENSET", A_PMINTENSET0, COUNTERS / 32, 4,
      .read = inten_read, .write = intenset_write },
    { "PMINTENCLR", A_PMINTENCLR0, COUNTERS / 32, 4,
      .read = inten_read, .write = intenclr_write },
    { "PMOVSCLR", A_PMOVSCLR0, COUNTERS / 32, 4,
      .read = ovs_read, .write = ovsclr_write },
    { "PMOVSSET", A_PMOVSSET0, COUNTERS / 32, 4,
      .read = ovs_read, .write = ovsset_write },
    { "PMCFGR", A_PMCFGR, 1, 4, .read = cfgr_read },
    { "PMCR", A_PMCR, 1, 4, .read = pmcr_read, .write = pmcr_write },
    { "PMCEID0", A_PMCEID0, 1, 4, .read = ceid0_read },
    { "PMCEID1", A_PMCEID1, 1, 4 },
    { "PMAUTHSTATUS", A_PMAUTHSTATUS, 1, 4 },
    { "PMDEVTYPE", A_PMDEVTYPE, 1, 4 },
};

MMU500RegPage mmu500_pmregs = { pm_regs, ARRAY_SIZE(pm_regs) };
