# SPDX-License-Identifier: Apache-2.0
"""mtprof's flight recorder with stock PyTorch as its host."""
import json
import sys

import torch
from mtprof import flight as _flight
from mtprof.results import HOST_KEY
from mtprof.torch import _cuda, _library, _profiler

__all__ = ["flight_recorder"]


class flight_recorder(_flight.flight_recorder):
    __doc__ = _flight.flight_recorder.__doc__

    def start(self):
        """Starts to record; returns the recorder."""
        _library.set_options(_library.ANNOTATIONS if "torch._dynamo" in sys.modules else 0)
        _cuda.begin_window(False)
        super().start()
        about = _library.info()
        self._add_metadata(HOST_KEY, json.dumps({
            "name": "torch", "version": torch.__version__, "tier": about.tier, "missing": about.missing}), True)
        place = _profiler._distributed()
        if place is not None:
            self._add_metadata("distributedInfo", json.dumps(place), True)
        return self

    def stop(self):
        """Ends the recording. The ring stays in the folder as a complete trace."""
        super().stop()
        _library.set_options(0)
