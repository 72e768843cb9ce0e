"""Where caches go, with the network and without."""

from __future__ import annotations

from handrail.sandbox.caches import variables
from handrail.values.place import Place

PLACE = Place(workspace="/w", session="/s/1", cache="/s/cache")


def test_without_a_network_packages_are_read_from_where_they_are() -> None:
    assert variables(PLACE, "/home/a", network=False) == {
        "XDG_CACHE_HOME": "/s/cache/xdg",
        "COURSIER_CACHE": "/s/cache/xdg/coursier",
        "DENO_DIR": "/s/cache/xdg/deno",
        "GOCACHE": "/s/cache/xdg/go-build",
        "PIP_CACHE_DIR": "/s/cache/xdg/pip",
        "UV_CACHE_DIR": "/s/cache/xdg/uv",
        "GRADLE_USER_HOME": "/s/cache/gradle",
        "npm_config_cache": "/s/cache/npm",
    }


def test_with_the_network_they_are_fetched_into_the_workspaces_own_cache() -> None:
    added = variables(PLACE, "/home/a b", network=True).items() - variables(PLACE, "/home/a b", network=False).items()
    assert dict(added) == {
        "CARGO_HOME": "/s/cache/cargo",
        "GOMODCACHE": "/s/cache/go-mod",
        "GOPROXY": "file:///home/a%20b/go/pkg/mod/cache/download,https://proxy.golang.org,direct",
        "MAVEN_OPTS": "-Dmaven.repo.local=/s/cache/m2",
    }


def test_maven_is_given_no_path_that_it_would_take_apart() -> None:
    place = Place(workspace="/w", session="/s/1", cache="/my state/cache")
    assert "MAVEN_OPTS" not in variables(place, "/home/a", network=True)
    assert variables(place, "/home/a", network=True)["CARGO_HOME"] == "/my state/cache/cargo"
