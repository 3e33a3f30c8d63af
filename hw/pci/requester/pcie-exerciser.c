/*
 * PCIe exerciser endpoint: registers and the device
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qapi/error.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci_bus.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "system/runstate.h"
#include "pcie-exerciser.h"

#define EXERCISER_VENDOR_ID 0x13b5
#define EXERCISER_DEVICE_ID 0xed01

static void unmapped(IOMMUNotifier *n, IOMMUTLBEntry *entry)
{
    PCIeExerciser *e = container_of(n, PCIeExerciser, unmap);

    e->unmap_count++;
    e->unmap_iova = entry->iova;
}

/* An IOMMU notifier as vhost has: of what it has been given and may keep */
static void listen_to_unmaps(PCIeExerciser *e, bool on)
{
    IOMMUMemoryRegion *mr = e->r.mr;

    if (on == e->unmap_registered) {
        return;
    }
    if (!on) {
        memory_region_unregister_iommu_notifier(MEMORY_REGION(mr), &e->unmap);
        e->unmap_registered = false;
    } else if (mr) {
        iommu_notifier_init(&e->unmap, unmapped, IOMMU_NOTIFIER_UNMAP, 0,
                            HWADDR_MAX, 0);
        e->unmap_registered = !memory_region_register_iommu_notifier(
            MEMORY_REGION(mr), &e->unmap, NULL);
    }
}

static void x_ctl_write(PCIeExerciser *e, uint32_t val)
{
    bool hold = FIELD_EX32(val, X_CTL, INV_HOLD);

    e->x_ctl = val & 0x77;
    e->r.fail_inv = FIELD_EX32(val, X_CTL, INV_FAIL);
    listen_to_unmaps(e, FIELD_EX32(val, X_CTL, NOTIFIER));
    if (hold && !e->inv_blocked) {
        e->inv_blocked = true;
        pcie_requester_block_inv(&e->r);
    } else if (!hold && e->inv_blocked) {
        e->inv_blocked = false;
        pcie_requester_unblock_inv(&e->r);
    }
}

static void vdm_write(PCIeExerciser *e, uint32_t val)
{
    e->vdm_ctl = val & 0xf00;
    if (FIELD_EX32(val, VDM_CTL, TRIG)) {
        /* nobody processes vendor messages here: the NotProcessed codes */
        e->vdm_ctl = FIELD_DP32(e->vdm_ctl, VDM_CTL, RESPONSE,
                                FIELD_EX32(val, VDM_CTL, TYPE) == 2 ? 3 : 0);
    }
}

static void trace_add(PCIeExerciser *e, bool cfg, bool rd, uint64_t addr,
                      uint64_t data, unsigned size)
{
    uint32_t *t;

    if (!(e->trace_ctl & 1) || e->trace_n >= TRACE_ENTRIES) {
        return;
    }
    t = e->trace[e->trace_n++];
    t[0] = (1u << (16 + ctz32(size))) | (cfg ? 4 : 0) | (rd ? 2 : 0);
    t[1] = addr;
    t[2] = addr >> 32;
    t[3] = data;
    t[4] = data >> 32;
}

static uint32_t trace_read(PCIeExerciser *e)
{
    uint32_t i = e->trace_rd;

    if (i >= e->trace_n * TRACE_WORDS) {
        return UINT32_MAX;
    }
    e->trace_rd++;
    return e->trace[i / TRACE_WORDS][i % TRACE_WORDS];
}

static uint64_t reg_get(PCIeExerciser *e, hwaddr addr)
{
    ExChannel *c = &e->ch[0];

    if (addr >= TIME_BASE) {
        addr -= TIME_BASE;
        return addr / 4 < NUM_CHANNELS ? e->ch[addr / 4].took : 0;
    }
    if (addr >= CHANNEL_BASE) {
        addr -= CHANNEL_BASE;
        return addr / CHANNEL_SIZE < NUM_CHANNELS ?
               exerciser_channel_read(&e->ch[addr / CHANNEL_SIZE],
                                      addr % CHANNEL_SIZE)
               : 0;
    }
    switch (addr) {
    case A_MSI_CTL:
        return e->msi_ctl;
    case A_INTX_CTL:
        return e->intx_ctl;
    case A_DMA_CTL:
        return c->ctl;
    case A_DMA_OFFSET:
        return c->offset;
    case A_BUS_ADDR_LO:
        return c->addr;
    case A_BUS_ADDR_HI:
        return c->addr >> 32;
    case A_DMA_LEN:
        return c->len;
    case A_DMA_STATUS:
        return c->status;
    case A_PASID_VAL:
        return c->pasid;
    case A_ATS_CTL:
        return e->ats_ctl;
    case A_ATS_ADDR_LO:
        return e->ats_addr;
    case A_ATS_ADDR_HI:
        return e->ats_addr >> 32;
    case A_ATS_SIZE_LO:
        return e->ats_size;
    case A_ATS_SIZE_HI:
        return e->ats_size >> 32;
    case A_ATS_PERM:
        return e->ats_perm;
    case A_RID_CTL:
        return e->rid_ctl;
    case A_TRACE_DATA:
        return trace_read(e);
    case A_TRACE_CTL:
        return e->trace_ctl;
    case A_VDM_CTL:
        return e->vdm_ctl;
    case A_X_ID:
        return X_ID_VALUE;
    case A_X_CTL:
        return e->x_ctl;
    case A_X_INV_COUNT:
        return e->inv_count;
    case A_X_ATS_RESULT:
        return (uint32_t)e->ats_result;
    case A_X_PPR_RESULT:
        return (uint32_t)e->ppr_result;
    case A_X_PRG_COUNT:
        return e->prg_count;
    case A_X_PRG_LAST:
        return e->prg_last;
    case A_X_N_STALL:
        return (uint32_t)e->r.n_stall;
    case A_X_N_PAGE_REQ:
        return (uint32_t)e->r.n_page_req;
    case A_X_N_ATC_HIT:
        return (uint32_t)e->r.n_atc_hit;
    case A_X_N_ATC_MISS:
        return (uint32_t)e->r.n_atc_miss;
    case A_X_N_UNMAP:
        return e->unmap_count;
    case A_X_UNMAP_LO:
        return e->unmap_iova;
    case A_X_UNMAP_HI:
        return e->unmap_iova >> 32;
    default:
        qemu_log_mask(LOG_GUEST_ERROR, "%s: no register at 0x%"HWADDR_PRIx"\n",
                      TYPE_PCIE_EXERCISER, addr);
        return 0;
    }
}

static void reg_set(PCIeExerciser *e, hwaddr addr, uint32_t val)
{
    static const struct {
        uint8_t from, to;
    } channel0[] = {
        { A_DMA_CTL, A_CH_CTL }, { A_DMA_OFFSET, A_CH_OFFSET },
        { A_BUS_ADDR_LO, A_CH_ADDR_LO }, { A_BUS_ADDR_HI, A_CH_ADDR_HI },
        { A_DMA_LEN, A_CH_LEN }, { A_DMA_STATUS, A_CH_STATUS },
        { A_PASID_VAL, A_CH_PASID },
    };

    if (addr >= CHANNEL_BASE) {
        addr -= CHANNEL_BASE;
        if (addr / CHANNEL_SIZE < NUM_CHANNELS) {
            exerciser_channel_write(&e->ch[addr / CHANNEL_SIZE],
                                    addr % CHANNEL_SIZE, val);
        }
        return;
    }
    for (int i = 0; i < ARRAY_SIZE(channel0); i++) {
        if (addr == channel0[i].from) {
            exerciser_channel_write(&e->ch[0], channel0[i].to,
                                    addr == A_DMA_CTL ? val & 0xfff : val);
            return;
        }
    }
    switch (addr) {
    case A_MSI_CTL:
        e->msi_ctl = FIELD_EX32(val, MSI_CTL, ID);
        if (FIELD_EX32(val, MSI_CTL, TRIG) && e->msi_ctl < NUM_VECTORS) {
            msix_notify(&e->parent_obj, e->msi_ctl);
        }
        break;
    case A_INTX_CTL:
        e->intx_ctl = val & 1;
        pci_set_irq(&e->parent_obj, e->intx_ctl);
        break;
    case A_ATS_CTL:
        e->ats_ctl = (e->ats_ctl & ~0x1e) | (val & 0x1e);
        if (FIELD_EX32(val, ATS_CTL, CLEAR)) {
            exerciser_ats_clear(e);
            e->ats_ctl = FIELD_DP32(e->ats_ctl, ATS_CTL, INVALIDATED, 0);
        }
        if (FIELD_EX32(val, ATS_CTL, TRIG)) {
            exerciser_ats_request(e);
        }
        break;
    case A_RID_CTL:
        e->rid_ctl = val & 0x8000ffff;
        break;
    case A_TRACE_CTL:
        if ((val & 1) && !(e->trace_ctl & 1)) {
            e->trace_n = 0;
            e->trace_rd = 0;
        }
        e->trace_ctl = val & 1;
        break;
    case A_VDM_CTL:
        vdm_write(e, val);
        break;
    case A_X_CTL:
        x_ctl_write(e, val);
        break;
    case A_X_PPR:
        exerciser_page_request(e, val);
        break;
    default:
        qemu_log_mask(LOG_GUEST_ERROR, "%s: no register at 0x%"HWADDR_PRIx"\n",
                      TYPE_PCIE_EXERCISER, addr);
        break;
    }
}

static uint64_t exerciser_read(void *opaque, hwaddr addr, unsigned size)
{
    PCIeExerciser *e = opaque;
    uint64_t val = reg_get(e, addr);

    if (addr != A_TRACE_DATA) {
        trace_add(e, false, true, pci_get_bar_addr(&e->parent_obj, 0) + addr,
                  val, size);
    }
    return val;
}

static void exerciser_write(void *opaque, hwaddr addr, uint64_t val,
                            unsigned size)
{
    PCIeExerciser *e = opaque;

    reg_set(e, addr, val);
    if (addr != A_TRACE_CTL) {
        trace_add(e, false, false, pci_get_bar_addr(&e->parent_obj, 0) + addr,
                  val, size);
    }
}

static const MemoryRegionOps exerciser_ops = {
    .read = exerciser_read,
    .write = exerciser_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 8 },
    .impl = { .min_access_size = 4, .max_access_size = 4 },
};

static uint32_t exerciser_config_read(PCIDevice *d, uint32_t addr, int len)
{
    uint32_t val = pci_default_read_config(d, addr, len);

    trace_add(PCIE_EXERCISER(d), true, true, addr, val, len);
    return val;
}

static void exerciser_config_write(PCIDevice *d, uint32_t addr, uint32_t val,
                                   int len)
{
    PCIeExerciser *e = PCIE_EXERCISER(d);

    pci_default_write_config(d, addr, val, len);
    pcie_cap_flr_write_config(d, addr, val, len);
    pcie_requester_config_write(&e->r, addr, len);
    trace_add(e, true, false, addr, val, len);
}

static void exerciser_reset_hold(Object *obj, ResetType type)
{
    PCIeExerciser *e = PCIE_EXERCISER(obj);

    pcie_requester_reset(&e->r);
    for (int i = 0; i < NUM_CHANNELS; i++) {
        ExChannel *c = &e->ch[i];

        c->addr = c->done = 0;
        c->offset = c->len = c->ctl = c->status = c->pasid = c->waits = 0;
    }
    x_ctl_write(e, 0);
    e->msi_ctl = e->intx_ctl = e->ats_ctl = e->rid_ctl = e->vdm_ctl = 0;
    e->trace_ctl = e->trace_n = e->trace_rd = 0;
    e->inv_count = e->prg_count = e->prg_last = 0;
    e->unmap_count = e->unmap_iova = 0;
    e->ats_result = e->ppr_result = 0;
    exerciser_ats_clear(e);
}

/* After migration, transfers that were under way are issued again. */
static void exerciser_restart(void *opaque, bool running, RunState state)
{
    PCIeExerciser *e = opaque;

    for (int i = 0; running && i < NUM_CHANNELS; i++) {
        ExChannel *c = &e->ch[i];

        if (FIELD_EX32(c->ctl, DMA_CTL, TRIG) && !c->req.state) {
            exerciser_channel_start(c);
        }
    }
}

static void exerciser_realize(PCIDevice *d, Error **errp)
{
    PCIeExerciser *e = PCIE_EXERCISER(d);
    uint16_t cap = PCI_CONFIG_SPACE_SIZE;
    PCIeRequesterCaps caps = {
        .pasid_bits = e->pasid_bits, .exec = true, .priv = true,
        .page_requests = 512, .prg_response_pasid = true,
    };

    if (e->pasid_bits > 20) {
        error_setg(errp, "pasid-bits=%u: a PASID has at most 20 bits",
                   e->pasid_bits);
        return;
    }
    if (!pci_bus_is_express(pci_get_bus(d))) {
        error_setg(errp, "%s is a PCI Express device: put it on a PCIe bus",
                   TYPE_PCIE_EXERCISER);
        return;
    }
    pci_config_set_interrupt_pin(d->config, 1);
    if (pcie_endpoint_cap_init(d, 0x80) < 0) {
        error_setg(errp, "no room for the PCI Express capability");
        return;
    }
    pcie_cap_flr_init(d);
    if (e->pasid_bits) {
        caps.pasid = cap;
        cap += PCI_EXT_CAP_PASID_SIZEOF;
    }
    if (e->ats) {
        caps.ats = cap;
        cap += PCI_EXT_CAP_ATS_SIZEOF;
    }
    if (e->pri_cap) {
        caps.pri = cap;
    }
    pcie_requester_init_caps(d, &caps);

    memory_region_init_io(&e->regs, OBJECT(e), &exerciser_ops, e,
                          "pcie-exerciser-regs", REG_BAR_SIZE);
    pci_register_bar(d, 0, PCI_BASE_ADDRESS_SPACE_MEMORY, &e->regs);
    if (!memory_region_init_ram(&e->mem, OBJECT(e), "pcie-exerciser-mem",
                                MEM_BAR_SIZE, errp)) {
        return;
    }
    pci_register_bar(d, 1, PCI_BASE_ADDRESS_SPACE_MEMORY, &e->mem);
    e->buf = memory_region_get_ram_ptr(&e->mem);
    if (msix_init_exclusive_bar(d, NUM_VECTORS, 2, errp)) {
        return;
    }
    for (int i = 0; i < NUM_VECTORS; i++) {
        msix_vector_use(d, i);
    }

    for (int i = 0; i < NUM_CHANNELS; i++) {
        e->ch[i].e = e;
    }
    e->r.invalidated = exerciser_invalidated;
    pcie_requester_init(&e->r, d);
    e->vm_state = qdev_add_vm_change_state_handler(DEVICE(d),
                                                   exerciser_restart, NULL, e);
}

static void exerciser_exit(PCIDevice *d)
{
    PCIeExerciser *e = PCIE_EXERCISER(d);

    qemu_del_vm_change_state_handler(e->vm_state);
    listen_to_unmaps(e, false);
    pcie_requester_exit(&e->r);
    if (e->pri_registered) {
        pci_pri_unregister_notifier(d, PCI_NO_PASID);
    }
    if (e->pri_pasid_registered) {
        pci_pri_unregister_notifier(d, e->pri_pasid_num);
    }
    msix_uninit_exclusive_bar(d);
}

static int exerciser_post_load(void *opaque, int version_id)
{
    PCIeExerciser *e = opaque;
    uint32_t x_ctl = e->x_ctl;

    e->inv_blocked = false;
    x_ctl_write(e, x_ctl);
    pcie_requester_config_write(&e->r, 0, 0);
    for (int i = 0; i < NUM_CHANNELS; i++) {
        ExChannel *c = &e->ch[i];

        if (c->offset > MEM_BAR_SIZE || c->len > MEM_BAR_SIZE - c->offset ||
            c->done > c->len) {
            return -EINVAL;
        }
    }
    return 0;
}

static const VMStateDescription vmstate_channel = {
    .name = "pcie-exerciser/channel",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(addr, ExChannel),
        VMSTATE_UINT64(done, ExChannel),
        VMSTATE_UINT32(offset, ExChannel),
        VMSTATE_UINT32(len, ExChannel),
        VMSTATE_UINT32(ctl, ExChannel),
        VMSTATE_UINT32(status, ExChannel),
        VMSTATE_UINT32(pasid, ExChannel),
        VMSTATE_UINT32(waits, ExChannel),
        VMSTATE_INT64(started, ExChannel),
        VMSTATE_UINT32(took, ExChannel),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_exerciser = {
    .name = TYPE_PCIE_EXERCISER,
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = exerciser_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_PCI_DEVICE(parent_obj, PCIeExerciser),
        VMSTATE_STRUCT(r, PCIeExerciser, 1, vmstate_pcie_requester,
                       PCIeRequester),
        VMSTATE_MSIX(parent_obj, PCIeExerciser),
        VMSTATE_STRUCT_ARRAY(ch, PCIeExerciser, NUM_CHANNELS, 1,
                             vmstate_channel, ExChannel),
        VMSTATE_UINT32(msi_ctl, PCIeExerciser),
        VMSTATE_UINT32(intx_ctl, PCIeExerciser),
        VMSTATE_UINT32(ats_ctl, PCIeExerciser),
        VMSTATE_UINT32(ats_perm, PCIeExerciser),
        VMSTATE_UINT32(rid_ctl, PCIeExerciser),
        VMSTATE_UINT32(vdm_ctl, PCIeExerciser),
        VMSTATE_UINT32(x_ctl, PCIeExerciser),
        VMSTATE_UINT64(ats_addr, PCIeExerciser),
        VMSTATE_UINT64(ats_size, PCIeExerciser),
        VMSTATE_UINT64(atc_in, PCIeExerciser),
        VMSTATE_UINT32(atc_pasid, PCIeExerciser),
        VMSTATE_BOOL(atc_pasid_valid, PCIeExerciser),
        VMSTATE_UINT32(inv_count, PCIeExerciser),
        VMSTATE_UINT32(prg_count, PCIeExerciser),
        VMSTATE_UINT32(prg_last, PCIeExerciser),
        VMSTATE_END_OF_LIST()
    }
};

static const Property exerciser_properties[] = {
    DEFINE_PROP_UINT8("pasid-bits", PCIeExerciser, pasid_bits, 20),
    DEFINE_PROP_BOOL("ats", PCIeExerciser, ats, true),
    DEFINE_PROP_BOOL("pri", PCIeExerciser, pri_cap, true),
};

static void exerciser_instance_init(Object *obj)
{
    PCIeRequester *r = &PCIE_EXERCISER(obj)->r;

    PCI_DEVICE(obj)->cap_present |= QEMU_PCI_CAP_EXPRESS;
    object_property_add_uint64_ptr(obj, "stalls", &r->n_stall,
                                   OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(obj, "page-requests", &r->n_page_req,
                                   OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(obj, "atc-hits", &r->n_atc_hit,
                                   OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(obj, "atc-misses", &r->n_atc_miss,
                                   OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(obj, "atc-invalidations", &r->n_atc_inv,
                                   OBJ_PROP_FLAG_READ);
}

static void exerciser_class_init(ObjectClass *klass, const void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);
    ResettableClass *rc = RESETTABLE_CLASS(klass);

    pc->realize = exerciser_realize;
    pc->exit = exerciser_exit;
    pc->vendor_id = EXERCISER_VENDOR_ID;
    pc->device_id = EXERCISER_DEVICE_ID;
    pc->class_id = PCI_CLASS_OTHERS;
    pc->config_read = exerciser_config_read;
    pc->config_write = exerciser_config_write;
    rc->phases.hold = exerciser_reset_hold;
    dc->desc = "PCIe exerciser (ATS, PRI, PASID test endpoint)";
    dc->vmsd = &vmstate_exerciser;
    device_class_set_props(dc, exerciser_properties);
    set_bit(DEVICE_CATEGORY_MISC, dc->categories);
}

static const TypeInfo exerciser_info = {
    .name = TYPE_PCIE_EXERCISER,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(PCIeExerciser),
    .instance_init = exerciser_instance_init,
    .class_init = exerciser_class_init,
    .interfaces = (const InterfaceInfo[]) {
        { INTERFACE_PCIE_DEVICE },
        { INTERFACE_PCIE_STALLABLE },
        { }
    },
};

static void exerciser_register_types(void)
{
    type_register_static(&exerciser_info);
}

type_init(exerciser_register_types)
