"""Where compilers and package managers are to keep their caches, as variables of a command's environment. Pure.

Caches always lie in the workspace's own directory. Packages that were fetched before are read from where they are while
there is no network: nothing could be fetched again, and cargo, Maven and Go read a store that they cannot write. With
the network they fetch into the workspace's own, for no command may change what other projects are built from.
"""

from __future__ import annotations

from urllib.parse import quote

from handrail.values.place import Place

_GO_DEFAULT = "https://proxy.golang.org,direct"  # what Go itself has for GOPROXY


def variables(place: Place, home: str, *, network: bool) -> dict[str, str]:
    """Names as the programs document them, over whatever the host has; the directories need not be there yet.

    `home` is the home that commands have.
    """
    cache = place.cache
    found = {
        "XDG_CACHE_HOME": f"{cache}/xdg",
        # In there for those who follow the above; by name, for the host's own variables would be followed first.
        "COURSIER_CACHE": f"{cache}/xdg/coursier",
        "DENO_DIR": f"{cache}/xdg/deno",
        "GOCACHE": f"{cache}/xdg/go-build",
        "PIP_CACHE_DIR": f"{cache}/xdg/pip",
        "UV_CACHE_DIR": f"{cache}/xdg/uv",
        # These need a place to write even to look something up.
        "GRADLE_USER_HOME": f"{cache}/gradle",
        "npm_config_cache": f"{cache}/npm",
    }
    if network:
        found |= {
            "CARGO_HOME": f"{cache}/cargo",
            "GOMODCACHE": f"{cache}/go-mod",
            "GOPROXY": f"file://{quote(home)}/go/pkg/mod/cache/download,{_GO_DEFAULT}",
        }
        if not any(character.isspace() for character in cache):  # mvn takes its options apart at blanks, quotes or not
            found["MAVEN_OPTS"] = f"-Dmaven.repo.local={cache}/m2"
    return found
