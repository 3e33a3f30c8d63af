/*
 * mlx5 objects by number
 *
 * Numbers are given out in a circle, so that a freed one comes back late and
 * a stale name seldom hits a new object. The slots grow with the number of
 * objects and are at most half full until the table's range is exhausted:
 * finding a free number takes a few steps, and memory follows use.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "mlx5-core.h"

enum { TABLE_MIN_SLOTS = 64 };

void mlx5_table_init(Mlx5Hca *h, Mlx5Table *t, const char *kind,
                     uint32_t first, uint32_t count)
{
    *t = (Mlx5Table) {
        .kind = kind, .first = first, .limit = first + count,
        .owners = &h->uctxs,
    };
    QTAILQ_INIT(&t->all);
    QLIST_INSERT_HEAD(&h->tables, t, on_hca);
}

void mlx5_table_fini(Mlx5Table *t)
{
    QLIST_REMOVE(t, on_hca);
    g_free(t->slot);
    t->slot = NULL;
    t->nslots = 0;
    t->count = 0;
    QTAILQ_INIT(&t->all);
}

static void table_resize(Mlx5Table *t, uint32_t want)
{
    uint32_t n = MIN(MAX(want, TABLE_MIN_SLOTS), t->limit - t->first);

    if (n == t->nslots) {
        return;
    }
    t->slot = g_renew(Mlx5Obj *, t->slot, n);
    if (n > t->nslots) {
        memset(t->slot + t->nslots, 0, (n - t->nslots) * sizeof(*t->slot));
    }
    t->nslots = n;
}

/* The user context that an object belongs to; NULL: the kernel's. */
static Mlx5Obj *table_owner(const Mlx5Table *t, const Mlx5Obj *o)
{
    return o->uid ? mlx5_table_get(t->owners, o->uid) : NULL;
}

static void table_put(Mlx5Table *t, Mlx5Obj *o)
{
    t->slot[o->id - t->first] = o;
    t->count++;
    mlx5_obj_ref(table_owner(t, o), 1);
    QTAILQ_INSERT_TAIL(&t->all, o, next);
}

bool mlx5_table_add(Mlx5Table *t, Mlx5Obj *o)
{
    uint32_t n;

    if (t->count >= t->limit - t->first) {
        return false;
    }
    if (t->count >= t->nslots / 2) {
        table_resize(t, MIN((uint64_t)t->nslots * 2, UINT32_MAX));
    }
    for (n = t->hint < t->nslots ? t->hint : 0; t->slot[n];
         n = n + 1 < t->nslots ? n + 1 : 0) {
        /* Ends: at least one slot is free. */
    }
    t->hint = n + 1;
    o->id = t->first + n;
    table_put(t, o);
    return true;
}

bool mlx5_table_add_at(Mlx5Table *t, Mlx5Obj *o)
{
    if (o->id < t->first || o->id >= t->limit || mlx5_table_get(t, o->id)) {
        return false;
    }
    if (o->id - t->first >= t->nslots) {
        table_resize(t, pow2ceil(o->id - t->first + 1));
    }
    table_put(t, o);
    return true;
}

void mlx5_table_del(Mlx5Table *t, Mlx5Obj *o)
{
    assert(mlx5_table_get(t, o->id) == o);
    t->slot[o->id - t->first] = NULL;
    t->count--;
    mlx5_obj_ref(table_owner(t, o), -1);
    QTAILQ_REMOVE(&t->all, o, next);
    if (!t->count) {
        table_resize(t, MIN(t->nslots, 16 * TABLE_MIN_SLOTS));
    }
}

void mlx5_table_free_all(Mlx5Table *t)
{
    Mlx5Obj *o;

    while ((o = QTAILQ_FIRST(&t->all))) {
        mlx5_table_del(t, o);
        g_free(o);
    }
}

bool mlx5_table_post_load(Mlx5Table *t)
{
    uint32_t top = 0, count = 0;
    Mlx5Obj *o;

    QTAILQ_FOREACH(o, &t->all, next) {
        if (o->id < t->first || o->id >= t->limit) {
            return false;
        }
        top = MAX(top, o->id - t->first + 1);
        count++;
    }
    g_free(t->slot);
    t->slot = NULL;
    t->nslots = 0;
    t->count = count;
    if (!count) {
        return true;
    }
    /* At most half full, as mlx5_table_add() keeps it. */
    table_resize(t, pow2ceil(MAX(top, MIN(count, UINT32_MAX / 4) * 2)));
    QTAILQ_FOREACH(o, &t->all, next) {
        if (t->slot[o->id - t->first]) {
            return false;
        }
        t->slot[o->id - t->first] = o;
    }
    return true;
}

static void tables_get(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    Mlx5Hca *h = opaque;
    Mlx5Table *t;

    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    QLIST_FOREACH(t, &h->tables, on_hca) {
        uint32_t count = t->count;

        visit_type_uint32(v, t->kind, &count, &error_abort);
    }
    visit_check_struct(v, &error_abort);
    visit_end_struct(v, NULL);
}

void mlx5_tables_add_property(Mlx5Hca *h)
{
    object_property_add(OBJECT(h->dev), "objects", "Mlx5Objects", tables_get,
                        NULL, NULL, h);
}

void mlx5_tables_del_property(Mlx5Hca *h)
{
    object_property_del(OBJECT(h->dev), "objects");
}
