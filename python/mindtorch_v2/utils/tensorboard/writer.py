# SPDX-License-Identifier: Apache-2.0
"""Event files of TensorBoard: protocol messages come from the package tensorboard, the numbers from here."""

import os
import socket
import time

import mindtorch_v2 as torch
import numpy as np
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2, types_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter


def _array(value):
    """A tensor, an array or a number as an array of NumPy."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = (value.float() if value.dtype in (torch.float16, torch.bfloat16) else value).numpy()
    return np.asarray(value)


def _number(value):
    array = _array(value)
    if array.size != 1:
        raise AssertionError(f"scalar should be 0D, got {array.shape}")
    return float(array.reshape(()))


def _summary(**parts):
    return summary_pb2.Summary(value=[summary_pb2.Summary.Value(**parts)])


def _text_of(text):
    """A text as the plugin wants it: a tensor of strings."""
    metadata = summary_pb2.SummaryMetadata(
        plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="text", content=b"")
    )
    tensor = tensor_pb2.TensorProto(
        dtype=types_pb2.DT_STRING,
        string_val=[text.encode("utf8")],
        tensor_shape=tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=1)]),
    )
    return metadata, tensor


def _histogram(values, bins, max_bins):
    values = _array(values).reshape(-1).astype(float)
    if values.size == 0:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(values, bins=_default_bins() if bins == "tensorflow" else bins)
    if max_bins is not None and len(counts) > max_bins:
        step = -(-len(counts) // max_bins)
        counts = np.add.reduceat(counts, np.arange(0, len(counts), step))
        limits = np.append(limits[:-1][::step], limits[-1])
    filled = np.nonzero(counts)[0]
    first, last = filled[0], filled[-1]
    return summary_pb2.HistogramProto(
        min=values.min(),
        max=values.max(),
        num=len(values),
        sum=values.sum(),
        sum_squares=values.dot(values),
        bucket_limit=limits[first + 1 : last + 2].tolist(),
        bucket=counts[first : last + 1].tolist(),
    )


def _default_bins():
    """Limits that grow by a tenth, from 1e-12 to 1e20, on both sides of zero."""
    steps = np.arange(0, int(np.log(1e32) / np.log(1.1)) + 1)
    limits = 1e-12 * 1.1**steps
    return np.concatenate([-limits[::-1], [0.0], limits])


def _as_image(tensor, formats):
    """Height, width and channels in bytes, whatever the order of dimensions was."""
    array = _array(tensor)
    formats = formats.upper()
    if array.ndim != len(formats):
        raise AssertionError(f"size of input tensor and input format are different: {array.shape} and {formats}")
    if "N" in formats:  # a grid of 8 images in a row
        array = array.transpose([formats.index(letter) for letter in "NHWC"])
        columns = min(8, len(array))
        rows = -(-len(array) // columns)
        n, height, width, channels = array.shape
        grid = np.zeros((rows, height, columns, width, channels), array.dtype)
        for i in range(n):
            grid[i // columns, :, i % columns] = array[i]
        array = grid.reshape(rows * height, columns * width, channels)
    elif "C" in formats:
        array = array.transpose([formats.index(letter) for letter in "HWC"])
    else:
        array = array.transpose([formats.index(letter) for letter in "HW"])[:, :, None]
    if array.shape[2] == 1:
        array = np.repeat(array, 3, axis=2)
    scale = 1 if array.dtype == np.uint8 else 255
    return (array * scale).clip(0, 255).astype(np.uint8)


def _image(tensor, formats):
    from io import BytesIO

    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("SummaryWriter.add_image() needs the package pillow") from error
    array = _as_image(tensor, formats)
    buffer = BytesIO()
    Image.fromarray(array).save(buffer, format="PNG")
    height, width, channels = array.shape
    return summary_pb2.Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=buffer.getvalue()
    )


class FileWriter:
    """One event file in a folder."""

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        self._folder = str(log_dir)
        self._writer = EventFileWriter(self._folder, max_queue, flush_secs, filename_suffix)

    def get_logdir(self):
        """The folder."""
        return self._folder

    def add_event(self, event, step=None, walltime=None):
        """Writes a message of event_pb2."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self._writer.add_event(event)

    def add_summary(self, summary, global_step=None, walltime=None):
        """Writes a message of summary_pb2."""
        self.add_event(event_pb2.Event(summary=summary), global_step, walltime)

    def flush(self):
        """Writes what waits."""
        self._writer.flush()

    def close(self):
        """Writes what waits and closes the file."""
        self._writer.close()

    def reopen(self):
        """Not needed: the file stays open."""


class SummaryWriter:
    """Writes event files into log_dir (runs/<time>_<host><comment> if none is given) for TensorBoard."""

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        if not log_dir:
            moment = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{moment}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step = purge_step
        self._options = (max_queue, flush_secs, filename_suffix)
        self.file_writer = None
        self.all_writers = {}
        self._get_file_writer()

    def _get_file_writer(self, folder=None):
        folder = folder or self.log_dir
        if folder not in self.all_writers:
            self.all_writers[folder] = FileWriter(folder, *self._options)
            if self.purge_step is not None and folder == self.log_dir:
                start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
                self.all_writers[folder].add_event(event_pb2.Event(session_log=start), self.purge_step)
        if folder == self.log_dir:
            self.file_writer = self.all_writers[folder]
        return self.all_writers[folder]

    def _add(self, summary, global_step, walltime):
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def get_logdir(self):
        """The folder."""
        return self.log_dir

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """A number."""
        self._add(_summary(tag=tag, simple_value=_number(scalar_value)), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Numbers in one plot, each in a file of its own."""
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, main_tag.replace("/", "_") + "_" + tag)
            writer = self._get_file_writer(folder)
            writer.add_summary(_summary(tag=main_tag, simple_value=_number(value)), global_step, walltime)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None):
        """A tensor of floating-point numbers, as float32."""
        array = _array(tensor).astype(np.float32)
        shape = tensor_shape_pb2.TensorShapeProto(
            dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=size) for size in array.shape]
        )
        proto = tensor_pb2.TensorProto(
            dtype=types_pb2.DT_FLOAT, float_val=array.reshape(-1).tolist(), tensor_shape=shape
        )
        self._add(_summary(tag=tag, tensor=proto), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        """How often values occur."""
        self._add(_summary(tag=tag, histo=_histogram(values, bins, max_bins)), global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """An image: bytes, or numbers from 0 to 1."""
        self._add(_summary(tag=tag, image=_image(img_tensor, dataformats)), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """Images of one batch, side by side."""
        self._add(_summary(tag=tag, image=_image(img_tensor, dataformats)), global_step, walltime)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """A figure of matplotlib, or a list of them."""
        figures = figure if isinstance(figure, list) else [figure]
        arrays = []
        for one in figures:
            one.canvas.draw()
            arrays.append(np.asarray(one.canvas.buffer_rgba())[:, :, :3])
            if close:
                import matplotlib.pyplot

                matplotlib.pyplot.close(one)
        for array in arrays:
            self.add_image(tag, array, global_step, walltime, dataformats="HWC")

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """A text in Markdown."""
        metadata, tensor = _text_of(text_string)
        self._add(_summary(tag=tag + "/text_summary", metadata=metadata, tensor=tensor), global_step, walltime)

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        """Hyperparameters and what they led to, in a folder of their own."""
        from tensorboard.plugins.hparams.summary import session_end_pb, session_start_pb

        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        writer = self._get_file_writer(folder)
        plain = {
            key: value.item() if isinstance(value, torch.Tensor) else value for key, value in hparam_dict.items()
        }
        writer.add_summary(session_start_pb(plain), global_step)
        writer.add_summary(session_end_pb("SUCCESS"), global_step)
        for key, value in metric_dict.items():
            writer.add_summary(_summary(tag=key, simple_value=_number(value)), global_step)

    def _absent(self, name):
        raise NotImplementedError(
            f"SummaryWriter.{name}() is not there: graphs, embeddings, meshes and media need torch's own"
        )

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """Not here."""
        self._absent("add_graph")

    def add_embedding(self, *args, **kwargs):
        """Not here."""
        self._absent("add_embedding")

    def add_video(self, *args, **kwargs):
        """Not here."""
        self._absent("add_video")

    def add_audio(self, *args, **kwargs):
        """Not here."""
        self._absent("add_audio")

    def add_mesh(self, *args, **kwargs):
        """Not here."""
        self._absent("add_mesh")

    def add_pr_curve(self, *args, **kwargs):
        """Not here."""
        self._absent("add_pr_curve")

    def flush(self):
        """Writes what waits."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self):
        """Writes what waits and closes the files."""
        for writer in self.all_writers.values():
            writer.close()
        self.all_writers = {}
        self.file_writer = None

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.close()
