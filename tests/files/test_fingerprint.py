"""What tells whether a file is another one."""

from thincdialog.files.fingerprint import N_PIECES, PIECE, fingerprint


def test_a_large_file_is_known_by_pieces(tmp_path):
    path = tmp_path / "large"
    for size in (0, 1, PIECE, PIECE + 1, N_PIECES * PIECE, N_PIECES * PIECE + 5, 9_000_000):
        content = bytearray(size)
        path.write_bytes(content)
        before = fingerprint(str(path))
        assert before == fingerprint(str(path))
        for at in {0, size // 2 if size <= N_PIECES * PIECE else 0, size - 1} if size else ():
            content[at] ^= 1
            path.write_bytes(content)
            assert fingerprint(str(path)) != before
            content[at] ^= 1
        path.write_bytes(bytes(size + 1))
        assert fingerprint(str(path)) != before
