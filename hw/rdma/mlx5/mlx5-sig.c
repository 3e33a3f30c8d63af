/*
 * mlx5 block signatures: formats, guards and protection states
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/crc32c.h"
#include <zlib.h>
#include "migration/vmstate.h"
#include "mlx5-cmd.h"
#include "mlx5-cq.h"
#include "mlx5-mkey.h"
#include "mlx5-res.h"
#include "mlx5-sig.h"
#include "mlx5-wqe.h"
#include "trace.h"

/* A descriptor, big endian. */
typedef struct QEMU_PACKED Mlx5BsfInline {
    uint16_t vld_refresh;
    uint16_t dif_apptag;
    uint32_t dif_reftag;
    uint8_t sig_type;
    uint8_t rp_inv_seed;
    uint8_t rsvd[3];
    uint8_t dif_inc_ref_guard_check;
    uint16_t dif_app_bitmask_check;
} Mlx5BsfInline;

typedef struct QEMU_PACKED Mlx5BsfRaw {
    uint8_t bsf_size_sbs;
    uint8_t check_byte_mask;
    uint8_t wire;                 /* copied bytes, or block selector */
    uint8_t mem;                  /* block selector */
    uint32_t raw_data_size;
    uint32_t w_bfs_psv;
    uint32_t m_bfs_psv;
    uint8_t ext[16];
    Mlx5BsfInline w_inl, m_inl;
} Mlx5BsfRaw;

QEMU_BUILD_BUG_ON(sizeof(Mlx5BsfRaw) != MLX5_BSF_SIZE);

enum {
    BSF_SBS = 1 << 4,             /* both domains have the same blocks */
    BSF_SIZE_WITH_INLINE = 2,     /* bits 7:6 of bsf_size_sbs */
    BSF_TYPE = 0xf,               /* not a signature's: encryption */

    BSF_INL_VALID = 1 << 15,
    BSF_INL_CRC = 1,              /* sig_type */
    BSF_INL_IPCS = 2,
    BSF_INL_SEED = 1 << 3,
    BSF_INL_INC_REF = 1 << 6,
    BSF_INL_ESCAPE = 3,

    BFS_CRC32 = 0x20,             /* block format selector, bits 31:24 */
    BFS_CRC32C = 0x40,
    BFS_CRC64 = 0x50,
    BFS_SEED_0 = 0x01,
    BFS_KIND = 0xf0,

    SYND_PSV_FULL = 0x5f0001,
    SYND_PSV_UNKNOWN,
};

/* Formats */

static bool bsf_domain(uint32_t bfs_psv, const Mlx5BsfInline *inl,
                       uint8_t selector, Mlx5SigFormat *f)
{
    static const uint16_t blocks[] = { 0, 512, 520, 4096, 4160, 0, 4048 };
    uint8_t bfs = bfs_psv >> 24;

    *f = (Mlx5SigFormat) { .psv = bfs_psv & 0xffffff };
    if (be16_to_cpu(inl->vld_refresh) & BSF_INL_VALID) {
        f->kind = inl->sig_type == BSF_INL_CRC ? MLX5_SIG_DIF_CRC
                                               : MLX5_SIG_DIF_IPCS;
        f->escape = inl->dif_inc_ref_guard_check & BSF_INL_ESCAPE;
        f->ref_increments = inl->dif_inc_ref_guard_check & BSF_INL_INC_REF;
        f->seed_ones = inl->rp_inv_seed & BSF_INL_SEED;
        f->app = be16_to_cpu(inl->dif_apptag);
        f->app_mask = be16_to_cpu(inl->dif_app_bitmask_check);
        f->ref = be32_to_cpu(inl->dif_reftag);
        if (bfs || inl->sig_type < BSF_INL_CRC ||
            inl->sig_type > BSF_INL_IPCS) {
            return false;
        }
    } else {
        switch (bfs & BFS_KIND) {
        case 0:
            return !bfs;          /* this domain has no signatures */
        case BFS_CRC32:
            f->kind = MLX5_SIG_CRC32;
            break;
        case BFS_CRC32C:
            f->kind = MLX5_SIG_CRC32C;
            break;
        case BFS_CRC64:
            f->kind = MLX5_SIG_CRC64;
            break;
        default:
            return false;
        }
        f->seed_ones = !(bfs & BFS_SEED_0);
    }
    f->block = selector < ARRAY_SIZE(blocks) ? blocks[selector] : 0;
    return f->block;
}

bool mlx5_bsf_parse(const uint8_t raw[MLX5_BSF_SIZE], Mlx5Bsf *bsf)
{
    const Mlx5BsfRaw *b = (const Mlx5BsfRaw *)raw;
    Mlx5SigFormat *wire = &bsf->domain[MLX5_SIG_WIRE];
    Mlx5SigFormat *mem = &bsf->domain[MLX5_SIG_MEMORY];
    bool sbs = b->bsf_size_sbs & BSF_SBS;

    *bsf = (Mlx5Bsf) { .check = b->check_byte_mask };
    if (b->bsf_size_sbs >> 6 != BSF_SIZE_WITH_INLINE ||
        b->bsf_size_sbs & BSF_TYPE ||
        !bsf_domain(be32_to_cpu(b->m_bfs_psv), &b->m_inl, b->mem, mem) ||
        !bsf_domain(be32_to_cpu(b->w_bfs_psv), &b->w_inl,
                    sbs ? b->mem : b->wire, wire)) {
        return false;
    }
    if (sbs) {
        if (mlx5_sig_bytes(mem) != mlx5_sig_bytes(wire)) {
            return false;
        }
        bsf->copy = b->wire;
    }
    return true;
}

uint64_t mlx5_sig_span(const Mlx5SigFormat *from, const Mlx5SigFormat *to,
                       uint64_t len)
{
    if (from->kind != MLX5_SIG_NONE) {
        uint32_t all = from->block + mlx5_sig_bytes(from);

        len = len / all * from->block + MIN(len % all, from->block);
    }
    if (to->kind != MLX5_SIG_NONE) {
        len += len / to->block * mlx5_sig_bytes(to);
    }
    return len;
}

/* Guards */

#define T10_POLY 0x8bb7
#define XP10_POLY 0x9a6c9329ac4bc9b5ull /* bits reversed */

static uint16_t t10_table[256];
static uint64_t xp10_table[256];

static void guard_tables(void)
{
    static gsize done;

    if (g_once_init_enter(&done)) {
        for (unsigned i = 0; i < 256; i++) {
            uint16_t t10 = i << 8;
            uint64_t xp10 = i;

            for (unsigned bit = 0; bit < 8; bit++) {
                t10 = t10 << 1 ^ (t10 & 0x8000 ? T10_POLY : 0);
                xp10 = xp10 >> 1 ^ (xp10 & 1 ? XP10_POLY : 0);
            }
            t10_table[i] = t10;
            xp10_table[i] = xp10;
        }
        g_once_init_leave(&done, 1);
    }
}

uint64_t mlx5_guard_start(const Mlx5SigFormat *f)
{
    if (!f->seed_ones) {
        return 0;
    }
    switch (f->kind) {
    case MLX5_SIG_CRC64:
        return UINT64_MAX;
    case MLX5_SIG_CRC32:
    case MLX5_SIG_CRC32C:
        return UINT32_MAX;
    default:
        return UINT16_MAX;
    }
}

uint64_t mlx5_guard_feed(const Mlx5SigFormat *f, uint64_t guard, uint32_t pos,
                         const uint8_t *p, uint32_t len)
{
    guard_tables();
    switch (f->kind) {
    case MLX5_SIG_DIF_CRC:
        for (uint32_t i = 0; i < len; i++) {
            guard = (uint16_t)(guard << 8) ^ t10_table[guard >> 8 ^ p[i]];
        }
        break;
    case MLX5_SIG_DIF_IPCS:
        for (uint32_t i = 0; i < len; i++) {
            guard += (pos + i) & 1 ? p[i] : p[i] << 8;
        }
        break;
    case MLX5_SIG_CRC32:
        /* zlib inverts the value on its way in and out. */
        guard = (uint32_t)~crc32(~(uint32_t)guard, p, len);
        break;
    case MLX5_SIG_CRC32C:
        guard = (uint32_t)~crc32c(guard, p, len);
        break;
    case MLX5_SIG_CRC64:
        for (uint32_t i = 0; i < len; i++) {
            guard = guard >> 8 ^ xp10_table[(uint8_t)(guard ^ p[i])];
        }
        break;
    default:
        break;
    }
    return guard;
}

void mlx5_sig_make(const Mlx5SigFormat *f, uint64_t guard, uint64_t block,
                   uint8_t sig[MLX5_SIG_MAX])
{
    switch (f->kind) {
    case MLX5_SIG_DIF_IPCS:
        while (guard >> 16) {
            guard = (guard & 0xffff) + (guard >> 16);
        }
        guard = (uint16_t)~guard;
        /* fall through */
    case MLX5_SIG_DIF_CRC:
        stw_be_p(sig, guard);
        stw_be_p(sig + 2, f->app);
        stl_be_p(sig + 4, f->ref + (f->ref_increments ? block : 0));
        break;
    case MLX5_SIG_CRC32:
    case MLX5_SIG_CRC32C:
        stl_le_p(sig, ~guard);
        break;
    case MLX5_SIG_CRC64:
        stq_le_p(sig, ~guard);
        break;
    default:
        break;
    }
}

static bool sig_is_dif(const Mlx5SigFormat *f)
{
    return f->kind == MLX5_SIG_DIF_CRC || f->kind == MLX5_SIG_DIF_IPCS;
}

uint64_t mlx5_sig_value(const Mlx5SigFormat *f,
                        const uint8_t sig[MLX5_SIG_MAX])
{
    switch (f->kind) {
    case MLX5_SIG_CRC32:
    case MLX5_SIG_CRC32C:
        return (uint64_t)(uint32_t)ldl_le_p(sig) << 32;
    case MLX5_SIG_CRC64:
        return ldq_le_p(sig);
    default:
        return ldq_be_p(sig);
    }
}

static uint64_t sig_mask(uint8_t bytes)
{
    uint64_t mask = 0;

    for (unsigned i = 0; i < 8; i++) {
        mask |= bytes >> i & 1 ? 0xffull << (8 * i) : 0;
    }
    return mask;
}

uint16_t mlx5_sig_compare(const Mlx5SigFormat *f, uint8_t mask,
                          const uint8_t got[MLX5_SIG_MAX],
                          const uint8_t made[MLX5_SIG_MAX])
{
    uint64_t value = mlx5_sig_value(f, got), diff;
    uint16_t app = value >> 32;

    diff = (value ^ mlx5_sig_value(f, made)) & sig_mask(mask);
    if (!sig_is_dif(f)) {
        return diff ? MLX5_SIG_ERR_GUARD : 0;
    }
    if (f->escape && app == UINT16_MAX &&
        (f->escape == 1 || (uint32_t)value == UINT32_MAX)) {
        return 0;
    }
    /* Of several, the one that the T10 standard names first. */
    if (diff >> 48) {
        return MLX5_SIG_ERR_GUARD;
    }
    if ((uint16_t)(diff >> 32) & f->app_mask) {
        return MLX5_SIG_ERR_APP;
    }
    return (uint32_t)diff ? MLX5_SIG_ERR_REF : 0;
}

void mlx5_sig_merge(const Mlx5SigFormat *f, uint8_t copy,
                    const uint8_t got[MLX5_SIG_MAX],
                    uint8_t made[MLX5_SIG_MAX])
{
    uint64_t mask = sig_mask(copy), value;

    value = (mlx5_sig_value(f, made) & ~mask) |
            (mlx5_sig_value(f, got) & mask);
    switch (f->kind) {
    case MLX5_SIG_CRC32:
    case MLX5_SIG_CRC32C:
        stl_le_p(made, value >> 32);
        break;
    case MLX5_SIG_CRC64:
        stq_le_p(made, value);
        break;
    default:
        stq_be_p(made, value);
        break;
    }
}

/* Protection states */

bool mlx5_bsf_psvs(Mlx5Hca *h, const Mlx5Bsf *bsf, uint32_t pd)
{
    for (unsigned i = 0; i < ARRAY_SIZE(bsf->domain); i++) {
        const Mlx5SigFormat *f = &bsf->domain[i];
        Mlx5Psv *psv = (Mlx5Psv *)mlx5_table_get(&h->mk->psvs, f->psv);

        if (f->kind != MLX5_SIG_NONE && (!psv || psv->pd != pd)) {
            return false;
        }
    }
    return true;
}

uint8_t mlx5_psv_set(Mlx5Hca *h, uint32_t pd, const uint8_t *wqe, uint32_t len)
{
    const uint8_t *seg = wqe + sizeof(Mlx5WqeCtrl);
    Mlx5Psv *psv;

    if (len < sizeof(Mlx5WqeCtrl) + 16) {
        return MLX5_SYN_LOCAL_QP_OP;
    }
    psv = (Mlx5Psv *)mlx5_table_get(&h->mk->psvs, ldl_be_p(seg) & 0xffffff);
    if (!psv || psv->pd != pd) {
        mlx5_guest_error(h, "SET_PSV of 0x%x: not in PD 0x%x", ldl_be_p(seg),
                         pd);
        return MLX5_SYN_LOCAL_PROT;
    }
    psv->syndrome = lduw_be_p(seg + 4);
    psv->transient = ldq_be_p(seg + 8);
    trace_mlx5_psv_set(h->name, psv->obj.id, psv->syndrome, psv->transient);
    return MLX5_SYN_NONE;
}

static void psv_free(Mlx5Hca *h, Mlx5Psv *psv)
{
    mlx5_obj_ref(mlx5_table_get(&h->pds, psv->pd), -1);
    mlx5_table_del(&h->mk->psvs, &psv->obj);
    g_free(psv);
}

void mlx5_psv_destroy_all(Mlx5Hca *h)
{
    Mlx5Obj *o, *next;

    QTAILQ_FOREACH_SAFE(o, &h->mk->psvs.all, next, next) {
        psv_free(h, (Mlx5Psv *)o);
    }
}

static enum Mlx5CmdStatus cmd_create_psv(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint32_t n = MLX5_GET(c->in, create_psv_in, num_psv);
    uint32_t pd = MLX5_GET(c->in, create_psv_in, pd);
    Mlx5Psv *psv[4] = { };

    if (!n || n > ARRAY_SIZE(psv)) {
        return MLX5_CMD_BAD_PARAM;
    }
    if (!mlx5_res_get(c, &h->pds, pd)) {
        c->syndrome = SYND_PSV_UNKNOWN;
        return MLX5_CMD_BAD_RES;
    }
    for (uint32_t i = 0; i < n; i++) {
        psv[i] = g_new0(Mlx5Psv, 1);
        psv[i]->obj.uid = c->uid;
        psv[i]->pd = pd;
        if (!mlx5_table_add(&h->mk->psvs, &psv[i]->obj)) {
            g_free(psv[i]);
            while (i--) {
                psv_free(h, psv[i]);
            }
            c->syndrome = SYND_PSV_FULL;
            return MLX5_CMD_NO_RES;
        }
        mlx5_obj_ref(mlx5_table_get(&h->pds, pd), 1);
        trace_mlx5_res_alloc(h->name, "psv", psv[i]->obj.id, c->uid);
        /* psv0_index .. psv3_index, a dword each */
        stl_be_p((uint8_t *)MLX5_ADDR(c->out, create_psv_out,
                                      reserved_at_80) + i * 4,
                 psv[i]->obj.id);
    }
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_destroy_psv(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Obj *o = mlx5_res_get(c, &h->mk->psvs,
                              MLX5_GET(c->in, destroy_psv_in, psvn));

    if (!o) {
        c->syndrome = SYND_PSV_UNKNOWN;
        return MLX5_CMD_BAD_RES;
    }
    trace_mlx5_res_dealloc(h->name, "psv", o->id);
    psv_free(h, (Mlx5Psv *)o);
    return MLX5_CMD_OK;
}

const Mlx5CmdDesc mlx5_sig_cmds[] = {
    { 0x600, "CREATE_PSV", MLX5_BYTES(create_psv_in),
      MLX5_BYTES(create_psv_out), cmd_create_psv },
    { 0x601, "DESTROY_PSV", MLX5_BYTES(destroy_psv_in),
      MLX5_BYTES(destroy_psv_out), cmd_destroy_psv },
    { }
};

/* Migration */

static int sig_key_post_load(void *opaque, int version_id)
{
    Mlx5SigKey *s = opaque;

    return !s->enabled || mlx5_bsf_parse(s->raw, &s->bsf) ? 0 : -EINVAL;
}

const VMStateDescription vmstate_mlx5_sig_key = {
    .name = "mlx5/sig-key",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = sig_key_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8_ARRAY(raw, Mlx5SigKey, MLX5_BSF_SIZE),
        VMSTATE_BOOL(enabled, Mlx5SigKey),
        VMSTATE_BOOL(expected, Mlx5SigKey),
        VMSTATE_BOOL(count, Mlx5SigKey),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_mlx5_psv = {
    .name = "mlx5/psv",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_OBJ(obj, Mlx5Psv),
        VMSTATE_UINT32(pd, Mlx5Psv),
        VMSTATE_UINT64(transient, Mlx5Psv),
        VMSTATE_UINT16(syndrome, Mlx5Psv),
        VMSTATE_END_OF_LIST()
    }
};
