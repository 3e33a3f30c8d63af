/*
 * mlx5 HCA: the PCI function
 *
 * The only file of the HCA that knows PCI. BAR0 holds the init segment, the
 * MSI-X table and the UAR pages; UAR n is at n * 4 KiB.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci_bus.h"
#include "hw/pci/pci_device.h"
#include "hw/pci/pcie.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "mlx5-caps.h"
#include "mlx5-cq.h"
#include "mlx5-devx.h"
#include "mlx5-dma.h"
#include "mlx5-doorbell.h"
#include "mlx5-eq.h"
#include "mlx5-fabric.h"
#include "mlx5-flow.h"
#include "mlx5-gobj.h"
#include "mlx5-hca.h"
#include "mlx5-health.h"
#include "mlx5-memic.h"
#include "mlx5-mcast.h"
#include "mlx5-mkey.h"
#include "mlx5-odp.h"
#include "mlx5-portal-pci.h"
#include "mlx5-qos.h"
#include "mlx5-qp.h"
#include "mlx5-res.h"
#include "mlx5-vport.h"
#include "mlx5-vsc.h"
#include "trace.h"

#define TYPE_MLX5_HCA "mlx5-hca"
OBJECT_DECLARE_SIMPLE_TYPE(Mlx5Pci, MLX5_HCA)

enum {
    BAR_SIZE = 32 * MiB,
    BAR_MSIX_TABLE = 0x4000,
    BAR_MSIX_PBA = 0x6000,
    BAR_UARS = 0x10000,           /* aligned for guests with 64 KiB pages */
    UAR_SIZE = 4 * KiB,
    BAR_MEMIC = BAR_SIZE - MLX5_MEMIC_BYTES,
    BAR_MEMIC_OPS = BAR_MEMIC - MLX5_MEMIC_OPS * MLX5_MEMIC_BYTES,

    CAP_PM = 0x40,
    CAP_EXP = 0x60,
    CAP_VSC = 0xc0,
    CAP_SERIAL = 0x100,
    CAP_ATS = 0x120,
    CAP_PRI = 0x130,
    CAP_ACS = 0x140,

    PRI_REQUESTS = 512,

    CLASS_INFINIBAND = 0x0207,
};

struct Mlx5Pci {
    PCIDevice parent_obj;

    Mlx5Hca hca;
    PCIeRequester requester;
    Mlx5Vsc vsc;
    MemoryRegion bar, iseg, uars;
    char *link;                   /* properties: link layer, ... */
    bool pri;                     /* ... capability of function 0, ... */
    uint8_t portals;              /* ... SVA portals */
    Mlx5PortalConf portal_conf;
};

static void mlx5_pci_raise_irq(Mlx5Hca *h, uint32_t vector)
{
    Mlx5Pci *s = container_of(h, Mlx5Pci, hca);

    if (msix_enabled(PCI_DEVICE(s))) {
        msix_notify(PCI_DEVICE(s), vector);
    }
}

/*
 * The init segment is big endian; the driver reads bytes of its health
 * buffer, too.
 */
static uint64_t mlx5_iseg_mmio_read(void *opaque, hwaddr off, unsigned size)
{
    Mlx5Pci *s = opaque;
    uint32_t dword = mlx5_iseg_read(&s->hca, off & ~3);

    return extract32(dword, (4 - (off & 3) - size) * 8, size * 8);
}

static void mlx5_iseg_mmio_write(void *opaque, hwaddr off, uint64_t value,
                                 unsigned size)
{
    Mlx5Pci *s = opaque;

    if (size != 4) {
        mlx5_guest_error(&s->hca, "%u-byte write to 0x%" HWADDR_PRIx
                         " of the init segment", size, off);
        return;
    }
    mlx5_iseg_write(&s->hca, off, value);
}

static const MemoryRegionOps mlx5_iseg_ops = {
    .read = mlx5_iseg_mmio_read,
    .write = mlx5_iseg_mmio_write,
    .endianness = DEVICE_BIG_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8 },
    .impl = { .min_access_size = 1, .max_access_size = 4 },
};

static uint64_t mlx5_uar_mmio_read(void *opaque, hwaddr off, unsigned size)
{
    /* Write-only on silicon. */
    return 0;
}

static void mlx5_uar_mmio_write(void *opaque, hwaddr off, uint64_t value,
                                unsigned size)
{
    Mlx5Pci *s = opaque;

    mlx5_uar_write(&s->hca, (BAR_UARS + off) / UAR_SIZE, off % UAR_SIZE,
                   value, size);
}

static const MemoryRegionOps mlx5_uar_ops = {
    .read = mlx5_uar_mmio_read,
    .write = mlx5_uar_mmio_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8 },
    .impl = { .min_access_size = 1, .max_access_size = 8 },
};

static bool mlx5_pci_check_properties(Mlx5Pci *s, Error **errp)
{
    Mlx5Hca *h = &s->hca;

    if (s->link && !strcmp(s->link, "eth")) {
        error_setg(errp, "link=eth is not available: the port is InfiniBand, "
                   "use link=ib");
        return false;
    }
    if (s->link && strcmp(s->link, "ib")) {
        error_setg(errp, "link=%s is not known, use link=ib", s->link);
        return false;
    }
    if (h->conf.odp && strcmp(h->conf.odp, "off") &&
        strcmp(h->conf.odp, "memory") && strcmp(h->conf.odp, "transport")) {
        error_setg(errp, "odp=%s is not known, use odp=off, odp=memory or "
                   "odp=transport", h->conf.odp);
        return false;
    }
    if (s->pri && !s->hca.conf.ats) {
        error_setg(errp, "pri=on needs ats=on: pages are asked for where a "
                   "translation request found none");
        return false;
    }
    if (s->portals > MLX5_MAX_PORTALS) {
        error_setg(errp, "sva-portals=%u is out of range, use sva-portals=0 "
                   "to sva-portals=%u", s->portals, MLX5_MAX_PORTALS);
        return false;
    }
    if (s->portals && PCI_FUNC(PCI_DEVICE(s)->devfn)) {
        error_setg(errp, "sva-portals=%u: the HCA must be function 0 of its "
                   "slot, the portals follow it", s->portals);
        return false;
    }
    if (h->num_vectors < 2 || h->num_vectors > MLX5_MAX_EQS) {
        error_setg(errp, "num-vectors=%u is out of range, use num-vectors=2 "
                   "to num-vectors=%u", h->num_vectors, MLX5_MAX_EQS);
        return false;
    }
    return true;
}

static bool mlx5_pci_init_capabilities(Mlx5Pci *s, Error **errp)
{
    PCIDevice *pdev = PCI_DEVICE(s);
    int i;

    if (pci_pm_init(pdev, CAP_PM, errp) < 0) {
        return false;
    }
    if (pci_add_capability(pdev, PCI_CAP_ID_VNDR, CAP_VSC, MLX5_VSC_SIZE,
                           errp) < 0) {
        return false;
    }
    pdev->config[CAP_VSC + PCI_CAP_FLAGS] = MLX5_VSC_SIZE;
    if (pci_bus_is_express(pci_get_bus(pdev))) {
        if (pcie_endpoint_cap_init(pdev, CAP_EXP) < 0) {
            error_setg(errp, "no room for the PCI Express capability");
            return false;
        }
        pcie_cap_flr_init(pdev);
    } else {
        error_setg(errp, "mlx5-hca needs a PCI Express bus: use bus=pcie.0 "
                   "or the bus of a pcie-root-port");
        return false;
    }
    if (msix_init(pdev, s->hca.num_vectors, &s->bar, 0, BAR_MSIX_TABLE,
                  &s->bar, 0, BAR_MSIX_PBA, 0, errp) < 0) {
        return false;
    }
    for (i = 0; i < s->hca.num_vectors; i++) {
        msix_vector_use(pdev, i);
    }
    return true;
}

static void mlx5_pci_init_ext_capabilities(Mlx5Pci *s)
{
    PCIDevice *pdev = PCI_DEVICE(s);
    const PCIeRequesterCaps caps = {
        .ats = s->hca.conf.ats ? CAP_ATS : 0,
        .pri = s->pri ? CAP_PRI : 0,
        .page_requests = PRI_REQUESTS,
        .acs = s->portals ? CAP_ACS : 0, /* a group for each function */
    };

    pcie_dev_ser_num_init(pdev, CAP_SERIAL, s->hca.port.sys_guid);
    pcie_requester_init_caps(pdev, &caps);
}

static void mlx5_pci_init_bar(Mlx5Pci *s)
{
    memory_region_init(&s->bar, OBJECT(s), "mlx5-bar0", BAR_SIZE);
    memory_region_init_io(&s->iseg, OBJECT(s), &mlx5_iseg_ops, s,
                          "mlx5-init-segment", MLX5_ISEG_SIZE);
    memory_region_init_io(&s->uars, OBJECT(s), &mlx5_uar_ops, s, "mlx5-uars",
                          BAR_MEMIC_OPS - BAR_UARS);
    memory_region_add_subregion(&s->bar, 0, &s->iseg);
    memory_region_add_subregion(&s->bar, BAR_UARS, &s->uars);
    pci_register_bar(PCI_DEVICE(s), 0, PCI_BASE_ADDRESS_SPACE_MEMORY |
                     PCI_BASE_ADDRESS_MEM_TYPE_64 |
                     PCI_BASE_ADDRESS_MEM_PREFETCH, &s->bar);
}

/* Another port of the same card: an HCA in the same slot. */
static const Mlx5Hca *mlx5_pci_sibling(PCIDevice *pdev)
{
    for (unsigned i = 0; i < PCI_FUNC_MAX; i++) {
        uint8_t devfn = PCI_DEVFN(PCI_SLOT(pdev->devfn), i);
        PCIDevice *other = pci_get_bus(pdev)->devices[devfn];

        if (other && other != pdev &&
            object_dynamic_cast(OBJECT(other), TYPE_MLX5_HCA) &&
            MLX5_HCA(other)->hca.fabric) {
            return &MLX5_HCA(other)->hca;
        }
    }
    return NULL;
}

static void mlx5_pci_exit(PCIDevice *pdev);
static DeviceRealize mlx5_pci_parent_realize;

static void mlx5_pci_realize(PCIDevice *pdev, Error **errp)
{
    Mlx5Pci *s = MLX5_HCA(pdev);
    const Mlx5Hca *sibling = mlx5_pci_sibling(pdev);
    Mlx5Hca *h = &s->hca;

    if (!mlx5_pci_check_properties(s, errp)) {
        return;
    }
    mlx5_pci_init_bar(s);
    if (!mlx5_pci_init_capabilities(s, errp)) {
        return;
    }
    h->dev = DEVICE(pdev);
    h->name = DEVICE(pdev)->id ?: TYPE_MLX5_HCA;
    h->guard = &DEVICE(pdev)->mem_reentrancy_guard;
    h->raise_irq = mlx5_pci_raise_irq;
    h->function = PCI_FUNC(pdev->devfn);
    h->uar_first = BAR_UARS / UAR_SIZE;
    h->uar_limit = BAR_MEMIC_OPS / UAR_SIZE;

    if (!mlx5_memic_init(h, &s->bar, BAR_MEMIC, errp)) {
        return;
    }

    mlx5_fabric_join(h);
    if (sibling) {
        h->port.sys_guid = sibling->port.sys_guid;
    }
    mlx5_pci_init_ext_capabilities(s);
    pcie_requester_init(&s->requester, pdev);
    mlx5_dma_init(h, &s->requester);
    mlx5_hca_init(h);
    mlx5_caps_init(h);
    mlx5_res_init(h);
    mlx5_eq_init(h);
    mlx5_mkey_init(h);
    mlx5_odp_init(h);
    mlx5_cq_init(h);
    mlx5_qp_init(h);
    mlx5_devx_init(h);
    mlx5_mcast_init(h);
    mlx5_flow_init(h);
    mlx5_gobj_init(h);
    mlx5_qos_init(h);
    mlx5_cmd_init(h);
    mlx5_health_init(h);
    mlx5_tables_add_property(h);
    for (unsigned i = 1; i <= s->portals; i++) {
        if (!mlx5_portal_create(h, pdev, i, &s->portal_conf, errp)) {
            mlx5_pci_exit(pdev);
            return;
        }
    }
}

/* The shell's realize, before PCI looks at the device */
static void mlx5_pci_dc_realize(DeviceState *dev, Error **errp)
{
    if (MLX5_HCA(dev)->portals) {
        PCI_DEVICE(dev)->cap_present |= QEMU_PCI_CAP_MULTIFUNCTION;
    }
    mlx5_pci_parent_realize(dev, errp);
}

static void mlx5_pci_exit(PCIDevice *pdev)
{
    Mlx5Pci *s = MLX5_HCA(pdev);
    Mlx5Hca *h = &s->hca;

    for (unsigned i = 1; i <= s->portals; i++) {
        g_autofree char *name = mlx5_portal_child(i);
        Object *portal = object_resolve_path_component(OBJECT(s), name);

        if (portal) {             /* an unplug may have taken it already */
            object_unparent(portal);
        }
    }
    mlx5_tables_del_property(h);
    mlx5_health_fini(h);
    mlx5_cmd_fini(h);
    mlx5_hca_destroy_all(h);
    mlx5_qp_fini(h);
    mlx5_cq_fini(h);
    mlx5_odp_fini(h);
    mlx5_mkey_fini(h);
    mlx5_memic_fini(h);
    mlx5_eq_fini(h);
    mlx5_qos_fini(h);
    mlx5_gobj_fini(h);
    mlx5_flow_fini(h);
    mlx5_mcast_fini(h);
    mlx5_devx_fini(h);
    mlx5_res_fini(h);
    mlx5_caps_fini(h);
    mlx5_hca_fini(h);
    mlx5_fabric_leave(h);
    mlx5_dma_fini(h);
    pcie_requester_exit(&s->requester);
    msix_uninit(pdev, &s->bar, &s->bar);
    pcie_cap_exit(pdev);
}

/* Bus reset, FLR, power-up. */
static void mlx5_pci_reset_hold(Object *obj, ResetType type)
{
    Mlx5Pci *s = MLX5_HCA(obj);

    mlx5_hca_reset(&s->hca);
    pcie_requester_reset(&s->requester);
    memset(&s->vsc, 0, sizeof(s->vsc));
}

/* The gateway's registers are dwords. */
static bool mlx5_pci_is_vsc(uint32_t addr, int len)
{
    return len == 4 && !(addr & 3) && addr > CAP_VSC &&
           addr < CAP_VSC + MLX5_VSC_SIZE;
}

static uint32_t mlx5_pci_read_config(PCIDevice *pdev, uint32_t addr, int len)
{
    if (mlx5_pci_is_vsc(addr, len)) {
        return mlx5_vsc_read(&MLX5_HCA(pdev)->vsc, addr - CAP_VSC);
    }
    return pci_default_read_config(pdev, addr, len);
}

static void mlx5_pci_write_config(PCIDevice *pdev, uint32_t addr,
                                  uint32_t value, int len)
{
    if (mlx5_pci_is_vsc(addr, len)) {
        mlx5_vsc_write(&MLX5_HCA(pdev)->vsc, addr - CAP_VSC, value);
        return;
    }
    pci_default_write_config(pdev, addr, value, len);
    pcie_cap_flr_write_config(pdev, addr, value, len);
    pcie_requester_config_write(&MLX5_HCA(pdev)->requester, addr, len);
}

static int mlx5_pci_post_load(void *opaque, int version_id)
{
    Mlx5Pci *s = opaque;

    /* What the guest had enabled */
    pcie_requester_config_write(&s->requester, 0, 0);
    return 0;
}

static const Property mlx5_pci_properties[] = {
    DEFINE_PROP_STRING("link", Mlx5Pci, link),
    DEFINE_PROP_STRING("fabric", Mlx5Pci, hca.conf.fabric),
    DEFINE_PROP_UINT64("guid", Mlx5Pci, hca.conf.guid, 0),
    DEFINE_PROP_STRING("odp", Mlx5Pci, hca.conf.odp),
    DEFINE_PROP_SIZE("xlt-limit", Mlx5Pci, hca.conf.xlt_limit, 1 * GiB),
    DEFINE_PROP_UINT32("num-vectors", Mlx5Pci, hca.num_vectors, 16),
    DEFINE_PROP_BOOL("ats", Mlx5Pci, hca.conf.ats, false),
    DEFINE_PROP_BOOL("pri", Mlx5Pci, pri, false),
    DEFINE_PROP_UINT32("max-faults-per-key", Mlx5Pci,
                       hca.conf.max_faults_per_key, 0),
    DEFINE_PROP_UINT32("max-faults-per-pasid", Mlx5Pci,
                       hca.conf.max_faults_per_pasid, 0),
    DEFINE_PROP_UINT32("fault-retries", Mlx5Pci, hca.conf.fault_retries, 3),
    DEFINE_PROP_UINT8("sva-portals", Mlx5Pci, portals, 0),
    DEFINE_PROP_BOOL("x-portal-no-ats", Mlx5Pci, portal_conf.no_ats, false),
    DEFINE_PROP_BOOL("x-portal-no-pasid", Mlx5Pci, portal_conf.no_pasid,
                     false),
};

static const VMStateDescription vmstate_mlx5_pci = {
    .name = TYPE_MLX5_HCA,
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = mlx5_pci_post_load,
    /* Objects come after what they name. */
    .fields = (const VMStateField[]) {
        VMSTATE_PCI_DEVICE(parent_obj, Mlx5Pci),
        VMSTATE_STRUCT(requester, Mlx5Pci, 1, vmstate_pcie_requester,
                       PCIeRequester),
        VMSTATE_MSIX(parent_obj, Mlx5Pci),
        VMSTATE_STRUCT(vsc, Mlx5Pci, 1, vmstate_mlx5_vsc, Mlx5Vsc),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_dma, Mlx5Hca),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_hca_state, Mlx5Hca),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_port, Mlx5Hca),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_caps, Mlx5Hca),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_resources, Mlx5Hca),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_devx, Mlx5Hca),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_eqs, Mlx5Hca),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_memic, Mlx5Hca),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_mkeys, Mlx5Hca),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_odp, Mlx5Hca),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_cqs, Mlx5Hca),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_srqs, Mlx5Hca),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_qps, Mlx5Hca),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_mcgs, Mlx5Hca),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_flow, Mlx5Hca),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_gobjs, Mlx5Hca),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_qos, Mlx5Hca),
        VMSTATE_STRUCT(hca, Mlx5Pci, 1, vmstate_mlx5_cmd, Mlx5Hca),
        VMSTATE_END_OF_LIST()
    },
};

static void mlx5_pci_class_init(ObjectClass *klass, const void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);
    ResettableClass *rc = RESETTABLE_CLASS(klass);

    pc->realize = mlx5_pci_realize;
    pc->exit = mlx5_pci_exit;
    pc->config_read = mlx5_pci_read_config;
    pc->config_write = mlx5_pci_write_config;
    pc->vendor_id = MLX5_VENDOR_ID;
    pc->device_id = MLX5_DEVICE_ID;
    pc->subsystem_vendor_id = MLX5_VENDOR_ID;
    pc->class_id = CLASS_INFINIBAND;
    rc->phases.hold = mlx5_pci_reset_hold;
    device_class_set_parent_realize(dc, mlx5_pci_dc_realize,
                                    &mlx5_pci_parent_realize);
    dc->desc = "PCIe RDMA host channel adapter for the mlx5 driver";
    dc->vmsd = &vmstate_mlx5_pci;
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    device_class_set_props(dc, mlx5_pci_properties);
}

static const TypeInfo mlx5_pci_types[] = {
    {
        .name = TYPE_MLX5_HCA,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(Mlx5Pci),
        .class_init = mlx5_pci_class_init,
        .interfaces = (const InterfaceInfo[]) {
            { INTERFACE_PCIE_DEVICE },
            { }
        },
    },
};

DEFINE_TYPES(mlx5_pci_types)
