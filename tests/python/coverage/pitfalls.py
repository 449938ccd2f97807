"""What is easily done wrong when programs are called, and what must become of it: that it works, or is refused before anything runs.
A row each, with the tests that show it, as in rows.py; rows that have no better place are in test_pitfalls.py.

A test is named with its file, as seen from tests/python."""

PITFALLS = {
    "a private tensor for a prepared worker": [
        "test_worker.py test_host_tensors_of_every_kind_made_at_any_time",
        "test_shared_tensors.py test_a_worker_that_takes_only_shared_memory",
        "test_shared_tensors.py test_the_environment_says_so",
    ],
    "a tensor that is shared after the worker was prepared": [
        "test_worker.py test_host_tensors_of_every_kind_made_at_any_time",
        "test_shared_tensors.py test_shared_memory_is_used_in_place",
        "test_shared_tensors.py test_an_address_that_comes_again_means_what_is_there_now",
    ],
    "another name of the caller's memory": ["test_pitfalls.py test_other_names_of_the_callers_memory_see_the_results"],
    "a tensor of another shape, rank, element type or dynamic extent": ["test_pitfalls.py test_arguments_that_do_not_fit"],
    "a tensor that is not contiguous": [
        "test_worker.py test_a_view_is_scattered_back",
        "test_tensors.py test_torch_views",
        "test_tensors.py test_what_is_between_the_rows_of_an_output_stays",
    ],
    "an element type that is not the declared one": [
        "test_pitfalls.py test_arguments_that_do_not_fit",
        "test_tensors.py test_other_element_types_are_refused",
    ],
    "more or fewer devices than the program uses": [
        "test_numbers.py test_devices_with_nothing_to_do_are_told",
        "test_pitfalls.py test_worlds_that_do_not_fit",
    ],
    "a device id for a rank": [
        "test_numbers.py test_devices_with_nothing_to_do_are_told",
        "test_mistakes.py test_devices_that_are_none",
    ],
    "a resident tensor in a one-shot call": ["test_resident.py test_one_shot_calls_have_no_worker_for_it"],
    "a resident tensor of another worker or rank, or one that was freed": [
        "test_resident.py test_only_live_tensors_of_the_same_worker",
        "test_resident.py test_the_rank_is_checked_before_anything_runs",
        "test_resident.py test_another_rank_than_that_of_the_dispatch",
    ],
    "a stacked tensor whose rows lie on other ranks": ["test_stacked.py test_the_rank_of_each_row_is_checked_before_anything_runs"],
    "a resident tensor that the host function slices": [
        "test_resident.py test_rows_of_one_tensor_by_leading_indices",
        "test_stacked.py test_tensors_of_many_dimensions_and_parts_of_rows",
    ],
    "a resident tensor for a SubWorker": ["test_pitfalls.py test_sub_workers_use_resident_tensors_in_place"],
    "a window that is larger than its buffer": [
        "test_windows.py test_a_view_larger_than_its_buffer",
        "test_windows.py test_the_callee_s_shape_is_checked_against_the_buffer",
    ],
    "dispatches without device, with persistent windows": ["coverage/test_explicit_dispatch.py test_dispatches_without_device_go_around"],
    "an output that is written twice, or read and then overwritten": [
        "test_pitfalls.py test_dispatches_on_one_tensor_keep_their_order",
        "test_tasks.py test_the_later_dispatch_waits_on_another_device",
    ],
    "a copy between host tensors, or elements of one, behind a dispatch": [
        "test_host_copies.py test_copies",
        "test_mistakes.py test_a_host_function_writes_no_elements",
    ],
    "calls in flight that share a tensor": [
        "test_worker.py test_a_call_sees_what_the_one_before_writes_into_a_host_tensor",
        "test_worker.py test_a_call_does_not_change_what_the_one_before_reads",
        "test_resident.py test_calls_in_flight_that_share_it_keep_their_order",
    ],
    "numbers: in one-shot calls, negative, fractions, between tensors": ["test_pitfalls.py test_numbers_reach_kernels"],
    "a SubWorker with globals, numbers, all element types, what cannot be pickled": [
        "test_sub_workers.py test_names_around_a_function",
        "test_sub_workers.py test_scalars_and_views",
        "test_sub_workers.py test_element_types",
        "test_sub_workers.py test_functions_see_what_was_there_when_they_were_forked",
        "test_pitfalls.py test_callbacks_need_not_be_picklable",
    ],
    "a long text of a SubWorker's exception, and where it was raised": ["test_sub_workers.py test_an_exception_fails_the_call"],
    "a rank that fails while others wait for it": [
        "test_worker.py test_a_failure_is_told_again_and_the_worker_goes_on",
        "test_pitfalls.py test_who_waits_for_a_rank_that_failed",
    ],
    "a wait that nobody will satisfy": [
        "test_worker.py test_a_deadlock_ends_its_call",
        "../fault/test_faults.py test_deadlock_names_ranks_cells_values_and_lines",
        "../fault/test_faults.py test_a_computing_rank_is_no_deadlock",
    ],
    "a worker that is killed": [
        "test_worker.py test_a_dead_worker_ends_the_calls_and_the_set",
        "../fault/test_faults.py test_a_killed_worker_is_reported_with_rank_signal_and_line",
        "../fault/test_parents.py test_a_process_that_is_killed_in_a_call_leaves_nothing",
    ],
    "times of a simulator": [
        "test_benchmark.py test_time_grows_with_work",
        "test_benchmark.py test_standard_error_is_left_alone",
    ],
    "a record of a call whose inputs it changes": ["test_pitfalls.py test_a_recorded_call_runs_once"],
    "two compiles in one second": ["test_artifacts.py test_default_directories"],
    "no C compiler": ["test_errors.py test_no_compiler", "test_errors.py test_a_compiler_that_fails"],
    "a configuration that has no effect on a call": [
        "test_options.py test_settings_without_effect_are_told",
        "test_options.py test_settings_with_effect_are_not",
    ],
    "workers of both kinds in one process": ["test_chip_worker.py test_workers_of_both_kinds_in_any_order"],
    "tensors that nobody frees": [
        "test_runtime_base.py test_forgotten_tensors_are_freed_in_silence",
        "test_runtime_base.py test_forgotten_tensors_in_a_log_for_debugging",
        "test_resident.py test_forgotten_tensors",
    ],
    "callbacks that do not fit": ["test_sub_workers.py test_callbacks_that_do_not_fit"],
    "windows that are not reset, and a protocol that leaves something in them": [
        "test_worker.py test_persistent_windows_keep_what_they_hold",
        "test_lint.py test_mistake_and_twin",
    ],
    "several mistakes in one call": ["test_pitfalls.py test_the_order_of_checks"],
}

# What must hold of workers as a whole, beside the programs of rows.py.
ACCEPTANCE = {
    "nothing is left behind shutdown and exit": [
        "../fault/test_faults.py test_nothing_is_left_after_shutdown",
        "../fault/test_faults.py test_workers_idle_without_cpu_and_end_with_the_script",
    ],
    "a failure names its rank, and the next worker works": [
        "test_sub_workers.py test_an_exception_fails_the_call",
        "test_worker.py test_a_dead_worker_ends_the_calls_and_the_set",
        "test_worker.py test_a_deadlock_ends_its_call",
        "../fault/test_start.py test_a_worker_that_is_slow",
    ],
    "a hundred calls need no more memory, descriptors or mappings": [
        "test_worker.py test_many_calls_need_no_more",
        "test_resident.py test_calls_do_not_grow_anything",
        "test_shared_tensors.py test_many_tensors_need_no_more",
    ],
    "what prepare does is done once": ["test_worker.py test_prepare_loads_the_programs"],
    "workers of both kinds in any order": ["test_chip_worker.py test_workers_of_both_kinds_in_any_order"],
}
