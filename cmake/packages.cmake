# Debian packages, from the components of install.cmake. packaging/deb builds them and writes the files below
# ${PROJECT_BINARY_DIR}/package: manual pages, completions, changelog, copyright.
set(CPACK_PACKAGE_NAME tenon)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "small PyTorch in C")
set(CPACK_PACKAGE_VENDOR "The Tenon authors")
set(CPACK_PACKAGE_CONTACT "${TENON_MAINTAINER}")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL lib dev programs doc)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(what "Tenon has strided tensors, automatic differentiation, modules, optimizers,
tokenizers, and on top of them BERT, GPT-2, LLaMA, ViT, translation models and
word vectors. Results are the same, bit for bit, for any number of threads.")
set(CPACK_DEBIAN_LIB_PACKAGE_NAME libtenon${soversion})
set(CPACK_DEBIAN_LIB_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIB_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/package/triggers) # in place of scripts
string(CONCAT CPACK_COMPONENT_LIB_DESCRIPTION "small PyTorch in C - shared library\n" "${what}\n\n"
  "This package contains the shared library.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libtenon-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libc6-dev")
if(TENON_DATA)
  string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libutf8proc-dev")
endif()
if(png_names)
  string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libpng-dev, zlib1g-dev")
endif()
if(TENON_HAS_MPI)
  set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "libopenmpi-dev")
endif()
set(CPACK_COMPONENT_DEV_DEPENDS lib)
string(CONCAT CPACK_COMPONENT_DEV_DESCRIPTION "small PyTorch in C - development files\n" "${what}\n\n"
  "This package contains headers, the static library, manual pages of all\n"
  "functions, and the files for find_package and pkg-config.")

set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME tenon)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION science)
set(CPACK_COMPONENT_PROGRAMS_DEPENDS lib)
string(CONCAT CPACK_COMPONENT_PROGRAMS_DESCRIPTION "small PyTorch in C - programs\n" "${what}\n\n"
  "This package contains programs that train and run such models.")

set(CPACK_DEBIAN_DOC_PACKAGE_NAME tenon-doc)
set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOC_PACKAGE_SHLIBDEPS OFF)
string(CONCAT CPACK_COMPONENT_DOC_DESCRIPTION "small PyTorch in C - documentation\n" "${what}\n\n"
  "This package contains the guide, the reference of all names as a site to\n"
  "open offline (html/index.html), and the examples.")

set(made ${PROJECT_BINARY_DIR}/package)
install(DIRECTORY ${made}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT programs)
install(DIRECTORY ${made}/man3/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man3 COMPONENT dev)
install(DIRECTORY ${made}/completions/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  COMPONENT programs)
install(DIRECTORY ${made}/completions/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
  COMPONENT programs)
install(DIRECTORY ${made}/completions/fish/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
  COMPONENT programs)
foreach(component lib dev programs doc)
  string(TOUPPER ${component} upper)
  install(FILES ${made}/copyright ${made}/changelog.Debian.gz
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME} COMPONENT ${component})
endforeach()
set(doc ${CMAKE_INSTALL_DATADIR}/doc/tenon-doc)
install(FILES README.md SECURITY.md ${made}/changelog.gz DESTINATION ${doc} COMPONENT doc)
install(DIRECTORY docs DESTINATION ${doc} COMPONENT doc PATTERN man EXCLUDE PATTERN gdb EXCLUDE PATTERN site EXCLUDE)
install(DIRECTORY ${made}/html DESTINATION ${doc} COMPONENT doc)
install(DIRECTORY examples DESTINATION ${doc} COMPONENT doc PATTERN CMakeLists.txt EXCLUDE PATTERN run EXCLUDE)
include(CPack)
