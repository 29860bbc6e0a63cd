# SPDX-License-Identifier: Apache-2.0
"""Tests that write files."""
import os
import tempfile
import unittest


class FolderTest(unittest.TestCase):
    """Has a folder of its own, which goes with the test."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        """A path in the test's folder."""
        return os.path.join(self.folder, name)
