/*
 * Arm CoreLink MMU-500: the device, its masters, its state
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "hw/pci/pci_bus.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "exec/icount.h"
#include "system/address-spaces.h"
#include "system/qtest.h"
#include "mmu500-internal.h"
#include "trace.h"

static uint32_t master_sid(const MMU500Master *m)
{
    return m->bus ? PCI_BUILD_BDF(pci_bus_num(m->bus), m->devfn) : m->sid;
}

static IOMMUAccessFlags prot_to_perm(uint8_t prot, bool priv)
{
    uint8_t p = priv ? prot >> 3 : prot;

    return IOMMU_ACCESS_FLAG(p & PROT_UR, p & PROT_UW);
}

static MMU500Outcome mmu500_translate_rw(MMU500State *s, MMU500Txn *txn,
                                         IOMMUAccessFlags flags,
                                         MMU500Result *res)
{
    MMU500Stats before = s->stats;
    MMU500Outcome out = mmu500_translate(s, txn, res);

    if (out == OUTCOME_OK && (flags & IOMMU_RW) == IOMMU_RW) {
        MMU500Txn rd = *txn;

        rd.write = false;
        if (!mmu500_prot_allows(res->prot, &rd)) {
            txn->write = false;
            out = mmu500_translate(s, txn, res);
        }
    }
    if (txn->paid) {
        /* Its lookup was counted on arrival: this time only faults are. */
        before.context_faults = s->stats.context_faults;
        before.global_faults = s->stats.global_faults;
        before.held = s->stats.held;
        s->stats = before;
    }
    return out;
}

/*
 * One access of a master. @req: may be suspended in it; else it is ended.
 * An access that reads and writes needs both rights.
 */
static MMU500Outcome mmu500_access(MMU500Master *m, hwaddr va,
                                   IOMMUAccessFlags flags,
                                   RecoverableDMAReq *req,
                                   IOMMUTLBEntry *entry)
{
    MMU500State *s = m->smmu;
    MMU500Txn txn = {
        .master = m, .va = va, .sid = master_sid(m), .tbu = m->tbu,
        .write = flags & IOMMU_WO,
        .priv = flags & IOMMU_PRIV, .insn = flags & IOMMU_EXEC,
        .probe = !(flags & IOMMU_RW),
        .can_stall = req && !req->no_stall,
    };
    MMU500Result res;
    MMU500Outcome out;
    bool irq;

    qemu_mutex_lock(&s->lock);
    if (txn.can_stall && mmu500_tbu_arrive(s, req, &txn)) {
        irq = mmu500_pmu_irq(s);
        qemu_mutex_unlock(&s->lock);
        if (irq) {
            mmu500_update_irqs(s);
        }
        return OUTCOME_STALL;
    }
    out = mmu500_translate_rw(s, &txn, flags, &res);
    if (out == OUTCOME_STALL) {
        mmu500_stall_enqueue(s, req, &txn, &res);
    }
    irq = out != OUTCOME_OK || mmu500_pmu_irq(s);
    qemu_mutex_unlock(&s->lock);

    *entry = (IOMMUTLBEntry) {
        .target_as = &address_space_memory,
        .iova = va & ~res.mask,
        .translated_addr = res.pa,
        .addr_mask = res.mask,
        .perm = IOMMU_NONE,
    };
    if (out == OUTCOME_OK) {
        entry->perm = prot_to_perm(res.prot, txn.priv);
    } else if (out == OUTCOME_RAZWI) {
        entry->target_as = &s->razwi_as;
        entry->iova = va & ~(hwaddr)0xfff;
        entry->translated_addr = 0;
        entry->addr_mask = 0xfff;
        entry->perm = IOMMU_RW;
    } else {
        entry->iova = va & ~(hwaddr)0xfff;
        entry->addr_mask = 0xfff;
    }
    if (irq && !txn.probe) {
        mmu500_update_irqs(s);
    }
    trace_mmu500_translate(txn.sid, va, flags, out, entry->translated_addr);
    return out;
}

static IOMMUTLBEntry mmu500_iommu_translate(IOMMUMemoryRegion *mr,
                                            hwaddr addr,
                                            IOMMUAccessFlags flag,
                                            int iommu_idx)
{
    MMU500Master *m = container_of(mr, MMU500Master, iommu);
    IOMMUTLBEntry entry;

    mmu500_access(m, addr, flag, NULL, &entry);
    return entry;
}

static RecoverableDMAResult
mmu500_recoverable_translate(IOMMUMemoryRegion *mr, RecoverableDMAReq *req,
                             IOMMUTLBEntry *entry)
{
    MMU500Master *m = container_of(mr, MMU500Master, iommu);

    if (req->pasid_valid || req->translated) {
        /* no SubstreamIDs and no ATS in SMMUv2 */
        return RECOVERABLE_DMA_ABORT;
    }
    switch (mmu500_access(m, req->iova, req->access, req, entry)) {
    case OUTCOME_OK:
    case OUTCOME_RAZWI:         /* @entry leads to where zeroes are read */
        return RECOVERABLE_DMA_OK;
    case OUTCOME_STALL:
        return RECOVERABLE_DMA_STALLED;
    default:
        return RECOVERABLE_DMA_ABORT;
    }
}

static void mmu500_recoverable_cancel(IOMMUMemoryRegion *mr,
                                      RecoverableDMAReq *req)
{
    MMU500Master *m = container_of(mr, MMU500Master, iommu);

    QEMU_LOCK_GUARD(&m->smmu->lock);
    mmu500_stall_cancel(m->smmu, req);
}

static int mmu500_notify_flag_changed(IOMMUMemoryRegion *mr,
                                      IOMMUNotifierFlag old,
                                      IOMMUNotifierFlag new, Error **errp)
{
    MMU500Master *m = container_of(mr, MMU500Master, iommu);

    if (new & IOMMU_NOTIFIER_DEVIOTLB_UNMAP) {
        error_setg(errp, "arm-mmu500 does not support device IOTLBs: "
                   "use ats=off on the device");
        return -EINVAL;
    }
    if (new & IOMMU_NOTIFIER_MAP) {
        error_setg(errp, "arm-mmu500 cannot report new mappings, so host "
                   "devices (vfio) cannot be assigned behind it: plug the "
                   "device under a root bus with bypass_iommu=on");
        return -EINVAL;
    }
    m->has_notifier = new != IOMMU_NOTIFIER_NONE;
    return 0;
}

void mmu500_notify_unmap(MMU500State *s)
{
    MMU500Master *m;
    IOMMUNotifier *n;

    WITH_QEMU_LOCK_GUARD(&s->lock) {
        if (!s->unmap_pending) {
            return;
        }
        s->unmap_pending = false;
    }
    QLIST_FOREACH(m, &s->masters, next) {
        if (m->has_notifier) {
            IOMMU_NOTIFIER_FOREACH(n, &m->iommu) {
                memory_region_unmap_iommu_notifier_range(n);
            }
        }
    }
}

/* Masters */

static void master_init(MMU500State *s, MMU500Master *m, const char *name)
{
    m->smmu = s;
    m->gen = s->stream_gen - 1;
    memory_region_init_iommu(&m->iommu, sizeof(m->iommu),
                             TYPE_MMU500_MEMORY_REGION, OBJECT(s), name,
                             UINT64_MAX);
    QLIST_INSERT_HEAD(&s->masters, m, next);
}

MemoryRegion *mmu500_master_region(MMU500State *s, uint32_t sid,
                                   const char *name)
{
    MMU500Master *m = g_new0(MMU500Master, 1);

    m->sid = sid;
    m->tbu = MMU500_STREAMID_TBU(sid) % s->num_tbu;
    master_init(s, m, name);
    return MEMORY_REGION(&m->iommu);
}

static AddressSpace *mmu500_pci_as(PCIBus *bus, void *opaque, int devfn)
{
    MMU500State *s = opaque;
    MMU500Master **slots = g_hash_table_lookup(s->pci_masters, bus);
    MMU500Master *m;

    if (!slots) {
        slots = g_new0(MMU500Master *, PCI_DEVFN_MAX);
        g_hash_table_insert(s->pci_masters, bus, slots);
    }
    m = slots[devfn];
    if (!m) {
        g_autofree char *name = g_strdup_printf("mmu500-pci-%u-%02x.%x",
                                                g_hash_table_size(
                                                    s->pci_masters),
                                                PCI_SLOT(devfn),
                                                PCI_FUNC(devfn));

        m = slots[devfn] = g_new0(MMU500Master, 1);
        m->bus = bus;
        m->devfn = devfn;
        m->tbu = s->pci_tbu;
        master_init(s, m, name);
        address_space_init(&m->as, MEMORY_REGION(&m->iommu), name);
    }
    return &m->as;
}

static const PCIIOMMUOps mmu500_pci_ops = {
    .get_address_space = mmu500_pci_as,
};

/* Where terminated transactions go that must not be seen to fail. */

static uint64_t razwi_read(void *opaque, hwaddr addr, unsigned size)
{
    return 0;
}

static void razwi_write(void *opaque, hwaddr addr, uint64_t val, unsigned size)
{
}

static const MemoryRegionOps razwi_ops = {
    .read = razwi_read,
    .write = razwi_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8 },
    .impl = { .min_access_size = 1, .max_access_size = 8 },
};

/* Device */

static void mmu500_irq_bh(void *opaque)
{
    mmu500_update_irqs(opaque);
}

static void mmu500_reset_exit(Object *obj, ResetType type)
{
    MMU500State *s = ARM_MMU500(obj);

    WITH_QEMU_LOCK_GUARD(&s->lock) {
        mmu500_stall_abort_all(s);
        mmu500_regs_reset(s);
        mmu500_tlb_flush(s);
        mmu500_tbu_reset(s);
        memset(&s->stats, 0, sizeof(s->stats));
    }
    mmu500_stall_run(s);
    mmu500_update_irqs(s);
}

static bool check_range(Error **errp, const char *name, uint64_t val,
                        uint64_t min, uint64_t max)
{
    if (val < min || val > max) {
        error_setg(errp, "arm-mmu500: %s=%" PRIu64 " is out of range: "
                   "give %" PRIu64 " to %" PRIu64, name, val, min, max);
        return false;
    }
    return true;
}

static bool check_size(Error **errp, const char *name, uint32_t bits)
{
    if (mmu500_size_to_bits(mmu500_bits_to_size(bits)) != bits) {
        error_setg(errp, "arm-mmu500: %s=%u is not an address size: "
                   "give 32, 36, 40, 42, 44 or 48", name, bits);
        return false;
    }
    return true;
}

static void mmu500_realize(DeviceState *dev, Error **errp)
{
    MMU500State *s = ARM_MMU500(dev);
    SysBusDevice *sbd = SYS_BUS_DEVICE(dev);
    unsigned i;

    if (!s->num_context_irqs) {
        s->num_context_irqs = s->num_cb;
    }
    if (!check_range(errp, "context-banks", s->num_cb, 1, MMU500_MAX_CB) ||
        !check_range(errp, "s2-context-banks", s->num_s2cb, 0, s->num_cb) ||
        !check_range(errp, "stream-match-groups", s->num_smrg, 1,
                     MMU500_MAX_SMRG) ||
        !check_range(errp, "tbus", s->num_tbu, 1, MMU500_MAX_TBU) ||
        !check_range(errp, "pci-tbu", s->pci_tbu, 0, s->num_tbu - 1) ||
        !check_range(errp, "context-irqs", s->num_context_irqs, 1,
                     s->num_cb) ||
        !check_range(errp, "utlb-entries", s->utlb_entries, 0, 1024) ||
        !check_range(errp, "mtlb-entries", s->mtlb_entries, 0, 1 * MiB) ||
        !check_range(errp, "walk-cache-entries", s->wc_entries, 0, 64 * KiB) ||
        !check_range(errp, "ipa-cache-entries", s->ipa_entries, 0,
                     64 * KiB) ||
        !check_range(errp, "tbu-outstanding", s->tbu_outstanding, 1, 65536) ||
        !check_range(errp, "tbu-queue-depth", s->tbu_queue_depth, 1,
                     MMU500_MAX_SLOTS) ||
        !check_range(errp, "ptw-parallelism", s->ptw_parallelism, 1,
                     MMU500_MAX_SLOTS) ||
        !check_size(errp, "ias", s->ias) || !check_size(errp, "oas", s->oas)) {
        return;
    }
    if (s->page_size != 4 * KiB && s->page_size != 64 * KiB) {
        error_setg(errp, "arm-mmu500: page-size=%u is not supported: "
                   "give 4096 or 65536", s->page_size);
        return;
    }
    if (!s->stage1 && !s->stage2) {
        error_setg(errp, "arm-mmu500: stage1=off,stage2=off translates "
                   "nothing: turn one on");
        return;
    }
    if (s->timing && !icount_enabled() && !qtest_enabled()) {
        error_setg(errp, "arm-mmu500: timing=on needs a virtual clock that "
                   "counts instructions: add -icount shift=0,sleep=off");
        return;
    }
    s->nested = s->nested && s->stage1 && s->stage2;

    memory_region_init_io(&s->iomem, OBJECT(s), &mmu500_mmio_ops, s,
                          TYPE_ARM_MMU500, mmu500_mmio_size(s));
    sysbus_init_mmio(sbd, &s->iomem);
    sysbus_init_irq(sbd, &s->irq_global);
    sysbus_init_irq(sbd, &s->irq_pmu);
    for (i = 0; i < s->num_context_irqs; i++) {
        sysbus_init_irq(sbd, &s->irq_context[i]);
    }
    memory_region_init_io(&s->razwi, OBJECT(s), &razwi_ops, s,
                          "mmu500-razwi", 4 * KiB);
    address_space_init(&s->razwi_as, &s->razwi, "mmu500-razwi");

    s->irq_bh = qemu_bh_new_guarded(mmu500_irq_bh, s,
                                    &dev->mem_reentrancy_guard);
    /*
     * A client's DMA may reach the registers through a translation, and a
     * resumed client may do so from within a register write: see
     * mmu500_stall_run().
     */
    s->iomem.disable_reentrancy_guard = true;
    mmu500_tbu_init(s);
    mmu500_tlb_init(s);
    mmu500_regs_reset(s);

    if (s->pci_bus) {
        pci_setup_iommu(s->pci_bus, &mmu500_pci_ops, s);
    }
}

static void mmu500_instance_init(Object *obj)
{
    MMU500State *s = ARM_MMU500(obj);
    unsigned i;

    qemu_mutex_init(&s->lock);
    QLIST_INIT(&s->masters);
    QTAILQ_INIT(&s->resume_queue);
    QTAILQ_INIT(&s->timed);
    for (i = 0; i < MMU500_MAX_TBU; i++) {
        QTAILQ_INIT(&s->tbu[i].input);
    }
    for (i = 0; i < MMU500_MAX_CB; i++) {
        QTAILQ_INIT(&s->cb[i].stalled);
    }
    s->pci_masters = g_hash_table_new(NULL, NULL);
}

static void mmu500_instance_finalize(Object *obj)
{
    MMU500State *s = ARM_MMU500(obj);

    if (s->tlb) {
        mmu500_tlb_free(s);
    }
    mmu500_tbu_free(s);
    if (s->irq_bh) {
        qemu_bh_delete(s->irq_bh);
    }
    g_hash_table_destroy(s->pci_masters);
    qemu_mutex_destroy(&s->lock);
}

static const Property mmu500_properties[] = {
    DEFINE_PROP_LINK("pci-bus", MMU500State, pci_bus, TYPE_PCI_BUS, PCIBus *),
    DEFINE_PROP_UINT32("context-banks", MMU500State, num_cb, 64),
    DEFINE_PROP_UINT32("s2-context-banks", MMU500State, num_s2cb, 0),
    DEFINE_PROP_UINT32("stream-match-groups", MMU500State, num_smrg, 128),
    DEFINE_PROP_UINT32("tbus", MMU500State, num_tbu, 1),
    DEFINE_PROP_UINT32("pci-tbu", MMU500State, pci_tbu, 0),
    /* 0: as many as banks */
    DEFINE_PROP_UINT32("context-irqs", MMU500State, num_context_irqs, 0),
    DEFINE_PROP_UINT32("page-size", MMU500State, page_size, 4 * KiB),
    DEFINE_PROP_UINT32("ias", MMU500State, ias, 48),
    DEFINE_PROP_UINT32("oas", MMU500State, oas, 48),
    DEFINE_PROP_BOOL("stage1", MMU500State, stage1, true),
    DEFINE_PROP_BOOL("stage2", MMU500State, stage2, true),
    DEFINE_PROP_BOOL("nested", MMU500State, nested, true),
    DEFINE_PROP_BOOL("aarch32", MMU500State, aarch32, true),
    DEFINE_PROP_BOOL("granule-16k", MMU500State, granule_16k, false),
    DEFINE_PROP_BOOL("exids", MMU500State, exids, false),
    DEFINE_PROP_BOOL("vmid16", MMU500State, vmid16, false),
    DEFINE_PROP_BOOL("atos", MMU500State, atos, false),
    DEFINE_PROP_BOOL("coherent-walk", MMU500State, coherent_walk, true),
    DEFINE_PROP_UINT32("utlb-entries", MMU500State, utlb_entries, 32),
    DEFINE_PROP_UINT32("mtlb-entries", MMU500State, mtlb_entries, 2048),
    DEFINE_PROP_UINT32("walk-cache-entries", MMU500State, wc_entries, 256),
    DEFINE_PROP_UINT32("ipa-cache-entries", MMU500State, ipa_entries, 256),
    DEFINE_PROP_SIZE("prefetch-size", MMU500State, prefetch_size, 4 * KiB),
    DEFINE_PROP_UINT32("tbu-outstanding", MMU500State, tbu_outstanding, 256),
    DEFINE_PROP_UINT32("tbu-queue-depth", MMU500State, tbu_queue_depth, 16),
    DEFINE_PROP_UINT32("ptw-parallelism", MMU500State, ptw_parallelism, 8),
    DEFINE_PROP_BOOL("timing", MMU500State, timing, false),
};

static void mmu500_class_init(ObjectClass *klass, const void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    ResettableClass *rc = RESETTABLE_CLASS(klass);

    dc->desc = "Arm CoreLink MMU-500 (SMMUv2)";
    dc->realize = mmu500_realize;
    dc->vmsd = &vmstate_mmu500;
    /* Wired by the machine; masters keep pointers to its regions. */
    dc->user_creatable = false;
    dc->hotpluggable = false;
    rc->phases.exit = mmu500_reset_exit;
    device_class_set_props(dc, mmu500_properties);
    mmu500_info_class_init(klass);

    mmu500_regpage_init(&mmu500_gr0);
    mmu500_regpage_init(&mmu500_gr1);
    mmu500_regpage_init(&mmu500_cbregs);
    mmu500_regpage_init(&mmu500_pmregs);
}

static void mmu500_mr_class_init(ObjectClass *klass, const void *data)
{
    IOMMUMemoryRegionClass *imrc = IOMMU_MEMORY_REGION_CLASS(klass);
    RecoverableDMAClass *rdc = RECOVERABLE_DMA_CLASS(klass);

    imrc->translate = mmu500_iommu_translate;
    imrc->notify_flag_changed = mmu500_notify_flag_changed;
    rdc->translate = mmu500_recoverable_translate;
    rdc->cancel = mmu500_recoverable_cancel;
}

static const TypeInfo mmu500_types[] = {
    {
        .name = TYPE_ARM_MMU500,
        .parent = TYPE_SYS_BUS_DEVICE,
        .instance_size = sizeof(MMU500State),
        .instance_init = mmu500_instance_init,
        .instance_finalize = mmu500_instance_finalize,
        .class_init = mmu500_class_init,
    }, {
        .name = TYPE_MMU500_MEMORY_REGION,
        .parent = TYPE_IOMMU_MEMORY_REGION,
        .class_init = mmu500_mr_class_init,
        .interfaces = (const InterfaceInfo[]) {
            { TYPE_RECOVERABLE_DMA },
            { },
        },
    },
};

DEFINE_TYPES(mmu500_types)
