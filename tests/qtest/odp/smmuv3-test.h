/*
 * SMMUv3 qtests: registers, table builders, the exerciser as DMA master
 *
 * One line each makes an STE, a CD, a page table entry. Offsets and bits are
 * written from Arm IHI 0070 and Arm's exerciser description, not from the
 * models. Every test boots its own machine; RAM starts at 0x40000000 and the
 * helpers hand out pages of it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef ODP_SMMUV3_TEST_H
#define ODP_SMMUV3_TEST_H

#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "../libqtest.h"

/* virt machine, highmem=off */
#define VIRT_RAM     0x40000000ull
#define VIRT_ECAM    0x3f000000ull
#define VIRT_MMIO    0x10000000ull
#define VIRT_SMMU    0x09050000ull

/* SMMU registers */
enum {
    SMMU_IDR0 = 0x0, SMMU_IDR1 = 0x4, SMMU_IDR3 = 0xc, SMMU_IDR5 = 0x14,
    SMMU_AIDR = 0x1c, SMMU_CR0 = 0x20, SMMU_CR0ACK = 0x24, SMMU_CR1 = 0x28,
    SMMU_CR2 = 0x2c, SMMU_GBPA = 0x44, SMMU_IRQ_CTRL = 0x50,
    SMMU_GERROR = 0x60, SMMU_GERRORN = 0x64, SMMU_STRTAB_BASE = 0x80,
    SMMU_STRTAB_BASE_CFG = 0x88, SMMU_CMDQ_BASE = 0x90,
    SMMU_CMDQ_PROD = 0x98, SMMU_CMDQ_CONS = 0x9c, SMMU_EVENTQ_BASE = 0xa0,
    SMMU_EVENTQ_IRQ_CFG0 = 0xb0,
    SMMU_EVENTQ_PROD = 0x100a8, SMMU_EVENTQ_CONS = 0x100ac,
    SMMU_PRIQ_BASE = 0xc0, SMMU_PRIQ_PROD = 0x100c8,
    SMMU_PRIQ_CONS = 0x100cc, SMMU_PRIQ_IRQ_CFG1 = 0xd8,
};

enum {
    CR0_SMMUEN = 1, CR0_PRIQEN = 2, CR0_EVENTQEN = 4, CR0_CMDQEN = 8,
    CR0_ATSCHK = 16,
    CR2_RECINVSID = 2, CR2_REC_CFG_ATS = 8,
    GERROR_CMDQ = 1, GERROR_EVENTQ_ABT = 4, GERROR_PRIQ_ABT = 8,
    Q_OVF = 1u << 31,
};

/* Events */
enum {
    F_UUT = 1, C_BAD_STREAMID, F_STE_FETCH, C_BAD_STE, F_BAD_ATS_TREQ,
    F_STREAM_DISABLED, F_TRANSL_FORBIDDEN, C_BAD_SUBSTREAMID, F_CD_FETCH,
    C_BAD_CD, F_WALK_EABT, F_TRANSLATION = 0x10, F_ADDR_SIZE, F_ACCESS,
    F_PERMISSION,
};

enum { CLASS_CD = 0, CLASS_TT = 1, CLASS_IN = 2 };

/* Command errors (CMDQ_CONS.ERR) */
enum { CERROR_NONE, CERROR_ILL, CERROR_ABT, CERROR_ATC_INV_SYNC };

typedef struct SmmuTest {
    QTestState *qts;
    uint64_t next;          /* next free page of RAM */
    uint64_t strtab, cmdq, eventq, priq;
    unsigned cmdq_log2, eventq_log2, priq_log2;
    uint64_t regs, mem;     /* exerciser BARs */
    uint32_t sid;
} SmmuTest;

/* One event record, decoded */
typedef struct SmmuEvent {
    uint8_t type;
    bool ssv;
    uint32_t ssid, sid;
    bool stall;
    uint16_t stag;
    bool pnu, ind, rnw, s2;
    uint8_t class;
    uint64_t addr, addr2;
} SmmuEvent;

static inline uint32_t smmu_r(SmmuTest *t, uint32_t reg)
{
    return qtest_readl(t->qts, VIRT_SMMU + reg);
}

static inline void smmu_w(SmmuTest *t, uint32_t reg, uint32_t val)
{
    qtest_writel(t->qts, VIRT_SMMU + reg, val);
}

static inline void smmu_wq(SmmuTest *t, uint32_t reg, uint64_t val)
{
    qtest_writeq(t->qts, VIRT_SMMU + reg, val);
}

/* n zeroed 4KB pages, aligned to their size rounded up to a power of two */
static inline uint64_t smmu_pages(SmmuTest *t, unsigned n)
{
    uint64_t align = 4096;
    uint64_t addr;

    while (align < n * 4096ull) {
        align *= 2;
    }
    addr = (t->next + align - 1) & ~(align - 1);
    t->next = addr + n * 4096ull;
    qtest_memset(t->qts, addr, 0, n * 4096ull);
    return addr;
}

/* PCI */
static inline uint64_t ecam(uint8_t bus, uint8_t devfn, uint32_t off)
{
    return VIRT_ECAM + (bus << 20) + (devfn << 12) + off;
}

static inline void smmu_find_exerciser(SmmuTest *t, uint8_t bus)
{
    for (int dev = 0; dev < 32; dev++) {
        uint64_t cfg = ecam(bus, dev << 3, 0);

        if (qtest_readl(t->qts, cfg) == 0xed0113b5) {
            t->sid = bus << 8 | dev << 3;
            t->regs = VIRT_MMIO + 0x100000;
            t->mem = VIRT_MMIO + 0x200000;
            qtest_writel(t->qts, cfg + 0x10, t->regs);
            qtest_writel(t->qts, cfg + 0x14, t->mem);
            qtest_writel(t->qts, cfg + 0x18, VIRT_MMIO + 0x300000);
            qtest_writew(t->qts, cfg + 4, 0x6);
            return;
        }
    }
    g_assert_not_reached();
}

static inline uint64_t smmu_cfg(SmmuTest *t)
{
    return ecam(t->sid >> 8, t->sid & 0xff, 0);
}

/* Extended capabilities of the exerciser, in its order: PASID, ATS, PRI */
enum { CAP_PASID = 0x100, CAP_ATS = 0x108, CAP_PRI = 0x110 };

static inline void pasid_enable(SmmuTest *t)
{
    qtest_writew(t->qts, smmu_cfg(t) + CAP_PASID + 6, 7);
}

static inline void ats_enable(SmmuTest *t, bool on)
{
    qtest_writew(t->qts, smmu_cfg(t) + CAP_ATS + 6, on ? 0x8000 : 0);
}

static inline void pri_enable(SmmuTest *t, unsigned credits)
{
    qtest_writel(t->qts, smmu_cfg(t) + CAP_PRI + 12, credits);
    qtest_writew(t->qts, smmu_cfg(t) + CAP_PRI + 4, credits ? 1 : 0);
}

/* Queues */
static inline unsigned q_mask(unsigned log2) { return (2u << log2) - 1; }

/* Sends a command without looking at what comes of it. */
static inline void smmu_cmd_raw(SmmuTest *t, uint64_t lo, uint64_t hi)
{
    uint32_t prod = smmu_r(t, SMMU_CMDQ_PROD);
    uint64_t e = t->cmdq + (prod & (q_mask(t->cmdq_log2) >> 1)) * 16;

    qtest_writeq(t->qts, e, lo);
    qtest_writeq(t->qts, e + 8, hi);
    smmu_w(t, SMMU_CMDQ_PROD, (prod + 1) & q_mask(t->cmdq_log2));
}

static inline bool smmu_cmdq_idle(SmmuTest *t)
{
    return (smmu_r(t, SMMU_CMDQ_PROD) & q_mask(t->cmdq_log2)) ==
           (smmu_r(t, SMMU_CMDQ_CONS) & q_mask(t->cmdq_log2));
}

static inline unsigned smmu_cmd_error(SmmuTest *t)
{
    return (smmu_r(t, SMMU_CMDQ_CONS) >> 24) & 0x7f;
}

static inline void smmu_cmd(SmmuTest *t, uint64_t lo, uint64_t hi)
{
    smmu_cmd_raw(t, lo, hi);
    g_assert_cmphex(smmu_r(t, SMMU_GERROR) & GERROR_CMDQ, ==,
                    smmu_r(t, SMMU_GERRORN) & GERROR_CMDQ);
    g_assert_true(smmu_cmdq_idle(t));
}

/* The command is refused with @error; the queue is set going behind it. */
static inline void smmu_cmd_refused(SmmuTest *t, uint64_t lo, uint64_t hi,
                                    unsigned error)
{
    uint32_t cons = smmu_r(t, SMMU_CMDQ_CONS) & q_mask(t->cmdq_log2);

    smmu_cmd_raw(t, lo, hi);
    g_assert_cmphex((smmu_r(t, SMMU_GERROR) ^ smmu_r(t, SMMU_GERRORN)) &
                    GERROR_CMDQ, ==, GERROR_CMDQ);
    g_assert_cmpuint(smmu_cmd_error(t), ==, error);
    g_assert_cmphex(smmu_r(t, SMMU_CMDQ_CONS) & q_mask(t->cmdq_log2), ==,
                    cons);
    /* replace by CMD_SYNC and acknowledge */
    qtest_writeq(t->qts, t->cmdq + (cons & (q_mask(t->cmdq_log2) >> 1)) * 16,
                 0x46);
    smmu_w(t, SMMU_GERRORN, smmu_r(t, SMMU_GERROR));
    g_assert_true(smmu_cmdq_idle(t));
}

#define CMD_SYNC(t)            smmu_cmd(t, 0x46, 0)
#define CMD_CFGI_ALL(t)        smmu_cmd(t, 0x04, 31)
#define CMD_CFGI_STE(t, sid)   smmu_cmd(t, 0x03 | (uint64_t)(sid) << 32, 1)
#define CMD_CFGI_CD(t, sid, ssid) \
    smmu_cmd(t, 0x05 | (uint64_t)(ssid) << 12 | (uint64_t)(sid) << 32, 1)
#define CMD_CFGI_CD_ALL(t, sid) smmu_cmd(t, 0x06 | (uint64_t)(sid) << 32, 0)
#define CMD_TLBI_ALL(t)        smmu_cmd(t, 0x30, 0)
#define CMD_TLBI_NH_ALL(t)     smmu_cmd(t, 0x10, 0)
#define CMD_TLBI_ASID(t, asid) smmu_cmd(t, 0x11 | (uint64_t)(asid) << 48, 0)

enum { RESUME_TERM = 0, RESUME_RETRY = 1, RESUME_ABORT = 2 };

static inline uint64_t cmd_resume_lo(uint32_t sid, int how)
{
    return 0x44 | (uint64_t)how << 12 | (uint64_t)sid << 32;
}

#define CMD_RESUME(t, sid, stag, how) \
    smmu_cmd(t, cmd_resume_lo(sid, how), stag)
#define CMD_STALL_TERM(t, sid) smmu_cmd(t, 0x45 | (uint64_t)(sid) << 32, 0)

/* ssid < 0: SSV=0 */
static inline uint64_t cmd_ssid(int op, uint32_t sid, int ssid)
{
    return op | (uint64_t)sid << 32 |
           (ssid < 0 ? 0 : 1u << 11 | (uint64_t)ssid << 12);
}

static inline unsigned smmu_events(SmmuTest *t)
{
    return (smmu_r(t, SMMU_EVENTQ_PROD) - smmu_r(t, SMMU_EVENTQ_CONS)) &
           q_mask(t->eventq_log2);
}

/* Takes the oldest event. */
static inline void smmu_pop_event(SmmuTest *t, SmmuEvent *e)
{
    uint32_t cons = smmu_r(t, SMMU_EVENTQ_CONS);
    uint64_t a = t->eventq + (cons & (q_mask(t->eventq_log2) >> 1)) * 32;
    uint64_t d[4];

    g_assert_cmpuint(smmu_events(t), >, 0);
    for (int i = 0; i < 4; i++) {
        d[i] = qtest_readq(t->qts, a + i * 8);
    }
    memset(e, 0, sizeof(*e));
    e->type = d[0] & 0xff;
    e->ssv = d[0] >> 11 & 1;
    e->ssid = d[0] >> 12 & 0xfffff;
    e->sid = d[0] >> 32;
    e->stag = d[1] & 0xffff;
    e->stall = d[1] >> 31 & 1;
    e->pnu = d[1] >> 33 & 1;
    e->ind = d[1] >> 34 & 1;
    e->rnw = d[1] >> 35 & 1;
    e->s2 = d[1] >> 39 & 1;
    e->class = d[1] >> 40 & 3;
    e->addr = d[2];
    e->addr2 = d[3];
    smmu_w(t, SMMU_EVENTQ_CONS,
           (cons & Q_OVF) | ((cons + 1) & q_mask(t->eventq_log2)));
}

/* Every field, with the name of the case in the message. */
static inline void smmu_event_is(const char *name, const SmmuEvent *got,
                                 const SmmuEvent *want)
{
#define CHECK(f) \
    if (got->f != want->f) { \
        g_error("%s: event " #f " is 0x%" PRIx64 ", not 0x%" PRIx64, name, \
                (uint64_t)got->f, (uint64_t)want->f); \
    }
    CHECK(type);
    CHECK(sid);
    CHECK(ssv);
    CHECK(ssid);
    CHECK(stall);
    CHECK(stag);
    CHECK(pnu);
    CHECK(ind);
    CHECK(rnw);
    CHECK(s2);
    CHECK(class);
    CHECK(addr);
    CHECK(addr2);
#undef CHECK
}

/* Exactly one event is there, and it is @want. */
static inline void smmu_expect_event(SmmuTest *t, const char *name,
                                     const SmmuEvent *want)
{
    SmmuEvent got;

    if (smmu_events(t) != 1) {
        g_error("%s: %u events, not 1", name, smmu_events(t));
    }
    smmu_pop_event(t, &got);
    smmu_event_is(name, &got, want);
}

/* STE builder: fill what matters, ste_write() packs it. */
typedef struct Ste {
    bool invalid;
    unsigned config;        /* 4 bypass, 5 stage 1, 6 stage 2, 7 both */
    uint64_t cd;            /* S1ContextPtr */
    unsigned s1fmt, s1cdmax, s1dss, s1stalld, eats, ppar;
    uint64_t s2ttb;
    unsigned s2vmid, s2t0sz, s2sl0, s2tg, s2ps;
    bool s2aa32, s2s, s2r, s2affd, s2ha, s2hd;
} Ste;

static inline void ste_write(SmmuTest *t, uint32_t sid, const Ste *s)
{
    uint64_t a = t->strtab + sid * 64ull;
    uint64_t d[8] = { 0 };

    d[0] = (s->invalid ? 0 : 1) | s->config << 1 | s->s1fmt << 4 | s->cd |
           (uint64_t)s->s1cdmax << 59;
    d[1] = s->s1dss | s->ppar << 18 | s->s1stalld << 27 |
           (uint64_t)s->eats << 28;
    d[2] = s->s2vmid | (uint64_t)s->s2t0sz << 32 | (uint64_t)s->s2sl0 << 38 |
           (uint64_t)s->s2tg << 46 | (uint64_t)s->s2ps << 48 |
           (uint64_t)!s->s2aa32 << 51 | (uint64_t)s->s2affd << 53 |
           (uint64_t)s->s2hd << 55 | (uint64_t)s->s2ha << 56 |
           (uint64_t)s->s2s << 57 | (uint64_t)s->s2r << 58;
    d[3] = s->s2ttb;
    qtest_memwrite(t->qts, a, d, sizeof(d)); /* little-endian hosts */
}

/* CD builder: 4KB granule, 39 bits of VA in TTBR0, TTBR1 off */
typedef struct Cd {
    bool invalid;
    uint64_t ttb;
    unsigned asid, ips, t0sz, tg0;
    bool s, no_r, no_a, affd, wxn, pan, had, aa32, tbi0;
    bool epd0, ha, hd;
    uint64_t ttb1;          /* not 0: TTBR1 on, 39 bits, 4KB */
} Cd;

static inline void cd_write(SmmuTest *t, uint64_t a, const Cd *c)
{
    uint64_t d[8] = { 0 };

    d[0] = (c->t0sz ?: 25) | c->tg0 << 6 | c->epd0 << 14 |
           (c->ttb1 ? 25ull << 16 | 2ull << 22 : 1ull << 30) |
           (uint64_t)!c->invalid << 31 | (uint64_t)(c->ips ?: 4) << 32 |
           (uint64_t)c->affd << 35 | (uint64_t)c->wxn << 36 |
           (uint64_t)c->tbi0 << 38 |
           (uint64_t)c->pan << 40 | (uint64_t)!c->aa32 << 41 |
           (uint64_t)c->hd << 42 | (uint64_t)c->ha << 43 |
           (uint64_t)c->s << 44 | (uint64_t)!c->no_r << 45 |
           (uint64_t)!c->no_a << 46 | (uint64_t)c->asid << 48;
    d[1] = c->ttb | (uint64_t)c->had << 1;
    d[2] = c->ttb1;
    qtest_memwrite(t->qts, a, d, sizeof(d));
}

/* Page tables, 4KB granule, three levels from level 1 */
enum {
    PTE_V = 1, PTE_PAGE = 3, PTE_TABLE = 3,
    PTE_EL0 = 1 << 6, PTE_RO = 1 << 7, PTE_AF = 1 << 10,
    PTE_RW_EL0 = PTE_PAGE | PTE_EL0 | PTE_AF,
    S2_R = 1 << 6, S2_W = 1 << 7,
    S2_RW = PTE_PAGE | S2_R | S2_W | PTE_AF,
};
#define PTE_NG  (1ull << 11)
#define PTE_DBM (1ull << 51)
#define PTE_PXN (1ull << 53)
#define PTE_UXN (1ull << 54)
#define S2_XN   (1ull << 54)

/* Address of the level 3 descriptor of @va; makes tables on the way. */
static inline uint64_t pt_slot(SmmuTest *t, uint64_t root, uint64_t va)
{
    for (int shift = 30; shift > 12; shift -= 9) {
        uint64_t slot = root + ((va >> shift) & 0x1ff) * 8;
        uint64_t desc = qtest_readq(t->qts, slot);

        if (!(desc & 1)) {
            desc = smmu_pages(t, 1) | PTE_TABLE;
            qtest_writeq(t->qts, slot, desc);
        }
        root = desc & 0xfffffffff000ull;
    }
    return root + ((va >> 12) & 0x1ff) * 8;
}

static inline void pt_map(SmmuTest *t, uint64_t root, uint64_t va, uint64_t pa,
                          uint64_t attrs)
{
    qtest_writeq(t->qts, pt_slot(t, root, va), pa ? pa | attrs : attrs);
}

static inline void pt_unmap(SmmuTest *t, uint64_t root, uint64_t va)
{
    qtest_writeq(t->qts, pt_slot(t, root, va), 0);
}

/* Exerciser: DMA */
enum {
    DMA_READ = 0, DMA_WRITE = 1 << 4, DMA_PASID = 1 << 6, DMA_PRIV = 1 << 7,
    DMA_INST = 1 << 8, DMA_USE_ATC = 1 << 9, DMA_TRANSLATED = 2 << 10,
};
enum { DMA_OK = 0, DMA_RANGE = 1, DMA_ERROR = 2, DMA_BUSY = 8 };
enum {
    X_PRI = 1, X_NOSTALL = 2, X_ATC = 4, X_INV_HOLD = 16, X_INV_FAIL = 32,
    X_NOTIFIER = 64,
};

static inline uint64_t ch_reg(SmmuTest *t, unsigned ch, unsigned reg)
{
    return t->regs + 0x1000 + ch * 0x20 + reg;
}

static inline unsigned dma_status(SmmuTest *t, unsigned ch)
{
    if (qtest_readl(t->qts, ch_reg(t, ch, 0)) & 0xf) {
        return DMA_BUSY;
    }
    return qtest_readl(t->qts, ch_reg(t, ch, 0x14)) & 3;
}

/* Starts a transfer on channel @ch; buffer at ch * 4KB of the memory BAR. */
static inline unsigned dma_start(SmmuTest *t, unsigned ch, uint64_t addr,
                                 uint32_t len, uint32_t ctl, uint32_t pasid)
{
    qtest_writel(t->qts, ch_reg(t, ch, 0x14), 4);
    qtest_writel(t->qts, ch_reg(t, ch, 0x4), ch * 4096);
    qtest_writel(t->qts, ch_reg(t, ch, 0x8), addr);
    qtest_writel(t->qts, ch_reg(t, ch, 0xc), addr >> 32);
    qtest_writel(t->qts, ch_reg(t, ch, 0x10), len);
    qtest_writel(t->qts, ch_reg(t, ch, 0x18), pasid);
    qtest_writel(t->qts, ch_reg(t, ch, 0), ctl | 1);
    return dma_status(t, ch);
}

/* An 8-byte DMA on channel 0 */
static inline unsigned dma(SmmuTest *t, uint64_t addr, uint32_t ctl, int pasid)
{
    return dma_start(t, 0, addr, 8, ctl | (pasid < 0 ? 0 : DMA_PASID),
                     pasid < 0 ? 0 : pasid);
}

static inline void x_ctl(SmmuTest *t, uint32_t val)
{
    qtest_writel(t->qts, t->regs + 0x84, val);
}

/* Machine with SMMU (options as -machine smmuv3.X=Y) and exerciser */
static inline SmmuTest *smmu_boot_raw(const char *smmu_opts,
                                      const char *dev_opts)
{
    SmmuTest *t = g_new0(SmmuTest, 1);
    g_autoptr(GString) args = g_string_new(
        "-machine virt,iommu=smmuv3,highmem=off,gic-version=3");
    g_auto(GStrv) opts = g_strsplit(smmu_opts ?: "", ",", -1);

    for (int i = 0; opts[i]; i++) {
        g_string_append_printf(args, ",smmuv3.%s", opts[i]);
    }
    g_string_append_printf(args, " -cpu max -m 512 -display none -nic none "
                           "-device pcie-exerciser,%s", dev_opts);
    t->qts = qtest_init(args->str);
    t->next = VIRT_RAM + 0x200000;
    return t;
}

static inline SmmuTest *smmu_boot(const char *smmu_opts, const char *dev_opts)
{
    g_autofree char *dev = g_strdup_printf("addr=4%s%s", dev_opts ? "," : "",
                                           dev_opts ?: "");
    SmmuTest *t = smmu_boot_raw(smmu_opts, dev);

    smmu_find_exerciser(t, 0);
    return t;
}

static inline void smmu_quit(SmmuTest *t)
{
    qtest_quit(t->qts);
    g_free(t);
}

/* Tables, queues and enables: linear stream table of 256 entries */
static inline void smmu_setup_sized(SmmuTest *t, unsigned eventq_log2,
                                    unsigned priq_log2, uint32_t cr0)
{
    t->cmdq_log2 = 6;
    t->eventq_log2 = eventq_log2;
    t->priq_log2 = priq_log2;
    t->strtab = smmu_pages(t, 4);
    t->cmdq = smmu_pages(t, 1);
    t->eventq = smmu_pages(t, 4);
    t->priq = smmu_pages(t, 1);
    smmu_wq(t, SMMU_STRTAB_BASE, t->strtab);
    smmu_w(t, SMMU_STRTAB_BASE_CFG, 8);
    smmu_wq(t, SMMU_CMDQ_BASE, t->cmdq | t->cmdq_log2);
    smmu_wq(t, SMMU_EVENTQ_BASE, t->eventq | t->eventq_log2);
    smmu_wq(t, SMMU_PRIQ_BASE, t->priq | t->priq_log2);
    smmu_w(t, SMMU_CR2, CR2_RECINVSID);
    smmu_w(t, SMMU_CR0, cr0);
}

static inline void smmu_setup(SmmuTest *t)
{
    smmu_setup_sized(t, 6, 4, CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN);
}

static inline SmmuTest *smmu_start(const char *smmu_opts)
{
    SmmuTest *t = smmu_boot(smmu_opts, NULL);

    smmu_setup(t);
    return t;
}

/* A wire of the virt machine, as an edge in its GICv3: pending or not. */
enum {
    GICD = 0x08000000, GICD_ISPENDR = 0x200, GICD_ICPENDR = 0x280,
    GICD_ICFGR = 0xc00,
};

static inline void smmu_wire_watch(SmmuTest *t, unsigned spi)
{
    uint64_t icfgr = GICD + GICD_ICFGR + (32 + spi) / 16 * 4;

    qtest_writel(t->qts, icfgr, qtest_readl(t->qts, icfgr) |
                                2u << (32 + spi) % 16 * 2);
}

static inline bool smmu_wire(SmmuTest *t, unsigned spi)
{
    return qtest_readl(t->qts, GICD + GICD_ISPENDR + (32 + spi) / 32 * 4) >>
           (32 + spi) % 32 & 1;
}

static inline void smmu_wire_clear(SmmuTest *t, unsigned spi)
{
    qtest_writel(t->qts, GICD + GICD_ICPENDR + (32 + spi) / 32 * 4,
                 1u << (32 + spi) % 32);
}

static inline void smmu_wait_for(QTestState *qts, const char *what,
                                 const char *status)
{
    for (int i = 0; i < 3000; i++) {
        QDict *rsp = qtest_qmp(qts, "{ 'execute': %s }", what);
        const char *s = qdict_get_try_str(qdict_get_qdict(rsp, "return"),
                                          "status");
        bool done = s && !strcmp(s, status);

        if (s && !strcmp(s, "failed")) {
            g_error("migration failed");
        }
        qobject_unref(rsp);
        if (done) {
            return;
        }
        g_usleep(10000);
    }
    g_error("%s never says %s", what, status);
}

/* Stops the machine, moves its state into a new one, which @t is then. */
static inline void smmu_migrate(SmmuTest *t, const char *opts)
{
    g_autofree char *file = g_strdup_printf("%s/odp-smmuv3-%d.state",
                                            g_get_tmp_dir(), getpid());
    g_autofree char *uri = g_strdup_printf("file:%s", file);
    g_autofree char *dev = g_strdup_printf("addr=4 -incoming %s", uri);
    SmmuTest *to;

    qtest_qmp_assert_success(t->qts, "{ 'execute': 'migrate', 'arguments': "
                             "{ 'uri': %s } }", uri);
    smmu_wait_for(t->qts, "query-migrate", "completed");
    qtest_quit(t->qts);
    to = smmu_boot_raw(opts, dev);
    smmu_wait_for(to->qts, "query-status", "running");
    t->qts = to->qts;
    g_free(to);
    unlink(file);
}

/* fw_cfg of the virt machine: data, and 8 bytes on the selector */
#define FW_CFG 0x09020000ull

static inline void fw_cfg_read(QTestState *qts, void *buf, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        ((uint8_t *)buf)[i] = qtest_readb(qts, FW_CFG);
    }
}

static inline uint8_t *fw_cfg_file(QTestState *qts, const char *name,
                                   size_t *size)
{
    enum { DIRECTORY = 0x19 };
    struct {
        uint32_t size;
        uint16_t key, reserved;
        char name[56];
    } entry;
    uint32_t n;
    uint8_t *data;

    qtest_writew(qts, FW_CFG + 8, bswap16(DIRECTORY));
    fw_cfg_read(qts, &n, sizeof(n));
    for (n = be32_to_cpu(n); n; n--) {
        fw_cfg_read(qts, &entry, sizeof(entry));
        if (!strcmp(entry.name, name)) {
            *size = be32_to_cpu(entry.size);
            data = g_malloc(*size);
            /* big-endian as it is */
            qtest_writew(qts, FW_CFG + 8, entry.key);
            fw_cfg_read(qts, data, *size);
            return data;
        }
    }
    g_error("no file %s", name);
}

#endif
