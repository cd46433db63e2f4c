"""The manifest of docs/clusters.md, and the output of `fit` that it shows."""

import kubernetes_validate
import yaml

from engine.cli.cluster_request import request_lines
from engine.cli.fit import COMMAND
from engine.report.address import ADDRESS_VARIABLE, TOKEN_VARIABLE
from engine.report.files import FOLDER_VARIABLE
from tests.clusters.document import blocks, section
from tests.engine.cli.test_fit_command import A100

_KUBERNETES = kubernetes_validate.latest_version()
"""The schemas of this release decide: every member must be one that it knows."""


def test_the_manifest_is_a_job_that_requests_one_card_and_keeps_its_result():
    ((kind, text),) = blocks("Kubernetes")
    job = yaml.safe_load(text)
    assert (kind, job["apiVersion"], job["kind"]) == ("yaml", "batch/v1", "Job")
    pod = job["spec"]["template"]["spec"]
    kubernetes_validate.validate(job, _KUBERNETES, strict=True)
    (container,) = pod["containers"]
    assert pod["restartPolicy"] == "Never"
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 1}
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert container["command"][-1].startswith(container["volumeMounts"][0]["mountPath"])
    given = {each["name"]: each for each in container["env"]}
    assert given.keys() == {ADDRESS_VARIABLE, TOKEN_VARIABLE, FOLDER_VARIABLE}
    assert "secretKeyRef" in given[TOKEN_VARIABLE]["valueFrom"]
    assert given[FOLDER_VARIABLE]["value"].startswith(container["volumeMounts"][0]["mountPath"])
    assert "Not run on a cluster here" in section("Kubernetes")


def test_the_request_for_kubernetes_is_a_part_of_such_a_pod():
    ((_, text),) = blocks("Kubernetes")
    pod = yaml.safe_load(text)["spec"]["template"]["spec"]
    made = yaml.safe_load("\n".join(request_lines(A100, "k8s")))["spec"]
    alone = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "training"}, "spec": made}
    kubernetes_validate.validate(alone, _KUBERNETES, strict=True)
    assert made["nodeSelector"] == pod["nodeSelector"]
    assert made["containers"][0]["resources"]["limits"] == pod["containers"][0]["resources"]["limits"]


def test_the_options_that_the_page_names_exist():
    known = {name for param in COMMAND.params for name in param.opts}
    assert {"--gpu", "--as", "--result", "--gpu-type-names"} <= known
