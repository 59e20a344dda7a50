# find_package(sluice): targets sluice::sluice_c and sluice::sluice_c_static. Found from where this file lies.
get_filename_component(_sluice_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(sluice_VERSION "@VERSION@")
if(NOT TARGET sluice::sluice_c)
  add_library(sluice::sluice_c SHARED IMPORTED)
  set_target_properties(sluice::sluice_c PROPERTIES
    IMPORTED_LOCATION "${_sluice_prefix}/lib/libsluice_c.so"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${_sluice_prefix}/include")
  add_library(sluice::sluice_c_static STATIC IMPORTED)
  set_target_properties(sluice::sluice_c_static PROPERTIES
    IMPORTED_LOCATION "${_sluice_prefix}/lib/libsluice_c.a"
    INTERFACE_LINK_LIBRARIES "gcc_s;util;rt;pthread;m;dl"
    INTERFACE_INCLUDE_DIRECTORIES "${_sluice_prefix}/include")
endif()
unset(_sluice_prefix)
