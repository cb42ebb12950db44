"""A recipe for Conan 2, for the checkout that contains it: conan create packaging/conan"""
import os

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load


class Tenon(ConanFile):
    name = "tenon"
    description = "A small PyTorch in C"
    license = "MIT"
    topics = ("deep-learning", "transformers", "autograd")
    package_type = "static-library"
    languages = "C"
    settings = "os", "arch", "compiler", "build_type"
    options = {"fPIC": [True, False], "models": [True, False], "text": [True, False], "png": [True, False]}
    default_options = {"fPIC": True, "models": True, "text": True, "png": False}

    @property
    def root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        header = load(self, os.path.join(self.root, "core", "core.h"))
        parts = [line.split()[2] for line in header.splitlines() if line.startswith("#define TN_VERSION_")]
        self.version = ".".join(parts)

    def export_sources(self):
        for pattern in ("*.c", "*.h", "*.cmake", "*.in", "*.map", "CMakeLists.txt", "LICENSE"):
            copy(self, pattern, self.root, self.export_sources_folder, excludes=("build/*", "out/*", "tests/*"))

    def validate(self):
        if self.options.models and not self.options.text:
            raise Exception("the option models needs text")

    def requirements(self):
        if self.options.text:
            self.requires("utf8proc/2.9.0")
        if self.options.png:
            self.requires("libpng/[>=1.6 <2]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for name, value in {"TESTS": False, "PROGRAMS": False, "DEVELOPER": False, "MPI": False,
                            "DATA": self.options.text, "PARALLEL": self.options.text, "MODELS": self.options.models,
                            "PNG": self.options.png}.items():
            toolchain.cache_variables["TENON_" + name] = "ON" if value else "OFF"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build(target="tenon_static")
        cmake.build(target="tenon")

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")  # the package has its own tenon-config.cmake
        self.cpp_info.builddirs = ["lib/cmake/tenon"]
        self.cpp_info.libs = ["tenon"]
        self.cpp_info.system_libs = ["m", "pthread"]
