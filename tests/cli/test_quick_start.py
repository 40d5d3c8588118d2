"""What a quick start leaves out is not missed: libraries compute the same, and give it later."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LOOK = """
import json, os, sys
from omnigraph.cli.quick_start import start_quickly

environment = dict(os.environ)
start_quickly()
start_quickly()
assert dict(os.environ) == environment
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
left_out = ["pandas", "dateutil", "ssl", "numpy._typing", "pyarrow._s3fs"]
imported = [name for name in left_out if name in sys.modules]
assert not imported, imported

made = {}
for name in pc.function_registry().list_functions():
    function = getattr(pc, name, None)
    if function is not None:
        made[name] = repr(getattr(function, "__arrow_compute_function__", None))
answers = [
    pc.sum(pa.array([1, 2, 3])).as_py(),
    pc.starts_with(pa.array(["ab", "b"]), pattern="a").to_pylist(),
    pc.and_(pa.array([True, False]), pa.array([True, True])).to_pylist(),
    pc.take(pa.array(["x", "y"]), pa.array([1])).to_pylist(),
    np.linalg.norm(np.array([3.0, 4.0])),
    np.unique(np.array([2, 1, 2])).tolist(),
]
try:
    pc.no_such_function
except AttributeError as error:
    answers.append(str(error))

import ssl, numpy.typing, dateutil.relativedelta, pyarrow.fs
assert ssl.create_default_context() and numpy.typing.NDArray
assert pa.table({"a": [1]}).to_pandas()["a"][0] == 1
print(json.dumps([made, answers]))
"""


def test_a_quick_start_changes_nothing_that_is_computed() -> None:
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    made, answers = json.loads(done.stdout)
    usual: dict[str, Any] = {}
    for name in pc.function_registry().list_functions():
        function = getattr(pc, name, None)
        if function is not None:
            usual[name] = repr(getattr(function, "__arrow_compute_function__", None))
    assert made == usual
    assert len(usual) > 200
    assert answers == [
        pc.sum(pa.array([1, 2, 3])).as_py(),
        [True, False],
        [True, False],
        ["y"],
        np.linalg.norm(np.array([3.0, 4.0])),
        [1, 2],
        "module 'pyarrow.compute' has no attribute 'no_such_function'",
    ]


LATER = """
import omnigraph.cli.main
from omnigraph.cli.quick_start import start_quickly
from omnigraph.lazy import Later

start_quickly()
import ast, inspect, ipaddress, pickle, sys, traceback
names = ["ast", "inspect", "ipaddress", "pickle", "traceback"]
assert all(isinstance(sys.modules[name], Later) for name in names)
assert issubclass(ast.Name, ast.AST) and ast.literal_eval("[1]") == [1]
assert str(ipaddress.ip_address("::1")) == "::1"
assert list(inspect.signature(lambda a: a).parameters) == ["a"]
try:
    {}["gone"]
except KeyError:
    assert "KeyError: 'gone'" in traceback.format_exc()
import numpy as np
assert pickle.loads(pickle.dumps(np.arange(3))).tolist() == [0, 1, 2]
assert not any(isinstance(sys.modules[name], Later) for name in names)
"""


def test_a_module_that_is_imported_later_is_the_same_module() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LATER], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
