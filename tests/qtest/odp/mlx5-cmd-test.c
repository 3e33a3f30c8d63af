/*
 * QTest: mlx5 command interface
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

static QMlx5 *start_bare(void)
{
    QMlx5Host *h = qmlx5_host("-device mlx5-hca,addr=0x4");
    QMlx5 *d = qmlx5_open(h, QMLX5_SLOT);

    qmlx5_enable_pci(d);
    qmlx5_cmdq_init(d);
    return d;
}

static uint8_t plain(QMlx5 *d, uint16_t op, uint32_t dw2)
{
    return qmlx5_cmd_simple(d, op, 0, dw2, 0, NULL);
}

static void test_init_segment(void)
{
    QMlx5Host *h = qmlx5_host("-device mlx5-hca,addr=0x4");
    QMlx5 *d = qmlx5_open(h, QMLX5_SLOT);
    uint32_t first, later;

    qmlx5_enable_pci(d);
    g_assert_cmphex(qpci_config_readw(d->pdev, 0), ==, 0x15b3);
    g_assert_cmphex(qpci_config_readw(d->pdev, 2), ==, 0x101b);
    g_assert_cmphex(qmlx5_bar_read(d, 4) >> 16, ==, 5);
    g_assert_cmphex(qmlx5_bar_read(d, 0x14) & 0xff, ==, 0x56);
    g_assert_cmphex(qmlx5_bar_read(d, 0x1fc) >> 31, ==, 0);
    qmlx5_cmdq_init(d);
    g_assert_cmphex(qmlx5_bar_read(d, 0x14) & 0xff, ==, 0x56);
    g_assert_cmphex(qmlx5_bar_read(d, 0x14) & 0xfffff000, ==, d->cmdq);
    first = qmlx5_bar_read(d, 0x1010);
    qmlx5_clock(d, 3 * 1000 * 1000 * 1000ll);
    later = qmlx5_bar_read(d, 0x1010);
    g_assert_cmphex(first, !=, later);
    first = qmlx5_bar_read(d, 0x1004);
    qmlx5_clock(d, 1000000);
    g_assert_cmpint(qmlx5_bar_read(d, 0x1004) - first, >=, 1000);
    /* Writes to what is read-only change nothing. */
    first = qmlx5_bar_read(d, 0);
    qmlx5_bar_write(d, 0, 0xffffffff);
    g_assert_cmphex(qmlx5_bar_read(d, 0), ==, first);
    qmlx5_stop(d);
}

static void test_bring_up(void)
{
    QMlx5 *d = start_bare();

    qmlx5_bring_up(d);
    g_assert_cmphex(plain(d, QMLX5_QUERY_ADAPTER, 0), ==, QMLX5_BAD_OUTP_LEN);
    /* Down, and up a second time: nothing is left. */
    g_assert_cmphex(plain(d, QMLX5_TEARDOWN_HCA, 0), ==, 0);
    g_assert_cmphex(plain(d, QMLX5_ALLOC_PD, 0), ==, QMLX5_BAD_SYS_STATE);
    g_assert_cmphex(plain(d, QMLX5_DISABLE_HCA, 0), ==, 0);
    qmlx5_bring_up(d);
    g_assert_cmphex(d->pd, !=, 0xffffff);
    g_assert_cmphex(qmlx5_mkey_destroy(d, d->lkey), ==, 0);
    g_assert_cmphex(plain(d, QMLX5_DEALLOC_PD, d->pd), ==, 0);
    g_assert_cmphex(plain(d, QMLX5_DEALLOC_PD, d->pd), ==, QMLX5_BAD_RES);
    qmlx5_stop(d);
}

/* What can be wrong with an entry and its mailboxes */

typedef struct Malformed {
    const char *name;
    uint8_t delivery;
    void (*spoil)(QMlx5 *d, QMlx5Entry *e);
} Malformed;

static void next_of(QMlx5 *d, uint64_t box, uint64_t next)
{
    uint8_t b[8];

    stq_be_p(b, next);
    qmlx5_write(d, box + 560, b, 8);
}

#define SPOIL(name, change) \
static void spoil_##name(QMlx5 *d, QMlx5Entry *e) \
{ \
    change; \
}

SPOIL(type, e->type = 6)
SPOIL(in_none, e->in_len = 0)
SPOIL(in_half, e->in_len = 8)
SPOIL(in_huge, e->in_len = 0x7fffffff)
SPOIL(in_neg, e->in_len = 0xffffffff)
SPOIL(out_none, e->out_len = 0)
SPOIL(out_huge, e->out_len = 0x7fffffff)
SPOIL(out_neg, e->out_len = 0xffffffff)
SPOIL(token, e->token++)
SPOIL(in_null, e->in_ptr = 0)
SPOIL(in_align, e->in_ptr += 4)
SPOIL(in_far, e->in_ptr = QMLX5_NOWHERE)
SPOIL(in_edge, e->in_ptr = ~511ull)
SPOIL(out_null, e->out_ptr = 0)
SPOIL(out_align, e->out_ptr += 64)
SPOIL(out_far, e->out_ptr = QMLX5_NOWHERE)

static void spoil_in_loop(QMlx5 *d, QMlx5Entry *e)
{
    next_of(d, d->in_box, d->in_box);
}

static void spoil_in_loop2(QMlx5 *d, QMlx5Entry *e)
{
    next_of(d, d->in_box + QMLX5_MBOX_STRIDE, d->in_box);
}

static void spoil_in_short(QMlx5 *d, QMlx5Entry *e)
{
    next_of(d, d->in_box + QMLX5_MBOX_STRIDE, 0);
}

static void spoil_in_second_far(QMlx5 *d, QMlx5Entry *e)
{
    next_of(d, d->in_box, QMLX5_NOWHERE);
}

static void spoil_in_box_token(QMlx5 *d, QMlx5Entry *e)
{
    uint8_t t = e->token + 1;

    qmlx5_write(d, d->in_box + QMLX5_MBOX_STRIDE + 573, &t, 1);
}

static void spoil_in_block(QMlx5 *d, QMlx5Entry *e)
{
    qmlx5_put32(d, d->in_box + QMLX5_MBOX_STRIDE + 568, 7);
}

static void spoil_out_loop(QMlx5 *d, QMlx5Entry *e)
{
    next_of(d, d->out_box, d->out_box);
}

static void spoil_out_short(QMlx5 *d, QMlx5Entry *e)
{
    next_of(d, d->out_box, 0);
}

static void spoil_out_block(QMlx5 *d, QMlx5Entry *e)
{
    qmlx5_put32(d, d->out_box + 568, 1);
}

static void spoil_out_box_token(QMlx5 *d, QMlx5Entry *e)
{
    uint8_t t = e->token + 1;

    qmlx5_write(d, d->out_box + 573, &t, 1);
}

static const Malformed malformed[] = {
    { "type", QMLX5_DELIV_TYPE, spoil_type },
    { "no input", QMLX5_DELIV_IN_LEN, spoil_in_none },
    { "8 bytes of input", QMLX5_DELIV_IN_LEN, spoil_in_half },
    { "huge input", QMLX5_DELIV_IN_LEN, spoil_in_huge },
    { "input of 4 GiB", QMLX5_DELIV_IN_LEN, spoil_in_neg },
    { "no output", QMLX5_DELIV_OUT_LEN, spoil_out_none },
    { "huge output", QMLX5_DELIV_OUT_LEN, spoil_out_huge },
    { "output of 4 GiB", QMLX5_DELIV_OUT_LEN, spoil_out_neg },
    { "token of entry", QMLX5_DELIV_TOKEN, spoil_token },
    { "no input mailbox", QMLX5_DELIV_IN_PTR, spoil_in_null },
    { "input mailbox alignment", QMLX5_DELIV_IN_PTR, spoil_in_align },
    { "input mailbox unmapped", QMLX5_DELIV_IN_PTR, spoil_in_far },
    { "input mailbox wraps", QMLX5_DELIV_IN_PTR, spoil_in_edge },
    { "input loop", QMLX5_DELIV_BLOCK, spoil_in_loop },
    { "input loop of two", QMLX5_DELIV_BLOCK, spoil_in_loop2 },
    { "input short", QMLX5_DELIV_IN_PTR, spoil_in_short },
    { "second input mailbox unmapped", QMLX5_DELIV_IN_PTR,
      spoil_in_second_far },
    { "input mailbox token", QMLX5_DELIV_TOKEN, spoil_in_box_token },
    { "input block number", QMLX5_DELIV_BLOCK, spoil_in_block },
    { "no output mailbox", QMLX5_DELIV_OUT_PTR, spoil_out_null },
    { "output mailbox alignment", QMLX5_DELIV_OUT_PTR, spoil_out_align },
    { "output mailbox unmapped", QMLX5_DELIV_OUT_PTR, spoil_out_far },
    { "output loop", QMLX5_DELIV_BLOCK, spoil_out_loop },
    { "output short", QMLX5_DELIV_OUT_PTR, spoil_out_short },
    { "output block number", QMLX5_DELIV_BLOCK, spoil_out_block },
    { "output mailbox token", QMLX5_DELIV_TOKEN, spoil_out_box_token },
};

static void test_malformed(void)
{
    QMlx5 *d = qmlx5_start("");
    uint8_t in[16 + 3 * 512] = { };

    /* ALLOC_PD with mailboxes that it does not need: harmless, if it ran. */
    qmlx5_cmd_head(in, QMLX5_ALLOC_PD, 0);
    g_assert_cmphex(qmlx5_cmd_deliver(d, 1, in, sizeof(in), NULL, 1024), ==,
                    0);
    for (unsigned i = 0; i < ARRAY_SIZE(malformed); i++) {
        const Malformed *m = &malformed[i];
        uint8_t before[16], after[16];
        QMlx5Entry e;

        g_test_message("%s", m->name);
        g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_ALLOC_PD, 0, 0, 0, before),
                        ==, 0);
        qmlx5_entry_init(d, &e, in, sizeof(in), 1024);
        m->spoil(d, &e);
        qmlx5_entry_write(d, 1, &e);
        qmlx5_cmd_ring(d, 1 << 1);
        g_assert_true(qmlx5_cmd_wait(d, 1, &e));
        g_assert_cmphex(e.status_own >> 1, ==, m->delivery);
        /* It was not executed, and the next one is. */
        g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_ALLOC_PD, 0, 0, 0, after),
                        ==, 0);
        g_assert_cmphex(qmlx5_be32(after + 8), ==, qmlx5_be32(before + 8) + 1);
    }
    qmlx5_stop(d);
}

/* Status of what is delivered but wrong */

static void test_bad_opcode(void)
{
    static const uint16_t unknown[] = {
        0, 1, 0x0ff, 0x1ff, 0x7fe, 0xfff, 0x1000, 0x8104, 0xffff,
    };
    QMlx5 *d = qmlx5_start("");

    for (unsigned i = 0; i < ARRAY_SIZE(unknown); i++) {
        uint8_t out[16];

        g_assert_cmphex(qmlx5_cmd_simple(d, unknown[i], 0, 0, 0, out), ==,
                        QMLX5_BAD_OP);
        /* The syndrome says why; there is no other output. */
        g_assert_cmphex(qmlx5_be32(out + 4), !=, 0);
        g_assert_cmphex(ldq_be_p(out + 8), ==, 0);
    }
    qmlx5_stop(d);
}

static void test_before_init(void)
{
    static const uint16_t ops[] = {
        QMLX5_ALLOC_PD, QMLX5_ALLOC_UAR, QMLX5_DESTROY_EQ, QMLX5_DESTROY_CQ,
        QMLX5_DESTROY_QP, QMLX5_DESTROY_MKEY, QMLX5_2ERR_QP,
        QMLX5_PAGE_FAULT_RESUME,
    };
    QMlx5 *d = start_bare();

    for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
        g_assert_cmphex(plain(d, ops[i], 0), ==, QMLX5_BAD_SYS_STATE);
    }
    qmlx5_bring_up(d);
    g_assert_cmphex(plain(d, QMLX5_ALLOC_PD, 0), ==, 0);
    qmlx5_stop(d);
}

static void test_short_input(void)
{
    static const uint16_t ops[] = {
        QMLX5_CREATE_MKEY, QMLX5_CREATE_EQ, QMLX5_CREATE_CQ, QMLX5_CREATE_QP,
        QMLX5_CREATE_RMP, QMLX5_RST2INIT_QP,
    };
    QMlx5 *d = qmlx5_start("");
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Qp *qp = qmlx5_qp_new(d, &a);

    for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
        g_assert_cmphex(plain(d, ops[i], qp->qpn), ==, QMLX5_BAD_INP_LEN);
    }
    qmlx5_stop(d);
}

static void test_short_output(void)
{
    static const uint16_t ops[] = {
        QMLX5_QUERY_MKEY, QMLX5_QUERY_EQ, QMLX5_QUERY_CQ,
        QMLX5_QUERY_QP, QMLX5_QUERY_RMP,
    };
    QMlx5 *d = qmlx5_start("");

    for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
        g_test_message("opcode 0x%x", ops[i]);
        g_assert_cmphex(plain(d, ops[i], 0), ==, QMLX5_BAD_OUTP_LEN);
    }
    qmlx5_stop(d);
}

static void test_unknown_objects(void)
{
    static const uint16_t ops[] = {
        QMLX5_DESTROY_MKEY, QMLX5_DESTROY_EQ, QMLX5_DESTROY_CQ,
        QMLX5_DESTROY_QP, QMLX5_2ERR_QP, QMLX5_2RST_QP, QMLX5_DESTROY_RMP,
        QMLX5_DEALLOC_PD, QMLX5_DEALLOC_UAR,
    };
    QMlx5 *d = qmlx5_start("");

    for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
        g_test_message("opcode 0x%x", ops[i]);
        g_assert_cmphex(plain(d, ops[i], 0xfffffe), ==, QMLX5_BAD_RES);
        g_assert_cmphex(plain(d, ops[i], 0xc0ffee), ==, QMLX5_BAD_RES);
    }
    qmlx5_stop(d);
}

/* Entries */

static void test_all_slots(void)
{
    QMlx5 *d = qmlx5_start("");
    uint8_t in[16] = { };
    GHashTable *seen = g_hash_table_new(NULL, NULL);
    QMlx5Entry e;

    qmlx5_cmd_head(in, QMLX5_ALLOC_PD, 0);
    for (unsigned slot = 0; slot < QMLX5_CMD_SLOTS; slot++) {
        qmlx5_entry_init(d, &e, in, sizeof(in), 16);
        qmlx5_entry_write(d, slot, &e);
    }
    /* Only what is rung is executed. */
    qmlx5_cmd_ring(d, 0x0000fffe);
    for (unsigned slot = 1; slot < 16; slot++) {
        g_assert_true(qmlx5_cmd_wait(d, slot, &e));
    }
    for (unsigned slot = 16; slot < QMLX5_CMD_SLOTS; slot++) {
        qmlx5_entry_read(d, slot, &e);
        g_assert_cmphex(e.status_own, ==, 1);
    }
    qmlx5_cmd_ring(d, 0xffff0001);
    for (unsigned slot = 0; slot < QMLX5_CMD_SLOTS; slot++) {
        g_assert_true(qmlx5_cmd_wait(d, slot, &e));
        g_assert_cmphex(e.out[0], ==, 0);
        g_assert_true(g_hash_table_add(seen,
                          GUINT_TO_POINTER(qmlx5_be32(e.out + 8) + 1)));
    }
    g_assert_cmpint(g_hash_table_size(seen), ==, QMLX5_CMD_SLOTS);
    g_hash_table_unref(seen);
    qmlx5_stop(d);
}

static void test_not_owned(void)
{
    QMlx5 *d = qmlx5_start("");
    uint8_t in[16] = { }, eqe[64], canary[16];
    QMlx5Entry e;

    while (qmlx5_eq_poll(d->cmd_eq, eqe)) {
        ;
    }
    qmlx5_cmd_head(in, QMLX5_ALLOC_PD, 0);
    qmlx5_entry_init(d, &e, in, sizeof(in), 16);
    e.status_own = 0;
    memset(e.out, 0x5a, 16);
    memcpy(canary, e.out, 16);
    qmlx5_entry_write(d, 2, &e);
    qmlx5_cmd_ring(d, 1 << 2);
    qmlx5_settle(d);
    qmlx5_entry_read(d, 2, &e);
    g_assert_cmpmem(e.out, 16, canary, 16);
    qmlx5_eq_none(d->cmd_eq);
    qmlx5_stop(d);
}

static void test_command_events(void)
{
    QMlx5 *d = qmlx5_start("");
    uint8_t eqe[64], in[16] = { };
    unsigned n = 0;

    /*
     * Bring-up's commands after CREATE_EQ of the command EQ, one event each;
     * that one itself has none. Async EQ, completion EQ, PD, key, two queries.
     */
    while (qmlx5_eq_poll(d->cmd_eq, eqe)) {
        g_assert_cmphex(eqe[1], ==, QMLX5_EV_CMD);
        g_assert_cmphex(qmlx5_be32(eqe + 32), ==, 1);
        n++;
    }
    g_assert_cmpint(n, ==, 6);
    qmlx5_eq_update(d->cmd_eq, true);
    g_assert_true(qmlx5_irq(d, 0));   /* the one that bring-up armed */
    qmlx5_cmd_head(in, QMLX5_ALLOC_PD, 0);
    g_assert_cmphex(qmlx5_cmd_deliver(d, 9, in, sizeof(in), NULL, 16), ==, 0);
    qmlx5_eq_wait(d->cmd_eq, QMLX5_EV_CMD, eqe);
    g_assert_cmphex(qmlx5_be32(eqe + 32), ==, 1 << 9);
    g_assert_true(qmlx5_irq(d, 0));
    /* A command that fails, even in its delivery, is told too. */
    g_assert_cmphex(qmlx5_cmd_deliver(d, 5, in, 8, NULL, 16), ==,
                    QMLX5_DELIV_IN_LEN);
    qmlx5_eq_wait(d->cmd_eq, QMLX5_EV_CMD, eqe);
    g_assert_cmphex(qmlx5_be32(eqe + 32), ==, 1 << 5);
    g_assert_false(qmlx5_irq(d, 0));  /* not armed again */

    g_assert_cmphex(qmlx5_eq_destroy(d->cmd_eq), ==, 0);
    g_assert_cmphex(plain(d, QMLX5_ALLOC_PD, 0), ==, 0);
    qmlx5_stop(d);
}

static void test_queue_nowhere(void)
{
    QMlx5 *d = qmlx5_start("");

    qmlx5_bar_write(d, 0x10, QMLX5_NOWHERE >> 32);
    qmlx5_bar_write(d, 0x14, (uint32_t)QMLX5_NOWHERE);
    qmlx5_cmd_ring(d, 0xffffffff);
    qmlx5_settle(d);
    /* At the end of the address space. */
    qmlx5_bar_write(d, 0x10, 0xffffffff);
    qmlx5_bar_write(d, 0x14, 0xfffff000);
    qmlx5_cmd_ring(d, 0xffffffff);
    qmlx5_settle(d);
    /* In the device's own BAR: no endless recursion. */
    qmlx5_bar_write(d, 0x10, d->bar >> 32);
    qmlx5_bar_write(d, 0x14, d->bar);
    qmlx5_cmd_ring(d, 0xffffffff);
    qmlx5_settle(d);
    qmlx5_bar_write(d, 0x10, d->cmdq >> 32);
    qmlx5_bar_write(d, 0x14, d->cmdq);
    g_assert_cmphex(plain(d, QMLX5_ALLOC_PD, 0), ==, 0);
    qmlx5_stop(d);
}

static void test_output_bounds(void)
{
    QMlx5 *d = qmlx5_start("");
    uint8_t in[16] = { }, box[QMLX5_MBOX_STRIDE];
    uint32_t len = MLX5_BYTES(query_special_contexts_out);
    QMlx5Entry e;

    qmlx5_cmd_head(in, QMLX5_QUERY_SPECIAL, 0);
    qmlx5_entry_init(d, &e, in, sizeof(in), len);
    qmlx5_read(d, d->out_box, box, sizeof(box));
    memset(box, 0xee, QMLX5_MBOX_DATA);
    qmlx5_write(d, d->out_box, box, sizeof(box));
    qmlx5_entry_write(d, 3, &e);
    qmlx5_cmd_ring(d, 1 << 3);
    g_assert_true(qmlx5_cmd_wait(d, 3, &e));
    g_assert_cmphex(e.status_own, ==, 0);
    qmlx5_expect_byte(d, d->out_box + len - 16, QMLX5_MBOX_DATA - (len - 16),
                      0xee);
    qmlx5_stop(d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/cmd/init-segment", test_init_segment);
    qtest_add_func("/mlx5/cmd/bring-up", test_bring_up);
    qtest_add_func("/mlx5/cmd/malformed", test_malformed);
    qtest_add_func("/mlx5/cmd/bad-opcode", test_bad_opcode);
    qtest_add_func("/mlx5/cmd/before-init", test_before_init);
    qtest_add_func("/mlx5/cmd/short-input", test_short_input);
    qtest_add_func("/mlx5/cmd/short-output", test_short_output);
    qtest_add_func("/mlx5/cmd/unknown-objects", test_unknown_objects);
    qtest_add_func("/mlx5/cmd/all-slots", test_all_slots);
    qtest_add_func("/mlx5/cmd/not-owned", test_not_owned);
    qtest_add_func("/mlx5/cmd/events", test_command_events);
    qtest_add_func("/mlx5/cmd/queue-nowhere", test_queue_nowhere);
    qtest_add_func("/mlx5/cmd/output-bounds", test_output_bounds);
    return g_test_run();
}
