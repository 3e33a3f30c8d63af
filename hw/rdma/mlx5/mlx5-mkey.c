/*
 * mlx5 memory keys: objects, commands, lookup
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qapi/error.h"
#include "migration/vmstate.h"
#include "mlx5-caps.h"
#include "mlx5-cmd.h"
#include "mlx5-devx.h"
#include "mlx5-dma.h"
#include "mlx5-memic.h"
#include "mlx5-mkey.h"
#include "mlx5-portal.h"
#include "mlx5-res.h"
#include "mlx5-sig.h"
#include "trace.h"

enum {
    MLX5_MTT_READ = 1,
    MLX5_MTT_WRITE = 2,
    MLX5_MTT_FLAGS = 7,           /* low bits of an MTT that are no address */
    MLX5_MAX_PSVS = 1 << 20,
    MLX5_BSF_OCTOWORDS = MLX5_BSF_SIZE / 16,
};

uint32_t mlx5_mkey_resd_lkey(Mlx5Hca *h)
{
    return MLX5_RESERVED_LKEY;
}

uint32_t mlx5_mkey_null(Mlx5Hca *h)
{
    return MLX5_NULL_KEY;
}

uint32_t mlx5_mkey_dump_fill(Mlx5Hca *h)
{
    return MLX5_DUMP_FILL_KEY;
}

/* Lookup */

static bool mlx5_mkey_covers(const Mlx5Mkey *mk, uint64_t va, uint64_t len)
{
    uint64_t start = mk->mode == MLX5_MKEY_MEMIC ? 0 : mk->start;
    uint64_t off = va - start;

    if (va < start) {
        return false;
    }
    if (mk->length64) {
        return !len || va + len - 1 >= va;
    }
    return off <= mk->len && len <= mk->len - off;
}

/* The key may be used so; local reading needs no right of its own. */
static bool mlx5_mkey_allows(const Mlx5Mkey *mk, uint32_t key, uint32_t pd,
                             uint32_t access)
{
    return mk && !mk->free && mk->variant == (key & 0xff) && mk->pd == pd &&
           !(access & ~MLX5_ACC_LR & ~mk->access);
}

static bool mlx5_mkey_is_null(uint32_t key)
{
    return key == MLX5_NULL_KEY || key == MLX5_DUMP_FILL_KEY;
}

static const Mlx5Bsf *mlx5_mkey_own_bsf(const Mlx5Mkey *mk)
{
    return mk->sig && mk->sig->enabled ? &mk->sig->bsf : NULL;
}

const Mlx5Bsf *mlx5_mkey_bsf(Mlx5Hca *h, uint32_t key)
{
    const Mlx5Mkey *mk = h->mk->nsigs ? mlx5_mkey_find(h, key) : NULL;

    return mk ? mlx5_mkey_own_bsf(mk) : NULL;
}

bool mlx5_mkey_check(Mlx5Hca *h, const Mlx5MkeyReq *req)
{
    const Mlx5Mkey *mk = mlx5_mkey_find(h, req->key);
    uint64_t va = req->va, len = req->len;
    const Mlx5Bsf *bsf;

    if (mlx5_mkey_is_null(req->key)) {
        return true;
    }
    if (!mlx5_mkey_allows(mk, req->key, req->pd, req->access) ||
        (mk->qpn != MLX5_MKEY_ANY_QPN && mk->qpn != req->qpn)) {
        return false;
    }
    bsf = mlx5_mkey_own_bsf(mk);
    if (bsf) {
        /* The peer names bytes of the wire. */
        const Mlx5SigFormat *wire = &bsf->domain[MLX5_SIG_WIRE];
        const Mlx5SigFormat *mem = &bsf->domain[MLX5_SIG_MEMORY];
        uint64_t off = va - mk->start;

        if (req->access & MLX5_ACC_ATOMIC || va < mk->start ||
            len > UINT32_MAX || off > UINT32_MAX) {
            return false;
        }
        va = mk->start + mlx5_sig_span(wire, mem, off);
        len = mlx5_sig_span(wire, mem, off + len) - (va - mk->start);
    }
    return mlx5_mkey_covers(mk, va, len);
}

/* Pages: the run ends where the next page is no neighbour or not allowed. */
static Mlx5MkeyResult mlx5_mkey_mtt(const Mlx5Mkey *mk, uint64_t va,
                                    uint64_t want, uint64_t flags,
                                    Mlx5MkeyRun *run)
{
    uint64_t page = 1ull << mk->log_page, mask = page - 1;
    uint64_t idx = (va >> mk->log_page) - (mk->start >> mk->log_page);
    uint64_t n, e, next, len;
    const uint64_t *mtt;

    if (mk->log_page < 3 || idx >> 32) {
        return MLX5_MKEY_ERROR;
    }
    mtt = mlx5_xlt_mtts(&mk->xlt, idx, &n);
    e = mtt ? be64_to_cpu(*mtt) : 0;
    if ((e & flags) != flags) {
        run->fault_log = MIN(run->fault_log, mk->log_page);
        return MLX5_MKEY_FAULT;
    }
    e &= ~(mask | MLX5_MTT_FLAGS);
    run->addr = e | (va & mask);
    len = page - (va & mask);
    next = e + page;
    while (len < want) {
        if (!--n) {
            mtt = mlx5_xlt_mtts(&mk->xlt, ++idx, &n);
            if (!mtt) {
                break;
            }
        } else {
            mtt++;
            idx++;
        }
        e = be64_to_cpu(*mtt);
        if ((e & flags) != flags || (e & ~(mask | MLX5_MTT_FLAGS)) != next) {
            break;
        }
        next += page;
        len += page;
    }
    run->len = MIN(len, want);
    return MLX5_MKEY_OK;
}

/* One step down: which key and address lie at @off of @mk's list. */
typedef struct Mlx5KeyStep {
    uint32_t key;
    uint64_t va, len;
} Mlx5KeyStep;

static bool mlx5_mkey_strided(const Mlx5Mkey *mk, uint64_t off,
                              Mlx5KeyStep *step)
{
    uint64_t head[2], e[2], cycle, rest;
    uint32_t per_cycle, repeat, entries;

    mlx5_xlt_get(&mk->xlt, 0, head);
    per_cycle = head[0] >> 32;
    repeat = head[1] >> 32;
    entries = head[1] & 0xffff;
    if (!per_cycle || off / per_cycle >= repeat) {
        return false;
    }
    cycle = off / per_cycle;
    rest = off % per_cycle;
    for (uint32_t i = 0; i < entries && i + 1 < mk->xlt.size; i++) {
        uint32_t bytes, stride;

        mlx5_xlt_get(&mk->xlt, i + 1, e);
        stride = e[0] >> 48;
        bytes = (e[0] >> 32) & 0xffff;
        if (rest < bytes) {
            step->key = e[0];
            step->va = e[1] + cycle * stride + rest;
            step->len = bytes - rest;
            return true;
        }
        rest -= bytes;
    }
    return false;
}

static bool mlx5_mkey_klm(Mlx5Mkey *mk, uint64_t off, Mlx5KeyStep *step)
{
    uint64_t e[2], at = 0;
    uint32_t i = 0;

    mlx5_xlt_get(&mk->xlt, 0, e);
    if ((uint32_t)e[0] == MLX5_STRIDE_KEY) {
        return mlx5_mkey_strided(mk, off, step);
    }
    if (mk->klm_hint_off <= off) {
        i = mk->klm_hint;
        at = mk->klm_hint_off;
    }
    for (; i < mk->xlt.size; i++) {
        uint64_t bytes;

        mlx5_xlt_get(&mk->xlt, i, e);
        bytes = e[0] >> 32;
        if (off - at < bytes) {
            mk->klm_hint = i;
            mk->klm_hint_off = at;
            step->key = e[0];
            step->va = e[1] + (off - at);
            step->len = bytes - (off - at);
            return true;
        }
        at += bytes;
    }
    return false;
}

static bool mlx5_mkey_ksm(const Mlx5Mkey *mk, uint64_t va, Mlx5KeyStep *step)
{
    uint64_t mask = (1ull << mk->log_page) - 1;
    uint64_t idx = (va >> mk->log_page) - (mk->start >> mk->log_page);
    uint64_t e[2];

    if (idx >= mk->xlt.size) {
        return false;
    }
    mlx5_xlt_get(&mk->xlt, idx, e);
    step->key = e[0];
    step->va = e[1] + (va & mask);
    step->len = mask + 1 - (va & mask);
    return true;
}

Mlx5MkeyResult mlx5_mkey_translate(Mlx5Hca *h, const Mlx5MkeyReq *req,
                                   Mlx5MkeyRun *run)
{
    Mlx5KeyStep at = { .key = req->key, .va = req->va, .len = req->len };
    uint32_t access = req->access;
    bool writes = access & (MLX5_ACC_LW | MLX5_ACC_RW | MLX5_ACC_ATOMIC);
    bool reads = !writes || access & MLX5_ACC_ATOMIC;
    bool by_ksm = false;

    run->addr = 0;
    run->len = 0;
    run->via = (Mlx5DmaVia) { };
    run->fault_key = req->key;
    run->fault_va = req->va;
    run->fault_log = 63;
    for (unsigned depth = 0; depth <= MLX5_MAX_INDIRECTION; depth++) {
        uint64_t want = at.len;
        Mlx5MkeyResult r;
        Mlx5Mkey *mk;

        if (mlx5_mkey_is_null(at.key)) {
            /* In an implicit MR's table it stands for absent pages. */
            run->len = want;
            return by_ksm ? MLX5_MKEY_FAULT : MLX5_MKEY_NULL;
        }
        mk = mlx5_mkey_find(h, at.key);
        if (!mlx5_mkey_allows(mk, at.key, req->pd, access) ||
            !mlx5_mkey_covers(mk, at.va, want) ||
            (!depth && mk->qpn != MLX5_MKEY_ANY_QPN && mk->qpn != req->qpn)) {
            trace_mlx5_mkey_refused(h->name, req->key, at.key, at.va, want,
                                    access, req->pd);
            return MLX5_MKEY_ERROR;
        }
        if (!want) {
            return MLX5_MKEY_OK;
        }
        run->via.key = at.key;
        switch (mk->mode) {
        case MLX5_MKEY_PA:
            run->addr = at.va;
            run->len = want;
            run->via.function = mk->portal;
            run->via.pasid_valid = mk->pasid_valid;
            run->via.pasid = mk->pasid;
            return run->addr & MLX5_DMA_MEMIC ? MLX5_MKEY_ERROR : MLX5_MKEY_OK;
        case MLX5_MKEY_MTT:
            r = mlx5_mkey_mtt(mk, at.va, want,
                              (writes ? MLX5_MTT_WRITE : 0) |
                              (reads ? MLX5_MTT_READ : 0), run);
            return r == MLX5_MKEY_OK && run->addr & MLX5_DMA_MEMIC
                   ? MLX5_MKEY_ERROR : r;
        case MLX5_MKEY_MEMIC:
            run->addr = MLX5_DMA_MEMIC | (mk->start + at.va);
            run->len = want;
            return MLX5_MKEY_OK;
        case MLX5_MKEY_KLM:
            if (!mlx5_mkey_klm(mk, at.va - mk->start, &at)) {
                return MLX5_MKEY_ERROR;
            }
            /* Software knows the faults of the keys below by themselves. */
            run->fault_key = at.key;
            run->fault_va = at.va;
            run->fault_log = 63;
            by_ksm = false;
            break;
        case MLX5_MKEY_KSM:
            if (!mlx5_mkey_ksm(mk, at.va, &at)) {
                return MLX5_MKEY_ERROR;
            }
            run->fault_log = MIN(run->fault_log, mk->log_page);
            if (!at.key) {
                return MLX5_MKEY_FAULT;
            }
            by_ksm = true;
            break;
        default:
            return MLX5_MKEY_ERROR;
        }
        at.len = MIN(at.len, want);
        /* Below the first key its rights hold; pages must allow writing. */
        access = writes ? MLX5_ACC_LW : 0;
    }
    mlx5_guest_error(h, "key 0x%08x: more than %d levels of indirection",
                     req->key, MLX5_MAX_INDIRECTION);
    return MLX5_MKEY_ERROR;
}

bool mlx5_mkey_invalidate(Mlx5Hca *h, uint32_t key, uint32_t pd, uint32_t qpn,
                          bool remote)
{
    Mlx5Mkey *mk = mlx5_mkey_find(h, key);

    if (!mlx5_mkey_allows(mk, key, pd, 0) || !mk->umr_en ||
        (remote && !mk->en_rinval) ||
        (mk->qpn != MLX5_MKEY_ANY_QPN && mk->qpn != qpn)) {
        return false;
    }
    mk->free = true;
    trace_mlx5_mkey_invalidate(h->name, key, qpn, remote);
    return true;
}

/* Commands */

/* The PD stays while a key is in it; a free key may name one of no PD. */
void mlx5_mkey_set_pd(Mlx5Hca *h, Mlx5Mkey *mk, uint32_t pd)
{
    Mlx5Obj *o = mlx5_table_get(&h->pds, pd);

    if (mk->pd_held) {
        mlx5_obj_ref(mlx5_table_get(&h->pds, mk->pd), -1);
    }
    mk->pd = pd;
    mk->pd_held = o != NULL;
    mlx5_obj_ref(o, 1);
}

static void mlx5_mkey_free(Mlx5Hca *h, Mlx5Mkey *mk)
{
    if (mk->faults && mk->faults->pending) {
        mlx5_dma_end_key(h, mk->obj.id << 8);
    }
    mlx5_mkey_set_pd(h, mk, 0);
    mlx5_table_del(&h->mkeys, &mk->obj);
    mlx5_umem_put(h, &mk->umems);
    mlx5_xlt_fini(h, &mk->xlt);
    h->mk->nsigs -= mk->sig != NULL;
    g_free(mk->sig);
    g_free(mk->faults);
    g_free(mk);
}

static uint8_t mlx5_mkey_access(const uint8_t *mkc)
{
    return (MLX5_GET(mkc, mkc, lr) ? MLX5_ACC_LR : 0) |
           (MLX5_GET(mkc, mkc, lw) ? MLX5_ACC_LW : 0) |
           (MLX5_GET(mkc, mkc, rr) ? MLX5_ACC_RR : 0) |
           (MLX5_GET(mkc, mkc, rw) ? MLX5_ACC_RW : 0) |
           (MLX5_GET(mkc, mkc, a) ? MLX5_ACC_ATOMIC : 0);
}

static void mlx5_mkey_from_mkc(Mlx5Mkey *mk, const uint8_t *mkc)
{
    memcpy(mk->mkc, mkc, sizeof(mk->mkc));
    mk->variant = MLX5_GET(mkc, mkc, mkey_7_0);
    mk->mode = MLX5_GET(mkc, mkc, access_mode_4_2) << 2 |
               MLX5_GET(mkc, mkc, access_mode_1_0);
    mk->access = mlx5_mkey_access(mkc);
    mk->log_page = MLX5_GET(mkc, mkc, log_page_size);
    mk->free = MLX5_GET(mkc, mkc, free);
    mk->umr_en = MLX5_GET(mkc, mkc, umr_en);
    mk->en_rinval = MLX5_GET(mkc, mkc, en_rinval);
    mk->length64 = MLX5_GET(mkc, mkc, length64);
    mk->pd = MLX5_GET(mkc, mkc, pd);
    mk->qpn = MLX5_GET(mkc, mkc, qpn);
    mk->start = MLX5_GET64(mkc, mkc, start_addr);
    mk->len = MLX5_GET64(mkc, mkc, len);
}

static void mlx5_mkey_to_mkc(const Mlx5Mkey *mk, uint8_t *mkc)
{
    memcpy(mkc, mk->mkc, sizeof(mk->mkc));
    MLX5_SET(mkc, mkc, mkey_7_0, mk->variant);
    MLX5_SET(mkc, mkc, lr, !!(mk->access & MLX5_ACC_LR));
    MLX5_SET(mkc, mkc, lw, !!(mk->access & MLX5_ACC_LW));
    MLX5_SET(mkc, mkc, rr, !!(mk->access & MLX5_ACC_RR));
    MLX5_SET(mkc, mkc, rw, !!(mk->access & MLX5_ACC_RW));
    MLX5_SET(mkc, mkc, a, !!(mk->access & MLX5_ACC_ATOMIC));
    MLX5_SET(mkc, mkc, log_page_size, mk->log_page);
    MLX5_SET(mkc, mkc, free, mk->free);
    MLX5_SET(mkc, mkc, en_rinval, mk->en_rinval);
    MLX5_SET(mkc, mkc, length64, mk->length64);
    MLX5_SET(mkc, mkc, pd, mk->pd);
    MLX5_SET(mkc, mkc, qpn, mk->qpn);
    if (mk->mode != MLX5_MKEY_MEMIC) {
        MLX5_SET64(mkc, mkc, start_addr, mk->start);
    }
    MLX5_SET64(mkc, mkc, len, mk->len);
    if (mk->sig) {
        MLX5_SET(mkc, mkc, bsf_en, mk->sig->enabled);
        MLX5_SET(mkc, mkc, expected_sigerr_count, mk->sig->expected);
    }
}

static bool mlx5_mkey_has_table(const Mlx5Mkey *mk)
{
    return mk->mode == MLX5_MKEY_MTT || mk->mode == MLX5_MKEY_KLM ||
           mk->mode == MLX5_MKEY_KSM;
}

/*
 * The list that comes with the command. Without pg_access its pages may be
 * read and written, which the low bits then do not tell.
 */
static bool mlx5_mkey_fill(Mlx5Hca *h, Mlx5Mkey *mk, const uint8_t *list,
                           uint32_t octowords, bool pg_access)
{
    uint8_t chunk[64 * 16];

    if (mk->mode != MLX5_MKEY_MTT || pg_access) {
        return mlx5_xlt_write(h, &mk->xlt, 0, list, octowords);
    }
    for (uint32_t done = 0; done < octowords;) {
        uint32_t n = MIN(octowords - done, sizeof(chunk) / 16);

        for (uint32_t i = 0; i < n * 2; i++) {
            stq_be_p(chunk + i * 8, ldq_be_p(list + done * 16 + i * 8) |
                     MLX5_MTT_READ | MLX5_MTT_WRITE);
        }
        if (!mlx5_xlt_write(h, &mk->xlt, done, chunk, n)) {
            return false;
        }
        done += n;
    }
    return true;
}

/* The pages of a UMEM that the key's range covers. */
static bool mlx5_mkey_fill_umem(Mlx5Hca *h, Mlx5Cmd *c, Mlx5Mkey *mk)
{
    uint64_t page = 1ull << mk->log_page, contig, size;
    bool write = mk->access & ~(MLX5_ACC_LR | MLX5_ACC_RR), ok = true;
    uint64_t flags = MLX5_MTT_READ | (write ? MLX5_MTT_WRITE : 0);
    uint8_t chunk[512];
    uint32_t n = 0, done = 0;
    Mlx5Buf buf;

    if (mk->log_page < 12 || mk->log_page > 30 || mk->length64 || !mk->len ||
        mk->len > UINT32_MAX) {
        return false;
    }
    size = ROUND_UP((mk->start & (page - 1)) + mk->len, page);
    if (size / page > (uint64_t)mk->xlt.size * 2 ||
        !mlx5_umem_buf(h, c, mlx5_umem_get32(c->in, MLX5_UMEM_MKEY_ID),
                       mlx5_umem_get64(c->in, MLX5_UMEM_MKEY_OFFSET), size,
                       write, &buf, &mk->umems)) {
        return false;
    }
    for (uint64_t off = 0; ok && off < size; off += page) {
        uint64_t addr = mlx5_buf_addr(&buf, off, &contig);

        ok = contig >= page && !(addr & (page - 1));
        stq_be_p(chunk + n++ * 8, addr | flags);
        if (n == sizeof(chunk) / 8 || off + page >= size) {
            if (n & 1) {
                stq_be_p(chunk + n++ * 8, 0);
            }
            ok = ok && mlx5_xlt_write(h, &mk->xlt, done, chunk, n / 2);
            done += n / 2;
            n = 0;
        }
    }
    mlx5_buf_fini(&buf);
    return ok;
}

static enum Mlx5CmdStatus mlx5_mkey_create(Mlx5Hca *h, Mlx5Cmd *c)
{
    const uint8_t *mkc = MLX5_ADDR(c->in, create_mkey_in,
                                   memory_key_mkey_entry);
    const uint8_t *list = MLX5_ADDR(c->in, create_mkey_in, klm_pas_mtt);
    uint32_t size = MLX5_GET(mkc, mkc, translations_octword_size);
    uint32_t actual = MLX5_GET(c->in, create_mkey_in,
                               translations_octword_actual_size);
    bool umem = MLX5_GET(c->in, create_mkey_in, mkey_umem_valid);
    Mlx5Mkey *mk;

    if (size > 1u << MLX5_MKEY_LOG_MAX_XLT || actual > size ||
        (!umem && actual > (c->in_len - (list - c->in)) / 16)) {
        return MLX5_CMD_BAD_PARAM;
    }
    mk = g_new0(Mlx5Mkey, 1);
    mk->obj.uid = c->uid;
    mlx5_mkey_from_mkc(mk, mkc);
    if (mk->mode == MLX5_MKEY_MEMIC) {
        /* From here on the start is an offset in device memory. */
        if (!h->memic || mk->length64 || mk->umr_en ||
            !mlx5_memic_ptr(h, mk->start - h->memic->bar_offset, mk->len)) {
            goto bad;
        }
        mk->start -= h->memic->bar_offset;
    } else if (mk->mode > MLX5_MKEY_KSM) {
        mlx5_unimp(h, "memory key access mode %d", mk->mode);
        goto bad;
    }
    if (mk->mode == MLX5_MKEY_KLM && size > 1u << MLX5_LOG_MAX_KLM_LIST) {
        goto bad;                 /* lists of odd pieces are searched */
    }
    /* DMA addresses are the kernel's to give. */
    if (c->uid && (mk->mode == MLX5_MKEY_PA ||
                   (mk->mode == MLX5_MKEY_MTT && actual && !umem))) {
        goto bad;
    }
    if ((!mk->free || c->uid) && !mlx5_res_get(c, &h->pds, mk->pd)) {
        g_free(mk);
        return MLX5_CMD_BAD_RES;
    }
    mlx5_xlt_init(&mk->xlt, mlx5_mkey_has_table(mk) ? size : 0,
                  mk->mode != MLX5_MKEY_MTT);
    if (!(umem && mk->mode == MLX5_MKEY_MTT
          ? mlx5_mkey_fill_umem(h, c, mk)
          : mlx5_mkey_fill(h, mk, list, umem ? 0 : actual,
                           MLX5_GET(c->in, create_mkey_in, pg_access))) ||
        !mlx5_table_add(&h->mkeys, &mk->obj)) {
        mlx5_umem_put(h, &mk->umems);
        mlx5_xlt_fini(h, &mk->xlt);
        g_free(mk);
        return MLX5_CMD_NO_RES;
    }
    if (MLX5_GET(mkc, mkc, bsf_en) && MLX5_GET(mkc, mkc, bsf_octword_size) >=
                                      MLX5_BSF_OCTOWORDS) {
        mk->sig = g_new0(Mlx5SigKey, 1);
        h->mk->nsigs++;
    }
    mlx5_mkey_set_pd(h, mk, mk->pd);
    MLX5_SET(c->out, create_mkey_out, mkey_index, mk->obj.id);
    trace_mlx5_mkey_create(h->name, mk->obj.id << 8 | mk->variant, mk->mode,
                           mk->pd, mk->start, mk->len, size, mk->free);
    return MLX5_CMD_OK;

bad:
    g_free(mk);
    return MLX5_CMD_BAD_PARAM;
}

static enum Mlx5CmdStatus mlx5_mkey_query(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint8_t *list = MLX5_ADDR(c->out, query_mkey_out, bsf0_klm0_pas_mtt0_1);
    Mlx5Mkey *mk = mlx5_mkey_find(h, MLX5_GET(c->in, query_mkey_in,
                                              mkey_index) << 8);

    if (!mk || !mlx5_owns(c, &mk->obj) || mk->dead) {
        return MLX5_CMD_BAD_RES;
    }
    mlx5_mkey_to_mkc(mk, MLX5_ADDR(c->out, query_mkey_out,
                                   memory_key_mkey_entry));
    if (c->out_len > list - c->out) {
        mlx5_xlt_read(&mk->xlt, 0, list, (c->out_len - (list - c->out)) / 16);
    }
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus mlx5_mkey_destroy(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint32_t index = MLX5_GET(c->in, destroy_mkey_in, mkey_index);
    Mlx5Mkey *mk = mlx5_mkey_find(h, index << 8);

    if (!mk || !mlx5_owns(c, &mk->obj) || mk->dead) {
        return MLX5_CMD_BAD_RES;
    }
    if (mk->portal) {
        mlx5_portal_key_end(h, mk);
        return MLX5_CMD_OK;
    }
    trace_mlx5_mkey_destroy(h->name, index << 8 | mk->variant);
    mlx5_mkey_free(h, mk);
    return MLX5_CMD_OK;
}

const Mlx5CmdDesc mlx5_mkey_cmds[] = {
    { 0x200, "CREATE_MKEY", MLX5_BYTES(create_mkey_in),
      MLX5_BYTES(create_mkey_out), mlx5_mkey_create },
    { 0x201, "QUERY_MKEY", MLX5_BYTES(query_mkey_in),
      MLX5_OFF_query_mkey_out_bsf0_klm0_pas_mtt0_1 / 8, mlx5_mkey_query },
    { 0x202, "DESTROY_MKEY", MLX5_BYTES(destroy_mkey_in),
      MLX5_BYTES(destroy_mkey_out), mlx5_mkey_destroy },
    { }
};

/* Life */

void mlx5_mkey_init(Mlx5Hca *h)
{
    h->mk = g_new0(Mlx5MkeyState, 1);
    mlx5_table_init(h, &h->mkeys, "mkey", MLX5_MKEY_FIRST,
                    (1u << MLX5_LOG_MAX_MKEY) - MLX5_MKEY_FIRST);
    mlx5_portal_keys_init(h);
    mlx5_table_init(h, &h->mk->psvs, "psv", 1, MLX5_MAX_PSVS - 1);
}

void mlx5_mkey_destroy_all(Mlx5Hca *h)
{
    Mlx5Obj *o, *next;

    mlx5_portal_keys_reset(h);
    QTAILQ_FOREACH_SAFE(o, &h->mkeys.all, next, next) {
        mlx5_mkey_free(h, (Mlx5Mkey *)o);
    }
    mlx5_psv_destroy_all(h);
}

void mlx5_mkey_fini(Mlx5Hca *h)
{
    mlx5_mkey_destroy_all(h);
    mlx5_portal_keys_fini(h);
    mlx5_table_fini(&h->mkeys);
    mlx5_table_fini(&h->mk->psvs);
    g_free(h->mk);
    h->mk = NULL;
}

/* Migration */

static int mlx5_mkey_pre_load(void *opaque)
{
    memset(opaque, 0, sizeof(Mlx5Mkey));
    return 0;
}

static bool mlx5_mkey_faults_needed(void *opaque)
{
    return ((Mlx5Mkey *)opaque)->faults;
}

static int mlx5_mkey_faults_pre_load(void *opaque)
{
    ((Mlx5Mkey *)opaque)->faults = g_new0(Mlx5FaultStats, 1);
    return 0;
}

static const VMStateDescription vmstate_mlx5_mkey_faults = {
    .name = "mlx5-mkey/faults",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = mlx5_mkey_faults_needed,
    .pre_load = mlx5_mkey_faults_pre_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(faults, Mlx5Mkey, vmstate_mlx5_faults,
                               Mlx5FaultStats),
        VMSTATE_END_OF_LIST()
    }
};

static bool mlx5_mkey_sig_needed(void *opaque)
{
    return ((Mlx5Mkey *)opaque)->sig;
}

static int mlx5_mkey_sig_pre_load(void *opaque)
{
    ((Mlx5Mkey *)opaque)->sig = g_new0(Mlx5SigKey, 1);
    return 0;
}

static const VMStateDescription vmstate_mlx5_mkey_sig = {
    .name = "mlx5-mkey/sig",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = mlx5_mkey_sig_needed,
    .pre_load = mlx5_mkey_sig_pre_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(sig, Mlx5Mkey, vmstate_mlx5_sig_key,
                               Mlx5SigKey),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_mlx5_mkey = {
    .name = "mlx5-mkey",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_load = mlx5_mkey_pre_load,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_OBJ(obj, Mlx5Mkey),
        VMSTATE_MLX5_UMEM_REFS(umems, Mlx5Mkey),
        VMSTATE_UINT8(variant, Mlx5Mkey),
        VMSTATE_UINT8(mode, Mlx5Mkey),
        VMSTATE_UINT8(access, Mlx5Mkey),
        VMSTATE_UINT8(log_page, Mlx5Mkey),
        VMSTATE_BOOL(pd_held, Mlx5Mkey),
        VMSTATE_BOOL(free, Mlx5Mkey),
        VMSTATE_BOOL(umr_en, Mlx5Mkey),
        VMSTATE_BOOL(en_rinval, Mlx5Mkey),
        VMSTATE_BOOL(length64, Mlx5Mkey),
        VMSTATE_UINT32(pd, Mlx5Mkey),
        VMSTATE_UINT32(qpn, Mlx5Mkey),
        VMSTATE_UINT64(start, Mlx5Mkey),
        VMSTATE_UINT64(len, Mlx5Mkey),
        {
            .name = "xlt",
            .info = &vmstate_info_mlx5_xlt,
            .size = sizeof(Mlx5Xlt),
            .flags = VMS_SINGLE,
            .offset = offsetof(Mlx5Mkey, xlt),
        },
        VMSTATE_BUFFER(mkc, Mlx5Mkey),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_mlx5_mkey_portal,
        &vmstate_mlx5_mkey_faults,
        &vmstate_mlx5_mkey_sig,
        NULL
    }
};

static bool mlx5_mkeys_post_load(void *opaque, int version_id, Error **errp)
{
    Mlx5Hca *h = opaque;
    Mlx5Obj *o;

    if (!mlx5_table_post_load(&h->mkeys) ||
        !mlx5_table_post_load(&h->mk->psvs)) {
        error_setg(errp, "mlx5: memory key numbers are not unique");
        return false;
    }
    if (!mlx5_portal_keys_post_load(h)) {
        error_setg(errp, "mlx5: a memory key of an SVA portal does not fit: "
                   "sva-portals must be the same on both sides");
        return false;
    }
    h->mk->xlt_bytes = 0;
    h->mk->nsigs = 0;
    QTAILQ_FOREACH(o, &h->mkeys.all, next) {
        Mlx5Mkey *mk = (Mlx5Mkey *)o;

        if (mk->mode > MLX5_MKEY_MEMIC || mk->log_page > 63 ||
            (mk->mode == MLX5_MKEY_MTT && mk->xlt.rules)) {
            error_setg(errp, "mlx5: memory key 0x%06x is malformed", o->id);
            return false;
        }
        h->mk->xlt_bytes += mlx5_xlt_usage(&mk->xlt);
        h->mk->nsigs += mk->sig != NULL;
    }
    return true;
}

static const VMStateDescription vmstate_mlx5_mkey_state = {
    .name = "mlx5-mkey-state",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_TABLE(psvs, Mlx5MkeyState, vmstate_mlx5_psv, Mlx5Psv),
        VMSTATE_UINT32(nvariants, Mlx5MkeyState),
        VMSTATE_VBUFFER_ALLOC_UINT32(variants, Mlx5MkeyState, 1, NULL,
                                     nvariants),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_mlx5_mkeys = {
    .name = "mlx5-mkeys",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load_errp = mlx5_mkeys_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_TABLE(mkeys, Mlx5Hca, vmstate_mlx5_mkey, Mlx5Mkey),
        VMSTATE_STRUCT_POINTER(mk, Mlx5Hca, vmstate_mlx5_mkey_state,
                               struct Mlx5MkeyState),
        VMSTATE_END_OF_LIST()
    }
};
