"""pip_build.py SOURCE TREE: scripts/pip/fagen_build.py next to a build that is made up; prints what the terminal would show."""
import io
import os
import sys
import time
import types

source, tree = sys.argv[1:]
backend = types.ModuleType("scikit_build_core.build")
for name in ("build_editable", "build_sdist", "get_requires_for_build_editable", "get_requires_for_build_sdist", "get_requires_for_build_wheel",
             "prepare_metadata_for_build_editable", "prepare_metadata_for_build_wheel"):
    setattr(backend, name, None)


def build_wheel(directory, settings, metadata):
    print("built in", settings["build-dir"], "with", settings.get("cmake.define.X"))
    time.sleep(0.2)
    with open(os.path.join(tree, "build.ninja"), "w") as file:
        file.write("build a.o: CXX\nbuild b.o: CXX\nbuild c.a: AR\n")
    with open(os.path.join(tree, ".ninja_log"), "w") as file:
        file.write("# ninja log v6\n0\t1\t2\ta.o\t3\n")
    time.sleep(0.2)
    if settings.get("fails"):
        raise RuntimeError("the build failed")
    return "fagen.whl"


backend.build_wheel = build_wheel
package = types.ModuleType("scikit_build_core")
package.build = backend
sys.modules.update({"scikit_build_core": package, "scikit_build_core.build": backend})
sys.path.insert(0, os.path.join(source, "scripts", "pip"))
import fagen_build  # noqa: E402


class Terminal(io.StringIO):
    def __exit__(self, *_):
        print(self.getvalue().replace("\r\033[K", "\n"))


fagen_build._terminal = Terminal
telling = fagen_build._telling
fagen_build._telling = lambda where: telling(where, every=0.05)
print(fagen_build.build_wheel(tree, {"build-dir": tree, "cmake.define.X": "1"}))
try:
    fagen_build.build_wheel(tree, {"build-dir": tree, "fails": True})
except RuntimeError as error:
    print(error)
os.environ["FAGEN_QUIET"] = "1"
print(fagen_build.build_wheel(tree))
