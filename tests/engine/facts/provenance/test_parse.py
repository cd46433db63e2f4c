"""Facts of a job, a container and their limits, from texts as Slurm, Docker, Podman and Linux write them."""

from pathlib import Path

import pytest

from engine.facts.provenance.parse import container_facts, container_id, mig_profile, parse_size, slurm_facts
from engine.facts.provenance.read import place_facts, run_facts

ID = "3f5a1c" + "0" * 58
POD = "0b6a1a02-7c34-4f0e-9d7e-3c1a5b9d2e10"
DOCKER_MOUNTS = f"""\
1162 1150 0:91 / / rw,relatime master:435 - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/ABC
1181 1162 254:1 /var/lib/docker/containers/{ID}/resolv.conf /etc/resolv.conf rw,relatime - ext4 /dev/vda1 rw
1182 1162 254:1 /var/lib/docker/containers/{ID}/hostname /etc/hostname rw,relatime - ext4 /dev/vda1 rw
"""
HOST_MOUNTS = (
    f"27 1 254:0 / / rw - ext4 /dev/vda rw\n99 27 0:50 / /var/lib/docker/containers/{ID}/mounts/shm rw - tmpfs shm\n"
)
SLURM_JOB = {
    "SLURM_JOB_ID": "4712",
    "SLURM_ARRAY_JOB_ID": "4711",
    "SLURM_ARRAY_TASK_ID": "3",
    "SLURM_JOB_PARTITION": "gpu",
    "SLURMD_NODENAME": "node07",
    "SLURM_CLUSTER_NAME": "lab",
    "SLURM_CPUS_PER_TASK": "8",
    "SLURM_MEM_PER_NODE": "65536",
}


def test_job_of_slurm_is_named_with_its_array_task_and_its_memory() -> None:
    assert slurm_facts({**SLURM_JOB, "HOME": "/home/ann"}) == {
        "slurm_job_id": "4712",
        "slurm_array_job_id": "4711",
        "slurm_array_task_id": "3",
        "slurm_cluster": "lab",
        "slurm_partition": "gpu",
        "slurm_node": "node07",
        "slurm_cpus_per_task": "8",
        "slurm_memory_per_node_bytes": 64 * 2**30,
    }


def test_nothing_is_said_of_a_job_outside_one_nor_of_a_request_for_all_memory() -> None:
    assert slurm_facts({"HOME": "/home/ann", "SLURM_CONF": "/etc/slurm/slurm.conf"}) == {}
    assert slurm_facts({"SLURM_MEM_PER_NODE": "0"}) == {}


@pytest.mark.parametrize(
    ("text", "size"), [("64000", 64000 * 2**20), ("16G", 2**34), ("512m", 2**29), ("", None), ("16GB", None)]
)
def test_sizes_are_read_as_slurm_writes_them(text: str, size: int | None) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("cgroup", "mountinfo", "found"),
    [
        (f"12:memory:/docker/{ID}\n11:cpu,cpuacct:/docker/{ID}\n", "", ID),
        (f"0::/system.slice/docker-{ID}.scope\n", "", ID),
        (f"5:memory:/kubepods/burstable/pod{POD}/{ID}\n", "", ID),
        (f"0::/machine.slice/libpod-{ID}.scope\n", "", ID),
        ("0::/\n", DOCKER_MOUNTS, ID),
        ("0::/user.slice/user-1000.slice/session-2.scope\n", HOST_MOUNTS, None),
        ("", "", None),
    ],
)
def test_container_is_known_by_its_group_or_its_mounts(cgroup: str, mountinfo: str, found: str | None) -> None:
    assert container_id(cgroup, mountinfo) == found


@pytest.mark.parametrize(
    "cgroup",
    [
        f"4:memory:/kubepods/besteffort/pod{POD}/{ID}",
        f"0::/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/cri-containerd-{ID}.scope",
    ],
)
def test_pod_of_kubernetes_is_named(cgroup: str) -> None:
    facts = container_facts({}, f"1:pids:/\n{cgroup}\n", "", "")
    assert facts == {"container_id": ID, "kubernetes_pod_uid": POD}


def test_digest_of_an_image_is_taken_only_where_its_name_holds_it() -> None:
    digest = "sha256:" + "ab" * 32
    facts = container_facts({"MEMORYMARK_CONTAINER_IMAGE": f"lab/train@{digest}"}, "", "", "")
    assert facts == {"container_image": f"lab/train@{digest}", "container_image_digest": digest}
    assert container_facts({"APPTAINER_CONTAINER": "/images/train.sif"}, "", "", "") == {
        "container_image": "/images/train.sif"
    }


def test_podman_names_image_and_container_in_its_file() -> None:
    containerenv = (
        f'engine="podman-4.9.3"\nname="train"\nid="{ID}"\nimage="docker.io/pytorch/pytorch:2.13"\nrootless=1\n'
    )
    assert container_facts({}, "0::/\n", "", containerenv) == {
        "container_image": "docker.io/pytorch/pytorch:2.13",
        "container_id": ID,
    }


def write(root: Path, texts: dict[str, str]) -> None:
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def test_lowest_limit_of_all_enclosing_groups_holds(tmp_path: Path) -> None:
    job = "sys/fs/cgroup/system.slice/slurmstepd.scope/job_4712"
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/system.slice/slurmstepd.scope/job_4712/step_0\n",
            f"{job}/step_0/memory.max": "max\n",
            f"{job}/memory.max": "17179869184\n",
            "sys/fs/cgroup/system.slice/memory.max": "34359738368\n",
            f"{job}/cpu.max": "150000 100000\n",
            f"{job}/step_0/cpu.max": "max 100000\n",
        },
    )
    assert place_facts({}, tmp_path) == {"cgroup_memory_limit_bytes": 2**34, "cgroup_cpu_cores": 1.5}


def test_limits_of_the_first_version_are_read_also_where_only_the_root_is_mounted(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/self/cgroup": f"9:cpu,cpuacct:/docker/{ID}\n4:memory:/docker/{ID}\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "8589934592\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "200000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        },
    )
    facts = place_facts({}, tmp_path)
    assert (facts["cgroup_memory_limit_bytes"], facts["cgroup_cpu_cores"]) == (2**33, 2.0)


def test_no_limit_is_named_where_none_is_set(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/self/cgroup": "9:cpu:/\n4:memory:/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
    )
    assert place_facts({}, tmp_path) == {}


def test_each_run_has_a_key_of_its_own(tmp_path: Path) -> None:
    first, second = run_facts({}, tmp_path), run_facts({}, tmp_path)
    assert set(first) == {"run_key", "host", "started_at"}
    assert first["run_key"] != second["run_key"]
    assert len(str(first["run_key"])) == 32


def test_instance_of_a_card_is_named_by_its_profile() -> None:
    assert mig_profile("NVIDIA H100 80GB HBM3 MIG 1g.10gb") == "1g.10gb"
    assert mig_profile("NVIDIA A100-SXM4-40GB MIG 1g.5gb+me") == "1g.5gb+me"
    assert mig_profile("NVIDIA H100 80GB HBM3") is None
