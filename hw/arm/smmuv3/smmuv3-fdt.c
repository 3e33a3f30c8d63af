/*
 * Arm SMMUv3: what device tree and ACPI say of the optional features
 *
 * ATS is a property of the host bridge. That a function's transactions can
 * be stalled is a property of the function's node ("dma-can-stall"), so such
 * functions, and the root ports above them, get one. IORT knows the flag for
 * named components only, so under ACPI it is a device property (_DSD) of the
 * function in the DSDT, which Linux reads by the same name.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "hw/acpi/aml-build.h"
#include "hw/arm/fdt.h"
#include "hw/arm/smmuv3.h"
#include "hw/pci/pci_bridge.h"
#include "hw/pci/pci_bus.h"
#include "hw/pci/pcie_requester.h"
#include "system/device_tree.h"

typedef struct FdtWalk {
    void *fdt;
    const char *parent;        /* node of the bus that is walked */
    uint32_t parent_phandle;
} FdtWalk;

/* SMMUs that serve @bus; NULL: any */
typedef struct SmmuQuery {
    PCIBus *bus;
    bool ats, stall, pmcg;
    SMMUv3Httu httu;
} SmmuQuery;

static int query_smmu(Object *obj, void *opaque)
{
    SmmuQuery *q = opaque;
    SMMUv3State *s = (SMMUv3State *)object_dynamic_cast(obj, TYPE_ARM_SMMUV3);

    if (s && (!q->bus || ARM_SMMU(s)->primary_bus == q->bus)) {
        q->ats |= s->feat.ats;
        q->pmcg |= s->feat.pmcg;
        q->stall |= s->feat.stall_model == SMMUV3_STALL_OPTIONAL;
        q->httu = MIN(q->httu, s->feat.httu);
    }
    return 0;
}

bool smmuv3_any_ats(void)
{
    SmmuQuery q = {};

    object_child_foreach_recursive(object_get_root(), query_smmu, &q);
    return q.ats;
}

SMMUv3Httu smmuv3_any_httu(void)
{
    SmmuQuery q = { .httu = SMMUV3_HTTU_DIRTY };

    object_child_foreach_recursive(object_get_root(), query_smmu, &q);
    return q.httu;
}

bool smmuv3_any_pmcg(void)
{
    SmmuQuery q = { };

    object_child_foreach_recursive(object_get_root(), query_smmu, &q);
    return q.pmcg;
}

static bool can_stall(PCIDevice *d)
{
    return object_dynamic_cast(OBJECT(d), INTERFACE_PCIE_STALLABLE);
}

static void any_can_stall(PCIBus *bus, PCIDevice *d, void *opaque)
{
    *(bool *)opaque |= can_stall(d);
}

static void add_nodes(FdtWalk *w, PCIBus *bus);

/* Interrupt pins of what is behind a bridge with a node of its own */
static void add_bridge(FdtWalk *w, PCIDevice *d, const char *node)
{
    uint32_t map[4][9], phandle = qemu_fdt_alloc_phandle(w->fdt);
    FdtWalk below = {
        .fdt = w->fdt, .parent = node, .parent_phandle = phandle,
    };

    qemu_fdt_setprop_string(w->fdt, node, "device_type", "pci");
    qemu_fdt_setprop_cell(w->fdt, node, "#address-cells", 3);
    qemu_fdt_setprop_cell(w->fdt, node, "#size-cells", 2);
    qemu_fdt_setprop(w->fdt, node, "ranges", NULL, 0);
    qemu_fdt_setprop_cell(w->fdt, node, "#interrupt-cells", 1);
    qemu_fdt_setprop_cell(w->fdt, node, "phandle", phandle);
    for (int pin = 0; pin < 4; pin++) {
        uint32_t entry[9] = {
            0, 0, 0, pin + 1,               /* slot 0 of a PCIe link */
            w->parent_phandle,
            d->devfn << 8, 0, 0, pin + 1,
        };

        for (int i = 0; i < ARRAY_SIZE(entry); i++) {
            map[pin][i] = cpu_to_be32(entry[i]);
        }
    }
    qemu_fdt_setprop(w->fdt, node, "interrupt-map", map, sizeof(map));
    qemu_fdt_setprop_cells(w->fdt, node, "interrupt-map-mask", 0, 0, 0, 7);
    add_nodes(&below, pci_bridge_get_sec_bus(PCI_BRIDGE(d)));
}

/* Whether @d is one to tell of: it, or (@below) one below it can stall. */
static bool is_told(PCIDevice *d, bool *below)
{
    *below = false;
    if (object_dynamic_cast(OBJECT(d), TYPE_PCI_BRIDGE)) {
        pci_for_each_device_under_bus(pci_bridge_get_sec_bus(PCI_BRIDGE(d)),
                                      any_can_stall, below);
    }
    return *below || can_stall(d);
}

static void add_nodes(FdtWalk *w, PCIBus *bus)
{
    for (int devfn = 0; devfn < PCI_DEVFN_MAX; devfn++) {
        PCIDevice *d = bus->devices[devfn];
        g_autofree char *node = NULL;
        bool below;

        if (!d) {
            continue;
        }
        if (!is_told(d, &below)) {
            continue;
        }
        node = g_strdup_printf("%s/pci@%x,%x", w->parent, PCI_SLOT(devfn),
                               PCI_FUNC(devfn));
        qemu_fdt_add_subnode(w->fdt, node);
        qemu_fdt_setprop_cells(w->fdt, node, "reg", devfn << 8, 0, 0, 0, 0);
        if (below) {
            add_bridge(w, d, node);
        } else {
            qemu_fdt_setprop(w->fdt, node, "dma-can-stall", NULL, 0);
        }
    }
}

void smmuv3_fdt_pci_host(void *fdt, const char *node, PCIBus *bus)
{
    SmmuQuery q = { .bus = bus };

    object_child_foreach_recursive(object_get_root(), query_smmu, &q);
    if (q.ats) {
        qemu_fdt_setprop(fdt, node, "ats-supported", NULL, 0);
    }
    if (q.stall) {
        FdtWalk w = { .fdt = fdt, .parent = node };
        Error *none = NULL;
        const uint32_t *phandle = qemu_fdt_getprop(fdt, node, "phandle", NULL,
                                                   &none);

        if (phandle) {
            w.parent_phandle = be32_to_cpu(*phandle);
        } else {
            error_free(none);
            w.parent_phandle = qemu_fdt_alloc_phandle(fdt);
            qemu_fdt_setprop_cell(fdt, node, "phandle", w.parent_phandle);
        }
        add_nodes(&w, bus);
    }
}

static Aml *dsd_can_stall(void)
{
    Aml *prop = aml_package(2), *props = aml_package(1), *dsd = aml_package(2);

    aml_append(prop, aml_string("dma-can-stall"));
    aml_append(prop, aml_int(1));
    aml_append(props, prop);
    aml_append(dsd, aml_touuid("DAFFD814-6EBA-4D8C-8A91-BC9BBF4AA301"));
    aml_append(dsd, props);
    return aml_name_decl("_DSD", dsd);
}

/* @scope has the functions of @bus as build_append_pci_bus_devices() names */
static void add_dsds(Aml *scope, PCIBus *bus)
{
    for (int devfn = 0; devfn < PCI_DEVFN_MAX; devfn++) {
        PCIDevice *d = bus->devices[devfn];
        bool below;
        Aml *at;

        if (!d || DEVICE(d)->hotplugged) {
            continue;
        }
        if (!is_told(d, &below)) {
            continue;
        }
        at = aml_scope("S%.02X", devfn);
        if (below) {
            add_dsds(at, pci_bridge_get_sec_bus(PCI_BRIDGE(d)));
        } else {
            aml_append(at, dsd_can_stall());
        }
        aml_append(scope, at);
    }
}

void smmuv3_dsdt_pci_host(Aml *scope, PCIBus *bus)
{
    SmmuQuery q = { .bus = bus };

    object_child_foreach_recursive(object_get_root(), query_smmu, &q);
    if (q.stall) {
        add_dsds(scope, bus);
    }
}

void smmuv3_fdt_pmcg(void *fdt, Object *obj, hwaddr base, int spi)
{
    const char compat[] = "arm,smmu-v3-pmcg";
    g_autofree char *node = NULL;

    if (!ARM_SMMUV3(obj)->feat.pmcg) {
        return;
    }
    base += SMMUV3_PMCG_OFFSET;
    node = g_strdup_printf("/pmu@%" PRIx64, base);
    qemu_fdt_add_subnode(fdt, node);
    qemu_fdt_setprop(fdt, node, "compatible", compat, sizeof(compat));
    qemu_fdt_setprop_sized_cells(fdt, node, "reg", 2, base,
                                 2, SMMUV3_PMCG_SIZE);
    qemu_fdt_setprop_cells(fdt, node, "interrupts", GIC_FDT_IRQ_TYPE_SPI, spi,
                           GIC_FDT_IRQ_FLAGS_EDGE_LO_HI);
}

void smmuv3_fdt_msi(void *fdt, Object *obj, hwaddr base, uint32_t phandle,
                    bool its)
{
    SMMUv3Features *f = &ARM_SMMUV3(obj)->feat;
    g_autofree char *node = g_strdup_printf("/smmuv3@%" PRIx64, base);

    if (!f->msi || !phandle) {
        return;
    }
    if (its) {
        qemu_fdt_setprop_cells(fdt, node, "msi-parent", phandle,
                               f->msi_device);
    } else {
        qemu_fdt_setprop_cells(fdt, node, "msi-parent", phandle);
    }
}

void smmuv3_iort_pmcg(GArray *table, uint32_t id, uint32_t smmu, hwaddr base,
                      uint32_t gsiv)
{
    base += SMMUV3_PMCG_OFFSET;
    /* IORT E.d, 3.1.1.6 */
    build_append_int_noprefix(table, 5 /* PMCG */, 1);
    build_append_int_noprefix(table, 40, 2); /* length */
    build_append_int_noprefix(table, 2, 1);  /* revision */
    build_append_int_noprefix(table, id, 4);
    build_append_int_noprefix(table, 0, 4);  /* ID mappings */
    build_append_int_noprefix(table, 0, 4);
    build_append_int_noprefix(table, base, 8);
    build_append_int_noprefix(table, gsiv, 4);
    build_append_int_noprefix(table, smmu, 4);
    build_append_int_noprefix(table, base, 8); /* one page serves as both */
}
