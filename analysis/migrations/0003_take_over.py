"""Rows of before: a Host for each name, what a run asks for, an attempt for each run that had one."""

from django.db import migrations

KEPT_BY_MAIN_PROCESS = "wake device-"  # the schedules of 0.1, whose work the worker's main process does now


def take_over(apps, schema_editor):
    model = apps.get_model
    Host, Device, Run, Attempt = (model("analysis", name) for name in ("Host", "Device", "Run", "Attempt"))
    for device in Device.objects.order_by("-last_seen_at", "pk"):
        device.host, _ = Host.objects.get_or_create(name=device.host_name)
        if device.uuid and Device.objects.filter(uuid=device.uuid, host__isnull=False).exclude(pk=device.pk).exists():
            device.uuid = ""  # the same card under an earlier name of its host
        device.save()
    for device in Device.objects.all():
        Run.objects.filter(device=device).update(asks_device=device, asks_kind=device.kind, uses_device_price=False)
    tried = Run.objects.filter(attempt__gt=0, started_at__isnull=False)
    Attempt.objects.bulk_create(map(_last_attempt(Attempt), tried.iterator()), batch_size=500)
    model("django_q", "Schedule").objects.filter(name__startswith=KEPT_BY_MAIN_PROCESS).delete()


def _last_attempt(Attempt):
    def of(run):
        return Attempt(
            run=run,
            number=run.attempt,
            device_id=run.device_id,
            owner=run.owner,
            started_at=run.started_at,
            ended_at=run.finished_at,
            outcome="" if run.state in ("queued", "running") else run.state,
            cause=run.error_code,
            exit_status=run.exit_status,
        )

    return of


def give_back(apps, schema_editor):
    Device, Run = (apps.get_model("analysis", name) for name in ("Device", "Run"))
    for device in Device.objects.select_related("host"):
        device.host_name = device.host.name
        device.save()
    for run in Run.objects.filter(device=None):  # before, every run had a device
        run.device = run.asks_device or Device.objects.filter(kind=run.asks_kind).first()
        run.save(update_fields=["device"])


class Migration(migrations.Migration):
    dependencies = [("analysis", "0002_fleet"), ("django_q", "0018_task_success_index")]

    operations = [migrations.RunPython(take_over, give_back)]
