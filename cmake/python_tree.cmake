# SPDX-License-Identifier: Apache-2.0
#
# cmake -DFROM=python -DTO=build/dev/python -DLIBRARIES_<package>=... -P python_tree.cmake: links to every
# Python file, so that an edit needs no build, and to the libraries that a package's extension finds
# next to itself, as in a wheel. Links whose file is gone are removed.
file(GLOB_RECURSE old LIST_DIRECTORIES false ${TO}/*.py ${TO}/*.pyi ${TO}/*.cpp
     ${TO}/*.sql ${TO}/py.typed)
foreach(link IN LISTS old)
  if(NOT EXISTS ${link})
    file(REMOVE ${link})
  endif()
endforeach()
foreach(package IN ITEMS mtprof mindtorch_v2)
  file(MAKE_DIRECTORY ${TO}/${package})
  foreach(library IN LISTS LIBRARIES_${package})
    get_filename_component(name ${library} NAME)
    file(CREATE_LINK ${library} ${TO}/${package}/${name} SYMBOLIC)
  endforeach()
  file(GLOB_RECURSE files RELATIVE ${FROM} ${FROM}/${package}/*.py ${FROM}/${package}/*.pyi
       ${FROM}/${package}/*.cpp ${FROM}/${package}/*.sql ${FROM}/${package}/py.typed)
  foreach(file IN LISTS files)
    get_filename_component(folder ${TO}/${file} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    if(NOT EXISTS ${TO}/${file})
      file(CREATE_LINK ${FROM}/${file} ${TO}/${file} SYMBOLIC)
    endif()
  endforeach()
endforeach()
