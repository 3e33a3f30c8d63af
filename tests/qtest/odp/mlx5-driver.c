/*
 * A small mlx5 driver for qtests: machine, PCI, commands, bring-up
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "hw/pci/pci_regs.h"
#include "mlx5-driver.h"

enum {
    RAM_BASE = 0x40000000,        /* of -M virt */
    RAM_SIZE = 256 * 1024 * 1024,
    WAIT_US = 10 * 1000 * 1000,   /* for what must happen */

    ISEG_CMDQ_H = 0x10,
    ISEG_CMDQ_L = 0x14,
    ISEG_CMD_DOORBELL = 0x18,

    CAP_ODP = 2,
    CAP_ATOMIC = 3,
};

/* Machine */

QMlx5Host *qmlx5_host(const char *args)
{
    QMlx5Host *h = g_new0(QMlx5Host, 1);

    h->qts = qtest_initf("-machine virt -m 256 -nodefaults %s", args);
    qpci_init_generic(&h->gbus, h->qts, NULL, false);
    h->next = RAM_BASE + 32 * 1024 * 1024;
    h->end = RAM_BASE + RAM_SIZE;
    return h;
}

void qmlx5_host_free(QMlx5Host *h)
{
    qtest_quit(h->qts);
    g_free(h);
}

uint64_t qmlx5_alloc(QMlx5Host *h, uint64_t bytes)
{
    uint64_t at = h->next;

    h->next += ROUND_UP(MAX(bytes, 1), QMLX5_PAGE);
    g_assert_cmphex(h->next, <=, h->end);
    return at;
}

QMlx5 *qmlx5_open(QMlx5Host *h, unsigned slot)
{
    QMlx5 *d = g_new0(QMlx5, 1);

    d->host = h;
    d->qts = h->qts;
    d->slot = slot;
    d->pdev = qpci_device_find(&h->gbus.bus, QPCI_DEVFN(slot, 0));
    g_assert_nonnull(d->pdev);
    d->bar = qpci_iomap(d->pdev, 0, NULL).addr;
    d->objs = g_ptr_array_new_with_free_func(g_free);
    return d;
}

void qmlx5_free(QMlx5 *d)
{
    g_ptr_array_unref(d->objs);
    g_free(d->pdev);
    g_free(d);
}

void qmlx5_stop(QMlx5 *d)
{
    QMlx5Host *h = d->host;

    qmlx5_free(d);
    qmlx5_host_free(h);
}

void qmlx5_moved(QMlx5 *d, QMlx5Host *to)
{
    g_free(d->pdev);
    d->host = to;
    d->qts = to->qts;
    d->pdev = qpci_device_find(&to->gbus.bus, QPCI_DEVFN(d->slot, 0));
    g_assert_nonnull(d->pdev);
}

/* PCI */

static void enable_msix(QMlx5 *d)
{
    uint8_t cap = qpci_find_capability(d->pdev, PCI_CAP_ID_MSIX, 0);
    uint32_t table;
    uint16_t flags;

    g_assert_cmpint(cap, !=, 0);
    table = qpci_config_readl(d->pdev, cap + PCI_MSIX_TABLE);
    g_assert_cmpint(table & PCI_MSIX_TABLE_BIR, ==, 0);
    table &= ~PCI_MSIX_TABLE_BIR;
    for (int i = 0; i < QMLX5_VECTORS; i++) {
        uint64_t at = d->bar + table + i * PCI_MSIX_ENTRY_SIZE;

        qtest_writel(d->qts, at, d->vectors + i * 4);
        qtest_writel(d->qts, at + 4, (d->vectors + i * 4) >> 32);
        qtest_writel(d->qts, at + 8, 0x4d580000 + i);
        qtest_writel(d->qts, at + 12, 0);
    }
    flags = qpci_config_readw(d->pdev, cap + PCI_MSIX_FLAGS);
    qpci_config_writew(d->pdev, cap + PCI_MSIX_FLAGS,
                       (flags | PCI_MSIX_FLAGS_ENABLE) &
                       ~PCI_MSIX_FLAGS_MASKALL);
}

void qmlx5_enable_pci(QMlx5 *d)
{
    if (!d->vectors) {
        d->vectors = qmlx5_alloc(d->host, QMLX5_PAGE);
    }
    qtest_memset(d->qts, d->vectors, 0, QMLX5_PAGE);
    qpci_device_enable(d->pdev);
    enable_msix(d);
}

bool qmlx5_irq(QMlx5 *d, unsigned vector)
{
    uint64_t at = d->vectors + vector * 4;
    uint32_t v;

    qmlx5_settle(d);
    v = qtest_readl(d->qts, at);
    qtest_writel(d->qts, at, 0);
    if (v) {
        g_assert_cmphex(v, ==, 0x4d580000 + vector);
    }
    return v != 0;
}

uint32_t qmlx5_bar_read(QMlx5 *d, uint64_t off)
{
    return qmlx5_get32(d, d->bar + off);
}

void qmlx5_bar_write(QMlx5 *d, uint64_t off, uint32_t v)
{
    qmlx5_put32(d, d->bar + off, v);
}

/* Memory */

void qmlx5_read(QMlx5 *d, uint64_t addr, void *p, size_t len)
{
    /* libqtest takes long for long lines. */
    for (size_t done = 0; done < len; done += 16384) {
        qtest_bufread(d->qts, addr + done, (uint8_t *)p + done,
                      MIN(len - done, 16384));
    }
}

void qmlx5_write(QMlx5 *d, uint64_t addr, const void *p, size_t len)
{
    for (size_t done = 0; done < len; done += 16384) {
        qtest_bufwrite(d->qts, addr + done, (const uint8_t *)p + done,
                       MIN(len - done, 16384));
    }
}

uint32_t qmlx5_get32(QMlx5 *d, uint64_t addr)
{
    uint8_t b[4];

    qtest_memread(d->qts, addr, b, 4);
    return qmlx5_be32(b);
}

void qmlx5_put32(QMlx5 *d, uint64_t addr, uint32_t v)
{
    uint8_t b[4];

    stl_be_p(b, v);
    qtest_memwrite(d->qts, addr, b, 4);
}

uint64_t qmlx5_get64_le(QMlx5 *d, uint64_t addr)
{
    uint8_t b[8];

    qtest_memread(d->qts, addr, b, 8);
    return ldq_le_p(b);
}

void qmlx5_put64_le(QMlx5 *d, uint64_t addr, uint64_t v)
{
    uint8_t b[8];

    stq_le_p(b, v);
    qtest_memwrite(d->qts, addr, b, 8);
}

uint8_t *qmlx5_pattern(size_t len, uint32_t seed)
{
    uint8_t *p = g_malloc(len + 4);
    uint64_t x = seed * 2654435761u + 88172645463325252ull;

    for (size_t i = 0; i < len; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        p[i] = x >> 56;
    }
    return p;
}

void qmlx5_fill(QMlx5 *d, uint64_t addr, size_t len, uint32_t seed)
{
    g_autofree uint8_t *p = qmlx5_pattern(len, seed);

    qmlx5_write(d, addr, p, len);
}

void qmlx5_expect(QMlx5 *d, uint64_t addr, size_t len, uint32_t seed)
{
    g_autofree uint8_t *want = qmlx5_pattern(len, seed);
    g_autofree uint8_t *got = g_malloc(len + 4);

    qmlx5_read(d, addr, got, len);
    for (size_t i = 0; i < len; i++) {
        if (got[i] != want[i]) {
            g_test_message("byte %zu of %zu at 0x%" PRIx64 ": 0x%02x, not "
                           "0x%02x", i, len, addr, got[i], want[i]);
            g_assert_cmphex(got[i], ==, want[i]);
        }
    }
}

void qmlx5_expect_byte(QMlx5 *d, uint64_t addr, size_t len, uint8_t byte)
{
    g_autofree uint8_t *got = g_malloc(len + 4);

    qmlx5_read(d, addr, got, len);
    for (size_t i = 0; i < len; i++) {
        g_assert_cmphex(got[i], ==, byte);
    }
}

void qmlx5_settle(QMlx5 *d)
{
    /* Each round trip is a turn of the main loop. */
    for (int i = 0; i < 8; i++) {
        qmlx5_bar_read(d, 0);
    }
}

void qmlx5_clock(QMlx5 *d, int64_t ns)
{
    qtest_clock_step(d->qts, ns);
    qmlx5_settle(d);
}

/* Commands */

void qmlx5_cmd_head(void *in, uint16_t op, uint16_t op_mod)
{
    stw_be_p(in, op);
    stw_be_p((uint8_t *)in + 6, op_mod);
}

void qmlx5_entry_write(QMlx5 *d, unsigned slot, const QMlx5Entry *e)
{
    uint8_t b[64] = { };

    b[0] = e->type;
    stl_be_p(b + 4, e->in_len);
    stq_be_p(b + 8, e->in_ptr);
    memcpy(b + 16, e->in, 16);
    memcpy(b + 32, e->out, 16);
    stq_be_p(b + 48, e->out_ptr);
    stl_be_p(b + 56, e->out_len);
    b[60] = e->token;
    b[61] = e->sig;
    b[63] = e->status_own;
    qmlx5_write(d, d->cmdq + slot * 64, b, sizeof(b));
}

void qmlx5_entry_read(QMlx5 *d, unsigned slot, QMlx5Entry *e)
{
    uint8_t b[64];

    qmlx5_read(d, d->cmdq + slot * 64, b, sizeof(b));
    e->type = b[0];
    e->in_len = qmlx5_be32(b + 4);
    e->in_ptr = ldq_be_p(b + 8);
    memcpy(e->in, b + 16, 16);
    memcpy(e->out, b + 32, 16);
    e->out_ptr = ldq_be_p(b + 48);
    e->out_len = qmlx5_be32(b + 56);
    e->token = b[60];
    e->sig = b[61];
    e->status_own = b[63];
}

static unsigned boxes_for(uint32_t len)
{
    return len <= 16 ? 0 : DIV_ROUND_UP(len - 16, QMLX5_MBOX_DATA);
}

static void chain_write(QMlx5 *d, uint64_t at, unsigned n, uint8_t token,
                        const uint8_t *data, uint32_t len)
{
    g_autofree uint8_t *b = g_malloc0(n * QMLX5_MBOX_STRIDE + 1);

    g_assert_cmpint(n, <=, QMLX5_MBOXES);
    for (unsigned i = 0; i < n; i++) {
        uint8_t *box = b + i * QMLX5_MBOX_STRIDE;
        uint32_t part = MIN(len, QMLX5_MBOX_DATA);

        if (data) {
            memcpy(box, data, part);
            data += part;
            len -= part;
        }
        if (i + 1 < n) {
            stq_be_p(box + 560, at + (i + 1) * QMLX5_MBOX_STRIDE);
        }
        stl_be_p(box + 568, i);
        box[573] = token;
    }
    if (n) {
        qmlx5_write(d, at, b, n * QMLX5_MBOX_STRIDE);
    }
}

void qmlx5_entry_init(QMlx5 *d, QMlx5Entry *e, const void *in,
                      uint32_t in_len, uint32_t out_len)
{
    unsigned nin = boxes_for(in_len), nout = boxes_for(out_len);

    *e = (QMlx5Entry) {
        .type = 7, .in_len = in_len, .out_len = out_len,
        .in_ptr = nin ? d->in_box : 0, .out_ptr = nout ? d->out_box : 0,
        .token = ++d->token, .status_own = 1,
    };
    memcpy(e->in, in, MIN(in_len, 16));
    if (nin) {
        chain_write(d, d->in_box, nin, e->token, (const uint8_t *)in + 16,
                    in_len - 16);
    }
    chain_write(d, d->out_box, nout, e->token, NULL, 0);
}

void qmlx5_cmd_ring(QMlx5 *d, uint32_t slots)
{
    qmlx5_bar_write(d, ISEG_CMD_DOORBELL, slots);
}

bool qmlx5_cmd_wait(QMlx5 *d, unsigned slot, QMlx5Entry *e)
{
    gint64 end = g_get_monotonic_time() + WAIT_US;

    do {
        qmlx5_entry_read(d, slot, e);
        if (!(e->status_own & 1)) {
            return true;
        }
    } while (g_get_monotonic_time() < end);
    return false;
}

void qmlx5_cmd_output(QMlx5 *d, const QMlx5Entry *e, void *out, uint32_t len)
{
    unsigned n = boxes_for(len);
    uint8_t *p = out;

    memcpy(p, e->out, MIN(len, 16));
    if (n) {
        g_autofree uint8_t *b = g_malloc(n * QMLX5_MBOX_STRIDE);

        qmlx5_read(d, d->out_box, b, n * QMLX5_MBOX_STRIDE);
        p += 16;
        len -= 16;
        for (unsigned i = 0; i < n; i++) {
            uint32_t part = MIN(len, QMLX5_MBOX_DATA);

            memcpy(p, b + i * QMLX5_MBOX_STRIDE, part);
            p += part;
            len -= part;
        }
    }
}

uint8_t qmlx5_cmd_deliver(QMlx5 *d, unsigned slot, const void *in,
                          uint32_t in_len, void *out, uint32_t out_len)
{
    QMlx5Entry e;

    qmlx5_entry_init(d, &e, in, in_len, out_len);
    qmlx5_entry_write(d, slot, &e);
    qmlx5_cmd_ring(d, 1u << slot);
    g_assert_true(qmlx5_cmd_wait(d, slot, &e));
    if (!e.status_own && out) {
        qmlx5_cmd_output(d, &e, out, out_len);
    }
    return e.status_own >> 1;
}

uint8_t qmlx5_cmd(QMlx5 *d, const void *in, uint32_t in_len, void *out,
                  uint32_t out_len)
{
    uint8_t small[16] = { };
    uint8_t *o = out ? out : small;

    g_assert_cmphex(qmlx5_cmd_deliver(d, 0, in, in_len, o,
                                      out ? out_len : sizeof(small)), ==, 0);
    return o[0];
}

uint8_t qmlx5_cmd_simple(QMlx5 *d, uint16_t op, uint16_t op_mod, uint32_t dw2,
                         uint32_t dw3, uint8_t out[16])
{
    uint8_t in[16] = { };

    qmlx5_cmd_head(in, op, op_mod);
    stl_be_p(in + 8, dw2);
    stl_be_p(in + 12, dw3);
    return qmlx5_cmd(d, in, sizeof(in), out, 16);
}

void qmlx5_query_cap(QMlx5 *d, unsigned type, bool cur, uint8_t cap[4096])
{
    uint8_t in[16] = { }, *out = g_malloc0(MLX5_BYTES(query_hca_cap_out));

    qmlx5_cmd_head(in, QMLX5_QUERY_HCA_CAP, type << 1 | cur);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out,
                              MLX5_BYTES(query_hca_cap_out)), ==, 0);
    memcpy(cap, MLX5_ADDR(out, query_hca_cap_out, capability), 4096);
    g_free(out);
}

/* Bring-up */

void qmlx5_cmdq_init(QMlx5 *d)
{
    gint64 end = g_get_monotonic_time() + WAIT_US;

    while (qmlx5_bar_read(d, 0x1fc) >> 31) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
    }
    if (!d->cmdq) {
        d->cmdq = qmlx5_alloc(d->host, QMLX5_PAGE);
        d->in_box = qmlx5_alloc(d->host, QMLX5_MBOXES * QMLX5_MBOX_STRIDE);
        d->out_box = qmlx5_alloc(d->host, QMLX5_MBOXES * QMLX5_MBOX_STRIDE);
    }
    qtest_memset(d->qts, d->cmdq, 0, QMLX5_PAGE);
    qmlx5_bar_write(d, ISEG_CMDQ_H, d->cmdq >> 32);
    qmlx5_bar_write(d, ISEG_CMDQ_L, d->cmdq);
}

static void simple_ok(QMlx5 *d, uint16_t op, uint16_t op_mod, uint32_t dw2,
                      uint32_t dw3)
{
    uint8_t out[16];

    g_assert_cmphex(qmlx5_cmd_simple(d, op, op_mod, dw2, dw3, out), ==, 0);
}

static void give_pages(QMlx5 *d, uint16_t which)
{
    uint8_t out[16];
    uint32_t n, len;
    g_autofree uint8_t *in = NULL;

    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_QUERY_PAGES, which, 0, 0, out),
                    ==, 0);
    n = MLX5_GET(out, query_pages_out, num_pages);
    if (!n) {
        return;
    }
    g_assert_cmpint(n, <, 4096);
    len = 16 + 8 * n;
    in = g_malloc0(len);
    qmlx5_cmd_head(in, QMLX5_MANAGE_PAGES, 1);
    MLX5_SET(in, manage_pages_in, input_num_entries, n);
    for (uint32_t i = 0; i < n; i++) {
        stq_be_p(in + 16 + 8 * i, qmlx5_alloc(d->host, QMLX5_PAGE));
    }
    g_assert_cmphex(qmlx5_cmd(d, in, len, NULL, 0), ==, 0);
}

static void set_caps(QMlx5 *d, unsigned type, const uint8_t cap[4096])
{
    uint32_t len = MLX5_BYTES(set_hca_cap_in);
    g_autofree uint8_t *in = g_malloc0(len);

    qmlx5_cmd_head(in, QMLX5_SET_HCA_CAP, type << 1);
    memcpy(MLX5_ADDR(in, set_hca_cap_in, capability), cap, 4096);
    g_assert_cmphex(qmlx5_cmd(d, in, len, NULL, 0), ==, 0);
}

static void choose_caps(QMlx5 *d)
{
    uint8_t max[4096], cur[4096], odp[4096];

    qmlx5_query_cap(d, 0, false, max);
    qmlx5_query_cap(d, 0, true, cur);
    MLX5_SET(cur, cmd_hca_cap, cmdif_checksum, 0);
    MLX5_SET(cur, cmd_hca_cap, log_uar_page_sz, 0);
    if (MLX5_GET(max, cmd_hca_cap, uar_4k)) {
        MLX5_SET(cur, cmd_hca_cap, uar_4k, 1);
    }
    set_caps(d, 0, cur);
    if (!MLX5_GET(max, cmd_hca_cap, pg)) {
        return;
    }
    qmlx5_query_cap(d, CAP_ODP, false, odp);
    if (MLX5_GET(odp, odp_cap, mem_page_fault)) {
        qmlx5_query_cap(d, CAP_ODP, true, cur);
        MLX5_SET(cur, odp_cap, mem_page_fault, 1);
        set_caps(d, CAP_ODP, cur);
    }
}

static void read_numbers(QMlx5 *d)
{
    uint8_t in[16] = { }, out[MLX5_BYTES(query_special_contexts_out)] = { };
    uint8_t vport[16 + MLX5_BYTES(hca_vport_context)] = { };

    qmlx5_cmd_head(in, QMLX5_QUERY_SPECIAL, 0);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==, 0);
    d->null_mkey = MLX5_GET(out, query_special_contexts_out, null_mkey);
    d->resd_lkey = MLX5_GET(out, query_special_contexts_out, resd_lkey);
    memset(in, 0, sizeof(in));
    qmlx5_cmd_head(in, QMLX5_QUERY_VPORT, 0);
    in[9] = 1;                    /* port_num */
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), vport, sizeof(vport)), ==, 0);
    d->lid = MLX5_GET(vport + 16, hca_vport_context, lid);
}

void qmlx5_bring_up(QMlx5 *d)
{
    simple_ok(d, QMLX5_ENABLE_HCA, 0, 0, 0);
    simple_ok(d, QMLX5_SET_ISSI, 0, 1, 0);
    give_pages(d, 1);
    choose_caps(d);
    give_pages(d, 2);
    simple_ok(d, QMLX5_INIT_HCA, 0, 0, 0);
    d->uar = qmlx5_uar_new(d);
    d->cmd_eq = qmlx5_eq_new(d, 7, 0, 1ull << QMLX5_EV_CMD);
    d->async_eq = qmlx5_eq_new(d, 8, 1,
        1ull << QMLX5_EV_COMM_EST | 1ull << QMLX5_EV_SQ_DRAINED |
        1ull << QMLX5_EV_CQ_ERROR | 1ull << QMLX5_EV_WQ_CATAS |
        1ull << QMLX5_EV_WQ_INVAL | 1ull << QMLX5_EV_WQ_ACCESS |
        1ull << QMLX5_EV_SRQ_CATAS | 1ull << QMLX5_EV_SRQ_LAST_WQE |
        1ull << QMLX5_EV_SRQ_LIMIT | 1ull << QMLX5_EV_PORT);
    d->comp_eq = qmlx5_eq_new(d, 8, 2, 0);
    d->pd = qmlx5_pd_new(d);
    d->lkey = qmlx5_mkey_pa(d, d->pd, QMLX5_LR | QMLX5_LW);
    read_numbers(d);
}

QMlx5Host *qmlx5_start_n(QMlx5 **d, unsigned n, const char *props)
{
    g_autoptr(GString) args = g_string_new("");
    QMlx5Host *h;

    for (unsigned i = 0; i < n; i++) {
        g_string_append_printf(args, " -device mlx5-hca,id=hca%u,addr=0x%x%s",
                               i, QMLX5_SLOT + i, props);
    }
    h = qmlx5_host(args->str);
    for (unsigned i = 0; i < n; i++) {
        d[i] = qmlx5_open(h, QMLX5_SLOT + i);
        qmlx5_enable_pci(d[i]);
        qmlx5_cmdq_init(d[i]);
        qmlx5_bring_up(d[i]);
    }
    return h;
}

QMlx5 *qmlx5_start(const char *props)
{
    QMlx5 *d;

    qmlx5_start_n(&d, 1, props);
    return d;
}
