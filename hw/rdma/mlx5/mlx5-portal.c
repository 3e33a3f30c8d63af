/*
 * mlx5 SVA portal: the PCI function
 *
 * A function beside the HCA's that a process opens with Linux's
 * uio_pci_generic_sva, to get memory keys for its own address space. Who may
 * reach what is in docs/specs/mlx5-sva-portal.md, and is a security boundary.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "hw/pci/pcie.h"
#include "hw/qdev-properties.h"
#include "hw/registerfields.h"
#include "migration/vmstate.h"
#include "mlx5-dma.h"
#include "mlx5-hca.h"
#include "mlx5-mkey.h"
#include "mlx5-portal.h"
#include "mlx5-portal-pci.h"
#include "trace.h"

OBJECT_DECLARE_SIMPLE_TYPE(Mlx5Portal, MLX5_PORTAL)

enum {
    BAR_SIZE = 64 * KiB,          /* one page of any guest */
    CAP_PM = 0x40,
    CAP_EXP = 0x60,
    CAP_PASID = 0x100,
    CAP_ATS = 0x110,
    CAP_PRI = 0x120,
    CAP_ACS = 0x130,
    PASID_BITS = 20,
    PRI_REQUESTS = 512,
    PM_VERSION = 3,

    MAGIC_VALUE = 0x50415653,     /* SVAP */
    VERSION_VALUE = 0x00010000,
    COUNTERS_SIZE = 0x100,
};

REG32(MAGIC, 0x000)
REG32(VERSION, 0x004)
REG32(CAP, 0x008)
    FIELD(CAP, PASID_BITS, 0, 5)
    FIELD(CAP, NO_ATS, 8, 1)
    FIELD(CAP, NO_PASID, 9, 1)
    FIELD(CAP, LOG_KEYS, 16, 5)
    FIELD(CAP, FUNCTION, 24, 3)
REG32(STATUS, 0x00c)
    FIELD(STATUS, LATCHED, 0, 1)
    FIELD(STATUS, MASTER, 1, 1)
    FIELD(STATUS, ATS, 2, 1)
    FIELD(STATUS, PASID, 3, 1)
    FIELD(STATUS, PRI, 4, 1)
    FIELD(STATUS, HCA, 5, 1)
    FIELD(STATUS, UNBOUND, 6, 1)
REG32(CONTROL, 0x010)
    FIELD(CONTROL, RESET, 0, 1)
REG32(PASID, 0x014)
    FIELD(PASID, PASID, 0, 20)
    FIELD(PASID, VALID, 31, 1)
REG32(KEY_PD, 0x020)
REG32(KEY_ACCESS, 0x024)
REG32(KEY_START_LO, 0x028)
REG32(KEY_START_HI, 0x02c)
REG32(KEY_LENGTH_LO, 0x030)
REG32(KEY_LENGTH_HI, 0x034)
REG32(KEY, 0x038)
REG32(COMMAND, 0x03c)
REG32(RESULT, 0x040)
REG32(NKEYS, 0x044)
REG32(FUNCTION_COUNTERS, 0x100)
REG32(KEY_COUNTERS, 0x300)

enum { COMMAND_MAKE = 1, COMMAND_DESTROY = 2, COMMAND_QUERY = 3 };

/* Counters of a function only, by their offset in the block */
enum {
    COUNTER_ATC_HITS = 0x50,
    COUNTER_ATC_MISSES = 0x58,
    COUNTER_ATC_INVS = 0x60,
    COUNTER_PRGS = 0x68,
};

struct Mlx5Portal {
    PCIDevice parent_obj;

    Mlx5Hca *hca;
    uint32_t function;            /* number of ours; of the PCI address, too */
    char *name;                   /* for traces */
    PCIeRequester requester;
    MemoryRegion bar;
    bool no_ats, no_pasid;        /* properties: keys in spite of that */

    uint32_t pasid;               /* latched, where latched is set */
    bool latched;
    bool unbound;                 /* the latched PASID has no table any more */
    Mlx5PortalKey regs;           /* KEY_PD to KEY */
    uint32_t result;
    Mlx5FaultStats key_stats;     /* as the last query found them */
};

static Mlx5FaultStats *portal_stats(Mlx5Portal *p)
{
    return &p->hca->dma->fn[p->function].stats;
}

static bool portal_is_on(Mlx5Portal *p)
{
    return p->parent_obj.is_master && !pcie_requester_in_d3(&p->requester);
}

static bool portal_hca_ready(Mlx5Portal *p)
{
    return mlx5_hca_allows(p->hca, 0) && !mlx5_hca_broken(p->hca);
}

/* Ends the keys that the function's present state does not allow. */
static void portal_check_keys(Mlx5Portal *p)
{
    PCIDevice *d = PCI_DEVICE(p);

    if (!portal_is_on(p)) {
        mlx5_portal_end_keys(p->hca, p->function, false);
    } else if (!pcie_pasid_enabled(d) || (!pcie_ats_enabled(d) && !p->no_ats)) {
        mlx5_portal_end_keys(p->hca, p->function, true);
    }
}

/*
 * An invalidation of a whole PASID is what an unbind looks like; Linux has
 * taken the table away by then. Called before it is acknowledged.
 */
static void portal_invalidated(PCIeRequester *r, bool pasid_valid,
                               uint32_t pasid, hwaddr first, hwaddr last)
{
    Mlx5Portal *p = container_of(r, Mlx5Portal, requester);

    if (!p->latched || p->unbound || first || last != UINT64_MAX ||
        (pasid_valid && pasid != p->pasid)) {
        return;
    }
    if (!pcie_requester_probe(r, p->pasid)) {
        trace_mlx5_portal_unbound(p->name, p->pasid);
        p->unbound = true;
        mlx5_portal_end_keys(p->hca, p->function, true);
    }
}

static void portal_reset_registers(Mlx5Portal *p)
{
    Mlx5FaultStats *s = portal_stats(p);

    mlx5_portal_end_keys(p->hca, p->function, false);
    mlx5_dma_end_function(p->hca, p->function);
    p->latched = false;
    p->unbound = false;
    p->pasid = 0;
    p->regs = (Mlx5PortalKey) { };
    p->result = MLX5_PORTAL_OK;
    memset(s, 0, sizeof(*s));
    memset(&p->key_stats, 0, sizeof(p->key_stats));
    p->requester.n_stall = p->requester.n_page_req = 0;
    p->requester.n_atc_hit = p->requester.n_atc_miss = 0;
    p->requester.n_atc_inv = 0;
}

static void portal_latch(Mlx5Portal *p, uint32_t val)
{
    uint32_t pasid = val & ~R_PASID_VALID_MASK;

    if (!FIELD_EX32(val, PASID, VALID) || !pasid || pasid >> PASID_BITS) {
        p->result = MLX5_PORTAL_BAD_PASID;
    } else if (p->latched && p->pasid != pasid) {
        p->result = MLX5_PORTAL_LATCHED;
    } else {
        p->latched = true;
        p->pasid = pasid;
        p->result = MLX5_PORTAL_OK;
    }
    trace_mlx5_portal_latch(p->name, pasid, p->result);
}

/* May a key be made now? */
static Mlx5PortalResult portal_may_make(Mlx5Portal *p)
{
    PCIDevice *d = PCI_DEVICE(p);

    if (!portal_is_on(p)) {
        return MLX5_PORTAL_NO_MASTER;
    }
    if (!portal_hca_ready(p)) {
        return MLX5_PORTAL_HCA_DOWN;
    }
    if (p->regs.access & MLX5_PORTAL_NO_PASID_KEY) {
        return p->no_pasid ? MLX5_PORTAL_OK : MLX5_PORTAL_BAD_ACCESS;
    }
    if (!p->latched) {
        return MLX5_PORTAL_NO_PASID;
    }
    if (p->unbound) {
        return MLX5_PORTAL_UNBOUND;
    }
    if (!pcie_pasid_enabled(d)) {
        return MLX5_PORTAL_PASID_OFF;
    }
    if (!pcie_ats_enabled(d)) {
        return p->no_ats ? MLX5_PORTAL_OK : MLX5_PORTAL_ATS_OFF;
    }
    return pcie_requester_probe(&p->requester, p->pasid) ? MLX5_PORTAL_OK
                                                         : MLX5_PORTAL_UNBOUND;
}

static void portal_command(Mlx5Portal *p, uint32_t command)
{
    switch (command) {
    case COMMAND_MAKE:
        p->regs.key = 0;
        p->result = portal_may_make(p);
        if (p->result == MLX5_PORTAL_OK) {
            p->result = mlx5_portal_key_make(p->hca, p->function, p->pasid,
                                             &p->regs);
        }
        break;
    case COMMAND_DESTROY:
        p->result = mlx5_portal_key_destroy(p->hca, p->function, p->regs.key);
        break;
    case COMMAND_QUERY:
        p->result = mlx5_portal_key_query(p->hca, p->function, &p->regs,
                                          &p->key_stats);
        break;
    default:
        p->result = MLX5_PORTAL_BAD_COMMAND;
        break;
    }
    trace_mlx5_portal_command(p->name, command, p->regs.key, p->result);
}

static uint32_t portal_status(Mlx5Portal *p)
{
    PCIDevice *d = PCI_DEVICE(p);
    uint32_t val = 0;

    val = FIELD_DP32(val, STATUS, LATCHED, p->latched);
    val = FIELD_DP32(val, STATUS, MASTER, portal_is_on(p));
    val = FIELD_DP32(val, STATUS, ATS, pcie_ats_enabled(d));
    val = FIELD_DP32(val, STATUS, PASID, pcie_pasid_enabled(d));
    val = FIELD_DP32(val, STATUS, PRI, pcie_pri_enabled(d));
    val = FIELD_DP32(val, STATUS, HCA, portal_hca_ready(p));
    return FIELD_DP32(val, STATUS, UNBOUND, p->unbound);
}

static uint32_t portal_cap(Mlx5Portal *p)
{
    uint32_t val = 0;

    val = FIELD_DP32(val, CAP, PASID_BITS, PASID_BITS);
    val = FIELD_DP32(val, CAP, NO_ATS, p->no_ats);
    val = FIELD_DP32(val, CAP, NO_PASID, p->no_pasid);
    val = FIELD_DP32(val, CAP, LOG_KEYS, MLX5_PORTAL_LOG_KEYS);
    return FIELD_DP32(val, CAP, FUNCTION, p->function);
}

static uint64_t portal_counter(Mlx5Portal *p, hwaddr off)
{
    switch (off) {
    case COUNTER_ATC_HITS:
        return p->requester.n_atc_hit;
    case COUNTER_ATC_MISSES:
        return p->requester.n_atc_miss;
    case COUNTER_ATC_INVS:
        return p->requester.n_atc_inv;
    case COUNTER_PRGS:
        return pcie_requester_prg_pending(&p->requester);
    default:
        return mlx5_faults_word(portal_stats(p), off);
    }
}

static uint32_t portal_reg_read(Mlx5Portal *p, hwaddr addr)
{
    uint64_t counter;

    switch (addr) {
    case A_MAGIC:
        return MAGIC_VALUE;
    case A_VERSION:
        return VERSION_VALUE;
    case A_CAP:
        return portal_cap(p);
    case A_STATUS:
        return portal_status(p);
    case A_PASID:
        return p->latched ? p->pasid | R_PASID_VALID_MASK : 0;
    case A_KEY_PD:
        return p->regs.pd;
    case A_KEY_ACCESS:
        return p->regs.access;
    case A_KEY_START_LO:
        return p->regs.start;
    case A_KEY_START_HI:
        return p->regs.start >> 32;
    case A_KEY_LENGTH_LO:
        return p->regs.length;
    case A_KEY_LENGTH_HI:
        return p->regs.length >> 32;
    case A_KEY:
        return p->regs.key;
    case A_RESULT:
        return p->result;
    case A_NKEYS:
        return mlx5_portal_nkeys(p->hca, p->function);
    case A_FUNCTION_COUNTERS ... A_FUNCTION_COUNTERS + COUNTERS_SIZE - 1:
        counter = portal_counter(p, (addr - A_FUNCTION_COUNTERS) & ~7ull);
        break;
    case A_KEY_COUNTERS ... A_KEY_COUNTERS + COUNTERS_SIZE - 1:
        counter = mlx5_faults_word(&p->key_stats,
                                   (addr - A_KEY_COUNTERS) & ~7ull);
        break;
    default:
        return 0;
    }
    return addr & 4 ? counter >> 32 : counter;
}

static void portal_reg_write(Mlx5Portal *p, hwaddr addr, uint32_t val)
{
    switch (addr) {
    case A_CONTROL:
        if (FIELD_EX32(val, CONTROL, RESET)) {
            trace_mlx5_portal_reset(p->name);
            portal_reset_registers(p);
        }
        break;
    case A_PASID:
        portal_latch(p, val);
        break;
    case A_KEY_PD:
        p->regs.pd = val & 0xffffff;
        break;
    case A_KEY_ACCESS:
        p->regs.access = val;
        break;
    case A_KEY_START_LO:
        p->regs.start = deposit64(p->regs.start, 0, 32, val);
        break;
    case A_KEY_START_HI:
        p->regs.start = deposit64(p->regs.start, 32, 32, val);
        break;
    case A_KEY_LENGTH_LO:
        p->regs.length = deposit64(p->regs.length, 0, 32, val);
        break;
    case A_KEY_LENGTH_HI:
        p->regs.length = deposit64(p->regs.length, 32, 32, val);
        break;
    case A_KEY:
        p->regs.key = val;
        break;
    case A_COMMAND:
        portal_command(p, val);
        break;
    default:
        mlx5_guest_error(p->hca, "portal %u: write of 0x%x to 0x%" HWADDR_PRIx,
                         p->function, val, addr);
        break;
    }
}

static uint64_t portal_mmio_read(void *opaque, hwaddr addr, unsigned size)
{
    Mlx5Portal *p = opaque;
    uint64_t val = portal_reg_read(p, addr);

    return size == 8 ? val | (uint64_t)portal_reg_read(p, addr + 4) << 32
                     : val;
}

static void portal_mmio_write(void *opaque, hwaddr addr, uint64_t val,
                              unsigned size)
{
    Mlx5Portal *p = opaque;

    if (p->hca->guard->engaged_in_io) {
        /* DMA of the HCA itself: not in the middle of its work */
        mlx5_guest_error(p->hca, "portal %u: written by the HCA's own DMA",
                         p->function);
        return;
    }
    portal_reg_write(p, addr, val);
    if (size == 8) {
        portal_reg_write(p, addr + 4, val >> 32);
    }
}

static const MemoryRegionOps portal_ops = {
    .read = portal_mmio_read,
    .write = portal_mmio_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 8 },
    .impl = { .min_access_size = 4, .max_access_size = 8 },
};

static void portal_config_write(PCIDevice *d, uint32_t addr, uint32_t val,
                                int len)
{
    Mlx5Portal *p = MLX5_PORTAL(d);

    pci_default_write_config(d, addr, val, len);
    pcie_cap_flr_write_config(d, addr, val, len);
    pcie_requester_config_write(&p->requester, addr, len);
    portal_check_keys(p);
}

/* Bus reset, FLR, power-up */
static void portal_reset_hold(Object *obj, ResetType type)
{
    Mlx5Portal *p = MLX5_PORTAL(obj);

    portal_reset_registers(p);
    pcie_requester_reset(&p->requester);
}

static void portal_realize(PCIDevice *d, Error **errp)
{
    Mlx5Portal *p = MLX5_PORTAL(d);
    static const PCIeRequesterCaps caps = {
        .pasid = CAP_PASID, .pasid_bits = PASID_BITS, .ats = CAP_ATS,
        .pri = CAP_PRI, .page_requests = PRI_REQUESTS,
        .prg_response_pasid = true, .acs = CAP_ACS,
    };

    if (pci_pm_init(d, CAP_PM, errp) < 0) {
        return;
    }
    pci_set_word(d->config + CAP_PM + PCI_PM_PMC, PM_VERSION);
    pci_set_word(d->config + CAP_PM + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
    pci_set_word(d->wmask + CAP_PM + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);
    if (pcie_endpoint_cap_init(d, CAP_EXP) < 0) {
        error_setg(errp, "no room for the PCI Express capability");
        return;
    }
    pcie_cap_flr_init(d);
    pcie_requester_init_caps(d, &caps);
    memory_region_init_io(&p->bar, OBJECT(p), &portal_ops, p,
                          "mlx5-sva-portal", BAR_SIZE);
    pci_register_bar(d, 0, PCI_BASE_ADDRESS_SPACE_MEMORY, &p->bar);

    p->requester.invalidated = portal_invalidated;
    pcie_requester_init(&p->requester, d);
    mlx5_dma_attach(p->hca, p->function, &p->requester);
}

static void portal_exit(PCIDevice *d)
{
    Mlx5Portal *p = MLX5_PORTAL(d);

    mlx5_portal_end_keys(p->hca, p->function, false);
    mlx5_dma_detach(p->hca, p->function);
    pcie_requester_exit(&p->requester);
    pcie_cap_exit(d);
}

static void portal_finalize(Object *obj)
{
    g_free(MLX5_PORTAL(obj)->name);
}

bool mlx5_portal_create(Mlx5Hca *h, PCIDevice *pf, unsigned function,
                        const Mlx5PortalConf *conf, Error **errp)
{
    PCIDevice *d = pci_new(pf->devfn + function, TYPE_MLX5_PORTAL);
    Mlx5Portal *p = MLX5_PORTAL(d);
    g_autofree char *child = mlx5_portal_child(function);

    p->hca = h;
    p->function = function;
    p->name = g_strdup_printf("%s.portal%u", h->name, function);
    p->no_ats = conf->no_ats;
    p->no_pasid = conf->no_pasid;
    object_property_add_child(OBJECT(pf), child, OBJECT(d));
    /* It comes and goes with function 0, which tells the slot. */
    DEVICE(d)->hotplugged = false;
    return pci_realize_and_unref(d, pci_get_bus(pf), errp);
}

static int portal_post_load(void *opaque, int version_id)
{
    Mlx5Portal *p = opaque;

    pcie_requester_config_write(&p->requester, 0, 0);
    return p->pasid >> PASID_BITS ? -EINVAL : 0;
}

static const VMStateDescription vmstate_portal = {
    .name = TYPE_MLX5_PORTAL,
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = portal_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_PCI_DEVICE(parent_obj, Mlx5Portal),
        VMSTATE_STRUCT(requester, Mlx5Portal, 1, vmstate_pcie_requester,
                       PCIeRequester),
        VMSTATE_UINT32(pasid, Mlx5Portal),
        VMSTATE_BOOL(latched, Mlx5Portal),
        VMSTATE_BOOL(unbound, Mlx5Portal),
        VMSTATE_UINT32(regs.pd, Mlx5Portal),
        VMSTATE_UINT32(regs.access, Mlx5Portal),
        VMSTATE_UINT64(regs.start, Mlx5Portal),
        VMSTATE_UINT64(regs.length, Mlx5Portal),
        VMSTATE_UINT32(regs.key, Mlx5Portal),
        VMSTATE_UINT32(result, Mlx5Portal),
        VMSTATE_STRUCT(key_stats, Mlx5Portal, 1, vmstate_mlx5_faults,
                       Mlx5FaultStats),
        VMSTATE_UINT64(requester.n_atc_hit, Mlx5Portal),
        VMSTATE_UINT64(requester.n_atc_miss, Mlx5Portal),
        VMSTATE_UINT64(requester.n_atc_inv, Mlx5Portal),
        VMSTATE_END_OF_LIST()
    },
};

static void portal_class_init(ObjectClass *klass, const void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);
    ResettableClass *rc = RESETTABLE_CLASS(klass);

    pc->realize = portal_realize;
    pc->exit = portal_exit;
    pc->config_write = portal_config_write;
    pc->vendor_id = MLX5_VENDOR_ID;
    pc->device_id = MLX5_PORTAL_DEVICE_ID;
    pc->revision = 1;
    pc->class_id = PCI_CLASS_SYSTEM_OTHER;
    rc->phases.hold = portal_reset_hold;
    dc->desc = "SVA portal of mlx5-hca";
    dc->vmsd = &vmstate_portal;
    /* made by mlx5-hca,sva-portals=N */
    dc->user_creatable = false;
}

static const TypeInfo portal_types[] = {
    {
        .name = TYPE_MLX5_PORTAL,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(Mlx5Portal),
        .instance_finalize = portal_finalize,
        .class_init = portal_class_init,
        .interfaces = (const InterfaceInfo[]) {
            { INTERFACE_PCIE_DEVICE },
            { INTERFACE_PCIE_STALLABLE },
            { }
        },
    },
};

DEFINE_TYPES(portal_types)
