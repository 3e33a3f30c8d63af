/*
 * mlx5 health: what the firmware says of itself, and how a user makes it say so
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qom/object.h"
#include "mlx5-health.h"
#include "mlx5-hca.h"

#define PROP "health-syndrome"

static bool mlx5_health_known(uint8_t syndrome)
{
    switch (syndrome) {
    case MLX5_HEALTH_OK:
    case MLX5_HEALTH_FW_INTERNAL:
    case MLX5_HEALTH_DEAD_IRISC ... MLX5_HEALTH_HIGH_TEMP:
    case MLX5_HEALTH_ICM_POISONED:
    case MLX5_HEALTH_TRUST_LOCKDOWN:
        return true;
    default:
        return false;
    }
}

bool mlx5_health_is_fatal(uint8_t syndrome)
{
    return syndrome != MLX5_HEALTH_OK && syndrome != MLX5_HEALTH_HIGH_TEMP;
}

static void mlx5_health_get(Object *obj, Visitor *v, const char *name,
                            void *opaque, Error **errp)
{
    uint8_t syndrome = mlx5_hca_health(opaque);

    visit_type_uint8(v, name, &syndrome, errp);
}

static void mlx5_health_set(Object *obj, Visitor *v, const char *name,
                            void *opaque, Error **errp)
{
    Mlx5Hca *h = opaque;
    uint8_t syndrome;

    if (!visit_type_uint8(v, name, &syndrome, errp)) {
        return;
    }
    if (!mlx5_health_known(syndrome)) {
        error_setg(errp, "mlx5-hca: 0x%x is no health syndrome: 0, 1, 0x7 to "
                   "0x10, 0x12 and 0x13 are", syndrome);
        return;
    }
    if (mlx5_hca_broken(h) && !mlx5_health_is_fatal(syndrome)) {
        error_setg(errp, "mlx5-hca: syndrome 0x%x is fatal: only a reset, the "
                   "driver's or the function's, mends the device",
                   mlx5_hca_health(h));
        return;
    }
    mlx5_hca_set_health(h, syndrome);
}

void mlx5_health_init(Mlx5Hca *h)
{
    object_property_add(OBJECT(h->dev), PROP, "uint8", mlx5_health_get,
                        mlx5_health_set, NULL, h);
}

void mlx5_health_fini(Mlx5Hca *h)
{
    object_property_del(OBJECT(h->dev), PROP);
}
