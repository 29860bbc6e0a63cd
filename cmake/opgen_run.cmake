# SPDX-License-Identifier: Apache-2.0
#
# cmake -DOPGEN=program -DWHAT=header -DFILE=path -P opgen_run.cmake: writes the file if it changes.
execute_process(COMMAND ${OPGEN} ${WHAT} OUTPUT_VARIABLE text RESULT_VARIABLE status)
if(status)
  message(FATAL_ERROR "opgen ${WHAT} failed")
endif()
file(WRITE ${FILE} "${text}")
