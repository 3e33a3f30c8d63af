/*
 * QTest: mlx5 user-mode memory registration
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

#define VA 0x7f1234000000ull
#define PAGES 32
#define MEM (PAGES * QMLX5_PAGE)

typedef struct Bench {
    QMlx5 *d;
    QMlx5Qp *qp;
    uint64_t src, dst;
    uint32_t seed;
} Bench;

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

static uint8_t try_write(Bench *b, uint32_t rkey, uint64_t va, uint32_t len)
{
    uint8_t cqe[64];

    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->d->lkey, b->src, len, rkey, va);
    qmlx5_cq_wait(b->qp->a.scq, cqe);
    if (qmlx5_cqe_op(cqe) == QMLX5_CQE_REQ) {
        return 0;
    }
    qmlx5_qp_revive(b->qp);
    return qmlx5_cqe_syndrome(cqe);
}

static void write_ok(Bench *b, uint32_t rkey, uint64_t va, uint32_t len,
                     uint64_t lands)
{
    qmlx5_fill(b->d, b->src, len, ++b->seed);
    g_assert_cmphex(try_write(b, rkey, va, len), ==, 0);
    qmlx5_expect(b->d, lands, len, b->seed);
}

static uint32_t free_mkey(QMlx5 *d, uint8_t mode, uint32_t entries)
{
    QMlx5MkeyAttr a = { .mode = mode, .pd = d->pd, .free = true, .umr = true,
                        .entries = entries, .log_page = 12 };

    return qmlx5_mkey_new(d, &a);
}

/* Enables @key for [VA, VA + n pages), as mlx5_ib registers a region. */
static QMlx5Umr enable(QMlx5 *d, uint32_t key, uint32_t n)
{
    return (QMlx5Umr) {
        .key = key, .flags = QMLX5_UMR_INLINE,
        .mask = QMLX5_M_LEN | QMLX5_M_PAGE_SIZE | QMLX5_M_START | QMLX5_M_PD |
                QMLX5_M_KEY | QMLX5_M_ACCESS | QMLX5_M_FREE,
        .access = QMLX5_ALL, .pd = d->pd, .variant = key, .va = VA,
        .len = (uint64_t)n * QMLX5_PAGE, .log_page = 12, .xlt = n / 2,
    };
}

static void test_register(void)
{
    Bench *b = bench();
    uint32_t key = free_mkey(b->d, 1, PAGES);
    QMlx5Umr u = enable(b->d, key, PAGES);
    uint64_t mtt[PAGES];

    g_assert_cmphex(try_write(b, key, VA, 8), ==, QMLX5_SYN_REMOTE_ACCESS);
    g_assert_cmphex(qmlx5_umr(b->d, &u), ==, 0);
    for (int i = 0; i < PAGES; i++) {
        mtt[i] = (b->dst + (i ^ 1) * QMLX5_PAGE) | QMLX5_MTT_RW;
    }
    qmlx5_mtt_update(b->d, key, 0, mtt, PAGES);
    for (int i = 0; i < PAGES; i++) {
        write_ok(b, key, VA + i * QMLX5_PAGE + 100, 3000,
                 b->dst + (i ^ 1) * QMLX5_PAGE + 100);
    }
    g_assert_cmphex(try_write(b, key, VA + MEM - 4, 8), ==,
                    QMLX5_SYN_REMOTE_ACCESS);
    bench_free(b);
}

static void test_offset(void)
{
    Bench *b = bench();
    uint32_t key = free_mkey(b->d, 1, PAGES);
    QMlx5Umr u = enable(b->d, key, PAGES);
    uint64_t mtt[PAGES];

    g_assert_cmphex(qmlx5_umr(b->d, &u), ==, 0);
    for (int i = 0; i < PAGES; i++) {
        mtt[i] = (b->dst + i * QMLX5_PAGE) | QMLX5_MTT_RW;
    }
    qmlx5_mtt_update(b->d, key, 0, mtt, PAGES);
    /* Swap the second and the third group of eight. */
    qmlx5_mtt_update(b->d, key, 8, mtt + 16, 8);
    qmlx5_mtt_update(b->d, key, 16, mtt + 8, 8);
    write_ok(b, key, VA + 7 * QMLX5_PAGE, 64, b->dst + 7 * QMLX5_PAGE);
    write_ok(b, key, VA + 8 * QMLX5_PAGE, 64, b->dst + 16 * QMLX5_PAGE);
    write_ok(b, key, VA + 15 * QMLX5_PAGE, 64, b->dst + 23 * QMLX5_PAGE);
    write_ok(b, key, VA + 16 * QMLX5_PAGE, 64, b->dst + 8 * QMLX5_PAGE);
    write_ok(b, key, VA + 24 * QMLX5_PAGE, 64, b->dst + 24 * QMLX5_PAGE);
    bench_free(b);
}

static void test_offset_beyond(void)
{
    Bench *b = bench();
    uint32_t key = free_mkey(b->d, 1, 6);   /* padded to 8 by the driver */
    QMlx5Umr u = enable(b->d, key, 6);
    uint64_t mtt[8];

    g_assert_cmphex(qmlx5_umr(b->d, &u), ==, 0);
    for (int i = 0; i < 8; i++) {
        mtt[i] = (b->dst + i * QMLX5_PAGE) | QMLX5_MTT_RW;
    }
    qmlx5_mtt_update(b->d, key, 0, mtt, 8);
    write_ok(b, key, VA + 5 * QMLX5_PAGE, QMLX5_PAGE, b->dst + 5 * QMLX5_PAGE);
    g_assert_cmphex(try_write(b, key, VA + 6 * QMLX5_PAGE, 1), ==,
                    QMLX5_SYN_REMOTE_ACCESS);
    /* Far beyond: nothing of it may land anywhere. */
    qmlx5_mtt_update(b->d, key, 8, mtt, 8);
    qmlx5_mtt_update(b->d, key, 0x7ffffff8, mtt, 8);
    write_ok(b, key, VA, QMLX5_PAGE, b->dst);
    bench_free(b);
}

static void test_revoke(void)
{
    Bench *b = bench();
    uint32_t key = qmlx5_mkey_odp(b->d, QMLX5_ALL, VA, PAGES);
    QMlx5Umr u = { .key = key, .flags = QMLX5_UMR_INLINE, .free = true,
                   .mask = QMLX5_M_FREE };
    uint64_t mtt[8];

    for (int i = 0; i < 8; i++) {
        mtt[i] = (b->dst + i * QMLX5_PAGE) | QMLX5_MTT_RW;
    }
    qmlx5_mtt_update(b->d, key, 0, mtt, 8);
    write_ok(b, key, VA, 64, b->dst);
    g_assert_cmphex(qmlx5_umr(b->d, &u), ==, 0);
    g_assert_cmphex(try_write(b, key, VA, 8), ==, QMLX5_SYN_REMOTE_ACCESS);
    /* Back, under another variant: the old key stays dead. */
    u = enable(b->d, key, PAGES);
    u.variant = (key & 0xff) ^ 0x55;
    g_assert_cmphex(qmlx5_umr(b->d, &u), ==, 0);
    g_assert_cmphex(try_write(b, key, VA, 8), ==, QMLX5_SYN_REMOTE_ACCESS);
    write_ok(b, key ^ 0x55, VA, 64, b->dst);
    bench_free(b);
}

static void test_checks(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    uint32_t key = free_mkey(d, 1, PAGES), fixed;
    QMlx5MkeyAttr no_umr = { .mode = 1, .pd = d->pd, .access = QMLX5_ALL,
                             .va = VA, .len = MEM, .log_page = 12,
                             .entries = PAGES };
    QMlx5Umr u = enable(d, key, PAGES);

    /* Fail if it is free, and it is. */
    u.flags |= QMLX5_UMR_CHECK_FREE;
    g_assert_cmphex(qmlx5_umr(d, &u), ==, QMLX5_SYN_MW_BIND);
    g_assert_cmphex(try_write(b, key, VA, 8), ==, QMLX5_SYN_REMOTE_ACCESS);
    u = enable(d, key, PAGES);
    u.flags |= QMLX5_UMR_CHECK_NOT_FREE;
    g_assert_cmphex(qmlx5_umr(d, &u), ==, 0);
    g_assert_cmphex(qmlx5_umr(d, &u), ==, QMLX5_SYN_MW_BIND);
    u.flags = QMLX5_UMR_INLINE | QMLX5_UMR_CHECK_FREE;
    g_assert_cmphex(qmlx5_umr(d, &u), ==, 0);

    /* Keys that there are not, or that allow no UMR. */
    u = enable(d, 0x7ffff00, PAGES);
    g_assert_cmphex(qmlx5_umr(d, &u), ==, QMLX5_SYN_MW_BIND);
    fixed = qmlx5_mkey_new(d, &no_umr);
    u = enable(d, fixed, PAGES);
    g_assert_cmphex(qmlx5_umr(d, &u), ==, QMLX5_SYN_MW_BIND);
    bench_free(b);
}

static void test_change_access(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    uint32_t key = qmlx5_mkey_odp(d, QMLX5_RW | QMLX5_LW, VA, 8);
    QMlx5Umr u = { .key = key, .flags = QMLX5_UMR_INLINE, .variant = key,
                   .mask = QMLX5_M_ACCESS, .access = QMLX5_RR };
    uint64_t mtt[8];

    for (int i = 0; i < 8; i++) {
        mtt[i] = (b->dst + i * QMLX5_PAGE) | QMLX5_MTT_RW;
    }
    qmlx5_mtt_update(d, key, 0, mtt, 8);
    write_ok(b, key, VA, 64, b->dst);
    g_assert_cmphex(qmlx5_umr(d, &u), ==, 0);
    g_assert_cmphex(try_write(b, key, VA, 64), ==, QMLX5_SYN_REMOTE_ACCESS);
    u.access = QMLX5_RW;
    u.mask = QMLX5_M_RW;
    g_assert_cmphex(qmlx5_umr(d, &u), ==, 0);
    write_ok(b, key, VA, 64, b->dst);
    bench_free(b);
}

static void test_change_pd(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    uint32_t key = qmlx5_mkey_odp(d, QMLX5_ALL, VA, 8);
    QMlx5Umr u = { .key = key, .flags = QMLX5_UMR_INLINE, .mask = QMLX5_M_PD,
                   .pd = qmlx5_pd_new(d) };
    uint64_t mtt[8] = { b->dst | QMLX5_MTT_RW };

    qmlx5_mtt_update(d, key, 0, mtt, 8);
    write_ok(b, key, VA, 64, b->dst);
    g_assert_cmphex(qmlx5_umr(d, &u), ==, 0);
    g_assert_cmphex(try_write(b, key, VA, 8), ==, QMLX5_SYN_REMOTE_ACCESS);
    u.pd = d->pd;
    g_assert_cmphex(qmlx5_umr(d, &u), ==, 0);
    write_ok(b, key, VA, 64, b->dst);
    bench_free(b);
}

/* On a queue pair of a user: its own domain, no DMA addresses. */
static void test_user_qp(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    uint32_t key = free_mkey(d, 1, PAGES), klm = free_mkey(d, 2, 4);
    uint32_t leaf = qmlx5_mkey_mtt(d, d->pd, QMLX5_ALL, VA, b->dst, MEM);
    uint8_t list[64] = { };
    QMlx5Umr u = enable(d, key, PAGES);
    QMlx5Wqe w;

    u.mask &= ~QMLX5_M_PD;
    u.octowords = 4;
    u.inl = list;
    u.bytes = 64;
    qmlx5_wqe_umr(&w, &u);
    qmlx5_post(b->qp, &w);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_MW_BIND);
    qmlx5_qp_revive(b->qp);
    g_assert_cmphex(try_write(b, key, VA, 8), ==, QMLX5_SYN_REMOTE_ACCESS);

    /* Key upon key is a user's right. */
    u = enable(d, klm, 1);
    u.mask &= ~(QMLX5_M_PD | QMLX5_M_PAGE_SIZE);
    u.octowords = 4;
    u.inl = list;
    u.bytes = 64;
    stl_be_p(list, 4096);
    stl_be_p(list + 4, leaf);
    stq_be_p(list + 8, VA + 8192);
    qmlx5_wqe_umr(&w, &u);
    qmlx5_post(b->qp, &w);
    qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
    write_ok(b, klm, VA + 10, 100, b->dst + 8192 + 10);

    /* Another domain's key is not. */
    {
        QMlx5MkeyAttr a = { .mode = 2, .pd = qmlx5_pd_new(d), .free = true,
                            .umr = true, .entries = 4 };

        u.key = qmlx5_mkey_new(d, &a);
        u.variant = u.key;
    }
    qmlx5_wqe_umr(&w, &u);
    qmlx5_post(b->qp, &w);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_MW_BIND);
    bench_free(b);
}

/* Fast registration of the kernel: fre in the context, inline MTTs. */
static void test_fast_registration(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    uint32_t key = free_mkey(d, 1, 8);
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Umr u = enable(d, key, 8);
    uint8_t list[64];
    QMlx5Wqe w;
    QMlx5Qp *qp;

    a.fre = true;
    qp = qmlx5_qp_new(d, &a);
    qmlx5_qp_rts(qp);
    for (int i = 0; i < 8; i++) {
        stq_be_p(list + 8 * i, (b->dst + i * QMLX5_PAGE) | QMLX5_MTT_RW);
    }
    u.mask &= ~QMLX5_M_PD;
    u.flags |= QMLX5_UMR_CHECK_NOT_FREE;
    u.octowords = 4;
    u.inl = list;
    u.bytes = 64;
    qmlx5_wqe_umr(&w, &u);
    qmlx5_post(qp, &w);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    write_ok(b, key, VA + 4000, 200, b->dst + 4000);

    /* Local invalidate: free again, of this variant only. */
    u = (QMlx5Umr) { .key = key ^ 0x11, .mask = QMLX5_M_FREE, .free = true,
                     .flags = QMLX5_UMR_INLINE | QMLX5_UMR_CHECK_FREE };
    qmlx5_wqe_umr(&w, &u);
    qmlx5_post(qp, &w);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_MW_BIND);
    qmlx5_qp_revive(qp);
    write_ok(b, key, VA, 8, b->dst);
    u.key = key;
    qmlx5_wqe_umr(&w, &u);
    qmlx5_post(qp, &w);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    g_assert_cmphex(try_write(b, key, VA, 8), ==, QMLX5_SYN_REMOTE_ACCESS);
    qmlx5_post(qp, &w);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_MW_BIND);
    bench_free(b);
}

static void test_malformed(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    uint32_t key = qmlx5_mkey_odp(d, QMLX5_ALL, VA, PAGES);
    QMlx5Umr u = { .key = key, .flags = QMLX5_UMR_OFFSET, .octowords = 16,
                   .lkey = 0x123400, .addr = 0x40000000, .bytes = 256 };
    uint64_t mtt[8] = { b->dst | QMLX5_MTT_RW };
    QMlx5Wqe w;

    qmlx5_mtt_update(d, key, 0, mtt, 8);
    /* A list that cannot be read. */
    g_assert_cmphex(qmlx5_umr(d, &u), ==, QMLX5_SYN_LOCAL_PROT);
    u.lkey = d->lkey;
    u.addr = QMLX5_NOWHERE;
    g_assert_cmphex(qmlx5_umr(d, &u), ==, QMLX5_SYN_LOCAL_PROT);
    /* No data segment at all, and a request that ends in the middle. */
    u.bytes = 0;
    g_assert_cmphex(qmlx5_umr(d, &u), ==, QMLX5_SYN_LOCAL_QP_OP);
    qmlx5_wqe_umr(&w, &u);
    w.len = 48;
    qmlx5_post(d->umr_qp, &w);
    qmlx5_cq_expect_err(d->umr_cq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_LOCAL_QP_OP);
    qmlx5_qp_revive(d->umr_qp);
    /* The key is as it was. */
    write_ok(b, key, VA, 8, b->dst);
    bench_free(b);
}

/* A table of 2^26 pages (256 GiB) of which two are there. */
static void test_sparse(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    uint32_t pages = 1u << 26;
    uint32_t key = qmlx5_mkey_odp(d, QMLX5_ALL, VA, pages);
    uint64_t mtt[8] = { b->dst | QMLX5_MTT_RW };

    qmlx5_mtt_update(d, key, 0, mtt, 8);
    qmlx5_mtt_update(d, key, pages - 8, mtt, 8);
    write_ok(b, key, VA, 100, b->dst);
    write_ok(b, key, VA + (pages - 8ull) * QMLX5_PAGE, 100, b->dst);
    bench_free(b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/umr/register", test_register);
    qtest_add_func("/mlx5/umr/offset", test_offset);
    qtest_add_func("/mlx5/umr/offset-beyond", test_offset_beyond);
    qtest_add_func("/mlx5/umr/revoke", test_revoke);
    qtest_add_func("/mlx5/umr/checks", test_checks);
    qtest_add_func("/mlx5/umr/change-access", test_change_access);
    qtest_add_func("/mlx5/umr/change-pd", test_change_pd);
    qtest_add_func("/mlx5/umr/user-qp", test_user_qp);
    qtest_add_func("/mlx5/umr/fast-registration", test_fast_registration);
    qtest_add_func("/mlx5/umr/malformed", test_malformed);
    qtest_add_func("/mlx5/umr/sparse", test_sparse);
    return g_test_run();
}
