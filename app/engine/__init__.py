"""The Python API of onnxruntime-genai on plain onnxruntime: `from app import engine as og`.

Arrays in, arrays out. Imports nothing else of app and could be published alone.
"""

from app.engine.adapters import Adapters
from app.engine.config_file import Config
from app.engine.devices import (
    get_current_gpu_device_id,
    is_cuda_available,
    is_dml_available,
    is_openvino_available,
    is_qnn_available,
    is_webgpu_available,
    register_execution_provider_library,
    set_current_gpu_device_id,
    unregister_execution_provider_library,
)
from app.engine.errors import (
    ContextFullError,
    EngineError,
    ModelError,
    OutOfMemoryError,
    Stopped,
)
from app.engine.generator import Generator
from app.engine.log import set_log_callback, set_log_options
from app.engine.model import Model
from app.engine.params import GeneratorParams
from app.engine.stop import Stop
from app.engine.telemetry import disable_telemetry_events, enable_telemetry_events
from app.engine.tensors import NamedTensors, Tensor
from app.engine.tokenizer import Tokenizer, TokenizerStream

__all__ = [
    "Adapters",
    "Config",
    "ContextFullError",
    "EngineError",
    "Generator",
    "GeneratorParams",
    "Model",
    "ModelError",
    "NamedTensors",
    "OutOfMemoryError",
    "Stop",
    "Stopped",
    "Tensor",
    "Tokenizer",
    "TokenizerStream",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_current_gpu_device_id",
    "is_cuda_available",
    "is_dml_available",
    "is_openvino_available",
    "is_qnn_available",
    "is_webgpu_available",
    "register_execution_provider_library",
    "set_current_gpu_device_id",
    "set_log_callback",
    "set_log_options",
    "unregister_execution_provider_library",
]
