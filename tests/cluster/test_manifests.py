"""The examples of real clusters: valid for Ray's launcher, and closed to outsiders."""

import json
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="comes with Ray: pip install '.[cluster]'")

EXAMPLES = Path(__file__).parents[2] / "examples" / "cluster"


def read(name: str) -> list[Any]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text("utf-8")))


def test_launcher_yaml_matches_ray_schema() -> None:
    ray = pytest.importorskip("ray", reason="pip install '.[cluster]'")
    jsonschema = pytest.importorskip("jsonschema")
    (found,) = read("launcher.yaml")
    schema = Path(ray.__file__).parent / "autoscaler" / "ray-schema.json"
    jsonschema.validate(found, json.loads(schema.read_text("utf-8")))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found | {"no_such_key": 1}, json.loads(schema.read_text("utf-8")))
    for key in ("head_start_ray_commands", "worker_start_ray_commands"):
        command = found[key][-1]
        assert "RAY_AUTH_MODE=token" in command
        assert "--disable-usage-stats" in command
    assert "--include-dashboard=false" in found["head_start_ray_commands"][-1]


def test_kuberay_pods_have_token_and_no_privileges() -> None:
    cluster, policy = read("kuberay.yaml")
    spec = cluster["spec"]
    assert spec["headGroupSpec"]["rayStartParams"]["include-dashboard"] == "false"
    assert spec["headGroupSpec"]["serviceType"] == "ClusterIP"
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        (container,) = pod["containers"]
        variables = {each["name"]: each for each in container["env"]}
        assert variables["RAY_AUTH_MODE"]["value"] == "token"
        assert "secretKeyRef" in variables["RAY_AUTH_TOKEN"]["valueFrom"]
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        mounted = {each["name"] for each in container["volumeMounts"]}
        assert mounted == {each["name"] for each in pod["volumes"]}
    labels = {"ray.io/cluster": cluster["metadata"]["name"]}
    assert policy["spec"]["podSelector"]["matchLabels"] == labels
    ingress = [each for each in policy["spec"]["ingress"] if "ports" not in each]
    assert ingress == [{"from": [{"podSelector": {"matchLabels": labels}}]}]
