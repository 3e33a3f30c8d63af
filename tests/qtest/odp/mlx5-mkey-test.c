/*
 * QTest: mlx5 memory keys
 *
 * A key is tried out by RDMA on a queue pair that is connected to itself:
 * the local side has a key of all memory, the remote side the key under test.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

typedef struct Bench {
    QMlx5 *d;
    QMlx5Qp *qp;
    uint64_t src, dst;            /* 64 KiB each */
    uint32_t seed;
} Bench;

#define VA 0x7f1234000000ull
#define MEM (16 * QMLX5_PAGE)

static Bench *bench(void)
{
    Bench *b = g_new0(Bench, 1);

    b->d = qmlx5_start("");
    b->qp = qmlx5_qp_self(b->d, QMLX5_RC);
    b->src = qmlx5_alloc(b->d->host, MEM);
    b->dst = qmlx5_alloc(b->d->host, MEM);
    return b;
}

static void bench_free(Bench *b)
{
    qmlx5_stop(b->d);
    g_free(b);
}

/* One RDMA through @rkey; returns the syndrome, the QP is usable again. */
static uint8_t try_rdma(Bench *b, uint8_t op, uint32_t rkey, uint64_t va,
                        uint32_t len)
{
    uint8_t cqe[64];

    if (op == QMLX5_OP_FA || op == QMLX5_OP_CS) {
        qmlx5_post_atomic(b->qp, op, b->d->lkey, b->src, rkey, va, 1, 0);
    } else {
        qmlx5_post_rdma(b->qp, op, b->d->lkey, b->src, len, rkey, va);
    }
    qmlx5_cq_wait(b->qp->a.scq, cqe);
    if (qmlx5_cqe_op(cqe) == QMLX5_CQE_REQ) {
        return 0;
    }
    g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_REQ_ERR);
    qmlx5_qp_revive(b->qp);
    return qmlx5_cqe_syndrome(cqe);
}

static void write_ok(Bench *b, uint32_t rkey, uint64_t va, uint32_t len,
                     uint64_t lands)
{
    qmlx5_fill(b->d, b->src, len, ++b->seed);
    g_assert_cmphex(try_rdma(b, QMLX5_OP_WRITE, rkey, va, len), ==, 0);
    qmlx5_expect(b->d, lands, len, b->seed);
}

static void refused(Bench *b, uint8_t op, uint32_t rkey, uint64_t va,
                    uint32_t len)
{
    g_assert_cmphex(try_rdma(b, op, rkey, va, len), ==,
                    QMLX5_SYN_REMOTE_ACCESS);
}

static void test_pa(void)
{
    Bench *b = bench();
    uint32_t key = qmlx5_mkey_pa(b->d, b->d->pd, QMLX5_ALL);

    write_ok(b, key, b->dst, 64, b->dst);
    write_ok(b, key, b->dst + 4093, 4099, b->dst + 4093);
    /* Memory that is not there. */
    g_assert_cmphex(try_rdma(b, QMLX5_OP_WRITE, key, QMLX5_NOWHERE,
                             64), !=,
                    0);
    g_assert_cmphex(try_rdma(b, QMLX5_OP_WRITE, key, ~0ull - 63, 64), !=, 0);
    refused(b, QMLX5_OP_WRITE, key, ~0ull - 15, 64);
    write_ok(b, key, b->dst, 64, b->dst);
    bench_free(b);
}

static void test_mtt(void)
{
    Bench *b = bench();
    uint64_t pages[8], list_va = VA + 0x123;
    QMlx5MkeyAttr a = {
        .mode = 1, .pd = b->d->pd, .access = QMLX5_ALL, .va = list_va,
        .len = 8 * QMLX5_PAGE - 0x123, .log_page = 12, .entries = 8,
        .list = pages, .nlist = 8,
    };
    uint32_t key;
    g_autofree uint8_t *want = NULL;
    g_autofree uint8_t *got = g_malloc(MEM);

    /* Backwards: no two neighbours, so every page edge shows. */
    for (int i = 0; i < 8; i++) {
        pages[i] = b->dst + (7 - i) * QMLX5_PAGE;
    }
    key = qmlx5_mkey_new(b->d, &a);
    write_ok(b, key, list_va, 1, pages[0] + 0x123);
    write_ok(b, key, VA + 5 * QMLX5_PAGE, QMLX5_PAGE, pages[5]);
    qmlx5_fill(b->d, b->src, a.len, 77);
    g_assert_cmphex(try_rdma(b, QMLX5_OP_WRITE, key, list_va, a.len), ==, 0);
    want = qmlx5_pattern(a.len, 77);
    qmlx5_read(b->d, b->dst, got, MEM);
    for (uint64_t i = 0; i < a.len; i++) {
        uint64_t off = i + 0x123;

        g_assert_cmphex(got[pages[off / 4096] - b->dst + off % 4096], ==,
                        want[i]);
    }
    /* Bounds, to the byte. */
    refused(b, QMLX5_OP_WRITE, key, list_va - 1, 1);
    refused(b, QMLX5_OP_WRITE, key, list_va + a.len, 1);
    refused(b, QMLX5_OP_WRITE, key, list_va + a.len - 1, 2);
    refused(b, QMLX5_OP_WRITE, key, list_va, a.len + 1);
    refused(b, QMLX5_OP_READ, key, 0, 8);
    refused(b, QMLX5_OP_READ, key, ~0ull - 7, 8);
    write_ok(b, key, list_va + a.len - 1, 1, pages[7] + 4095);
    /* Nothing to move: nothing to check. */
    g_assert_cmphex(try_rdma(b, QMLX5_OP_READ, key + 1, 0, 0), !=, 0xff);
    bench_free(b);
}

static void test_big_pages(void)
{
    Bench *b = bench();
    uint64_t pages[2] = { ROUND_UP(b->dst, 16 * 1024),
                          ROUND_UP(b->src, 16 * 1024) };
    QMlx5MkeyAttr a = {
        .mode = 1, .pd = b->d->pd, .access = QMLX5_ALL, .va = VA,
        .len = 2 * 16 * 1024, .log_page = 14, .entries = 2,
        .list = pages, .nlist = 2,
    };
    uint32_t key = qmlx5_mkey_new(b->d, &a);

    write_ok(b, key, VA + 0x3000, 0x1000, pages[0] + 0x3000);
    write_ok(b, key, VA + 0x7ff0, 16, pages[1] + 0x3ff0);
    refused(b, QMLX5_OP_WRITE, key, VA + 0x7ff0, 17);
    bench_free(b);
}

static void test_rights(void)
{
    static const struct {
        uint8_t op;
        uint32_t needs;
    } ops[] = {
        { QMLX5_OP_WRITE, QMLX5_RW }, { QMLX5_OP_READ, QMLX5_RR },
        { QMLX5_OP_FA, QMLX5_A }, { QMLX5_OP_CS, QMLX5_A },
    };
    Bench *b = bench();

    for (uint32_t access = 0; access <= QMLX5_ALL; access++) {
        uint32_t key = qmlx5_mkey_mtt(b->d, b->d->pd, access, VA, b->dst, MEM);

        for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
            uint8_t syn = try_rdma(b, ops[i].op, key, VA, 8);

            g_assert_cmphex(syn, ==, access & ops[i].needs
                            ? 0 : QMLX5_SYN_REMOTE_ACCESS);
        }
        g_assert_cmphex(qmlx5_mkey_destroy(b->d, key), ==, 0);
    }
    bench_free(b);
}

static void test_local_rights(void)
{
    Bench *b = bench();
    uint32_t ro = qmlx5_mkey_mtt(b->d, b->d->pd, QMLX5_LR, VA, b->src, MEM);
    uint32_t rw = qmlx5_mkey_mtt(b->d, b->d->pd, QMLX5_ALL, VA, b->dst, MEM);

    qmlx5_fill(b->d, b->src, 100, 5);
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, ro, VA, 100, rw, VA);
    qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_expect(b->d, b->dst, 100, 5);
    /* What a read brings must be written locally. */
    qmlx5_post_rdma(b->qp, QMLX5_OP_READ, ro, VA, 100, rw, VA);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_LOCAL_PROT);
    qmlx5_qp_revive(b->qp);
    /* A receive buffer as well. */
    qmlx5_recv(b->qp, ro, VA, 100);
    qmlx5_post_send(b->qp, QMLX5_OP_SEND, b->d->lkey, b->dst, 100);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_REMOTE_OP);
    qmlx5_cq_expect_err(b->qp->a.rcq, QMLX5_CQE_RESP_ERR,
                        QMLX5_SYN_LOCAL_PROT);
    bench_free(b);
}

static void test_who(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    uint32_t other_pd = qmlx5_pd_new(d);
    uint32_t key = qmlx5_mkey_mtt(d, other_pd, QMLX5_ALL, VA, b->dst, MEM);
    uint32_t mine = qmlx5_mkey_mtt(d, d->pd, QMLX5_ALL, VA, b->dst, MEM);
    QMlx5MkeyAttr a = {
        .mode = 1, .pd = d->pd, .access = QMLX5_ALL, .va = VA, .len = MEM,
        .log_page = 12, .entries = 16, .free = true, .umr = true,
    };
    uint32_t free_key = qmlx5_mkey_new(d, &a);

    refused(b, QMLX5_OP_WRITE, key, VA, 8);              /* PD */
    refused(b, QMLX5_OP_WRITE, mine ^ 1, VA, 8);         /* variant */
    refused(b, QMLX5_OP_WRITE, mine ^ 0x80, VA, 8);
    refused(b, QMLX5_OP_WRITE, free_key, VA, 8);         /* free */
    refused(b, QMLX5_OP_WRITE, 0, VA, 8);                /* no key */
    refused(b, QMLX5_OP_WRITE, 0xffffffff, VA, 8);
    refused(b, QMLX5_OP_WRITE, 0x100, VA, 8);            /* terminator */
    g_assert_cmphex(try_rdma(b, QMLX5_OP_WRITE, mine, VA, 8), ==, 0);
    g_assert_cmphex(qmlx5_mkey_destroy(d, mine), ==, 0);
    refused(b, QMLX5_OP_WRITE, mine, VA, 8);             /* destroyed */
    g_assert_cmphex(qmlx5_mkey_destroy(d, mine), ==, QMLX5_BAD_RES);

    /* Local keys likewise. */
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, key, VA, 8, d->lkey, VA);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_REMOTE_ACCESS);
    qmlx5_qp_revive(b->qp);
    mine = qmlx5_mkey_mtt(d, d->pd, QMLX5_ALL, VA, b->dst, MEM);
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, key, VA, 8, mine, VA);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_LOCAL_PROT);
    qmlx5_qp_revive(b->qp);
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, 0x12345600, VA, 8, mine, VA);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_LOCAL_PROT);
    bench_free(b);
}

#define KLM(bytes, key) ((uint64_t)(bytes) << 32 | (key))

static void test_klm(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    uint32_t leaf = qmlx5_mkey_mtt(d, d->pd, QMLX5_ALL, VA, b->dst, MEM);
    uint64_t list[] = {
        KLM(100, leaf), VA + 50, KLM(1, leaf), VA + 4000,
        KLM(5000, leaf), VA + 8000,
    };
    QMlx5MkeyAttr a = {
        .mode = 2, .pd = d->pd, .access = QMLX5_RW | QMLX5_RR, .va = 0x1000,
        .len = 5101, .entries = 3, .list = list, .nlist = 3,
    };
    uint32_t key = qmlx5_mkey_new(d, &a);
    g_autofree uint8_t *want = qmlx5_pattern(5101, 9);
    g_autofree uint8_t *got = g_malloc(MEM);

    qmlx5_fill(d, b->src, 5101, 9);
    g_assert_cmphex(try_rdma(b, QMLX5_OP_WRITE, key, 0x1000, 5101), ==, 0);
    qmlx5_read(d, b->dst, got, MEM);
    g_assert_cmpmem(got + 50, 100, want, 100);
    g_assert_cmpmem(got + 4000, 1, want + 100, 1);
    g_assert_cmpmem(got + 8000, 5000, want + 101, 5000);
    g_assert_cmphex(got[150], ==, 0);
    g_assert_cmphex(got[13000], ==, 0);
    write_ok(b, key, 0x1000 + 101, 7, b->dst + 8000);
    write_ok(b, key, 0x1000 + 99, 1, b->dst + 149);
    refused(b, QMLX5_OP_WRITE, key, 0x1000, 5102);
    refused(b, QMLX5_OP_WRITE, key, 0xfff, 1);
    /* The read goes the same way. */
    qmlx5_fill(d, b->dst + 8000, 16, 31);
    g_assert_cmphex(try_rdma(b, QMLX5_OP_READ, key, 0x1000 + 101, 16), ==, 0);
    qmlx5_expect(d, b->src, 16, 31);
    /* The leaf goes: so does what led to it. */
    g_assert_cmphex(qmlx5_mkey_destroy(d, leaf), ==, 0);
    refused(b, QMLX5_OP_WRITE, key, 0x1000, 8);
    bench_free(b);
}

static void test_ksm(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    uint32_t leaf[4];
    uint64_t list[8];
    QMlx5MkeyAttr a = {
        .mode = 3, .pd = d->pd, .access = QMLX5_RW | QMLX5_RR, .va = VA,
        .len = 4 * 8192, .log_page = 13, .entries = 4, .list = list,
        .nlist = 4,
    };
    uint32_t key;

    for (int i = 0; i < 4; i++) {
        leaf[i] = qmlx5_mkey_mtt(d, d->pd, QMLX5_ALL, i * 0x100000,
                                 b->dst + (3 - i) * 8192, 8192);
        list[2 * i] = leaf[i];
        list[2 * i + 1] = i * 0x100000;
    }
    key = qmlx5_mkey_new(d, &a);
    for (int i = 0; i < 4; i++) {
        write_ok(b, key, VA + i * 8192 + 4000, 4192,
                 b->dst + (3 - i) * 8192 + 4000);
    }
    /* Over the edge of two entries. */
    qmlx5_fill(d, b->src, 200, 8);
    g_assert_cmphex(try_rdma(b, QMLX5_OP_WRITE, key, VA + 8192 - 100, 200), ==,
                    0);
    g_assert_cmphex(try_rdma(b, QMLX5_OP_READ, key, VA + 8192 - 100, 200), ==,
                    0);
    qmlx5_expect(d, b->src, 200, 8);
    refused(b, QMLX5_OP_WRITE, key, VA + 4 * 8192 - 1, 2);
    bench_free(b);
}

static void test_depth(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    uint8_t cap[4096];
    uint32_t key = qmlx5_mkey_mtt(d, d->pd, QMLX5_ALL, VA, b->dst, MEM);
    uint32_t depth;

    qmlx5_query_cap(d, 0, true, cap);
    depth = MLX5_GET(cap, cmd_hca_cap, max_indirection);
    g_assert_cmpint(depth, >=, 1);
    for (uint32_t i = 0; i < depth + 3; i++) {
        uint64_t list[2] = { KLM(4096, key), VA };
        QMlx5MkeyAttr a = {
            .mode = 2, .pd = d->pd, .access = QMLX5_ALL, .va = VA, .len = 4096,
            .entries = 1, .list = list, .nlist = 1,
        };

        key = qmlx5_mkey_new(d, &a);
        if (i < depth) {
            write_ok(b, key, VA, 100, b->dst);
        } else {
            refused(b, QMLX5_OP_WRITE, key, VA, 100);
        }
    }
    bench_free(b);
}

static void test_self_reference(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    uint64_t list[2] = { KLM(4096, 0), VA };
    QMlx5MkeyAttr a = {
        .mode = 2, .pd = d->pd, .access = QMLX5_ALL, .va = VA, .len = 4096,
        .entries = 1, .list = list, .nlist = 1, .umr = true,
    };
    uint32_t key = qmlx5_mkey_new(d, &a);
    uint8_t inl[64] = { };
    QMlx5Umr u = { .key = key, .flags = QMLX5_UMR_INLINE, .octowords = 4,
                   .inl = inl, .bytes = 64 };

    stl_be_p(inl, 4096);
    stl_be_p(inl + 4, key);
    stq_be_p(inl + 8, VA);
    g_assert_cmphex(qmlx5_umr(d, &u), ==, 0);
    refused(b, QMLX5_OP_WRITE, key, VA, 8);
    bench_free(b);
}

static void test_bad_create(void)
{
    QMlx5 *d = qmlx5_start("");
    /* Room for entries of 16 bytes, which other modes than 1 have. */
    uint64_t list[8] = { 0x40000000, 0x40001000, 0x40002000, 0x40003000 };
    QMlx5MkeyAttr a = {
        .mode = 1, .pd = d->pd, .access = QMLX5_ALL, .va = VA, .len = 16384,
        .log_page = 12, .entries = 4, .list = list, .nlist = 4,
    }, good = a;
    uint32_t key;

    a.pd = 0xfffff;
    g_assert_cmphex(qmlx5_mkey_cmd(d, &a, &key), ==, QMLX5_BAD_RES);
    a = good;
    a.mode = 6;
    g_assert_cmphex(qmlx5_mkey_cmd(d, &a, &key), ==, QMLX5_BAD_PARAM);
    a = good;
    a.actual = 1000;                  /* more than the command carries */
    a.entries = 4000;
    g_assert_cmphex(qmlx5_mkey_cmd(d, &a, &key), !=, 0);
    a = good;
    a.entries = 2;                    /* list longer than the table */
    g_assert_cmphex(qmlx5_mkey_cmd(d, &a, &key), !=, 0);
    a = good;
    a.entries = 0xfffffff0;
    g_assert_cmphex(qmlx5_mkey_cmd(d, &a, &key), !=, 0);
    /* Odd but possible: no length, no pages, any page size. */
    a = good;
    a.len = 0;
    g_assert_cmphex(qmlx5_mkey_cmd(d, &a, &key), ==, 0);
    for (unsigned log = 0; log < 64; log++) {
        a = good;
        a.log_page = log;
        if (!qmlx5_mkey_cmd(d, &a, &key)) {
            QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);
            uint8_t cqe[64];

            qmlx5_post_rdma(qp, QMLX5_OP_READ, d->lkey, d->vectors + 1024, 64,
                            key, VA + 100);
            qmlx5_cq_wait(qp->a.scq, cqe);
            g_assert_cmphex(qmlx5_qp_destroy(qp), ==, 0);
            g_assert_cmphex(qmlx5_mkey_destroy(d, key), ==, 0);
        }
    }
    qmlx5_stop(d);
}

static void test_null_key(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;

    /* As a local key: writes go nowhere, reads give zeroes. */
    qmlx5_fill(d, b->dst, 256, 3);
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, d->null_mkey, 0x1234, 100,
                    qmlx5_mkey_pa(d, d->pd, QMLX5_ALL), b->dst);
    qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_expect_byte(d, b->dst, 100, 0);
    bench_free(b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/mkey/pa", test_pa);
    qtest_add_func("/mlx5/mkey/mtt", test_mtt);
    qtest_add_func("/mlx5/mkey/big-pages", test_big_pages);
    qtest_add_func("/mlx5/mkey/rights", test_rights);
    qtest_add_func("/mlx5/mkey/local-rights", test_local_rights);
    qtest_add_func("/mlx5/mkey/who", test_who);
    qtest_add_func("/mlx5/mkey/klm", test_klm);
    qtest_add_func("/mlx5/mkey/ksm", test_ksm);
    qtest_add_func("/mlx5/mkey/depth", test_depth);
    qtest_add_func("/mlx5/mkey/self-reference", test_self_reference);
    qtest_add_func("/mlx5/mkey/bad-create", test_bad_create);
    qtest_add_func("/mlx5/mkey/null-key", test_null_key);
    return g_test_run();
}
