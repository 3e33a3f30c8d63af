/*
 * A small mlx5 driver for qtests: the machine moves to another QEMU
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qobject/qdict.h"
#include "mlx5-driver.h"

enum { WAIT_US = 60 * G_USEC_PER_SEC };

bool qmlx5_migrated(QTestState *qts)
{
    gint64 end = g_get_monotonic_time() + WAIT_US;

    for (;;) {
        QDict *rsp = qtest_qmp(qts, "{ 'execute': 'query-migrate' }");
        g_autofree char *status = g_strdup(qdict_get_try_str(
            qdict_get_qdict(rsp, "return"), "status"));

        qobject_unref(rsp);
        if (!g_strcmp0(status, "failed") || !g_strcmp0(status, "completed")) {
            return *status == 'c';
        }
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        g_usleep(10000);
    }
}

QMlx5Host *qmlx5_migrate(QMlx5Host *from, const char *devices)
{
    g_autofree char *dir = g_dir_make_tmp("mlx5-XXXXXX", NULL);
    g_autofree char *uri = g_strdup_printf("unix:%s/s", dir);
    g_autofree char *path = g_strdup_printf("%s/s", dir);
    g_autofree char *args = g_strdup_printf("%s -incoming %s", devices, uri);
    QMlx5Host *to = qmlx5_host(args);

    qtest_qmp_assert_success(from->qts, "{ 'execute': 'migrate', "
                             "'arguments': { 'uri': %s } }", uri);
    g_assert_true(qmlx5_migrated(from->qts));
    qtest_qmp_eventwait(to->qts, "RESUME");
    to->next = from->next;        /* what is allocated moved along */
    qmlx5_host_free(from);
    unlink(path);
    rmdir(dir);
    return to;
}

void qmlx5_move(QMlx5 *d)
{
    qmlx5_moved(d, qmlx5_migrate(d->host, QMLX5_DEVICE));
}
