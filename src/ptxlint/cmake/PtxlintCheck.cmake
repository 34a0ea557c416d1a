# ptxlint_check(TARGET [ARCHITECTURE <arch>] [OPTIONS <option>...] [ALL])
#
# Adds the target `TARGET_ptxlint`, which compiles the CUDA sources of TARGET to PTX, with its include folders,
# definitions and options, and lints them. ARCHITECTURE is one that nvcc makes PTX for, such as 90a; without it the first
# of the target's own. OPTIONS go to `ptxlint check`. With ALL it is part of the default build, which then fails on
# findings.
#
#     execute_process(COMMAND ptxlint cmake-dir OUTPUT_VARIABLE ptxlint_dir OUTPUT_STRIP_TRAILING_WHITESPACE)
#     list(APPEND CMAKE_MODULE_PATH "${ptxlint_dir}")
#     include(PtxlintCheck)
#     ptxlint_check(my_kernels ARCHITECTURE 90a OPTIONS --fail-on error)

include_guard(GLOBAL)
find_program(PTXLINT_EXECUTABLE ptxlint DOC "The ptxlint program")

function(ptxlint_check target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ALL" "ARCHITECTURE" "OPTIONS")
  if(NOT PTXLINT_EXECUTABLE)
    message(FATAL_ERROR "ptxlint_check: ptxlint was not found; pip install ptxlint, or set PTXLINT_EXECUTABLE")
  endif()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ptxlint_check: unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  list(FILTER sources INCLUDE REGEX "\\.cu$")
  if(NOT sources)
    message(FATAL_ERROR "ptxlint_check: ${target} has no CUDA source")
  endif()
  list(TRANSFORM sources PREPEND "${folder}/" REGEX "^[^/]")
  if(NOT arg_ARCHITECTURE)
    get_target_property(architectures ${target} CUDA_ARCHITECTURES)
    list(GET architectures 0 arg_ARCHITECTURE)
    string(REGEX REPLACE "-.*" "" arg_ARCHITECTURE "${arg_ARCHITECTURE}")
  endif()

  set(ptx ${target}_ptxlint_modules)
  add_library(${ptx} OBJECT EXCLUDE_FROM_ALL ${sources})
  set_target_properties(
    ${ptx} PROPERTIES CUDA_PTX_COMPILATION ON CUDA_ARCHITECTURES "${arg_ARCHITECTURE}-virtual"
                      CUDA_SEPARABLE_COMPILATION OFF)
  foreach(property CUDA_STANDARD CUDA_EXTENSIONS)
    get_target_property(value ${target} ${property})
    if(NOT value MATCHES "NOTFOUND")
      set_property(TARGET ${ptx} PROPERTY ${property} ${value})
    endif()
  endforeach()
  target_include_directories(${ptx} PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  target_compile_definitions(${ptx} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
  target_compile_options(${ptx} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_OPTIONS> -lineinfo)

  set(all)
  if(arg_ALL)
    set(all ALL)
  endif()
  add_custom_target(
    ${target}_ptxlint ${all}
    COMMAND "${PTXLINT_EXECUTABLE}" check ${arg_OPTIONS} "$<TARGET_OBJECTS:${ptx}>"
    DEPENDS ${ptx} "$<TARGET_OBJECTS:${ptx}>"
    COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Linting the PTX of ${target}")
endfunction()
