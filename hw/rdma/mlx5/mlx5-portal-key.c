/*
 * mlx5 SVA portals: keys of a process's address space
 *
 * They are memory keys like others, in the same table; their DMA goes out by
 * the portal's function with its PASID. An index rests after its key has
 * ended: the dead key stays in the table until many others have followed it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "migration/vmstate.h"
#include "mlx5-dma.h"
#include "mlx5-mkey.h"
#include "mlx5-portal.h"
#include "trace.h"

static uint8_t portal_to_mkey_access(uint32_t access)
{
    return MLX5_ACC_LR |
           (access & MLX5_PORTAL_LOCAL_WRITE ? MLX5_ACC_LW : 0) |
           (access & MLX5_PORTAL_REMOTE_WRITE ? MLX5_ACC_RW : 0) |
           (access & MLX5_PORTAL_REMOTE_READ ? MLX5_ACC_RR : 0) |
           (access & MLX5_PORTAL_REMOTE_ATOMIC ? MLX5_ACC_ATOMIC : 0);
}

static uint32_t portal_from_mkey_access(const Mlx5Mkey *mk)
{
    return (mk->access & MLX5_ACC_LW ? MLX5_PORTAL_LOCAL_WRITE : 0) |
           (mk->access & MLX5_ACC_RW ? MLX5_PORTAL_REMOTE_WRITE : 0) |
           (mk->access & MLX5_ACC_RR ? MLX5_PORTAL_REMOTE_READ : 0) |
           (mk->access & MLX5_ACC_ATOMIC ? MLX5_PORTAL_REMOTE_ATOMIC : 0) |
           (mk->pasid_valid ? 0 : MLX5_PORTAL_NO_PASID_KEY);
}

/* A key of @function that lives, or NULL. */
static Mlx5Mkey *portal_key_find(Mlx5Hca *h, unsigned function, uint32_t key)
{
    Mlx5Mkey *mk = mlx5_mkey_find(h, key);

    return mk && mk->portal == function && !mk->dead &&
           mk->variant == (key & 0xff) ? mk : NULL;
}

/* The variant that index @id gets now: another one each time. */
static uint8_t portal_next_variant(Mlx5Hca *h, uint32_t id)
{
    Mlx5MkeyState *s = h->mk;

    if (id >= s->nvariants) {
        uint32_t n = pow2ceil(id + 1);

        s->variants = g_realloc(s->variants, n);
        memset(s->variants + s->nvariants, 0, n - s->nvariants);
        s->nvariants = n;
    }
    return ++s->variants[id];
}

Mlx5PortalResult mlx5_portal_key_make(Mlx5Hca *h, unsigned function,
                                      uint32_t pasid, Mlx5PortalKey *k)
{
    const uint32_t known = MLX5_PORTAL_LOCAL_WRITE | MLX5_PORTAL_REMOTE_WRITE |
                           MLX5_PORTAL_REMOTE_READ |
                           MLX5_PORTAL_REMOTE_ATOMIC |
                           MLX5_PORTAL_NO_PASID_KEY;
    Mlx5Mkey *mk;

    if (!mlx5_table_get(&h->pds, k->pd)) {
        return MLX5_PORTAL_BAD_PD;
    }
    if (k->access & ~known ||
        (k->access & (MLX5_PORTAL_REMOTE_WRITE | MLX5_PORTAL_REMOTE_ATOMIC) &&
         !(k->access & MLX5_PORTAL_LOCAL_WRITE))) {
        return MLX5_PORTAL_BAD_ACCESS;
    }
    if (k->length ? k->start + k->length - 1 < k->start : k->start) {
        return MLX5_PORTAL_BAD_RANGE;
    }
    if (h->mk->portal_keys[function] >> MLX5_PORTAL_LOG_KEYS) {
        return MLX5_PORTAL_NO_RESOURCES;
    }
    mk = g_new0(Mlx5Mkey, 1);
    if (!mlx5_table_add(&h->mkeys, &mk->obj)) {
        g_free(mk);
        return MLX5_PORTAL_NO_RESOURCES;
    }
    mk->variant = portal_next_variant(h, mk->obj.id);
    mk->mode = MLX5_MKEY_PA;
    mk->access = portal_to_mkey_access(k->access);
    mk->pd = k->pd;
    mk->qpn = MLX5_MKEY_ANY_QPN;
    mk->start = k->start;
    mk->len = k->length;
    mk->length64 = !k->length;
    mk->portal = function;
    mk->pasid_valid = !(k->access & MLX5_PORTAL_NO_PASID_KEY);
    mk->pasid = mk->pasid_valid ? pasid : 0;
    h->mk->portal_keys[function]++;
    k->key = mk->obj.id << 8 | mk->variant;
    trace_mlx5_portal_key_make(h->name, function, k->key, k->pd, k->access,
                               mk->pasid, k->start, k->length);
    return MLX5_PORTAL_OK;
}

static void portal_forget_oldest(Mlx5Hca *h)
{
    Mlx5Mkey *mk = g_queue_pop_head(&h->mk->resting);

    mlx5_table_del(&h->mkeys, &mk->obj);
    g_free(mk);
}

void mlx5_portal_key_end(Mlx5Hca *h, Mlx5Mkey *mk)
{
    trace_mlx5_portal_key_end(h->name, mk->portal,
                              mk->obj.id << 8 | mk->variant);
    mk->dead = true;
    mk->free = true;
    h->mk->portal_keys[mk->portal]--;
    if (mk->faults && mk->faults->pending) {
        mlx5_dma_end_key(h, mk->obj.id << 8);
    }
    g_free(mk->faults);
    mk->faults = NULL;
    g_queue_push_tail(&h->mk->resting, mk);
    if (h->mk->resting.length > MLX5_PORTAL_RESTING) {
        portal_forget_oldest(h);
    }
}

Mlx5PortalResult mlx5_portal_key_destroy(Mlx5Hca *h, unsigned function,
                                         uint32_t key)
{
    Mlx5Mkey *mk = portal_key_find(h, function, key);

    if (!mk) {
        return MLX5_PORTAL_BAD_KEY;
    }
    mlx5_portal_key_end(h, mk);
    return MLX5_PORTAL_OK;
}

Mlx5PortalResult mlx5_portal_key_query(Mlx5Hca *h, unsigned function,
                                       Mlx5PortalKey *k,
                                       Mlx5FaultStats *stats)
{
    Mlx5Mkey *mk = portal_key_find(h, function, k->key);

    if (!mk) {
        return MLX5_PORTAL_BAD_KEY;
    }
    k->pd = mk->pd;
    k->access = portal_from_mkey_access(mk);
    k->start = mk->start;
    k->length = mk->len;
    *stats = mk->faults ? *mk->faults : (Mlx5FaultStats) { };
    return MLX5_PORTAL_OK;
}

void mlx5_portal_end_keys(Mlx5Hca *h, unsigned function, bool pasid_only)
{
    Mlx5Obj *o, *next;

    if (!h->mk->portal_keys[function]) {
        return;
    }
    QTAILQ_FOREACH_SAFE(o, &h->mkeys.all, next, next) {
        Mlx5Mkey *mk = (Mlx5Mkey *)o;

        if (mk->portal == function && !mk->dead &&
            (mk->pasid_valid || !pasid_only)) {
            mlx5_portal_key_end(h, mk);
        }
    }
}

void mlx5_portal_pd_gone(Mlx5Hca *h, uint32_t pd)
{
    uint32_t n = 0;
    Mlx5Obj *o, *next;

    for (unsigned i = 1; i <= MLX5_MAX_PORTALS; i++) {
        n += h->mk->portal_keys[i];
    }
    if (!n) {
        return;
    }
    QTAILQ_FOREACH_SAFE(o, &h->mkeys.all, next, next) {
        Mlx5Mkey *mk = (Mlx5Mkey *)o;

        if (mk->portal && !mk->dead && mk->pd == pd) {
            mlx5_portal_key_end(h, mk);
        }
    }
}

uint32_t mlx5_portal_nkeys(Mlx5Hca *h, unsigned function)
{
    return h->mk->portal_keys[function];
}

/* Life */

void mlx5_portal_keys_init(Mlx5Hca *h)
{
    g_queue_init(&h->mk->resting);
}

void mlx5_portal_keys_reset(Mlx5Hca *h)
{
    g_queue_clear(&h->mk->resting);
    memset(h->mk->portal_keys, 0, sizeof(h->mk->portal_keys));
}

void mlx5_portal_keys_fini(Mlx5Hca *h)
{
    mlx5_portal_keys_reset(h);
    g_free(h->mk->variants);
}

/* Migration */

static bool portal_key_needed(void *opaque)
{
    return ((Mlx5Mkey *)opaque)->portal;
}

const VMStateDescription vmstate_mlx5_mkey_portal = {
    .name = "mlx5-mkey/portal",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = portal_key_needed,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(portal, Mlx5Mkey),
        VMSTATE_BOOL(dead, Mlx5Mkey),
        VMSTATE_BOOL(pasid_valid, Mlx5Mkey),
        VMSTATE_UINT32(pasid, Mlx5Mkey),
        VMSTATE_END_OF_LIST()
    }
};

bool mlx5_portal_keys_post_load(Mlx5Hca *h)
{
    Mlx5Obj *o;

    mlx5_portal_keys_reset(h);
    QTAILQ_FOREACH(o, &h->mkeys.all, next) {
        Mlx5Mkey *mk = (Mlx5Mkey *)o;

        if (!mk->portal) {
            continue;
        }
        if (mk->portal > MLX5_MAX_PORTALS || !h->dma->fn[mk->portal].r ||
            mk->mode != MLX5_MKEY_PA || mk->umr_en) {
            return false;
        }
        if (mk->dead) {
            mk->free = true;
            g_queue_push_tail(&h->mk->resting, mk);
        } else {
            h->mk->portal_keys[mk->portal]++;
        }
    }
    return true;
}
