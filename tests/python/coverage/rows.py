"""The programs that the language has to be enough for, one row each: its name, and the test here
that covers what it needs, or the issue in which that arrives and why. Of programs between ranks EXERCISES
says in the same way what they try.

A row that arrives gets its test, and its reason goes away."""

COLLECTIVES = "issue 5: collective operations"

ROWS = {
    # programs in jit form
    "01_hello_rank": "test_hello_rank.py",
    "02_programming_model": "test_programming_model.py",
    "03_window_buffer": "test_window_buffer.py",
    "04_barrier": "test_barrier.py",
    "05_remote_load_store": "test_remote_load_store.py",
    "06_put_get": "test_put_and_get.py",
    "07_dynamic_rank_count": "test_dynamic_rank_count.py",
    "multi_program_kv_cache": "test_multi_program_kv_cache.py",
    # programs in class form
    "l2_multi_orch": "test_l2_multi_orch.py",
    "l3_composite_shape_dim": "test_composite_shape_dim.py",
    "l3_deferred_completion": "test_deferred_completion.py",
    "l3_device_tensor": "test_device_tensor.py",
    "l3_dfx_per_rank": "test_dfx_per_rank.py",
    "l3_distributed": "test_l3_distributed.py",
    "l3_ep_dispatch_combine": "test_ep_dispatch_combine.py",
    "l3_explicit_dispatch_onboard": "test_explicit_dispatch.py",
    "l3_gemm": "test_gemm.py",
    "l3_get": "test_l3_get.py",
    "l3_host_tensor_all_to_all": "test_host_tensor_all_to_all.py",
    "l3_host_tensor_all_to_all_v": "test_host_tensor_all_to_all_v.py",
    "l3_host_tensor_allgather": "test_host_tensor_allgather.py",
    "l3_host_tensor_allreduce": "test_host_tensor_allreduce.py",
    "l3_host_tensor_allreduce_multicore": "test_host_tensor_allreduce_multicore.py",
    "l3_host_tensor_allreduce_ring": "test_host_tensor_allreduce_ring.py",
    "l3_host_tensor_barrier": "test_host_tensor_barrier.py",
    "l3_host_tensor_broadcast": "test_host_tensor_broadcast.py",
    "l3_host_tensor_reduce_scatter": "test_host_tensor_reduce_scatter.py",
    "l3_manual": "test_l3_manual.py",
    "l3_multi_group": "test_multi_group.py",
    "l3_notify_wait": "test_notify_wait.py",
    "l3_parallel_reduce": "test_parallel_reduce.py",
    "l3_put": "test_l3_put.py",
    "l3_rank_slice_dispatch": "test_rank_slice_dispatch.py",
    "l3_remote_store": "test_l3_remote_store.py",
    "l3_remote_store_window_raw": "test_remote_store_window_raw.py",
    "l3_ring_sizing_prewarm": "test_ring_sizing_prewarm.py",
    "l3_self_notify_credit_reset": "test_self_notify_credit_reset.py",
    "l3_stacked_device_tensor": "test_stacked_device_tensor.py",
    "l3_tuple_return": "test_tuple_return.py",
    "l3_window_slice_incore": "test_window_slice_incore.py",
    # collectives, written by hand and built in
    "l3_all_to_all": "test_l3_all_to_all.py",
    "l3_allgather": "test_allgather.py",
    "l3_allreduce": "test_allreduce.py",
    "l3_allreduce_ring": "test_allreduce_ring.py",
    "l3_broadcast": "test_broadcast.py",
    "l3_reduce_scatter": "test_reduce_scatter.py",
    "l3_tensor_all_to_all_intrinsic": "test_builtin_all_to_all.py",
    "l3_tensor_all_to_all_v_intrinsic": "test_builtin_all_to_all_v.py",
    "l3_tensor_allgather_intrinsic": "test_builtin_allgather.py",
    "l3_tensor_allreduce_intrinsic": "test_builtin_allreduce.py",
    "l3_tensor_allreduce_ring_intrinsic": "test_builtin_allreduce_ring.py",
    "l3_tensor_barrier_intrinsic": "test_builtin_barrier.py",
    "l3_tensor_broadcast_intrinsic": "test_builtin_broadcast.py",
    "l3_tensor_collective_signal_reuse": "test_signal_reuse.py",
    "l3_tensor_reduce_scatter_intrinsic": "test_builtin_reduce_scatter.py",
}

# What each program between ranks, and each example, exercises: the test that does, in the file of its row or in
# the one that is named, or again the issue in which it arrives and why.
EXAMPLE = "../test_examples.py test_example"
VARIANTS = "../test_artifacts.py test_collectives_of_host_functions"
EXERCISES = {
    "l3_notify_wait": {
        "a cell counted up around a ring, waited for, read": "test_notify_wait",
        "signals at zero in each of three calls": "test_notify_wait",
        "three calls with one allocation": "test_one_allocation",
    },
    "l3_self_notify_credit_reset": {
        "a rank takes back what it received": "test_self_notify_credit_reset",
        "three calls on windows that are not reset": "test_without_resets",
    },
    "l3_multi_group": {"two overlapping domains, views of fewer dimensions": "test_multi_group"},
    "l3_put": {
        "whole slices, in chunks, pipelined, parts, sums into one rank, an early return": "test_put",
        "sums of integers": "../test_put_get.py test_no_add_is_lost",
    },
    "l3_get": {"whole slices": "test_get_whole", "parts": "test_get_part"},
    "l3_remote_store": {
        "a tile": "test_push",
        "two halves, with Set": "test_push_halves",
        "what was computed from tensors": "test_push_sum",
        "sums of what several ranks push": "test_add_up",
    },
    "l3_remote_store_window_raw": {"a kernel that pushes, then one that reads": "test_remote_store_window_raw"},
    "l3_window_slice_incore": {
        "slices as sources and targets, sums of them": "test_window_slices",
        "slices converted from 16 bits": "test_window_cast",
    },
    "l3_deferred_completion": {
        "4, 16 and 48 waiting tasks, three epochs": "test_the_last_task_opens_all_gates",
        "conditions that hold already": "test_gates_that_are_open_already",
        "epochs on windows that are not reset": "test_epochs_without_resets",
    },
    "l3_ep_dispatch_combine": {
        "rows to experts and back, in 32 bits": "test_ep_dispatch_combine",
        "full size, in 16 bits, counts by notify": "test_full_size",
    },
    "l3_gemm": {"a window beside a matrix product": "test_gemm"},
    "l3_composite_shape_dim": {
        "computed extents, devices by number": "test_composite_shape_dim",
        "extents that the call brings": "test_dynamic_composite_dims",
        "an extent that does not divide": "test_an_extent_that_is_no_multiple",
    },
    "l3_rank_slice_dispatch": {"a parallel loop over devices": "test_rank_slice_dispatch"},
    "l3_dfx_per_rank": {"its program": "test_dfx_per_rank", "its profiles": "test_profiles"},
    "l3_distributed": {
        "wrappers written in the host function": "../test_scopes.py test_a_program_in_one_host_function",
        "results checked by a Python function": "test_results_are_verified",
        "another function for it": "test_another_function_verifies",
    },
    "l3_explicit_dispatch_onboard": {
        "a program as a function, two devices in turn": "test_explicit_dispatch",
        "two programs and one tensor on one worker": "test_two_programs",
        "a host function compiled for samples": "test_compiled_for_samples",
    },
    "l3_device_tensor": {"a weight in several calls": "test_device_tensor", "a weight that stays": "test_a_weight_that_stays"},
    "l3_stacked_device_tensor": {"a shard for each rank": "test_stacked_device_tensor", "shards that stay": "test_shards_that_stay"},
    "l3_ring_sizing_prewarm": {"its program": "test_ring_sizing_prewarm", "sizes that are prepared": "test_prepared_sizes"},
    "l3_tuple_return": {"a tuple of outputs": "test_tuple_return"},
    "l3_parallel_reduce": {"results added by a Python function": "test_parallel_reduce"},
    "l3_manual": {
        "its program": "test_manual",
        "run again from its output directory": "../test_reloaded.py test_a_program_for_one_device",
    },
    "l2_multi_orch": {
        "several wrappers, chosen by name": "test_l2_multi_orch",
        "an output directory of sources, with the kernels of each wrapper": "../test_artifacts.py "
        "test_skip_ptoas_with_several_orchestrations",
    },
    "l3_host_tensor_allreduce": {
        "no signal, rows of many lengths, FP32 and FP16": "test_without_signal",
        "three rounds on one signal": "test_three_rounds_on_one_signal",
        "Max, Min, Prod": "test_operators",
        "a folder of its output directory": VARIANTS,
    },
    "l3_host_tensor_allreduce_multicore": {"lanes of signals, zero behind it, two rounds": "test_lanes"},
    "l3_host_tensor_allreduce_ring": {
        "three rounds on one signal": "test_ring",
        "a folder of its output directory": VARIANTS,
    },
    "l3_host_tensor_barrier": {
        "publish, barrier, read a peer, twice": "test_host_barrier",
        "a folder of its output directory": VARIANTS,
    },
    "l3_host_tensor_broadcast": {
        "in a loop": "test_host_broadcast",
        "a folder of its output directory": VARIANTS,
    },
    "l3_host_tensor_reduce_scatter": {
        "in a loop": "test_host_reduce_scatter",
        "a folder of its output directory": VARIANTS,
    },
    "l3_host_tensor_allgather": {
        "windows of their own per round": "test_host_allgather",
        "a folder of its output directory": VARIANTS,
    },
    "l3_host_tensor_all_to_all": {
        "windows of their own per round": "test_host_all_to_all",
        "a folder of its output directory": VARIANTS,
    },
    "l3_host_tensor_all_to_all_v": {
        "ragged counts, five windows": "test_host_all_to_all_v",
        "a folder of its output directory": VARIANTS,
    },
    "01_hello_rank": {"the example": EXAMPLE},
    "02_programming_model": {"the example": EXAMPLE},
    "03_window_buffer": {"the example": EXAMPLE},
    "04_barrier": {"the example, by hand and built in": EXAMPLE},
    "05_remote_load_store": {"the example, both modes, its barrier built in": EXAMPLE},
    "06_put_get": {"the example, both modes": EXAMPLE},
    "07_dynamic_rank_count": {"the example": EXAMPLE},
}
