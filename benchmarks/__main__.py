"""All tables, or some: ``python -m benchmarks [networks|layers|scripts|start|compiling|loading]``, in about an hour."""

import os
import sys
from datetime import date

from benchmarks import compiling, layers, loading, networks, scripts, start
from benchmarks.peak import peak
from cgraph.engine.cpu.cores import cores
from cgraph.engine.cpu.engine import cpu_name
from cgraph.kernels.target import host_target

TABLES = {
    "networks": lambda: networks.main([]),
    "layers": lambda: layers.main(""),
    "scripts": lambda: scripts.main([]),
    "start": lambda: start.main([]),
    "compiling": lambda: compiling.main([]),
    "loading": lambda: loading.main([]),
}


def main(wanted: list[str]) -> None:
    print(f"{date.today()}, {cpu_name()}, {cores()} cores, {host_target().name}")
    print(f"multiply-add peak of one thread: {peak('f4'):.0f} GF/s float32, {peak('f8'):.0f} GF/s float64")
    for name in wanted or TABLES:
        print(f"\n## {name} (load {os.getloadavg()[0]:.1f})\n")
        TABLES[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
