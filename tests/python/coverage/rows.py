"""The programs that the language has to be enough for, one row each: its name, and the test here
that covers what it needs, or the issue in which that arrives and why.

A row that arrives gets its test, and its reason goes away."""

COLLECTIVES = "issue 4: collective operations"
TASKS = "issue 5: tasks, scopes and callbacks"

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
    "l3_deferred_completion": TASKS,
    "l3_device_tensor": "test_device_tensor.py",
    "l3_dfx_per_rank": "test_dfx_per_rank.py",
    "l3_distributed": TASKS,
    "l3_ep_dispatch_combine": "test_ep_dispatch_combine.py",
    "l3_explicit_dispatch_onboard": TASKS,
    "l3_gemm": "test_gemm.py",
    "l3_get": "test_l3_get.py",
    "l3_host_tensor_all_to_all": COLLECTIVES,
    "l3_host_tensor_all_to_all_v": COLLECTIVES,
    "l3_host_tensor_allgather": COLLECTIVES,
    "l3_host_tensor_allreduce": COLLECTIVES,
    "l3_host_tensor_allreduce_multicore": COLLECTIVES,
    "l3_host_tensor_allreduce_ring": COLLECTIVES,
    "l3_host_tensor_barrier": COLLECTIVES,
    "l3_host_tensor_broadcast": COLLECTIVES,
    "l3_host_tensor_reduce_scatter": COLLECTIVES,
    "l3_manual": "test_l3_manual.py",
    "l3_multi_group": "test_multi_group.py",
    "l3_notify_wait": "test_notify_wait.py",
    "l3_parallel_reduce": TASKS,
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
    "l3_tensor_all_to_all_intrinsic": COLLECTIVES,
    "l3_tensor_all_to_all_v_intrinsic": COLLECTIVES,
    "l3_tensor_allgather_intrinsic": COLLECTIVES,
    "l3_tensor_allreduce_intrinsic": COLLECTIVES,
    "l3_tensor_allreduce_ring_intrinsic": COLLECTIVES,
    "l3_tensor_barrier_intrinsic": COLLECTIVES,
    "l3_tensor_broadcast_intrinsic": COLLECTIVES,
    "l3_tensor_collective_signal_reuse": COLLECTIVES,
    "l3_tensor_reduce_scatter_intrinsic": COLLECTIVES,
}
