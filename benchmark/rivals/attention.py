# SPDX-License-Identifier: MIT
"""How other libraries do attention.

Each function makes ready for a problem and returns the library's version and the call that is timed. It runs
in the library's own environment, so that nothing is imported before it is needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

Call = Callable[[], Any]


def sdpa_inputs(torch: Any, p: dict[str, Any]) -> list[Any]:
    """Q, K and V."""
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[p["prec"]]
    sizes = ((p["h"], p["s_q"]), (p["h_k"], p["s_k"]), (p["h_k"], p["s_k"]))
    return [torch.rand(p["b"], heads, s, p["d"], dtype=dtype) for heads, s in sizes]


def prepare_torch(p: dict[str, Any]) -> tuple[str, Call]:
    """torch.nn.functional.scaled_dot_product_attention."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(p["threads"])
    tensors = sdpa_inputs(torch, p)
    attention = torch.nn.functional.scaled_dot_product_attention
    gqa = p["h"] != p["h_k"]

    def call() -> None:
        with torch.no_grad():
            attention(*tensors, is_causal=p["causal"], enable_gqa=gqa)

    return torch.__version__, call


def prepare_zentorch(p: dict[str, Any]) -> tuple[str, Call]:
    """The attention operator of AMD's plug-in for PyTorch. K and V of grouped heads are repeated before."""
    torch: Any = importlib.import_module("torch")
    zentorch: Any = importlib.import_module("zentorch")
    torch.set_num_threads(p["threads"])
    q, k, v = sdpa_inputs(torch, p)
    group = p["h"] // p["h_k"]
    k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))

    def call() -> None:
        with torch.no_grad():
            torch.ops.zentorch.zentorch_sdpa(q, k, v, 0.0, p["causal"], attn_mask=None, scale=None)

    return zentorch.__version__, call


def prepare_onnxruntime(p: dict[str, Any]) -> tuple[str, Call]:
    """com.microsoft.MultiHeadAttention, or GroupQueryAttention where heads are grouped."""
    np: Any = importlib.import_module("numpy")
    onnx: Any = importlib.import_module("onnx")
    ort: Any = importlib.import_module("onnxruntime")
    if p["prec"] == "bf16":
        raise ValueError("no attention in bf16 on the CPU")
    dtype, element = {"fp32": (np.float32, 1), "fp16": (np.float16, 10)}[p["prec"]]
    h, h_k, d = p["h"], p["h_k"], p["d"]
    widths = {"q": (p["s_q"], h), "k": (p["s_k"], h_k), "v": (p["s_k"], h_k)}
    helper = onnx.helper
    inputs = [
        helper.make_tensor_value_info(name, element, [p["b"], s, heads * d])
        for name, (s, heads) in widths.items()
    ]
    feeds = {
        name: np.random.default_rng(1).random((p["b"], s, heads * d), np.float32).astype(dtype)
        for name, (s, heads) in widths.items()
    }
    if h == h_k:
        node = helper.make_node(
            "MultiHeadAttention",
            ["q", "k", "v"],
            ["o"],
            domain="com.microsoft",
            num_heads=h,
            unidirectional=int(p["causal"]),
        )
    else:
        if not p["causal"] or p["s_q"] != p["s_k"]:
            raise ValueError("grouped heads only with a causal mask, on equal lengths")
        inputs += [
            helper.make_tensor_value_info("lengths", 6, [p["b"]]),
            helper.make_tensor_value_info("most", 6, [1]),
        ]
        feeds |= {"lengths": np.full(p["b"], p["s_k"] - 1, np.int32), "most": np.array([p["s_k"]], np.int32)}
        node = helper.make_node(
            "GroupQueryAttention",
            ["q", "k", "v", "", "", "lengths", "most"],
            ["o", "pk", "pv"],
            domain="com.microsoft",
            num_heads=h,
            kv_num_heads=h_k,
        )
    output = helper.make_tensor_value_info("o", element, None)
    graph = helper.make_graph([node], "attention", inputs, [output])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    options = ort.SessionOptions()
    options.intra_op_num_threads = p["threads"]
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return ort.__version__, lambda: session.run(["o"], feeds)


def prepare_openvino(p: dict[str, Any]) -> tuple[str, Call]:
    """ScaledDotProductAttention of the CPU plug-in, at the precision asked for."""
    np: Any = importlib.import_module("numpy")
    ov: Any = importlib.import_module("openvino")
    ops: Any = importlib.import_module("openvino.opset13")
    kind = {"fp32": ov.Type.f32, "bf16": ov.Type.bf16, "fp16": ov.Type.f16}[p["prec"]]
    if p["prec"] == "fp16":
        raise ValueError("computes fp16 in fp32 after a conversion")
    shapes = [
        [p["b"], heads, s, p["d"]]
        for heads, s in ((p["h"], p["s_q"]), (p["h"], p["s_k"]), (p["h"], p["s_k"]))
    ]
    parameters = [ops.parameter(shape, kind) for shape in shapes]
    attention = ops.scaled_dot_product_attention(*parameters, causal=p["causal"])
    hints = {"INFERENCE_NUM_THREADS": p["threads"], "INFERENCE_PRECISION_HINT": kind, "NUM_STREAMS": 1}
    request = ov.Core().compile_model(ov.Model([attention], parameters), "CPU", hints).create_infer_request()
    for i, shape in enumerate(shapes):
        numbers = np.random.default_rng(1).random(shape, np.float32)
        tensor = ov.Tensor(kind, ov.Shape(shape))
        tensor.data[...] = (
            numbers
            if p["prec"] == "fp32"
            else (numbers.view(np.uint32) >> 16).astype(np.uint16).view(tensor.data.dtype)
        )
        request.set_input_tensor(i, tensor)
    return ov.__version__, request.infer


PREPARE = {
    "torch": prepare_torch,
    "zentorch": prepare_zentorch,
    "onnxruntime": prepare_onnxruntime,
    "openvino": prepare_openvino,
}
