"""A saved function gives the same bits in a process that loads NumPy and few modules of ours."""

import numpy as np
import pytest

from cgraph.engine.cpu.engine import CpuEngine
from cgraph.kernels.target import host_target
from tests.support.kernels import TARGETS
from tests.support.saved import CASES, Case, network, same_in_a_fresh_process, script

FEW = """
cgraph cgraph.collector
cgraph.engine cgraph.engine.cpu cgraph.engine.cpu.code cgraph.engine.cpu.cores cgraph.engine.cpu.instance
cgraph.engine.cpu.direct
cgraph.engine.cpu.program cgraph.engine.cpu.rows cgraph.engine.cpu.threads cgraph.engine.instance cgraph.errors
cgraph.dtypes cgraph.dtypes.convert cgraph.dtypes.storage cgraph.kernels.isa cgraph.kernels.isa.architectures
cgraph.kernels.isa.records cgraph.ir cgraph.ir.labels cgraph.ir.spec cgraph.kernels
cgraph.kernels.code_image cgraph.kernels.control cgraph.kernels.families cgraph.kernels.kernel cgraph.kernels.mapped
cgraph.kernels.signature cgraph.memory cgraph.memory.incremental cgraph.memory.tables cgraph.record cgraph.running
cgraph.running.arguments cgraph.running.output_arrays cgraph.running.results cgraph.running.runner
cgraph.saved cgraph.saved.folder
cgraph.saved.function cgraph.saved.layout cgraph.saved.manifest cgraph.saved.parts cgraph.saved.program
cgraph.saved.read cgraph.slots cgraph.storage cgraph.storage.cell cgraph.storage.shared_arenas cgraph.system
cgraph.system.addresses cgraph.system.alignment cgraph.system.array_fields
cgraph.system.bounded_cache cgraph.system.c_library
cgraph.system.fair_lock cgraph.system.file_ownership cgraph.system.folders cgraph.system.machine cgraph.system.mapping
cgraph.system.result_memory cgraph.terminal cgraph.tracebacks cgraph.version
""".split()
FEW.append(f"cgraph.kernels.isa.{host_target().architecture}")
NETWORKS = "resnet18 resnet50 mobilenet_v1 mobilenet_v2 squeezenet1_1 densenet121 inception_v3 lenet".split()


@pytest.mark.parametrize("threads", [1, 2])
def test_results_and_cells_have_the_same_bits_and_little_is_loaded(tmp_path, threads):
    modules = same_in_a_fresh_process([make() for make in CASES.values()], tmp_path, threads)
    assert sorted(modules) == sorted(FEW)


@pytest.mark.parametrize("target", TARGETS)
def test_code_for_every_target_runs(tmp_path, target):
    same_in_a_fresh_process([script(CpuEngine(target)), network(engine=CpuEngine(target))], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3, 4])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_have_the_same_bits(tmp_path, name, threads):
    same_in_a_fresh_process([network(name)], tmp_path, threads)


def test_equal_weights_lie_once(tmp_path):
    case: Case = CASES["recurrent"]()
    case.function.save(tmp_path / "saved")
    (file,) = tmp_path.glob("saved/constants-*.bin")
    code = case.function.program.code
    distinct = {x.tobytes() for x in code.constants}
    assert file.stat().st_size <= sum(-(-len(x) // 64) * 64 for x in distinct)
    large = [x.tobytes() for x in code.constants if x.nbytes > 1024]
    assert len(large) == len(set(large)), "a packed weight is held twice"
    assert np.prod(case.calls[0][0].shape) > 0
