# An overlay port: vcpkg install tenon --overlay-ports=packaging/vcpkg, in a checkout, whose sources it builds.
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH packaging)
cmake_path(GET packaging PARENT_PATH SOURCE_PATH)

vcpkg_check_features(OUT_FEATURE_OPTIONS options FEATURES
  text TENON_DATA text TENON_PARALLEL models TENON_MODELS png TENON_PNG)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${options} -DTENON_TESTS=OFF -DTENON_PROGRAMS=OFF -DTENON_MPI=OFF -DTENON_DEVELOPER=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME tenon CONFIG_PATH lib/cmake/tenon)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
