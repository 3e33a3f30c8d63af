/*
 * QTest: an HCA with SVA portals behind an SMMUv3
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-sva.h"

enum { PORT_SLOT = 3, STRTAB_LOG2 = 9 };

uint32_t sva_first_sid;

static unsigned sva_slot(unsigned how)
{
    return how & SVA_PORT ? 0 : QMLX5_SLOT;
}

static char *sva_args(unsigned how, const char *props)
{
    return g_strdup_printf(
        "-machine iommu=smmuv3,smmuv3.ssidsize=8,smmuv3.stall-model=stall,"
        "smmuv3.ats=%s,smmuv3.pri=%s %s"
        "-device mlx5-hca,id=hca0,%saddr=0x%x,sva-portals=%u%s",
        how & SVA_ATS ? "on" : "off", how & SVA_PRI ? "on" : "off",
        how & SVA_PORT ? "-device pcie-root-port,id=rp,addr=0x3 " : "",
        how & SVA_PORT ? "bus=rp," : "", sva_slot(how), SVA_PORTALS, props);
}

static uint64_t port_at(Sva *s, unsigned off)
{
    return s->h->gbus.ecam_alloc_ptr + (QPCI_DEVFN(PORT_SLOT, 0) << 12) + off;
}

/* Bus 1 behind it, with all of the window that libqos hands out. */
static void port_open(Sva *s)
{
    QPCIDevice *port = qpci_device_find(&s->h->gbus.bus,
                                        QPCI_DEVFN(PORT_SLOT, 0));

    g_assert_nonnull(port);
    s->port_exp = qpci_find_capability(port, PCI_CAP_ID_EXP, 0);
    g_free(port);
    qtest_writel(s->h->qts, port_at(s, PCI_PRIMARY_BUS), 0x00010100);
    qtest_writel(s->h->qts, port_at(s, PCI_MEMORY_BASE), 0x2ef01000);
    qtest_writew(s->h->qts, port_at(s, PCI_COMMAND),
                 PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
    s->h->gbus.ecam_alloc_ptr += 1 << 20;
}

void sva_unplug(Sva *s)
{
    s->h->gbus.ecam_alloc_ptr -= 1 << 20;
    qtest_qmp_assert_success(s->t.qts, "{ 'execute': 'device_del', "
                             "'arguments': { 'id': 'hca0' } }");
    /* Power and both indicators off. */
    qtest_writew(s->t.qts, port_at(s, s->port_exp + PCI_EXP_SLTCTL), 0x07c0);
    qtest_qmp_eventwait(s->t.qts, "DEVICE_DELETED");
}

/* StreamIDs of bus 1, too */
static void larger_strtab(Sva *s)
{
    uint32_t cr0 = smmu_r(&s->t, SMMU_CR0);
    uint64_t bytes = 64 << STRTAB_LOG2;

    smmu_w(&s->t, SMMU_CR0, 0);
    s->t.strtab = (smmu_pages(&s->t, 2 * bytes / 4096) + bytes - 1) & -bytes;
    smmu_wq(&s->t, SMMU_STRTAB_BASE, s->t.strtab);
    smmu_w(&s->t, SMMU_STRTAB_BASE_CFG, STRTAB_LOG2);
    smmu_w(&s->t, SMMU_CR0, cr0);
}

static void sva_find_portals(Sva *s)
{
    for (int i = 0; i < SVA_PORTALS; i++) {
        g_free(s->portal[i]);
        s->portal[i] = qpci_device_find(&s->h->gbus.bus,
                                        QPCI_DEVFN(sva_slot(s->how), i + 1));
        g_assert_nonnull(s->portal[i]);
    }
}

Sva *sva_start(unsigned how, const char *props)
{
    Sva *s = g_new0(Sva, 1);
    g_autofree char *args = sva_args(how, props);

    s->how = how;
    s->h = qmlx5_host(args);
    sva_first_sid = how & SVA_PORT ? 0x100 : QMLX5_SLOT << 3;
    if (how & SVA_PORT) {
        port_open(s);
    }
    s->d = qmlx5_open(s->h, sva_slot(how));
    qmlx5_enable_pci(s->d);
    qmlx5_cmdq_init(s->d);
    qmlx5_bring_up(s->d);
    s->buf = qmlx5_alloc(s->h, 65536);
    s->all = qmlx5_mkey_pa(s->d, s->d->pd, QMLX5_ALL);

    s->t.qts = s->h->qts;
    s->t.next = qmlx5_alloc(s->h, 16 * 1024 * 1024);
    smmu_setup_sized(&s->t, 7, 7, CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN |
                     (how & SVA_ATS ? CR0_ATSCHK : 0) |
                     (how & SVA_PRI ? CR0_PRIQEN : 0));
    if (how & SVA_PORT) {
        larger_strtab(s);
    }
    /* the HCA itself is passed through */
    ste_write(&s->t, sva_first_sid, &(Ste) { .config = 4 });
    sva_find_portals(s);
    for (int i = 0; i < SVA_PORTALS; i++) {
        s->bar[i] = qpci_iomap(s->portal[i], 0, NULL);
        qpci_device_enable(s->portal[i]);
        s->cds[i] = smmu_pages(&s->t, 1);
        s->root[i] = smmu_pages(&s->t, 1);
        s->cd[i] = (Cd) {
            .ttb = s->root[i], .asid = 3 + i, .s = how & SVA_STALL,
        };
        cd_write(&s->t, s->cds[i] + (SVA_PASID + i) * 64, &s->cd[i]);
        ste_write(&s->t, sva_sid(i), &(Ste) {
            .config = 5, .cd = s->cds[i], .s1cdmax = 4,
            .eats = how & SVA_ATS ? 1 : 0,
        });
        sva_pasid(s, i, true);
        sva_ats(s, i, how & SVA_ATS);
        if (how & SVA_PRI) {
            sva_pri(s, i, 64);
        }
        g_assert_cmpint(sva_latch(s, i, SVA_PASID + i), ==, SVA_R_OK);
    }
    return s;
}

void sva_stop(Sva *s)
{
    for (int i = 0; i < SVA_PORTALS; i++) {
        g_free(s->portal[i]);
    }
    qmlx5_stop(s->d);
    g_free(s);
}

SvaResult sva_command(Sva *s, unsigned p, unsigned command)
{
    sva_w(s, p, SVA_COMMAND, command);
    return sva_r(s, p, SVA_RESULT);
}

SvaResult sva_latch(Sva *s, unsigned p, uint32_t pasid)
{
    sva_w(s, p, SVA_REG_PASID, pasid | SVA_VALID);
    return sva_r(s, p, SVA_RESULT);
}

SvaResult sva_make(Sva *s, unsigned p, uint32_t pd, uint32_t access,
                   uint32_t *key)
{
    SvaResult r;

    sva_w(s, p, SVA_KEY_PD, pd);
    sva_w(s, p, SVA_KEY_ACCESS, access);
    r = sva_command(s, p, SVA_MAKE);
    *key = sva_r(s, p, SVA_KEY);
    g_assert_cmpint(r == SVA_R_OK, ==, *key != 0);
    return r;
}

uint32_t sva_key(Sva *s, unsigned p)
{
    uint32_t key;

    g_assert_cmpint(sva_make(s, p, s->d->pd, SVA_ALL, &key), ==, SVA_R_OK);
    return key;
}

SvaResult sva_destroy(Sva *s, unsigned p, uint32_t key)
{
    sva_w(s, p, SVA_KEY, key);
    return sva_command(s, p, SVA_DESTROY);
}

void sva_master(Sva *s, unsigned p, bool on)
{
    uint16_t cmd = qpci_config_readw(s->portal[p], PCI_COMMAND);

    qpci_config_writew(s->portal[p], PCI_COMMAND,
                       on ? cmd | PCI_COMMAND_MASTER
                          : cmd & ~PCI_COMMAND_MASTER);
}

void sva_pasid(Sva *s, unsigned p, bool on)
{
    qtest_writew(s->t.qts, sva_ecam(s, p, SVA_CAP_PASID + PCI_PASID_CTRL), on);
}

void sva_ats(Sva *s, unsigned p, bool on)
{
    qtest_writew(s->t.qts, sva_ecam(s, p, SVA_CAP_ATS + PCI_ATS_CTRL),
                 on ? PCI_ATS_CTRL_ENABLE : 0);
}

void sva_pri(Sva *s, unsigned p, unsigned credits)
{
    qtest_writel(s->t.qts, sva_ecam(s, p, SVA_CAP_PRI + PCI_PRI_ALLOC_REQ),
                 credits);
    qtest_writew(s->t.qts, sva_ecam(s, p, SVA_CAP_PRI + PCI_PRI_CTRL),
                 credits ? PCI_PRI_CTRL_ENABLE : 0);
}

void sva_flr(QPCIDevice *dev)
{
    uint8_t exp = qpci_find_capability(dev, PCI_CAP_ID_EXP, 0);

    qpci_config_writew(dev, exp + PCI_EXP_DEVCTL,
                       qpci_config_readw(dev, exp + PCI_EXP_DEVCTL) |
                       PCI_EXP_DEVCTL_BCR_FLR);
}

uint64_t sva_map(Sva *s, unsigned p, uint64_t va)
{
    uint64_t page = smmu_pages(&s->t, 1);

    pt_map(&s->t, s->root[p], va, page, PTE_RW_EL0);
    return page;
}

static void atc_inv(Sva *s, unsigned p, uint64_t addr)
{
    smmu_cmd_raw(&s->t, cmd_ssid(0x40, sva_sid(p), SVA_PASID + p), addr);
    smmu_cmd_raw(&s->t, 0x46, 0);
    for (int i = 0; i < 100 && !smmu_cmdq_idle(&s->t); i++) {
        qmlx5_settle(s->d);
    }
    g_assert_true(smmu_cmdq_idle(&s->t));
}

void sva_unmap(Sva *s, unsigned p, uint64_t va)
{
    pt_unmap(&s->t, s->root[p], va);
    CMD_TLBI_ASID(&s->t, s->cd[p].asid);
    CMD_SYNC(&s->t);
    if (s->how & SVA_ATS) {
        atc_inv(s, p, va);
    }
}

void sva_atc_inv_all(Sva *s, unsigned p)
{
    atc_inv(s, p, 52);
}

uint16_t sva_pop_stall(Sva *s, unsigned p, uint64_t va, bool read)
{
    SmmuEvent e, want;

    smmu_pop_event(&s->t, &e);
    want = (SmmuEvent) {
        .type = F_TRANSLATION, .sid = sva_sid(p), .ssv = true,
        .ssid = SVA_PASID + p, .stall = true, .stag = e.stag, .rnw = read,
        .class = CLASS_IN, .addr = va,
    };
    smmu_event_is("stall", &e, &want);
    return e.stag;
}

uint16_t sva_pop_request(Sva *s, unsigned p, uint64_t va)
{
    uint32_t cons = smmu_r(&s->t, SMMU_PRIQ_CONS), mask = q_mask(7);
    uint64_t at = s->t.priq + (cons & (mask >> 1)) * 16;
    uint64_t lo = qtest_readq(s->t.qts, at), hi = qtest_readq(s->t.qts, at + 8);

    g_assert_cmphex(smmu_r(&s->t, SMMU_PRIQ_PROD), !=, cons);
    g_assert_cmphex((uint32_t)lo, ==, sva_sid(p));
    g_assert_cmphex(lo >> 32 & 0xfffff, ==, SVA_PASID + p);
    g_assert_cmphex(hi & ~0xfffull, ==, va & ~0xfffull);
    smmu_w(&s->t, SMMU_PRIQ_CONS, (cons + 1) & mask);
    return hi & 0x1ff;
}

void sva_respond(Sva *s, unsigned p, uint16_t prgi, unsigned code)
{
    smmu_cmd(&s->t, cmd_ssid(0x41, sva_sid(p), SVA_PASID + p),
             (uint64_t)code << 12 | prgi);
}

void sva_migrate(Sva *s, const char *props)
{
    g_autofree char *devices = sva_args(s->how, props);

    s->h = qmlx5_migrate(s->h, devices);
    s->t.qts = s->h->qts;
    qmlx5_moved(s->d, s->h);
    sva_find_portals(s);
}
