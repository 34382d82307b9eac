from collections import Counter
from threading import Thread

from thincdialog.data.text_encoder import count, counting


def test_counts_go_to_the_innermost_counting_of_their_own_thread():
    outer, inner = Counter(), Counter()
    count("tokens", 1)  # Outside of `counting`, this has no effect.
    with counting(outer):
        count("tokens", 2)
        with counting(inner):
            count("tokens", 3)
        thread = Thread(target=count, args=("tokens", 4))
        thread.start()
        thread.join()
        count("cells", 0)
    assert (outer, inner) == ({"tokens": 2, "cells": 0}, {"tokens": 3})
