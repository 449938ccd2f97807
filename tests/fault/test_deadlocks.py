"""What a deadlock report says of common mistakes. Each program has a twin that differs in the mistake alone
and must end."""

import pytest

# name: (ranks, body, mistake, right, what the report must say, what it must not say)
PATTERNS = {
    "nobody notifies": (
        2,
        """
        MISTAKE
        pld.system.wait(signal, offsets=[1 - me, 0], expected=1, cmp=pld.WaitCmp.Ge)
        """,
        "pass",
        "pld.system.notify(signal, peer=1 - me, offsets=[me, 0], value=1, op=pld.NotifyOp.Set)",
        [
            "2 of 2 ranks",
            "'signal_buf'[1, 0] of rank 0: nobody has notified it",
            "'signal_buf'[0, 0] of rank 1: nobody has notified it",
            "cycle: rank 0 -> rank 1 -> rank 0",
        ],
        ["nobody waits for that cell"],
    ),
    "wait before notify": (
        2,
        """
        if MISTAKE:
            pld.system.wait(signal, offsets=[1 - me, 0], expected=1, cmp=pld.WaitCmp.Ge)
        pld.system.notify(signal, peer=1 - me, offsets=[me, 0], value=1, op=pld.NotifyOp.Set)
        pld.system.wait(signal, offsets=[1 - me, 0], expected=1, cmp=pld.WaitCmp.Ge)
        """,
        "me >= 0",
        "me == 0",
        ["cycle: rank 0 -> rank 1 -> rank 0"],
        [],
    ),
    "the notify goes to another cell": (
        2,
        """
        pld.system.notify(signal, peer=1 - me, offsets=[MISTAKE, 0], value=1, op=pld.NotifyOp.AtomicAdd)  # sent
        pld.system.wait(signal, offsets=[1 - me, 0], expected=1, cmp=pld.WaitCmp.Ge)
        """,
        "1 - me",
        "me",
        [
            "rank 1 has notified 'signal_buf'[0, 0] of rank 0 at SCRIPT:SENT, and nobody waits for that cell",
            "rank 0 has notified 'signal_buf'[1, 0] of rank 1 at SCRIPT:SENT, and nobody waits for that cell",
        ],
        [],
    ),
    "one rank skips the barrier": (
        3,
        """
        if me != MISTAKE:
            for peer in pl.range(n):
                if peer != me:
                    pld.system.notify(signal, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            for src in pl.range(n):
                if src != me:
                    pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)
        """,
        "2",
        "7",
        [
            "2 of 3 ranks",
            "rank 0, rank 1 wait for rank 2, which has ended its part of the call",
            "rank 0 has notified 'signal_buf'[0, 0] of rank 2",
        ],
        ["cycle"],
    ),
    "victims behind a pair": (
        4,
        """
        if me == 0:
            pld.system.wait(signal, offsets=[1, 0], expected=1, cmp=pld.WaitCmp.Ge)
        if me == 1:
            if MISTAKE:
                pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
            pld.system.notify(signal, peer=0, offsets=[1, 0], value=1, op=pld.NotifyOp.Set)
        if me < 2:
            pld.system.notify(signal, peer=me + 2, offsets=[me, 0], value=1, op=pld.NotifyOp.Set)
        if me > 1:
            pld.system.notify(signal, peer=0, offsets=[me, 0], value=1, op=pld.NotifyOp.Set)
            pld.system.wait(signal, offsets=[me - 2, 0], expected=1, cmp=pld.WaitCmp.Ge)
        """,
        "me == 1",
        "me == 0",
        ["4 of 4 ranks", "cycle: rank 0 -> rank 1 -> rank 0", "held up behind these: rank 2, rank 3"],
        [],
    ),
    "an arrival is missing": (
        4,
        """
        if me > MISTAKE:
            pld.system.notify(signal, peer=0, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)  # sent
        if me == 0:
            pld.system.wait(signal, offsets=[0, 0], expected=3, cmp=pld.WaitCmp.Ge)
        """,
        "1",
        "0",
        [
            "'signal_buf'[0, 0] of rank 0: notified by rank 2 (1 in 1, last at SCRIPT:SENT), rank 3 (1 in 1, last at "
            "SCRIPT:SENT); not by rank 1",
            "rank 0 waits for rank 1, which has ended its part of the call",
        ],
        [],
    ),
    "a link of the ring is missing": (
        4,
        """
        if me != MISTAKE:
            pld.system.notify(signal, peer=(me + 1) % n, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)
        pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
        """,
        "1",
        "7",
        ["1 of 4 ranks", "rank 2 waits for rank 1, which has ended its part of the call"],
        ["waits for one of", "waits for rank 0"],
    ),
    "a chain stops": (
        8,
        """
        if me > 0:
            pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
        if me == MISTAKE:
            pld.system.wait(signal, offsets=[1, 0], expected=1, cmp=pld.WaitCmp.Ge)
        pld.system.notify(signal, peer=(me + 1) % n, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)
        """,
        "2",
        "9",
        [
            "6 of 8 ranks",
            "'signal_buf'[0, 0] of rank 3 to rank 7: nobody has notified it",
            "rank 3 to rank 7: waits for 'signal_buf'[0, 0] >= 1",
            "rank 2 waits for rank 1, which has ended its part of the call",
            "held up behind these: rank 3 to rank 7",
        ],
        ["rank 3 waits for"],
    ),
    "several may be missing": (
        5,
        """
        if me > MISTAKE:
            pld.system.notify(signal, peer=0, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        if me == 0:
            pld.system.wait(signal, offsets=[0, 0], expected=4, cmp=pld.WaitCmp.Ge)
        """,
        "2",
        "0",
        ["rank 0 waits for one of rank 1, rank 2, which have ended their part of the call"],
        [],
    ),
    "nobody arrives at the barrier": (
        16,
        """
        MISTAKE
        pld.system.wait(signal, offsets=[0, 0], expected=n, cmp=pld.WaitCmp.Ge)
        """,
        "pass",
        "for peer in pl.range(n):\n"
        "            pld.system.notify(signal, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)",
        [
            "16 of 16 ranks",
            "rank 0 to rank 15: waits for 'signal_buf'[0, 0] >= 16, which is 0",
            "'signal_buf'[0, 0] of rank 0 to rank 15: nobody has notified it",
            "all of these wait for each other: rank 0 to rank 15",
        ],
        ["cycle", "held up"],
    ),
    "an equality is overshot": (
        2,
        """
        if me == 1:
            pld.system.notify(signal, peer=0, offsets=[1, 0], value=MISTAKE, op=pld.NotifyOp.AtomicAdd)
        if me == 0:
            pld.system.wait(signal, offsets=[1, 0], expected=1, cmp=pld.WaitCmp.Eq)
        """,
        "2",
        "1",
        ["it is past 1, and a wait for == misses a value that is added to: use WaitCmp.Ge"],
        [],
    ),
    "arrivals are set instead of counted": (
        3,
        """
        if me > 0:
            pld.system.notify(signal, peer=0, offsets=[0, 0], value=1, op=pld.NotifyOp.MISTAKE)
        if me == 0:
            pld.system.wait(signal, offsets=[0, 0], expected=2, cmp=pld.WaitCmp.Ge)
        """,
        "Set",
        "AtomicAdd",
        ["2 notifies have come, but to set a cell wipes out what was there: use NotifyOp.AtomicAdd"],
        ["nobody has notified", "misses a value"],
    ),
    "too few are set": (
        3,
        """
        if me == 2:
            pld.system.notify(signal, peer=0, offsets=[0, 0], value=MISTAKE, op=pld.NotifyOp.Set)
        if me == 0:
            pld.system.wait(signal, offsets=[0, 0], expected=2, cmp=pld.WaitCmp.Ge)
        """,
        "1",
        "2",
        ["notified by rank 2 (1 in 1"],
        ["NotifyOp.AtomicAdd"],
    ),
    "alone": (
        1,
        """
        MISTAKE
        pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
        """,
        "pass",
        "pld.system.notify(signal, peer=0, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)",
        ["1 of 1 ranks", "'signal_buf'[0, 0] of rank 0: nobody has notified it", "cycle: rank 0 -> rank 0"],
        [],
    ),
}


@pytest.mark.parametrize("transport", ["shm", "threads"])
@pytest.mark.parametrize("name", PATTERNS)
def test_the_mistake_is_explained(script, name, transport):
    ranks, body, mistake, _, said, unsaid = PATTERNS[name]
    s = script(
        body.replace("MISTAKE", mistake),
        "try:\n    run()\nexcept pypto.DeadlockError as error:\n    print(error)",
        ranks=ranks,
    )
    code, out, err = s.run(PYPTO_TRANSPORT=transport)
    assert code == 0, err
    for words in said:
        if "SENT" in words:
            words = words.replace("SCRIPT", str(s.path)).replace("SENT", str(s.line_of("# sent")))
        assert words in out
    for words in unsaid:
        assert words not in out


@pytest.mark.parametrize("name", PATTERNS)
def test_the_twin_ends(script, name):
    ranks, body, _, right, _, _ = PATTERNS[name]
    code, _, err = script(body.replace("MISTAKE", right), ranks=ranks).run()
    assert code == 0, err
