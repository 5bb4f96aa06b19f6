"""The numbers of traces/capture/record.h; a test holds the two together."""

LAYER_TORCH = 1

KINDS = {
    "unknown": 0,
    "all_reduce": 1,
    "reduce_scatter": 2,
    "all_gather": 3,
    "broadcast": 4,
    "reduce": 5,
    "gather": 6,
    "scatter": 7,
    "all_to_all": 8,
    "barrier": 9,
    "send": 10,
    "recv": 11,
    "new_group": 12,
    "split_group": 13,
}

# Element types by torch's name of the dtype.
ELEMENTS = {
    "int8": 1,
    "uint8": 2,
    "int16": 3,
    "uint16": 4,
    "int32": 5,
    "uint32": 6,
    "int64": 7,
    "uint64": 8,
    "float16": 9,
    "bfloat16": 10,
    "float32": 11,
    "float64": 12,
    "float8_e4m3fn": 13,
    "float8_e5m2": 14,
    "bool": 15,
    "complex64": 16,
    "complex128": 17,
}

# Reductions by torch's name in ReduceOp.
REDUCTIONS = {
    "SUM": 1,
    "PRODUCT": 2,
    "MIN": 3,
    "MAX": 4,
    "AVG": 5,
    "PREMUL_SUM": 6,
    "BAND": 7,
    "BOR": 8,
    "BXOR": 9,
}

ASYNC = 0x04
NO_END = 0x20

FIELDS = {"split_in": 1, "split_out": 2, "count_out": 3, "tag": 4, "name": 5, "element_out": 6, "members": 9}

EVENTS = {
    "layer_loaded": 1,
    "layer_blind": 2,
    "group_destroyed": 3,
    "group_aborted": 4,
    "async_error": 5,
    "exception": 6,
    "torn_down": 8,
}
