# SPDX-License-Identifier: Apache-2.0
#
# Tests of the Python packages: unittest programs in tests/python, run on the tree that the build
# makes (cmake/python.cmake). A file that is not listed fails test_python_listed.
