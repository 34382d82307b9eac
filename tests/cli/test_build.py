"""``build`` reports what it built and why, and ``debug data`` lists the stores."""

import json


def test_build_says_what_became_of_each_store(run_small):
    code, out, err = run_small("build a.cfg --loader.store stores")
    assert code == 0 and "coffee/train" in out and "built: it did not exist" in out
    code, out, _ = run_small("build a.cfg --loader.store stores --json")
    found = json.loads(out)
    assert code == 0 and {each["reason"] for each in found} == {""}
    assert found[0]["name"] == "coffee/train" and found[0]["folder"].endswith("train/examples")
    code, out, _ = run_small("build a.cfg --loader.store stores")
    assert out.count("up to date") == 6
    more = "--loader.store stores --tasks.coffee.n_train 61"
    code, out, _ = run_small(f"debug data a.cfg {more}")
    assert code == 0 and "stale: 'n_train' was 60, now it is 61" in out
    code, _, err = run_small(f"train a.cfg {more} --training.max_steps 1")
    assert code == 1 and "'n_train' was 60, now it is 61" in err and "Traceback" not in err


def test_build_without_a_place_for_stores_is_one_clear_error(run_small, tmp_path):
    code, _, err = run_small("build a.cfg")
    assert code == 1 and "give a folder, with --loader.store FOLDER" in err
    assert [path.name for path in tmp_path.iterdir()] == ["a.cfg"]


def test_build_into_a_file_is_one_clear_error(run_small, tmp_path):
    (tmp_path / "stores").write_text("a file")
    code, _, err = run_small("build a.cfg --loader.store stores")
    assert code == 1 and "stores" in err and "Traceback" not in err
