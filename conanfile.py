# fagen: Conan's recipe of the runtime: `conan create .` in the repository. Compiler and tools are the .deb's and the wheel's.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.system.package_manager import Apt, Dnf


class Fagen(ConanFile):
    name = "fagen"
    description = "The runtime of attention kernels that fagen compiles from specs"
    license = "Apache-2.0 WITH LLVM-exception"
    topics = ("cuda", "attention", "gpu")
    settings = "os", "arch", "compiler", "build_type"
    exports_sources = ("CMakeLists.txt", "cmake/*", "runtime/*", "LICENSE", "THIRD-PARTY-LICENSES")

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "CMakeLists.txt"))
        self.version = re.search(r"project\(fagen VERSION ([0-9.]+)", text)[1]

    def system_requirements(self):  # xxhash.h, which the runtime has inside
        Apt(self).install(["libxxhash-dev"])
        Dnf(self).install(["xxhash-devel"])

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("COMPILER", "TOOLS", "TESTS"):
            toolchain.cache_variables[f"FAGEN_BUILD_{part}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        cmake = CMake(self)
        for component in ("runtime", "development"):
            cmake.install(component=component)
        copy(self, "*LICENSE*", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # The package's own files for find_package have fagen_add_kernels, too, and the static library next to the shared one:
        # COMPONENTS of a consumer's find_package choose.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "fagen")]
        self.cpp_info.libs = ["fagen"]
        self.cpp_info.system_libs = ["dl", "pthread"]
